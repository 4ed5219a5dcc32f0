"""Margins where few samples differ: the binomial as judge, every outcome counted, and simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, ttest_1samp

from auepora_eval.stats.margins import (
    bounded_margin_p,
    non_inferiority_test,
    paired_margin_test,
    pseudo_gains,
    share_margin_p,
)


@pytest.mark.parametrize(
    ("losses", "pairs", "margin"),
    [(0, 145, 0.02), (1, 145, 0.02), (2, 100, 0.05), (3, 300, 0.02)],
)
def test_losses_alone_are_binomial(losses: int, pairs: int, margin: float) -> None:
    """Where nothing is won, and the worst case is that nothing can be, it is P(X <= losses)."""
    assert share_margin_p(losses, 0, pairs, margin) == pytest.approx(
        binom.cdf(losses, pairs, margin), rel=0.01
    )


def test_never_surer_than_the_binomial() -> None:
    for pairs, margin in ((50, 0.1), (200, 0.02), (300, 0.02)):
        for losses in range(5):
            p_value = share_margin_p(losses, 0, pairs, margin)
            assert p_value >= binom.cdf(losses, pairs, margin) - 1e-12


@pytest.mark.parametrize("margin", [0.1, 0.2])
def test_every_outcome_counted(margin: float) -> None:
    """Twelve pairs, 91 outcomes: at the margin a p-value is below alpha at most alpha of the time."""
    pairs = 12
    outcomes = [(b, c) for b in range(pairs + 1) for c in range(pairs + 1 - b)]
    p_values = {one: share_margin_p(*one, pairs, margin) for one in outcomes}
    for won in np.linspace(0, (1 - margin) / 2, 9):
        chances = {
            (b, c): math.comb(pairs, b)
            * math.comb(pairs - b, c)
            * (won + margin) ** b
            * won**c
            * max(0.0, 1 - 2 * won - margin) ** (pairs - b - c)
            for b, c in outcomes
        }
        assert sum(chances.values()) == pytest.approx(1)
        for alpha in (0.01, 0.05, 0.2, 0.5):
            assert sum(chances[one] for one in outcomes if p_values[one] < alpha) <= alpha + 1e-3


def test_many_pairs_are_the_score_test() -> None:
    """Tango's z, by hand where it is easy: as many wins as losses, and a margin that is small beside them."""
    n, lost, margin = 20_000, 2_000, 0.01
    z = n * margin / math.sqrt(n * 2 * lost / n)
    assert share_margin_p(lost, lost, n, margin) == pytest.approx(0.5 * math.erfc(z / math.sqrt(2)), rel=0.25)


@settings(max_examples=25, deadline=None)
@given(losses=st.integers(0, 8), wins=st.integers(0, 8), margin=st.sampled_from([0.02, 0.1, 0.3]))
def test_one_more_loss_never_makes_it_surer(losses: int, wins: int, margin: float) -> None:
    here = share_margin_p(losses, wins, 60, margin)
    assert 0 <= here <= share_margin_p(losses + 1, wins, 60, margin) + 1e-9
    assert share_margin_p(losses, wins + 1, 60, margin) <= here + 1e-9


def test_no_difference_is_as_sure_as_so_many_samples_are() -> None:
    for reach in (1.0, 4.0):
        p_value = bounded_margin_p(np.zeros(145), 0.02 * reach, reach)
        assert p_value == pytest.approx(0.98**145, abs=0.007)
    assert bounded_margin_p([0.0, -0.5, -0.5], 0.1, 1.0) == 1.0
    assert math.isnan(bounded_margin_p([], 0.1, 1.0))


def test_plain_differences_are_those_of_a_t_test() -> None:
    rng = np.random.default_rng(0)
    gains = np.clip(rng.normal(-0.02, 0.2, 150), -1, 1)
    t = ttest_1samp(gains, -0.05, alternative="greater").pvalue
    found = paired_margin_test(gains, 0.05, 1.0)
    assert found.p_value == pytest.approx(t, abs=0.02)
    assert found.p_value >= t


@pytest.mark.parametrize(("size", "rate"), [(100, 0.02), (200, 0.03), (300, 0.01)])
def test_rare_losses_of_all_sizes_keep_alpha_where_t_does_not(size: int, rate: float) -> None:
    rng = np.random.default_rng(1)
    passed, by_t = 0, 0
    for number in range(300):
        gains = np.where(rng.random(size) < rate, -rng.choice([0.25, 0.5, 0.75, 1.0], size), 0.0)
        margin = 0.625 * rate
        passed += bounded_margin_p(gains, margin, 1.0, draws=500, seed=number) < 0.05
        by_t += non_inferiority_test(gains, margin).p_value < 0.05
    assert passed / 300 <= 0.05 + 2.6 * math.sqrt(0.05 * 0.95 / 300)
    assert by_t / 300 > 0.09


def test_which_test_is_taken() -> None:
    assert paired_margin_test([0.0, 1.0, -1.0], 0.1, 1.0).method == "exact, by Tango's score"
    assert "resamples at the margin" in paired_margin_test([0.0, 0.5, -1.0], 0.1, 1.0).method
    assert paired_margin_test([0.0, 0.5, -1.0], 0.1, math.inf).method.startswith("one-sided t-test")
    clustered = paired_margin_test([0.0] * 6, 0.1, 1.0, clusters=list("aabbcc"))
    assert clustered.method.endswith("3 clusters")
    assert clustered.p_value == pytest.approx(0.9**3)
    with pytest.raises(ValueError, match="a margin is positive"):
        share_margin_p(0, 0, 10, 0.0)
    with pytest.raises(ValueError, match="are not among"):
        share_margin_p(6, 5, 10, 0.1)
    assert share_margin_p(3, 0, 10, 1.0) == 0.0


@pytest.mark.parametrize("clustered", [False, True])
def test_pseudo_gains_of_a_mean_are_its_differences(clustered: bool) -> None:
    rng = np.random.default_rng(0)
    a, b = (np.column_stack([rng.random(40), np.ones(40)]) for _ in range(2))
    pairs = [number // 2 for number in range(40)] if clustered else None
    found = pseudo_gains(a, b, lambda sums: sums[..., 0, 0] / sums[..., 0, 1], clusters=pairs)
    gains = b[:, 0] - a[:, 0]
    expected = gains.reshape(20, 2).mean(axis=1) if clustered else gains
    assert found == pytest.approx(expected)
