"""Label answers by keyboard; measure how far people agree.

The same command again resumes. --questions reviews the questions of a dataset and
writes the new version to --out. --agree reads one file of annotations per person.

  auepora annotate --agree demo
"""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..core.settings import DEFAULT_OUT, out_flag
from ..demo.world import DATA
from ..errors import PlanError
from ..io.ground_truth import save_ground_truth
from ..io.loader import format_of_name
from ..people.agreement import annotator_agreement
from ..people.annotators import read_annotators, settled_spans
from ..people.desk import Desk
from ..people.items import Wanted, differences, kind_for, task_of_runs
from ..people.results import export, mean_in_words, next_commands, write_labels
from ..people.review import SUFFIX, Review
from ..people.task import is_task, read_task
from ..quality.description import dataset_difference
from ..store.storage import EvaluationResultsStorage
from . import echo
from .common import open_samples
from .dataset.diff import say_difference
from .flags import add_flag, add_json, add_out, at_least
from .pages import check_can_serve, serve_pages

_SHOWN = 10  # disagreements; --json has all


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="*", help="stored runs, or the folder of a task")
    kinds = ("answers", "claims", "documents", "pairs")
    add_flag(parser, "--items", "answers, claims, documents or pairs", "KIND", choices=kinds)
    add_flag(parser, "--count", "number of items, chosen at random (default: 50)", "N", type=at_least(1))
    add_flag(parser, "--ask", "the question to answer about each item", "TEXT")
    add_flag(parser, "--labels", "the labels, from the worst to the best: bad,good", "A,B", type=_names)
    add_flag(parser, "--people", "the names of the annotators (default: me)", "A,B", type=_names)
    add_flag(parser, "--prepare", "create the task and stop, to edit or copy its folder")
    add_flag(parser, "--task", "folder of the task (default: beside the runs)", "DIR", default="")
    add_flag(parser, "--as", "show only the pages of this annotator", "NAME", default="", dest="person")
    about = "write the labels to a .jsonl, .gt.json or .labels.json; with --agree the settled spans"
    add_flag(parser, "--export", about, "FILE", default="")
    add_flag(parser, "--questions", "dataset to review", "FILE")
    add_flag(parser, "--agree", "ground truth, one file per person", "F", nargs="+")
    add_flag(parser, "--force", "overwrite files that exist")
    add_json(parser)
    add_out(parser)
    # A port of one's own, and an address to open elsewhere: auepora view has the same pages.
    parser.set_defaults(port=None, no_open=False)


def _names(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


# The flags of one use only, by their names in the arguments; those of several uses are not here.
_USES = {
    "runs and tasks": "names items count ask people prepare task person",
    "--questions": "questions",
    "--agree": "agree json",
}


def run(args: Namespace) -> int:
    _check_use(args)
    if args.agree:
        return _agree(args)
    if args.questions:
        return _review(args)
    if not args.export and not args.prepare:
        check_can_serve("annotate")  # before a task is created
    folder = _task_folder(args)
    if args.export:
        return _export(args, folder)
    return 0 if args.prepare else _serve(args, folder)


def _check_use(args: Namespace) -> None:
    """Raise PlanError unless the command has one use, and only flags of it."""
    if not (args.names or args.questions or args.agree):
        raise PlanError("name a run to label its answers, or use --questions FILE or --agree FILES.")
    mine = "--agree" if args.agree else "--questions" if args.questions else "runs and tasks"
    for use, names in _USES.items():
        given = [name for name in names.split() if getattr(args, name) and use != mine]
        if given:
            flag = {"names": "NAME", "person": "--as"}.get(given[0], f"--{given[0].replace('_', '-')}")
            raise PlanError(f"{flag} is for {use}, not for {mine}. Leave out one or the other.")


# The flags of a new task, by the names of its settings.
_FLAGS = {
    "kind": "--items",
    "count": "--count",
    "question": "--ask",
    "labels": "--labels",
    "people": "--people",
}


def _task_folder(args: Namespace) -> Path:
    """Return the folder of the task that the names mean; it is created if they are runs without one."""
    wanted = Wanted(args.items, args.count, args.ask, args.labels, args.people)
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
    if args.export:
        raise PlanError(
            f"There is no task in {folder}, so there are no labels to export. Leave out --export."
        )
    storage = EvaluationResultsStorage(args.out)
    _, left_out = task_of_runs(folder, [storage.load_run(name) for name in args.names], wanted)
    task, items = read_task(folder)
    echo.note(f"created: {folder}: {len(items)} of {task.out_of} {task.kind}, chosen at random")
    if left_out.failed:
        echo.note(f"{left_out.failed} failed answers cannot be judged and are left out.")
    if left_out.declined:
        what = f"{left_out.declined} answers decline: there is nothing that documents could support."
        echo.note(f"{what} They are left out; --ask or --labels puts another question about all answers.")


def _export(args: Namespace, folder: Path) -> int:
    path = Path(args.export)
    desk = Desk(folder)
    count = export(desk, path, force=args.force)
    _say_people(desk)
    echo.say_words(mean_in_words(desk))
    echo.note(f"written: {path}, {count} records")
    return 0


def _say_people(desk: Desk) -> None:
    for one in map(desk.progress, desk.task.people):
        time = "" if one.seconds is None else f", {one.seconds:.1f} s per item"
        echo.say(f"{one.person}: {one.labelled} of {one.total} labelled, {one.not_sure} not sure{time}")


def _serve(args: Namespace, folder: Path) -> int:
    from ..pages.annotate import home_of, task_routes, task_workspace
    from ..pages.server import application

    desk = Desk(folder)
    routes, workspace = task_routes(lead=not args.person), task_workspace(desk, args.person)
    serve_pages(
        args,
        lambda access: application(workspace, access, routes, places=False),
        home=home_of(desk, args.person),
        about=f"{len(desk.items)} {desk.task.kind} to label",
    )
    again = continue_command(args, folder)
    if not write_labels(desk):
        echo.note(f"No labels yet. Continue: {again}")
        return 0
    _say_people(desk)
    is_finished = all(desk.progress(person).is_finished for person in desk.task.people)
    echo.say("Next:")
    for command in [*next_commands(desk), *([] if is_finished else [f"{again}  # continue"])]:
        echo.say(f"  {command}")
    return 0


def continue_command(args: Namespace, folder: Path) -> str:
    """Return the command that continues a task: by its runs, or by its folder if they do not lead to it."""
    if args.task or args.items:
        return f"auepora annotate {shlex.quote(str(folder))}"
    return f"auepora annotate {shlex.join(args.names)}{out_flag(args.out)}"


# --questions: the questions of a dataset, reviewed one by one.


def _review(args: Namespace) -> int:
    check_can_serve("annotate")  # the pages import the packages
    from ..pages.annotate import THIS
    from ..pages.layout import address
    from ..pages.review import open_review, review_routes, review_workspace
    from ..pages.server import application

    if args.out == DEFAULT_OUT:
        raise PlanError("--questions needs the file of the new version: add --out NEW.jsonl.")
    target = Path(args.out)
    format_of_name(target)  # DataError for a name that is not a format's, before anything is reviewed
    if args.questions != "demo" and target.exists() and target.samefile(args.questions):
        raise PlanError("A dataset is never reviewed in place. Name another file: --out NEW.")
    review = open_review(target.with_name(f"{target.name}{SUFFIX}"), args.questions)
    review.force = args.force
    review.check_not_overwritten()
    workspace = review_workspace(review, THIS)
    serve_pages(
        args,
        lambda access: application(workspace, access, review_routes(), places=False),
        home=address("review", THIS),
        about=f"{len(review)} questions to review",
    )
    if not review.can_undo:
        echo.note("Nothing was decided, so nothing is written.")
        return 0
    return _write_review(review)


def _write_review(review: Review) -> int:
    result, target = review.write(), review.target
    echo.say(review.in_words())
    say_difference(dataset_difference(review.dataset, result), 10)
    echo.note(f"written: {target}, {len(result)} samples")
    if not dataset_difference(result, open_samples(str(target), None)).same:
        echo.note(f"note: the format of {target.name} does not keep everything. End --out in .jsonl instead.")
    echo.say(f"Next:\n  auepora dataset check {shlex.quote(str(target))}")
    return 0


# --agree: the agreement of annotators.


def _agree(args: Namespace) -> int:
    bundled = sorted(map(str, DATA.glob("*.gt.json")))  # `demo`: the annotations of three invented people
    paths = [path for name in args.agree for path in (bundled if name == "demo" else [name])]
    people = read_annotators(paths)
    report = annotator_agreement(people, args.labels or ())
    if args.export:
        settled = settled_spans(people)
        save_ground_truth(settled, args.export, force=args.force, **people.about)
        left = sum(annotation["metadata"]["needs_decision"] for annotation in settled)
        echo.note(f"written: {args.export}, spans of {len(settled)} queries, {left} of them need a decision")
    # The file is written before anything is printed: a closed pipe must not lose it.
    if args.json:
        echo.say_json(report.to_dict())
    else:
        echo.show_all(report.tables(_SHOWN))
    return 0
