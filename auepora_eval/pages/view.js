// Keys, filters that apply at once, and pages that follow a run. Every page works without this file.
"use strict";

// One file has several pages, of which one is shown.
const here = () => document.querySelector(".pages > .here") ?? document;
const rows = () => [...here().querySelectorAll("[data-row], .card h3 a")].filter((row) => row.offsetParent);
const follow = (rel) => here().querySelector(`a[rel="${rel}"]:not([hidden])`)?.click();

function step(by) {
  const all = rows();
  if (!all.length) return follow(by > 0 ? "next" : "prev");
  const at = all.indexOf(document.activeElement);
  const next = at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by;
  if (next >= all.length) return follow("next");
  if (next < 0) return follow("prev");
  all[next].focus();
}

const keys = {
  j: () => step(1),
  k: () => step(-1),
  u: () => follow("up"),
  "/": () => here().querySelector('input[type="search"]')?.focus(),
  Enter: () => document.activeElement === document.body && rows()[0]?.click(),
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input:not([type=checkbox]), select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape" && typing) return event.target.blur();
  const act = keys[event.key];
  if (!act || typing) return;
  if (event.key !== "Enter") event.preventDefault();
  act();
});

for (const form of document.querySelectorAll("form[data-submits]")) {
  form.addEventListener("change", (event) => event.target.matches("select, [type=checkbox]") && form.requestSubmit());
  // Empty fields would only make the address longer.
  form.addEventListener("formdata", (event) => {
    const given = [...event.formData].filter(([, value]) => value);
    for (const name of new Set(event.formData.keys())) event.formData.delete(name);
    for (const [name, value] of given) event.formData.append(name, value);
  });
}

for (const place of document.querySelectorAll("[data-events]")) {
  const source = new EventSource(place.dataset.events);
  source.onmessage = ({ data }) => {
    const news = JSON.parse(data);
    if (news.finished) return source.close(), location.reload();
    for (const [name, text] of Object.entries(news)) document.querySelector(`[data-live="${name}"]`).textContent = text;
  };
}
