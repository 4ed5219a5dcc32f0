"""Resamples in bulk, and sums by cluster."""

from __future__ import annotations

import numpy as np
import pytest

from auepora_eval.stats import resamples


def test_resamples_are_those_drawn_row_by_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """The product of counts is the mean of the rows picked, which is what a loop would do."""
    values = np.random.default_rng(1).normal(0.02, 1, (700, 3))
    rng = np.random.default_rng(7)
    picked = np.array([values[rng.integers(700, size=700)].mean(axis=0) for _ in range(50)])
    ones = np.ones_like(values)
    assert resamples.resampled_ratios(values, ones, resamples=50, seed=7) == pytest.approx(picked)
    monkeypatch.setattr(resamples, "CELLS_AT_ONCE", 5_000)
    assert resamples.resampled_ratios(values, ones, resamples=50, seed=7) == pytest.approx(picked)


def test_a_resample_without_any_score_is_not_a_number() -> None:
    sums = np.array([[1.0], [0.0], [0.0], [0.0]])
    ratios = resamples.resampled_ratios(sums, (sums > 0).astype(float), resamples=500, seed=0)[:, 0]
    assert np.isnan(ratios).mean() == pytest.approx(0.75**4, abs=0.07)
    assert (ratios[np.isfinite(ratios)] == 1.0).all()


def test_sums_by_unit() -> None:
    rows = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert resamples.summed_by_unit(rows, ["x", "y", "x"]).tolist() == [[6.0, 8.0], [3.0, 4.0]]
    assert resamples.summed_by_unit(rows, None) is rows
