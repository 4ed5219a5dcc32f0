"""Corrected means: coverage of the interval, and the judge's bias."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from auepora_eval.judges.trust.calibration import Rate
from auepora_eval.judges.trust.correction import corrected_mean, rate_by_errors
from auepora_eval.stats.calibration import prediction_powered_mean


def judged(seed: int, labels: int = 80, others: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """30% are right; the judge scores right ones 0.85 on average and wrong ones 0.35: much too kind."""
    rng = np.random.default_rng(seed)
    truth = (rng.random(labels + others) < 0.3).astype(float)
    scores = np.clip(0.35 + 0.5 * truth + rng.normal(0, 0.15, len(truth)), 0, 1)
    return truth[:labels], scores[:labels], scores[labels:]


def rates(is_yes: Any, judged_yes: Any, rest_yes: Any) -> tuple[Rate, Rate, Rate]:
    """Sensitivity, specificity, and the share of yes among the others."""
    is_yes, judged_yes, rest_yes = map(np.array, (is_yes, judged_yes, rest_yes))
    return (
        Rate(int((is_yes & judged_yes).sum()), int(is_yes.sum())),
        Rate(int((~is_yes & ~judged_yes).sum()), int((~is_yes).sum())),
        Rate(int(rest_yes.sum()), len(rest_yes)),
    )


def test_interval_covers_the_truth_and_not_the_judge() -> None:
    held = by_errors = 0
    for seed in range(200):
        people, scores, rest = judged(seed)
        found: Any = corrected_mean(people, scores, rest)
        low, high = found.corrected.confidence_interval
        held += low <= 0.3 <= high
        assert found.judge_alone > 0.45
        rate: Any = rate_by_errors(*rates(people > 0, scores >= 0.6, rest >= 0.6))
        low, high = rate.confidence_interval
        by_errors += low <= 0.3 <= high
    assert held / 200 >= 0.9
    assert by_errors / 200 >= 0.9


def test_labels_that_the_judge_is_worth() -> None:
    people, scores, rest = judged(1)
    found: Any = corrected_mean(people, scores, rest)
    both = prediction_powered_mean(people, scores, rest)
    assert found.corrected.value == both.value
    assert found.weight == both.weight
    assert found.worth_labels > 1.5 * found.labels
    useless = corrected_mean(people, np.full(80, 0.5), np.full(400, 0.5))
    assert useless.worth_labels == pytest.approx(80)
    assert useless.corrected.value == pytest.approx(float(people.mean()))


def test_the_share_of_yes_of_the_judge_alone_is_counted_not_averaged() -> None:
    """Of six scores two reach 0.7: a third, whatever their mean."""
    scores, rest = np.array([0.9, 0.6, 0.1]), np.array([0.7, 0.69, 0.5])
    people = np.array([1.0, 0.0, 0.0])
    assert corrected_mean(people, scores, rest, yes_from=0.7).judge_alone == pytest.approx(2 / 6)
    assert corrected_mean(people, scores, rest).judge_alone == pytest.approx((1.6 + 1.89) / 6)
    both = [corrected_mean(people, scores, rest, yes_from=limit).corrected for limit in (None, 0.7)]
    assert both[0] == both[1]  # the correction is by the scores either way
