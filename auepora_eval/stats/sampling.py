"""Samples with unequal chances, and the mean of all items that is estimated from one.

An item that was chosen with a small chance represents many others, so it has the weight 1 / chance. With
equal chances it is the mean of the labels.
"""

from __future__ import annotations

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


def sampled_mean(labels: Array, chances: Array, total: int) -> SampledMean | None:
    """Return the mean label of `total` items, of which some were chosen with these chances and labelled.

    Labels are from 0 to 1. None if there are fewer than two labels.
    """
    if len(labels) < 2:
        return None
    weights = 1 / chances
    value = min(1.0, max(0.0, float(weights / weights.sum() @ labels)))  # rounding may exceed 1
    errors = labels - value
    # Imaginary labels are as far from the value as labels can be, and weigh as much as a label on average.
    weight = float(weights.mean())
    middle = (value * weights.sum() + weight) / (weights.sum() + _IMAGINARY * weight)
    errors = np.append(errors, [-value, 1 - value])
    weights, chances = np.append(weights, [weight] * 2), np.append(chances, [1 / weight] * 2)
    freedom = len(labels) - 1
    scale = len(labels) / freedom
    by_choice = float(((1 - chances) * (weights * errors) ** 2).sum()) / weights.sum() ** 2 * scale
    by_items = value * (1 - value) / total  # the items themselves are a sample of all questions
    half = float(stdtrit(freedom, 0.975)) * float(np.sqrt(by_choice + by_items))
    low, high = float(min(value, middle - half)), float(max(value, middle + half))
    return SampledMean(value, max(0.0, low), min(1.0, high))
