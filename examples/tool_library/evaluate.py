"""Evaluate the help desk: `python evaluate.py ID` keeps the run in `runs`.

A change that is meant to stay becomes the next baseline: `python evaluate.py baseline baselines`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rag import tool_library

from auepora_eval import (
    AueporaEvaluator,
    EvaluationPlan,
    EvaluationResultsStorage,
    EvaluationRun,
    load_dataset,
    parse_metrics,
)

HERE = Path(__file__).parent
METRICS = "recall@1,recall@3,mrr,contains_answer"


def evaluate(evaluation_id: str | None = None) -> EvaluationRun:
    """Ask every question, and score the answers."""
    evaluator = AueporaEvaluator(tool_library, EvaluationPlan(parse_metrics(METRICS)), top_k=3)
    return evaluator.run(load_dataset(HERE / "data" / "questions.jsonl"), evaluation_id=evaluation_id)


if __name__ == "__main__":
    name, folder = (*sys.argv[1:], "runs")[:2]
    EvaluationResultsStorage(folder).save_run(evaluate(name), force=True)
