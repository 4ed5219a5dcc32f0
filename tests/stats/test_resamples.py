"""Draws: the same whatever is beside them, however they are cut into blocks, and by any number of threads."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from auepora_eval.stats import resamples as drawing
from auepora_eval.stats.intervals import bca_mean_intervals
from auepora_eval.stats.significance import sign_flip_tests

SCRIPT = """
import numpy as np
from auepora_eval.stats.intervals import bca_mean_intervals
from auepora_eval.stats.significance import sign_flip_tests
rng = np.random.default_rng(0)
columns = np.concatenate([rng.normal(0.01, 1, (1500, 6)), rng.integers(0, 4, (1500, 2)) / 3], axis=1)
print(bca_mean_intervals(columns), sign_flip_tests(columns, resamples=3_000))
"""


def columns() -> np.ndarray:
    rng = np.random.default_rng(1)
    return np.stack([rng.normal(0.02, 1, 700), 1e9 + rng.random(700), rng.integers(0, 3, 700) / 3], axis=1)


def test_the_number_of_threads_changes_nothing() -> None:
    said = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2")
    }
    assert len(said) == 1


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = (bca_mean_intervals(columns()), sign_flip_tests(columns(), resamples=2_000))
    monkeypatch.setattr(drawing, "CELLS_AT_ONCE", 5_000)
    assert (bca_mean_intervals(columns()), sign_flip_tests(columns(), resamples=2_000)) == whole


def test_resamples_are_those_drawn_row_by_row() -> None:
    """The product of counts is the mean of the rows picked, which is what a loop would do."""
    values = columns()
    rng = np.random.default_rng(7)
    picked = np.array([values[rng.integers(700, size=700)].mean(axis=0) for _ in range(50)])
    ours = drawing.resampled_ratios(values, np.ones_like(values), resamples=50, seed=7, together=True)
    assert ours == pytest.approx(picked, rel=1e-11)


def test_few_values_are_drawn_as_often_as_they_should() -> None:
    values = np.repeat([0.0, 0.25, 1.0], [50, 30, 20]).reshape(-1, 1)
    drawn = drawing.resampled_ratios(values, np.ones_like(values), resamples=20_000, seed=0)[:, 0]
    assert drawn.mean() == pytest.approx(values.mean(), abs=0.001)
    assert drawn.std() == pytest.approx(values.std() / 10, rel=0.03)


def test_a_resample_without_any_score_is_not_a_number() -> None:
    sums = np.array([[1.0], [0.0], [0.0], [0.0]])
    drawn = drawing.resampled_ratios(sums, (sums > 0).astype(float), resamples=500, seed=0)[:, 0]
    assert np.isnan(drawn).mean() == pytest.approx(0.75**4, abs=0.07)
    assert (drawn[np.isfinite(drawn)] == 1.0).all()


def test_sums_by_unit() -> None:
    rows = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    assert drawing.summed_by_unit(rows, ["x", "y", "x"]).tolist() == [[6.0, 8.0], [3.0, 4.0]]
    assert drawing.summed_by_unit(rows, None) is rows
