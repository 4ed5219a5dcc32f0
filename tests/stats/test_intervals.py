"""Intervals: examples by hand, the literature as judge, and what must always hold of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.stats.classification import (
    balanced_accuracy,
    class_counts,
    macro_f1,
    macro_f1_supported,
    table_interval,
)
from auepora_eval.stats.intervals import (
    mean_change_interval,
    mean_interval,
    mean_units,
    plus_two,
)

SCALE = (0.0, 1.0)


@pytest.mark.parametrize(
    ("scores", "low", "high"),
    [
        pytest.param([1.0] * 50, 0.942, 1.0, id="all right"),
        pytest.param([0.5] * 20, 0.431, 0.569, id="all alike"),
        pytest.param([0.5, 0.51], 0.0, 1.0, id="two samples"),
        pytest.param([1.0] * 4 + [0.0] * 3, 0.126, 0.985, id="four of seven"),
    ],
)
def test_intervals_of_values(scores: list[float], low: float, high: float) -> None:
    interval = mean_interval(np.array(scores), bounds=SCALE)
    assert interval is not None
    assert interval[:2] == pytest.approx((low, high), abs=1e-3)


def test_a_change_of_shares_is_that_of_bonett_and_price() -> None:
    """26 wins and 4 losses of 48: they print .44 and, with n in the variance, an error of .0945."""
    gains = np.repeat([1.0, -1.0, 0.0], [26, 4, 18])
    middle, error, freedom = plus_two(mean_units(gains), -1.0, 1.0)
    assert float(middle) == pytest.approx(0.44)
    assert freedom == 47
    assert float(error) * math.sqrt(49 / 50) == pytest.approx(0.0945, abs=5e-5)


def test_no_change_on_fifty_samples() -> None:
    interval = mean_change_interval(np.zeros(50))
    assert interval is not None
    assert interval[:2] == pytest.approx((-0.055, 0.055), abs=5e-4)


@pytest.mark.parametrize(("units", "excludes_0"), [(5, False), (6, True)])
def test_equal_gains_are_as_clear_as_a_sign_test_says(units: int, excludes_0: bool) -> None:
    interval = mean_change_interval(np.full(units, 0.2))
    assert interval is not None
    assert (interval.low > 0) == excludes_0


def test_scores_that_vary_show_how_far_they_reach() -> None:
    """From 21 samples on the imaginary scores lie beside the scores, not at the ends of the scale."""
    scores = np.linspace(0.7, 0.8, 40)
    interval = mean_interval(scores, bounds=SCALE)
    assert interval is not None
    assert interval.low > 0.73
    # With fewer than twenty that differ from the others, the ends are taken.
    mostly_equal = mean_interval(np.concatenate([np.full(21, 0.75), scores[:19]]), bounds=SCALE)
    assert mostly_equal is not None
    assert mostly_equal.low < 0.71


def test_equal_scores_without_bounds_have_no_interval() -> None:
    assert mean_interval(np.full(20, 0.1)) is None
    assert mean_interval(np.full(20, 0.1), bounds=(0.0, math.inf)) is not None


def test_clusters_are_left_out_whole() -> None:
    scores = np.repeat(np.random.default_rng(3).random(30), 5)  # five equal scores each: 30 facts, not 150
    clusters = np.repeat(np.arange(30), 5).tolist()
    alone, clustered = (
        mean_interval(one, bounds=SCALE, clusters=by) for one, by in ((scores[::5], None), (scores, clusters))
    )
    assert alone is not None
    assert clustered is not None
    assert clustered[:2] == pytest.approx(alone[:2])
    assert clustered.method == "Student's t, plus two, 30 clusters"


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=40))
def test_an_interval_holds_the_value_and_stays_within_the_scale(scores: list[float]) -> None:
    values = np.array(scores)
    interval = mean_interval(values, bounds=SCALE)
    assert interval is not None
    assert 0 <= interval.low <= values.mean() + 1e-9
    assert values.mean() - 1e-9 <= interval.high <= 1


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=40))
def test_the_interval_of_a_change_holds_the_change(gains: list[float]) -> None:
    values = np.array(gains)
    interval = mean_change_interval(values)
    assert interval is not None
    assert interval.low <= values.mean() + 1e-9
    assert values.mean() - 1e-9 <= interval.high


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=2, max_size=8))
@settings(deadline=None, max_examples=200)
def test_intervals_of_few_labels_stay_within_the_scale(labels: list[tuple[int, int]]) -> None:
    """Slices are small, and a sample left out may take a whole class with it."""
    cells = np.zeros((len(labels), 9))
    cells[np.arange(len(labels)), [3 * true + predicted for true, predicted in labels]] = 1
    for statistic in (macro_f1, macro_f1_supported, balanced_accuracy):
        interval = table_interval(cells, lambda table, of=statistic: of(class_counts(table)))  # type: ignore[misc]
        value = float(statistic(class_counts(cells.sum(axis=0).reshape(3, 3))))
        if interval is not None:
            assert 0 <= interval.low <= value <= interval.high <= 1
