"""Confidence intervals: how far the value could be from what more samples would show.

Which one, by kind of score (95% unless asked otherwise):

    0/1 scores              Wilson; with clusters, on the effective number of samples
    equal, bounded scores   the share that could be different and yet unseen (Clopper-Pearson)
    other means             BCa bootstrap; above 2,000 units its closed form, which needs no draws
    any other aggregate     BCa bootstrap of the aggregate; above 2,000 units the percentile bootstrap; above
                            20,000 the normal interval, with its error from 200 draws
    quantiles               order statistics (distribution-free)

Samples that share a cluster (a conversation, a base question with its paraphrases) are resampled
together: they are not independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Indices = NDArray[np.intp]

RESAMPLES = 2_000
CLOSED_FORM_ABOVE = 2_000
NORMAL_ABOVE = 20_000
_CELLS_AT_ONCE = 4_000_000  # what a stack of resamples may hold at a time: 32 MB


class Interval(NamedTuple):
    """From low to high, and how it was found."""

    low: float
    high: float
    method: str


def wilson_interval(successes: float, n: float, *, confidence: float = 0.95) -> Interval:
    """Wilson's score interval for a share. `n` may be an effective, fractional, number of samples."""
    if n <= 0 or not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n} is not a share")
    z = _normal_quantile((1 + confidence) / 2)
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
    import numpy as np

    if len(values) and bool(((values == 0.0) | (values == 1.0)).all()):
        return _share_interval(values, clusters, confidence)
    if len(values) and float(np.ptp(values)) == 0.0:
        units = len(values) if clusters is None else len(set(clusters))
        return _equal_scores_interval(float(values[0]), units, bounds, confidence)
    return bca_mean_interval(values, clusters=clusters, confidence=confidence, resamples=resamples, seed=seed)


def bca_mean_interval(
    values: Array,
    *,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval | None:
    """BCa interval of a mean of any numbers, differences too; None for fewer than two units."""
    import numpy as np

    n = len(values)
    if clusters is not None:
        groups = _groups(n, clusters)
        # A mean needs only each cluster's sum and size, and those resample as fast as samples do.
        rows = np.array([(values[group].sum(), len(group)) for group in groups])
        found = bootstrap_interval(
            rows, _ratio_of_sums, confidence=confidence, resamples=resamples, seed=seed
        )
        return found and found._replace(method=f"{found.method}, {len(groups)} clusters")
    if n < 2:
        return None
    if float(np.ptp(values)) == 0.0:
        return Interval(float(values[0]), float(values[0]), "all values equal")
    if n > CLOSED_FORM_ABOVE:
        return _closed_form_bca(values, confidence)
    means = _resampled_means(values, resamples, seed)
    jackknife = (values.sum() - values) / (n - 1)
    return _bca(float(values.mean()), means, jackknife, confidence, seed)


def bootstrap_interval(
    rows: Array,
    aggregate: Callable[[Array], Array],
    *,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval | None:
    """BCa interval of any aggregate of rows, resampled by sample or, where given, by cluster.

    `aggregate` reduces the second-last axis of (..., samples, columns).
    """
    import numpy as np

    groups = _groups(len(rows), clusters)
    if len(groups) < 2:
        return None
    rng = np.random.default_rng(seed)
    value = float(aggregate(rows))
    if len(groups) > NORMAL_ABOVE:
        resamples = min(resamples, 200)
    drawn = np.array(_each_resample(rows, groups, aggregate, resamples, rng))
    drawn = drawn[np.isfinite(drawn)]
    if len(drawn) < resamples / 2 or not math.isfinite(value):
        return None
    if float(np.ptp(drawn)) == 0.0:
        return Interval(value, value, "all resamples equal")
    unit = "" if clusters is None else " by cluster"
    if len(groups) > NORMAL_ABOVE:
        half = _normal_quantile((1 + confidence) / 2) * float(drawn.std(ddof=1))
        return Interval(
            value - half, value + half, f"normal{unit}, error from {resamples} draws, seed {seed}"
        )
    if len(groups) > CLOSED_FORM_ABOVE:
        low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
        return Interval(
            float(low), float(high), f"percentile bootstrap{unit}, {resamples} draws, seed {seed}"
        )
    return _bca(value, drawn, _leave_one_out(rows, groups, aggregate), confidence, seed, unit)


def quantile_interval(values: Array, q: float, *, confidence: float = 0.95) -> Interval | None:
    """Order-statistic interval of the q-quantile; None where there are too few values for one.

    The number of values below the quantile is binomial, whatever the distribution. For p95 both
    limits exist from 72 values on; below that the largest value seen is not an upper bound.
    """
    import numpy as np
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
    """Wilson, with as many samples as the clusters are worth (Korn & Graubard's effective size)."""
    n = len(values)
    share = float(values.mean())
    if clusters is None:
        return wilson_interval(float(values.sum()), n, confidence=confidence)
    groups = _groups(n, clusters)
    count = len(groups)
    variance = sum(float((values[group] - share).sum()) ** 2 for group in groups) / n**2
    variance *= count / (count - 1) if count > 1 else math.inf
    # All right or all wrong: the spread says nothing, so each cluster counts as one sample.
    effective = share * (1 - share) / variance if 0 < share < 1 and variance > 0 else float(count)
    effective = min(float(n), max(1.0, effective))
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


def _groups(n: int, clusters: Sequence[Hashable] | None) -> list[Indices]:
    """The row numbers of each independent unit, in order of first appearance."""
    import numpy as np

    if clusters is None:
        return list(np.arange(n).reshape(-1, 1))
    members: dict[Hashable, list[int]] = {}
    for place, cluster in enumerate(clusters):
        members.setdefault(cluster, []).append(place)
    return [np.array(places) for places in members.values()]


def _ratio_of_sums(rows: Array) -> Array:
    ratio: Array = rows[..., 0].sum(axis=-1) / rows[..., 1].sum(axis=-1)
    return ratio


def _leave_one_out(rows: Array, groups: list[Indices], aggregate: Callable[[Array], Array]) -> Array:
    import numpy as np

    everything = np.arange(len(rows))
    if len(groups) < len(rows):
        return np.array([float(aggregate(np.delete(rows, group, axis=0))) for group in groups])
    chunk = max(1, _CELLS_AT_ONCE // rows.size)
    stacks = [
        aggregate(
            rows[np.array([np.delete(everything, left_out) for left_out in everything[done : done + chunk]])]
        )
        for done in range(0, len(rows), chunk)
    ]
    return np.concatenate(stacks)


def _resampled_means(values: Array, resamples: int, seed: int) -> Array:
    import numpy as np

    rng = np.random.default_rng(seed)
    n = len(values)
    chunk = max(1, _CELLS_AT_ONCE // n)
    parts = [
        values[rng.integers(n, size=(min(chunk, resamples - done), n))].mean(axis=1)
        for done in range(0, resamples, chunk)
    ]
    return np.concatenate(parts)


def _each_resample(
    rows: Array,
    groups: list[Indices],
    aggregate: Callable[[Array], Array],
    resamples: int,
    rng: np.random.Generator,
) -> list[float]:
    import numpy as np

    count = len(groups)
    if all(len(group) == 1 for group in groups):
        chunk = max(1, _CELLS_AT_ONCE // rows.size)
        stacks = (
            aggregate(rows[rng.integers(count, size=(min(chunk, resamples - done), count))])
            for done in range(0, resamples, chunk)
        )
        return [float(value) for stack in stacks for value in stack]
    # Clusters of unequal size give resamples of unequal length: those cannot be stacked.
    draws = rng.integers(count, size=(resamples, count))
    return [float(aggregate(rows[np.concatenate([groups[i] for i in draw])])) for draw in draws]


def _bca(
    value: float, drawn: Array, jackknife: Array, confidence: float, seed: int, unit: str = ""
) -> Interval:
    """Efron's bias-corrected and accelerated interval from draws and leave-one-out values."""
    import numpy as np

    below = (float((drawn < value).sum()) + float((drawn <= value).sum())) / (2 * len(drawn))
    spread = jackknife.mean() - jackknife
    spread = spread / (np.abs(spread).max() or 1.0)  # the ratio below is free of scale; tiny squares are not
    squares = float((spread**2).sum())
    acceleration = float((spread**3).sum()) / (6 * squares**1.5) if squares > 0 else 0.0
    method = f"BCa bootstrap{unit}, {len(drawn)} draws, seed {seed}"
    if not 0 < below < 1:
        # Every draw on one side: the correction is undefined, the plain percentiles are not.
        levels = [(1 - confidence) / 2, (1 + confidence) / 2]
        method = method.replace("BCa", "percentile")
    else:
        levels = _bca_levels(_normal_quantile(below), acceleration, confidence)
    low, high = np.quantile(drawn, levels)
    return Interval(float(low), float(high), method)


def _bca_levels(bias: float, acceleration: float, confidence: float) -> list[float]:
    levels = []
    for tail in ((1 - confidence) / 2, (1 + confidence) / 2):
        shifted = bias + _normal_quantile(tail)
        levels.append(_normal_cdf(bias + shifted / (1 - acceleration * shifted)))
    return levels


def _closed_form_bca(values: Array, confidence: float) -> Interval:
    """BCa of a mean without draws.

    For a mean, bias and acceleration both tend to skewness / (6 sqrt n), and the bootstrap
    distribution to its Edgeworth expansion; with thousands of samples the two agree to far less
    than the noise of 2,000 draws (tests/stats/test_intervals.py compares them).
    """
    n = len(values)
    centred = values - values.mean()
    variance = float((centred**2).mean())
    error = math.sqrt(variance / n)
    skew = float((centred * centred * centred).mean()) / variance**1.5 / (6 * math.sqrt(n))
    limits = []
    for level in _bca_levels(skew, skew, confidence):
        z = _normal_quantile(level)
        limits.append(float(values.mean()) + error * (z + skew * (z * z - 1)))
    return Interval(limits[0], limits[1], "BCa, closed form")


def _normal_quantile(level: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf(level)


def _normal_cdf(z: float) -> float:
    return math.erfc(-z / math.sqrt(2)) / 2
