"""Calibration: by hand, and by scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve  # type: ignore[import-untyped]

from auepora_eval.stats.calibration import calibration_error


@pytest.mark.parametrize(
    ("scores", "labels", "bins", "error"),
    [
        pytest.param([1.0, 0.0], [1, 0], 10, 0.0, id="always right and sure"),
        pytest.param([1.0, 0.0], [0, 1], 10, 1.0, id="always wrong and sure"),
        pytest.param([0.5, 0.5], [1, 0], 10, 0.0, id="a coin that knows it is one"),
        pytest.param([0.9, 0.9, 0.1, 0.1], [1, 0, 0, 0], 10, 0.25, id="two bins: 0.4 and 0.1 off"),
        pytest.param([0.2, 0.8], [1, 0], 1, 0.0, id="one bin hides everything"),
        pytest.param([0.75], [0.5], 4, 0.25, id="two people of whom one says yes"),
    ],
)
def test_by_hand(scores: list[float], labels: list[float], bins: int, error: float) -> None:
    assert calibration_error(scores, labels, bins=bins) == pytest.approx(error)


@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=60), st.integers(1, 12))
@settings(deadline=None, max_examples=30)
def test_scikit_learn_says_the_same(rows: list[tuple[float, bool]], bins: int) -> None:
    scores, labels = np.array([score for score, _ in rows]), np.array([float(label) for _, label in rows])
    shares, means = calibration_curve(labels, scores, n_bins=bins, pos_label=1.0)
    counts = np.bincount(np.searchsorted(np.linspace(0, 1, bins + 1)[1:-1], scores), minlength=bins)
    gaps = counts[counts > 0] * np.abs(shares - means)
    assert calibration_error(scores, labels, bins=bins) == pytest.approx(gaps.sum() / len(rows))
