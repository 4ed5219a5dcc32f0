"""Runs of several nights, made to measure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from auepora_eval.calls.policy import CallPolicy
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator, evaluate
from auepora_eval.core.scoring import RunRecord
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import a_dataset, a_sample, an_output

METRICS = "recall@1,bleu,mean_latency"


def store(
    folder: Path,
    day: int,
    hits: int,
    *,
    size: int = 60,
    name: str = "rag",
    metrics: str = METRICS,
    failing: int = 0,
    seconds: float = 0.1,
    wrong: int = 0,
    arguments: dict[str, Any] | None = None,
    top_k: int = 5,
) -> None:
    """A run of that day in which the first questions are right, but for `wrong`; the very first fail."""

    def system(query: str) -> Any:
        number = int(query.split()[1])
        if number < failing:
            raise RuntimeError("down")
        right = wrong <= number < hits
        return an_output(
            "ab" if right else "ba",
            "the light on the pier is white" if right else "no",
            timings={"end_to_end": seconds},
        )

    system.__name__ = name
    samples = (
        a_sample(f"s{n}", f"q {n}", relevant="a", reference="the light on the pier is white")
        for n in range(size)
    )
    about = {} if arguments is None else {"experiment": {"arguments": arguments}}
    plan = EvaluationPlan(parse_metrics(metrics))
    policy = CallPolicy(keep_going=True)
    evaluator = AueporaEvaluator(system, plan, top_k=top_k, configuration=about, policy=policy)
    run = evaluate(evaluator, RunRecord(a_dataset(*samples), plan, name, f"{name}-{size}-{day:02}"))
    EvaluationResultsStorage(folder).save_run(replace(run, started_at=f"2026-03-{day:02}T02:00:00Z"))
