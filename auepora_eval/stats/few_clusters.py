"""Few clusters: intervals that hold where draws of whole clusters do not.

Two clusters give three different draws, five a hundred and twenty-six: a bootstrap of so few is far too
narrow (with 2, 3, 5 and 10 clusters it holds the truth in 50, 75, 83 and 91 runs of a hundred). Student's
interval knows how little a spread of few numbers is worth. Its error is the jackknife's, each cluster left
out in turn, and its degrees of freedom are those of as many clusters of equal size as would tell as much:
one conversation of 90 samples beside ten of one is hardly more than a single cluster.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

FEW = 40  # clusters; from there on a bootstrap keeps its word


def clusters_worth(sizes: ArrayLike) -> float:
    """How many clusters of equal size tell as much as these: n² over the sum of their squared sizes.

    >>> clusters_worth([5, 5, 5]), round(clusters_worth([90] + [1] * 10), 2)
    (3.0, 1.23)
    """
    import numpy as np

    numbers = np.asarray(sizes, dtype=np.float64)
    return float(numbers.sum() ** 2 / (numbers**2).sum())


def are_few(sizes: ArrayLike) -> bool:
    """Whether clusters of these sizes are too few to be drawn; those of one sample each are no clusters."""
    import numpy as np

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
    """Student's interval of a value that stands on clusters of these sizes."""
    half = student_quantile(sizes, confidence) * jackknife_error(value, left_out)
    return value - half, value + half


def errors_wide(clusters: Sequence[Hashable] | None) -> float:
    """How many standard errors a 95% interval reaches to either side: 1.96, and more by few clusters."""
    from statistics import NormalDist

    sizes = [] if clusters is None else list(Counter(clusters).values())
    return student_quantile(sizes) if len(sizes) > 1 and are_few(sizes) else NormalDist().inv_cdf(0.975)
