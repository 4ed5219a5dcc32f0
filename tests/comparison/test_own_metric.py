"""Metrics of one's own: their stored scores are compared without the class that made them."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from auepora_eval.comparison.compare import compare_runs
from auepora_eval.comparison.power import power_from_runs
from auepora_eval.comparison.words import comparison_in_plain_words
from auepora_eval.core.types import (
    EvaluationRun,
    MetricResult,
    target_of,
)
from auepora_eval.decide.gate import gate_run
from auepora_eval.decide.trend import metric_trend
from auepora_eval.errors import PlanError
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.comparison.test_power import a_run
from tests.decide import gated


def renamed(run: EvaluationRun, name: str, **details: object) -> EvaluationRun:
    """The run as if its metric were one of the user's, which nobody registered here."""
    results = [
        MetricResult(name, target_of("brevity"), one.value, {**one.details, **details}, one.scores)
        for one in run.results
    ]
    return replace(run, results=results)


def test_a_mean_of_stored_scores_is_compared_without_its_class() -> None:
    rng = np.random.default_rng(0)
    before = rng.random(60) * 0.5
    after = before + rng.random(60) * 0.1
    known = [a_run(name, ndcg_5=values) for name, values in (("a", before), ("b", after))]
    own = [renamed(run, "brevity@12") for run in known]
    [expected], [metric] = (compare_runs(*runs).metrics for runs in (known, own))
    assert (metric.name, metric.verdict) == ("brevity@12", "better")
    assert metric.effect == expected.effect
    assert metric.test == expected.test
    assert [one.outcome for one in gate_run(own[0], baseline=own[1]).verdicts] == ["failed", "passed"]
    assert power_from_runs(*own, metrics=["brevity@12"]).metrics[0].detectable is not None


def test_a_value_that_is_not_the_mean_says_what_is_needed() -> None:
    values = np.linspace(0, 1, 40)
    runs = [renamed(a_run(name, ndcg_5=values), "own_bleu") for name in "ab"]
    for run in runs:
        run.results = [replace(one, value=one.value + 0.1) for one in run.results]
    compared = compare_runs(*runs)
    assert compared.metrics == []
    assert "its metric is not registered" in compared.not_compared["own_bleu"]
    assert comparison_in_plain_words(compared) == ["No metric can be compared."]
    with pytest.raises(PlanError, match="own_bleu cannot be planned for: its metric is not registered"):
        power_from_runs(*runs, metrics=["own_bleu"])


def test_failed_calls_are_not_left_out_of_a_metric_of_ones_own(tmp_path: Path) -> None:
    """Eight of ten are right of those that were answered, and nine of twenty calls failed."""
    failed = gated.a_run("r", {"hit@5": [*[1.0] * 8, 0.0, 0.0, 0.0, *[None] * 9]}, failed=9)
    storage = EvaluationResultsStorage(tmp_path)
    storage.save_run(renamed(failed, "brevity@12"))
    (line,) = metric_trend(storage, "brevity@12").lines
    assert (line.points[0].value, line.points[0].failures_counted) == (0.4, True)

    [known] = failed.results
    whole = MetricResult("own", known.target, known.value, {"num_total": 20, "num_failed": 9})
    run = replace(failed, results=[whole])
    verdict = gate_run(run, {"min": {"own": 0.5}}).verdicts[0]
    assert verdict.outcome == "inconclusive"
    assert "9 calls failed, and what they would have scored is not known" in verdict.why
    storage.save_run(replace(run, evaluation_id="s"))
    (line,) = metric_trend(storage, "own").lines
    assert math.isnan(line.points[0].value)
    assert line.points[0].value_answered == known.value
