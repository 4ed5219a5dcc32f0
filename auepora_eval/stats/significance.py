"""Tests: could this difference between two systems be chance?"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Array
from .intervals import mean_error
from .resamples import CELLS_AT_ONCE, FEW_VALUES, extreme_flips, numbered, summed_by_unit, swapped_of_sums

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


RESAMPLES = 10_000
DRAWS_UP_TO = 20_000  # units of many different values; above, the sum of the flips is called normal
NORMAL_ABOVE = 20_000
_LARGEST_SHARE = 1 / 200  # of the sum of squares that one unit may have where a sum is called normal


class PairedTest(NamedTuple):
    """How often chance alone does as well, and how that was found."""

    p_value: float
    statistic: float
    method: str


def sign_flip_tests(
    differences: Array,
    *,
    clusters: Sequence[Hashable] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[PairedTest]:
    """Could the mean of each column of paired differences be chance? The same flips serve all columns.

    NaN is a pair that is not there. Samples of one cluster are flipped together. With no more units than
    can be enumerated within `resamples`, all flips are tried and the p-value is exact. Above 20,000 units
    of many different values the sum of the flips is normal to far less than the noise of the resamples, and
    none are made, unless a few units carry most of it.
    """
    there = np.isfinite(differences)
    units = summed_by_unit(np.where(there, differences, 0.0), clusters)
    sizes = there.sum(axis=0)
    observed = np.divide(units.sum(axis=0), sizes, out=np.full(len(sizes), math.nan), where=sizes > 0)
    found: list[PairedTest | None] = [
        _without_draws(column, float(mean), resamples) for column, mean in zip(units.T, observed, strict=True)
    ]
    drawing = [place for place, test in enumerate(found) if test is None]
    if drawing:
        chosen = units[:, drawing]
        thresholds = np.array([_threshold(column) for column in chosen.T])
        extreme = extreme_flips(chosen, thresholds, resamples=resamples, seed=seed)
        for place, count in zip(drawing, extreme.tolist(), strict=True):
            # The observed labelling is one of the permutations: without the +1 a test could report
            # p = 0, which no finite number of resamples can show (Phipson & Smyth 2010).
            p_value = (count + 1) / (resamples + 1)
            method = f"sign flip, {resamples} resamples, seed {seed}"
            found[place] = PairedTest(p_value, float(observed[place]), method)
    return [test for test in found if test is not None]


def _threshold(units: Array) -> float:
    """A flip that ties with the observed sum must count: sums of floats tie only up to rounding."""
    return abs(float(units.sum())) - 1e-11 * float(np.abs(units).sum())


def _without_draws(units: Array, observed: float, resamples: int) -> PairedTest | None:
    """The test where it is exact, or normal; None where flips have to be drawn."""
    units = units[units != 0]
    if not len(units):
        return PairedTest(1.0, observed, "sign flip, exact: no sample differs")
    if 2 ** min(len(units), 64) <= resamples:
        signs = 1 - 2 * ((np.arange(2 ** len(units))[:, np.newaxis] >> np.arange(len(units))) & 1)
        extreme = int((np.abs(signs @ units) >= _threshold(units)).sum())
        return PairedTest(extreme / 2 ** len(units), observed, f"sign flip, exact, {len(units)} units")
    if len(units) <= DRAWS_UP_TO:
        return None
    squares = units**2
    few = len(np.unique(np.abs(units))) <= FEW_VALUES
    if few or squares.max() > _LARGEST_SHARE * squares.sum():
        return None
    p_value = _two_sided(abs(float(units.sum())) / math.sqrt(float(squares.sum())))
    return PairedTest(p_value, observed, f"sign flip, normal form, {len(units)} units")


def paired_swap_test(
    rows_a: Array,
    rows_b: Array,
    aggregate: Callable[[Array], Array],
    *,
    clusters: Sequence[Hashable] | None = None,
    of_sums: bool = False,
    resamples: int = 2_000,
    seed: int = 0,
) -> PairedTest:
    """The same test for any aggregate (corpus BLEU, a quantile): swap samples between the systems.

    `aggregate` reduces the second-last axis of (..., samples, columns); `of_sums` says that it needs no more
    than the sum of each column, which is much quicker. Above 20,000 units the p-value is that of the normal
    distribution with the spread of 200 resamples.
    """
    observed = float(aggregate(rows_b) - aggregate(rows_a))
    if np.array_equal(rows_a, rows_b):
        return PairedTest(1.0, observed, "swap: no sample differs")
    if of_sums and bool(np.isfinite(rows_a).all() and np.isfinite(rows_b).all()):
        units_a, units_b = (summed_by_unit(rows, clusters) for rows in (rows_a, rows_b))
        count = len(units_a)
        resamples = min(resamples, 200) if count > NORMAL_ABOVE else resamples
        drawn = swapped_of_sums(units_a, units_b, aggregate, resamples=resamples, seed=seed)
    else:
        units = np.arange(len(rows_a)) if clusters is None else numbered(clusters)
        count = int(units.max()) + 1
        resamples = min(resamples, 200) if count > NORMAL_ABOVE else resamples
        drawn = _swapped(rows_a, rows_b, aggregate, units, resamples=resamples, seed=seed)
    extreme = int((np.abs(drawn) >= abs(observed) * (1 - 1e-10)).sum())
    squares = float((drawn**2).sum())
    if count > NORMAL_ABOVE and squares > 0 and math.isfinite(squares):
        p_value = _two_sided(abs(observed) / math.sqrt(squares / resamples))
        return PairedTest(p_value, observed, f"swap, normal, spread of {resamples} resamples, seed {seed}")
    return PairedTest((extreme + 1) / (resamples + 1), observed, f"swap, {resamples} resamples, seed {seed}")


def _swapped(
    rows_a: Array,
    rows_b: Array,
    aggregate: Callable[[Array], Array],
    units: NDArray[np.intp],
    *,
    resamples: int,
    seed: int,
) -> Array:
    """The difference between the systems with rows swapped, those of one unit together."""
    rng = np.random.default_rng(seed)
    chunk, count = max(1, CELLS_AT_ONCE // 2 // rows_a.size), int(units.max()) + 1
    found = []
    for done in range(0, resamples, chunk):
        swaps = rng.integers(0, 2, size=(min(chunk, resamples - done), count), dtype=np.int8)
        mask = swaps[:, units, np.newaxis].astype(bool)
        swapped = aggregate(np.where(mask, rows_a, rows_b)) - aggregate(np.where(mask, rows_b, rows_a))
        found.append(swapped)
    return np.concatenate(found)


def mcnemar_exact(only_a: int, only_b: int) -> PairedTest:
    """McNemar's exact test: are two detectors right equally often, by the samples that only one got right?

    Under chance each of these goes to either side like a coin; the statistic is the share that went to b.
    """
    from scipy.stats import binomtest

    if only_a < 0 or only_b < 0:
        raise ValueError(f"counts of samples are not negative: {only_a}, {only_b}")
    if not only_a + only_b:
        return PairedTest(1.0, math.nan, "McNemar, exact: no sample differs")
    found = binomtest(only_b, only_a + only_b, 0.5)
    return PairedTest(
        float(found.pvalue), only_b / (only_a + only_b), f"McNemar, exact, {only_a + only_b} samples"
    )


def _two_sided(z: float) -> float:
    """Return how often a normal number is at least this many deviations from its mean; never 0."""
    return max(math.erfc(z / math.sqrt(2)), 1e-300)


# The tests of the textbooks. A comparison uses permutations; these are for those who are asked for them.


def paired_t_test(a: ArrayLike, b: ArrayLike, *, clusters: Sequence[Hashable] | None = None) -> PairedTest:
    """Student's t-test on b - a, two-sided; with clusters on their robust error, a cluster counting once.

    The p-value is NaN for fewer than two units, 1 where no pair differs, 0 where all differ by the same.
    """
    from scipy.stats import t

    differences = _paired(a, b)
    mean, error, freedom = mean_error(differences, clusters=clusters)
    method = f"paired t, {freedom} degrees of freedom"
    if not freedom:
        return PairedTest(math.nan, math.nan, method)
    if error <= 1e-15 * abs(mean) or error == 0.0:
        return PairedTest(float(mean == 0.0), math.copysign(math.inf, mean) if mean else 0.0, method)
    return PairedTest(2 * float(t.sf(abs(mean) / error, freedom)), mean / error, method)


def _paired(a: ArrayLike, b: ArrayLike) -> Array:
    first, second = (np.asarray(side, dtype=np.float64) for side in (a, b))
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"paired scores come in two equal lists, not {first.shape} and {second.shape}")
    return np.asarray(second - first)


# Two systems that were not asked the same questions: is one better, and how many questions does it take?
#
# welch_difference      the difference of two means, by Welch's t, also where samples come in clusters
# normal_difference     the difference of any two values whose standard errors are known
# two_shares_margin_p   whether a share is worse than another by less than a margin
# sample_ratio_p        whether samples were divided as they should have been


class UnpairedTest(NamedTuple):
    """Second minus first: the difference with its interval, and how often chance alone does as well."""

    difference: float
    low: float
    high: float
    p_value: float
    error: float
    freedom: float
    method: str


def welch_difference(
    a: ArrayLike,
    b: ArrayLike,
    *,
    clusters_a: Sequence[Hashable] | None = None,
    clusters_b: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> UnpairedTest:
    """Welch's t-test on mean b - mean a, two-sided; with clusters on their robust errors.

    The p-value is NaN where a side has fewer than two units.

    >>> round(welch_difference([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]).p_value, 4)
    0.2209
    """
    from scipy.stats import t

    first, second = mean_error(a, clusters=clusters_a), mean_error(b, clusters=clusters_b)
    difference = second.mean - first.mean
    if not first.freedom or not second.freedom:
        return _unknown(difference, "Welch: fewer than two samples")
    error = math.hypot(first.error, second.error)
    if error <= 1e-15 * abs(difference) or error == 0.0:
        p_value = float(difference == 0.0)
        return UnpairedTest(difference, difference, difference, p_value, 0.0, math.inf, "Welch: no spread")
    # Shares of the variance: squares of tiny ones would vanish.
    shares = [(side.error / error) ** 2 for side in (first, second)]
    freedom = 1 / sum(s**2 / side.freedom for s, side in zip(shares, (first, second), strict=True))
    half = float(t.ppf((1 + confidence) / 2, freedom)) * error
    p_value = 2 * float(t.sf(abs(difference) / error, freedom))
    method = f"Welch, {freedom:.1f} degrees of freedom"
    return UnpairedTest(difference, difference - half, difference + half, p_value, error, freedom, method)


def normal_difference(
    a: float, error_a: float, b: float, error_b: float, *, confidence: float = 0.95
) -> UnpairedTest:
    """The same for values of any kind with their standard errors, by the normal distribution."""
    difference, error = b - a, math.hypot(error_a, error_b)
    if not error > 0:
        return _unknown(difference, "normal: an error is not known")
    half = NormalDist().inv_cdf((1 + confidence) / 2) * error
    p_value = 2 * NormalDist().cdf(-abs(difference) / error)
    low, high, method = difference - half, difference + half, "normal, errors from the intervals"
    return UnpairedTest(difference, low, high, p_value, error, math.inf, method)


def two_shares_margin_p(hits_a: int, size_a: int, hits_b: int, size_b: int, margin: float) -> float:
    """The p-value of "the second share is below the first by the margin or more", one-sided.

    The score test of Farrington and Manning (1990): errors are those at the margin, not those seen. By the
    seen ones (Welch) one loss in 150 would rule out one in 50 four times as often as it should.

    >>> round(two_shares_margin_p(150, 150, 149, 150, 0.02), 2)
    0.12
    >>> round(two_shares_margin_p(90, 100, 90, 100, 0.1), 3)
    0.013
    """
    if not size_a or not size_b:
        return math.nan
    share_a, share_b = hits_a / size_a, hits_b / size_b
    low = _share_at_margin(share_a, size_a, share_b, size_b, margin)
    high = low + margin
    variance = low * (1 - low) / size_b + high * (1 - high) / size_a
    gap = share_b - share_a + margin
    if not variance > 0:
        return float(gap <= 0)
    return NormalDist().cdf(-gap / math.sqrt(variance))


def _share_at_margin(share_a: float, size_a: int, share_b: float, size_b: int, margin: float) -> float:
    """The likeliest second share, if the first is above it by the margin: the root of a cubic."""
    ratio = size_a / size_b
    a = 1 + ratio
    b = -(1 + ratio + share_b + ratio * share_a - margin * (ratio + 2))
    c = margin**2 - margin * (2 * share_b + ratio + 1) + share_b + ratio * share_a
    d = share_b * margin * (1 - margin)
    v = b**3 / (27 * a**3) - b * c / (6 * a**2) + d / (2 * a)
    u = math.copysign(math.sqrt(max(0.0, b**2 / (9 * a**2) - c / (3 * a))), v)
    angle = math.acos(max(-1.0, min(1.0, v / u**3))) if u else 0.0
    root = 2 * u * math.cos((math.pi + angle) / 3) - b / (3 * a)
    return min(max(root, 0.0), 1 - margin)


def sample_ratio_p(counts: Sequence[int], shares: Sequence[float]) -> float:
    """The p-value of a chi-square test: could samples divided by these shares come out as these counts?

    >>> round(sample_ratio_p([500, 500], [0.5, 0.5]), 3), sample_ratio_p([600, 400], [0.5, 0.5]) < 1e-9
    (1.0, True)
    """
    from scipy.stats import chi2

    if len(counts) != len(shares) or min(shares, default=0) <= 0:
        raise ValueError("each count has a share, and each share is above 0")
    total, whole = sum(counts), math.fsum(shares)
    if not total:
        return math.nan
    expected = [total * share / whole for share in shares]
    statistic = sum((n - e) ** 2 / e for n, e in zip(counts, expected, strict=True))
    return float(chi2.sf(statistic, len(counts) - 1))


def _unknown(difference: float, method: str) -> UnpairedTest:
    return UnpairedTest(difference, math.nan, math.nan, math.nan, math.nan, 0.0, method)


# Many questions at once: p-values that stay honest when there are several.


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: the chance of even one false alarm among them stays at alpha.

    >>> [round(p, 3) for p in holm([0.001, 0.012, 0.021, 0.04, 0.2])]
    [0.005, 0.048, 0.063, 0.08, 0.2]
    """
    if not all(0 <= p <= 1 for p in p_values):
        raise ValueError(f"p-values are between 0 and 1, not {list(p_values)}")
    adjusted = [math.nan] * len(p_values)
    largest = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda place: p_values[place])):
        largest = max(largest, min(1.0, p_values[index] * (len(p_values) - place)))
        adjusted[index] = largest
    return adjusted


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Benjamini and Hochberg's step-up correction: of what is called a finding, at most alpha is chance.

    >>> [round(p, 3) for p in benjamini_hochberg([0.001, 0.012, 0.021, 0.04, 0.2])]
    [0.005, 0.03, 0.035, 0.05, 0.2]
    """
    from scipy.stats import false_discovery_control

    return [float(p) for p in false_discovery_control(p_values)] if len(p_values) else []


# How large is a difference? In units that do not depend on the metric's own scale.


def cohens_d(a: ArrayLike, b: ArrayLike) -> float:
    """(mean b - mean a) / pooled standard deviation (ddof 1).

    >>> round(cohens_d([1.0, 2.0, 3.0], [2.0, 3.0, 4.0]), 6)
    1.0
    """
    first, second = _array(a), _array(b)
    if min(len(first), len(second)) < 2:
        return math.nan
    squares = float(((first - first.mean()) ** 2).sum() + ((second - second.mean()) ** 2).sum())
    return _over(float(second.mean() - first.mean()), math.sqrt(squares / (len(first) + len(second) - 2)))


def cohens_dz(differences: ArrayLike) -> float:
    """Mean / standard deviation (ddof 1) of paired differences.

    >>> round(cohens_dz([1.0, 2.0, 3.0]), 6)
    2.0
    """
    values = _array(differences)
    return _over(float(values.mean()), float(values.std(ddof=1))) if len(values) >= 2 else math.nan


def cliffs_delta(a: ArrayLike, b: ArrayLike) -> float:
    """P(b > a) - P(b < a) over all pairs of a score of a with one of b; found by ranks, not pair by pair.

    >>> cliffs_delta([1.0, 2.0], [2.0, 3.0])
    0.75
    """
    first, second = np.sort(_array(a)), np.sort(_array(b))  # in order, neighbours are found near each other
    if not len(first) or not len(second):
        return math.nan
    below = np.searchsorted(second, first, side="left").sum()
    above = len(second) * len(first) - np.searchsorted(second, first, side="right").sum()
    return float(above - below) / (len(first) * len(second))


def odds_ratio(a: ArrayLike, b: ArrayLike) -> float:
    """Of 0/1 scores on the same samples: those that only b got over those that only a got.

    Infinite where b lost none of a's; NaN where no sample differs.
    """
    first, second = _binary(a), _binary(b)
    won, lost = float(((first == 0) & (second == 1)).sum()), float(((first == 1) & (second == 0)).sum())
    if not lost:
        return math.inf if won else math.nan
    return won / lost


def _over(difference: float, spread: float) -> float:
    # Rounding leaves a hair of spread where all values are equal.
    return difference / spread if spread > 1e-14 * abs(difference) else math.nan


def _binary(values: ArrayLike) -> Array:
    found = _array(values)
    if not bool(((found == 0) | (found == 1)).all()):
        raise ValueError("an odds ratio needs scores that are 0 or 1")
    return found


def _array(values: ArrayLike) -> Array:
    return np.asarray(values, dtype=np.float64)
