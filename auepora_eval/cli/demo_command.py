"""the whole story on bundled data: run two systems, compare them, write a report

160 questions about an invented utility; BM25 against BM25 with a dense second opinion (or with word pairs,
where the extra `embeddings` is not installed). No network, no key. Example:

  auepora demo
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from . import echo
from .common import DEFAULT_OUT, add_json, add_out, progress, say_results

if TYPE_CHECKING:
    from ..core.types import EvaluationRun
    from ..demo.systems import DemoSystem
    from ..runs.compare import Comparison
    from ..runs.storage import EvaluationResultsStorage

METRICS = "recall@5,hit@5,mrr,ndcg@5,exact_match,token_f1,rougeL_answer,mean_latency"


def add_arguments(parser: ArgumentParser) -> None:
    add_out(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    from ..demo.systems import bm25, second_system
    from ..io.atomic import write_bytes
    from ..reporting.html import report_html
    from ..runs.compare import compare_runs
    from ..runs.storage import EvaluationResultsStorage

    storage = EvaluationResultsStorage(args.out)
    runs = [_run(system, storage) for system in (bm25(), second_system())]
    paths = [storage.save_run(each) for each in runs]
    comparison = compare_runs(*runs)
    page = Path(args.out) / f"{'-vs-'.join(each.evaluation_id for each in runs)}.html"
    write_bytes(page, report_html(runs, comparison).encode(), force=True)
    if args.json:
        from dataclasses import asdict

        echo.say_json(
            {"runs": [str(path) for path in paths], "report": str(page), "comparison": asdict(comparison)}
        )
    else:
        _say(runs, comparison, [*paths, page], args.out)
    return 0


def _run(system: DemoSystem, storage: EvaluationResultsStorage) -> EvaluationRun:
    import warnings

    from ..core.plan import EvaluationPlan, PartialCoverageWarning
    from ..core.runner import AueporaEvaluator
    from ..demo.world import demo_dataset
    from ..metrics.parse import parse_metrics

    dataset = demo_dataset()
    with progress(len(dataset), system.name) as advance, warnings.catch_warnings():
        # That unanswerable questions have no gold is how the demo is made; the table shows the count.
        warnings.simplefilter("ignore", PartialCoverageWarning)
        evaluator = AueporaEvaluator(system, EvaluationPlan(parse_metrics(METRICS)), on_output=advance)
        return evaluator.run(dataset, evaluation_id=storage.free_id(f"demo-{system.name}"))


def _say(runs: list[EvaluationRun], comparison: Comparison, written: list[Path], out: str) -> None:
    from ..reporting.tables import COMPARISON_HEADINGS, comparison_in_words, comparison_rows

    echo.say("Skerravane Tideworks, an invented utility: 88 documents, 160 questions, two real systems.")
    for each in runs:
        echo.say(f"\n{each.system_name}")
        say_results(each.results)
    echo.say(f"{comparison.candidate_system} against {comparison.baseline_system}, sample by sample")
    echo.say_table(COMPARISON_HEADINGS, comparison_rows(comparison), numeric=range(1, 6))
    echo.say(comparison_in_words(comparison))
    echo.say()
    echo.say("Written:")
    for path in written:
        echo.say(f"  {path}")
    flag = "" if out == DEFAULT_OUT else f" --out {out}"
    echo.say("Next:")
    echo.say(f"  auepora show {runs[0].evaluation_id} --worst ndcg@5{flag}    the questions it found hardest")
    echo.say(
        "  auepora run --dataset demo --system my_rag.py:system    your own system on the same questions"
    )
