"""hold a judge against people: agreement, calibration, the human ceiling, the corrected rate

Each line of the file is a claim, the evidence it is held against, and what people said of it:

  {"evidence": "The Annet carries 22 cars.", "claim": "22 cars fit on the Annet.", "label": 1}
  {"answer": "...", "label": {"ada": 4, "ben": 3}, "my_judge": 0.8}

The evidence is a text or a list of texts. The label is 0 or 1, true or false, a word such as
"attributable" or, with --scale, a number; several people's are an object of their names or a list.
A judge is the name of a support function (lexical, embedding), of a metric that needs no more than
an answer and documents (grounding_overlap) or, with --score, a column of scores that it gave.
--unlabelled brings claims that only the judge sees: their true mean is estimated from both.
`demo` as the file is 24 bundled answers.

Example:

  auepora judge-audit --labels demo --judge lexical --threshold 0.7
  auepora judge-audit --labels demo --judge grounding_overlap --budget 8,12 --plot calibration.png --force
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import echo
from .common import add_json, refuse_no_samples
from .judge_audit_words import say_audit
from .numbers import at_least, covered, share

if TYPE_CHECKING:
    from ..runs.judge_labels import Scale

_JUDGE = "lexical"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--labels", metavar="FILE", required=True, help="labelled claims, one a line (JSONL)")
    judge = parser.add_mutually_exclusive_group()
    judge.add_argument("--judge", metavar="NAME", help=f"what to audit ({_JUDGE})")
    judge.add_argument("--score", metavar="COLUMN", default="", help="the field with the judge's own score")
    parser.add_argument(
        "--unlabelled", metavar="FILE", help="claims without labels: the judge's mean on them is corrected"
    )
    parser.add_argument(
        "--threshold", type=share, metavar="T", default=0.7, help="from this score on: borne out (0.7)"
    )
    parser.add_argument(
        "--scale", type=scale, metavar="LOW,HIGH", help="the labels are numbers on this scale"
    )
    parser.add_argument(
        "--score-scale", type=scale, metavar="LOW,HIGH", default=(0.0, 1.0), help="that of --score (0,1)"
    )
    parser.add_argument(
        "--people-threshold",
        type=share,
        metavar="T",
        default=0.5,
        help="from this mean of people's labels on, of 0 to 1: borne out (0.5)",
    )
    parser.add_argument(
        "--unscored-as",
        type=covered,
        metavar="S",
        help="the score of a claim that the judge cannot score, from 0 to 1 (it is left out)",
    )
    parser.add_argument("--evidence", metavar="COLUMN", default="", help="the field with the evidence")
    parser.add_argument("--claim", metavar="COLUMN", default="", help="the field with the claim")
    parser.add_argument("--label", metavar="COLUMN", default="", help="the field with the label or labels")
    parser.add_argument("--positive", metavar="LABEL", default="", help="the label of a claim borne out")
    parser.add_argument(
        "--cluster", metavar="COLUMN", default="", help="the field that claims which go together share"
    )
    parser.add_argument("--by", metavar="COLUMN", default="", help="also each value of this field by itself")
    parser.add_argument(
        "--bins", type=bin_count, metavar="N", default=10, help="bins of the calibration error (10)"
    )
    parser.add_argument(
        "--budget",
        type=counts,
        metavar="N,...",
        default=(),
        help="how wide the interval would be with so many labels and the rest only judged",
    )
    parser.add_argument("--plot", metavar="F", help="draw the reliability diagram (.png, .svg)")
    parser.add_argument("--force", action="store_true", help="replace the picture if it exists")
    parser.add_argument("--seed", type=at_least(0), metavar="N", default=0, help="seed of the intervals (0)")
    add_json(parser)


def bin_count(text: str) -> int:
    """An argparse type: a number of bins."""
    if not text.isdecimal() or not 1 <= int(text[:9]) <= 1_000 or len(text) > 9:
        raise ArgumentTypeError(f"{text[:20]!r} is not a number from 1 to 1,000")
    return int(text)


def scale(text: str) -> Scale:
    """An argparse type: the ends of a scale, as "1,4"."""
    try:
        low, high = (float(end) for end in text.split(","))
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not like 1,4") from None
    if not float("-inf") < low < high < float("inf"):
        raise ArgumentTypeError(f"{text!r} does not go from a number to a higher one")
    return low, high


def counts(text: str) -> tuple[int, ...]:
    """An argparse type: numbers of labels, as "40,80,120"."""
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not like 40,80,120") from None


def run(args: Namespace) -> int:
    from ..errors import PlanError
    from ..runs.judge_audit import Audit, Columns, audit, labelled_claims, unlabelled_claims

    columns = Columns(
        evidence=args.evidence,
        claim=args.claim,
        label=args.label,
        positive=args.positive,
        group=args.by,
        scale=args.scale,
        people_threshold=args.people_threshold,
        score=args.score,
        score_scale=args.score_scale,
        cluster=args.cluster,
    )
    if args.cluster and args.budget:
        raise PlanError("--budget deals out single claims. Leave out --cluster for it.")
    labelled = labelled_claims(_records(args.labels), columns)
    refuse_no_samples(args.labels, len(labelled))
    rest = unlabelled_claims(_records(args.unlabelled), columns) if args.unlabelled else []
    if args.unlabelled:
        refuse_no_samples(args.unlabelled, len(rest))
    how = Audit(args.threshold, args.people_threshold, args.bins, args.budget, args.seed, args.unscored_as)
    name = args.judge or _JUDGE
    found = audit(labelled, None if args.score else name, how, unlabelled=rest)
    found["judge"] = args.score or name
    if args.plot:
        _draw(found, args.plot, force=args.force)
    if args.json:
        echo.say_json({"labels": args.labels, "unlabelled": args.unlabelled, **found})
    else:
        say_audit(found)
    return 0


def _records(name: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    from ..demo.world import demo_claims
    from ..io.jsonl import read_records

    return demo_claims() if name == "demo" else read_records(name)


def _draw(found: Mapping[str, Any], path: str, *, force: bool) -> None:
    from ..errors import DataError
    from ..reporting.calibration_plot import plot_calibration
    from ..reporting.plots import save_figure

    if found["calibration"] is None:
        what = "the judge gave no score from 0 to 1, so there is nothing to draw."
        raise DataError("--plot", what, fix="Say which scale it uses: --score-scale LOW,HIGH.")
    try:
        save_figure(plot_calibration(found["judge"], found["calibration"]), path, force=force)
    except ValueError as error:
        raise DataError("--plot", f"{error}.") from error
    echo.note(f"written: {path}")
