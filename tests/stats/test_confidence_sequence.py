"""Confidence sequences: by hand, and by simulating people who look after every sample."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.stats.intervals import Evidence, sequence_interval

scores = st.lists(st.floats(0, 1, allow_subnormal=False), min_size=1, max_size=60)


def test_the_wealth_of_one_win_by_hand() -> None:
    """A gambler with the share f has 1 + f after a win at even odds; the money goes as 1, 1/2, 1/3, ..."""
    evidence = Evidence(0.5)
    evidence.add(1.0)
    harmonic = sum(1 / (n + 1) for n in range(10))
    expected = sum((1 + 0.8 / 2**n) / (n + 1) for n in range(10)) / harmonic
    assert math.exp(evidence.log_wealth) == pytest.approx(expected)


def test_betting_at_the_true_mean_earns_nothing_on_average() -> None:
    """The mean of the wealth over all outcomes of four tosses is 1, weighted by how likely they are."""
    total = 0.0
    for outcome in range(16):
        tosses = [outcome >> n & 1 for n in range(4)]
        evidence = Evidence(0.3)
        for toss in tosses:
            evidence.add(float(toss))
        total += math.exp(evidence.log_wealth) * 0.3 ** sum(tosses) * 0.7 ** (4 - sum(tosses))
    assert total == pytest.approx(1.0)


@given(values=scores, order=st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_the_interval_is_what_the_evidence_leaves_open(values: list[float], order: object) -> None:
    interval = sequence_interval(values)
    shuffled = list(values)
    order.shuffle(shuffled)  # type: ignore[attr-defined]
    again = sequence_interval(shuffled)
    assert (again.low, again.high) == pytest.approx((interval.low, interval.high), abs=1e-9)
    assert 0 <= interval.low <= float(np.mean(values)) + 1e-9
    assert float(np.mean(values)) - 1e-9 <= interval.high <= 1
    for threshold in (interval.low - 1e-6, interval.low + 1e-6):
        if 0 < threshold < 1:
            evidence = Evidence(threshold)
            for value in values:
                evidence.add(value)
            assert evidence.is_clear(0.025) is (threshold < interval.low)


@given(values=scores)
@settings(max_examples=25, deadline=None)
def test_upside_down_it_is_the_same(values: list[float]) -> None:
    low, high, _ = sequence_interval(values)
    mirrored = sequence_interval([1 - value for value in values])
    assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx((low, high), abs=1e-9)


def test_what_is_not_known_widens_it_on_both_sides() -> None:
    known = sequence_interval([1.0] * 30 + [0.0] * 30)
    failed = sequence_interval([1.0] * 30 + [0.0] * 40, [1.0] * 30 + [0.0] * 30 + [1.0] * 10)
    assert failed.low < known.low < known.high < failed.high


def test_clusters_count_by_their_size() -> None:
    """Copies of a sample are no further samples; a cluster of one, where three were possible, tells less."""
    alone = sequence_interval([1.0] * 30 + [0.0] * 10)
    copied = sequence_interval([3.0] * 30 + [0.0] * 10, sizes=[3] * 40, largest=3)
    assert (copied.low, copied.high) == pytest.approx((alone.low, alone.high))
    small = sequence_interval([1.0] * 30 + [0.0] * 10, sizes=[1] * 40, largest=3)
    assert small.low < alone.low
    unscored = sequence_interval([1.0] * 30 + [0.0] * 10 + [0.0] * 9, sizes=[1] * 40 + [0] * 9, largest=1)
    assert (unscored.low, unscored.high) == pytest.approx((alone.low, alone.high))


def ever_clear(totals: np.ndarray, threshold: float, alpha: float) -> np.ndarray:
    """Whether a person who looks after every sample would ever have called it: by row of runs."""
    shares = 0.8 * 0.5 ** np.arange(10)
    money = 1 / np.arange(1, 11) / sum(1 / np.arange(1, 11))
    wealth = np.zeros(totals.shape)
    for share, part in zip(shares, money, strict=True):
        wealth += part * np.exp(np.cumsum(np.log1p(share * (totals / threshold - 1)), axis=1))
    return np.asarray((wealth >= 1 / alpha).any(axis=1))


@pytest.mark.parametrize("mean", [0.1, 0.5, 0.9])
def test_looking_after_every_sample_is_wrong_no_more_often_than_alpha(mean: float) -> None:
    """1,000 runs of 500 samples at the threshold; an interval for one look, looked at each time, is not."""
    runs = (np.random.default_rng(int(mean * 10)).random((1_000, 500)) < mean).astype(float)
    wrong = ever_clear(runs, mean, 0.025) | ever_clear(1 - runs, 1 - mean, 0.025)
    slack = 3 * math.sqrt(0.05 * 0.95 / 1_000)
    assert wrong.mean() <= 0.05 + slack
    n = np.arange(1, 501)
    means = np.cumsum(runs, axis=1) / n
    z = np.abs(means - mean) / math.sqrt(mean * (1 - mean)) * np.sqrt(n)
    assert (z[:, 20:] > 1.96).any(axis=1).mean() > 0.2
    # The class itself says what the columns said.
    for row in range(3):
        evidence, called = Evidence(mean), False
        for value in runs[row]:
            evidence.add(float(value))
            called |= evidence.is_clear(0.025)
        assert called == bool(ever_clear(runs[row : row + 1], mean, 0.025)[0])


@pytest.mark.full
def test_clusters_of_unequal_size_are_wrong_no_more_often_either() -> None:
    """Large clusters score lower here, and all of a cluster scores alike; the mean over samples is 0.5."""
    rng = np.random.default_rng(4)
    sizes = rng.integers(1, 5, (600, 150))
    chance = np.array([np.nan, 0.9, 0.7, 0.5, 0.3])[sizes]
    truth = (0.9 * 1 + 0.7 * 2 + 0.5 * 3 + 0.3 * 4) / 10
    totals = (rng.random(sizes.shape) < chance) * sizes
    missed = 0
    for total, size in zip(totals, sizes, strict=True):
        interval = sequence_interval(total, sizes=size, largest=4)
        missed += not interval.low <= truth <= interval.high
    assert missed / 600 <= 0.05
