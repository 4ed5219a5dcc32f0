"""Label in place, and the queues of `auepora annotate`: one item with its keys, its end, and the lead's page.

A label is an item, a question, a person and an answer. On the page of a sample it is stored in the database
of the run; a queue is a task, whose folder can be given to other people.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from ..errors import AueporaError, NotFoundError
from ..io.files import file_name
from ..people.desk import NOT_SURE, SKIP, UNDO, Desk, Progress, Shown
from ..people.items import PERSON, Wanted, task_of_runs
from ..people.results import disputes, mean_in_words, next_commands, task_agreement, write_labels
from ..people.review import started
from ..people.task import Item, Label, Passage, is_task
from ..store.labels import LabelTable
from .components import parts as ui
from .components.markup import Markup, Node, join, tag
from .layout import address, link
from .requests import Ask, Page, Redirect, Reply, Route
from .review import started_reviews
from .workspace import Workspace

THIS = "task"  # the name of the only task of `auepora annotate`
_LEAD = "_lead"  # no person can have a name that starts with _
ANSWERS = ("right", "partly", "wrong", "not sure")  # to the question whether an answer is right
_QUESTION = "answer"


def task_routes(*, lead: bool = True) -> list[Route]:
    """Return the pages of tasks; those of the lead only if they were asked for."""
    routes = [
        Route("/label/{task}/_lead", lead_page),
        Route("/label/{task}/_settle", settle, changes=True),
    ]
    return [
        *(routes if lead else ()),
        Route("/label/{task}", people_page),
        Route("/label/{task}/{person}", item_page),
        Route("/label/{task}/{person}/press", press, changes=True),
    ]


def task_workspace(desk: Desk, person: str) -> Workspace:
    """Return what the pages of `auepora annotate` know: one task, and one person if that is named."""
    workspace = Workspace(desk.folder)
    workspace.tasks, workspace.person = None, person
    workspace.desks.get(THIS, lambda: desk)
    return workspace


def home_of(desk: Desk, person: str) -> str:
    """Return the address to open: a person's queue, or the names to choose from."""
    people = [person] if person else desk.task.people
    if len(people) > 1:
        return address("label", THIS)
    desk.progress(people[0])  # DataError for a name that the task does not have
    return address("label", THIS, people[0])


# In the view: the tasks beside the folder of runs, and a label on the page of a sample.


def _desk(ask: Ask) -> Desk:
    """Return the task that an address names."""
    name, tasks, person = ask.path["task"], ask.workspace.tasks, ask.workspace.person
    if person and ask.path.get("person", person) != person:
        raise NotFoundError("", "There is no such task.")

    def opened() -> Desk:
        # The name is checked, since it becomes a path.
        folder = None if tasks is None else tasks / file_name(name, "the name of a task")
        if folder is None or not is_task(folder):
            raise NotFoundError("", f"There is no task {name!r:.80} here.")
        return Desk(folder)

    return ask.workspace.desks.get(name, opened)


def label_page(ask: Ask) -> Reply:
    """Show the tasks and reviews with how far everybody is, and let one on a run be created."""
    folder, runs = ask.workspace.tasks, ask.workspace.runs()
    rows: list[list[Node]] = []
    for path in sorted(folder.glob("*/task.json")) if folder is not None and folder.is_dir() else ():
        with suppress(AueporaError):  # a damaged task does not hide the others
            desk, name = Desk(path.parent), path.parent.name
            people = [(_person(name, desk.progress(one)), " ") for one in desk.task.people]
            task = ui.row_link(ui.short(name, 48), address("label", name))
            rows.append(
                [task, ui.short(desk.task.question, 80), people, link("Agreement", "label", name, _LEAD)]
            )
    for name, path in started_reviews(ask.workspace).items():
        with suppress(AueporaError):
            task = ui.row_link(ui.short(name, 48), address("review", name))
            rows.append([task, "Is this question good?", f"{started(path).decided} decided", None])
    columns = [
        ui.Column("Task"),
        ui.Column("Question", "words spare"),
        ui.Column("People", "words"),
        ui.Column(),
    ]
    form = tag(
        "form",
        ui.run_box("run", "Run", [one.id for one in runs], ""),
        tag("button", "Label 50 of its answers", type="submit", class_="main"),
        tag("button", "Review its questions", type="submit", formaction="/review/new"),
        method="post",
        action="/label/new",
        class_="filters",
    )
    about = [
        "A single answer is labelled on the page of its sample.",
        "Other items, several people, the questions of a file: auepora annotate --help.",
    ]
    main = join(
        form if runs else ui.lead("There are no finished runs yet."),
        ui.table("Tasks", columns, rows) if rows else None,
        ui.notes(about),
    )
    return Page("Label", main, ask.workspace.command("annotate", "RUN"))


def _person(task: str, one: Progress) -> Markup:
    return link(f"{one.person}: {_done(one)}", "label", task, one.person)


def new_task(ask: Ask) -> Reply:
    """Create the usual task on the answers of a run, or continue it."""
    run_id = ask.workspace.document(ask.values.get("run", "")).id
    tasks = ask.workspace.tasks or ask.workspace.folder
    folder = tasks / f"{run_id}-answers"
    if not is_task(folder):
        task_of_runs(folder, [ask.workspace.storage.load_run(ask.workspace.path(run_id))], Wanted())
    return Redirect(address("label", folder.name, PERSON))


def label_card(workspace: Workspace, run_id: str, sample_id: str, back: str) -> Markup:
    """Return the buttons that label the answer of a sample where it is shown."""
    labels = labels_by_sample(workspace, run_id)
    said = labels.get(sample_id)
    buttons = [
        ui.key_button(key, name, name, pressed=name == said)
        for key, name in zip("1230", ANSWERS, strict=True)
    ]
    form = ui.press_form(
        address("run", run_id, "label"),
        ui.hidden_fields([("id", sample_id), ("back", back)]),
        tag("div", buttons, class_="answers"),
        kind=None,
    )
    about = f"{len(labels)} labelled" if labels else None
    return ui.card("Label the answer", form, about=about, kind="label")


def label_sample(ask: Ask) -> Reply:
    """Save the label of a sample; the same again takes it back."""
    run_id, sample_id, answer = ask.path["run"], ask.values.get("id", ""), ask.values.get("key", "")
    ask.workspace.index(run_id).place_of(sample_id)  # UnknownNameError if there is no such sample
    if answer not in ANSWERS:
        raise NotFoundError("", f"{answer!r:.40} is not one of {', '.join(ANSWERS)}.")
    said = labels_by_sample(ask.workspace, run_id).get(sample_id)
    new = None if said == answer else answer
    _own_labels(ask.workspace, run_id).add(sample_id, _QUESTION, new, instead_of=(_QUESTION,))
    back = ask.values.get("back", "")
    own = address("run", run_id, "sample")
    return Redirect(back if back.startswith(f"{own}?") else f"{own}?id={sample_id}")


def labels_by_sample(workspace: Workspace, run_id: str) -> dict[str, str]:
    """Return the labels that were given on the pages of samples."""
    answers = _own_labels(workspace, run_id).answers
    return {one.item: one.answer for one in answers if one.question == _QUESTION and one.answer}


def _own_labels(workspace: Workspace, run_id: str) -> LabelTable:
    path = workspace.index(run_id).database.path
    return workspace.desks.get((path, "labels"), lambda: LabelTable(path, PERSON))


# The people of a task.


def people_page(ask: Ask) -> Reply:
    """Let people choose their name."""
    desk, task = _desk(ask), ask.path["task"]
    links = [tag("li", _person(task, desk.progress(name))) for name in desk.task.people]
    if not ask.workspace.person:
        links.append(tag("li", link("Agreement and disagreements", "label", task, _LEAD)))
    return _page(ask, "Who are you?", tag("ul", links, class_="links"))


def _page(ask: Ask, title: str, *main: Node) -> Page:
    crumbs = [("Label", "/label"), (ask.path["task"], address("label", ask.path["task"]))]
    return Page(title, join(main), crumbs=crumbs)


def _done(one: Progress) -> str:
    skipped = f", {one.skipped} skipped" if one.skipped else ""
    return f"{one.labelled + one.not_sure} of {one.total} labelled{skipped}"


# One item.


def item_page(ask: Ask) -> Reply:
    """Show the next item of a person's queue."""
    desk, person = _desk(ask), ask.path["person"]
    shown = desk.next_item(person)
    if shown is None:
        return _end_page(desk, person, ask)
    progress = shown.progress
    drawn = tag(
        "progress", value=progress.labelled + progress.not_sure, max=progress.total, aria_label="Labelled"
    )
    status = tag("p", drawn, f" {_done(progress)}", class_="mute", role="status")
    return _page(ask, desk.task.question, status, _content(desk, shown), _bar(desk, shown, ask))


def _content(desk: Desk, shown: Shown) -> Markup:
    item = shown.item
    question = join(tag("h2", "Question"), tag("p", item.query, class_="lead text", dir="auto"))
    if desk.task.kind == "pairs":
        both = tag("div", _said("A", shown.first), _said("B", shown.second), class_="halves")
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
    body = tag("p", text, class_="text", dir="auto") if text.strip() else tag("p", "(empty)", class_="mute")
    return tag("div", tag("h2", heading), body, class_="said")


def _closed(heading: str, text: str) -> Markup | None:
    """Return a text that is shown on demand."""
    return ui.folded(heading, tag("p", text, class_="text", dir="auto")) if text else None


def _documents(passages: Sequence[Passage]) -> Markup:
    if not passages:
        return tag("p", "No documents.", class_="mute")
    items = []
    for rank, each in enumerate(passages, start=1):
        text = tag("p", each.text, class_="text", dir="auto")
        items.append(tag("li", ui.card(each.title or each.doc_id, text, about=str(rank), kind="doc")))
    return tag("ul", items, class_="docs")


def _bar(desk: Desk, shown: Shown, ask: Ask) -> Markup:
    """Return the answers, always in the window; each button has its key."""
    answers = [ui.key_button(str(place), name) for place, name in enumerate(desk.label_names, start=1)]
    answers.append(ui.key_button(NOT_SURE, "not sure"))
    more = [
        ui.key_button("s", "skip", SKIP),
        ui.key_button("u", "undo", UNDO, disabled=not shown.can_undo),
        tag("button", tag("kbd", "n"), " note", type="button", data_key="n"),
    ]
    field = tag("textarea", shown.note, name="note", rows=2, maxlength=10_000)
    return ui.press_form(
        _press_address(ask),
        ui.hidden_fields([("item", shown.item.item_id)]),
        tag("label", "Note ", field, class_="note-field", hidden=not shown.note),
        tag("div", answers, class_="answers"),
        tag("div", more, class_="answers more"),
    )


def _press_address(ask: Ask) -> str:
    return address("label", ask.path["task"], ask.path["person"], "press")


def press(ask: Ask) -> Reply:
    """Save what a person pressed, and show the next item."""
    person = ask.path["person"]
    # A browser sends line breaks of a form as CR LF.
    note = ask.values["note"].replace("\r\n", "\n") if "note" in ask.values else None
    _desk(ask).press(person, ask.values.get("item", ""), ask.values.get("key", ""), note)
    # A redirect, so that a reload of the page does not send the form again.
    return Redirect(address("label", ask.path["task"], person))


def _end_page(desk: Desk, person: str, ask: Ask) -> Reply:
    progress = desk.progress(person)
    text = f"All {progress.total} items are done: {progress.labelled} labels, {progress.not_sure} not sure."
    undo = ui.press_form(
        _press_address(ask),
        ui.hidden_fields([("item", desk.labels(person).last_item)]),
        tag("div", ui.key_button("u", "undo", UNDO), class_="answers more"),
    )
    return _page(ask, "Done", ui.strip("up", text), _next_steps(desk), undo)


def _next_steps(desk: Desk) -> Node:
    """Write the labels so far and return the commands that read them; None if there are none."""
    if not write_labels(desk):  # here, so that nobody has to remember an export
        return None
    commands = (tag("p", tag("code", command, class_="block")) for command in next_commands(desk))
    return join(tag("h2", "Next"), tag("p", "The labels so far are written. In a terminal:"), commands)


# The lead.


def lead_page(ask: Ask) -> Reply:
    """Show how far everybody is, how far they agree, and what is to be settled."""
    # Read again: files of people on other machines may have been copied into the folder.
    desk, task = Desk(_desk(ask).folder), ask.path["task"]
    progress, differing = list(map(desk.progress, desk.task.people)), disputes(desk)
    parts: list[Node] = [_progress_table(progress)]
    if not any(one.labelled for one in progress):
        # Without a label there is nothing to agree on, and the commands below would find no file.
        people = ((link(person, "label", task, person), " ") for person in desk.task.people)
        text = "Nobody has given a label yet. Each person labels on a page of their own: "
        return _page(ask, desk.task.question, ui.lead(text, people), *parts)
    if figures := task_agreement(desk):
        rows = [figure.cells() for figure in figures]
        parts.append(_table("Agreement", ("Statistic", "Value", "95% interval", "Items"), rows))
    else:
        parts += [tag("h2", "Agreement"), tag("p", "No item was labelled by two people yet.")]
    parts.append(ui.lead(mean_in_words(desk)))
    if differing:
        decisions = desk.decisions()
        left = sum(item.item_id not in decisions for item, _ in differing)
        parts.append(tag("h2", f"{left} of {len(differing)} disagreements to settle"))
        parts += [_dispute(desk, item, said, decisions.get(item.item_id), task) for item, said in differing]
    return _page(ask, desk.task.question, *parts, _next_steps(desk))


def _table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    columns = [ui.Column(name, "n" if place else None) for place, name in enumerate(headings)]
    return ui.section(title, ui.table(title, columns, rows))


def _progress_table(people: Sequence[Progress]) -> Markup:
    rows = []
    for one in people:
        left = one.total - one.labelled - one.not_sure
        time = "-" if one.seconds is None else f"{one.seconds:.1f} s"
        rows.append((one.person, str(one.labelled), str(one.not_sure), str(left), time))
    return _table("Progress", ("Annotator", "Labels", "Not sure", "To do", "Median time"), rows)


def _dispute(
    desk: Desk, item: Item, labels: Mapping[str, Label], decision: Label | None, task: str
) -> Markup:
    notes = desk.notes(item)
    said = (
        tag("li", f"{person}: {label.name}", f" — {note}" if (note := notes.get(person)) else None)
        for person, label in labels.items()
    )
    texts = _said("First" if desk.task.kind == "pairs" else "Judged", item.text)
    second = _said("Second", item.second) if desk.task.kind == "pairs" else None
    buttons = []
    for place, label in enumerate(desk.task.labels, start=1):
        is_decided = label == decision
        state = {"class": "main" if is_decided else None, "aria-pressed": "true" if is_decided else "false"}
        named = {"name": "key", "value": str(place), "type": "submit"}
        buttons.append(tag("button", label.name, attrs={**named, **state}))
    form = tag(
        "form",
        ui.hidden_fields([("item", item.item_id)]),
        tag("div", "Decision: ", buttons, class_="answers"),
        method="post",
        action=address("label", task, "_settle"),
    )
    parts = [
        tag("h3", item.query),
        tag("div", texts, second, class_="halves"),
        tag("ul", said),
        ui.folded("Documents", _documents(item.documents)) if item.documents else None,
        form,
    ]
    return tag("section", parts, class_="part")


def settle(ask: Ask) -> Reply:
    """Save the decision of the lead."""
    _desk(ask).settle(ask.values.get("item", ""), ask.values.get("key", ""))
    return Redirect(address("label", ask.path["task"], _LEAD))
