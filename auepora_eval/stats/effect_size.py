"""How large is a difference? In units that do not depend on the metric's own scale.

    cohens_d           difference of the means in pooled standard deviations (systems asked apart)
    cohens_dz          mean difference in standard deviations of the differences (the same samples)
    cliffs_delta       how much more often a score of b is above one of a than below it
    risk_difference    of 0/1 scores: by how many of a hundred the share rose
    odds_ratio         of 0/1 scores on the same samples: won over lost

By habit a d of 0.2 is called small, 0.5 medium and 0.8 large. NaN where there is no spread to measure with.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]


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
    import numpy as np

    first, second = np.sort(_array(a)), np.sort(_array(b))  # in order, neighbours are found near each other
    if not len(first) or not len(second):
        return math.nan
    below = np.searchsorted(second, first, side="left").sum()
    above = len(second) * len(first) - np.searchsorted(second, first, side="right").sum()
    return float(above - below) / (len(first) * len(second))


def risk_difference(a: ArrayLike, b: ArrayLike) -> float:
    """Share of 1s in b less the share of 1s in a."""
    first, second = _binary(a), _binary(b)
    return float(second.mean() - first.mean()) if len(first) and len(second) else math.nan


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
        raise ValueError("risks and odds are of scores that are 0 or 1")
    return found


def _array(values: ArrayLike) -> Array:
    import numpy as np

    return np.asarray(values, dtype=np.float64)
