"""Latency metrics."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.metrics.additional import LatencyQuantile, MeanLatency
from auepora_eval.metrics.parse import parse_metric
from auepora_eval.stats.intervals import quantile_interval
from tests.builders import a_failure, a_sample, an_output


def test_mean_latency_by_stage() -> None:
    samples, outputs = (
        [a_sample("1"), a_sample("2")],
        [
            an_output(timings={"retrieval": 1.0, "end_to_end": 3.0}),
            an_output(timings={"end_to_end": 5.0}),
        ],
    )
    assert MeanLatency().compute(samples, outputs).value == 4.0
    stage = MeanLatency("retrieval").compute(samples, outputs)
    assert (stage.value, stage.details["num_samples"], stage.details["num_skipped"]) == (1.0, 1, 1)


def test_a_system_without_timings_is_not_the_fastest_of_all() -> None:
    result = MeanLatency().compute([a_sample()], [an_output()])
    assert np.isnan(result.value)
    assert result.details["confidence_interval"] is None


def test_a_failed_call_leaves_the_worst_latency_open() -> None:
    samples = [a_sample("1"), a_sample("2")]
    outputs = [an_output(timings={"end_to_end": 1.0}), a_failure()]
    for metric in (MeanLatency(), LatencyQuantile(0.5)):
        low, high = metric.compute(samples, outputs).details["bounds_if_failed"]
        assert (low, high) == (0.5, None)


@pytest.mark.parametrize(
    ("short", "name"),
    [("p95_latency", "latency@0.95[end_to_end]"), ("p50_latency[retrieval]", "latency@0.5[retrieval]")],
)
def test_short_names(short: str, name: str) -> None:
    assert parse_metric(short).name == name


@given(
    seconds=st.lists(st.floats(0, 1e6), min_size=1, max_size=200),
    q=st.floats(0.001, 0.999),
    stage=st.sampled_from(["end_to_end", "generation"]),
)
@settings(max_examples=100, deadline=None)
def test_a_quantile_equals_numpys(seconds: list[float], q: float, stage: str) -> None:
    samples = [a_sample(str(n)) for n in range(len(seconds))]
    outputs = [an_output(timings={stage: s}) for s in seconds]
    result = LatencyQuantile(q, stage).compute(samples, outputs)
    assert result.value == pytest.approx(np.quantile(seconds, q), rel=1e-12)
    interval = result.details["confidence_interval"]
    assert interval is None or interval[0] <= result.value <= interval[1]


@pytest.mark.parametrize(
    ("q", "one_sided", "two_sided"),
    [
        # the smallest n with q**n <= 0.05, and with q**n <= 0.025
        pytest.param(0.95, 59, 72, id="p95"),
        pytest.param(0.99, 299, 368, id="p99"),
    ],
)
def test_the_number_of_answers_that_a_quantile_takes(q: float, one_sided: int, two_sided: int) -> None:
    assert (one_sided, two_sided) == tuple(math.ceil(math.log(tail) / math.log(q)) for tail in (0.05, 0.025))
    for confidence, needed in ((0.90, one_sided), (0.95, two_sided)):
        for n in (needed - 1, needed):
            interval = quantile_interval(np.arange(float(n)), q, confidence=confidence)
            assert (interval is None) == (n < needed)
    for n in (two_sided - 1, two_sided):
        samples = [a_sample(str(place)) for place in range(n)]
        outputs = [an_output(timings={"end_to_end": float(place)}) for place in range(n)]
        details = LatencyQuantile(q).compute(samples, outputs).details
        assert (details["interval_method"] == "not estimable") == (n < two_sided)


def test_a_quantile_of_clusters_has_no_interval() -> None:
    """200 calls of two conversations are two units, however many calls there are."""
    samples = [a_sample(str(n)) for n in range(200)]
    outputs = [an_output(timings={"end_to_end": 1 + n % 2 + n / 1e6}) for n in range(200)]
    assert LatencyQuantile(0.95).compute(samples, outputs).interval is not None
    for n, sample in enumerate(samples):
        sample.metadata["cluster"] = n % 2
    result = LatencyQuantile(0.95).compute(samples, outputs)
    assert (result.interval, result.interval_method) == (None, "not estimable")


def test_the_interval_of_a_quantile_covers_it_as_often_as_it_says() -> None:
    rng = np.random.default_rng(7)
    truth = -math.log(0.05)  # the p95 of the exponential distribution
    held = 0
    for _ in range(1_000):
        interval = quantile_interval(rng.exponential(size=100), 0.95)
        assert interval is not None
        held += interval.low <= truth <= interval.high
    assert held >= 930  # 95%, less three standard errors of 1,000 tries
