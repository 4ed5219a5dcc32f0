"""The pages of `auepora annotate`: one item with its keys, the end of a queue, and what the lead sees."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ..core.display import interval_text, value_text
from ..core.table import Table
from ..core.types import Document
from ..people.agreement import STATISTICS
from ..people.desk import NOT_SURE, SKIP, UNDO, Desk, Shown
from ..people.results import Dispute, Progress, TaskSummary, mean_text, next_commands, task_summary
from ..people.task import Passage
from .components.markup import Markup, Node, join, tag
from .components.sample import ShownDocument, document_item
from .components.tables import data_table
from .layout import Frame, address, help_dialog, link
from .requests import Ask, Page, Redirect, Reply, Route

FRAME = Frame("annotate")
LEAD = "/lead"


def annotate_routes(desk: Desk, *, lead: bool) -> list[Route]:
    """Return the pages of a task; those of the lead only if they were asked for."""
    routes = [
        Route("/", partial(people_page, desk, lead)),
        Route("/annotate/{person}", partial(item_page, desk)),
        Route("/annotate/{person}/press", partial(press, desk), changes=True),
    ]
    if lead:
        routes += [
            Route(LEAD, partial(lead_page, desk)),
            Route("/lead/settle", partial(settle, desk), changes=True),
        ]
    return routes


def home_of(desk: Desk, person: str, *, lead: bool) -> str:
    """Return the address to open: the lead's page, a person's queue, or the names to choose from."""
    if lead:
        return LEAD
    if person:
        desk.progress(person)  # DataError for a name that the task does not have
        return address("annotate", person)
    return address("annotate", desk.task.people[0]) if len(desk.task.people) == 1 else "/"


def _page(title: str, *main: Node, status: int = 200) -> Page:
    return Page(title, join(main), status=status)


def people_page(desk: Desk, lead: bool, ask: Ask) -> Reply:
    """Let people choose their name."""
    links = [
        tag("li", tag("a", f"{one.person}: {_done(one)}", href=address("annotate", one.person)))
        for one in map(desk.progress, desk.task.people)
    ]
    if lead:
        links.append(tag("li", tag("a", "Agreement and disagreements", href=LEAD)))
    return _page("Who are you?", tag("ul", links, class_="people"))


def _done(one: Progress) -> str:
    skipped = f", {one.skipped} skipped" if one.skipped else ""
    return f"{one.labelled + one.not_sure} of {one.total} labelled{skipped}"


# One item.


def item_page(desk: Desk, ask: Ask) -> Reply:
    """Show the next item of a person's queue."""
    person = ask.path["person"]
    shown = desk.next_item(person)
    if shown is None:
        return _end_page(desk, person)
    progress = shown.progress
    done = progress.labelled + progress.not_sure
    drawn = tag("progress", value=done, max=progress.total, aria_label="Labelled")
    status = tag("p", drawn, f" {_done(progress)}", class_="small", role="status")
    return _page(desk.task.question, status, _content(desk, shown), _bar(desk, person, shown), _help(desk))


def _content(desk: Desk, shown: Shown) -> Markup:
    item = shown.item
    question = join(tag("h2", "Question"), tag("p", item.query, class_="query text", dir="auto"))
    if desk.task.kind == "pairs":
        both = tag("div", _said("A", shown.first), _said("B", shown.second), class_="columns")
        return join(question, both, _closed("Reference answer", item.reference))
    if desk.task.kind == "documents":
        return join(question, tag("h2", "Document"), _documents(item.documents))
    if desk.task.kind == "claims":
        judged = join(_said("Claim", item.text), _closed("The whole answer", item.answer))
    else:
        judged = join(_said("Answer", item.text), _closed("Reference answer", item.reference))
    # Side by side on a wide screen: the answer is compared with the documents.
    documents = tag("div", tag("h2", "Documents"), _documents(item.documents))
    return tag("div", tag("div", question, judged), documents, class_="item")


def _said(heading: str, text: str) -> Markup:
    body = tag("p", text, class_="text", dir="auto") if text.strip() else tag("p", "(empty)", class_="soft")
    return tag("div", tag("h2", heading), body, class_="said")


def _closed(heading: str, text: str) -> Markup | None:
    """Return a text that is shown on demand."""
    if not text:
        return None
    return tag("details", tag("summary", heading), tag("p", text, class_="text", dir="auto"))


def _documents(passages: Sequence[Passage]) -> Markup:
    if not passages:
        return tag("p", "No documents.", class_="soft")
    shown = (
        ShownDocument(Document(each.doc_id, each.text, {"title": each.title or None}), each.text, [rank])
        for rank, each in enumerate(passages, start=1)
    )
    return tag("ul", map(document_item, shown), class_="docs")


def _bar(desk: Desk, person: str, shown: Shown) -> Markup:
    """Return the answers, always in the window; each button has its key."""
    answers = [_button(str(place), name) for place, name in enumerate(desk.label_names, start=1)]
    answers.append(_button(NOT_SURE, "not sure"))
    more = [
        _button("s", "skip", value=SKIP),
        _button("u", "undo", value=UNDO, disabled=not shown.can_undo),
        tag("button", tag("kbd", "n"), " note", type="button", data_key="n"),
        tag("button", tag("kbd", "?"), " help", type="button", data_key="?"),
    ]
    note = tag(
        "label",
        "Note ",
        tag("textarea", shown.note, name="note", rows=2, maxlength=10_000),
        class_="note",
        hidden=not shown.note,
    )
    return tag(
        "form",
        tag("input", type="hidden", name="item", value=shown.item.item_id),
        note,
        tag("div", answers, class_="answers"),
        tag("div", more, class_="more"),
        tag("p", class_="problem", role="alert"),
        method="post",
        action=address("annotate", person, "press"),
        class_="bar",
    )


def _button(key: str, text: str, *, value: str = "", disabled: bool = False) -> Markup:
    named = {"name": "key", "value": value or key, "data-key": key}
    return tag("button", tag("kbd", key), f" {text}", type="submit", disabled=disabled, attrs=named)


def _help(desk: Desk) -> Markup:
    keys = {str(place): name for place, name in enumerate(desk.label_names, start=1)}
    keys |= {"0": "not sure: no label", "s": "skip: ask again at the end", "u": "undo the latest"}
    keys |= {"n": "write a note", "Esc": "leave the note or this help", "?": "this help"}
    return help_dialog(
        keys,
        "Every label is on the disk before the next item is shown. You can stop at any time: "
        "Ctrl-C in the terminal prints what to do with the labels.",
    )


def press(desk: Desk, ask: Ask) -> Reply:
    """Save what a person pressed, and show the next item."""
    person = ask.path["person"]
    # A browser sends line breaks of a form as CR LF.
    note = ask.values["note"].replace("\r\n", "\n") if "note" in ask.values else None
    desk.press(person, ask.values.get("item", ""), ask.values.get("key", ""), note)
    # A redirect, so that a reload of the page does not send the form again.
    return Redirect(address("annotate", person))


def _end_page(desk: Desk, person: str) -> Reply:
    progress = desk.progress(person)
    text = f"All {progress.total} items are done: {progress.labelled} labels, {progress.not_sure} not sure."
    commands = next_commands(desk.folder, desk.task, desk.items)
    steps = join(
        tag("h2", "Next"),
        tag("p", "The labels are written. In a terminal:"),
        (tag("p", tag("code", command, class_="block")) for command in commands),
        tag("p", "You can close this page, and stop the server with Ctrl-C.", class_="soft"),
    )
    undo = tag(
        "form",
        tag("input", type="hidden", name="item", value=desk.labels(person).last_item or ""),
        tag("div", _button("u", "undo", value=UNDO), class_="more"),
        tag("p", class_="problem", role="alert"),
        method="post",
        action=address("annotate", person, "press"),
        class_="bar",
    )
    return _page(
        "Done", tag("p", text, class_="lead", role="status"), steps if progress.labelled else None, undo
    )


# The lead.


def lead_page(desk: Desk, ask: Ask) -> Reply:
    """Show how far everybody is, how far they agree, and what is to be settled."""
    summary = task_summary(desk.folder)
    disputes = sorted(summary.disputes, key=lambda one: one.decision is not None)
    left = sum(one.decision is None for one in disputes)
    parts: list[Node] = [data_table(_people_table(summary))]
    if not summary.labels:
        # Without a label there is nothing to agree on, and the commands below would find no file.
        people = ((link(person, "annotate", person), " ") for person in desk.task.people)
        text = "Nobody has given a label yet. Each person labels on a page of their own: "
        return _page(desk.task.question, tag("p", text, people, class_="lead"), *parts)
    if summary.agreement:
        parts.append(data_table(_agreement_table(summary)))
    else:
        parts += [tag("h2", "Agreement"), tag("p", "No item was labelled by two people yet.")]
    if mean := mean_text(summary):
        parts.append(tag("p", mean, class_="lead"))
    if disputes:
        parts.append(tag("h2", f"{left} of {len(disputes)} disagreements to settle"))
        parts += [_dispute(desk, dispute) for dispute in disputes]
    commands = next_commands(desk.folder, desk.task, desk.items)
    when = "The labels are written when a person is done, and when you stop the server with Ctrl-C. Then:"
    parts += [tag("h2", "Next"), tag("p", when)]
    parts += [tag("p", tag("code", command, class_="block")) for command in commands]
    return _page(desk.task.question, *parts)


def _people_table(summary: TaskSummary) -> Table:
    rows = [
        (
            one.person,
            str(one.labelled),
            str(one.not_sure),
            str(one.total - one.labelled - one.not_sure),
            "-" if one.seconds is None else f"{one.seconds:.1f} s",
        )
        for one in summary.people
    ]
    return Table(
        ("Annotator", "Labels", "Not sure", "To do", "Median time"), rows, "Progress", numeric=(1, 2, 3, 4)
    )


def _agreement_table(summary: TaskSummary) -> Table:
    rows = [
        (
            STATISTICS[name],
            value_text(each.value),
            interval_text(each.interval and each.interval[:2]),
            str(each.items),
        )
        for name, each in summary.agreement.items()
    ]
    return Table(("Statistic", "Value", "95% interval", "Items"), rows, "Agreement", numeric=(1, 2, 3))


def _dispute(desk: Desk, dispute: Dispute) -> Markup:
    item = dispute.item
    said = (
        tag("li", f"{person}: {label}", f" — {note}" if (note := dispute.notes.get(person)) else None)
        for person, label in dispute.said.items()
    )
    texts = _said("First", item.text) if desk.task.kind == "pairs" else _said("Judged", item.text)
    second = _said("Second", item.second) if desk.task.kind == "pairs" else None
    buttons = (
        tag(
            "button",
            label.name,
            type="submit",
            name="key",
            value=str(place),
            class_="main" if label.name == dispute.decision else None,
            aria_pressed="true" if label.name == dispute.decision else "false",
        )
        for place, label in enumerate(desk.task.labels, start=1)
    )
    form = tag(
        "form",
        tag("input", type="hidden", name="item", value=item.item_id),
        tag("div", "Decision: ", buttons, class_="answers"),
        method="post",
        action="/lead/settle",
    )
    documents = (
        tag("details", tag("summary", "Documents"), _documents(item.documents)) if item.documents else None
    )
    return tag(
        "section",
        tag("h3", item.query),
        tag("div", texts, second, class_="columns"),
        tag("ul", said),
        documents,
        form,
        class_="dispute",
    )


def settle(desk: Desk, ask: Ask) -> Reply:
    """Save the decision of the lead."""
    desk.settle(ask.values.get("item", ""), ask.values.get("key", ""))
    return Redirect(LEAD)
