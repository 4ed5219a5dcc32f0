"""is the candidate run better than the baseline, and can the data tell?

Samples are matched by id; a failed answer counts as the worst one. Example:

  auepora demo
  auepora compare demo-bm25 demo-hybrid
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from . import echo
from .common import add_json, add_out, say_comparison, share


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("baseline", help="id or path of a stored run")
    parser.add_argument("candidate", help="id or path of a stored run")
    parser.add_argument(
        "--alpha", type=share, default=0.05, help="chance of a false alarm, over all metrics (0.05)"
    )
    add_out(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    from ..reporting.tables import comparison_to_dict
    from ..runs.compare import compare_runs
    from ..runs.storage import EvaluationResultsStorage

    storage = EvaluationResultsStorage(args.out)
    comparison = compare_runs(
        storage.load_scores(args.baseline), storage.load_scores(args.candidate), alpha=args.alpha
    )
    if args.json:
        echo.say_json(comparison_to_dict(comparison))
        return 0
    say_comparison(comparison)
    return 0
