"""Corrections for many questions: the anchors by hand, statsmodels and scipy as judges."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control
from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

from auepora_eval.stats.significance import benjamini_hochberg, holm


@pytest.mark.full
@settings(max_examples=20, deadline=None)  # statsmodels takes its time
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_the_judges_agree(p_values: list[float]) -> None:
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1].tolist())
    assert benjamini_hochberg(p_values) == pytest.approx(false_discovery_control(p_values).tolist())
