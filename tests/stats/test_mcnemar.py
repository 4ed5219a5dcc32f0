"""McNemar's exact test between two detectors."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from auepora_eval.stats.significance import mcnemar_exact


@pytest.mark.parametrize(
    ("only_a", "only_b", "p_value"),
    [
        pytest.param(0, 0, 1.0, id="no sample differs"),
        pytest.param(3, 3, 1.0, id="even"),
        pytest.param(0, 5, 2 / 32, id="five coins on one side"),
        pytest.param(1, 9, 22 / 1024, id="at most one of ten"),
        pytest.param(2, 5, 0.453125, id="two against five"),
    ],
)
def test_coins(only_a: int, only_b: int, p_value: float) -> None:
    assert mcnemar_exact(only_a, only_b).p_value == pytest.approx(p_value)
    assert mcnemar_exact(only_b, only_a).p_value == pytest.approx(p_value)


@given(only_a=st.integers(0, 200), only_b=st.integers(0, 200))
def test_the_binomial_says_the_same(only_a: int, only_b: int) -> None:
    if only_a + only_b:
        smaller = sum(math.comb(only_a + only_b, k) for k in range(min(only_a, only_b) + 1))
        expected = min(1.0, 2 * smaller / 2 ** (only_a + only_b))
        assert mcnemar_exact(only_a, only_b).p_value == pytest.approx(expected)
        assert binomtest(only_a, only_a + only_b).pvalue == pytest.approx(expected)
