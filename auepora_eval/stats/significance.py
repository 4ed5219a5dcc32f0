"""Tests: could this difference between two systems be chance?

Without a difference, the two systems' scores of a sample could as well be swapped. A test counts how many
ways to swap give a difference as large as the observed one:

    mcnemar_exact     0/1 scores: all ways, by the binomial distribution
    sign_flip_test    means: a swap flips the sign of a sample's difference
    paired_swap_test  any other aggregate
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np

from .arrays import Array, ArrayLike, Patterns
from .intervals import aggregate_units, mean_error, t_quantile
from .resamples import CELLS_AT_ONCE, numbered, summed_by_unit

RESAMPLES = 10_000
ALL_PATTERNS_UP_TO = 14  # units that differ; mirror images give the same result, so 2**13 patterns are enough
DRAWS_UP_TO = 20_000  # units that differ; above, the sum of the flips is normal
_LARGEST_SHARE = 1 / 200  # of the sum of squares that one unit may have where a sum is called normal
_MOST_CELLS = 10**9  # of all patterns together: more are not drawn, which takes about a second
_SMALLEST_P = 1e-300  # a p-value is never 0
LEVEL = 0.05  # of the 95% interval, which must agree with the test


class PairedTest(NamedTuple):
    """How often chance alone does as well, and how that was found; `resamples` is 0 for an exact test."""

    p_value: float
    statistic: float
    method: str
    resamples: int = 0

    def could_change(self, level: float) -> bool:
        """Whether other resamples could move the p-value to the other side of a level."""
        return self.resamples > 0 and _is_near(self.p_value, level, self.resamples)


def _is_near(p_value: float, level: float, resamples: int) -> bool:
    return abs(p_value - level) <= 3 * math.sqrt(level * (1 - level) / resamples)


def sign_flip_test(
    differences: Array,
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    levels: Sequence[float] = (LEVEL,),
    seed: int = 0,
) -> PairedTest:
    """Could the mean of paired differences be chance? Samples of one cluster are flipped together.

    Exact where at most 14 units differ. Otherwise flips are drawn, and more of them while the p-value is
    within three standard errors of one of the levels: no verdict shall depend on the seed.
    """
    units = summed_by_unit(differences.reshape(-1, 1), clusters)[:, 0]
    observed = float(units.sum()) / len(differences)
    units = units[units != 0]
    if not len(units):
        return PairedTest(1.0, observed, "sign flip, exact: no sample differs")
    if _is_normal(units):
        return PairedTest(_normal_p(units), observed, f"sign flip, normal form, {len(units)} units")
    total = float(units.sum())
    # Sums of floats tie only up to rounding, and a flip that ties with the observed sum must count.
    threshold = abs(total) - 1e-11 * float(np.abs(units).sum())

    def extreme(flips: Patterns) -> int:
        return int(
            (np.abs(total - 2 * _sums_of_chosen(units[:, np.newaxis], flips)[:, 0]) >= threshold).sum()
        )

    p_value, drawn = _share_of_patterns(extreme, len(units), 1, resamples, levels, seed)
    return PairedTest(p_value, observed, _method("sign flip", len(units), drawn, seed), drawn)


def paired_swap_test(
    rows_a: Array,
    rows_b: Array,
    aggregate: Callable[[Array], Array],
    *,
    clusters: Sequence[Hashable] | None = None,
    of_sums: bool = False,
    resamples: int = RESAMPLES,
    levels: Sequence[float] = (LEVEL,),
    seed: int = 0,
) -> PairedTest:
    """The same test for any aggregate (corpus BLEU, a quantile): swap samples between the systems.

    `aggregate` reduces the second-last axis of (..., samples, columns); `of_sums` says that it needs no more
    than the sum of each column, which is much quicker.
    """
    observed = float(aggregate(rows_b) - aggregate(rows_a))
    unit_of = np.arange(len(rows_a)) if clusters is None else numbered(clusters)
    differing = np.unique(unit_of[(rows_a != rows_b).any(axis=1)])
    count = len(differing)
    if not count:
        return PairedTest(1.0, observed, "swap: no sample differs")
    of_sums = of_sums and bool(np.isfinite(rows_a).all() and np.isfinite(rows_b).all())
    if count > DRAWS_UP_TO:
        sides = (
            aggregate_units(rows, aggregate, clusters=clusters, of_sums=of_sums) for rows in (rows_b, rows_a)
        )
        gains = next(sides).minus(next(sides)).numbers
        if _is_normal(gains):
            return PairedTest(_normal_p(gains), observed, f"swap, normal form, {count} units")
    if of_sums:
        moved = (summed_by_unit(rows_a, clusters) - summed_by_unit(rows_b, clusters))[differing]
        sums_a, sums_b = rows_a.sum(axis=0), rows_b.sum(axis=0)

        def difference(swaps: Patterns) -> Array:
            by_swap = _sums_of_chosen(moved, swaps)[:, np.newaxis, :]
            return aggregate(sums_b + by_swap) - aggregate(sums_a - by_swap)

    else:
        inside = np.isin(unit_of, differing)
        place = np.searchsorted(differing, unit_of[inside])

        def difference(swaps: Patterns) -> Array:
            mask = np.zeros((swaps.shape[1], len(rows_a), 1), dtype=bool)
            mask[:, inside, 0] = np.unpackbits(swaps, axis=0, count=count)[place].T
            return aggregate(np.where(mask, rows_a, rows_b)) - aggregate(np.where(mask, rows_b, rows_a))

    threshold = abs(observed) * (1 - 1e-10) - 1e-12

    def extreme(swaps: Patterns) -> int:
        with np.errstate(divide="ignore", invalid="ignore"):
            return int((np.abs(difference(swaps)) >= threshold).sum())

    cells = 4 * rows_a.shape[1] if of_sums else 2 * rows_a.size
    p_value, drawn = _share_of_patterns(extreme, count, cells, resamples, levels, seed)
    return PairedTest(p_value, observed, _method("swap", count, drawn, seed), drawn)


def _share_of_patterns(
    extreme: Callable[[Patterns], int],
    units: int,
    cells: int,
    resamples: int,
    levels: Sequence[float],
    seed: int,
) -> tuple[float, int]:
    """Return the share of patterns that are extreme, and how many were drawn: 0 if all were tried.

    `extreme` counts them in a block of patterns, and holds `cells` numbers for each pattern.
    """
    at_once = max(1, CELLS_AT_ONCE // max(cells, units // 64))  # a number has 64 bits
    if units <= ALL_PATTERNS_UP_TO:
        # The last unit is never chosen: the mirror image of a pattern gives the same result.
        count = 2 ** (units - 1)
        bits = (np.arange(count) >> np.arange(units)[:, np.newaxis]) & 1
        patterns = np.packbits(bits.astype(np.uint8), axis=0)
        blocks = (patterns[:, start : start + at_once] for start in range(0, count, at_once))
        return sum(map(extreme, blocks)) / count, 0
    rng, found, drawn, wanted = np.random.default_rng(seed), 0, 0, resamples
    p_value = 1.0
    while drawn < wanted:
        count = min(at_once, wanted - drawn)
        found += extreme(rng.integers(0, 256, size=(-(-units // 8), count), dtype=np.uint8))
        drawn += count
        # The observed pattern is one of them: without the +1 a test could report p = 0, which no finite
        # number of resamples can show (Phipson & Smyth 2010).
        p_value = (found + 1) / (drawn + 1)
        if drawn == wanted and any(_is_near(p_value, level, drawn) for level in levels):
            wanted = min(4 * wanted, max(wanted, _MOST_CELLS // max(cells, units)))
    return p_value, drawn


def _sums_of_chosen(units: Array, patterns: Patterns) -> Array:
    """Return the sum of the units that each pattern chooses: (patterns, columns)."""
    bits = np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1).astype(np.float64)
    total = np.zeros((patterns.shape[1], units.shape[1]))
    chosen = np.empty_like(total)
    for place, byte in enumerate(patterns):
        # All 256 sums of eight units are looked up, which is faster than a product with single bits.
        eight = units[8 * place : 8 * place + 8]
        # No byte is out of range: "clip" spares numpy a copy of the output.
        total += np.take(bits[:, : len(eight)] @ eight, byte, axis=0, out=chosen, mode="clip")
    return total


def _method(name: str, units: int, drawn: int, seed: int) -> str:
    return f"{name}, {drawn} resamples, seed {seed}" if drawn else f"{name}, exact, {units} units"


def _is_normal(units: Array) -> bool:
    """Whether the sum of the flips is normal to less than the noise of resamples: many units, none large."""
    squares = units**2
    return len(units) > DRAWS_UP_TO and bool(squares.max() <= _LARGEST_SHARE * squares.sum())


def _normal_p(units: Array) -> float:
    if not units.any():
        return 1.0
    z = abs(float(units.sum())) / math.sqrt(float((units**2).sum()))
    return max(math.erfc(z / math.sqrt(2)), _SMALLEST_P)


def mcnemar_exact(only_a: int, only_b: int) -> PairedTest:
    """McNemar's exact test: are two systems right equally often, by the samples that only one got right?

    Under chance each of these goes to either side like a coin; the statistic is the share that went to b.
    """
    from scipy.special import betainc

    if not only_a + only_b:
        return PairedTest(1.0, math.nan, "McNemar, exact: no sample differs")
    count, fewer = only_a + only_b, min(only_a, only_b)
    # Twice the lower tail of a binomial distribution: a coin is symmetric. The tails overlap at equal counts.
    p_value = min(1.0, 2 * float(betainc(count - fewer, fewer + 1, 0.5)))
    return PairedTest(p_value, only_b / count, f"McNemar, exact, {count} samples")


# Two systems that were run several times: whole runs are compared, which are not paired.


class UnpairedTest(NamedTuple):
    """Second minus first: the difference with its interval, and how often chance alone does as well."""

    difference: float
    low: float
    high: float
    p_value: float
    error: float
    freedom: float
    method: str


def welch_difference(a: ArrayLike, b: ArrayLike) -> UnpairedTest:
    """Welch's t-test on mean b - mean a, two-sided.

    The p-value is NaN where a side has fewer than two values. Where neither has any spread, it is that of the
    ways to divide the values between the sides: at most two of them give such a difference.

    >>> round(welch_difference([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]).p_value, 4)
    0.2209
    """
    from scipy.special import stdtr

    first, second = mean_error(a), mean_error(b)
    difference = second.mean - first.mean
    if not first.freedom or not second.freedom:
        missing = "Welch: fewer than two samples"
        return UnpairedTest(difference, math.nan, math.nan, math.nan, math.nan, 0.0, missing)
    error = math.hypot(first.error, second.error)
    if error <= 1e-15 * abs(difference) or error == 0.0:
        counts = (int(side.freedom) + 1 for side in (first, second))
        ways = math.comb(sum(counts), int(first.freedom) + 1)
        p_value = max(min(1.0, 2 / ways), _SMALLEST_P) if difference else 1.0
        method = "Welch: no spread, so permutation, exact"
        return UnpairedTest(difference, difference, difference, p_value, 0.0, math.inf, method)
    # Satterthwaite, by shares of the variance: squares of tiny ones would vanish.
    freedom = 1 / sum((side.error / error) ** 4 / side.freedom for side in (first, second))
    half = t_quantile(freedom, 0.975) * error
    p_value = 2 * float(stdtr(freedom, -abs(difference) / error))
    method = f"Welch, {freedom:.1f} degrees of freedom"
    return UnpairedTest(difference, difference - half, difference + half, p_value, error, freedom, method)


# Many questions at once: p-values that stay honest when there are several.


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: the chance of even one false alarm among them stays at alpha.

    >>> [round(p, 3) for p in holm([0.001, 0.012, 0.021, 0.04, 0.2])]
    [0.005, 0.048, 0.063, 0.08, 0.2]
    """
    values = np.array(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    times = np.arange(len(values), 0, -1)
    values[order] = np.minimum(1.0, np.maximum.accumulate(values[order] * times))
    return list(values.tolist())


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Benjamini and Hochberg's step-up correction: of what is called a finding, at most alpha is chance.

    >>> [round(p, 3) for p in benjamini_hochberg([0.001, 0.012, 0.021, 0.04, 0.2])]
    [0.005, 0.03, 0.035, 0.05, 0.2]
    """
    values = np.array(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    corrected = values[order] * len(values) / np.arange(1, len(values) + 1)
    values[order] = np.minimum(1.0, np.minimum.accumulate(corrected[::-1])[::-1])
    return list(values.tolist())


# How large is a difference? In units that do not depend on the metric's own scale.


def cohens_dz(differences: ArrayLike) -> float:
    """Mean / standard deviation (ddof 1) of paired differences.

    >>> round(cohens_dz([1.0, 2.0, 3.0]), 6)
    2.0
    """
    values = np.asarray(differences, dtype=np.float64)
    if len(values) < 2:
        return math.nan
    mean, spread = float(values.mean()), float(values.std(ddof=1))
    # Rounding leaves a hair of spread where all values are equal.
    return mean / spread if spread > 1e-14 * abs(mean) else math.nan
