// The pages of one file: shows the one that the address names, and filters lists as the server does.
"use strict";
(() => {
  const container = document.querySelector(".pages");
  if (!container) return;
  const sections = new Map([...container.children].map((section) => [section.id, section]));
  const params = (query) => new URLSearchParams(query ?? "");
  const units = { s: 1, ms: 1e-3, "µs": 1e-6 };
  let walk = [];  // the sample pages in the order of the list that was shown last

  // What a list is filtered by, read once from the page of each sample.
  const facts = new Map();
  function factsOf(row) {
    let known = facts.get(row);
    if (known) return known;
    const page = sections.get(row.querySelector("a").hash.slice(1));
    known = { page, scores: new Map(), texts: new Map() };
    known.words = [row, ...page.querySelectorAll(".query, .columns")].map((e) => e.textContent).join(" ").toLowerCase();
    known.slices = [...page.querySelectorAll(".chips li")].map((e) => e.textContent.replace(": ", ":"));
    known.failed = page.querySelector(".columns > .failed") !== null;
    known.missed = page.querySelector(".docs > .missed") !== null;
    for (const score of page.querySelectorAll(".scores tbody tr")) {
      const cells = [...score.querySelectorAll("td:not(.soft)")].map((cell) => cell.textContent.split(":")[0]);
      known.texts.set(score.cells[0].textContent, cells);
      known.scores.set(score.cells[0].textContent, cells.map(numberOf));
    }
    facts.set(row, known);
    return known;
  }
  function numberOf(text) {
    const [number, unit] = text.split(" ");
    if (number === "failed") return "failed";
    return number === "" || isNaN(number) ? null : Number(number) * (units[unit] ?? 1);
  }

  // Goodness: higher is better, failed is the worst, not scored is null.
  const goodness = (score, sign) => (score === "failed" ? -Infinity : typeof score === "number" ? sign * score : null);
  function gain(row, wish) {
    const scores = factsOf(row).scores.get(wish.metric) ?? [];
    const [before, after] = scores.map((score) => goodness(score, wish.sign));
    if (!wish.isPair) return before ?? null;
    return (before ?? null) === null || (after ?? null) === null ? null : before === after ? 0 : after - before;
  }
  function wishes(form) {
    const given = params(new FormData(form));
    const list = form.elements.namedItem("metric") ?? form.elements.namedItem("sort");
    const number = (name) => (given.get(name) ? Number(given.get(name)) : null);
    return {
      isPair: list.name === "metric",
      metric: list.value,
      sign: list.selectedOptions[0]?.hasAttribute("data-lower") ? -1 : 1,
      outcome: given.get("outcome") ?? "all",
      slices: given.getAll("slice").filter(Boolean),
      words: (given.get("words") ?? "").toLowerCase().split(/\s+/).filter(Boolean),
      ranged: given.get("range") || list.value,
      low: number("low"), high: number("high"),
      failed: given.has("failed") || given.has("error"), gold: given.has("gold"),
    };
  }
  function matches(row, wish) {
    const known = factsOf(row);
    if (!wish.words.every((word) => known.words.includes(word))) return false;
    if (!wish.slices.every((slice) => known.slices.includes(slice))) return false;
    if ((wish.failed && !known.failed) || (wish.gold && !known.missed)) return false;
    if (wish.low !== null || wish.high !== null) {
      const score = known.scores.get(wish.ranged)?.at(-1);
      if (typeof score !== "number" || score < (wish.low ?? -Infinity) || score > (wish.high ?? Infinity)) return false;
    }
    if (wish.outcome === "all") return true;
    const by = gain(row, wish);
    return by !== null && wish.outcome === (by < 0 ? "lost" : by > 0 ? "won" : "tied");
  }
  // The score columns are those of the metric that the list is sorted by.
  function retell(table, row, wish) {
    const texts = factsOf(row).texts.get(wish.metric) ?? (wish.isPair ? ["-", "-"] : ["-"]);
    const cells = [...row.cells].filter((cell) => cell.classList.contains("num"));
    texts.forEach((text, place) => (cells[place].textContent = text));
    if (!wish.isPair) return (table.tHead.rows[0].cells[row.cells.length - 1].textContent = wish.metric);
    const [before, after] = factsOf(row).scores.get(wish.metric) ?? [];
    const change = typeof before === "number" && typeof after === "number" ? after - before : NaN;
    cells[2].textContent = isNaN(change) ? "-" : (change < 0 ? "" : "+") + Number(change.toPrecision(4));
  }
  const listForm = (section) => section.querySelector("table.list") && section.querySelector("form.filters[data-submits]:has([name=words])");
  const firstOrder = new Map();
  function apply(section, form) {
    const table = section.querySelector("table.list");
    const body = table?.tBodies[0];
    if (!body) return;
    const rows = firstOrder.get(section) ?? [...body.rows];
    firstOrder.set(section, rows);
    const wish = wishes(form);
    const first = (form.dataset.first ??= wish.metric);  // the metric that the page was made with
    const gains = new Map(rows.map((row) => [row, gain(row, wish) ?? Infinity]));
    const way = wish.outcome === "won" ? -1 : 1;
    const compared = (a, b) => (gains.get(a) === gains.get(b) ? 0 : way * (gains.get(a) < gains.get(b) ? -1 : 1));
    const sorted = wish.metric && wish.metric !== first ? [...rows].sort(compared) : way > 0 ? rows : [...rows].sort(compared);
    body.append(...sorted);
    let shown = 0;
    for (const row of sorted) {
      row.hidden = !matches(row, wish);
      shown += !row.hidden;
      if (wish.metric && wish.metric !== (form.dataset.told ?? first)) retell(table, row, wish);
    }
    form.dataset.told = wish.metric || first;
    // The drawing and the counts are those of the first metric.
    for (const drawing of section.querySelectorAll(".beside figure")) drawing.hidden = wish.metric !== first;
    const outcomes = form.elements.namedItem("outcome")?.options ?? [];
    for (const option of outcomes) option.textContent = wish.metric === first ? option.defaultText ??= option.textContent : option.value;
    const count = section.querySelector(".count");
    if (count) count.textContent = `${shown} of ${rows.length} samples`;
    walk = sorted.filter((row) => !row.hidden).map((row) => factsOf(row).page.id);
  }

  function show(section) {
    for (const each of sections.values()) each.classList.toggle("here", each === section);
    const at = walk.indexOf(section.id);
    for (const [rel, id] of [["prev", walk[at - 1]], ["next", walk[at + 1]]]) {
      const link = section.querySelector(`a[rel="${rel}"]`);
      if (link && at >= 0) link.hidden = !id;
      if (link && at >= 0 && id) link.href = `#${id}`;
    }
  }
  function route() {
    const wanted = location.hash.slice(1);
    const inside = document.getElementById(wanted) ?? document.getElementById(decodeURIComponent(wanted));
    if (inside && !sections.has(inside.id)) {
      show(inside.closest(".pages > section") ?? container.firstElementChild);
      return inside.scrollIntoView();
    }
    const [path, query] = wanted.split("?");
    const given = params(query);
    const runs = params(given.getAll("run").map((run) => ["run", run])).toString();
    const section = inside ?? sections.get(runs ? `${path}?${runs}` : path) ?? container.firstElementChild;
    show(section);
    scrollTo(0, 0);
    const form = listForm(section);
    if (!form) return;
    form.reset();
    if (inside || !query) return apply(section, form);
    for (const field of form.elements) {
      if (!field.name || field.name === "run") continue;
      const values = given.getAll(field.name);
      if (field.type === "checkbox") field.checked = values.length > 0;
      else if (field.name === "slice") field.value = values.find((v) => [...field.options].some((o) => o.value === v)) ?? "";
      else if (values.length) field.value = values[0];
    }
    apply(section, form);
    form.scrollIntoView();
  }

  document.addEventListener("submit", (event) => {
    event.preventDefault();
    const form = event.target;
    const given = params(new FormData(form));
    location.hash = `${form.getAttribute("action")}?${given}`;
  });
  container.classList.add("routed");
  for (const section of sections.values()) if (listForm(section)) apply(section, listForm(section));
  addEventListener("hashchange", route);
  route();
})();
