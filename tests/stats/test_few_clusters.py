"""Few clusters: the promise of 95% kept by simulation, and what a reader can check by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import t, ttest_1samp

from auepora_eval.stats.intervals import (
    Interval,
    bca_mean_interval,
    bca_mean_intervals,
    bootstrap_interval,
    careful_error,
    clusters_worth,
    errors_wide,
    mean_interval,
    standard_error,
    wilson_interval,
)

RUNS = 300
EQUAL = {count: [20] * count for count in (2, 3, 5, 10, 30)}
UNEQUAL = {3: [4, 10, 40], 5: [3, 6, 12, 25, 40], 11: [90] + [1] * 10}
SIZES = [pytest.param(sizes, id=f"{len(sizes)} equal") for sizes in EQUAL.values()]
SIZES += [pytest.param(sizes, id=f"{len(sizes)} unequal") for sizes in UNEQUAL.values()]


def clustered(sizes: list[int]) -> list[int]:
    return np.repeat(np.arange(len(sizes)), sizes).tolist()


def held(intervals: list[Interval | None], truth: float) -> float:
    return float(np.mean([one is not None and one.low <= truth <= one.high for one in intervals]))


@pytest.mark.parametrize("sizes", SIZES)
def test_differences_of_clustered_samples_are_held(sizes: list[int]) -> None:
    """A bootstrap by cluster holds the truth in 50, 75, 83 and 91 of 100 runs of 2, 3, 5 and 10 clusters."""
    rng, clusters = np.random.default_rng(0), clustered(sizes)
    effects = rng.normal(0, 0.2, (len(sizes), RUNS))
    gains = effects[clusters] + rng.normal(0, 0.3, (len(clusters), RUNS))
    found = bca_mean_intervals(gains, clusters=clusters, resamples=100)
    assert held(found, 0.0) >= 0.92


@pytest.mark.parametrize("sizes", SIZES)
def test_shares_of_clustered_samples_are_held(sizes: list[int]) -> None:
    rng, clusters = np.random.default_rng(1), clustered(sizes)
    rates = rng.beta(2.1, 0.9, (RUNS, len(sizes)))
    right = (rng.random((RUNS, len(clusters))) < rates[:, clusters]).astype(float)
    found = [mean_interval(one, clusters=clusters, bounds=(0.0, 1.0)) for one in right]
    assert held(found, 0.7) >= 0.92
    assert all(one is not None and 0 <= one.low <= one.high <= 1 for one in found)


def test_aggregates_of_clustered_samples_are_held() -> None:
    """A ratio of two sums, in 5 clusters of different size."""
    rng, clusters = np.random.default_rng(2), clustered(UNEQUAL[5])
    found = []
    for _ in range(RUNS):
        weight = rng.uniform(0.5, 1.5, len(clusters))
        rows = np.stack([weight * (1 + rng.normal(0, 0.2, 5)[clusters]), weight], axis=1)
        found.append(bootstrap_interval(rows, _ratio, clusters=clusters, of_sums=True, resamples=100))
    assert held(found, 1.0) >= 0.92


def _ratio(rows: Any) -> Any:
    return rows[..., 0].sum(axis=-1) / rows[..., 1].sum(axis=-1)


def test_equal_clusters_have_students_interval() -> None:
    """Of equal clusters the interval is that of a t-test on their means, unless a bootstrap's is wider."""
    means = np.array([0.2, 0.5, 0.9])
    found = bca_mean_interval(np.repeat(means, 4), clusters=clustered([4] * 3))
    expected = ttest_1samp(means, 0.0).confidence_interval()
    assert found is not None
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.method.startswith("wider of t and BCa bootstrap by cluster")
    assert found.method.endswith("3 clusters")


def test_two_clusters_tell_next_to_nothing() -> None:
    gains = np.array([-0.08] * 50 + [-0.06] * 50)
    found = bca_mean_interval(gains, clusters=clustered([50, 50]))
    assert found is not None
    assert found.low == pytest.approx(-0.07 - 12.706 * 0.01, abs=1e-4)
    assert found.high > 0


def test_one_large_cluster_is_not_a_hundred_samples() -> None:
    """90 samples of one conversation and 10 others: Wilson of 100 would be [0.61, 0.79]."""
    right = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0] * 10)
    alone = wilson_interval(70, 100)
    found = mean_interval(right, clusters=clustered([90] + [1] * 10), bounds=(0.0, 1.0))
    assert found is not None
    assert found.high - found.low > 2 * (alone.high - alone.low)


def test_few_clusters_of_0_and_1_are_worth_less_by_student() -> None:
    """Ten clusters, less the degree of freedom of their mean, times (1.96 / 2.262)²."""
    right = np.repeat([1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0], 4)
    found = mean_interval(right, clusters=clustered([4] * 10))
    assert found is not None
    assert "10 clusters, effective n 6.8" in found.method


def test_what_clusters_are_worth() -> None:
    assert clusters_worth([5, 5, 5]) == 3
    assert clusters_worth([90] + [1] * 10) == pytest.approx(100**2 / (8100 + 10))
    assert errors_wide(None) == pytest.approx(1.96, abs=1e-3)
    assert errors_wide(clustered([2] * 60)) == pytest.approx(1.96, abs=1e-3)
    assert errors_wide(clustered([2] * 5)) == pytest.approx(float(t.ppf(0.975, 4)))


def test_the_error_of_a_mean_that_is_mostly_one_cluster() -> None:
    """Equal clusters have the usual error; without the large one the mean would be 0, compared with 0.9."""
    values = np.array([1.0] * 90 + [0.0] * 10)
    sizes = [90] + [1] * 10
    left_out = np.array([0.0] + [90 / 99] * 10)
    by_hand = np.sqrt(10 / 11 * ((left_out - 0.9) ** 2).sum())
    assert careful_error(values, clusters=clustered(sizes)) == pytest.approx(by_hand)
    assert standard_error(values, clusters=clustered(sizes)) < 0.2 * by_hand
    equal = np.random.default_rng(5).random(20)
    assert careful_error(equal, clusters=clustered([4] * 5)) == pytest.approx(
        standard_error(equal, clusters=clustered([4] * 5))
    )
    assert careful_error(equal) == standard_error(equal)


def test_limits_stay_within_what_can_be() -> None:
    values = np.array([0.1] * 5 + [0.9] * 5)
    found = mean_interval(values, clusters=clustered([5, 5]), bounds=(0.0, 1.0))
    assert found is not None
    assert (found.low, found.high) == (0.0, 1.0)


def test_many_clusters_are_drawn_as_before() -> None:
    values = np.random.default_rng(3).random(120)
    found = bca_mean_interval(values, clusters=clustered([2] * 60))
    assert found is not None
    assert found.method.startswith("BCa bootstrap by cluster")
