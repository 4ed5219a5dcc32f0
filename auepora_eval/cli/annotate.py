"""Label answers by keyboard; measure how far people agree.

The new version of --questions is written to --out. The same command continues.

  auepora annotate --agree demo --dataset demo
"""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.settings import DEFAULT_OUT
from ..demo.world import DATA
from ..errors import PlanError
from ..io.ground_truth import save_ground_truth
from ..io.loader import format_of_name, save_dataset
from ..people.agreement import annotator_agreement
from ..people.annotators import (
    adjudicated,
    check_same_dataset,
    file_names_of,
    merge_annotations,
    read_annotators,
)
from ..people.desk import Desk
from ..people.items import Wanted, differences, kind_for, task_of_runs
from ..people.results import export, mean_text, next_commands, task_summary
from ..people.review import Finding, Review, check_not_overwritten, note_written
from ..people.task import is_task, read_task
from ..quality.checks import DataQualityChecker
from ..quality.description import dataset_difference
from ..store.storage import EvaluationResultsStorage
from . import echo
from .common import open_samples
from .dataset.diff import say_difference
from .flags import add_flag, add_json, add_out, at_least, covered, out_flag
from .pages import add_page_flags, check_can_serve, serve_pages

if TYPE_CHECKING:
    from ..core.dataset import EvaluationDataset
    from ..people.annotators import Annotators
    from ..people.results import TaskSummary

_SHOWN = 10  # disagreements; --json has all


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="*", help="stored runs, or the folder of a task")
    kinds = ("answers", "claims", "documents", "pairs")
    add_flag(parser, "--items", "answers, claims, documents or pairs", "KIND", choices=kinds)
    add_flag(parser, "--count", "number of items (default: 50)", "N", type=at_least(1))
    about = "random, slice:NAME, run or disagree:A,B"
    add_flag(parser, "--choose", about, "HOW")
    add_flag(parser, "--ask", "the question to answer about each item", "TEXT")
    add_flag(parser, "--labels", "the labels, from the worst to the best: bad,good", "A,B")
    add_flag(parser, "--people", "the names of the annotators (default: me)", "A,B")
    add_flag(parser, "--overlap", "share of the items that all label (default: 1)", "S", type=covered)
    add_flag(parser, "--prepare", "create the task and stop, to copy its folder")
    add_flag(parser, "--task", "folder of the task (default: beside the runs)", "DIR", default="")
    add_flag(parser, "--as", "the annotator who labels", "NAME", default="", dest="person")
    add_flag(parser, "--lead", "also show agreement, and settle disagreements")
    add_page_flags(parser)
    add_flag(parser, "--export", "write the labels to a .jsonl, .gt.json or .labels.json", "FILE", default="")
    add_flag(parser, "--settled", "export one label per item")
    add_flag(parser, "--questions", "dataset to review", "FILE")
    add_flag(parser, "--only-accepted", "leave out questions that are not decided")
    add_flag(parser, "--agree", "ground truth, one file per person", "F", nargs="+")
    add_flag(parser, "--dataset", "with --agree: the dataset that was annotated", "FILE")
    add_flag(parser, "--adjudicated", "with --agree: write one annotation per query", "FILE")
    add_flag(parser, "--merged", "with --agree: write the annotated dataset", "FILE")
    about = "with --agree: the order of the ratings of an aspect"
    add_flag(parser, "--order", about, "A=LOW,...,HIGH", type=_order, default=[], action="append")
    add_flag(parser, "--force", "overwrite files that exist")
    add_json(parser)
    add_out(parser)


# The flags of one use only, by their names in the arguments; those of several uses are not here.
_USES = {
    "runs and tasks": (
        "names items count choose ask labels people overlap prepare task person lead export settled"
    ),
    "--questions": "questions only_accepted",
    "--agree": "agree dataset adjudicated merged order json",
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
    "choose": "--choose",
    "question": "--ask",
    "labels": "--labels",
    "people": "--people",
    "overlap": "--overlap",
}


def _wanted(args: Namespace) -> Wanted:
    names = {name: flag.removeprefix("--") for name, flag in _FLAGS.items()}
    given = {name: getattr(args, flag) for name, flag in names.items()}
    for name in ("labels", "people"):
        if given[name] is not None:
            given[name] = [part.strip() for part in given[name].split(",")]
    return Wanted(**given)


def _task_folder(args: Namespace) -> Path:
    """Return the folder of the task that the names mean; it is created if they are runs without one."""
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
    from ..pages.annotate import annotate_routes, home_of
    from ..pages.layout import ALONE
    from ..pages.server import application
    from ..pages.workspace import Workspace

    with Desk(folder) as desk:
        home = home_of(desk, args.person, lead=args.lead)
        routes = annotate_routes(desk, lead=args.lead)
        serve_pages(
            args,
            lambda access: application(Workspace(args.out), access, routes, frame=ALONE),
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
    if args.task or args.items:
        return f"auepora annotate {shlex.quote(str(folder))}"
    return f"auepora annotate {shlex.join(args.names)}{out_flag(args.out)}"


# --questions: the questions of a dataset, reviewed one by one.


def _review(args: Namespace) -> int:
    check_can_serve("annotate")  # the pages import the packages
    from ..pages.layout import ALONE
    from ..pages.review import review_routes
    from ..pages.server import application
    from ..pages.workspace import Workspace

    if args.out == DEFAULT_OUT:
        raise PlanError("--questions needs the file of the new version: add --out NEW.jsonl.")
    target = Path(args.out)
    folder = target.with_name(f"{target.name}.review")
    format_of_name(target)  # DataError for a name that is not a format's, before anything is reviewed
    if args.questions != "demo" and target.exists() and target.samefile(args.questions):
        raise PlanError("A dataset is never reviewed in place. Name another file: --out NEW.")
    if not args.force:
        check_not_overwritten(target, folder)
    dataset = open_samples(args.questions, None)
    findings: dict[str, list[Finding]] = {}
    for issue in DataQualityChecker().issues(dataset):
        finding = Finding(issue.severity, f"{issue.message} {issue.fix}")
        findings.setdefault(issue.sample_id, []).append(finding)
    with Review(dataset, folder, findings) as review:
        routes = review_routes(review)
        serve_pages(
            args,
            lambda access: application(Workspace(target.parent), access, routes, frame=ALONE),
            home="/",
            about=f"{len(review)} questions to review",
        )
        if not review.can_undo:
            echo.note("Nothing was decided, so nothing is written.")
            return 0
        return _write_review(args, review, target)


def _write_review(args: Namespace, review: Review, target: Path) -> int:
    result = review.result(only_accepted=args.only_accepted)
    save_dataset(result, target, force=True)
    note_written(target, review.folder)
    counts = Counter(one.decision for one in review.all())
    edited = sum(one.is_edited for one in review.all())
    echo.say(
        f"{counts['accept']} accepted, {counts['reject']} rejected, {counts['']} not decided, {edited} edited"
    )
    say_difference(dataset_difference(review.dataset, result), 10)
    echo.note(f"written: {target}, {len(result)} samples")
    if not dataset_difference(result, open_samples(str(target), None)).same:
        echo.note(f"note: the format of {target.name} does not keep everything. End --out in .jsonl instead.")
    echo.say(f"Next:\n  auepora dataset check {shlex.quote(str(target))}")
    return 0


# --agree: the agreement of annotators.


def _agree(args: Namespace) -> int:
    if args.merged and not args.dataset:
        raise PlanError("--merged needs the dataset that was annotated: add --dataset D.")
    people = read_annotators(_people(args.agree))
    dataset = open_samples(args.dataset, None) if args.dataset else None
    file_of: Callable[[str], str] = str
    if dataset is not None:
        check_same_dataset(people, dataset)
        file_of = file_names_of(dataset)
    report = annotator_agreement(people, orders=dict(args.order), file_of=file_of)
    _write_annotations(args, people, dataset, file_of)
    # The files are written before anything is printed: a closed pipe must not lose them.
    if args.json:
        echo.say_json(report.to_dict())
    else:
        echo.show_all(report.tables(_SHOWN))
    return 0


def _order(text: str) -> tuple[str, list[str]]:
    aspect, sign, ratings = text.partition("=")
    order = [rating.strip() for rating in ratings.split(",")]
    if not sign or not aspect.strip() or len(order) < 2 or not all(order) or len(set(order)) < len(order):
        raise ArgumentTypeError(f"{text!r} is not like clarity=poor,fair,good")
    return aspect.strip(), order


def _people(files: list[str]) -> list[str]:
    """Return the files; `demo` means the bundled annotations of three invented people."""
    bundled = sorted(map(str, DATA.glob("*.gt.json")))
    paths: list[str] = []
    for name in files:
        paths += bundled if name == "demo" else [name]
    return paths


def _write_annotations(
    args: Namespace,
    people: Annotators,
    dataset: EvaluationDataset | None,
    file_of: Callable[[str], str],
) -> None:
    if args.adjudicated:
        settled = adjudicated(people, file_of=file_of)
        save_ground_truth(settled, args.adjudicated, force=args.force, **people.about)
        left = sum(annotation["metadata"]["needs_adjudication"] for annotation in settled)
        echo.note(f"written: {args.adjudicated}, {len(settled)} annotations, {left} of them need a decision")
    if args.merged and dataset is not None:
        save_dataset(merge_annotations(dataset, people), args.merged, force=args.force)
        echo.note(f"written: {args.merged}, the dataset with {len(list(people.each()))} annotations")
