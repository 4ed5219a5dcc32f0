// One file: shows the page that the address names, sorts and filters the lists in it, and fills in documents.
"use strict";
(() => {
  const container = $(".pages");
  const sections = new Map([...container.children].map((section) => [section.id, section]));
  let walk = []; // the samples in the order of the list that was shown last
  const rowsOf = (section) => [...($("table.list", section)?.tBodies[0].rows ?? [])];
  const keyOf = (cell) => {
    const [number, unit] = cell.textContent.trim().replace("−", "-").replace("±", "").split(" ");
    const size = { s: 1, ms: 1e-3, "µs": 1e-6 }[unit] ?? 1;
    return number === "failed" ? -Infinity : isNaN(number) || number === "" ? Infinity : Number(number) * size;
  };
  function remember(section) {
    const shown = rowsOf(section).filter((row) => !row.hidden);
    if (shown.length) walk = shown.map((row) => $("a", row).hash.slice(1));
  }
  function sortBy(head) {
    const section = head.closest("section[id^='/']"), table = head.closest("table"), at = head.cellIndex;
    const lower = head.textContent.includes("↓") ? -1 : 1;
    const down = head.getAttribute("aria-sort") === "descending";
    for (const other of head.parentElement.cells) if (other.ariaSort) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", down ? "ascending" : "descending");
    const rows = [...table.tBodies[0].rows].map((row) => [at ? keyOf(row.cells[at]) : row.cells[0].textContent, row]);
    const sign = at ? lower * (down ? -1 : 1) : down ? -1 : 1;
    // What was not measured comes last, whichever way.
    rows.sort(([a], [b]) => (a === b ? 0 : a === Infinity ? 1 : b === Infinity ? -1 : sign * (a < b ? -1 : 1)));
    table.tBodies[0].append(...rows.map(([, row]) => row));
    remember(section);
  }
  function filterBy(form) {
    const section = form.closest("section[id^='/']"), words = form.elements.words.value.toLowerCase().split(/\s+/);
    const rows = rowsOf(section);
    for (const row of rows) {
      const text = `${row.textContent} ${row.dataset.words ?? ""}`.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
    $(".count", section).textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} samples`;
    remember(section);
  }
  // The text of a document is in the file once; it is put where it is shown, with what is marked in it.
  function fill(section) {
    for (const place of $$("[data-text]", section)) {
      const text = $(".text", document.getElementById(place.dataset.text)).textContent;
      const parts = [];
      let done = 0;
      for (const each of (place.dataset.marks ?? "").split(",").filter(Boolean)) {
        const [start, end, kind] = each.split(" ");
        const mark = document.createElement("mark");
        if (kind) mark.className = kind;
        mark.textContent = text.slice(start, end);
        parts.push(text.slice(done, start), mark);
        done = end;
      }
      place.replaceChildren(...parts, text.slice(done));
      delete place.dataset.text;
    }
  }
  function show(section) {
    for (const each of sections.values()) each.classList.toggle("here", each === section);
    const at = walk.indexOf(section.id);
    for (const [rel, id] of [["prev", walk[at - 1]], ["next", walk[at + 1]]]) {
      const link = $(`a[rel="${rel}"]`, section);
      if (!link || at < 0) continue;
      link.hidden = !id;
      if (id) link.href = `#${id}`;
    }
    remember(section);
    fill(section);
  }
  function route() {
    const wanted = location.hash.slice(1);
    const inside = document.getElementById(wanted) ?? document.getElementById(decodeURIComponent(wanted));
    const [path, query] = wanted.split("?");
    const given = new URLSearchParams(query ?? "");
    const runs = new URLSearchParams(given.getAll("run").map((run) => ["run", run])).toString();
    const place = inside ?? sections.get(runs ? `${path}?${runs}` : path) ?? container.firstElementChild;
    const section = place.closest(".pages > section") ?? container.firstElementChild;
    show(section);
    if (place !== section) return place.scrollIntoView();
    scrollTo(0, 0);
    const head = $$("thead th", section).find((one) => $(`a[data-sort="${CSS.escape(given.get("sort") ?? given.get("metric") ?? "")}"]`, one));
    if (head && head.getAttribute("aria-sort") !== "descending") sortBy(head);
    const form = $("form[data-local]", section);
    if (form && given.has("slice")) { form.elements.words.value = given.get("slice"); filterBy(form); }
  }
  document.addEventListener("click", (event) => {
    const head = event.target.closest("table.list thead th[aria-sort]");
    if (!head) return;
    event.preventDefault();
    sortBy(head);
  });
  document.addEventListener("keydown", (event) => event.key === "Enter" && event.target.matches("[data-sort]") && event.target.click());
  document.addEventListener("input", (event) => event.target.form?.matches("[data-local]") && filterBy(event.target.form));
  document.addEventListener("submit", (event) => event.preventDefault());
  container.classList.add("routed");
  for (const section of sections.values()) remember(section);
  addEventListener("hashchange", route);
  route();
})();
