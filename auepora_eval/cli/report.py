"""Write an HTML or Markdown report of one or more runs.

Two runs are also compared, the second against the first; more are ranked, and compared pair by pair. The
Markdown is a comment for a pull request: the verdict, a table, and folded details. Example:

  auepora demo
  auepora report demo-bm25 demo-hybrid --html report.html
  auepora report demo-bm25 demo-hybrid --markdown
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from . import echo
from .common import add_flag, add_out, say_stored

if TYPE_CHECKING:
    from ..comparison.compare import Comparison, LostSample
    from ..runs.store.storage import EvaluationResultsStorage

_REGRESSIONS = 5  # samples in a comment


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run_ids", nargs="+", metavar="RUN", help="id or path of a stored run")
    add_flag(parser, "--html", "write a self-contained page", "FILE")
    add_flag(parser, "--markdown", "print a comment for a pull request (the default without --html)")
    add_flag(parser, "--force", "overwrite the file if it exists")
    add_out(parser)


def run(args: Namespace) -> int:
    from ..comparison.compare import check_same_data, compare_runs
    from ..comparison.html import claims_of_run, report_html, slice_fields
    from ..comparison.markdown import report_markdown
    from ..comparison.ranking import rank_runs
    from ..io.files.atomic import write_bytes
    from ..runs.store.storage import EvaluationResultsStorage, run_folder

    storage = EvaluationResultsStorage(args.out)
    load = storage.load_run if args.html else storage.load_scores  # only the page shows samples
    runs = [load(name) for name in args.run_ids]
    check_same_data(runs)
    by = slice_fields(runs) if args.html else ()
    comparison = compare_runs(runs[0], runs[1], by=by) if len(runs) == 2 else None
    ranking = rank_runs(runs) if len(runs) > 2 else None
    if args.html:
        path = Path(args.html)
        folders = [run_folder(storage.find(name)) for name in args.run_ids]
        claims = [claims_of_run(folder, each) for folder, each in zip(folders, runs, strict=True)]
        page = report_html(runs, comparison, ranking=ranking, claims=claims)
        # An answer of a model may contain half of a surrogate pair, which UTF-8 cannot write.
        write_bytes(path, page.encode("utf-8", "replace"), force=args.force)
        say_stored(path)
    if args.markdown or not args.html:
        lost = [] if comparison is None else _lost(storage, comparison, args.run_ids)
        tally = storage.load_tally(args.run_ids[0])
        echo.say(report_markdown(runs, comparison, ranking=ranking, lost=lost, tally=tally))
    return 0


def _lost(
    storage: EvaluationResultsStorage, comparison: Comparison, names: Sequence[str]
) -> list[LostSample]:
    """Return the largest regressions of the second run, with the texts of both."""
    from ..comparison.compare import lost_most, lost_samples, stored_texts

    metric = lost_most(comparison)
    if metric is None:
        return []
    ids = [regression.sample_id for regression in metric.regressions[:_REGRESSIONS]]
    before, now = (stored_texts(storage.find(name), ids) for name in names)
    return lost_samples(metric, before, now, _REGRESSIONS)
