"""Not different is not the same as alike: tests that a difference is smaller than a margin.

two one-sided tests     the difference is within the margin, both ways (TOST)
non-inferiority         the candidate is not worse by the margin or more
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .standard_error import mean_error

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]


class MarginTest(NamedTuple):
    """How often chance alone looks as much within the margin, and how that was found."""

    p_value: float
    method: str


def equivalence_test(
    differences: ArrayLike, low: float, high: float, *, clusters: Sequence[Hashable] | None = None
) -> MarginTest:
    """TOST on paired differences: is the mean between low and high? p is the larger of the two one-sided."""
    if not low < high:
        raise ValueError(f"a margin goes from a lower to a higher limit, not from {low} to {high}")
    above = _one_sided(differences, low, clusters)
    below = _one_sided(_negated(differences), -high, clusters)
    return MarginTest(max(above, below), "two one-sided t-tests")


def non_inferiority_test(
    differences: ArrayLike,
    margin: float,
    *,
    higher_is_better: bool = True,
    clusters: Sequence[Hashable] | None = None,
) -> MarginTest:
    """Is the candidate worse by less than the margin? One-sided t-test on candidate minus baseline."""
    if not margin > 0:
        raise ValueError(f"a margin is positive, not {margin}")
    gains = differences if higher_is_better else _negated(differences)
    return MarginTest(_one_sided(gains, -margin, clusters), f"one-sided t-test at a margin of {margin:g}")


def _one_sided(values: ArrayLike, limit: float, clusters: Sequence[Hashable] | None) -> float:
    """The p-value of "the mean is at most the limit"; NaN where there is no telling."""
    from scipy.stats import t

    mean, error, freedom = mean_error(values, clusters=clusters)
    if not freedom:
        return math.nan
    if error == 0.0:
        return 0.0 if mean > limit else 1.0
    return float(t.sf((mean - limit) / error, freedom))


def _negated(values: ArrayLike) -> Array:
    import numpy as np

    return np.asarray(-np.asarray(values, dtype=np.float64))
