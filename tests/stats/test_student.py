"""Quantiles of Student's t equal those of scipy."""

from __future__ import annotations

import pytest
from scipy.special import stdtrit

from auepora_eval.stats.intervals import t_quantile

FREEDOMS = (1, 1.5, 2, 3.7, 9, 49, 199, 200.1, 999, 1_999.9, 2_000, 9_999, 1e6)
PROBABILITIES = (0.025, 0.51, 0.6, 0.9, 0.975, 0.995, 0.9995, 0.9999999)


@pytest.mark.parametrize("freedom", FREEDOMS)
@pytest.mark.parametrize("probability", PROBABILITIES)
def test_quantiles_equal_those_of_scipy(freedom: float, probability: float) -> None:
    assert t_quantile(freedom, probability) == pytest.approx(stdtrit(freedom, probability), rel=1e-12)
