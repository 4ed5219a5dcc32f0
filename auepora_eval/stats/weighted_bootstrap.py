"""The bootstrap as weights: a resample is how often each item was drawn.

Where a statistic is made of sums over items, a thousand resamples are then one product of matrices, and no
item is ever copied. `bootstrap_interval` (intervals.py) is for aggregates that need the rows themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .arrays import Array, Indices
from .intervals import (
    CLOSED_FORM_ABOVE,
    NORMAL_ABOVE,
    RESAMPLES,
    Interval,
    bca_from_draws,
    normal_quantile,
)
from .resamples import CELLS_AT_ONCE, count_vectors, numbered

if TYPE_CHECKING:
    from scipy.sparse import csr_array


LEAST_UNITS = 5  # four give only 35 different resamples: too few to speak of 95% of them
Weighted = Callable[["Array"], "Array"]  # (resamples, items) weights -> (resamples,) values


def weighted_interval(
    statistic: Weighted,
    items: int,
    *,
    clusters: Sequence[Hashable] | None = None,
    width: int = 1,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval | None:
    """The bootstrap interval of a statistic of weighted items, drawn one by one or by cluster.

    BCa up to 2,000 units, above that percentiles, above 20,000 the normal interval from 200 resamples.
    `width` is how many numbers the statistic holds for an item. None where resamples are not enough: fewer
    than five units, a statistic that most resamples leave undefined, or resamples that are all the same.
    """
    unit_of = np.arange(items) if clusters is None else numbered(clusters)
    units = int(unit_of.max()) + 1 if items else 0
    if units < LEAST_UNITS:
        return None
    if units > NORMAL_ABOVE:
        resamples = min(resamples, 200)
    at_once = max(1, CELLS_AT_ONCE // (items * width))
    value = float(statistic(np.ones((1, items)))[0])
    rng = np.random.default_rng(seed)
    parts = count_vectors(rng, units, resamples, at_once)
    drawn = np.concatenate([statistic(draws if clusters is None else draws[:, unit_of]) for draws in parts])
    drawn = drawn[np.isfinite(drawn)]
    if len(drawn) < resamples / 2 or not math.isfinite(value) or float(np.ptp(drawn)) < 1e-12:
        return None
    unit = "" if clusters is None else " by cluster"
    if units > NORMAL_ABOVE:
        half = normal_quantile((1 + confidence) / 2) * float(drawn.std(ddof=1))
        return Interval(
            value - half, value + half, f"normal{unit}, error from {resamples} resamples, seed {seed}"
        )
    if units > CLOSED_FORM_ABOVE:
        low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
        method = f"percentile bootstrap{unit}, {resamples} resamples, seed {seed}"
        return Interval(float(low), float(high), method)
    left_out = np.concatenate([statistic(weights) for weights in _each_left_out(unit_of, units, at_once)])
    # A unit without which the statistic is undefined must not make the acceleration of BCa undefined.
    jackknife = np.where(np.isfinite(left_out), left_out, value)
    sizes = None if clusters is None else np.bincount(unit_of).astype(np.float64)
    found = bca_from_draws(value, drawn, jackknife, confidence, seed, sizes)
    # Student's limits, which few clusters get, can lie beyond the range of the statistic.
    return found.within(min(-1.0, float(drawn.min())), max(1.0, float(drawn.max())))


def weighted_ranks(values: Array, weights: Array) -> Array:
    """The rank of each value where it occurs as often as its weight says; equal values share a rank.

    `values` is (items,), `weights` is (resamples, items). The ranks are middle ranks less one half: how much
    weight is below, and half of what is level.

    >>> import numpy as np
    >>> weighted_ranks(np.array([0.5, 0.9, 0.5]), np.array([[1.0, 1.0, 1.0], [2.0, 1.0, 0.0]])).tolist()
    [[1.0, 2.5, 1.0], [1.0, 2.5, 1.0]]
    """
    levels, level_of = np.unique(values, return_inverse=True)
    counts = level_counts(np.arange(len(values)), level_of, (len(values), len(levels)))
    return ranks_of_levels(weights @ counts)[:, level_of]


def level_counts(items: Indices, level_of: Indices, shape: tuple[int, int]) -> csr_array:
    """How often each item was given each level, as (items, levels): mostly nothing, so it is kept sparse."""
    from scipy.sparse import csr_array

    return csr_array((np.ones(len(items)), (items, level_of)), shape=shape)


def ranks_of_levels(weights: Array) -> Array:
    """The weight below each level, and half of its own: (resamples, levels)."""
    return np.asarray(np.cumsum(weights, axis=-1) - weights / 2)


def _each_left_out(unit_of: Indices, units: int, at_once: int) -> Iterator[Array]:
    for done in range(0, units, at_once):
        left_out = np.arange(done, min(done + at_once, units))
        yield (unit_of[np.newaxis, :] != left_out[:, np.newaxis]).astype(np.float64)
