"""Two-parameter calibration: scikit-learn as judge, known parameters recovered, edges by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import _SigmoidCalibration  # type: ignore[import-untyped]

from auepora_eval.stats.calibration import Platt, calibration_error, fit_platt


def drawn(seed: int, n: int, slope: float, intercept: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    scores = rng.uniform(0.02, 0.98, n)
    return scores, (rng.random(n) < Platt(slope, intercept).chances(scores)).astype(float)


@pytest.mark.parametrize(("slope", "intercept"), [(1.0, 0.0), (0.4, -1.0), (2.0, 1.5)])
def test_scikit_learn_finds_the_same_parameters(slope: float, intercept: float) -> None:
    scores, labels = drawn(1, 400, slope, intercept)
    ours = fit_platt(scores, labels)
    theirs = _SigmoidCalibration().fit(np.log(scores / (1 - scores)), labels)
    # Its minimiser stops earlier than ours.
    assert ours.slope == pytest.approx(-theirs.a_, abs=2e-3)
    assert ours.intercept == pytest.approx(-theirs.b_, abs=2e-3)


def test_known_parameters_are_recovered() -> None:
    fitted = fit_platt(*drawn(2, 20_000, 0.5, -1.0))
    assert fitted == pytest.approx((0.5, -1.0), abs=0.06)


def test_a_hundred_labels_calibrate_a_score_that_is_far_off() -> None:
    scores, labels = drawn(3, 3_000, 0.3, -1.5)
    fitted = fit_platt(scores[:100], labels[:100])
    raw = calibration_error(scores[100:], labels[100:])
    assert raw > 0.2
    assert calibration_error(fitted.chances(scores[100:]), labels[100:]) < 0.08


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=40))
def test_the_order_stays_and_chances_are_chances(rows: list[tuple[float, float]]) -> None:
    scores, labels = zip(*rows, strict=True)
    chances = fit_platt(scores, labels).chances(np.sort(scores))
    assert np.all((chances >= 0) & (chances <= 1))
    assert np.all(np.diff(chances) >= -1e-12)
