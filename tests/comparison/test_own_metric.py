"""Metrics of one's own: their stored scores are compared without the class that made them."""

from __future__ import annotations

from dataclasses import replace

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
from auepora_eval.errors import PlanError
from tests.comparison.test_power import a_run


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
