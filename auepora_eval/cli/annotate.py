"""Label answers, claims, documents or pairs of answers by keyboard.

Name a run. A task with 50 of its answers is created, a page opens in your browser, and the keys 1 to 9 label
one item after the other. Each label is on the disk before the next item is shown. The same command continues
the task.

  auepora annotate demo-hybrid

When you stop (Ctrl-C), the labels are in labels.jsonl in the folder of the task, and the next command is
printed: auepora judge-audit compares them with a judge.

Two runs are compared blind, answer by answer, left and right swapped at random:

  auepora annotate demo-bm25 demo-hybrid --people ada,ben
  auepora annotate demo-bm25 demo-hybrid --people ada,ben --as ben

--choose decides which items are labelled: random; slice:NAME (the same number for each value of a label of
the samples); run (the same number for each run); disagree:A,B (where two metrics differ most); narrow:METRIC
(where a label narrows the estimate of the mean most).

The lead of a team sees the agreement, settles disagreements, and exports (.jsonl for judge-audit and judge
--calibrate, .gt.json for agree):

  auepora annotate demo-bm25 demo-hybrid --lead
  auepora annotate demo-bm25 demo-hybrid --export labels.jsonl
"""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import PlanError
from . import echo
from .common import add_flag, add_out, out_flag
from .flags import at_least, covered
from .pages import add_page_flags, check_can_serve, serve_pages

if TYPE_CHECKING:
    from ..people.annotation.create import Wanted
    from ..people.annotation.summary import TaskSummary


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "names", metavar="NAME", nargs="+", help="stored runs, by id or path, or the folder of a task"
    )
    new = parser.add_argument_group("a new task")
    add_flag(
        new,
        "--questions",
        "what is judged: answers, claims, documents or pairs (default: answers; pairs for two runs)",
        choices=("answers", "claims", "documents", "pairs"),
    )
    add_flag(new, "--count", "number of items (default: 50)", "N", type=at_least(1))
    add_flag(
        new,
        "--choose",
        "random, slice:NAME, run, disagree:A,B or narrow:METRIC (default: random)",
        "HOW",
        default=None,
    )
    add_flag(new, "--ask", "the question to answer about each item", "TEXT", default=None)
    add_flag(new, "--labels", "the labels, from the worst to the best: bad,fair,good", "A,B", default=None)
    add_flag(new, "--people", "the names of the annotators (default: me)", "A,B", default=None)
    about = "share of the items that everyone labels; the rest is split (default: 1)"
    add_flag(new, "--overlap", about, "S", type=covered)
    add_flag(new, "--seed", "random seed of choice, order and sides (default: 0)", "N", type=at_least(0))
    add_flag(new, "--prepare", "create the task and stop, to copy its folder to other people")
    add_flag(
        new, "--task", "folder of the task (default: beside the runs, by their names)", "DIR", default=""
    )
    page = parser.add_argument_group("the page")
    about = "the annotator who labels (default: choose on the page)"
    add_flag(page, "--as", about, "NAME", default="", dest="person")
    add_flag(page, "--lead", "also show agreement and disagreements, and settle them")
    add_page_flags(page)
    results = parser.add_argument_group("results")
    add_flag(results, "--export", "write the labels to a .jsonl or .gt.json and stop", "FILE", default="")
    add_flag(results, "--settled", "export one label per item: the lead's decision, or the majority")
    add_flag(results, "--force", "overwrite the exported file")
    add_out(parser)


def run(args: Namespace) -> int:
    if not args.export and not args.prepare:
        check_can_serve("annotate")  # before a task is created
    folder = _task_folder(args)
    if args.export:
        return _export(args, folder)
    return 0 if args.prepare else _serve(args, folder)


# The flags of a new task, by the names of its settings.
_FLAGS = {
    "kind": "--questions",
    "count": "--count",
    "choose": "--choose",
    "question": "--ask",
    "labels": "--labels",
    "people": "--people",
    "overlap": "--overlap",
    "seed": "--seed",
}


def _wanted(args: Namespace) -> Wanted:
    from ..people.annotation.create import Wanted

    names = {name: flag.removeprefix("--") for name, flag in _FLAGS.items()}
    given = {name: getattr(args, flag) for name, flag in names.items()}
    for name in ("labels", "people"):
        if given[name] is not None:
            given[name] = [part.strip() for part in given[name].split(",")]
    return Wanted(**given)


def _task_folder(args: Namespace) -> Path:
    """Return the folder of the task that the names mean; it is created if they are runs without one."""
    from ..people.annotation.create import differences, kind_for
    from ..people.annotation.task import is_task, read_task

    wanted = _wanted(args)
    if len(args.names) == 1 and is_task(Path(args.names[0])):
        folder = Path(args.names[0])
    elif args.task:
        folder = Path(args.task)
    else:
        # Beside the folder of the runs, which holds nothing but runs.
        name = f"{'-vs-'.join(map(_run_id, args.names))}-{kind_for(wanted, args.names)}"
        folder = Path(args.out).parent / "annotations" / name
    if not is_task(folder):
        _create(args, folder, wanted)
    elif changed := differences(*read_task(folder), wanted):
        raise PlanError(
            f"The task in {folder} exists, and {_FLAGS[changed[0]]} would change it. Leave out the flag to "
            "continue the task, or create another one with --task DIR."
        )
    return folder


def _run_id(name: str) -> str:
    return Path(name).name.removesuffix(".results.json").removesuffix(".run")


def _create(args: Namespace, folder: Path, wanted: Wanted) -> None:
    from ..people.annotation.create import task_of_runs
    from ..people.annotation.task import read_task
    from ..runs.store.storage import EvaluationResultsStorage

    if args.export:
        raise PlanError(
            f"There is no task in {folder}, so there are no labels to export. Leave out --export."
        )
    storage = EvaluationResultsStorage(args.out)
    _, left_out = task_of_runs(folder, [storage.load_run(name) for name in args.names], wanted)
    task, items = read_task(folder)
    how = "at random" if task.chosen == "random" else f"by {task.chosen}"
    echo.note(f"created: {folder}: {len(items)} of {task.out_of} {task.kind}, chosen {how}")
    if left_out.failed:
        echo.note(f"{left_out.failed} failed answers cannot be judged and are left out.")
    if left_out.declined:
        what = f"{left_out.declined} answers decline: there is nothing that documents could support."
        echo.note(f"{what} They are left out; --ask puts another question about all answers.")


def _export(args: Namespace, folder: Path) -> int:
    from ..people.annotation.export import export
    from ..people.annotation.summary import mean_text, task_summary

    path = Path(args.export)
    count = export(folder, path, settled=args.settled, force=args.force)
    summary = task_summary(folder)
    _say_people(summary)
    if mean := mean_text(summary):
        echo.say_words(mean)
    echo.note(f"written: {path}, {count} records")
    return 0


def _say_people(summary: TaskSummary) -> None:
    for one in summary.people:
        time = "" if one.seconds is None else f", {one.seconds:.1f} s per item"
        echo.say(f"{one.person}: {one.labelled} of {one.total} labelled, {one.not_sure} not sure{time}")


def _serve(args: Namespace, folder: Path) -> int:
    from ..people.annotation.desk import Desk
    from ..people.annotation.export import next_commands
    from ..people.annotation.summary import task_summary
    from ..web.pages.annotate import FRAME, annotate_routes, home_of
    from ..web.server import application
    from ..web.workspace import Workspace

    with Desk(folder) as desk:
        home = home_of(desk, args.person, lead=args.lead)
        routes = annotate_routes(desk, lead=args.lead)
        serve_pages(
            args,
            lambda access: application(Workspace(args.out), access, routes, frame=FRAME),
            home=home,
            about=f"{len(desk.items)} {desk.task.kind} to label",
        )
        has_labels = desk.write_labels()
    again = continue_command(args, folder)
    if not has_labels:
        echo.note(f"No labels yet. Continue: {again}")
        return 0
    summary = task_summary(folder)
    _say_people(summary)
    echo.say("Next:")
    for command in next_commands(folder, desk.task, desk.items):
        echo.say(f"  {command}")
    if not all(one.is_finished for one in summary.people):
        echo.say(f"  {again}  # continue")
    return 0


def continue_command(args: Namespace, folder: Path) -> str:
    """Return the command that continues a task: by its runs, or by its folder if they do not lead to it."""
    if args.task or args.questions:
        return f"auepora annotate {shlex.quote(str(folder))}"
    return f"auepora annotate {shlex.join(args.names)}{out_flag(args.out)}"
