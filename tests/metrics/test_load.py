"""Throughput, tokens, failures and time limits."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.core.metrics_base import SampleMetric
from auepora_eval.core.types import EvaluationSample, SystemOutputs
from auepora_eval.metrics.additional import FailureRate, SloShare, TimeoutRate
from auepora_eval.metrics.parse import default_metrics, parse_metric
from tests.builders import a_failure, a_sample, an_output


def a_call(seconds: float, tokens: Any = None, **timings: float) -> SystemOutputs:
    extra = {} if tokens is None else {"output_tokens": tokens}
    return an_output(timings={"end_to_end": seconds, **timings}, extra=extra)


def some_samples(count: int) -> list[EvaluationSample]:
    return [a_sample(str(n)) for n in range(count)]


def test_throughput_is_answers_by_system_time_not_the_mean_of_rates() -> None:
    calls = [a_call(0.5), a_call(1.5)]
    result = parse_metric("throughput").compute(some_samples(2), calls)
    assert result.value == pytest.approx(2 / 2.0)
    assert [score.value for score in result.scores] == pytest.approx([2.0, 1 / 1.5])


def test_tokens_per_second_by_stage() -> None:
    calls = [a_call(1.0, 30, generation=0.5), a_call(3.0, 50, generation=1.5), a_call(1.0)]
    whole = parse_metric("tokens_per_second").compute(some_samples(3), calls)
    assert whole.value == pytest.approx(80 / 4.0)
    assert whole.scores[2].reason == "the output does not say how many output_tokens it has"
    stage = parse_metric("tokens_per_second[generation]").compute(some_samples(3), calls)
    assert stage.value == pytest.approx(80 / 2.0)
    assert stage.scores[2].reason == "no timing 'generation'"


@pytest.mark.parametrize("tokens", [True, -1, "many", math.inf, 1e308, math.nan, [3]])
def test_a_count_that_is_none_is_a_failure_not_a_zero(tokens: Any) -> None:
    result = parse_metric("tokens_per_second").compute([a_sample()], [a_call(1.0, tokens)])
    assert result.scores[0].failed
    assert "not a count" in result.scores[0].reason


@pytest.mark.parametrize("seconds", [0.0, 5e-324, 1e-308])
def test_no_time_at_all_is_no_infinite_throughput(seconds: float) -> None:
    result = parse_metric("throughput").compute(some_samples(2), [a_call(seconds), a_call(2.0)])
    assert result.value == 0.5
    assert "nothing takes no time" in result.scores[0].reason


def test_time_to_first_token_is_a_mean_of_ttft() -> None:
    calls = [a_call(1.0, ttft=0.2), a_call(1.0, ttft=0.4), a_call(1.0)]
    result = parse_metric("time_to_first_token").compute(some_samples(3), calls)
    assert result.value == pytest.approx(0.3)
    assert result.details["num_skipped"] == 1


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param(a_call(2.1, 11, ttft=0.1), 0.2, id="ten waits in two seconds"),
        pytest.param(a_call(2.1, 1, ttft=0.1), "fewer than two tokens", id="one token"),
        pytest.param(a_call(2.1, ttft=0.1), "output_tokens", id="no count"),
        pytest.param(a_call(2.1, 11), "no timing 'ttft'", id="not streamed"),
        pytest.param(a_call(0.1, 11, ttft=0.2), "after the end", id="impossible"),
    ],
)
def test_time_per_output_token(call: SystemOutputs, expected: float | str) -> None:
    score = parse_metric("time_per_output_token").compute([a_sample()], [call]).scores[0]
    if isinstance(expected, str):
        assert score.value is None
        assert expected in score.reason
    else:
        assert score.value == pytest.approx(expected)


def test_failures_and_timeouts_are_what_these_count() -> None:
    calls = [a_call(1.0), a_failure("TimeoutError"), a_failure("ReadTimeout"), a_failure("ValueError")]
    failures = FailureRate().compute(some_samples(4), calls)
    assert (failures.value, failures.details["num_failed"], failures.details["num_samples"]) == (0.75, 0, 4)
    assert failures.details["bounds_if_failed"] is None
    assert TimeoutRate().compute(some_samples(4), calls).value == 0.5


def test_a_failed_call_is_not_within_the_limit() -> None:
    calls = [a_call(1.0), a_call(2.0), a_call(2.001), a_failure(), an_output()]
    result = parse_metric("slo_share@2").compute(some_samples(5), calls)
    assert result.value == 0.5
    assert result.details["num_samples"] == 4
    assert result.scores[4].reason == "no timing 'end_to_end'"


@given(st.lists(st.tuples(st.floats(1e-3, 100), st.integers(0, 1000)), min_size=1, max_size=30))
@settings(max_examples=50, deadline=None)
def test_sums_by_hand(calls: list[tuple[float, int]]) -> None:
    outputs = [a_call(seconds, tokens) for seconds, tokens in calls]

    def value(metric: SampleMetric) -> float:
        return metric.compute(some_samples(len(calls)), outputs).value

    spent = math.fsum(seconds for seconds, _ in calls)
    assert value(parse_metric("throughput")) == pytest.approx(len(calls) / spent)
    assert value(parse_metric("tokens_per_second")) == pytest.approx(sum(t for _, t in calls) / spent)
    within = sum(seconds <= 2 for seconds, _ in calls)
    assert value(SloShare(2.0)) == pytest.approx(within / len(calls))


def test_cost_is_what_the_system_reports_or_its_tokens_at_a_price() -> None:
    calls = [
        an_output(extra={"cost_usd": 0.5, "input_tokens": 1}),
        an_output(extra={"input_tokens": 2000, "output_tokens": 100}),
        an_output(extra={"output_tokens": 100}),
    ]
    metric = parse_metric("cost[price_input=0.25,price_output=1]")
    result = metric.compute(some_samples(3), calls)
    assert [score.value for score in result.scores] == [0.5, 2 * 0.25 + 0.1, None]
    assert result.value == pytest.approx(0.55)
    assert parse_metric(metric.name) == metric
    assert parse_metric("cost").compute(some_samples(1), calls[1:2]).coverage.skipped == 1


def test_cost_is_a_default_where_prices_are_given() -> None:
    prices = {"price_input": 0.1, "price_output": None}
    names = [metric.name for metric in default_metrics(some_samples(1), prices=prices)]
    assert names[-1] == "cost[price_input=0.1]"
