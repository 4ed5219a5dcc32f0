"""Many questions at once: p-values that stay honest when there are several."""

from __future__ import annotations

import math
from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction: the chance of even one false alarm among them stays at alpha.

    >>> [round(p, 3) for p in holm([0.001, 0.012, 0.021, 0.04, 0.2])]
    [0.005, 0.048, 0.063, 0.08, 0.2]
    """
    adjusted = [math.nan] * len(p_values)
    largest = 0.0
    for place, index in enumerate(_ascending(p_values)):
        largest = max(largest, min(1.0, p_values[index] * (len(p_values) - place)))
        adjusted[index] = largest
    return adjusted


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Benjamini and Hochberg's step-up correction: of what is called a finding, at most alpha is chance.

    >>> [round(p, 3) for p in benjamini_hochberg([0.001, 0.012, 0.021, 0.04, 0.2])]
    [0.005, 0.03, 0.035, 0.05, 0.2]
    """
    adjusted = [math.nan] * len(p_values)
    smallest = 1.0
    for place, index in reversed(list(enumerate(_ascending(p_values), start=1))):
        smallest = min(smallest, p_values[index] * len(p_values) / place)
        adjusted[index] = smallest
    return adjusted


def _ascending(p_values: Sequence[float]) -> list[int]:
    if not all(0 <= p <= 1 for p in p_values):
        raise ValueError(f"p-values are between 0 and 1, not {list(p_values)}")
    return sorted(range(len(p_values)), key=lambda place: p_values[place])
