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
from .common import add_json, add_out, out_flag, progress, say_results
from .compare_words import say_comparison

if TYPE_CHECKING:
    from ..core.types import EvaluationRun
    from ..demo.systems import DemoSystem
    from ..runs.compare import Comparison
    from ..runs.storage import EvaluationResultsStorage

METRICS = (
    "recall@5,hit@5,mrr,ndcg@5,query_coverage,grounding_overlap,contains_answer,token_f1,rougeL_answer,"
    "mean_latency,lexical_diversity@5,noise_retention,rejection_rate,over_refusal_rate,fake_adoption_rate"
)


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
        from ..reporting.tables import comparison_to_dict

        written = {"runs": [str(path) for path in paths], "report": str(page)}
        echo.say_json({**written, "comparison": comparison_to_dict(comparison)})
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
    echo.say("Skerravane Tideworks, a utility that we made up: 88 documents, 160 questions.")
    for each in runs:
        echo.say(f"\n{each.system_name}")
        say_results(each.results)
    echo.say()
    say_comparison(comparison)
    echo.say()
    echo.say("Written:")
    for path in written:
        echo.say(f"  {path}")
    flag = out_flag(out)
    echo.say("Next:")
    echo.say(f"  auepora show {runs[0].evaluation_id} --worst ndcg@5{flag}   # what it found hardest")
    echo.say("  auepora run --dataset demo --system my_rag.py:my_rag   # your own system")
