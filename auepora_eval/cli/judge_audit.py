"""Audit a judge against human labels.

Each line of the file is a claim, the evidence it is checked against, and its human label or labels:

  {"evidence": "The Annet carries 22 cars.", "claim": "22 cars fit on the Annet.", "label": 1}
  {"answer": "...", "label": {"ada": 4, "ben": 3}, "my_judge": 0.8}

The evidence is a text or a list of texts. The label is 0 or 1, true or false, a word such as
"attributable" or, with --scale, a number. For several annotators, give an object (name: label) or a list.
A judge is the name of a support function (lexical, consistent, embedding), the name of a metric that needs
only an answer and documents (grounding_overlap) or, with --score, a field with its scores.
--unlabelled adds claims that only the judge scores: their true mean is estimated from both files.
Use `--labels demo` for 24 bundled answers.

Example:

  auepora judge-audit --labels demo --judge lexical --threshold 0.7
  auepora judge-audit --labels demo --judge grounding_overlap --budget 8,12 --plot calibration.png --force
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from . import echo
from .common import add_json, check_has_samples
from .flags import at_least, covered, share

if TYPE_CHECKING:
    from ..people.judge_audit import AuditReport
    from ..people.judge_labels import Scale

_JUDGE = "lexical"
# Which field of a record has what; without the flag the usual names are tried.
_COLUMNS = {
    "evidence": "field with the evidence (default: evidence, premise, references, context or contexts)",
    "claim": "field with the claim (default: claim or hypothesis)",
    "label": "field with the label or labels (default: label or attribution_label)",
    "cluster": "field with the cluster: claims of one cluster are not independent",
    "by": "also report each value of this field",
}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--labels", metavar="FILE", required=True, help="labelled claims, one per line (JSONL)"
    )
    judge = parser.add_mutually_exclusive_group()
    judge.add_argument("--judge", metavar="NAME", help=f"the judge to audit (default: {_JUDGE})")
    judge.add_argument("--score", metavar="FIELD", default="", help="field with the judge's score")
    parser.add_argument(
        "--unlabelled", metavar="FILE", help="claims without labels, whose mean is estimated from the judge's"
    )
    parser.add_argument(
        "--threshold",
        type=share,
        metavar="T",
        default=0.7,
        help="claims that the judge scores at or above this count as supported (default: 0.7)",
    )
    parser.add_argument(
        "--scale", type=scale, metavar="LOW,HIGH", help="the labels are numbers on this scale"
    )
    parser.add_argument(
        "--score-scale",
        type=scale,
        metavar="LOW,HIGH",
        default=(0.0, 1.0),
        help="the scale of --score (default: 0,1)",
    )
    parser.add_argument(
        "--people-threshold",
        type=share,
        metavar="T",
        default=0.5,
        help="for human labels: the mean label (scaled to 0-1) that counts as supported (default: 0.5)",
    )
    parser.add_argument(
        "--unscored-as",
        type=covered,
        metavar="S",
        help="score (0 to 1) of claims that the judge cannot score (default: leave them out)",
    )
    for name, words in _COLUMNS.items():
        parser.add_argument(f"--{name}", metavar="FIELD", default="", help=words)
    parser.add_argument("--positive", metavar="LABEL", default="", help="the label of a supported claim")
    parser.add_argument(
        "--bins",
        type=bin_count,
        metavar="N",
        default=10,
        help="number of bins for the calibration error, ECE (default: 10)",
    )
    parser.add_argument(
        "--budget",
        type=counts,
        metavar="N,...",
        default=(),
        help="report the interval width if only N claims are labelled and the judge scores the rest",
    )
    parser.add_argument("--plot", metavar="FILE", help="plot the reliability diagram (.png, .svg)")
    parser.add_argument("--force", action="store_true", help="overwrite the plot if it exists")
    parser.add_argument("--seed", type=at_least(0), metavar="N", default=0, help="random seed (default: 0)")
    add_json(parser)


def bin_count(text: str) -> int:
    """Return a number of bins, for argparse."""
    if not text.isdecimal() or not 1 <= int(text[:9]) <= 1_000 or len(text) > 9:
        raise ArgumentTypeError(f"{text[:20]!r} is not a number from 1 to 1,000")
    return int(text)


def scale(text: str) -> Scale:
    """Return the ends of a scale written as "1,4", for argparse."""
    try:
        low, high = (float(end) for end in text.split(","))
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not like 1,4") from None
    # NaN fails every comparison, so it is refused here too.
    if not float("-inf") < low < high < float("inf"):
        raise ArgumentTypeError(f"{text!r} is not a number and a higher one")
    return low, high


def counts(text: str) -> tuple[int, ...]:
    """Return numbers of labels written as "40,80,120", for argparse."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not like 40,80,120") from None


def run(args: Namespace) -> int:
    from ..errors import PlanError
    from ..people.audit_report import audit_tables
    from ..people.judge_audit import Audit, Columns, audit, labelled_claims, unlabelled_claims

    columns = Columns(**{column.name: getattr(args, column.name) for column in fields(Columns)})
    if args.cluster and args.budget:
        raise PlanError("--budget deals out single claims. Leave out --cluster for it.")
    labelled = labelled_claims(_records(args.labels), columns)
    check_has_samples(args.labels, len(labelled))
    rest = unlabelled_claims(_records(args.unlabelled), columns) if args.unlabelled else []
    if args.unlabelled:
        check_has_samples(args.unlabelled, len(rest))
    how = Audit(args.threshold, args.people_threshold, args.bins, args.budget, args.seed, args.unscored_as)
    name = args.judge or _JUDGE
    report = audit(labelled, None if args.score else name, how, unlabelled=rest)
    report.judge = args.score or name
    if args.plot:
        _draw(report, args.plot, force=args.force)
    if args.json:
        echo.say_json({"labels": args.labels, "unlabelled": args.unlabelled, **vars(report)})
    else:
        echo.show_all(audit_tables(report))
    return 0


def _records(name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    from ..demo.world import demo_claims
    from ..io.jsonl import read_records

    return demo_claims() if name == "demo" else read_records(name)


def _draw(report: AuditReport, path: str, *, force: bool) -> None:
    from ..errors import DataError
    from ..people.audit_report import plot_calibration
    from ..reporting.plots import save_figure

    if report.calibration is None:
        what = "The judge gave no score from 0 to 1, so there is nothing to draw."
        raise DataError("--plot", what, fix="Give its scale: --score-scale LOW,HIGH.")
    try:
        save_figure(plot_calibration(str(report.judge), report.calibration), path, force=force)
    except ValueError as error:
        raise DataError("--plot", f"{error}.") from error
    echo.note(f"written: {path}")
