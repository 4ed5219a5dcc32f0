"""Intervals: anchors from the literature, scipy as the judge, and the promise of 95% kept."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, bootstrap

from auepora_eval.stats.intervals import (
    bca_mean_interval,
    bca_mean_intervals,
    bootstrap_interval,
    mean_interval,
    quantile_interval,
    wilson_interval,
)


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [(4, 7, 0.250458, 0.841780), (0, 100, 0.0, 0.0370), (289, 300, 0.936, 0.979), (1, 3, 0.062, 0.792)],
)
def test_wilson_anchors(successes: int, n: int, low: float, high: float) -> None:
    interval = wilson_interval(successes, n)
    assert [interval.low, interval.high] == pytest.approx([low, high], abs=6e-4)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_equals_scipy(case: tuple[int, int]) -> None:
    successes, n = case
    theirs = binomtest(successes, n).proportion_ci(method="wilson")
    ours = wilson_interval(successes, n)
    assert ours.low == pytest.approx(theirs.low, abs=1e-12)
    assert ours.high == pytest.approx(theirs.high, abs=1e-12)


@pytest.mark.parametrize(("successes", "n"), [(-1, 5), (6, 5), (0, 0)])
def test_a_share_that_cannot_be_is_refused(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="not a share"):
        wilson_interval(successes, n)


def test_scores_of_0_and_1_get_wilson() -> None:
    values = np.array([1.0, 0.0, 1.0, 1.0])
    assert mean_interval(values) == wilson_interval(3, 4)


@pytest.mark.parametrize("seed", range(5))
def test_bca_of_a_mean_agrees_with_scipy(seed: int) -> None:
    values = np.random.default_rng(seed).beta(0.5, 2.0, size=80)
    ours = mean_interval(values, resamples=20_000)
    theirs = bootstrap(
        (values,), np.mean, n_resamples=20_000, method="BCa", rng=np.random.default_rng(1)
    ).confidence_interval
    assert ours is not None
    width = theirs.high - theirs.low
    assert ours.low == pytest.approx(theirs.low, abs=0.03 * width)
    assert ours.high == pytest.approx(theirs.high, abs=0.03 * width)


@pytest.mark.parametrize("seed", range(3))
def test_the_closed_form_is_as_near_to_bca_as_another_seed_of_it(seed: int) -> None:
    values = np.random.default_rng(seed).beta(0.3, 3.0, size=3_000)
    closed = mean_interval(values)
    drawn = bootstrap((values,), np.mean, n_resamples=9_000, method="BCa", rng=np.random.default_rng(2))
    assert closed is not None
    assert "closed form" in closed.method
    theirs = drawn.confidence_interval
    width = theirs.high - theirs.low
    assert abs(closed.low - theirs.low) < 0.03 * width
    assert abs(closed.high - theirs.high) < 0.03 * width


def test_the_interval_holds_what_it_promises() -> None:
    """Of 300 samples of 40 skewed scores, about 95% of the intervals must hold the true mean of 0.2."""
    rng = np.random.default_rng(7)
    held = 0
    for _ in range(300):
        interval = mean_interval(rng.beta(0.5, 2.0, size=40), resamples=500)
        assert interval is not None
        held += interval.low <= 0.2 <= interval.high
    assert 0.89 <= held / 300 <= 0.99


def test_clusters_widen_the_interval() -> None:
    rng = np.random.default_rng(3)
    values = np.repeat(rng.random(30), 5)  # five equal scores a cluster: 30 facts, not 150
    clusters = np.repeat(np.arange(30), 5).tolist()
    naive, honest = mean_interval(values), mean_interval(values, clusters=clusters)
    assert naive is not None
    assert honest is not None
    assert (honest.high - honest.low) / (naive.high - naive.low) == pytest.approx(5**0.5, rel=0.1)
    assert "30 clusters" in honest.method


def test_clusters_of_0_and_1_count_as_what_they_are_worth() -> None:
    values = np.repeat([1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0] * 6, 4)
    clusters = np.repeat(np.arange(60), 4).tolist()
    interval = mean_interval(values, clusters=clusters)
    assert interval is not None
    assert "effective n 59.0" in interval.method  # 60 clusters, less the degree of freedom of their mean
    alone = wilson_interval(0.7 * 59, 59)
    assert [interval.low, interval.high] == pytest.approx([alone.low, alone.high])


def test_clusters_that_are_all_right_count_once_each() -> None:
    interval = mean_interval(np.ones(40), clusters=np.repeat(np.arange(10), 4).tolist())
    assert interval is not None
    assert interval.low == pytest.approx(wilson_interval(10, 10).low)


def test_equal_scores_do_not_pretend_to_be_certain() -> None:
    interval = mean_interval(np.full(20, 0.5), bounds=(0.0, 1.0))
    assert interval is not None
    unseen = binomtest(20, 20).proportion_ci(method="exact").low  # at least this share is like what was seen
    assert interval.low == pytest.approx(0.5 * unseen)
    assert interval.high == pytest.approx(1 - 0.5 * unseen)
    assert mean_interval(np.full(20, 0.5)) is None  # unbounded: nothing can be said


@pytest.mark.parametrize("values", [[], [0.3]])
def test_too_few_scores_have_no_interval(values: list[float]) -> None:
    assert mean_interval(np.array(values)) is None


def test_the_same_seed_gives_the_same_interval_and_another_another() -> None:
    values = np.random.default_rng(0).random(50)
    assert mean_interval(values, seed=1) == mean_interval(values, seed=1)
    assert mean_interval(values, seed=1) != mean_interval(values, seed=2)


def test_any_aggregate_can_be_resampled() -> None:
    rows = np.random.default_rng(0).random((60, 2))

    def ratio(
        stack: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    ) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return np.asarray(stack[..., 0].sum(axis=-1) / stack[..., 1].sum(axis=-1))

    ours = bootstrap_interval(rows, ratio, resamples=10_000)
    theirs = bootstrap(
        (rows[:, 0], rows[:, 1]),
        lambda a, b, axis: a.sum(axis=axis) / b.sum(axis=axis),
        paired=True,
        n_resamples=9_999,
        method="BCa",
        rng=np.random.default_rng(1),
    ).confidence_interval
    assert ours is not None
    width = theirs.high - theirs.low
    assert [ours.low, ours.high] == pytest.approx([theirs.low, theirs.high], abs=0.05 * width)
    by_cluster = bootstrap_interval(rows, ratio, clusters=[n // 2 for n in range(60)])
    assert by_cluster is not None
    assert "by cluster" in by_cluster.method


def test_differences_of_0_and_1_are_not_mistaken_for_a_share() -> None:
    interval = bca_mean_interval(np.array([0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]))
    assert interval is not None
    assert "BCa" in interval.method


@pytest.mark.parametrize(("q", "n"), [(0.95, 72), (0.99, 368), (0.5, 6)])
def test_a_quantile_needs_enough_values(q: float, n: int) -> None:
    assert quantile_interval(np.arange(n - 1, dtype=float), q) is None
    assert quantile_interval(np.arange(n, dtype=float), q) is not None


def test_the_quantile_interval_holds_what_it_promises() -> None:
    rng = np.random.default_rng(5)
    truth = float(np.log(20))  # p95 of the exponential distribution: -ln(0.05)
    intervals = [quantile_interval(rng.exponential(size=150), 0.95) for _ in range(400)]
    held = sum(interval is not None and interval.low <= truth <= interval.high for interval in intervals)
    assert 0.93 <= held / 400 <= 0.995


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=30))
def test_an_interval_of_scores_stays_within_their_range(values: list[float]) -> None:
    interval = mean_interval(np.array(values), bounds=(0.0, 1.0), resamples=200)
    assert interval is not None
    assert -1e-9 <= interval.low <= interval.high <= 1 + 1e-9


@pytest.mark.parametrize("kind", ["few values", "many values"])
@pytest.mark.parametrize("seed", range(3))
def test_many_columns_agree_with_scipy_one_by_one(kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = rng.beta(0.5, 2.0, (120, 3)) if kind == "many values" else rng.integers(0, 4, (120, 3)) / 3
    found = bca_mean_intervals(columns, resamples=20_000)
    for values, ours in zip(columns.T, found, strict=True):
        theirs = bootstrap(
            (values,), np.mean, n_resamples=20_000, method="BCa", rng=np.random.default_rng(1)
        ).confidence_interval
        assert ours is not None
        near = 0.04 * (theirs.high - theirs.low)
        assert [ours.low, ours.high] == pytest.approx([theirs.low, theirs.high], abs=near)


def test_bca_is_scipys_to_the_last_digits_with_the_same_draws() -> None:
    """scipy draws whole numbers row by row, as we do: the same generator gives the same resamples."""
    values = np.random.default_rng(6).beta(0.5, 2.0, 90)
    theirs = bootstrap(
        (values,), np.mean, n_resamples=2_000, method="BCa", rng=np.random.default_rng(0)
    ).confidence_interval
    ours = bca_mean_interval(values, seed=0)
    assert ours is not None
    assert [ours.low, ours.high] == pytest.approx([theirs.low, theirs.high], abs=1e-7)


def test_columns_do_not_know_of_each_other() -> None:
    rng = np.random.default_rng(2)
    columns = np.stack([rng.random(200), rng.integers(0, 2, 200).astype(float), rng.random(200)], axis=1)
    together = bca_mean_intervals(columns)
    for place in range(3):
        alone = bca_mean_interval(columns[:, place])
        mine = together[place]
        assert alone is not None
        assert mine is not None
        assert [mine.low, mine.high] == pytest.approx([alone.low, alone.high], abs=1e-12)


def test_a_score_that_is_not_there_does_not_count() -> None:
    rng = np.random.default_rng(8)
    values = rng.beta(2, 3, 150)
    gaps = np.concatenate([values, np.full(50, np.nan)])
    full = np.concatenate([values, rng.random(50)])
    found = bca_mean_intervals(np.stack([gaps, full], axis=1), resamples=8_000)[0]
    alone = bca_mean_interval(values, resamples=8_000)
    assert found is not None
    assert alone is not None
    near = 0.05 * (alone.high - alone.low)
    assert [found.low, found.high] == pytest.approx([alone.low, alone.high], abs=near)
    assert bca_mean_intervals(np.full((4, 1), np.nan)) == [None]


def test_many_clusters_have_a_closed_form_too() -> None:
    rng = np.random.default_rng(5)
    clusters = rng.integers(0, 2_500, 6_000).tolist()
    values = (rng.random(2_500)[clusters] + rng.random(6_000)).reshape(-1, 1)
    [closed] = bca_mean_intervals(values, clusters=clusters)
    [drawn] = bca_mean_intervals(values, clusters=clusters, draws_up_to=10_000)
    assert closed is not None
    assert drawn is not None
    assert "closed form" in closed.method
    assert "by cluster" in drawn.method
    near = 0.04 * (drawn.high - drawn.low)
    assert [closed.low, closed.high] == pytest.approx([drawn.low, drawn.high], abs=near)
