"""measure how far annotators agree, list where they do not, and write one settled ground truth

Spans are compared by characters (Jaccard), ratings by Cohen's and Fleiss' kappa and Krippendorff's alpha,
scores by alpha, each with a 95% interval over the queries. Gaps are allowed. With --run, the metrics of a
stored run are compared with people's scores of its answers.

--adjudicated writes one annotation a query: three or more people decide by majority; of two, the spans are
united and the scores averaged, and metadata.needs_adjudication is true wherever they differ.

Example:

  auepora agree demo
  auepora agree demo --dataset demo --adjudicated settled.gt.json --merged annotated.jsonl
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING, Any

from . import echo
from .common import add_json, add_out, open_samples

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.dataset import EvaluationDataset
    from ..curation.agreement import AgreementReport, Disagreement, Figure
    from ..curation.annotators import Annotators
    from ..runs.human_scores import Correlations, HumanComparison
    from ..stats.correlation import Correlation
    from ..stats.intervals import Interval

_SHOWN = 10
_STATISTICS = {
    "character_jaccard": "character Jaccard",
    "cohen_kappa": "Cohen's kappa",
    "fleiss_kappa": "Fleiss' kappa",
    "krippendorff_alpha_nominal": "Krippendorff's alpha, nominal",
    "krippendorff_alpha_ordinal": "Krippendorff's alpha, ordinal",
    "krippendorff_alpha_interval": "Krippendorff's alpha, interval",
}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", help="ground truth of a person each, or demo")
    parser.add_argument("--dataset", metavar="D", help="the dataset that was annotated: it is checked")
    parser.add_argument("--adjudicated", metavar="F", help="write the settled annotations to this .gt.json")
    parser.add_argument("--merged", metavar="F", help="write the dataset with all annotations on its samples")
    parser.add_argument("--force", action="store_true", help="replace files that exist")
    parser.add_argument(
        "--order",
        metavar="ASPECT=WORST,...,BEST",
        type=_order,
        action="append",
        default=[],
        help="the order of an aspect's ratings, where their words do not tell it",
    )
    parser.add_argument("--run", metavar="RUN", help="a stored run: do its metrics see what people see?")
    parser.add_argument(
        "--score", metavar="NAME", default="overall_score", help="the human score for --run (overall_score)"
    )
    parser.add_argument("--all", action="store_true", help=f"show every disagreement, not {_SHOWN}")
    add_out(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    from ..curation.agreement import annotator_agreement
    from ..curation.annotators import file_names_of, read_annotators, refuse_other_dataset
    from ..errors import PlanError

    if args.merged and not args.dataset:
        raise PlanError("--merged needs the dataset that was annotated: add --dataset D.")
    people = read_annotators(_paths(args.files))
    dataset = open_samples(args.dataset, None) if args.dataset else None
    file_of: Callable[[str], str] = str
    if dataset is not None:
        refuse_other_dataset(people, dataset)
        file_of = file_names_of(dataset)
    report = annotator_agreement(people, orders=dict(args.order), file_of=file_of)
    compared = _with_run(args, people)
    _write(args, people, dataset, file_of)
    if args.json:
        echo.say_json(_document(report, compared))
    else:
        _say(report, None if args.all else _SHOWN)
        if compared is not None:
            _say_people(compared, args.run)
    return 0


def _order(text: str) -> tuple[str, list[str]]:
    aspect, sign, ratings = text.partition("=")
    order = [rating.strip() for rating in ratings.split(",")]
    if not sign or not aspect.strip() or len(order) < 2 or not all(order) or len(set(order)) < len(order):
        raise ArgumentTypeError(f"{text!r} is not like clarity=poor,fair,good")
    return aspect.strip(), order


def _paths(files: list[str]) -> list[str]:
    """The files; `demo` stands for what three invented people said about the bundled questions."""
    from ..demo.world import DATA

    return [
        path
        for name in files
        for path in (sorted(map(str, DATA.glob("*.gt.json"))) if name == "demo" else [name])
    ]


def _with_run(args: Namespace, people: Annotators) -> HumanComparison | None:
    if not args.run:
        return None
    from ..curation.annotations_merge import with_own_ids
    from ..runs.human_scores import compare_with_people
    from ..runs.storage import EvaluationResultsStorage

    stored = EvaluationResultsStorage(args.out).load_run(args.run)
    return compare_with_people(stored, with_own_ids(people), score=args.score)


def _write(
    args: Namespace,
    people: Annotators,
    dataset: EvaluationDataset | None,
    file_of: Callable[[str], str],
) -> None:
    from ..curation.adjudication import adjudicated
    from ..curation.annotations_merge import merge_annotations
    from ..io.ground_truth import save_ground_truth
    from ..io.loader import save_dataset

    if args.adjudicated:
        settled = adjudicated(people, file_of=file_of)
        save_ground_truth(settled, args.adjudicated, force=args.force, **people.about)
        left = sum(annotation["metadata"]["needs_adjudication"] for annotation in settled)
        echo.note(f"written: {args.adjudicated}, {len(settled)} annotations, {left} of them to be decided")
    if args.merged and dataset is not None:
        save_dataset(merge_annotations(dataset, people), args.merged, force=args.force)
        echo.note(f"written: {args.merged}, the dataset with {len(people.annotations)} annotations")


def _say(report: AgreementReport, limit: int | None) -> None:
    from ..curation.agreement import SPANS, in_words

    counts = ", ".join(f"{echo.one_line(name, 60)} ({count})" for name, count in report.annotators.items())
    echo.say(f"{len(report.annotators)} annotators and how much they annotated: {counts}\n")
    rows: list[list[str]] = []
    for place, figure in enumerate(report.figures):
        if place == 0 or figure.about != report.figures[place - 1].about:
            rows.append([figure.about])
        rows.append(_row(figure, in_words(figure)))
    echo.say_table(("Agreement", "Value", "95% interval", "Items", "In words"), rows, numeric=(1, 2, 3))
    echo.say()
    _say_disagreements(report.disagreements, limit)
    for wrong in report.wrong_overall:
        echo.note(
            f"note: {echo.one_line(wrong.annotation_id, 80)} by {echo.one_line(wrong.annotator, 60)}: "
            f"overall_score is {wrong.stated:g}, but the mean of its parts is {wrong.mean:.3f}."
        )
    if report.other_answers:
        echo.note(f"note: {report.other_answers} queries have judgements of an answer that only one judged.")
    if not any(figure.about == SPANS for figure in report.figures):
        echo.note("note: no query has spans by two people.")


def _row(figure: Figure, words: str) -> list[str]:
    value = "-" if figure.value is None else f"{figure.value:.3f}"
    name = _STATISTICS[figure.statistic]
    return [name, value, _interval(figure.interval), str(figure.items), words or figure.reason]


def _interval(interval: Interval | None) -> str:
    return "-" if interval is None else f"[{interval.low:.3f}, {interval.high:.3f}]"


def _say_disagreements(disagreements: list[Disagreement], limit: int | None) -> None:
    if not disagreements:
        echo.say("No disagreement.")
        return
    echo.say(f"{len(disagreements)} disagreements, the worst first (1 is as far apart as can be):")
    rows = [
        [echo.one_line(each.query_id, 40), echo.one_line(each.about, 60), f"{each.distance:.2f}", _said(each)]
        for each in disagreements[:limit]
    ]
    echo.say_table(("Query", "About", "Apart", "Who said what"), rows, numeric=(2,))
    if limit is not None and len(disagreements) > limit:
        echo.say(f"... and {len(disagreements) - limit} more (--all)")


def _said(disagreement: Disagreement) -> str:
    return "; ".join(
        f"{echo.one_line(name, 40)}: {_shown(value)}" for name, value in disagreement.said.items()
    )


def _shown(value: Any) -> str:
    if isinstance(value, list):
        spans = [f"{start}-{end}" for start, end in value[:4]] + ["…"] * (len(value) > 4)
        return " ".join(spans) or "nothing"
    return f"{value:g}" if isinstance(value, int | float) else echo.one_line(value, 40)


def _say_people(compared: HumanComparison, run_id: str) -> None:
    about = f"{compared.answers} answers of {echo.one_line(run_id, 80)} against people's {compared.score}"
    echo.say(f"\n{about} (correlation and 95% interval):")
    rows = [[name, *_cells(found)] for name, found in compared.metrics.items()]
    if compared.ceiling is not None:
        rows.append(["one person against the others", *_cells(compared.ceiling)])
    echo.say_table(("Metric", "Pearson", "Spearman", "Kendall"), rows)
    if compared.ceiling is None:
        echo.note("note: no answer was scored by two people, so there is no human ceiling.")
    for count, what in ((compared.other_answers, "an answer"), (compared.not_in_run, "a query")):
        if count:
            echo.note(f"note: {count} annotations are of {what} that the run does not have.")


def _cells(found: Correlations) -> list[str]:
    return [f"{_value(each)} {_interval(each.interval)}" for each in found.values()]


def _value(found: Correlation) -> str:
    return f"{found.value:.3f}" if found.value == found.value else "-"


def _document(report: AgreementReport, compared: HumanComparison | None) -> dict[str, Any]:
    from dataclasses import asdict

    from ..curation.agreement import in_words

    document: dict[str, Any] = {
        **report.about,
        "annotators": report.annotators,
        "agreement": [
            {**asdict(figure), "interval": _limits(figure.interval), "in_words": in_words(figure)}
            for figure in report.figures
        ],
        "disagreements": [asdict(each) for each in report.disagreements],
        "wrong_overall_scores": [asdict(each) for each in report.wrong_overall],
        "queries_with_other_answers": report.other_answers,
    }
    if compared is not None:
        document["people_and_metrics"] = {
            "score": compared.score,
            "answers": compared.answers,
            "annotators": compared.annotators,
            "metrics": {name: _correlations(found) for name, found in compared.metrics.items()},
            "human_ceiling": None if compared.ceiling is None else _correlations(compared.ceiling),
            "annotations_of_other_answers": compared.other_answers,
            "annotations_of_other_queries": compared.not_in_run,
        }
    return document


def _correlations(found: Correlations) -> dict[str, Any]:
    return {
        kind: {"value": each.value, "interval": _limits(each.interval), "samples": each.samples}
        for kind, each in found.items()
    }


def _limits(interval: Interval | None) -> dict[str, Any] | None:
    return None if interval is None else interval._asdict()
