"""McNemar's exact test between two detectors."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import binomtest

from auepora_eval.stats.significance import mcnemar_exact


@given(only_a=st.integers(0, 200), only_b=st.integers(0, 200))
@example(only_a=0, only_b=0)
def test_the_binomial_says_the_same(only_a: int, only_b: int) -> None:
    p_value = mcnemar_exact(only_a, only_b).p_value
    assert mcnemar_exact(only_b, only_a).p_value == p_value
    if not only_a + only_b:
        assert p_value == 1.0
    else:
        smaller = sum(math.comb(only_a + only_b, k) for k in range(min(only_a, only_b) + 1))
        expected = min(1.0, 2 * smaller / 2 ** (only_a + only_b))
        assert p_value == pytest.approx(expected)
        assert binomtest(only_a, only_a + only_b).pvalue == pytest.approx(expected)
