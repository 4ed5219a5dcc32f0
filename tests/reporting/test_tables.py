"""Tables: what a reader sees beside each value."""

from __future__ import annotations

import math

import pytest

from auepora_eval.core.display import value_text
from auepora_eval.core.types import MetricResult, TargetCategory
from auepora_eval.metrics.parse import parse_metric
from auepora_eval.reporting.tables import results_to_dict, results_to_markdown
from tests.builders import a_failure, a_sample, an_output

T = TargetCategory


def test_values_by_target_and_nothing_measured_is_none() -> None:
    results = [MetricResult("recall@5", T.RETRIEVAL_RELEVANCE, 0.83), MetricResult("x", T.LATENCY, math.nan)]
    assert results_to_dict(results) == {"RETRIEVAL_RELEVANCE": {"recall@5": 0.83}, "LATENCY": {"x": None}}


def test_coverage_is_next_to_the_value() -> None:
    samples = [a_sample(str(n), relevant="a") for n in range(5)] + [
        a_sample("5"),
        a_sample("6", relevant="a"),
    ]
    outputs = [an_output("a")] * 3 + [an_output("b")] * 2 + [an_output(), a_failure()]
    result = parse_metric("recall@3").compute(samples, outputs)
    header, _, row = results_to_markdown([result]).splitlines()
    assert header == "| Target | Metric | Value | 95% interval | Scored | Skipped | Failed | If failed |"
    assert row.startswith("| RETRIEVAL_RELEVANCE | recall@3 | 0.6000 | [")
    assert row.endswith("| 5/7 | 1 | 1 | 0.5000 to 0.6667 |")


def test_result_of_a_custom_metric_shows_what_it_reports() -> None:
    row = results_to_markdown([MetricResult("mine", T.DIVERSITY, 0.5, {"num_samples": 3})]).splitlines()[-1]
    assert row == "| DIVERSITY | mine | 0.5000 | - | 3 | - | - | - |"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (2.5, "2.5 s"),
        (1.0, "1 s"),
        (0.0123, "12.3 ms"),
        (0.00045, "450 µs"),
        (0.0, "0 µs"),
        (math.nan, "n/a"),
    ],
)
def test_seconds_have_a_unit(seconds: float, text: str) -> None:
    assert value_text(seconds, "s") == text
