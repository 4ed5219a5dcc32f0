"""Corrected rates: the promise of 95% kept, clusters by hand. The values of ppi_py are in test_anchors."""

from __future__ import annotations

import math

import numpy as np
import pytest

from auepora_eval.stats.calibration import PoweredMean, prediction_powered_mean, true_rate_interval


def judged(seed: int, n: int = 60, unlabelled: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels of 0.6 on average, and a judge that goes along with them but says 0.1 too much."""
    rng = np.random.default_rng(seed)
    truth = rng.beta(3, 2, n + unlabelled)
    said = truth + 0.1 + rng.normal(0, 0.1, n + unlabelled)
    return truth[:n], said[:n], said[n:]


def holds(found: PoweredMean, truth: float) -> bool:
    """Return whether the 95% interval of ppi_py holds the truth: it takes the error to be normal."""
    return abs(found.value - truth) <= 1.959964 * found.error


def test_the_bias_of_the_judge_is_gone_and_the_interval_holds() -> None:
    held, widths = 0, []
    for seed in range(400):
        labels, with_label, without = judged(seed)
        corrected = prediction_powered_mean(labels, with_label, without)
        alone = prediction_powered_mean(labels, with_label, without, weight=0.0)
        held += holds(corrected, 0.6)
        widths.append(corrected.error / alone.error)
    assert 0.91 <= held / 400 <= 0.98
    assert np.mean(widths) < 0.75


def test_clusters_by_hand_and_clusters_of_one() -> None:
    labels, with_label, without = judged(0)
    plain = prediction_powered_mean(labels, with_label, without)
    alone = prediction_powered_mean(labels, with_label, without, clusters=(range(60), range(60, 360)))
    assert alone.value == plain.value
    assert alone.error == pytest.approx(plain.error * np.sqrt(360 / 359))
    pairs = prediction_powered_mean([0, 0, 1, 1], [0] * 4, [0, 0], weight=0.0, clusters=("aabb", "cd"))
    # Each of two clusters is off by 2 * 0.5 / 4, the two others by nothing: 4 / 3 * 2 * 0.25 ** 2.
    assert pairs.error**2 == pytest.approx(4 / 3 * 2 * 0.25**2)
    assert prediction_powered_mean([0, 1], [0, 1], [0, 1], clusters=("aa", "aa")).error == math.inf


def test_the_interval_holds_in_clusters_that_are_on_both_sides() -> None:
    """Sixty questions of six answers each, two of them labelled; taken one by one it fails."""
    held = {True: 0, False: 0}
    for seed in range(300):
        rng = np.random.default_rng(seed)
        truth = 0.5 + rng.normal(0, 0.2, (60, 1)) + rng.normal(0, 0.05, (60, 6))
        said = truth + 0.1 + rng.normal(0, 0.15, (60, 1)) + rng.normal(0, 0.05, (60, 6))
        questions = np.repeat(np.arange(60), 6).reshape(60, 6)
        groups = (questions[:, :2].ravel().tolist(), questions[:, 2:].ravel().tolist())
        for clustered in held:
            found = prediction_powered_mean(
                truth[:, :2].ravel(),
                said[:, :2].ravel(),
                said[:, 2:].ravel(),
                clusters=groups if clustered else None,
            )
            held[clustered] += holds(found, 0.5)
    assert held[True] / 300 >= 0.915
    assert held[False] / 300 < 0.9


def test_a_judge_that_says_nothing_changes_nothing() -> None:
    labels, with_label, without = judged(0)
    dull = prediction_powered_mean(labels, np.ones(60), np.ones(300))
    assert dull.weight == 0.0
    assert dull.value == pytest.approx(labels.mean())
    against = prediction_powered_mean(labels, -with_label, -without)
    assert against.weight == 0.0


def test_the_interval_of_a_corrected_rate_holds() -> None:
    """A true rate of 0.3, a judge of 0.9 and 0.8, each known from a few samples only."""
    rng = np.random.default_rng(2)
    held = 0
    for _ in range(500):
        reported = (int(rng.binomial(400, 0.3 * 0.9 + 0.7 * 0.2)), 400)
        interval = true_rate_interval(
            reported, (int(rng.binomial(60, 0.9)), 60), (int(rng.binomial(80, 0.8)), 80)
        )
        held += interval.low <= 0.3 <= interval.high
    assert 0.925 <= held / 500 <= 0.985
