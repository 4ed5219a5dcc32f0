"""hold a support function, or a metric, against people's labels: accuracy, AUROC, kappa

Each line of the file is a claim, the evidence it is held against, and a label:

  {"evidence": "The Annet carries 22 cars.", "claim": "22 cars fit on the Annet.", "label": 1}

The evidence is a text or a list of texts; the label is 0 or 1, true or false, or a word such as
"attributable". A judge is the name of a support function (lexical, embedding) or of a metric that
needs no more than an answer and documents (grounding_overlap).

Example:

  auepora judge-audit --labels claims.jsonl --judge lexical --threshold 0.7
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

from . import echo
from .common import add_json, at_least, refuse_no_samples, share

_MEASURES = ("accuracy", "auroc", "kappa")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--labels", metavar="FILE", required=True, help="labelled claims, one a line (JSONL)")
    parser.add_argument("--judge", metavar="NAME", default="lexical", help="what to audit (lexical)")
    parser.add_argument(
        "--threshold", type=share, metavar="T", default=0.7, help="from this score on: borne out (0.7)"
    )
    parser.add_argument("--evidence", metavar="COLUMN", default="", help="the field with the evidence")
    parser.add_argument("--claim", metavar="COLUMN", default="", help="the field with the claim")
    parser.add_argument("--label", metavar="COLUMN", default="", help="the field with the label")
    parser.add_argument("--positive", metavar="LABEL", default="", help="the label of a claim borne out")
    parser.add_argument("--by", metavar="COLUMN", default="", help="also each value of this field by itself")
    parser.add_argument("--seed", type=at_least(0), metavar="N", default=0, help="seed of the intervals (0)")
    add_json(parser)


def run(args: Namespace) -> int:
    from ..io.jsonl import read_records
    from ..runs.judge_audit import Columns, audit, labelled_claims

    columns = Columns(args.evidence, args.claim, args.label, args.positive, args.by)
    labelled = labelled_claims(read_records(args.labels), columns)
    refuse_no_samples(args.labels, len(labelled))
    found = audit(labelled, args.judge, threshold=args.threshold, seed=args.seed)
    if args.json:
        echo.say_json({"labels": args.labels, **found})
    else:
        _say(found)
    return 0


def _say(found: dict[str, Any]) -> None:
    echo.say(
        f"{echo.one_line(found['judge'], 60)} against {found['claims']} labelled claims, "
        f"{found['supported']} of the scored ones borne out"
    )
    if found["scored"] < found["claims"]:
        echo.say(f"{found['claims'] - found['scored']} claims could not be scored; they are left out")
    echo.say()
    rows = [
        (_titles(found["threshold"])[name], _number(found[name]["value"]), _interval(found[name]))
        for name in _MEASURES
    ]
    echo.say_table(("Agreement with people", "Value", "95% interval"), rows, numeric=(1, 2))
    echo.say()
    table = [
        (f"labelled {label}", *(f"{row[judged]}" for judged in ("judged supported", "judged not")))
        for label, row in found["confusion"].items()
    ]
    echo.say_table(("", "judged supported", "judged not"), table, numeric=(1, 2))
    if found["by"]:
        echo.say()
        groups = [
            (
                group,
                f"{part['scored']}",
                *(_number(part[name]["value"]) for name in _MEASURES),
                _interval(part["auroc"]),
            )
            for group, part in found["by"].items()
        ]
        headings = ("Part", "Claims", "Accuracy", "AUROC", "Kappa", "95% interval of AUROC")
        echo.say_table(headings, groups, numeric=range(1, 6))


def _titles(threshold: float) -> dict[str, str]:
    return {
        "accuracy": f"accuracy at {threshold:g}",
        "auroc": "AUROC (0.5 is chance)",
        "kappa": f"Cohen's kappa at {threshold:g}",
    }


def _number(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"


def _interval(figure: dict[str, Any]) -> str:
    limits = figure["confidence_interval"]
    return "n/a" if limits is None else f"[{limits[0]:.3f}, {limits[1]:.3f}]"
