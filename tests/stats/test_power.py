"""Power: the tools of the textbooks as judge, McNemar's test by count, and what must always hold."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest
from statsmodels.stats.power import TTestPower  # type: ignore[import-untyped]

from auepora_eval.stats.intervals import mean_units, plus_two
from auepora_eval.stats.power import (
    Spread,
    detectable_change,
    fewest_units,
    units_needed,
    units_to_rule_out,
)


@pytest.mark.parametrize("effect", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("power", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_statsmodels_says_nearly_the_same(effect: float, power: float, alpha: float) -> None:
    """Where all units differ it is Student's t with two more units, as large as the spread."""
    judge = TTestPower()
    needed = judge.solve_power(effect_size=effect, alpha=alpha, power=power)
    assert units_needed(effect, Spread(1.0, 1.0), alpha=alpha, power=power) == pytest.approx(
        needed, rel=0.06, abs=4
    )


@pytest.mark.parametrize(
    ("spread", "effect", "n", "simulated"),
    [
        pytest.param(Spread(0.1, 0.1), 0.02, 50, 0.26, id="all differ"),
        pytest.param(Spread(0.1, 0.1), 0.02, 200, 0.80, id="all differ, more samples"),
        pytest.param(Spread(math.sqrt(0.15), 1.0), 0.15, 100, 0.79, id="0/1, 22.5% won and 7.5% lost"),
    ],
)
def test_a_change_is_detected_as_often_as_in_simulations(
    spread: Spread, effect: float, n: int, simulated: float
) -> None:
    assert detectable_change(n, spread, power=simulated) == pytest.approx(effect, rel=0.06)


@pytest.mark.parametrize(("alpha", "fewest"), [(0.05, 6), (0.0625, 6), (0.063, 5), (0.05 / 14, 10), (0.5, 3)])
def test_how_many_one_way_losses_are_significant(alpha: float, fewest: int) -> None:
    assert fewest_units(alpha) == fewest
    assert binomtest(0, fewest).pvalue < alpha <= binomtest(0, fewest - 1).pvalue


@pytest.mark.parametrize("units", [40, 145, 1_000])
@pytest.mark.parametrize("both_ways", [0.0, 0.02, 0.1, 0.3])
@pytest.mark.parametrize("alpha", [0.05, 0.05 / 14])
def test_the_exact_test_detects_it_four_times_in_five(units: int, both_ways: float, alpha: float) -> None:
    """Of 0/1 scores, as many pairs won as lost, and then the change: McNemar's test, simulated."""
    change = detectable_change(units, Spread(math.sqrt(2 * both_ways), 1.0), alpha=alpha)
    assert change is not None
    shares = [both_ways + change, both_ways, max(0.0, 1 - 2 * both_ways - change)]
    if sum(shares) > 1 + 1e-9:
        return
    counts = np.random.default_rng(0).multinomial(units, shares, size=4_000)[:, :2]
    p_values = 2 * binom.cdf(counts.min(axis=1), counts.sum(axis=1), 0.5)
    assert (p_values < alpha).mean() >= 0.69


@settings(max_examples=80, deadline=None)
@given(
    st.integers(6, 2_000),
    st.floats(0.001, 2),
    st.floats(0.01, 1),
    st.sampled_from([0.05, 0.01, 0.05 / 14]),
)
def test_the_detectable_change_takes_that_many_units(
    units: int, sd: float, share: float, alpha: float
) -> None:
    spread = Spread(sd, sd / math.sqrt(share))
    change = detectable_change(units, spread, alpha=alpha)
    if change is None:
        assert units < fewest_units(alpha)
        return
    assert units_needed(change * (1 + 1e-9), spread, alpha=alpha) == units


@pytest.mark.parametrize(("margin", "units"), [(0.02, 139), (0.05, 56), (0.1, 28)])
def test_a_margin_takes_as_many_units_as_its_interval(margin: float, units: int) -> None:
    """Where no unit differs nothing varies: one unit fewer does not rule the margin out."""
    assert units_to_rule_out(margin, 0.0, 1.0) == units
    for count, is_ruled_out in ((units, True), (units - 1, False)):
        lowest = float(plus_two(mean_units(np.zeros(count)), -1.0, 1.0).limits()[0])
        assert (lowest > -margin) == is_ruled_out


def test_a_margin_is_ruled_out_as_often_as_the_power_says() -> None:
    units = units_to_rule_out(0.05, 0.2, 1.0)
    assert units is not None
    rng = np.random.default_rng(1)
    gains = rng.normal(0, 0.2, (units, 2_000))
    lowest = plus_two(mean_units(gains), -1.0, 1.0).limits()[0]
    assert (lowest > -0.05).mean() == pytest.approx(0.8, abs=0.03)
