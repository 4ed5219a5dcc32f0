"""Failures without a pair to tell what they weigh: over time, in limits, in rankings."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.types import SystemOutputs
from auepora_eval.decide.trend import Trend, metric_trend
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import a_dataset
from tests.comparison.test_crashing import answered, questions


def nights(folder: Path, metric: str, *outputs: list[SystemOutputs]) -> Trend:
    for day, side in enumerate(outputs, start=1):
        samples = [replace(sample, query=sample.sample_id) for sample in questions()]
        found = {sample.query: output for sample, output in zip(samples, side, strict=True)}
        evaluator = AueporaEvaluator(_Stored(found), EvaluationPlan(parse_metrics(metric)))
        run = evaluator.run(a_dataset(*samples), evaluation_id=f"r{day}")
        EvaluationResultsStorage(folder).save_run(replace(run, started_at=f"2026-03-{day:02}T02:00:00Z"))
    return metric_trend(EvaluationResultsStorage(folder), metric)


class _Stored:
    def __init__(self, outputs: dict[str, SystemOutputs]) -> None:
        self.outputs, self.__name__ = outputs, "stored"

    def __call__(self, query: str) -> Any:
        if self.outputs[query].error is not None:
            raise RuntimeError("down")
        return self.outputs[query]


@pytest.mark.parametrize("metric", ["bleu", "distinct_n_corpus", "self_bleu"])
def test_over_time_a_system_does_not_rise_by_crashing(tmp_path: Path, metric: str) -> None:
    hard = "z " * 30
    fine, crashing = answered(hard), answered(hard, crashing=True)
    (line,) = nights(tmp_path, metric, crashing, fine, fine).lines
    values = [point.value for point in line.points]
    assert values[1] == values[2]
    assert math.isnan(values[0])
    gain = line.points[0].value_answered - values[1]
    assert gain * (1 if line.higher_is_better else -1) > 0
