"""True rates from a few human labels and many judgements of a machine.

    prediction_powered_mean   the mean of the labels, sharpened by a judge that scored everything (PPI++)
    true_rate                 a rate that a judge with known errors reported, corrected (Rogan-Gladen)

A judge's own mean is biased by its errors. The labels tell the bias; the judge, on many more samples, takes
out noise that they share. With its weight tuned the interval is never much wider than that of labels alone.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

from .drawing import summed_by_unit
from .intervals import Interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]


class CorrectedMean(NamedTuple):
    """An estimate with its interval; `weight` is how much the judge counted (lambda), from 0 to 1."""

    value: float
    interval: Interval
    error: float
    weight: float


def prediction_powered_mean(
    labels: ArrayLike,
    judged: ArrayLike,
    judged_only: ArrayLike,
    *,
    weight: float | None = None,
    clusters: tuple[Sequence[Hashable], Sequence[Hashable]] | None = None,
    confidence: float = 0.95,
) -> CorrectedMean:
    """The mean of what people say, from `labels` with the judge's scores of the same, and the judge alone.

    `weight` is tuned to the narrowest interval unless given; 1 is plain prediction-powered inference, 0 the
    labels alone (Angelopoulos, Duchi & Zrnic 2023). `clusters` are those of the labels and those of the
    others; one cluster may have members on both sides.
    """
    import numpy as np

    y, f, rest = (np.asarray(values, dtype=np.float64) for values in (labels, judged, judged_only))
    if y.shape != f.shape or y.ndim != 1 or len(y) < 2 or len(rest) < 2:
        raise ValueError("two labels at least, each with its judgement, and two judgements more are needed")
    if weight is None:
        weight = _tuned(y, f, rest)
    value = float(weight * rest.mean() + (y - weight * f).mean())
    if clusters is None:
        variance = weight**2 * float(rest.var()) / len(rest) + float((y - weight * f).var()) / len(y)
    else:
        variance = _clustered_variance(y - weight * f, weight * rest, clusters)
    error = math.sqrt(variance)
    half = NormalDist().inv_cdf((1 + confidence) / 2) * error
    method = f"prediction-powered, weight {weight:.3f}, {len(y)} labels and {len(rest)} judgements"
    return CorrectedMean(value, Interval(value - half, value + half, method), error, weight)


def _tuned(y: Array, f: Array, rest: Array) -> float:
    """The weight that makes the variance least: Cov(y, f) / ((1 + n / N) Var f), kept in [0, 1]."""
    import numpy as np

    spread = float(np.concatenate([f, rest]).var(ddof=1))
    if spread == 0.0:
        return 0.0  # a judge that always says the same says nothing
    together = float(((y - y.mean()) * (f - f.mean())).mean())
    return min(1.0, max(0.0, together / ((1 + len(y) / len(rest)) * spread)))


def _clustered_variance(
    corrections: Array, others: Array, clusters: tuple[Sequence[Hashable], Sequence[Hashable]]
) -> float:
    """The variance of the sum of two means whose members come in clusters, some of them in both."""
    import numpy as np

    parts = [(values - values.mean()) / len(values) for values in (corrections, others)]
    sums = summed_by_unit(np.concatenate(parts)[:, np.newaxis], [*clusters[0], *clusters[1]])
    if len(sums) < 2:
        raise ValueError("two clusters at least are needed")
    return float((sums**2).sum()) * len(sums) / (len(sums) - 1)


def true_rate(reported: float, sensitivity: float, specificity: float) -> float:
    """The rate behind what a judge reports: (reported + Sp - 1) / (Se + Sp - 1), kept in [0, 1].

    `sensitivity` is how often it says yes where that is right, `specificity` how often no.

    >>> round(true_rate(0.75, 0.9, 0.8), 6)
    0.785714
    """
    _refuse_coin(sensitivity, specificity)
    return min(1.0, max(0.0, (reported + specificity - 1) / (sensitivity + specificity - 1)))


def true_rate_interval(
    reported: tuple[int, int],
    sensitivity: tuple[int, int],
    specificity: tuple[int, int],
    *,
    confidence: float = 0.95,
) -> Interval:
    """The interval of `true_rate` from counts (yes, of how many), each with its own uncertainty.

    By Lang & Reiczigel (2014): two pseudo-observations to each share, then the delta method.
    """
    for yes, n in (reported, sensitivity, specificity):
        if not 0 <= yes <= n or n <= 0:
            raise ValueError(f"{yes} of {n} is not a share")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    (p_yes, n_p), (se_yes, n_se), (sp_yes, n_sp) = reported, sensitivity, specificity
    _refuse_coin(se_yes / n_se, sp_yes / n_sp)
    p = (p_yes + z * z / 2) / (n_p + z * z)
    se, sp = (se_yes + 1) / (n_se + 2), (sp_yes + 1) / (n_sp + 2)
    _refuse_coin(se, sp)
    gain = se + sp - 1
    rate = (p + sp - 1) / gain
    shift = 2 * z * z * (rate * se * (1 - se) / (n_se + 2) - (1 - rate) * sp * (1 - sp) / (n_sp + 2))
    variance = (
        p * (1 - p) / (n_p + z * z)
        + rate**2 * se * (1 - se) / (n_se + 2)
        + (1 - rate) ** 2 * sp * (1 - sp) / (n_sp + 2)
    )
    half = z * math.sqrt(variance) / gain
    low, high = (min(1.0, max(0.0, rate + shift + side * half)) for side in (-1, 1))
    return Interval(low, high, "Rogan-Gladen, Lang & Reiczigel")


def _refuse_coin(sensitivity: float, specificity: float) -> None:
    if not (0 <= sensitivity <= 1 and 0 <= specificity <= 1):
        raise ValueError(f"sensitivity and specificity are shares, not {sensitivity} and {specificity}")
    if sensitivity + specificity <= 1:
        raise ValueError("a judge that is right no more often than a coin cannot be corrected")
