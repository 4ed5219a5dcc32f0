"""Aggregates that need sums only: the quick way gives what the slow one gives."""

from __future__ import annotations

import numpy as np
import pytest

from auepora_eval.core.metrics_base import METRICS, SampleMetric
from auepora_eval.core.scores import Batch
from auepora_eval.metrics.parse import parse_metric
from auepora_eval.stats.intervals import aggregate_units
from auepora_eval.stats.significance import paired_swap_test
from tests.builders import small_world

OF_SUMS = [name for name in METRICS if METRICS.get(name).of_sums]


def ratio(rows: np.ndarray) -> np.ndarray:
    return np.asarray(rows[..., 0].sum(axis=-1) / rows[..., 1].sum(axis=-1))


def two() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.random((60, 2)) + 0.1, rng.random((60, 2)) + 0.12


@pytest.mark.parametrize("name", OF_SUMS)
def test_one_row_of_sums_says_what_all_rows_say(name: str) -> None:
    metric = parse_metric(name)
    assert isinstance(metric, SampleMetric)
    rows = metric.score_batch(Batch(*small_world())).rows()
    if not len(rows):
        pytest.skip("nothing to score in the small world")
    whole, summed = metric.aggregate(rows), metric.aggregate(rows.sum(axis=0, keepdims=True))
    assert float(summed) == pytest.approx(float(whole), nan_ok=True)


@pytest.mark.parametrize("clustered", [False, True])
def test_the_interval_is_the_same(clustered: bool) -> None:
    rows, _ = two()
    clusters = [str(n // 4) for n in range(60)] if clustered else None
    quick = aggregate_units(rows, ratio, clusters=clusters, of_sums=True)
    slow = aggregate_units(rows, ratio, clusters=clusters)
    assert quick.method == slow.method
    assert quick.freedom == slow.freedom
    assert quick.numbers == pytest.approx(slow.numbers, abs=1e-9)


@pytest.mark.parametrize("clustered", [False, True])
def test_the_test_is_the_same(clustered: bool) -> None:
    a, b = two()
    clusters = [str(n // 4) for n in range(60)] if clustered else None
    quick = paired_swap_test(a, b, ratio, clusters=clusters, of_sums=True, resamples=8_000)
    slow = paired_swap_test(a, b, ratio, clusters=clusters, resamples=8_000)
    assert quick.statistic == slow.statistic
    assert quick.p_value == pytest.approx(slow.p_value, abs=0.03)


def test_what_is_not_finite_goes_the_slow_way() -> None:
    a, b = two()
    a[0, 1] = np.inf
    quick, slow = (aggregate_units(a, ratio, of_sums=of_sums) for of_sums in (True, False))
    assert quick.numbers.tolist() == slow.numbers.tolist()
    assert paired_swap_test(a, b, ratio, of_sums=True) == paired_swap_test(a, b, ratio)
