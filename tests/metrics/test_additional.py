"""Latency metrics."""

from __future__ import annotations

import numpy as np
import pytest

from auepora_eval.metrics.additional import LatencyQuantile, MeanLatency
from auepora_eval.metrics.parse import parse_metric
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


def test_p95_equals_numpy_and_has_no_interval_below_72_samples() -> None:
    few = list(np.linspace(0.1, 5.0, 71))
    many = list(np.linspace(0.1, 5.0, 72))
    for seconds in (few, many):
        samples = [a_sample(str(n)) for n in range(len(seconds))]
        outputs = [an_output(timings={"end_to_end": float(s)}) for s in seconds]
        result = LatencyQuantile(0.95).compute(samples, outputs)
        assert result.value == pytest.approx(np.quantile(seconds, 0.95))
        assert (result.details["confidence_interval"] is None) == (len(seconds) < 72)


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


@pytest.mark.parametrize("q", [0, 1, -0.1, 1.5])
def test_a_quantile_lies_between_0_and_1(q: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        LatencyQuantile(q)
