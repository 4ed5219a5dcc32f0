"""Effect sizes: by hand, pair by pair, and as a rank test has them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu
from statsmodels.stats.contingency_tables import mcnemar  # type: ignore[import-untyped]

from auepora_eval.stats.significance import cliffs_delta, cohens_dz, odds_ratio

scores = st.lists(st.integers(0, 6).map(float), min_size=2, max_size=30)


def test_by_hand() -> None:
    assert cohens_dz([0.1, 0.3]) == pytest.approx(0.2 / math.sqrt(0.02))
    assert cliffs_delta([1, 2, 3], [2, 3, 4]) == pytest.approx((6 - 1) / 9)
    assert odds_ratio([0, 0, 1, 1], [1, 1, 0, 1]) == 2.0
    assert odds_ratio([0, 1], [1, 1]) == math.inf


@given(a=scores, b=scores)
def test_cliffs_delta_is_the_double_loop_and_the_u_form(a: list[float], b: list[float]) -> None:
    pairs = [(x, y) for x in a for y in b]
    expected = (sum(y > x for x, y in pairs) - sum(y < x for x, y in pairs)) / len(pairs)
    u = mannwhitneyu(b, a).statistic
    assert cliffs_delta(a, b) == pytest.approx(expected)
    assert cliffs_delta(a, b) == pytest.approx(2 * u / (len(a) * len(b)) - 1)
    assert cliffs_delta(b, a) == pytest.approx(-expected)


@pytest.mark.parametrize("differences", [[1.0, 1.0], [0.1] * 7, [0.0, 0.0], [1.0]])
def test_differences_without_spread_have_no_standardised_size(differences: list[float]) -> None:
    assert math.isnan(cohens_dz(differences))


def test_the_odds_are_those_of_the_discordant_pairs() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 2, 200), rng.integers(0, 2, 200)
    table = np.array([[((a == x) & (b == y)).sum() for y in (1, 0)] for x in (1, 0)])
    assert odds_ratio(a, b) == pytest.approx(table[1, 0] / table[0, 1])
    assert mcnemar(table, exact=True).statistic == min(table[1, 0], table[0, 1])
