// Keys, search from anywhere, filters while one types, labels without a new page. Every page works without this file.
"use strict";

const $ = (selector, within = document) => within.querySelector(selector);
const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
// One file has several pages, of which one is shown.
const here = () => $(".pages > .here") ?? document;
const follow = (rel) => $(`a[rel="${rel}"]:not([hidden])`, here())?.click();
const parsed = (text) => new DOMParser().parseFromString(text, "text/html");
const isOpen = (box) => box?.matches(":popover-open");

function step(links, by) {
  const shown = links.filter((link) => link.offsetParent);
  const at = shown.indexOf(document.activeElement);
  const next = at < 0 ? (by > 0 ? 0 : shown.length - 1) : at + by;
  if (shown[next]) shown[next].focus();
  else follow(by > 0 ? "next" : "prev");
}

const keys = {
  j: () => step($$("[data-row]", here()), 1),
  k: () => step($$("[data-row]", here()), -1),
  "]": () => follow("next"),
  "[": () => follow("prev"),
  u: () => follow("up"),
  x: () => $("[type=checkbox]", document.activeElement.closest("tr") ?? document.head)?.click(),
  "/": () => $('main input[type="search"]', here() === document ? document : here())?.focus() ?? $('input[type="search"]', here())?.focus(),
  "?": () => $("#keys")?.togglePopover(),
  Enter: () => document.activeElement === document.body && $("[data-row]", here())?.click(),
};

document.addEventListener("keydown", (event) => {
  const find = $("#find");
  if ((event.ctrlKey || event.metaKey) && event.key === "k" && find) {
    event.preventDefault();
    find.showPopover();
    return;
  }
  if (isOpen(find)) {
    const way = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (way) { event.preventDefault(); step($$("a", find), way); }
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (isOpen($("#keys")) && event.key !== "?") return;
  if (event.target.closest("input:not([type=checkbox]), select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const button = $$("[data-key]", here()).find((one) => one.dataset.key === event.key);
  const act = button ? () => button.click() : keys[event.key];
  if (!act) return;
  if (event.key !== "Enter") event.preventDefault();
  act();
});

// Search and filters: the page that the form would open is fetched, and a part of it is shown.
async function fetched(form, part) {
  const address = `${form.getAttribute("action")}?${new URLSearchParams(new FormData(form))}`;
  const reply = await fetch(address);
  return [address, $(part, parsed(await reply.text()))];
}
let asked = 0;
async function find(form) {
  const mine = ++asked;
  const [, found] = await fetched(form, "main .found");
  if (mine === asked && found) $("#find .found").replaceChildren(...found.childNodes);
}
async function filter(form) {
  const mine = ++asked;
  const [address, list] = await fetched(form, "#list");
  if (mine !== asked || !list) return;
  history.replaceState(null, "", address);
  const typing = document.activeElement?.name === "words";
  const at = document.activeElement?.selectionStart;
  const words = $("#list [name=words]")?.value;
  $("#list").replaceWith(list);
  quieten();
  if (!typing) return;
  const field = $("#list [name=words]");
  field.value = words;
  field.focus();
  field.setSelectionRange(at, at);
}
let pause;
document.addEventListener("input", (event) => {
  const form = event.target.form;
  if (!form) return;
  clearTimeout(pause);
  if (form.matches("[data-find]")) pause = setTimeout(() => find(form), 80);
  else if (form.matches("[data-live]")) pause = setTimeout(() => filter(form), event.target.type === "search" ? 200 : 0);
  else if (event.target.matches("form.bar-form textarea")) pause = setTimeout(() => saveNote(form), 400);
});
document.addEventListener("change", (event) => {
  if (event.target.form?.matches("[data-submits]")) event.target.form.requestSubmit();
  if (event.target.matches('[name="run"][type="checkbox"]')) countTicked();
});
$("#find")?.addEventListener("toggle", (event) => {
  if (event.newState !== "open") return;
  $("#find input").focus();
  find($("#find form"));
});

function countTicked() {
  const count = $$('[name="run"]:checked').length;
  const button = $("[data-ticked]");
  if (!button) return;
  button.textContent = count ? `Compare ${count} ticked` : "Compare ticked";
  button.disabled = count < 2;
  button.classList.toggle("main", count > 1);
}
// What only a page without a script needs, and what only one with a script can do.
function quieten() {
  for (const button of $$("[data-noscript], [data-submits] button")) button.hidden = true;
  for (const button of $$("[data-copy]")) button.hidden = !navigator.clipboard;
  countTicked();
}
quieten();

document.addEventListener("click", (event) => {
  const copied = event.target.closest("[data-copy]");
  if (copied) navigator.clipboard?.writeText(copied.dataset.copy).then(() => (copied.textContent = "Copied"));
  for (const menu of $$("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});

// A run that is going: the page asks for itself until the run has ended.
async function followed() {
  const reply = await fetch(location).catch(() => null);  // the next one may be answered
  const now = reply ? $("[data-going]", parsed(await reply.text())) : $("[data-going]");
  if (!now) return location.reload();
  // Only what changed is read out by a screen reader.
  if (now.innerHTML !== $("[data-going]").innerHTML) $("[data-going]").replaceWith(now);
  setTimeout(followed, 1000);
}
if ($("[data-going]")) setTimeout(followed, 1000);

// Labels: the next item replaces the last one, and a note is saved while it is written.
let isBusy = false;
const problem = (text) => { const place = $(".problem"); if (place) place.textContent = text; };
async function send(form, key) {
  const fields = new URLSearchParams(new FormData(form));
  fields.set("key", key);
  const reply = await fetch(form.action, { method: "POST", body: fields });
  const page = parsed(await reply.text());
  if (!reply.ok) throw new Error($("main .lead", page)?.textContent.trim() || reply.statusText);
  if (reply.redirected) history.replaceState(null, "", reply.url);
  return page;
}
async function press(form, key) {
  if (isBusy) return; // a second key would be meant for an item that nobody has seen yet
  isBusy = true;
  try {
    const page = await send(form, key);
    document.title = page.title;
    $("main").replaceChildren(...$("main", page).childNodes);
    if ($(".crumbs", page)) $(".crumbs")?.replaceWith($(".crumbs", page));
    if (form.matches(".bar-form")) scrollTo(0, 0);
    quieten();
  } catch (error) {
    const reason = error instanceof TypeError ? "The server does not answer. Start the command again." : error.message;
    problem(`Not saved. ${reason}`);
  } finally {
    isBusy = false;
  }
}
async function saveNote(form) {
  if (isBusy || !form.isConnected) return; // saved with the label
  try {
    await send(form, "note");
    problem("");
  } catch {
    problem("The note is not saved: the server does not answer.");
  }
}
document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-press]") || !event.submitter) return;
  event.preventDefault();
  press(event.target, event.submitter.value);
});
document.addEventListener("click", (event) => {
  const key = event.target.closest("button[type=button][data-key]")?.dataset.key;
  if (key === "n") { const note = $(".note-field"); note.hidden = false; $("textarea", note).focus(); }
  if (key === "e") { const edit = $("details.edit"); edit.open = true; $("textarea", edit).focus(); }
  if (key === "g") markSelection();
});
// A gold span: the selected text of one document. The server checks that it is what the document has there.
function markSelection() {
  const selection = getSelection();
  const range = selection.rangeCount && !selection.isCollapsed ? selection.getRangeAt(0) : null;
  const near = range?.startContainer.parentElement?.closest("[data-doc]");
  if (!near || !near.contains(range.endContainer)) return problem("Select words in one gold document first.");
  const before = document.createRange();
  before.selectNodeContents(near);
  before.setEnd(range.startContainer, range.startOffset);
  const start = before.toString().length;
  const text = range.toString();
  const form = $("form.gold-span");
  const fields = { doc: near.dataset.doc, start, end: start + text.length, text };
  for (const [name, value] of Object.entries(fields)) form.elements[name].value = value;
  form.requestSubmit();
}
