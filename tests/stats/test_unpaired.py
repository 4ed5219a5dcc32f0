"""Whole runs that are not paired: Welch, against an oracle."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from auepora_eval.stats.significance import welch_difference

scores = st.lists(st.floats(0, 1, allow_subnormal=False), min_size=2, max_size=30)


@settings(max_examples=50, deadline=None)
@given(a=scores, b=scores)
def test_welch_agrees_with_scipy(a: list[float], b: list[float]) -> None:
    # Where nearly all values are equal, scipy says that it has lost precision.
    if min(np.std(a), np.std(b)) < 1e-6:
        return
    ours, theirs = welch_difference(a, b), stats.ttest_ind(b, a, equal_var=False)
    limits = theirs.confidence_interval(0.95)
    assert ours.p_value == pytest.approx(theirs.pvalue)
    assert [ours.low, ours.high] == pytest.approx([limits.low, limits.high])
    assert ours.freedom == pytest.approx(theirs.df)


@pytest.mark.parametrize(
    ("a", "b", "p_value"),
    [
        pytest.param([1.0], [1.0, 2.0], math.nan, id="one score"),
        pytest.param([1.0, 1.0], [1.0, 1.0], 1.0, id="all equal"),
        pytest.param([1.0, 1.0], [2.0, 2.0], 2 / 6, id="no spread, 6 ways to divide 4"),
        pytest.param([0.0] * 3, [1.0] * 5, 2 / 56, id="no spread, 56 ways to divide 8"),
    ],
)
def test_welch_at_its_limits(a: list[float], b: list[float], p_value: float) -> None:
    assert welch_difference(a, b).p_value == pytest.approx(p_value, nan_ok=True)
