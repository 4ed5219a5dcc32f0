"""A plan over retrieval, generation and latency, run on the toy system.

python -m auepora_eval.examples.example_plan
"""

from __future__ import annotations

from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.rag_interface import SimpleRAGSystem
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.examples.simple_rag import CORPUS, OverlapRetriever, QuoteGenerator, build_dataset
from auepora_eval.metrics.additional import MeanLatency
from auepora_eval.metrics.generation_text import ExactMatch, RougeLAnswer, TokenF1
from auepora_eval.metrics.retrieval_basic import MRR, NDCGAtK, RecallAtK
from auepora_eval.reporting.tables import results_to_markdown


def build_plan() -> EvaluationPlan:
    """Metrics as objects."""
    return EvaluationPlan(
        metrics=[
            RecallAtK(k=2),
            MRR(),
            NDCGAtK(k=2),
            ExactMatch(),
            TokenF1(),
            RougeLAnswer(),
            MeanLatency("retrieval"),
            MeanLatency("generation"),
        ]
    )


def main() -> None:
    plan = build_plan()
    for target, metrics in plan.grouped_by_target().items():
        print(f"{target.name}: {', '.join(metric.name for metric in metrics)}")
    system = SimpleRAGSystem(OverlapRetriever(CORPUS), QuoteGenerator())
    print(results_to_markdown(AueporaEvaluator(system, plan, top_k=2).evaluate(build_dataset())))


if __name__ == "__main__":
    main()
