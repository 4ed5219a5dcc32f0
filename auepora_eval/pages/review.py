"""The page of `annotate --questions`: one question, what `dataset check` found, and the keys to decide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial

from ..core.types import Document
from ..errors import DataError
from ..people.review import ACCEPT, REASONS, REJECT, Finding, Review, Reviewed, selected_span, spans_of
from .components import parts as ui
from .components.diff import word_diff
from .components.markup import Markup, Node, join, tag
from .components.sample import labels_of, marked_text
from .layout import address
from .requests import Ask, Page, Redirect, Reply, Route


def review_routes(review: Review) -> list[Route]:
    """Return the pages of a review."""
    return [
        Route("/", partial(first_page, review)),
        Route("/question/{number}", partial(question_page, review)),
        Route("/question/{number}/press", partial(press, review), changes=True),
        Route("/question/{number}/edit", partial(edit, review), changes=True),
        Route("/question/{number}/mark", partial(mark, review), changes=True),
        Route("/question/{number}/unmark", partial(unmark, review), changes=True),
    ]


def first_page(review: Review, ask: Ask) -> Reply:
    """Go to the first question that is not decided."""
    return Redirect(_place_address(review.next_open() or 0))


def _place_address(place: int, *more: str) -> str:
    return address("question", str(place + 1), *more)


def _place(ask: Ask, name: str = "number") -> int:
    """Return a place that the address or the form names, from 0."""
    text = ask.path.get(name) or ask.values.get(name, "")
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise DataError("review", f"{text!r:.20} is not a number.")
    return int(text) - (name == "number")


def question_page(review: Review, ask: Ask) -> Reply:
    """Show one question with its reference answer, its findings and its documents."""
    one = review.at(_place(ask))
    counts = Counter(each.decision for each in review.all())
    done = f"{counts[ACCEPT]} accepted, {counts[REJECT]} rejected, {counts['']} to do"
    decided = {ACCEPT: "Accepted", REJECT: "Rejected"}.get(one.decision, "")
    status = tag(
        "p",
        tag("progress", value=len(review) - counts[""], max=len(review), aria_label="Decided"),
        f" {done}",
        tag("strong", f" · {decided}{f': {one.reason}' if one.reason else ''}") if decided else None,
        class_="mute",
        role="status",
    )
    main = (status, _texts(one), _edit_form(one), _findings(one.findings), _documents(one))
    return Page(f"Question {one.place + 1} of {len(review)}", join(main, _bar(review, one)))


def _texts(one: Reviewed) -> Markup:
    before, after = one.original, one.sample
    answers = [each.reference_answer.text if each.reference_answer else "" for each in (before, after)]
    parts: list[Node] = [tag("div", labels_of(after), class_="tags")]
    for heading, old, new, kind in (
        ("Question", before.query, after.query, "lead text"),
        ("Reference answer", *answers, "text"),
    ):
        old_words, new_words = word_diff(old, new)
        parts.append(tag("h2", heading))
        parts.append(
            tag("p", new_words if new else tag("span", "(none)", class_="mute"), class_=kind, dir="auto")
        )
        if old != new:
            parts.append(tag("p", "before: ", old_words or "(none)", class_="note text", dir="auto"))
    return join(parts)


def _findings(findings: Iterable[Finding]) -> Markup | None:
    items = [tag("li", tag("span", one.severity, class_="tag"), f" {one.text}") for one in findings]
    return join(tag("h2", "Findings of dataset check"), tag("ul", items)) if items else None


def _documents(one: Reviewed) -> Markup:
    docs = one.sample.relevant_docs or []
    items = (_document(one, number, doc) for number, doc in enumerate(docs))
    heading = tag("h2", "Gold documents")
    return join(heading, tag("ul", items, class_="docs") if docs else tag("p", "None.", class_="mute"))


def _document(one: Reviewed, number: int, doc: Document) -> Markup:
    spans = spans_of(doc)
    places = [(span["start"], span["end"]) for span in spans if _is_place(span)]
    head = tag(
        "div",
        tag("span", doc.doc_id),
        tag("span", str(doc.metadata.get("title") or ""), class_="mute"),
        class_="tags pad",
    )
    text: Node = tag("p", "The dataset has no text of this document.", class_="mute")
    if doc.text:
        text = tag("p", marked_text(doc.text, places), class_="text", dir="auto", data_doc=number)
    removals = [
        tag(
            "li",
            tag("q", str(span.get("text", ""))[:80]),
            " ",
            tag("button", "remove", name="span", value=str(place), aria_label=f"Remove the span {place + 1}"),
        )
        for place, span in enumerate(spans)
    ]
    form = tag(
        "form",
        tag("input", type="hidden", name="doc", value=number),
        tag("ul", removals),
        method="post",
        action=_place_address(one.place, "unmark"),
    )
    return tag("li", head, text, form if removals else None, class_="card doc gold")


def _is_place(span: dict[str, object]) -> bool:
    return all(isinstance(span.get(name), int) for name in ("start", "end"))


def _edit_form(one: Reviewed) -> Markup:
    reference = one.sample.reference_answer.text if one.sample.reference_answer else ""
    fields = [
        tag("label", f"{title} ", tag("textarea", text, name=name, rows=3), class_="note-field")
        for title, name, text in (
            ("Question", "query", one.sample.query),
            ("Reference answer", "reference", reference),
        )
    ]
    action = _place_address(one.place, "edit")
    form = tag("form", fields, tag("button", "Save", class_="main"), method="post", action=action)
    return ui.folded("Edit", form, kind="edit")


def _bar(review: Review, one: Reviewed) -> Markup:
    reasons = (tag("option", reason or "no reason", value=reason) for reason in ("", *REASONS))
    answers = (
        ui.key_button("a", "accept", ACCEPT),
        ui.key_button("r", "reject", REJECT),
        tag("label", "because ", tag("select", reasons, name="reason")),
    )
    more = [
        tag("button", tag("kbd", "e"), " edit", type="button", data_key="e"),
        tag("button", tag("kbd", "g"), " mark the selected words as gold", type="button", data_key="g"),
        ui.key_button("u", "undo", "undo", disabled=not review.can_undo),
        _turn("k", "previous", one.place - 1) if one.place else None,
        _turn("j", "next", one.place + 1) if one.place + 1 < len(review) else None,
    ]
    bar = ui.press_form(
        _place_address(one.place, "press"),
        tag("div", answers, class_="answers"),
        tag("div", more, class_="answers more"),
    )
    names = ("doc", "start", "end", "text")
    hidden = (tag("input", type="hidden", name=name) for name in names)
    return join(
        tag("form", hidden, method="post", action=_place_address(one.place, "mark"), class_="mark"), bar
    )


def _turn(key: str, text: str, place: int) -> Markup:
    return tag("a", tag("kbd", key), f" {text}", href=_place_address(place), data_key=key, class_="button")


def press(review: Review, ask: Ask) -> Reply:
    """Accept, reject or undo, and show the next question."""
    place, key = _place(ask), ask.values.get("key", "")
    if key == "undo":
        undone = review.undo()
        following = place if undone is None else undone
    else:
        review.decide(place, key, ask.values.get("reason", ""))
        after = review.next_open(place)
        following = place if after is None else after
    return Redirect(_place_address(following))


def edit(review: Review, ask: Ask) -> Reply:
    """Save an edited question."""
    # A browser sends line breaks of a form as CR LF.
    texts = (ask.values.get(name, "").replace("\r\n", "\n") for name in ("query", "reference"))
    review.edit(_place(ask), *texts)
    return Redirect(_place_address(_place(ask)))


def mark(review: Review, ask: Ask) -> Reply:
    """Save the selected text of a document as a gold span."""
    place, doc = _place(ask), _place(ask, "doc")
    docs = review.at(place).sample.relevant_docs or []
    if doc >= len(docs):
        raise DataError("review", "there is no such document.", fix="Load the page again.")
    start, end = _place(ask, "start"), _place(ask, "end")
    review.mark(place, doc, *selected_span(docs[doc].text, start, end, ask.values.get("text", "")))
    return Redirect(_place_address(place))


def unmark(review: Review, ask: Ask) -> Reply:
    """Remove a gold span."""
    review.unmark(_place(ask), _place(ask, "doc"), _place(ask, "span"))
    return Redirect(_place_address(_place(ask)))
