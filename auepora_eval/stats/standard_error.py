"""How far a mean is from the truth, on average: the standard error, also where samples come in clusters."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .drawing import summed_by_unit
from .few_clusters import are_few, jackknife_error
from .intervals import Interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]


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
    import numpy as np

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
    import numpy as np

    found = mean_error(values, clusters=clusters)
    if clusters is None or not found.freedom:
        return found.error
    numbers = np.asarray(values, dtype=np.float64).reshape(-1, 1)
    sums, sizes = (summed_by_unit(one, clusters)[:, 0] for one in (numbers, np.ones_like(numbers)))
    if not are_few(sizes):
        return found.error
    return jackknife_error(found.mean, (sums.sum() - sums) / (sizes.sum() - sizes))


def t_interval(
    values: ArrayLike, *, clusters: Sequence[Hashable] | None = None, confidence: float = 0.95
) -> Interval | None:
    """Student's interval of a mean: a cross-check of the bootstrap; None for fewer than two units."""
    from scipy.stats import t

    mean, error, freedom = mean_error(values, clusters=clusters)
    if not freedom:
        return None
    half = float(t.ppf((1 + confidence) / 2, freedom)) * error
    unit = "" if clusters is None else f", {freedom + 1} clusters"
    return Interval(mean - half, mean + half, f"t{unit}")


def design_effect(values: ArrayLike, clusters: Sequence[Hashable]) -> float:
    """How many times more samples the clusters cost: the variance of the mean with them over that without."""
    plain = standard_error(values)
    return (standard_error(values, clusters=clusters) / plain) ** 2 if plain > 0 else math.nan
