"""Answers scored by a metric and labelled by thresholds: pairs, failures, and what must not be known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from auepora_eval.core.types import EvaluationSample
from auepora_eval.errors import PlanError
from auepora_eval.io.label_set import ScoredSample
from auepora_eval.labels.detector import scored_by_metric
from auepora_eval.labels.thresholds import SCENARIO_FHRI_THRESHOLDS, labels_by_score
from auepora_eval.text.label_terms import SCENARIO_NAMES
from tests.labels.labelled import a_labelled


def scored(samples: Sequence[EvaluationSample], **options: Any) -> list[ScoredSample]:
    return scored_by_metric("grounding_overlap", samples, **options)


def test_every_scenario_has_a_threshold() -> None:
    assert set(SCENARIO_FHRI_THRESHOLDS) == set(SCENARIO_NAMES)
    assert SCENARIO_FHRI_THRESHOLDS["multi_ticker"] == 0.70  # the example of the annotation guide


def test_an_answer_is_scored_by_its_passages() -> None:
    grounded = a_labelled("1", answer="The Annet carries 22 cars.", passages=("The Annet carries 22 cars.",))
    other = a_labelled("2", answer="A robot steers.", passages=("The Annet carries 22 cars.",))
    assert scored([grounded, other]) == [ScoredSample(1.0, False), ScoredSample(0.0, False)]
    with pytest.raises(PlanError, match="not a score from 0 to 1"):
        scored_by_metric("latency@0.95", [grounded])


def test_each_later_member_meets_the_nearest_earlier_one_in_both_directions() -> None:
    seen: list[tuple[str, str]] = []

    def score(premise: str, hypothesis: str) -> float:
        seen.append((premise, hypothesis))
        return 0.15 if (premise, hypothesis) == ("c", "b") else 0.14

    samples = [
        a_labelled("1", "contradiction", "a", pair="p"),
        a_labelled("2", answer="x"),
        a_labelled("3", answer="b", pair="p"),
        a_labelled("4", answer="y", pair="q"),
        a_labelled("5", answer="c", pair="p"),
    ]
    found = scored(samples, contradiction=score)
    assert seen == [("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")]
    assert [one.contradiction for one in found] == [False, False, False, False, True]


def test_no_answer_is_a_failure_and_contradicts_nothing() -> None:
    samples = [a_labelled("1", answer="", pair="p"), a_labelled("2", pair="p")]
    found = scored(samples, contradiction=lambda premise, hypothesis: 1.0)
    assert [found[0].score, found[0].contradiction, found[1].contradiction] == [None, False, False]
    assert labels_by_score(samples, found)[0].error is not None


SCORES = [
    pytest.param("multi_ticker", ScoredSample(0.71, False), "accurate", id="above its threshold of .70"),
    pytest.param("multi_ticker", ScoredSample(0.70, False), "hallucination", id="at it"),
    pytest.param("numeric_kpi", ScoredSample(0.81, False), "accurate", id="above its threshold of .80"),
    pytest.param(None, ScoredSample(0.66, False), "accurate", id="no scenario is default, .65"),
    pytest.param(None, ScoredSample(0.64, False), "hallucination", id="below the default"),
    pytest.param("news", ScoredSample(0.99, True), "contradiction", id="what was called one stays one"),
    pytest.param("news", ScoredSample(None, True), "contradiction", id="even without a score"),
    pytest.param("news", ScoredSample(None, False), None, id="no score is a failure"),
]


@pytest.mark.parametrize(("scenario", "scored", "label"), SCORES)
def test_the_thresholds_of_scenarios_label_any_scores(
    scenario: str | None, scored: ScoredSample, label: str | None
) -> None:
    (output,) = labels_by_score([a_labelled(scenario=scenario)], [scored])
    assert output.extra.get("predicted_label") == label
    assert (output.error is None) == (label is not None)
