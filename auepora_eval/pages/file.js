// One file: shows the page that the address names, and sorts and filters the lists in it.
"use strict";
(() => {
  const container = $(".pages");
  const sections = new Map([...container.children].map((section) => [section.id, section]));
  const keyOf = (cell) => {
    const [number, unit] = cell.textContent.trim().replace("−", "-").replace("±", "").split(" ");
    const size = { s: 1, ms: 1e-3, "µs": 1e-6 }[unit] ?? 1;
    return number === "=" ? 0 : number === "failed" ? -Infinity : isNaN(number) || number === "" ? Infinity : Number(number) * size;
  };
  function sortBy(head) {
    const table = head.closest("table"), at = head.cellIndex;
    const down = head.getAttribute("aria-sort") === "descending";
    for (const other of head.parentElement.cells) if (other.ariaSort) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", down ? "ascending" : "descending");
    const rows = [...table.tBodies[0].rows].map((row) => [at ? keyOf(row.cells[at]) : row.cells[0].textContent, row]);
    const sign = (at && head.textContent.includes("↓") ? -1 : 1) * (down ? -1 : 1);
    // What was not measured comes last, whichever way.
    rows.sort(([a], [b]) => (a === b ? 0 : a === Infinity ? 1 : b === Infinity ? -1 : sign * (a < b ? -1 : 1)));
    table.tBodies[0].append(...rows.map(([, row]) => row));
    const form = $("form[data-local]", head.closest(".pages > section"));
    if (form?.elements.outcome) filterBy(form);
  }
  // Lost, won and tied by the metric that sorts, as the cells of a comparison say it.
  const outcomes = {
    lost: (cell) => $(".down", cell),
    won: (cell) => $(".up", cell),
    tied: (cell) => cell.textContent.startsWith("="),
  };
  function filterBy(form) {
    const section = form.closest(".pages > section"), words = form.elements.words.value.toLowerCase().split(/\s+/);
    const rows = $$("table.list tbody tr", section);
    const sorted = $("th[aria-sort$=ending]", section)?.cellIndex;
    const fits = (sorted && outcomes[form.elements.outcome?.value]) || (() => true);
    for (const row of rows) {
      const text = `${row.textContent} ${row.dataset.words ?? ""}`.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word)) || !fits(row.cells[sorted]);
    }
    $(".count", section).textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} samples`;
  }
  function route() {
    const wanted = location.hash.slice(1);
    const [path, query] = wanted.split("?");
    const given = new URLSearchParams(query ?? "");
    const own = new URLSearchParams([...given].filter(([name]) => name === "run" || name === "baseline")).toString();
    const place = document.getElementById(wanted) ?? document.getElementById(decodeURIComponent(wanted))
      ?? sections.get(own ? `${path}?${own}` : path) ?? container.firstElementChild;
    const section = place.closest(".pages > section") ?? container.firstElementChild;
    for (const each of sections.values()) each.classList.toggle("here", each === section);
    if (place !== section) return place.scrollIntoView();
    scrollTo(0, 0);
    const sort = given.get("sort");
    const head = sort && $$("th[aria-sort]", section).find((one) => new URLSearchParams($("a", one).hash.split("?")[1]).get("sort") === sort);
    if (head && head.ariaSort !== "descending") sortBy(head);
    const form = $("form[data-local]", section);
    if (!form) return;
    if (given.has("slice")) form.elements.words.value = given.get("slice");
    if (form.elements.outcome) form.elements.outcome.value = given.get("outcome") ?? "all";
    filterBy(form);
  }
  document.addEventListener("click", (event) => {
    const head = event.target.closest("th[aria-sort]");
    if (!head) return;
    event.preventDefault();
    sortBy(head);
  });
  document.addEventListener("input", (event) => event.target.form?.matches("[data-local]") && filterBy(event.target.form));
  document.addEventListener("submit", (event) => event.preventDefault());
  // Without scripts a link leads to its list as it is in the file.
  for (const link of $$("a[data-more]", container)) {
    const list = link.getAttribute("href");
    link.setAttribute("href", `${list}${list.includes("?") ? "&" : "?"}${link.dataset.more}`);
  }
  container.classList.add("routed");
  addEventListener("hashchange", route);
  route();
})();
