"""Write an HTML or Markdown report of one or more runs.

Two runs are also compared, the second against the first; more are ranked, and compared pair by pair. Example:

  auepora demo
  auepora report demo-bm25 demo-hybrid --html report.html
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from . import echo
from .common import add_out, say_stored


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run_ids", nargs="+", metavar="RUN", help="id or path of a stored run")
    parser.add_argument("--html", metavar="FILE", help="write a self-contained page")
    parser.add_argument("--markdown", action="store_true", help="print Markdown (the default without --html)")
    parser.add_argument("--force", action="store_true", help="overwrite the file if it exists")
    add_out(parser)


def run(args: Namespace) -> int:
    from ..comparison.compare import check_same_data, compare_runs
    from ..comparison.html import report_html
    from ..comparison.ranking import rank_runs
    from ..comparison.tables import comparison_to_markdown, ranking_report
    from ..comparison.words import names_of_runs
    from ..core.display import markdown_text
    from ..early_stop.rule import stopping_in_words
    from ..io.files.atomic import write_bytes
    from ..reporting.tables import results_to_markdown
    from ..runs.store.storage import EvaluationResultsStorage

    storage = EvaluationResultsStorage(args.out)
    runs = [storage.load_run(name) for name in args.run_ids]
    check_same_data(runs)
    comparison = compare_runs(runs[0], runs[1]) if len(runs) == 2 else None
    ranking = rank_runs(runs) if len(runs) > 2 else None
    if args.html:
        path = Path(args.html)
        page = report_html(runs, comparison, ranking=ranking)
        # An answer of a model may contain half of a surrogate pair, which UTF-8 cannot write.
        write_bytes(path, page.encode("utf-8", "replace"), force=args.force)
        say_stored(path)
    if args.markdown or not args.html:
        for each, name in zip(runs, names_of_runs(runs), strict=True):
            echo.say(f"## {markdown_text(name)}\n\n{results_to_markdown(each.results)}\n")
            if each.stopping is not None:
                echo.say(f"{markdown_text(stopping_in_words(each.stopping))}\n")
        if comparison is not None:
            echo.say(f"## Difference\n\n{comparison_to_markdown(comparison)}")
        if ranking is not None:
            echo.say(f"## Ranking\n\n{ranking_report(ranking)}")
    return 0
