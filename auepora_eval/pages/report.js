// The report's filters, order, keys and document texts. It only shows, hides, moves and marks what is in the page.
"use strict";
(() => {
  const list = document.getElementById("list");
  const form = document.getElementById("filters");
  if (!list || !form) return;
  const controls = document.getElementById("controls");
  const count = controls.querySelector(".count");
  const samples = [...list.children];
  const original = new Map(samples.map((sample, place) => [sample, place]));
  const field = name => form.elements.namedItem(name);
  controls.hidden = false;

  // What is compared, read once from each sample's own text and table.
  const facts = new Map();
  const units = { s: 1, ms: 1e-3, "µs": 1e-6 };
  function factsOf(sample) {
    let known = facts.get(sample);
    if (known) return known;
    known = { scores: new Map(), texts: new Map() };
    known.words = [...sample.querySelectorAll("summary, .columns, .docs li > :not(.text)")].map(e => e.textContent).join(" ").toLowerCase();
    known.slices = [...sample.querySelectorAll(".chips li")].map(e => e.textContent);
    known.failed = sample.querySelector("summary .badge.failed") !== null;
    known.missed = sample.querySelector("summary .badge.missed") !== null;
    for (const row of sample.querySelectorAll(".scores tbody tr")) {
      const name = row.cells[0].textContent;
      const cells = [...row.querySelectorAll("td:not(.soft)")];
      known.texts.set(name, cells.map(cell => cell.textContent.split(":")[0]));  // "failed: why"
      known.scores.set(name, cells.map(cell => {
        const [number, unit] = cell.textContent.split(" ");
        if (number === "failed:") return "failed";
        return isNaN(number) || number === "" ? null : Number(number) * (units[unit] ?? 1);
      }));
    }
    facts.set(sample, known);
    return known;
  }

  // What the form asks for, read once for all samples.
  function wishes() {
    const text = name => field(name)?.value ?? "";
    const number = name => (text(name) === "" ? null : Number(text(name)));
    return {
      metric: text("metric"),
      sign: field("metric").selectedOptions[0]?.hasAttribute("data-lower") ? -1 : 1,
      order: text("order"),
      outcome: text("outcome"),
      slice: text("slice"),
      words: text("words").toLowerCase().split(/\s+/).filter(Boolean),
      from: number("from"),
      to: number("to"),
      failed: field("failed").checked,
      missed: field("missed").checked,
      isPair: field("outcome") !== null,
    };
  }

  // Goodness: higher is better, failed is the worst, not scored is null.
  function goodness(score, sign) {
    return score === "failed" ? -Infinity : (score ?? null) === null ? null : sign * score;
  }
  function change(sample, wish) {
    const scores = factsOf(sample).scores.get(wish.metric);
    if (scores?.length !== 2) return null;
    const [before, after] = scores.map(score => goodness(score, wish.sign));
    if (before === null || after === null) return null;
    return before === after ? 0 : after - before;
  }
  function matches(sample, wish) {
    const known = factsOf(sample);
    if (!wish.words.every(word => known.words.includes(word))) return false;
    if (wish.slice && !known.slices.includes(wish.slice)) return false;
    if ((wish.failed && !known.failed) || (wish.missed && !known.missed)) return false;
    if (wish.from !== null || wish.to !== null) {
      const score = known.scores.get(wish.metric)?.at(-1);
      if (typeof score !== "number" || score < (wish.from ?? -Infinity) || score > (wish.to ?? Infinity)) return false;
    }
    if (!wish.outcome) return true;
    const gain = change(sample, wish);
    return gain !== null && wish.outcome === (gain < 0 ? "lost" : gain > 0 ? "won" : "same");
  }
  function keyOf(sample, wish) {
    const last = goodness(factsOf(sample).scores.get(wish.metric)?.at(-1), wish.sign) ?? Infinity;
    const gain = wish.isPair && wish.order !== "worst" ? change(sample, wish) : 0;
    return [gain === null ? Infinity : wish.order === "won" ? -gain : gain, last, original.get(sample)];
  }
  const atFirst = wishes();
  let orderedBy = atFirst.metric + " " + atFirst.order;
  function arrange(wish) {
    if (orderedBy === wish.metric + " " + wish.order) return;
    orderedBy = wish.metric + " " + wish.order;
    const keys = new Map(samples.map(sample => [sample, keyOf(sample, wish)]));
    const compared = (a, b) => (a === b ? 0 : a < b ? -1 : 1);
    samples.sort((a, b) => {
      const [x, y] = [keys.get(a), keys.get(b)];
      return compared(x[0], y[0]) || compared(x[1], y[1]) || x[2] - y[2];
    });
    list.append(...samples);
    for (const sample of samples) retell(sample, wish);
  }
  // The row of a sample shows the scores of the metric that the list is ordered by.
  function retell(sample, wish) {
    const place = sample.querySelector("summary > em");
    for (const node of [...place.childNodes]) if (!node.classList?.contains("badge")) node.remove();
    const gain = wish.isPair ? change(sample, wish) : null;
    place.append((factsOf(sample).texts.get(wish.metric) ?? ["skipped"]).join(gain === null ? ", " : " → "));
    if (gain === null) return;
    const word = document.createElement("span");
    word.className = "verdict " + (gain < 0 ? "worse" : gain > 0 ? "better" : "same");
    word.textContent = gain < 0 ? "lost" : gain > 0 ? "won" : "same";
    place.append(word);
  }
  function apply() {
    const wish = wishes();
    arrange(wish);
    let shown = 0;
    for (const sample of samples) {
      sample.hidden = !matches(sample, wish);
      shown += !sample.hidden;
    }
    count.textContent = shown === samples.length ? `${shown} samples` : `${shown} of ${samples.length} samples`;
  }
  form.addEventListener("input", apply);
  form.addEventListener("submit", event => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(apply));

  // The text of a document is in the page once. Places count characters, not halves of surrogate pairs.
  const kinds = { g: "", c: "cited", b: "both" };
  function fill(link) {
    const letters = [...document.getElementById(link.getAttribute("href").slice(1)).textContent];
    const item = link.closest("li");
    const place = document.createElement("p");
    place.className = "text";
    item.append(place);
    const name = document.createElement("span");
    name.textContent = link.textContent;
    link.replaceWith(name);
    let at = 0;
    for (const [, kind, start, end] of (item.dataset.marks ?? "").matchAll(/([gcb])(\d+)-(\d+)/g)) {
      const mark = document.createElement("mark");
      mark.className = kinds[kind];
      mark.textContent = letters.slice(start, end).join("");
      place.append(letters.slice(at, start).join(""), mark);
      at = Number(end);
    }
    place.append(letters.slice(at).join(""));
  }
  list.addEventListener("toggle", event => {
    for (const link of event.target.querySelectorAll(".docs a")) fill(link);
    const skipped = event.target.querySelector('a[href^="#k"]');
    skipped?.replaceWith(document.getElementById(skipped.getAttribute("href").slice(1)).textContent);
    if (event.target.querySelector("a.own")) return;
    const own = document.createElement("a");
    own.className = "own";
    own.href = "#" + event.target.id;
    own.textContent = "Link to this sample";
    event.target.append(own);
  }, true);

  // A link to a sample opens it; a link to a metric or a slice sets the filter.
  function openTarget() {
    const [, name, wanted] = location.hash.match(/^#(metric|slice)=(.*)$/) ?? [];
    if (name) {
      field(name).value = decodeURIComponent(wanted);
      apply();
      document.getElementById("samples").scrollIntoView();
      return;
    }
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (!target || target.parentNode !== list) return;
    target.hidden = false;
    target.open = true;
    target.scrollIntoView();
    target.firstElementChild.focus({ preventScroll: true });
  }
  addEventListener("hashchange", openTarget);

  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (event.key === "/") {
      event.preventDefault();
      field("words").focus();
    } else if (event.key === "j" || event.key === "k") {
      const visible = [...list.children].filter(sample => !sample.hidden);
      const here = visible.findIndex(sample => sample.contains(document.activeElement));
      const next = visible[here < 0 ? 0 : here + (event.key === "j" ? 1 : -1)];
      next?.firstElementChild.focus();
      next?.scrollIntoView({ block: "nearest" });
    }
  });
  openTarget();
})();
