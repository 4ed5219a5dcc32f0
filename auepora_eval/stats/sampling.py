"""Samples with unequal chances, and the mean of all items that is estimated from one.

An item that was chosen with a small chance represents many others, so it has the weight 1 / chance. The
estimate is the generalised regression estimator of survey sampling: labels are predicted from a score that
every item has, and the weighted errors of the prediction correct its mean. With equal chances and no scores,
it is the mean of the labels.
"""

from __future__ import annotations

from random import Random
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from .arrays import Array

_IMAGINARY = 2  # labels, one at each end: 20 labels that are all yes do not show that the rest are


class SampledMean(NamedTuple):
    """The mean of all items with its 95% interval."""

    value: float
    low: float
    high: float


def inclusion_chances(sizes: Array, count: int) -> Array:
    """Return chances in proportion to sizes that add up to `count`; none is above 1.

    >>> inclusion_chances(np.array([1.0, 1.0, 2.0]), 2).tolist()
    [0.5, 0.5, 1.0]
    """
    certain = np.zeros(len(sizes), dtype=bool)
    while not certain.all():
        rest = count - int(certain.sum())
        chances = np.where(certain, 1.0, rest * sizes / sizes[~certain].sum())
        above = ~certain & (chances >= 1)
        if not above.any():
            return np.asarray(chances)
        certain |= above
    return np.ones(len(sizes))


def systematic_sample(chances: Array, random: Random) -> list[int]:
    """Return the places of a sample with exactly these chances, and as many items as they add up to."""
    order = list(range(len(chances)))
    random.shuffle(order)
    # A comb with teeth at distance 1 is laid on the chances in a row: each is hit with its own chance.
    ends = np.cumsum(chances[order])
    teeth = random.random() + np.arange(round(float(ends[-1])))
    places = np.searchsorted(ends, np.minimum(teeth, np.nextafter(ends[-1], 0)), side="right")
    return [order[place] for place in dict.fromkeys(places.tolist())]


def sampled_mean(
    labels: Array,
    chances: Array,
    total: int,
    *,
    scores: Array | None = None,
    mean_score: float | None = None,
) -> SampledMean | None:
    """Return the mean label of `total` items, of which some were chosen with these chances and labelled.

    Labels are from 0 to 1. `scores` are those of the labelled items, `mean_score` is the mean over all items.
    None if there are fewer than two labels.
    """
    if len(labels) < 2:
        return None
    weights = 1 / chances
    value, errors, fitted = _regression(labels, weights, scores, mean_score)
    # Imaginary labels are as far from the value as labels can be, and weigh as much as a label on average.
    weight = float(weights.mean())
    middle = (value * weights.sum() + weight) / (weights.sum() + _IMAGINARY * weight)
    errors = np.append(errors, [-value, 1 - value])
    weights, chances = np.append(weights, [weight] * 2), np.append(chances, [1 / weight] * 2)
    freedom = len(labels) - fitted
    scale = len(labels) / freedom if freedom > 0 else len(labels)
    by_choice = float(((1 - chances) * (weights * errors) ** 2).sum()) / weights.sum() ** 2 * scale
    by_items = value * (1 - value) / total  # the items themselves are a sample of all questions
    half = float(stdtrit(max(1, freedom), 0.975)) * float(np.sqrt(by_choice + by_items))
    low, high = float(min(value, middle - half)), float(max(value, middle + half))
    return SampledMean(value, max(0.0, low), min(1.0, high))


def _regression(
    labels: Array, weights: Array, scores: Array | None, mean_score: float | None
) -> tuple[float, Array, int]:
    """Return the estimate, the error of each label's prediction, and the number of fitted parameters."""
    share = weights / weights.sum()
    mean = min(1.0, max(0.0, float(share @ labels)))  # shares that add up to 1.0000000000000002
    if scores is None or mean_score is None or np.ptp(scores) == 0:
        return mean, labels - mean, 1
    centre = float(share @ scores)
    slope = float(share @ ((scores - centre) * (labels - mean)) / (share @ (scores - centre) ** 2))
    value = min(1.0, max(0.0, mean + slope * (mean_score - centre)))
    return value, labels - mean - slope * (scores - centre), 2
