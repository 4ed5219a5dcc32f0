"""The review of questions: each with what `dataset check` found, and the keys to decide."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import Path

from ..core.dataset import InMemoryDataset
from ..core.types import Document
from ..demo.world import demo_dataset
from ..errors import DataError, NotFoundError
from ..io.loader import open_dataset, save_dataset
from ..people.review import (
    ACCEPT,
    REASONS,
    REJECT,
    STEPS,
    SUFFIX,
    Finding,
    Review,
    Reviewed,
    selected_span,
    spans_of,
    started,
)
from ..quality.checks import DataQualityChecker
from ..store.storage import stored_samples
from .components import parts as ui
from .components.diff import word_diff
from .components.markup import Markup, Node, join, tag
from .components.sample import labels_of, marked_text, place_in
from .layout import address
from .requests import Ask, Page, Redirect, Reply, Route
from .workspace import Workspace


def review_routes() -> list[Route]:
    """Return the pages of reviews."""
    return [
        Route("/review/{task}", first_page),
        Route("/review/{task}/done", done_page),
        Route("/review/{task}/{number}", question_page),
        Route("/review/{task}/{number}/press", press, changes=True),
        Route("/review/{task}/{number}/edit", edit, changes=True),
        Route("/review/{task}/{number}/mark", mark, changes=True),
        Route("/review/{task}/{number}/unmark", unmark, changes=True),
    ]


def open_review(folder: Path, source: str) -> Review:
    """Return the review of a dataset, with what `dataset check` finds in it."""
    dataset = demo_dataset() if source == "demo" else open_dataset(source)
    findings: dict[str, list[Finding]] = {}
    for issue in DataQualityChecker().issues(dataset):
        finding = Finding(issue.severity, f"{issue.message} {issue.fix}")
        findings.setdefault(issue.sample_id, []).append(finding)
    return Review(dataset, folder, findings, source if source == "demo" else str(Path(source).resolve()))


def review_workspace(review: Review, name: str) -> Workspace:
    """Return what the pages of `annotate --questions` know: one review."""
    workspace = Workspace(review.target.parent)
    workspace.desks.get(("review", name), lambda: review)
    return workspace


def started_reviews(workspace: Workspace) -> dict[str, Path]:
    """Return the reviews beside the tasks and in the current folder, by the files that they write."""
    places = [Path.cwd(), *([workspace.tasks] if workspace.tasks else ())]
    folders = [path.parent for place in places for path in sorted(place.glob(f"*{SUFFIX}/{STEPS}"))]
    return {folder.name.removesuffix(SUFFIX): folder for folder in folders}


def new_review(ask: Ask) -> Reply:
    """Start a review of the questions of a run, or continue it."""
    run_id = ask.workspace.document(ask.values.get("run", "")).id
    path, name = ask.workspace.path(run_id), f"{run_id}-questions.jsonl"
    folder = (ask.workspace.tasks or ask.workspace.folder) / f"{name}{SUFFIX}"
    source = folder / "questions.jsonl"
    if not source.exists():
        folder.mkdir(parents=True, exist_ok=True)
        dataset = InMemoryDataset(ask.workspace.index(run_id).run.dataset_name, list(stored_samples(path)))
        save_dataset(dataset, source)
    ask.workspace.desks.get(("review", name), lambda: open_review(folder, str(source)))
    return Redirect(address("review", name))


def _review(ask: Ask) -> Review:
    """Return the review that an address names."""
    name = ask.path["task"]

    def opened() -> Review:
        folder = started_reviews(ask.workspace).get(name)  # found by name: an address is never a path
        if folder is None or not started(folder).source:
            raise NotFoundError("", f"There is no review {name!r:.80} here.")
        return open_review(folder, started(folder).source)

    return ask.workspace.desks.get(("review", name), opened)


def first_page(ask: Ask) -> Reply:
    """Go to the first question that is not decided."""
    following = _review(ask).next_open()
    return Redirect(address("review", ask.path["task"], "done") if following is None else _at(ask, following))


def _at(ask: Ask, place: int, *more: str) -> str:
    return address("review", ask.path["task"], str(place + 1), *more)


def _page(ask: Ask, title: str, *main: Node) -> Page:
    name = ask.path["task"]
    return Page(title, join(main), crumbs=[("Label", "/label"), (name, address("review", name))])


def _place(ask: Ask, name: str = "number") -> int:
    """Return a place that the address or the form names, from 0."""
    text = ask.path.get(name) or ask.values.get(name, "")
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise DataError("review", f"{text!r:.20} is not a number.")
    return int(text) - (name == "number")


def question_page(ask: Ask) -> Reply:
    """Show one question with its reference answer, its findings and its documents."""
    review = _review(ask)
    one = review.at(_place(ask))
    done = sum(bool(each.decision) for each in review.all())
    decided = {ACCEPT: "Accepted", REJECT: "Rejected"}.get(one.decision, "")
    status = tag(
        "p",
        tag("progress", value=done, max=len(review), aria_label="Decided"),
        f" {review.in_words()}",
        tag("strong", f" · {decided}{f': {one.reason}' if one.reason else ''}") if decided else None,
        class_="mute",
        role="status",
    )
    main = (status, _texts(one), _edit_form(ask, one), _findings(one.findings), _documents(ask, one))
    return _page(ask, f"Question {one.place + 1} of {len(review)}", *main, _bar(ask, review, one))


def done_page(ask: Ask) -> Reply:
    """Say what was written, and what to do next."""
    review = _review(ask)
    command = f"auepora dataset check {shlex.quote(str(review.target))}"
    written = ui.strip("up", review.in_words(), f"written: {review.target}")
    again = ui.button_link("Back to the questions", _at(ask, review.next_open() or 0))
    steps = tag("h2", "Next"), tag("p", tag("code", command, class_="block"))
    return _page(ask, "Done", written, steps, again)


def _texts(one: Reviewed) -> Markup:
    before, after = one.original, one.sample
    answers = [each.reference_answer.text if each.reference_answer else "" for each in (before, after)]
    parts: list[Node] = []
    for heading, old, new, kind in (
        ("Question", before.query, after.query, "query"),
        ("Reference", *answers, "text"),
    ):
        old_words, new_words = word_diff(old, new)
        was = tag("p", "before: ", old_words or "(none)", class_="note") if old != new else None
        shown = new_words or ui.span("mute", "(none)")
        parts += [tag("dt", heading), tag("dd", shown, was, class_=kind, dir="auto")]
    return join(tag("div", labels_of(after), class_="tags"), tag("dl", parts, class_="qa"))


def _findings(findings: Iterable[Finding]) -> Markup | None:
    items = [tag("li", tag("span", one.severity, class_="tag"), f" {one.text}") for one in findings]
    return join(tag("h2", "Findings of dataset check"), tag("ul", items)) if items else None


def _documents(ask: Ask, one: Reviewed) -> Markup:
    docs = one.sample.relevant_docs or []
    items = (_document(ask, one, number, doc) for number, doc in enumerate(docs))
    shown = tag("ul", items, class_="docs") if docs else tag("p", "None.", class_="mute")
    return ui.section("Gold documents", shown)


def _document(ask: Ask, one: Reviewed, number: int, doc: Document) -> Markup:
    spans = spans_of(doc)
    places = [place for span in spans if (place := place_in(span, doc, doc.text)) is not None]
    text: Node = tag("p", "The dataset has no text of this document.", class_="pad mute")
    if doc.text:
        text = tag("p", marked_text(doc.text, places), class_="text", dir="auto", data_doc=number)
    removals = [
        tag(
            "li",
            tag("q", ui.short(str(span.get("text", "")), 80)),
            " ",
            tag("button", "remove", name="span", value=str(place), aria_label=f"Remove the span {place + 1}"),
        )
        for place, span in enumerate(spans)
    ]
    named = ui.hidden_fields([("doc", str(number))])
    form = tag("form", named, tag("ul", removals), method="post", action=_at(ask, one.place, "unmark"))
    title = str(doc.metadata.get("title") or "")
    return tag("li", ui.card(doc.doc_id, text, form if removals else None, about=title, kind="doc gold"))


def _edit_form(ask: Ask, one: Reviewed) -> Markup:
    reference = one.sample.reference_answer.text if one.sample.reference_answer else ""
    fields = [
        tag("label", f"{title} ", tag("textarea", text, name=name, rows=3), class_="note-field")
        for title, name, text in (
            ("Question", "query", one.sample.query),
            ("Reference answer", "reference", reference),
        )
    ]
    action = _at(ask, one.place, "edit")
    form = tag("form", fields, tag("button", "Save", class_="main"), method="post", action=action)
    return ui.folded("Edit", form, kind="edit")


def _bar(ask: Ask, review: Review, one: Reviewed) -> Markup:
    reasons = [(reason, reason or "no reason") for reason in ("", *REASONS)]
    answers = (
        ui.key_button("a", "accept", ACCEPT),
        ui.key_button("r", "reject", REJECT),
        tag("label", "because ", ui.select_box("reason", reasons, "", "Reason")),
    )
    more = [
        tag("button", tag("kbd", "e"), " edit", type="button", data_key="e"),
        tag("button", tag("kbd", "g"), " mark selected as gold", type="button", data_key="g"),
        ui.key_button("u", "undo", "undo", disabled=not review.can_undo),
        ui.key_button("w", "write", "write", disabled=not review.can_undo),
        _turn(ask, "k", "previous", one.place - 1) if one.place else None,
        _turn(ask, "j", "next", one.place + 1) if one.place + 1 < len(review) else None,
    ]
    bar = ui.press_form(
        _at(ask, one.place, "press"),
        tag("div", answers, class_="answers"),
        tag("div", more, class_="answers more"),
    )
    names = ("doc", "start", "end", "text")
    hidden = (tag("input", type="hidden", name=name) for name in names)
    return join(
        tag("form", hidden, method="post", action=_at(ask, one.place, "mark"), class_="gold-span"), bar
    )


def _turn(ask: Ask, key: str, text: str, place: int) -> Markup:
    return tag("a", tag("kbd", key), f" {text}", href=_at(ask, place), data_key=key, class_="button")


def press(ask: Ask) -> Reply:
    """Accept, reject, undo or write, and show the next question; the last decision writes the new version."""
    review, place, key = _review(ask), _place(ask), ask.values.get("key", "")
    following: int | None = place
    if key == "undo":
        undone = review.undo()
        following = place if undone is None else undone
    elif key != "write":
        review.decide(place, key, ask.values.get("reason", ""))
        following = review.next_open(place)
    if key == "write" or following is None:
        review.write()
        return Redirect(address("review", ask.path["task"], "done"))
    return Redirect(_at(ask, following))


def edit(ask: Ask) -> Reply:
    """Save an edited question."""
    # A browser sends line breaks of a form as CR LF.
    texts = (ask.values.get(name, "").replace("\r\n", "\n") for name in ("query", "reference"))
    _review(ask).edit(_place(ask), *texts)
    return Redirect(_at(ask, _place(ask)))


def mark(ask: Ask) -> Reply:
    """Save the selected text of a document as a gold span."""
    review, place, doc = _review(ask), _place(ask), _place(ask, "doc")
    docs = review.at(place).sample.relevant_docs or []
    if doc >= len(docs):
        raise DataError("review", "there is no such document.", fix="Load the page again.")
    start, end = _place(ask, "start"), _place(ask, "end")
    review.mark(place, doc, *selected_span(docs[doc].text, start, end, ask.values.get("text", "")))
    return Redirect(_at(ask, place))


def unmark(ask: Ask) -> Reply:
    """Remove a gold span."""
    _review(ask).unmark(_place(ask), _place(ask, "doc"), _place(ask, "span"))
    return Redirect(_at(ask, _place(ask)))
