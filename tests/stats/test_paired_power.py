"""The power of McNemar's exact test: against the sum over all tables, and what must always hold of it."""

from __future__ import annotations

import math
import sys

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binomtest, multinomial

from auepora_eval.stats.power import (
    Differing,
    detectable_change,
    fewest_units,
    mcnemar_power,
    sample_size,
    units_needed,
)


def by_all_tables(lost: float, won: float, pairs: int, alpha: float) -> float:
    found = 0.0
    for losses in range(pairs + 1):
        for wins in range(min(losses, pairs - losses + 1)):
            if binomtest(wins, losses + wins).pvalue < alpha:
                table = [losses, wins, pairs - losses - wins]
                found += multinomial.pmf(table, pairs, [lost, won, 1 - lost - won])
    return found


@pytest.mark.parametrize(
    ("lost", "won", "pairs", "alpha"),
    [(0.3, 0.1, 30, 0.05), (0.5, 0.2, 25, 0.0036), (0.6, 0.4, 20, 0.0625), (0.2, 0.0, 30, 2**-5)],
)
def test_every_table_is_counted(lost: float, won: float, pairs: int, alpha: float) -> None:
    """A p-value that is just alpha, as of levels that are powers of two, is not below it."""
    expected = by_all_tables(lost, won, pairs, alpha)
    assert mcnemar_power(lost, won, pairs, alpha=alpha) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(("alpha", "fewest"), [(0.05, 6), (0.0625, 6), (0.063, 5), (0.05 / 14, 10), (0.5, 3)])
def test_how_many_one_way_losses_are_called(alpha: float, fewest: int) -> None:
    assert fewest_units(alpha) == fewest
    assert binomtest(0, fewest).pvalue < alpha <= binomtest(0, fewest - 1).pvalue


def test_without_wins_it_is_one_binomial() -> None:
    """The quantile of the beta distribution is where a binomial reaches six with a chance of 0.8."""
    size = detectable_change(145, None, Differing(counted=True))
    assert size == pytest.approx(beta.ppf(0.8, 6, 140), abs=1e-9)
    assert detectable_change(5, None, Differing(counted=True)) is None
    assert detectable_change(6, None, Differing(counted=True)) == pytest.approx(0.8 ** (1 / 6))


@settings(max_examples=60, deadline=None)
@given(st.integers(6, 400), st.floats(0, 0.5), st.sampled_from([0.05, 0.01, 0.05 / 14]), st.booleans())
@example(67, sys.float_info.min, 0.05, False)
def test_the_figure_keeps_its_promise(units: int, both_ways: float, alpha: float, of_rate: bool) -> None:
    differing = Differing(both_ways=both_ways, counted=True)
    if of_rate:
        differing = Differing(counted=True, rate=1 - both_ways, correlation=0.5)
    size = detectable_change(units, None, differing, alpha=alpha)
    if size is None:
        assert mcnemar_power(*differing.shares(differing.largest), units, alpha=alpha) < 0.8
        return
    lost, won = differing.shares(size)
    assert 0 < size <= differing.largest
    assert lost - won == pytest.approx(size)
    assert min(lost, won) >= 0
    assert lost + won <= 1 + 1e-12
    assert mcnemar_power(lost, won, units, alpha=alpha) == pytest.approx(0.8, abs=1e-6)


@pytest.mark.parametrize("effect", [0.002, 0.0005])
def test_many_samples_are_planned_as_by_the_normal_formula(effect: float) -> None:
    differing = Differing(both_ways=0.1, counted=True)
    needed = units_needed(effect, None, differing)
    assert needed == pytest.approx(sample_size(effect, math.sqrt(0.2 + effect - effect**2)), rel=0.015)
    assert needed is not None
    assert detectable_change(needed, None, differing) == pytest.approx(effect, rel=1e-3)


def test_what_takes_no_number_of_units() -> None:
    assert units_needed(0.0, 1.0, None) is None
    assert units_needed(1.5, None, Differing(counted=True)) is None
    assert units_needed(0.1, None, None) is None
    assert units_needed(0.1, 0.3, Differing(least_p=0.06)) is None
    assert detectable_change(100, 0.3, Differing(least_p=0.06)) is None
    assert detectable_change(100, None, None) is None
    assert detectable_change(10, 5.0, None, reach=1.0) is None
    assert units_needed(2.0, 0.3, Differing(size=0.3)) == 6  # however large it is
