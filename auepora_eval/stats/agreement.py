"""Do people say the same? Agreement beyond chance, for any number of raters and with gaps.

Ratings are an array (items, raters), NaN where a rater said nothing; categories are numbers. Each statistic
takes weights (resamples, items), how often each item counts, and gives (resamples,): without weights one
number in an array of one. Where everyone always says the same thing, chance explains it all and the value
is NaN.

    cohen_kappa          two raters; with more of them the mean over the pairs (Light's kappa)
    krippendorff_alpha   any number, gaps allowed; nominal, ordinal or interval
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from . import classification
from .arrays import Array, Indices
from .intervals import Interval, value_interval, weighted_units

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array

Level = Literal["nominal", "ordinal", "interval"]
Statistic = Literal[
    "cohen_kappa",
    "krippendorff_alpha_nominal",
    "krippendorff_alpha_ordinal",
    "krippendorff_alpha_interval",
]


class Agreement(NamedTuple):
    """A statistic of agreement: NaN if there is none. `items` is how many it is computed from."""

    value: float
    interval: Interval | None
    items: int


def agreement(
    ratings: Array, statistic: Statistic, *, clusters: Sequence[Hashable] | None = None
) -> Agreement:
    """Return a statistic with its interval; items of one cluster are left out together."""
    enough = _raters(ratings) >= 2
    ratings = ratings[enough]
    if clusters is not None:
        clusters = [cluster for cluster, there in zip(clusters, enough, strict=True) if there]
    if not len(ratings):
        return Agreement(math.nan, None, 0)
    units = weighted_units(partial(_STATISTICS[statistic], ratings), len(ratings), clusters)
    # Alpha can be below -1 where raters avoid each other's ratings.
    bounds = (min(-1.0, float(units.value)), 1.0)
    interval = value_interval(units, bounds)
    return Agreement(float(units.value), interval and interval.of_labels(len(ratings)), len(ratings))


def numbered(
    rows: Iterable[Sequence[Hashable | None]], order: Sequence[Hashable] = ()
) -> tuple[Array, list[Hashable]]:
    """Ratings of any kind as numbers, and what each number means; None means no rating.

    Numbers go by `order`, and after it by first appearance.

    >>> numbered([["good", "fair"], [None, "good"]])[1]
    ['good', 'fair']
    """
    numbers: dict[Hashable, int] = {value: place for place, value in enumerate(order)}
    coded = [
        [math.nan if value is None else numbers.setdefault(value, len(numbers)) for value in row]
        for row in rows
    ]
    return np.array(coded, dtype=np.float64), list(numbers)


def cohen_kappa(ratings: Array, weights: Array | None = None) -> Array:
    """Agreement of two raters beyond chance; of more, the mean over the pairs that have a kappa."""
    weights = _weights(ratings, weights)
    pairs = combinations(range(ratings.shape[1]), 2)
    kappas = np.array([_kappa_of_two(ratings[:, [a, b]], weights) for a, b in pairs])
    there = np.isfinite(kappas)
    return _ratio(np.where(there, kappas, 0.0).sum(axis=0), there.sum(axis=0))


def krippendorff_alpha(ratings: Array, weights: Array | None = None, *, level: Level = "nominal") -> Array:
    """1 - observed / expected disagreement, over the items that two or more people rated.

    Disagreement is a plain one for `nominal` ratings, the squared distance in ranks for `ordinal` ones and
    the squared difference for `interval` ones (Krippendorff 2011).
    """
    weights = _weights(ratings, weights)
    ratings, weights = _kept(ratings, weights, _raters(ratings) >= 2)
    if not len(ratings):
        return np.full(len(weights), math.nan)
    raters = _raters(ratings)
    if level == "nominal":
        return _nominal_alpha(_counts(ratings), raters, weights)
    if level == "ordinal":
        sums, squares = _sums_of_ranks(_counts(ratings), weights)
    else:
        centred = np.nan_to_num(ratings - np.nanmean(ratings))  # a mean far from 0 would cost digits below
        sums, squares = centred.sum(axis=-1), (centred**2).sum(axis=-1)
    return _alpha_of_squares(sums, squares, raters, weights)


_STATISTICS: dict[Statistic, Callable[..., Array]] = {
    "cohen_kappa": cohen_kappa,
    "krippendorff_alpha_nominal": partial(krippendorff_alpha, level="nominal"),
    "krippendorff_alpha_ordinal": partial(krippendorff_alpha, level="ordinal"),
    "krippendorff_alpha_interval": partial(krippendorff_alpha, level="interval"),
}


def _kappa_of_two(ratings: Array, weights: Array) -> Array:
    ratings, weights = _kept(ratings, weights, _raters(ratings) == 2)
    if not len(ratings):
        return np.full(len(weights), math.nan)
    levels, level_of = np.unique(ratings, return_inverse=True)
    size = len(levels)
    first, second = level_of.reshape(ratings.shape).T
    cells = level_counts(np.arange(len(ratings)), first * size + second, (len(ratings), size**2))
    return classification.cohen_kappa((weights @ cells).reshape(-1, size, size))


def _nominal_alpha(counts: csr_array, raters: Array, weights: Array) -> Array:
    agreeing_pairs = np.asarray((counts * (counts - counts.sign())).sum(axis=1))  # ordered, of each item
    agreed = weights @ (agreeing_pairs / (raters - 1))
    by_level = weights @ counts
    total = by_level.sum(axis=-1)
    return 1 - _ratio((total - 1) * (total - agreed), total**2 - (by_level**2).sum(axis=-1))


def _alpha_of_squares(sums: Array, squares: Array, raters: Array, weights: Array) -> Array:
    """Alpha from the sum and the sum of squares of each item's values: (items,) or (resamples, items)."""
    within = _summed(weights, 2 * (raters * squares - sums**2) / (raters - 1))
    total = weights @ raters
    all_squares = _summed(weights, squares)
    spread = 2 * (total * all_squares - _summed(weights, sums) ** 2)
    # Rounding leaves a hair of spread where all values are equal.
    spread[spread <= 1e-12 * total * all_squares] = 0.0
    return 1 - _ratio((total - 1) * within, spread)


def _sums_of_ranks(counts: csr_array, weights: Array) -> tuple[Array, Array]:
    """For each draw and item: the sum of its ratings' ranks in the draw, and of their squares.

    The distance of two ratings that alpha calls ordinal is that of their ranks among all ratings.
    """
    by_level = weights @ counts
    ranks = np.cumsum(by_level, axis=-1) - by_level / 2  # the weight below a level, and half of its own
    # Centred: the formula subtracts sums of squares, which would cancel digits of large ranks.
    ranks = ranks - ranks[:, -1:] / 2
    return np.asarray((counts @ ranks.T).T), np.asarray((counts @ (ranks**2).T).T)


def _counts(ratings: Array) -> csr_array:
    """How many raters gave each item each of the levels that occur."""
    items, _ = np.nonzero(~np.isnan(ratings))
    levels, level_of = np.unique(ratings[~np.isnan(ratings)], return_inverse=True)
    return level_counts(items, level_of.ravel(), (len(ratings), len(levels)))


def level_counts(items: Indices, level_of: Indices, shape: tuple[int, int]) -> csr_array:
    """How often each item was given each level, as (items, levels): mostly nothing, so it is kept sparse."""
    from scipy.sparse import csr_array

    return csr_array((np.ones(len(items)), (items, level_of)), shape=shape)


def _summed(weights: Array, values: Array) -> Array:
    return np.asarray(weights @ values if values.ndim == 1 else np.einsum("di,di->d", weights, values))


def _weights(ratings: Array, weights: Array | None) -> Array:
    return np.ones((1, len(ratings))) if weights is None else weights


def _raters(ratings: Array) -> Array:
    """How many rated each item."""
    return np.asarray((~np.isnan(ratings)).sum(axis=1), dtype=np.float64)


def _kept(ratings: Array, weights: Array, there: NDArray[np.bool_]) -> tuple[Array, Array]:
    """The items that are there; mostly all are, and thousands of resamples need not be copied."""
    return (ratings, weights) if bool(there.all()) else (ratings[there], weights[:, there])


def _ratio(above: Array, below: Array) -> Array:
    above, below = np.asarray(above), np.asarray(below, dtype=np.float64)
    if above.ndim > below.ndim:
        below = below[:, np.newaxis]
    return np.asarray(np.divide(above, below, out=np.full(above.shape, math.nan), where=below > 1e-12))
