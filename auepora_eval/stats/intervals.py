"""Confidence intervals: how far the value could be from what more samples would show.

Which one, by kind of score (95% unless asked otherwise):

    0/1 scores              Wilson; with clusters, on the effective number of samples, less if they are few
    equal, bounded scores   the share that could be different and yet unseen (Clopper-Pearson)
    other means             BCa bootstrap; above 2,000 samples its closed form, which needs no resamples
    any other aggregate     BCa bootstrap of the aggregate; above 2,000 units the percentile bootstrap; above
                            20,000 the normal interval, with its error from 200 resamples
    quantiles               order statistics (distribution-free)

Samples that share a cluster (a conversation, a base question with its paraphrases) are resampled
together: they are not independent. Of few clusters resamples show too little, and the interval is Student's
where that is wider.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Array
from .resamples import (
    each_resample,
    groups_of,
    leave_one_out,
    resampled_of_sums,
    resampled_ratios,
    summed_by_unit,
)

RESAMPLES = 2_000
CLOSED_FORM_ABOVE = 2_000
NORMAL_ABOVE = 20_000


class Interval(NamedTuple):
    """From low to high, and how it was found."""

    low: float
    high: float
    method: str

    @property
    def limits(self) -> tuple[float, float] | None:
        """Both ends; None where it has no width: equal samples say nothing about others."""
        narrow = math.isclose(self.low, self.high, rel_tol=1e-9, abs_tol=1e-15)
        return None if narrow else (self.low, self.high)

    def within(self, lowest: float, highest: float) -> Interval:
        """The part of it where the value can be."""
        return self._replace(low=max(self.low, lowest), high=min(self.high, highest))


def wilson_interval(successes: float, n: float, *, confidence: float = 0.95) -> Interval:
    """Wilson's score interval for a share. `n` may be an effective, fractional, number of samples."""
    if n <= 0 or not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n} is not a share")
    z = normal_quantile((1 + confidence) / 2)
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # At the ends one limit is exactly 0 or 1; rounding must not put it a hair outside.
    return Interval(
        0.0 if successes == 0 else max(0.0, centre - half),
        1.0 if successes == n else min(1.0, centre + half),
        "Wilson",
    )


def mean_interval(
    values: Array,
    *,
    clusters: Sequence[Hashable] | None = None,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval | None:
    """The interval of a mean of scores: Wilson if all are 0 or 1, else BCa; None where there is none."""
    if len(values) and bool(((values == 0.0) | (values == 1.0)).all()):
        return _share_interval(values, clusters, confidence)
    if len(values) and float(np.ptp(values)) == 0.0:
        units = len(values) if clusters is None else len(set(clusters))
        return _equal_scores_interval(float(values[0]), units, bounds, confidence)
    found = bca_mean_interval(
        values, clusters=clusters, confidence=confidence, resamples=resamples, seed=seed
    )
    return found and found.within(*bounds)


def bca_mean_interval(
    values: Array,
    *,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval | None:
    """BCa interval of a mean of any numbers, differences too; None for fewer than two units."""
    found = bca_mean_intervals(
        values.reshape(-1, 1), clusters=clusters, confidence=confidence, resamples=resamples, seed=seed
    )
    return found[0]


def bca_mean_intervals(
    columns: Array,
    *,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    draws_up_to: int = CLOSED_FORM_ABOVE,
    seed: int = 0,
) -> list[Interval | None]:
    """The BCa interval of each column's mean, all from the same resamples of the rows; NaN means no score.

    Above `draws_up_to` units the closed form of BCa is taken, which needs no resamples. 10,000 resamples of
    10,000 rows take about two seconds, however many columns there are.
    """
    there = np.isfinite(columns)
    sums = summed_by_unit(np.where(there, columns, 0.0), clusters)
    sizes_of = summed_by_unit(there.astype(np.float64), clusters)
    found: list[Interval | None] = [None] * columns.shape[1]
    drawing = []
    for place in range(columns.shape[1]):
        values = _influences(sums[:, place], sizes_of[:, place])
        if len(values) < 2:
            continue
        if float(np.ptp(values)) <= 1e-15 * float(np.abs(values).max()):
            found[place] = Interval(float(values[0]), float(values[0]), "all values equal")
        elif len(values) > draws_up_to and (clusters is None or not are_few(sizes_of[:, place])):
            found[place] = _closed_form_bca(values, confidence)
        else:
            drawing.append(place)
    if drawing:
        sums, sizes = sums[:, drawing], sizes_of[:, drawing]
        drawn = resampled_ratios(sums, sizes, resamples=resamples, seed=seed)
        for place, one, size, draws in zip(drawing, sums.T, sizes.T, drawn.T, strict=True):
            found[place] = _bca_of_ratio(one, size, draws, confidence, seed, by_cluster=clusters is not None)
    if clusters is None:
        return found
    counts = (sizes_of > 0).sum(axis=0).tolist()
    return [i and i._replace(method=f"{i.method}, {n} clusters") for i, n in zip(found, counts, strict=True)]


def _influences(sums: Array, sizes: Array) -> Array:
    """Numbers, one a unit, whose mean is the ratio of the sums, and their spread its spread.

    Where every unit has a size of 1 these are the values themselves.
    """
    there = sizes > 0
    if not there.all():
        sums, sizes = sums[there], sizes[there]
    if bool((sizes == 1.0).all()):
        return sums if sums.flags.c_contiguous else sums.copy()
    ratio = sums.sum() / sizes.sum()
    influences: Array = ratio + (sums - ratio * sizes) * (len(sums) / sizes.sum())
    return influences


def _bca_of_ratio(
    sums: Array, sizes: Array, drawn: Array, confidence: float, seed: int, *, by_cluster: bool
) -> Interval:
    """BCa of a ratio of sums over units; what is left without one of them needs no loop."""
    there = sizes > 0
    drawn = drawn[np.isfinite(drawn)]
    value = float(sums.sum() / sizes.sum())
    if float(np.ptp(drawn)) == 0.0:
        return Interval(value, value, "all resamples equal")
    left_out = (sums.sum() - sums[there]) / (sizes.sum() - sizes[there])
    return bca_from_draws(value, drawn, left_out, confidence, seed, sizes[there] if by_cluster else None)


def bootstrap_interval(
    rows: Array,
    aggregate: Callable[[Array], Array],
    *,
    clusters: Sequence[Hashable] | None = None,
    of_sums: bool = False,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval | None:
    """BCa interval of any aggregate of rows, resampled by sample or, where given, by cluster.

    `aggregate` reduces the second-last axis of (..., samples, columns). Where it needs no more than the sum
    of each column (`of_sums`), no row is ever copied.
    """
    sizes = None if clusters is None else summed_by_unit(np.ones((len(rows), 1)), clusters)[:, 0]
    unit = "" if clusters is None else " by cluster"
    of_sums = of_sums and bool(np.isfinite(rows).all())
    if of_sums:
        rows, clusters = summed_by_unit(rows, clusters), None
    groups = groups_of(len(rows), clusters)
    if len(groups) < 2:
        return None
    value = float(aggregate(rows))
    if len(groups) > NORMAL_ABOVE:
        resamples = min(resamples, 200)
    if of_sums:
        drawn = resampled_of_sums(rows, aggregate, resamples=resamples, seed=seed)
    else:
        drawn = np.array(each_resample(rows, groups, aggregate, resamples, np.random.default_rng(seed)))
    drawn = drawn[np.isfinite(drawn)]
    if len(drawn) < resamples / 2 or not math.isfinite(value):
        return None
    if float(np.ptp(drawn)) == 0.0:
        return Interval(value, value, "all resamples equal")
    if len(groups) > NORMAL_ABOVE:
        half = normal_quantile((1 + confidence) / 2) * float(drawn.std(ddof=1))
        return Interval(
            value - half, value + half, f"normal{unit}, error from {resamples} resamples, seed {seed}"
        )
    if len(groups) > CLOSED_FORM_ABOVE:
        low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
        return Interval(
            float(low), float(high), f"percentile bootstrap{unit}, {resamples} resamples, seed {seed}"
        )
    left_out = (
        aggregate((rows.sum(axis=0) - rows)[:, np.newaxis, :])
        if of_sums
        else leave_one_out(rows, groups, aggregate)
    )
    return bca_from_draws(value, drawn, left_out, confidence, seed, sizes)


def quantile_interval(values: Array, q: float, *, confidence: float = 0.95) -> Interval | None:
    """Order-statistic interval of the q-quantile; None where there are too few values for one.

    The number of values below the quantile is binomial, whatever the distribution. For p95 both
    limits exist from 72 values on; below that the largest value seen is not an upper bound.
    """
    from scipy.stats import binom

    n = len(values)
    tail = (1 - confidence) / 2
    if n == 0:
        return None
    # The largest l with P(X < l) <= tail and the smallest u with P(X >= u) <= tail, X ~ Binomial(n, q).
    lower = int(binom.ppf(tail, n, q))
    while lower > 0 and binom.cdf(lower - 1, n, q) > tail:
        lower -= 1
    upper = int(binom.ppf(1 - tail, n, q)) + 1
    while upper > 1 and binom.sf(upper - 2, n, q) <= tail:
        upper -= 1
    if lower < 1 or upper > n:
        return None
    ordered = np.sort(values)
    return Interval(float(ordered[lower - 1]), float(ordered[upper - 1]), "order statistics")


def _share_interval(values: Array, clusters: Sequence[Hashable] | None, confidence: float) -> Interval | None:
    """Wilson, with as many samples as the clusters are worth (Korn & Graubard's effective size).

    Few clusters are worth less, by as much as Student's interval is wider than the normal one.
    """
    n = len(values)
    share = float(values.mean())
    if clusters is None:
        return wilson_interval(float(values.sum()), n, confidence=confidence)
    sums = summed_by_unit((values - share).reshape(-1, 1), clusters)[:, 0]
    sizes = summed_by_unit(np.ones((n, 1)), clusters)[:, 0]
    count, few = len(sums), are_few(sizes)
    if few and count > 1:
        variance = jackknife_error(share, share - sums / (n - sizes)) ** 2
    else:
        variance = float((sums**2).sum()) / n**2 * (count / (count - 1) if count > 1 else math.inf)
    if 0 < share < 1 and variance > 0:
        effective = min(float(n), share * (1 - share) / variance)
        if few and count > 1:
            effective *= (normal_quantile((1 + confidence) / 2) / student_quantile(sizes, confidence)) ** 2
    else:  # All right or all wrong: the spread says nothing, so each cluster counts as one sample.
        effective = clusters_worth(sizes)
    effective = max(1.0, effective)
    low, high, _ = wilson_interval(share * effective, effective, confidence=confidence)
    return Interval(low, high, f"Wilson, {count} clusters, effective n {effective:.1f}")


def _equal_scores_interval(
    value: float, units: int, bounds: tuple[float, float], confidence: float
) -> Interval | None:
    """Without spread a bootstrap sees nothing; but a share u of other samples could have gone unseen."""
    if not all(map(math.isfinite, bounds)):
        return None
    unseen = 1 - ((1 - confidence) / 2) ** (1 / units)
    low, high = (value + unseen * (bound - value) for bound in bounds)
    return Interval(low, high, "all scores equal, unseen share")


def bca_from_draws(
    value: float, drawn: Array, jackknife: Array, confidence: float, seed: int, sizes: Array | None = None
) -> Interval:
    """Efron's bias-corrected and accelerated interval from resamples and leave-one-out values.

    `sizes` are those of the clusters that were drawn, if these are what was drawn. Few of them have the wider
    of this interval and Student's.
    """
    hair = 1e-10 * float(np.ptp(drawn))  # sums of floats tie only up to rounding
    below = float((drawn < value - hair).sum() + (drawn <= value + hair).sum()) / (2 * len(drawn))
    spread = jackknife.mean() - jackknife
    spread = spread / (np.abs(spread).max() or 1.0)  # the ratio below is free of scale; tiny squares are not
    squares = float((spread**2).sum())
    acceleration = float((spread**3).sum()) / (6 * squares**1.5) if squares > 0 else 0.0
    method = f"BCa bootstrap{'' if sizes is None else ' by cluster'}, {len(drawn)} resamples, seed {seed}"
    if not 0 < below < 1:
        # Every draw on one side: the correction is undefined, the plain percentiles are not.
        levels = [(1 - confidence) / 2, (1 + confidence) / 2]
        method = method.replace("BCa", "percentile")
    else:
        levels = _bca_levels(normal_quantile(below), acceleration, confidence)
    low, high = map(float, np.quantile(drawn, levels))
    if sizes is None or not are_few(sizes):
        return Interval(low, high, method)
    lowest, highest = student_limits(value, jackknife, sizes, confidence)
    return Interval(min(low, lowest), max(high, highest), f"wider of t and {method}")


def _bca_levels(bias: float, acceleration: float, confidence: float) -> list[float]:
    levels = []
    for tail in ((1 - confidence) / 2, (1 + confidence) / 2):
        shifted = bias + normal_quantile(tail)
        levels.append(_normal_cdf(bias + shifted / (1 - acceleration * shifted)))
    return levels


def _closed_form_bca(values: Array, confidence: float) -> Interval:
    """BCa of a mean without resamples.

    For a mean, bias and acceleration both tend to skewness / (6 sqrt n), and the bootstrap
    distribution to its Edgeworth expansion; with thousands of samples the two agree to far less
    than the noise of 2,000 resamples (tests/stats/test_intervals.py compares them).
    """
    n = len(values)
    centred = values - values.mean()
    variance = float((centred**2).mean())
    error = math.sqrt(variance / n)
    skew = float((centred * centred * centred).mean()) / variance**1.5 / (6 * math.sqrt(n))
    limits = []
    for level in _bca_levels(skew, skew, confidence):
        z = normal_quantile(level)
        limits.append(float(values.mean()) + error * (z + skew * (z * z - 1)))
    return Interval(limits[0], limits[1], "BCa, closed form")


def normal_quantile(level: float) -> float:
    """The z that this share of a standard normal distribution lies below: 1.96 for 0.975."""
    from statistics import NormalDist

    return NormalDist().inv_cdf(level)


def _normal_cdf(z: float) -> float:
    return math.erfc(-z / math.sqrt(2)) / 2


# Few clusters: intervals that hold where resamples of whole clusters do not.
#
# Two clusters give three different resamples, five a hundred and twenty-six: a bootstrap of this few is far
# too narrow (with 2, 3, 5 and 10 clusters it covers the truth in 50, 75, 83 and 91 of 100 runs). Student's
# interval accounts for how little a spread of few numbers is worth. Its error is the jackknife's, each
# cluster left out in turn, and its degrees of freedom are those of equal clusters with the same
# information: one conversation of 90 samples beside ten of one is hardly more than a single cluster.

FEW = 40  # clusters; from there on a bootstrap has its coverage


def clusters_worth(sizes: ArrayLike) -> float:
    """Return how many equal clusters have the same information: n² over the sum of squared sizes.

    >>> clusters_worth([5, 5, 5]), round(clusters_worth([90] + [1] * 10), 2)
    (3.0, 1.23)
    """
    numbers = np.asarray(sizes, dtype=np.float64)
    return float(numbers.sum() ** 2 / (numbers**2).sum())


def are_few(sizes: ArrayLike) -> bool:
    """Whether clusters of these sizes are too few to be drawn; those of one sample each are no clusters."""
    return bool(np.max(sizes) > 1) and clusters_worth(sizes) < FEW - 1e-9


def student_quantile(sizes: ArrayLike, confidence: float = 0.95) -> float:
    """How many standard errors Student's interval reaches to either side of a value."""
    from scipy.stats import t

    freedom = max(1.0, clusters_worth(sizes) - 1)
    return float(t.ppf((1 + confidence) / 2, freedom))


def jackknife_error(value: float, left_out: Array) -> float:
    """The standard error of a value, from what it would be without each of the clusters."""
    units = len(left_out)
    return math.sqrt((units - 1) / units * float(((left_out - value) ** 2).sum()))


def student_limits(value: float, left_out: Array, sizes: ArrayLike, confidence: float) -> tuple[float, float]:
    """Return Student's interval of a value from clusters of these sizes."""
    half = student_quantile(sizes, confidence) * jackknife_error(value, left_out)
    return value - half, value + half


def errors_wide(clusters: Sequence[Hashable] | None) -> float:
    """How many standard errors a 95% interval reaches to either side: 1.96, and more by few clusters."""
    from statistics import NormalDist

    sizes = [] if clusters is None else list(Counter(clusters).values())
    return student_quantile(sizes) if len(sizes) > 1 and are_few(sizes) else NormalDist().inv_cdf(0.975)


# How far a mean is from the truth, on average: the standard error, also where samples come in clusters.


class MeanError(NamedTuple):
    """A mean, its standard error, and the degrees of freedom of that: units less one."""

    mean: float
    error: float
    freedom: int


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


def standard_error(values: ArrayLike, *, clusters: Sequence[Hashable] | None = None) -> float:
    """The standard error of a mean; with `clusters`, that of a mean of clustered samples.

    >>> round(standard_error([1.0, 2.0, 3.0, 4.0]), 6)
    0.645497
    """
    return mean_error(values, clusters=clusters).error


def careful_error(values: ArrayLike, *, clusters: Sequence[Hashable] | None = None) -> float:
    """The standard error of a mean; of few clusters the jackknife's.

    Of clusters of equal size that is the same. Where one is far larger than the others the usual error is
    too small: the mean is nearly that cluster's own.
    """
    found = mean_error(values, clusters=clusters)
    if clusters is None or not found.freedom:
        return found.error
    numbers = np.asarray(values, dtype=np.float64).reshape(-1, 1)
    sums, sizes = (summed_by_unit(one, clusters)[:, 0] for one in (numbers, np.ones_like(numbers)))
    if not are_few(sizes):
        return found.error
    return jackknife_error(found.mean, (sums.sum() - sums) / (sizes.sum() - sizes))


def design_effect(values: ArrayLike, clusters: Sequence[Hashable]) -> float:
    """How many times more samples the clusters cost: the variance of the mean with them over that without."""
    plain = standard_error(values)
    return (standard_error(values, clusters=clusters) / plain) ** 2 if plain > 0 else math.nan
