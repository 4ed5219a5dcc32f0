"""What a system tells as a time and cannot be one: the answer counts, the time is not measured."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from auepora_eval.core.types import TIMES_LEFT_OUT, EvaluationSample, SystemOutputs
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_sample, an_output, one_output

HUGE = 1e308
EVERY = {"end_to_end": HUGE, "retrieval": HUGE, "generation": HUGE, "ttft": HUGE}
METRICS = (
    "exact_match,mean_latency,mean_latency[retrieval],latency@0.95,throughput,tokens_per_second,"
    "time_to_first_token,time_per_output_token,slo_share@2"
)

OF_STAGES = ("mean_latency[retrieval]", "time_to_first_token", "time_per_output_token")


class Tells:
    """A system that tells these times."""

    name = "tells"

    def __init__(self, timings: dict[str, Any]) -> None:
        self.timings = timings

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        return an_output("a", "yes", timings=self.timings)


@pytest.mark.parametrize(
    "told", [HUGE, math.inf, -math.inf, math.nan, -5.0, 1.1e9, np.float64("nan"), 10**400]
)
def test_the_answer_is_kept_and_the_time_is_not(told: Any) -> None:
    system = Tells({"end_to_end": told, "retrieval": 0.5, "ttft": told})
    output = one_output(system)
    assert (output.error, output.response.text) == (None, "yes")
    assert set(output.timings) == {"end_to_end", "retrieval"}
    assert 0 < output.timings["end_to_end"] < 5  # our own clock, around the call
    assert set(output.extra[TIMES_LEFT_OUT]) == {"end_to_end", "ttft"}


@pytest.mark.parametrize("name", METRICS.split(",")[1:])
def test_a_metric_of_that_time_says_why_it_has_no_value(name: str) -> None:
    told = an_output("a", "yes", timings=dict(EVERY), extra={"output_tokens": 3})
    checked = one_output(Tells(EVERY), top_k=5, sample=a_sample())
    checked.extra["output_tokens"] = 3
    for output in (told, checked):  # made by hand, and by a call
        result = parse_metric(name).compute([a_sample("1"), a_sample("2")], [output, output])
        if output is checked and name not in OF_STAGES:  # our own clock has measured it
            assert result.value >= 0
            continue
        assert math.isnan(result.value)
        assert result.scores[0].failed
        assert "is not a duration" in result.scores[0].reason
