"""Confidence intervals: one rule for values and for changes, with and without clusters.

Student's t over independent units, after two imaginary units were added ("plus two"). A unit is a sample, or
a cluster of samples. With n units u, the value v and the imaginary units a and b:

    middle = (n v + a + b) / (n + 2)
    error² = (Σ (u - middle)² + (a - middle)² + (b - middle)²) / ((n + 1)(n + 2))
    interval = middle ± t(n - 1) error

For a value, a and b are the ends of the metric's scale; where at least 20 units differ from the most common
score, they lie no further beyond the scores than these lie apart. For a change they are one gain and one loss
of the size that changes had (root mean square); of the largest possible size where fewer than six units
differ and others do not. Clusters, and aggregates that are not means, are turned into one number per unit by
the jackknife. Of a mean these numbers are the scores. For 0/1 changes this is the interval of Bonett and
Price (2012). Nothing is drawn at random. benchmarks/interval_coverage.py shows how often the intervals hold.

Only samples that take part in a value are units of it: the F1 of a rare label rests on the few samples that
have it or were given it, however many others there are. A value that is a mean over classes (balanced
accuracy, macro-F1) has two imaginary units in each class; the errors of the classes add up in squares.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .arrays import Array, ArrayLike, Indices, Mask
from .resamples import CELLS_AT_ONCE, numbered, summed_by_unit

MANY = 20  # units that differ from the most common score: these show how far scores reach
ENOUGH = 6  # units that differ: fewer cannot be significant by their signs alone, 2 / 2**5 > 0.05
FEW_LABELS = 50  # samples: below, intervals of kappa and macro-F1 are too narrow if a label is rare
TOO_NARROW = "may be too narrow below 50 samples"
_ALIKE = 1e-9  # pseudo-values of equal scores differ by the rounding of sums
_LEFT_OUT = 1_000  # of more units, groups are left out: n² rows would be too many

Aggregate = Callable[[Array], Array]
Bounds = tuple[float, float]


class Interval(NamedTuple):
    """From low to high, and how it was computed."""

    low: float
    high: float
    method: str

    def within(self, lowest: float, highest: float) -> Interval:
        """Return the part of it where the value can be.

        >>> Interval(-0.2, 1.3, "").within(0, 1)[:2]
        (0, 1)
        """
        low, high = (min(max(end, lowest), highest) for end in self[:2])
        return self._replace(low=low, high=high)

    def of_labels(self, samples: int) -> Interval:
        """Return the interval of a statistic of labels; its method says where a rare label is a problem."""
        return self if samples >= FEW_LABELS else self._replace(method=f"{self.method}, {TOO_NARROW}")


class Share(NamedTuple):
    """What a value is the weighted sum of: an aggregate, and the samples that take part in it."""

    aggregate: Aggregate
    takes_part: Mask
    weight: float = 1.0


class Units(NamedTuple):
    """A value, and one number per independent unit whose spread is that of the value.

    `numbers` is (units,), or (units, columns) for many values at once. Units of a share of a value have its
    weight, and their numbers among the units of the whole.
    """

    value: Array
    numbers: Array
    freedom: float
    clustered: bool = False
    weight: float = 1.0
    of_whole: Indices | None = None

    def minus(self, other: Units) -> Units:
        """Return the units of the difference between two values of the same samples."""
        return self._replace(value=self.value - other.value, numbers=self.numbers - other.numbers)

    def times(self, sign: int) -> Units:
        """Return the units of the value times 1 or -1."""
        return self._replace(value=sign * self.value, numbers=sign * self.numbers)

    @property
    def method(self) -> str:
        """How an interval of these units is described in a results file."""
        return "Student's t, plus two" + (f", {len(self.numbers)} clusters" if self.clustered else "")


class Estimate(NamedTuple):
    """Student's t of a value, with the imaginary units included."""

    middle: Array
    error: Array
    freedom: float

    def limits(self, confidence: float = 0.95) -> tuple[Array, Array]:
        half = t_quantile(self.freedom, (1 + confidence) / 2) * self.error
        return self.middle - half, self.middle + half

    def p_below(self, limit: float) -> float:
        """Return the one-sided p-value of "the value is at most the limit"."""
        from scipy.special import stdtr

        return float(stdtr(self.freedom, (limit - self.middle) / self.error))


def plus_two(units: Units, low: ArrayLike, high: ArrayLike) -> Estimate:
    """Return the estimate from units and one imaginary unit at `low` and one at `high`."""
    n, a, b = len(units.numbers), np.asarray(low), np.asarray(high)
    middle = (n * units.value + a + b) / (n + 2)
    squares = ((units.numbers - middle) ** 2).sum(axis=0) + (a - middle) ** 2 + (b - middle) ** 2
    return Estimate(middle, np.sqrt(squares / ((n + 1) * (n + 2))), max(units.freedom, 1.0))


def value_ends(units: Units, bounds: Bounds) -> tuple[Array, Array]:
    """Return where the imaginary units of a value lie."""
    n, numbers, (low, high) = len(units.numbers), units.numbers, bounds
    few: Mask = np.ones(numbers.shape[1:], dtype=bool)
    if n > MANY:
        # All but 19 are alike where a window of n - 19 values in order has no width.
        ends = np.partition(numbers, (MANY - 1, n - MANY), axis=0)
        lowest, highest = np.sort(ends[:MANY], axis=0), np.sort(ends[n - MANY :], axis=0)
        few = np.asarray((highest - lowest <= _ALIKE * (1 + np.abs(highest))).any(axis=0))
    smallest, largest = numbers.min(axis=0), numbers.max(axis=0)
    below = np.maximum(low, 2 * smallest - largest)
    above = np.minimum(high, 2 * largest - smallest)
    return (
        np.where(few & np.isfinite(low), low, below),
        np.where(few & np.isfinite(high), high, above),
    )


def value_interval(units: Units, bounds: Bounds) -> Interval | None:
    """Return the interval of a value; None for one unit, and for equal scores of a metric without bounds."""
    return shares_interval([units], bounds)


def shares_interval(shares: Sequence[Units], bounds: Bounds) -> Interval | None:
    """Return the interval of the weighted sum of shares, as `value_interval` does."""
    # Of several classes one may have a single sample: its t has one degree of freedom, which is wide enough.
    if sum(len(one.numbers) for one in shares) < 2 or not all(math.isfinite(one.value) for one in shares):
        return None
    whole = weighted_sum([(one, plus_two(one, *value_ends(one, bounds))) for one in shares])
    low, high = (float(end) for end in whole.limits())
    if math.isclose(low, high, rel_tol=1e-9, abs_tol=1e-12):
        return None
    return Interval(low, high, shares[0].method).within(*bounds)


def weighted_sum(shares: Sequence[tuple[Units, Estimate]]) -> Estimate:
    """Return the estimate of the weighted sum of shares: their errors add up in squares.

    A unit may be in several shares: a sample of one class that was taken for another, a cluster with samples
    of both. What it adds to them is added up first, as it goes up or down in all of them together.
    """
    if len(shares) == 1 and shares[0][0].weight == 1.0:
        return shares[0][1]
    middle = sum(units.weight * estimate.middle for units, estimate in shares)
    squares = [(units.weight * float(estimate.error)) ** 2 for units, estimate in shares]
    together = np.zeros(1 + max(int(_of_whole(units).max()) for units, _ in shares))
    apart = 0.0
    for units, estimate in shares:
        n = len(units.numbers)
        moved = units.weight * (units.numbers - estimate.middle) / math.sqrt((n + 1) * (n + 2))
        together[_of_whole(units)] += moved
        apart += float((moved**2).sum())
    variance = sum(squares) + float((together**2).sum()) - apart
    # Satterthwaite: the class with the largest error decides how well the error is known.
    freedom = sum(squares) ** 2 / sum(
        square**2 / estimate.freedom for square, (_, estimate) in zip(squares, shares, strict=True)
    )
    return Estimate(np.asarray(middle), np.sqrt(np.asarray(variance)), freedom)


def _of_whole(units: Units) -> Indices:
    return np.arange(len(units.numbers)) if units.of_whole is None else units.of_whole


def change_size(units: Units, differs: Mask, reach: float) -> Array:
    """Return how large the imaginary gain and the imaginary loss of a change are.

    `differs` marks the units in which anything differs; `reach` is the most that a unit can change.
    """
    count = differs.sum(axis=0)
    typical = np.sqrt((units.numbers**2 * differs).sum(axis=0) / np.maximum(count, 1))
    is_shown = ((count >= ENOUGH) | (count == len(units.numbers))) & (typical > 0)
    return np.where(is_shown, typical, reach)


def shares_change_interval(shares: Sequence[tuple[Units, Mask]], reach: float) -> Interval | None:
    """Return the interval of the change of a weighted sum of shares.

    None for one unit, and where nothing differs and nothing bounds it.
    """
    sizes = [float(change_size(units, differs, reach)) for units, differs in shares]
    if sum(len(units.numbers) for units, _ in shares) < 2 or not all(0 < size < math.inf for size in sizes):
        return None
    whole = weighted_sum(
        [(units, plus_two(units, -size, size)) for (units, _), size in zip(shares, sizes, strict=True)]
    )
    low, high = (float(end) for end in whole.limits())
    return Interval(low, high, shares[0][0].method)


def agreeing_with_test(interval: Interval, change: float, p_value: float, level: float = 0.05) -> Interval:
    """Return the interval, cut at 0 where the test is significant and extended to 0 where it is not.

    An exact test decides whether there is a change, the interval how large it can be: they must not
    contradict each other.

    >>> agreeing_with_test(Interval(-0.01, 0.2, ""), 0.1, 0.03)[:2]
    (0.0, 0.2)
    >>> agreeing_with_test(Interval(0.01, 0.2, ""), 0.1, 0.06)[:2]
    (0.0, 0.2)
    """
    if p_value >= level:
        return interval._replace(low=min(interval.low, 0.0), high=max(interval.high, 0.0))
    if change > 0:
        return interval._replace(low=max(interval.low, 0.0))
    return interval._replace(high=min(interval.high, 0.0))


def mean_interval(
    values: Array,
    *,
    clusters: Sequence[Hashable] | None = None,
    bounds: Bounds = (-math.inf, math.inf),
) -> Interval | None:
    """Return the interval of a mean of scores; None where the data cannot give one."""
    if not len(values):
        return None
    return value_interval(mean_units(values, clusters), bounds)


def mean_change_interval(
    differences: Array, *, clusters: Sequence[Hashable] | None = None, reach: float = 1.0
) -> Interval | None:
    """Return the interval of a mean of paired differences, of which none can be larger than `reach`."""
    differs = summed_by_unit((differences != 0).astype(np.float64).reshape(-1, 1), clusters)[:, 0] > 0
    return shares_change_interval([(mean_units(differences, clusters), differs)], reach)


def mean_units(values: Array, clusters: Sequence[Hashable] | None = None) -> Units:
    """Return the units of a mean: the scores themselves, or one number per cluster."""
    if clusters is None:
        return Units(values.mean(axis=0), values, len(values) - 1)
    rows = np.stack([values, np.ones(len(values))], axis=1)
    return aggregate_units(rows, _ratio, clusters=clusters, of_sums=True)


def _ratio(sums: Array) -> Array:
    return np.asarray(sums[..., 0].sum(axis=-1) / sums[..., 1].sum(axis=-1))


def aggregate_units(
    rows: Array,
    aggregate: Aggregate,
    *,
    clusters: Sequence[Hashable] | None = None,
    of_sums: bool = False,
) -> Units:
    """Return the units of any aggregate: its pseudo-values, each unit left out in turn (jackknife).

    `aggregate` reduces the second-last axis of (..., samples, columns). `of_sums` says that it needs no more
    than the sum of each column.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        value = aggregate(rows)
        if len(rows if clusters is None else set(clusters)) < 2:
            return Units(value, np.atleast_1d(value), 0.0, clusters is not None)
        if of_sums and bool(np.isfinite(rows).all()):
            sums = summed_by_unit(rows, clusters)
            sizes = summed_by_unit(np.ones((len(rows), 1)), clusters)[:, 0]
            rest = (sums.sum(axis=0) - sums)[:, np.newaxis, :]
            at_once = max(1, CELLS_AT_ONCE // rest.shape[-1])
            blocks = (rest[start : start + at_once] for start in range(0, len(rest), at_once))
            left_out = np.concatenate([aggregate(block) for block in blocks])
        else:
            unit_of = left_out_units(len(rows), clusters)
            sizes = np.bincount(unit_of).astype(np.float64)
            left_out = np.array([aggregate(rows[unit_of != unit]) for unit in range(len(sizes))])
    return _pseudo_values(np.asarray(value), left_out, sizes, clustered=clusters is not None)


def share_units(
    rows: Array, share: Share, *, clusters: Sequence[Hashable] | None = None, of_sums: bool = False
) -> Units:
    """Return the units of a share of a value: the samples, or clusters, that take part in it."""
    chosen = share.takes_part
    place = np.arange(len(rows)) if clusters is None else numbered(clusters)
    of_whole = place[chosen]
    if clusters is not None:
        clusters = of_whole.tolist()
        # In the order of their first appearance, as units are numbered.
        of_whole = np.array(list(dict.fromkeys(clusters)), dtype=np.intp)
        clusters = None if len(of_whole) == len(clusters) else clusters
    units = aggregate_units(rows[chosen], share.aggregate, clusters=clusters, of_sums=of_sums)
    return units._replace(weight=share.weight, of_whole=of_whole)


def weighted_units(
    statistic: Callable[[Array], Array], items: int, clusters: Sequence[Hashable] | None = None
) -> Units:
    """Return the units of a statistic of weighted items: (resamples, items) weights give (resamples,)."""
    unit_of = left_out_units(items, clusters)
    sizes = np.bincount(unit_of).astype(np.float64)
    at_once = max(1, CELLS_AT_ONCE // (4 * items))
    blocks = (np.arange(start, min(start + at_once, len(sizes))) for start in range(0, len(sizes), at_once))
    left_out = [statistic((unit_of != block[:, np.newaxis]).astype(np.float64)) for block in blocks]
    value = statistic(np.ones((1, items)))[0]
    return _pseudo_values(value, np.concatenate(left_out), sizes, clustered=clusters is not None)


def left_out_units(items: int, clusters: Sequence[Hashable] | None) -> Indices:
    """Return the number of each item's unit; of more than 1,000 units, groups of units count as one."""
    unit_of = np.arange(items) if clusters is None else numbered(clusters)
    return unit_of % _LEFT_OUT


def _pseudo_values(value: Array, left_out: Array, sizes: Array, *, clustered: bool) -> Units:
    # A unit without which the statistic is undefined says nothing about its spread.
    left_out = np.where(np.isfinite(left_out), left_out, value)
    numbers = value + (len(sizes) - 1) * (value - left_out)
    return Units(value, numbers, clusters_worth(sizes) - 1, clustered)


def clusters_worth(sizes: ArrayLike) -> float:
    """Return how many equal clusters have the same information: n² over the sum of squared sizes.

    >>> clusters_worth([5, 5, 5]), round(clusters_worth([90] + [1] * 10), 2)
    (3.0, 1.23)
    """
    numbers = np.asarray(sizes, dtype=np.float64)
    return float(numbers.sum() ** 2 / (numbers**2).sum())


def quantile_interval(values: Array, q: float, *, confidence: float = 0.95) -> Interval | None:
    """Order-statistic interval of the q-quantile; None where there are too few values for one.

    The number of values below the quantile is binomial, whatever the distribution. For p95 both
    limits exist from 72 values on; below that the largest value seen is not an upper bound.
    """
    from scipy.special import bdtr, bdtrc

    n = len(values)
    tail = (1 - confidence) / 2
    if n == 0:
        return None
    # The largest l with P(X < l) <= tail and the smallest u with P(X >= u) <= tail, X ~ Binomial(n, q). Ten
    # standard deviations around the mean are enough to find them.
    reach = 10 * math.sqrt(n * q * (1 - q)) + 1
    counts = np.arange(max(0, math.floor(n * q - reach)), min(n, math.ceil(n * q + reach)) + 1)
    lower = int(counts[np.argmax(bdtr(counts, n, q) > tail)])
    upper = int(counts[np.argmax(bdtrc(counts, n, q) <= tail)]) + 1
    if lower < 1 or upper > n:
        return None
    ordered = np.sort(values)
    return Interval(float(ordered[lower - 1]), float(ordered[upper - 1]), "order statistics")


# How far a mean is from the truth, on average: the standard error, also where samples come in clusters.


class MeanError(NamedTuple):
    """A mean, its standard error, and the degrees of freedom of that: units less one."""

    mean: float
    error: float
    freedom: float


def mean_error(values: ArrayLike, *, clusters: Sequence[Hashable] | None = None) -> MeanError:
    """The mean of scores with its standard error; NaN where fewer than two units are there.

    Samples of one cluster count together: the square root of the summed squares of each cluster's summed
    deviations, over n, times sqrt(G / (G - 1)) for G clusters. Clusters of one sample each give s / sqrt(n).
    """
    numbers = np.asarray(values, dtype=np.float64)
    n = len(numbers)
    if not n:
        return MeanError(math.nan, math.nan, 0)
    mean = float(numbers.mean())
    deviations = summed_by_unit((numbers - mean).reshape(-1, 1), clusters)[:, 0]
    units = len(deviations)
    if units < 2:
        return MeanError(mean, math.nan, 0)
    error = math.sqrt(float((deviations**2).sum()) * units / (units - 1)) / n
    return MeanError(mean, error, units - 1)


# Quantiles of Student's t. scipy.special has them too, but every interval needs one, and the import takes
# longer than to score 1,000 samples.


@lru_cache(maxsize=256)
def t_quantile(freedom: float, probability: float) -> float:
    """Return the value that Student's t stays below with this probability.

    >>> round(t_quantile(9, 0.975), 6)
    2.262157
    """
    from statistics import NormalDist

    tail = min(probability, 1 - probability)
    z = -NormalDist().inv_cdf(tail)
    t = _expanded(freedom, z) if freedom >= _MANY else _solved(freedom, tail, z)
    return t if probability > 0.5 else -t


_MANY = 2_000  # degrees of freedom from which four terms of the expansion give 12 digits


def _expanded(freedom: float, z: float) -> float:
    """Return the quantile from that of the normal distribution (Abramowitz and Stegun 26.7.5)."""
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return z + sum(term / freedom**power for power, term in enumerate(terms, start=1))


def _solved(freedom: float, tail: float, t: float) -> float:
    """Return the value above which Student's t is with probability `tail`, by Newton's method from t."""
    # The start is too small, and the logarithm of the tail is concave: no step goes too far.
    for _ in range(50):
        current = _tail(freedom, t)
        step = current / _density(freedom, t) * math.log(current / tail)
        t += step
        if abs(step) <= 1e-13 * t:
            break
    return t


def _tail(freedom: float, t: float) -> float:
    """Return the probability that Student's t is above t, for t >= 0."""
    x = freedom / (freedom + t * t)
    front = t * _density(freedom, t)
    # The incomplete beta function of (freedom / 2, 1 / 2), from the side where its fraction converges fast.
    if t * t > 3 * freedom / (freedom + 2):
        return front * _fraction(freedom / 2, 0.5, x) / freedom
    return 0.5 - front * _fraction(0.5, freedom / 2, 1 - x)


def _density(freedom: float, t: float) -> float:
    scale = _gamma_ratio(freedom / 2) / math.sqrt(freedom * math.pi)
    return scale * math.exp(-(freedom + 1) / 2 * math.log1p(t * t / freedom))


def _gamma_ratio(x: float) -> float:
    """Return gamma(x + 1/2) / gamma(x)."""
    if x < 100:
        return math.gamma(x + 0.5) / math.gamma(x)
    # The difference of two large logarithms would lose digits.
    series = (1, -1 / 8, 1 / 128, 5 / 1024, -21 / 32768, -399 / 262144, 869 / 4194304)
    return math.sqrt(x) * sum(term / x**power for power, term in enumerate(series))


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function (Lentz's method)."""
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / (1 + term * d)
            c = 1 + term / c
            value *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return value


# Intervals that hold however often one looks: for runs that stop as soon as the answer is clear.
#
# An interval made for a fixed number of samples is wrong too often if one looks again and again and stops
# when it is convenient. Here a gambler bets, sample by sample, that the mean is above a threshold. If it is
# not, no way of betting makes money on average, and the chance that the wealth ever grows to 1 / alpha
# times what it was is at most alpha (Ville), at whatever moment one stops. The thresholds that are not
# refuted so are the confidence sequence (Waudby-Smith & Ramdas 2024, "Estimating means of bounded random
# variables by betting").
#
# It asks for two things: every score lies between bounds that are known beforehand, and the units (samples,
# or whole clusters of them) come in random order and were drawn independently from what the mean is of. It
# does not ask that scores are normal or that there are many. The wealth is a mean over gamblers who each
# bet a fixed share of it, so that it depends on the scores alone and not on their order.

METHOD = "confidence sequence (betting)"
# Bold gamblers are the first to see a large effect, careful ones see a small one at all. Nobody knows
# beforehand which it will be: all play, and the bolder ones have more of the money.
_SHARES = tuple(0.8 * 0.5**n for n in range(10))
_MONEY = tuple(1 / (n + 1) / sum(1 / (k + 1) for k in range(10)) for n in range(10))
_HALVINGS = 40


class Evidence:
    """How much speaks for a mean above a threshold, of scores between 0 and 1 that come one by one.

    >>> evidence = Evidence(0.5)
    >>> for _ in range(9):
    ...     evidence.add(1.0)
    >>> evidence.is_clear(0.05)
    True
    """

    def __init__(self, threshold: float, *, largest: int = 1) -> None:
        self.threshold, self.largest = threshold, largest
        self._logs = [math.log(money) for money in _MONEY]

    def add(self, total: float, size: int = 1) -> None:
        """A further independent unit: the sum of its scores, and how many they are (at most `largest`)."""
        # Scaled so that the largest possible loss is the whole stake. Shares below 1 keep log1p finite.
        gain = max(-1.0, (total - self.threshold * size) / (self.threshold * self.largest))
        for place, share in enumerate(_SHARES):
            self._logs[place] += math.log1p(share * gain)

    @property
    def log_wealth(self) -> float:
        """The logarithm of what the gamblers have, who began with 1."""
        return float(np.logaddexp.reduce(self._logs))  # the wealth of a long run is too large for exp()

    def is_clear(self, alpha: float) -> bool:
        """Whether the mean is above the threshold, with a chance of at most alpha ever to say so wrongly."""
        return self.log_wealth >= -math.log(alpha)


def sequence_interval(
    lows: ArrayLike,
    highs: ArrayLike | None = None,
    *,
    sizes: ArrayLike | None = None,
    largest: int = 1,
    confidence: float = 0.95,
) -> Interval:
    """The interval of a mean of scores between 0 and 1 that holds at whatever moment one stopped.

    Scores that are not known lie between `lows` and `highs`. With `sizes` each number is the sum of that many
    scores, a cluster's; `largest` is the size of the largest cluster that there could have been.

    >>> interval = sequence_interval([1.0] * 20 + [0.0] * 20)
    >>> round(interval.low, 2), round(interval.high, 2)
    (0.26, 0.74)
    """
    below = np.asarray(lows, dtype=np.float64)
    above = below if highs is None else np.asarray(highs, dtype=np.float64)
    counts = np.ones(len(below)) if sizes is None else np.asarray(sizes, dtype=np.float64)
    alpha = (1 - confidence) / 2
    low = _lower_limit(below, counts, largest, alpha)
    high = 1 - _lower_limit(counts - above, counts, largest, alpha)
    return Interval(low, high, METHOD)


def _lower_limit(totals: Array, sizes: Array, largest: int, alpha: float) -> float:
    """The highest threshold that the mean is clearly above; 0 where there is none."""
    # Many scores are equal: the work is that of the different ones.
    units, often = np.unique(np.stack([totals, sizes], axis=1), axis=0, return_counts=True)
    totals, sizes = units[:, 0], units[:, 1]

    def is_clear(threshold: float) -> bool:
        gains = np.maximum((totals - threshold * sizes) / (threshold * largest), -1.0)
        logs = [float(often @ np.log1p(share * gains)) for share in _SHARES]
        return bool(np.logaddexp.reduce(logs + np.log(_MONEY)) >= -math.log(alpha))

    if not bool((totals > 0).any()):
        return 0.0
    low, high = 0.0, 1.0  # the higher the threshold, the less is won: one place divides clear from not clear
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_clear(middle) else (low, middle)
    return low
