"""Measure agreement between annotators and merge their labels.

Spans are compared by characters (Jaccard), ratings by Cohen's and Fleiss' kappa and Krippendorff's alpha,
scores by alpha, each with a 95% interval over the queries. Nobody has to annotate every query. With --run,
the metrics of a stored run are compared with people's scores of its answers.

--adjudicated writes one annotation per query. Three or more people decide by majority. With two people, the
spans are merged and the scores averaged. metadata.needs_adjudication is true where they differ.

Example:

  auepora agree demo
  auepora agree demo --dataset demo --adjudicated settled.gt.json --merged annotated.jsonl
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import PlanError
from . import echo
from .common import add_flag, add_json, add_out, open_samples

if TYPE_CHECKING:
    from ..core.dataset import EvaluationDataset
    from ..people.agreement import HumanComparison
    from ..people.annotators import Annotators

_SHOWN = 10  # disagreements, unless --all is given


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "files", metavar="FILE", nargs="+", help="ground truth files, one per person, or demo"
    )
    add_flag(parser, "--dataset", "dataset that was annotated; the annotations are checked against it", "D")
    add_flag(parser, "--adjudicated", "write one annotation per query to this .gt.json", "F")
    add_flag(parser, "--merged", "write the dataset with all annotations on its samples", "F")
    add_flag(parser, "--force", "replace files that exist")
    add_flag(
        parser,
        "--order",
        "order of the ratings of an aspect, if auepora does not recognise it",
        "ASPECT=WORST,...,BEST",
        type=_order,
        default=[],
        action="append",
    )
    add_flag(parser, "--run", "stored run whose metrics are correlated with people's scores", "RUN")
    add_flag(parser, "--score", "the human score for --run", "NAME", default="overall_score")
    add_flag(parser, "--all", f"show every disagreement (default: {_SHOWN})")
    add_out(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    from ..people.agreement import annotator_agreement
    from ..people.annotators import check_same_dataset, file_names_of, read_annotators

    if args.merged and not args.dataset:
        raise PlanError("--merged needs the dataset that was annotated: add --dataset D.")
    people = read_annotators(_paths(args.files))
    dataset = open_samples(args.dataset, None) if args.dataset else None
    file_of: Callable[[str], str] = str
    if dataset is not None:
        check_same_dataset(people, dataset)
        file_of = file_names_of(dataset)
    report = annotator_agreement(people, orders=dict(args.order), file_of=file_of)
    compared = _with_run(args, people)
    _write(args, people, dataset, file_of)
    # The files are written before anything is printed: a closed pipe must not lose them.
    if args.json:
        with_run = {} if compared is None else {"people_and_metrics": compared.to_dict()}
        echo.say_json({**report.to_dict(), **with_run})
        return 0
    tables = report.tables(None if args.all else _SHOWN)
    echo.show_all(tables if compared is None else [*tables, compared.table(args.run)])
    return 0


def _order(text: str) -> tuple[str, list[str]]:
    aspect, sign, ratings = text.partition("=")
    order = [rating.strip() for rating in ratings.split(",")]
    if not sign or not aspect.strip() or len(order) < 2 or not all(order) or len(set(order)) < len(order):
        raise ArgumentTypeError(f"{text!r} is not like clarity=poor,fair,good")
    return aspect.strip(), order


def _paths(files: list[str]) -> list[str]:
    """Return the files; `demo` means the bundled annotations of three invented people."""
    from ..demo.world import DATA

    bundled = sorted(map(str, DATA.glob("*.gt.json")))
    paths: list[str] = []
    for name in files:
        paths += bundled if name == "demo" else [name]
    return paths


def _with_run(args: Namespace, people: Annotators) -> HumanComparison | None:
    if not args.run:
        return None
    from ..people.agreement import compare_with_people
    from ..people.annotators import with_own_ids
    from ..runs.store.storage import EvaluationResultsStorage

    stored = EvaluationResultsStorage(args.out).load_run(args.run)
    return compare_with_people(stored, with_own_ids(people), score=args.score)


def _write(
    args: Namespace,
    people: Annotators,
    dataset: EvaluationDataset | None,
    file_of: Callable[[str], str],
) -> None:
    from ..io.datasets.ground_truth import save_ground_truth
    from ..io.loader import save_dataset
    from ..people.annotators import adjudicated, merge_annotations

    if args.adjudicated:
        settled = adjudicated(people, file_of=file_of)
        save_ground_truth(settled, args.adjudicated, force=args.force, **people.about)
        left = sum(annotation["metadata"]["needs_adjudication"] for annotation in settled)
        echo.note(f"written: {args.adjudicated}, {len(settled)} annotations, {left} of them need a decision")
    if args.merged and dataset is not None:
        save_dataset(merge_annotations(dataset, people), args.merged, force=args.force)
        echo.note(f"written: {args.merged}, the dataset with {len(list(people.each()))} annotations")
