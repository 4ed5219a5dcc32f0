"""Agreement: figures a reader can check, reference packages as the judges, gaps, draws as weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score  # type: ignore[import-untyped]

from auepora_eval.stats import agreement as a
from auepora_eval.stats.intervals import aggregate_units, value_interval

DATA = Path(__file__).parents[3] / "shared" / "data"
NAN = math.nan
LEVELS: tuple[a.Level, ...] = ("nominal", "ordinal", "interval")


@pytest.mark.parametrize(
    ("rows", "kappa"),
    [
        # 20 yes-yes, 5 yes-no, 10 no-yes, 15 no-no: observed .7, by chance .5
        pytest.param([(1, 1)] * 20 + [(1, 0)] * 5 + [(0, 1)] * 10 + [(0, 0)] * 15, 0.4, id="a table"),
        pytest.param([(1, 1), (0, 0)], 1.0, id="always the same"),
        pytest.param([(1, 0), (0, 1)], -1.0, id="never the same"),
        pytest.param([(1, 1), (0, 0), (1, NAN), (NAN, NAN)], 1.0, id="gaps are left out"),
        pytest.param([(1, 1), (1, 1)], NAN, id="one category: chance explains it all"),
        pytest.param([(1, NAN), (NAN, 0)], NAN, id="no item in common"),
    ],
)
def test_cohen_by_hand(rows: list[tuple[float, float]], kappa: float) -> None:
    assert float(a.cohen_kappa(np.array(rows))[0]) == pytest.approx(kappa, nan_ok=True)


def test_cohen_of_three_is_the_mean_of_the_pairs() -> None:
    ratings = np.array([(0, 0, 1), (1, 1, 1), (0, 0, 0), (1, 1, 0.0)])
    # the first two agree always; each of them agrees with the third on half, which is chance
    assert float(a.cohen_kappa(ratings)[0]) == pytest.approx((1 + 0 + 0) / 3)


def table(low: int = 2, high: int = 4, *, gaps: bool) -> st.SearchStrategy[Any]:
    """Items by raters."""
    rating = st.integers(0, 3).map(float) | (st.just(NAN) if gaps else st.nothing())
    return st.integers(low, high).flatmap(
        lambda raters: st.lists(
            st.lists(rating, min_size=raters, max_size=raters), min_size=2, max_size=25
        ).map(np.array)
    )


@pytest.mark.parametrize("level", LEVELS)
@given(ratings=table(gaps=True))
@settings(max_examples=80, deadline=None)
def test_krippendorff_agrees(level: a.Level, ratings: Any) -> None:
    rated_twice = ratings[(~np.isnan(ratings)).sum(axis=1) >= 2]
    different = len(np.unique(rated_twice[~np.isnan(rated_twice)]))
    found = float(a.krippendorff_alpha(ratings, level=level)[0])
    if different < 2:
        assert math.isnan(found)
    else:
        assert found == pytest.approx(
            krippendorff.alpha(reliability_data=ratings.T, level_of_measurement=level)
        )


@given(scale=st.sampled_from([1e-6, 1.0, 1e6]), shift=st.sampled_from([0.0, 1e6]), ratings=table(gaps=True))
@settings(max_examples=40, deadline=None)
def test_units_do_not_matter(scale: float, shift: float, ratings: Any) -> None:
    for level in ("interval", "ordinal"):
        one, other = (a.krippendorff_alpha(r, level=level)[0] for r in (ratings, ratings * scale + shift))
        assert float(other) == pytest.approx(float(one), nan_ok=True, abs=1e-3)


@pytest.mark.filterwarnings("ignore")  # both warn where chance explains it all
@given(ratings=table(gaps=False))
@settings(max_examples=80, deadline=None)
def test_scikit_learn_agrees(ratings: Any) -> None:
    assume(len(np.unique(ratings)) > 1)
    two = ratings[:, :2]
    assert float(a.cohen_kappa(two)[0]) == pytest.approx(cohen_kappa_score(*two.T.astype(int)), nan_ok=True)


STATISTICS = list(a._STATISTICS)


@pytest.mark.parametrize("name", STATISTICS)
@given(ratings=table(gaps=True), data=st.data())
@settings(max_examples=40, deadline=None)
def test_a_weight_is_how_often_an_item_counts(name: a.Statistic, ratings: Any, data: Any) -> None:
    draws = data.draw(st.lists(st.lists(st.integers(0, 3), min_size=len(ratings), max_size=len(ratings))))
    statistic: Callable[..., Any] = a._STATISTICS[name]
    stacked = statistic(ratings, np.array(draws, dtype=float).reshape(-1, len(ratings)))
    for draw, value in zip(draws, stacked, strict=True):
        repeated = np.repeat(ratings, draw, axis=0)
        assert float(value) == pytest.approx(float(statistic(repeated)[0]), nan_ok=True, abs=1e-9)


@pytest.mark.parametrize("name", STATISTICS)
def test_the_interval_is_that_of_leaving_out_items_one_by_one(name: a.Statistic) -> None:
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 4, size=(60, 1))
    ratings = np.clip(truth + rng.choice([-1, 0, 0, 0, 1], size=(60, 3)), 0, 3).astype(np.float64)
    found = a.agreement(ratings, name)
    statistic = a._STATISTICS[name]

    plain = value_interval(aggregate_units(ratings, lambda rows: statistic(rows)[0]), (-1.0, 1.0))
    assert found.interval is not None
    assert plain is not None
    assert found.interval.low < found.value < found.interval.high
    assert found.interval[:2] == pytest.approx(plain[:2])
    assert found.items == 60


def test_items_of_one_cluster_are_left_out_together() -> None:
    rng = np.random.default_rng(0)
    ratings = np.repeat(rng.integers(0, 2, size=(30, 2)), 4, axis=0).astype(np.float64)
    alone = a.agreement(ratings, "krippendorff_alpha_nominal").interval
    together = a.agreement(ratings, "krippendorff_alpha_nominal", clusters=list(np.repeat(range(30), 4)))
    assert alone is not None
    assert together.interval is not None
    assert together.interval.high - together.interval.low > 1.6 * (alone.high - alone.low)


@pytest.mark.parametrize("name", STATISTICS)
def test_people_who_all_agree_may_not_do_so_always(name: a.Statistic) -> None:
    found = a.agreement(np.array([(1.0, 1.0), (0.0, 0.0)] * 9), name)
    assert found.value == 1.0
    assert found.interval is not None
    assert 0.6 < found.interval.low < 0.9
    assert found.interval.high == 1.0
