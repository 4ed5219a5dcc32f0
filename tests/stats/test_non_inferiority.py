"""Margins: statsmodels as judge, and the false alarms counted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from auepora_eval.stats.margins import non_inferiority_test


@pytest.mark.parametrize("seed", range(6))
def test_the_judges_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = rng.random(30)
    b = a + rng.normal(0.02, 0.1, 30)
    one_sided = ttest_1samp(b - a, -0.05, alternative="greater").pvalue
    assert non_inferiority_test(b - a, 0.05).p_value == pytest.approx(one_sided)


def test_clusters_count_once() -> None:
    rng = np.random.default_rng(0)
    repeated = np.repeat(rng.normal(0.0, 0.1, 20), 5)
    clusters = np.repeat(np.arange(20), 5).tolist()
    honest = non_inferiority_test(repeated, 0.03, clusters=clusters).p_value
    assert honest == pytest.approx(non_inferiority_test(repeated[::5], 0.03).p_value)
    assert non_inferiority_test(repeated, 0.03).p_value < honest


def test_exactly_at_the_margin_it_is_called_no_worse_as_often_as_alpha_says() -> None:
    rng = np.random.default_rng(5)
    called = sum(non_inferiority_test(rng.normal(-0.1, 1, 40), 0.1).p_value < 0.05 for _ in range(1_000))
    assert 0.03 <= called / 1_000 <= 0.07


def test_edges() -> None:
    assert math.isnan(non_inferiority_test([0.1], 0.05).p_value)
    assert non_inferiority_test([0.0, 0.0], 0.05).p_value == 0.0
    with pytest.raises(ValueError, match="margin is positive"):
        non_inferiority_test([0.0, 1.0], 0.0)
