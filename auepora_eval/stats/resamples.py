"""Resampling in bulk: resamples and sign flips of many columns at once, without copying a single row.

A resample is how often each unit was drawn, so the sums of all columns over a block of resamples are one
product of matrices; a flip is a random bit for each unit, and its sums are a product too. A column of few
different values needs neither: how often each value is drawn is multinomial, how many of it are flipped is
binomial. What a column gets depends on the seed and on itself, not on its neighbours, the blocks or the
number of threads: values are put on a grid so fine that their sums are exact in any order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from .arrays import Array, Indices

if TYPE_CHECKING:
    from numpy.typing import NDArray

CELLS_AT_ONCE = 4_000_000  # what a block of resamples may hold: 32 MB
FEW_VALUES = 64  # up to here multinomial and binomial numbers are quicker than products


def numbered(clusters: Sequence[Hashable]) -> Indices:
    """The number of each row's cluster, by first appearance.

    >>> numbered(["x", "y", "x"]).tolist()
    [0, 1, 0]
    """
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(cluster, len(numbers)) for cluster in clusters], dtype=np.intp)


def summed_by_unit(columns: Array, clusters: Sequence[Hashable] | None) -> Array:
    """The sum of each column over each cluster: (units, columns); without clusters the rows themselves."""
    if clusters is None:
        return columns
    unit_of = numbered(clusters)
    sums = np.zeros((int(unit_of.max(initial=-1)) + 1, columns.shape[1]))
    np.add.at(sums, unit_of, columns)
    return sums


def count_vectors(rng: np.random.Generator, units: int, resamples: int, at_once: int) -> Iterator[Array]:
    """How often each unit is drawn in each resample, in blocks (at most at_once, units)."""
    for done in range(0, resamples, at_once):
        counts = np.empty((min(at_once, resamples - done), units))
        for row in counts:  # one at a time: a row's counters stay in the fastest memory
            row[:] = np.bincount(rng.integers(units, size=units), minlength=units)
        yield counts


def resampled_ratios(
    sums: Array, sizes: Array, *, resamples: int, seed: int, together: bool = False
) -> Array:
    """The ratio of sums to sizes, over units drawn with replacement: (resamples, columns).

    With a size of 1 for each unit these are means; a unit that a column lacks has sum and size 0. NaN where
    a resample holds nothing of a column. Columns of few values are drawn on their own unless `together`, for
    those who compare columns within a resample.
    """
    units, columns = sums.shape
    drawn = np.full((resamples, columns), np.nan)
    many = []
    for column in range(columns):
        if together:
            many.append(column)
            continue
        kinds, counts = _kinds(sums[:, column], sizes[:, column])
        if len(counts) > FEW_VALUES:
            many.append(column)
            continue
        times = np.random.default_rng(seed).multinomial(units, counts / units, size=resamples)
        _divide(_product(times, kinds[0]), _product(times, kinds[1]), drawn[:, column])
    if many:
        means = sums[:, many].sum(axis=0) / sizes[:, many].sum(axis=0)
        centred = _on_grid(sums[:, many] - means * sizes[:, many])  # a mean far from 0 would cost digits
        chosen = sizes[:, many]
        whole = bool((chosen == 1.0).all())
        done = 0
        rng = np.random.default_rng(seed)
        for weights in count_vectors(rng, units, resamples, max(1, CELLS_AT_ONCE // units)):
            block = np.full((len(weights), len(many)), np.nan)
            _divide(weights @ centred, np.float64(units) if whole else weights @ chosen, block)
            drawn[done : done + len(weights), many] = block + means
            done += len(weights)
    return drawn


def resampled_of_sums(units: Array, of_sums: Callable[[Array], Array], *, resamples: int, seed: int) -> Array:
    """A statistic of the columns' sums, over units drawn with replacement: (resamples,).

    `of_sums` takes sums as an array (resamples, 1, columns), which is how an aggregate of rows sees one row.
    """
    rng, grid = np.random.default_rng(seed), _on_grid(units)
    at_once = max(1, CELLS_AT_ONCE // len(units))
    blocks = count_vectors(rng, len(units), resamples, at_once)
    return np.concatenate([of_sums((weights @ grid)[:, np.newaxis, :]) for weights in blocks])


def swapped_of_sums(
    units_a: Array, units_b: Array, of_sums: Callable[[Array], Array], *, resamples: int, seed: int
) -> Array:
    """The difference of that statistic between two systems, with units swapped at random: (resamples,)."""
    rng, grid = np.random.default_rng(seed), _on_grid(units_a - units_b)
    sums_a, sums_b = units_a.sum(axis=0), units_b.sum(axis=0)
    found = []
    for bits in _bits(rng, len(grid), resamples):
        moved = (bits @ grid)[:, np.newaxis, :]
        found.append(of_sums(sums_b + moved) - of_sums(sums_a - moved))
    return np.concatenate(found)


def extreme_flips(units: Array, thresholds: Array, *, resamples: int, seed: int) -> NDArray[np.int64]:
    """How many of the random sign flips of each column have a sum of at least its threshold, either way."""
    extreme = np.zeros(units.shape[1], dtype=np.int64)
    many = []
    for column in range(units.shape[1]):
        values, counts = np.unique(np.abs(units[:, column]), return_counts=True)
        if len(values) > FEW_VALUES:
            many.append(column)
            continue
        flipped = np.random.default_rng(seed).binomial(counts, 0.5, size=(resamples, len(counts)))
        extreme[column] = (np.abs(_product(2 * flipped - counts, values)) >= thresholds[column]).sum()
    if many:
        chosen = _on_grid(units[:, many])
        halves, totals = 2 * chosen, chosen.sum(axis=0)
        rng = np.random.default_rng(seed)
        for bits in _bits(rng, len(units), resamples):
            extreme[many] += (np.abs(bits @ halves - totals) >= thresholds[many]).sum(axis=0)
    return extreme


def _bits(rng: np.random.Generator, units: int, resamples: int) -> Iterator[Array]:
    """A random 0 or 1 for each unit and flip, in blocks."""
    at_once = max(1, CELLS_AT_ONCE // units)
    for done in range(0, resamples, at_once):
        # One random 64-bit word gives 64 flips.
        shape = (min(at_once, resamples - done), -(-units // 64))
        words = rng.integers(0, 2**64, size=shape, dtype=np.uint64)
        yield np.unpackbits(words.view(np.uint8), axis=1, count=units).astype(np.float64)


def _on_grid(columns: Array) -> Array:
    """Round the values to a power of two so small that no sum of a resample is rounded again.

    Of 10,000 values that is in the twelfth digit of the largest.
    """
    largest = np.maximum(np.abs(columns).max(axis=0), np.finfo(np.float64).tiny)
    # A double has 53 bits: log2(n) of them are left free for the carries of a sum of n values.
    digits = 51 - math.ceil(math.log2(max(2, len(columns)))) - np.ceil(np.log2(largest))
    return np.asarray(np.ldexp(np.rint(np.ldexp(columns, digits.astype(np.int64))), -digits.astype(np.int64)))


def _product(counts: NDArray[np.int64], values: Array) -> Array:
    """Return sums of a few values, each with its count, always added in the same order."""
    return np.asarray(np.einsum("dk,k->d", counts.astype(np.float64), values))


def _kinds(sums: Array, sizes: Array) -> tuple[Array, Indices]:
    """The different units of one column, as (2, kinds), and how many there are of each."""
    if float(np.ptp(sizes)) == 0.0:
        values, counts = np.unique(sums, return_counts=True)
        return np.stack([values, np.full(len(values), sizes[0])]), counts
    kinds, counts = np.unique(np.stack([sums, sizes]), axis=1, return_counts=True)
    return kinds, counts


def _divide(above: Array, below: Array | np.float64, out: Array) -> None:
    np.divide(above, below, out=out, where=np.asarray(below) > 0)


# Resamples for aggregates that need the rows themselves, not only their sums: rows are copied, in blocks.


def groups_of(n: int, clusters: Sequence[Hashable] | None) -> Sequence[Indices]:
    """The row numbers of each independent unit, in order of first appearance."""
    if clusters is None:
        return np.arange(n).reshape(-1, 1)  # type: ignore[return-value]  # its rows, without a list of them
    members: dict[Hashable, list[int]] = {}
    for place, cluster in enumerate(clusters):
        members.setdefault(cluster, []).append(place)
    return [np.array(places) for places in members.values()]


def leave_one_out(rows: Array, groups: Sequence[Indices], aggregate: Callable[[Array], Array]) -> Array:
    """The aggregate without each of the units, in their order."""
    everything = np.arange(len(rows))
    if len(groups) < len(rows):
        return np.array([float(aggregate(np.delete(rows, group, axis=0))) for group in groups])
    chunk = max(1, CELLS_AT_ONCE // rows.size)
    stacks = [
        aggregate(
            rows[np.array([np.delete(everything, left_out) for left_out in everything[done : done + chunk]])]
        )
        for done in range(0, len(rows), chunk)
    ]
    return np.concatenate(stacks)


def each_resample(
    rows: Array,
    groups: Sequence[Indices],
    aggregate: Callable[[Array], Array],
    resamples: int,
    rng: np.random.Generator,
) -> list[float]:
    """Return the aggregate of each resample of the units."""
    count = len(groups)
    if all(len(group) == 1 for group in groups):
        chunk = max(1, CELLS_AT_ONCE // rows.size)
        stacks = (
            aggregate(rows[rng.integers(count, size=(min(chunk, resamples - done), count))])
            for done in range(0, resamples, chunk)
        )
        return [float(value) for stack in stacks for value in stack]
    # Clusters of unequal size give resamples of unequal length: those cannot be stacked.
    draws = rng.integers(count, size=(resamples, count))
    return [float(aggregate(rows[np.concatenate([groups[i] for i in draw])])) for draw in draws]
