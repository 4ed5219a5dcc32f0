"""A custom metric with absurd numbers loses its own samples, not the run."""

from __future__ import annotations

import math
from typing import ClassVar

import pytest

from auepora_eval.core.metrics_base import SampleMetric
from auepora_eval.core.types import EvaluationSample, SystemOutputs, TargetCategory
from tests.builders import a_sample, an_output


class Length(SampleMetric):
    """The number that an answer is."""

    name = "length"
    target = TargetCategory.GENERATION_RELEVANCE
    bounds: ClassVar[tuple[float, float]] = (-math.inf, math.inf)

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float:
        return float(output.response.text)


@pytest.mark.parametrize(
    ("texts", "mean", "reason"),
    [
        (["inf", "nan", "3", "5", "4"], 4.0, "returned inf, which is not a number to average"),
        (["1e140", "1e140", "-1e140", "-1e140", "0"], 0.0, ""),
    ],
)
def test_huge_score_is_not_measured(texts: list[str], mean: float, reason: str) -> None:
    samples = [a_sample(str(place)) for place in range(len(texts))]
    result = Length().compute(samples, [an_output("a", text) for text in texts])
    assert result.value == pytest.approx(mean, nan_ok=True)
    assert reason in (result.scores[0].reason or "")
    assert result.details["num_failed"] == sum(text.strip("-") in ("inf", "nan") for text in texts)


class Share(Length):
    """The same, declared as a share."""

    name = "share"
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)


@pytest.mark.parametrize(
    ("texts", "mean", "failed"),
    [
        pytest.param(["7", "0.5", "1"], 0.75, 1, id="above"),
        pytest.param(["-0.1", "0.5", "1"], 0.75, 1, id="below"),
        pytest.param(["7", "7", "8"], math.nan, 3, id="all"),
        pytest.param(["1.0000000000000002", "0", "-1e-17"], 1 / 3, 0, id="rounding"),
    ],
)
def test_a_score_outside_its_bounds_fails_its_sample(texts: list[str], mean: float, failed: int) -> None:
    samples = [a_sample(str(place)) for place in range(len(texts))]
    result = Share().compute(samples, [an_output("a", text) for text in texts])
    assert result.value == pytest.approx(mean, nan_ok=True)
    assert result.coverage.failed == failed
    reasons = [score.reason for score in result.scores if score.failed]
    assert reasons == [
        f"the metric returned {text}, outside its bounds (0 to 1): declare the bounds that it has"
        for text in texts[:failed]
    ]
    # Where nothing is left to measure, the table says why.
    assert [reasons[0] in note for note in result.notes] == ([True] if failed == len(texts) else [])
