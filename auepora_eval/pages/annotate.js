// Keys of the pages of `auepora annotate`. The forms work without this file; with it, the
// next item replaces the last one without a new page, and a note is saved while it is written.
"use strict";

let isBusy = false;
const bar = () => document.querySelector("form.bar");
const button = (key) => [...document.querySelectorAll("form.bar [data-key]")].find((one) => one.dataset.key === key);

function problem(text) {
  const place = document.querySelector("form.bar .problem");
  if (place) place.textContent = text;
}

async function send(form, key) {
  const fields = new URLSearchParams(new FormData(form));
  fields.set("key", key);
  const reply = await fetch(form.action, { method: "POST", body: fields });
  const page = new DOMParser().parseFromString(await reply.text(), "text/html");
  if (!reply.ok) throw new Error(page.querySelector("main")?.textContent.trim() || reply.statusText);
  if (reply.redirected) history.replaceState(null, "", reply.url);
  return page;
}

function show(page) {
  document.title = page.title;
  document.querySelector("h1").textContent = page.querySelector("h1").textContent;
  document.querySelector("main").replaceChildren(...page.querySelector("main").childNodes);
  window.scrollTo(0, 0);
}

async function press(form, key) {
  if (isBusy) return; // a second key would be meant for an item that nobody has seen yet
  isBusy = true;
  try {
    show(await send(form, key));
  } catch (error) {
    const reason = error instanceof TypeError ? "The server does not answer. Start the command again." : error.message;
    problem(`Not saved. ${reason}`);
  } finally {
    isBusy = false;
  }
}

function openNote() {
  const note = document.querySelector(".note");
  note.hidden = false;
  note.querySelector("textarea").focus();
}

function openEdit() {
  const edit = document.querySelector("details.edit");
  edit.open = true;
  edit.querySelector("textarea").focus();
}

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
  const form = document.querySelector("form.mark");
  const fields = { doc: near.dataset.doc, start, end: start + text.length, text };
  for (const [name, value] of Object.entries(fields)) form.elements[name].value = value;
  form.requestSubmit();
}

document.addEventListener("submit", (event) => {
  if (!event.target.matches("form.bar") || !event.submitter) return;
  event.preventDefault();
  press(event.target, event.submitter.value);
});

document.addEventListener("click", (event) => {
  const key = event.target.closest("button[type=button][data-key]")?.dataset.key;
  if (key === "n") openNote();
  if (key === "e") openEdit();
  if (key === "g") markSelection();
  if (key === "?") document.querySelector("dialog.help").showModal();
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (document.querySelector("dialog[open]")) return; // Esc closes it
  if (event.target.closest("textarea, select")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const pressed = button(event.key);
  if (!pressed || pressed.disabled) return;
  event.preventDefault();
  pressed.click();
});

// A note that is being written is saved after a pause, so that it is not lost with the browser or the server.
let pause;
document.addEventListener("input", (event) => {
  if (!event.target.matches("form.bar textarea")) return;
  clearTimeout(pause);
  const form = bar();
  const item = form.elements.item.value;
  pause = setTimeout(async () => {
    if (isBusy || bar()?.elements.item.value !== item) return; // saved with the label
    try {
      await send(form, "note");
      problem("");
    } catch {
      problem("The note is not saved: the server does not answer.");
    }
  }, 400);
});
