"""Power before and after runs: the anchors, by hand, and by simulating what is promised."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from auepora_eval.comparison.compare import compare_runs
from auepora_eval.comparison.power import (
    power_from_numbers,
    power_from_runs,
    power_in_words,
)
from auepora_eval.core.metrics_base import SampleMetric
from auepora_eval.core.scores import Scores
from auepora_eval.core.types import EvaluationRun
from auepora_eval.errors import PlanError
from auepora_eval.metrics.parse import parse_metric
from tests.decide import gated


def a_run(name: str, clusters: list[str] | None = None, **columns: Any) -> EvaluationRun:
    """A run with these scores: a metric a name (`ndcg_5` is ndcg@5), NaN for a failed answer."""
    scores = {
        metric.replace("_", "@"): [None if math.isnan(one) else float(one) for one in values]
        for metric, values in columns.items()
    }
    return gated.a_run(name, scores, clusters=clusters)


def scores_of(seed: int, size: int = 200, shift: float = 0.0) -> Any:
    """Two systems whose scores go together, all between 0 and 1."""
    rng = np.random.default_rng(seed)
    hard = rng.random(size) * 0.6
    return tuple(hard + 0.2 * rng.random(size) + add for add in (0.0, shift))


def test_anchors() -> None:
    """The textbook's d_z of 0.2 takes 199, and 3 more for two imaginary units."""
    assert power_from_numbers(effect=0.2, sd=1.0).metrics[0].needed == 202
    seen = power_from_numbers(n=100, sd=0.3).metrics[0].detectable
    assert seen == pytest.approx(0.086, abs=1e-3)


def test_a_rate_tells_both_ways() -> None:
    """0.8 to 0.7, which varies more than 0.9, by the normal formula with a correlation of 0.5."""
    metric = power_from_numbers(effect=0.1, rate=0.8).metrics[0]
    same = (1.959964 + 0.841621) ** 2 * (0.37 - 2 * 0.5 * math.sqrt(0.16 * 0.21)) / 0.1**2
    assert metric.needed is not None
    assert 1 < metric.needed / same < 1.15
    assert power_from_numbers(effect=0.1, rate=0.2).metrics[0].needed == metric.needed
    assert power_from_numbers(effect=0.1, rate=0.95).metrics[0].needed is not None  # downwards


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"effect": 0.1}, "give either sd"),
        ({"effect": 0.1, "sd": 1.0, "rate": 0.5}, "give either sd"),
        ({"effect": 0.1, "rate": 1.5}, "between 0 and 1"),
        ({"effect": 0.7, "rate": 0.5}, "cannot change by 0.7"),
        ({"effect": 0.1, "sd": 1.0, "alpha": 0.9}, "alpha and power"),
    ],
)
def test_nonsense_is_refused(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(PlanError, match=told):
        power_from_numbers(**wrong)


def test_two_runs_tell_what_a_comparison_of_them_says() -> None:
    before, after = scores_of(0)
    a, b = a_run("a", ndcg_5=before, recall_5=before), a_run("b", ndcg_5=after + 0.01, recall_5=1 - after)
    report = power_from_runs(a, b)
    compared = {one.name: one for one in compare_runs(a, b, resamples=200).metrics}
    assert report.level == 0.025
    for metric in report.metrics:
        if metric.spread is not None:
            assert metric.detectable == pytest.approx(compared[metric.name].power.detectable)
    assert [metric.samples for metric in report.metrics] == [200, 200]


def test_the_promise_holds() -> None:
    """A change of the size that is called detectable is found in four of five simulated comparisons."""
    rng = np.random.default_rng(1)

    def pair(shift: float) -> Any:
        hard = rng.random(80)
        return 0.5 * hard + 0.2 * rng.random(80), 0.5 * hard + 0.2 * rng.random(80) + shift

    before, after = pair(0.0)
    metric = power_from_runs(a_run("a", ndcg_5=before), a_run("b", ndcg_5=after)).metrics[0]
    size = metric.detectable
    assert size is not None
    found = []
    for _ in range(1_000):
        before, after = pair(size)
        change = after - before
        found.append(abs(change.mean()) / change.std(ddof=1) * math.sqrt(80) > 1.99)
    assert np.mean(found) == pytest.approx(0.8, abs=0.12)  # the spread is that of one run of 80
    needed = metric.needed
    assert needed is None
    again = power_from_runs(a_run("a", ndcg_5=before), a_run("b", ndcg_5=after), effect=0.01).metrics[0]
    assert again.needed is not None
    assert again.spread is not None
    assert again.needed == pytest.approx((2.8016 * again.spread.sd / 0.01) ** 2, rel=0.02)


def test_copies_in_a_cluster_are_no_further_samples() -> None:
    values = scores_of(3, 60)[0]
    alone = power_from_runs(a_run("a", ndcg_5=values), effect=0.05).metrics[0]
    copied = np.repeat(values, 4)
    clusters = [f"c{n // 4}" for n in range(240)]
    clustered = power_from_runs(a_run("a", clusters, ndcg_5=copied), effect=0.05).metrics[0]
    assert clustered.detectable == pytest.approx(alone.detectable)
    assert clustered.samples == 240
    assert alone.needed is not None
    assert clustered.needed == 4 * alone.needed


def test_more_samples_do_not_tell_more_about_times() -> None:
    seconds = np.random.default_rng(7).gamma(4, 0.1, 50)
    timed = a_run("a", None, **{"ndcg_5": seconds / 10, "latency@0.95": seconds})
    report = power_from_runs(timed)
    assert [one.name for one in report.metrics] == ["ndcg@5"]
    assert "but more runs do" in report.notes[0]
    with pytest.raises(PlanError, match="but more runs do"):
        power_from_runs(timed, metrics=["latency@0.95[end_to_end]"])


def test_a_ratio_without_a_value_is_left_open() -> None:
    """The second run declines nothing: the share of what it declined has no denominator."""
    metric = parse_metric("abstention_precision")
    assert isinstance(metric, SampleMetric)
    runs = []
    for name, count in (("a", 10), ("b", 0)):
        run = a_run(name, ndcg_5=scores_of(count, 20)[0])
        parts = np.eye(4)[[place % 2 + 2 * (place >= count) for place in range(20)]]
        scores = Scores([f"s{place}" for place in range(20)], parts[:, [0, 3]].sum(axis=1), parts=parts)
        runs.append(replace(run, results=[*run.results, metric.summarise(scores)]))
    for pair in (runs, runs[1:]):
        report = power_from_runs(*pair, effect=0.1)
        assert report.metrics[0].needed is not None
        assert report.metrics[1].spread is None
        assert "too few samples count" in power_in_words(report)[1]
