"""All metrics of an answer's text: hostile text, an empty answer, identical texts."""

from __future__ import annotations

from typing import Any

import pytest

from auepora_eval.core.metrics_base import METRICS
from auepora_eval.judges.metric import JudgedMetric
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_sample, an_output

WITH_REFERENCE = [
    name
    for name in METRICS
    if METRICS.get(name).requires == ("reference_answer",) and not issubclass(METRICS.get(name), JudgedMetric)
]
# Vectors fall a last bit short of their length, and long texts take their time: test_similarity.py.
ON_TEXT = [name for name in WITH_REFERENCE if name != "semantic_similarity"]


def value(metric: Any, answer: str, reference: str) -> float | None:
    score = metric.compute([a_sample(reference=reference)], [an_output(answer=answer)]).scores[0]
    assert score.value is not None or score.reason
    found: float | None = score.value
    return found


@pytest.mark.parametrize(
    "text", ["five 5 boats", "东京塔高333米", "Москва — столица 2 стран", "नमस्ते दुनिया 1"]
)
@pytest.mark.parametrize("name", ON_TEXT)
def test_identical_texts_agree_fully_in_any_script(name: str, text: str) -> None:
    metric = parse_metric(name)
    assert value(metric, text, text) == pytest.approx(metric.bounds[1], abs=1e-9)


@pytest.mark.parametrize("name", [name for name in WITH_REFERENCE if name != "numeric_match"])
def test_an_empty_answer_scores_zero_and_is_counted(name: str) -> None:
    result = parse_metric(name).compute([a_sample(reference="cat")], [an_output(answer="")])
    assert (result.value, result.details["num_samples"]) == (0.0, 1)


HOSTILE = ["word " * 10_000, "x" * 50_000, "\x00" * 1000, "\ud800" * 1000, "9 " * 20_000]


@pytest.mark.parametrize("name", ON_TEXT)
@pytest.mark.parametrize("hostile", HOSTILE, ids=["words", "a word", "NUL", "surrogates", "numbers"])
def test_long_texts_nul_and_lone_surrogates(name: str, hostile: str) -> None:
    metric = parse_metric(name)
    for answer, reference in ((hostile, "cat 9"), ("cat", hostile), (hostile, hostile)):
        found = value(metric, answer, reference)
        assert found is None or metric.bounds[0] <= found <= metric.bounds[1] + 1e-9
