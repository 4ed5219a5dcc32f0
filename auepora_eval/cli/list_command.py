"""list the stored runs, newest first

Example:

  auepora demo
  auepora list
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from . import echo
from .common import add_json, add_out


def add_arguments(parser: ArgumentParser) -> None:
    add_out(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    from ..runs.storage import EvaluationResultsStorage

    heads = EvaluationResultsStorage(args.out).list_results()
    if args.json:
        echo.say_json(heads)
        return 0
    if not heads:
        echo.note(f"no runs in {args.out}. Make one with auepora run, or with auepora demo.")
        return 0
    for head in heads:
        if "error" in head:
            echo.note(f"note: {echo.one_line(head['error'])}")
    names = ("evaluation_id", "timestamp", "system_version", "dataset_id", "total_queries", "failed_queries")
    rows = [[str(head.get(name, "?")) for name in names] for head in heads if "error" not in head]
    echo.say_table(("Run", "When", "System", "Dataset", "Samples", "Failed"), rows, numeric=(4, 5))
    return 0
