"""Can a score be read as a chance? Of the samples that a judge scores 0.8, are 80 of 100 right?

    calibration_error   the gap between scores and labels in bins of equal width (ECE)
    fit_platt           two parameters that turn scores into chances, from a few labels

The expected calibration error is never 0 on a finite sample, even of a judge that is perfectly calibrated. It
depends on the bins, so their number belongs to the figure.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .arrays import Array
from .intervals import Interval
from .resamples import summed_by_unit

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

BINS = 10
_Z = NormalDist().inv_cdf(0.975)  # of a 95% interval


def calibration_error(scores: ArrayLike, labels: ArrayLike, *, bins: int = BINS) -> float:
    """Scores and labels, both from 0 to 1, compared with each other; labels may be shares of people.

    >>> calibration_error([0.9, 0.9, 0.1, 0.1], [1, 0, 0, 0])
    0.25
    """
    x, y = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    place = np.searchsorted(np.linspace(0.0, 1.0, bins + 1)[1:-1], x)
    return float(np.abs(np.bincount(place, weights=x - y, minlength=bins)).sum()) / len(x)


# Scores into chances: two parameters on the log-odds of a score, fitted to labels (Platt 1999).

_NEAREST_TO_CERTAIN = 1e-3  # log-odds of 0 and 1 are infinite


class Platt(NamedTuple):
    """A calibration: the chance of a yes is 1 / (1 + exp(-(slope * log-odds of the score + intercept))).

    The slope is at least 0, so that the order of the scores stays as it is.
    """

    slope: float
    intercept: float

    def chances(self, scores: ArrayLike) -> Array:
        """Return the chance of a yes for each score from 0 to 1."""
        return _sigmoid(self.slope * _log_odds(scores) + self.intercept)


def fit_platt(scores: ArrayLike, labels: ArrayLike) -> Platt:
    """Return the two-parameter calibration of scores by labels, both from 0 to 1; labels may be shares.

    Labels are moved a little towards each other, as Platt does: without that, a score that separates them
    would be given an infinite slope. Scores that speak against the labels get the slope 0.
    """
    x, y = _log_odds(scores), np.asarray(labels, dtype=np.float64)
    yes = float(y.sum())
    low, high = 1 / (len(y) - yes + 2), (yes + 1) / (yes + 2)
    targets = low + (high - low) * y
    mean = float(targets.mean())
    constant = Platt(0.0, math.log(mean / (1 - mean)))
    if np.ptp(x) == 0:
        return constant
    from scipy.optimize import minimize

    rows = np.column_stack([x, np.ones(len(x))])

    def loss(at: Array) -> tuple[float, Array]:
        odds = rows @ at
        return float((np.logaddexp(0.0, odds) - targets * odds).sum()), rows.T @ (_sigmoid(odds) - targets)

    found = minimize(loss, np.array(constant), jac=True, method="BFGS", options={"gtol": 1e-9 * len(x)})
    slope, intercept = found.x.tolist()
    # The loss is convex: if its lowest point has a negative slope, the best of the others has slope 0.
    return Platt(slope, intercept) if slope > 0 else constant


def _log_odds(scores: ArrayLike) -> Array:
    x = np.asarray(scores, dtype=np.float64)
    x = np.clip(x, _NEAREST_TO_CERTAIN, 1 - _NEAREST_TO_CERTAIN)
    return np.asarray(np.log(x / (1 - x)))


def _sigmoid(odds: Array) -> Array:
    # By tanh: exp of a large number overflows.
    return np.asarray((1 + np.tanh(odds / 2)) / 2)


# True rates from a few human labels and many judgements of a machine.
#
# | prediction_powered_mean   the mean of the labels, sharpened by a judge that scored everything (PPI++)
# | true_rate                 a rate that a judge with known errors reported, corrected (Rogan-Gladen)
#
# A judge's own mean is biased by its errors. The labels show the bias; the judge, on many more samples, takes
# out noise that they share. With its weight tuned the interval is never much wider than that of labels alone.


class PoweredMean(NamedTuple):
    """An estimate, its standard error, and how much the judge counted (lambda), from 0 to 1."""

    value: float
    error: float
    weight: float


def prediction_powered_mean(
    labels: ArrayLike,
    judged: ArrayLike,
    judged_only: ArrayLike,
    *,
    weight: float | None = None,
    clusters: tuple[Sequence[Hashable], Sequence[Hashable]] | None = None,
) -> PoweredMean:
    """The mean of what people say, from `labels` with the judge's scores of the same, and the judge alone.

    `weight` is tuned to the narrowest interval unless given; 1 is plain prediction-powered inference, 0 the
    labels alone (Angelopoulos, Duchi & Zrnic 2023). `clusters` are those of the labels and those of the
    others; one cluster may have members on both sides.
    """
    y, f, rest = (np.asarray(values, dtype=np.float64) for values in (labels, judged, judged_only))
    if weight is None:
        weight = _tuned(y, f, rest)
    value = float(weight * rest.mean() + (y - weight * f).mean())
    if clusters is None:
        variance = weight**2 * float(rest.var()) / len(rest) + float((y - weight * f).var()) / len(y)
    else:
        variance = _clustered_variance(y - weight * f, weight * rest, clusters)
    return PoweredMean(value, math.sqrt(variance), weight)


def _tuned(y: Array, f: Array, rest: Array) -> float:
    """The weight that makes the variance least: Cov(y, f) / ((1 + n / N) Var f), kept in [0, 1]."""
    spread = float(np.concatenate([f, rest]).var(ddof=1))
    if spread == 0.0:
        return 0.0  # a judge that always says the same says nothing
    together = float(((y - y.mean()) * (f - f.mean())).mean())
    return min(1.0, max(0.0, together / ((1 + len(y) / len(rest)) * spread)))


def _clustered_variance(
    corrections: Array, others: Array, clusters: tuple[Sequence[Hashable], Sequence[Hashable]]
) -> float:
    """The variance of the sum of two means whose members come in clusters, some of them in both."""
    parts = [(values - values.mean()) / len(values) for values in (corrections, others)]
    sums = summed_by_unit(np.concatenate(parts)[:, np.newaxis], [*clusters[0], *clusters[1]])
    if len(sums) < 2:
        return math.inf  # one cluster does not show how much clusters differ
    return float((sums**2).sum()) * len(sums) / (len(sums) - 1)


def true_rate(reported: float, sensitivity: float, specificity: float) -> float:
    """The rate behind what a judge reports: (reported + Sp - 1) / (Se + Sp - 1), kept in [0, 1].

    `sensitivity` is how often it says yes where that is right, `specificity` how often no.

    >>> round(true_rate(0.75, 0.9, 0.8), 6)
    0.785714
    """
    return min(1.0, max(0.0, (reported + specificity - 1) / (sensitivity + specificity - 1)))


def true_rate_interval(
    reported: tuple[int, int],
    sensitivity: tuple[int, int],
    specificity: tuple[int, int],
) -> Interval:
    """The interval of `true_rate` from counts (yes, of how many), each with its own uncertainty.

    By Lang & Reiczigel (2014): two pseudo-observations to each share, then the delta method.
    """
    z = _Z
    (p_yes, n_p), (se_yes, n_se), (sp_yes, n_sp) = reported, sensitivity, specificity
    p = (p_yes + z * z / 2) / (n_p + z * z)
    se, sp = (se_yes + 1) / (n_se + 2), (sp_yes + 1) / (n_sp + 2)
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
