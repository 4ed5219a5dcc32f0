"""Do two scores rise together? Pearson, Spearman and Kendall, each with an interval.

For Kendall's tau above 1,000 samples it is Fieller's, because pairs would be too many. That one does not
account for clusters, so there is none where samples come in clusters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Array, Indices
from .intervals import Interval, value_interval, weighted_units

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Weighted = Callable[[Array], Array]  # (resamples, items) weights -> (resamples,) values
Kind = Literal["pearson", "spearman", "kendall"]
KINDS: tuple[Kind, ...] = ("pearson", "spearman", "kendall")
_PAIRS_UP_TO = 1_000


class Correlation(NamedTuple):
    """A correlation: NaN if one side never changes. `samples` is how many it is computed from."""

    value: float
    interval: Interval | None
    samples: int


def correlation(
    first: ArrayLike,
    second: ArrayLike,
    kind: Kind,
    *,
    clusters: Sequence[Hashable] | None = None,
) -> Correlation:
    """How two lists of scores go together, sample by sample; a sample that lacks either is left out."""
    if kind not in KINDS:
        raise ValueError(f"there is no correlation {kind!r}; there are {', '.join(KINDS)}")
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise ValueError(f"two lists of equal length are needed, not {x.shape} and {y.shape}")
    both = np.isfinite(x) & np.isfinite(y)
    x, y, count = x[both], y[both], int(both.sum())
    if clusters is not None:
        clusters = [cluster for cluster, there in zip(clusters, both, strict=True) if there]
    if count < 2:
        return Correlation(math.nan, None, count)
    if kind == "kendall" and count > _PAIRS_UP_TO:
        return _kendall_of_many(x, y, independent=clusters is None)
    units = weighted_units(_weighted(x, y, kind), count, clusters)
    return Correlation(float(units.value), value_interval(units, (-1.0, 1.0)), count)


def _weighted(x: Array, y: Array, kind: Kind) -> Weighted:
    if kind == "pearson":
        x, y = x - x.mean(), y - y.mean()  # means far from 0 would cost digits
        return lambda weights: _pearson(x, y, weights)
    if kind == "spearman":
        return partial(_spearman, x, y)
    return _kendall(x, y)


def _pearson(x: Array, y: Array, weights: Array) -> Array:
    """Of values that are (items,) or (resamples, items)."""
    total = weights.sum(axis=-1, keepdims=True)
    x = x - (weights * x).sum(axis=-1, keepdims=True) / total
    y = y - (weights * y).sum(axis=-1, keepdims=True) / total
    spread = np.sqrt((weights * x**2).sum(axis=-1)) * np.sqrt((weights * y**2).sum(axis=-1))
    together = (weights * x * y).sum(axis=-1)
    # Rounding leaves a hair of spread where all values are equal.
    least = 1e-14 * total[:, 0] * np.abs(x).max(initial=0.0) * np.abs(y).max(initial=0.0)
    found = np.full(len(weights), math.nan)
    np.divide(together, spread, out=found, where=spread > least)
    return np.asarray(np.clip(found, -1.0, 1.0))


def _spearman(x: Array, y: Array, weights: Array) -> Array:
    return _pearson(weighted_ranks(x, weights), weighted_ranks(y, weights), weights)


def _kendall(x: Array, y: Array) -> Weighted:
    """Tau-b: pairs in the same order less pairs in the other, over the pairs that are not tied."""
    sign_x, sign_y = (np.sign(v[:, np.newaxis] - v).astype(np.float32) for v in (x, y))
    both = sign_x * sign_y
    untied_x, untied_y = np.abs(sign_x), np.abs(sign_y)

    def statistic(weights: Array) -> Array:
        light = weights.astype(np.float32)  # whole numbers: sums stay exact up to 2 ** 24
        above, x_pairs, y_pairs = (
            ((light @ pairs).astype(np.float64) * weights).sum(axis=-1)
            for pairs in (both, untied_x, untied_y)
        )
        found = np.full(len(weights), math.nan)
        spread = np.sqrt(x_pairs) * np.sqrt(y_pairs)
        return np.asarray(np.divide(above, spread, out=found, where=spread > 0))

    return statistic


def _kendall_of_many(x: Array, y: Array, *, independent: bool) -> Correlation:
    from scipy.stats import kendalltau

    if float(np.ptp(x)) == 0.0 or float(np.ptp(y)) == 0.0:
        return Correlation(math.nan, None, len(x))
    value = float(kendalltau(x, y).statistic)
    if abs(value) >= 1.0 or not independent:
        return Correlation(value, None, len(x))
    half = NormalDist().inv_cdf(0.975) * math.sqrt(0.437 / (len(x) - 4))
    low, high = (math.tanh(math.atanh(value) + sign * half) for sign in (-1, 1))
    return Correlation(value, Interval(low, high, "Fieller's z"), len(x))


# Ranks and counts of items that occur as often as their weights say.
#
# An item that is left out has a weight of 0, so a statistic without each item in turn is a matrix product.


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
