"""The tests of the textbooks. A comparison uses permutations; these are for those who are asked for them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from .significance import PairedTest
from .standard_error import mean_error

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]


def paired_t_test(a: ArrayLike, b: ArrayLike, *, clusters: Sequence[Hashable] | None = None) -> PairedTest:
    """Student's t-test on b - a, two-sided; with clusters on their robust error, a cluster counting once.

    The p-value is NaN for fewer than two units, 1 where no pair differs, 0 where all differ by the same.
    """
    from scipy.stats import t

    differences = _paired(a, b)
    mean, error, freedom = mean_error(differences, clusters=clusters)
    method = f"paired t, {freedom} degrees of freedom"
    if not freedom:
        return PairedTest(math.nan, math.nan, method)
    if error <= 1e-15 * abs(mean) or error == 0.0:
        return PairedTest(float(mean == 0.0), math.copysign(math.inf, mean) if mean else 0.0, method)
    return PairedTest(2 * float(t.sf(abs(mean) / error, freedom)), mean / error, method)


def wilcoxon_test(a: ArrayLike, b: ArrayLike) -> PairedTest:
    """Wilcoxon's signed-rank test on b - a: pairs that do not differ are left out, as he did.

    Many ties, as of 0/1 scores, make it worth little: McNemar's test is the one for those.
    """
    import numpy as np
    from scipy.stats import norm, rankdata, wilcoxon

    differences = _paired(a, b)
    differences = differences[differences != 0]
    n = len(differences)
    if not n:
        return PairedTest(1.0, 0.0, "Wilcoxon: no sample differs")
    _, ties = np.unique(np.abs(differences), return_counts=True)
    if n <= 50 and len(ties) == n:
        found = wilcoxon(differences, method="exact")
        return PairedTest(float(found.pvalue), float(found.statistic), f"Wilcoxon, exact, {n} pairs")
    ranks = rankdata(np.abs(differences))
    below, above = (float(ranks[side].sum()) for side in (differences < 0, differences > 0))
    variance = n * (n + 1) * (2 * n + 1) / 24 - float((ties**3 - ties).sum()) / 48
    z = (above - below) / 2 / math.sqrt(variance)
    return PairedTest(2 * float(norm.sf(abs(z))), min(below, above), f"Wilcoxon, normal form, {n} pairs")


def welch_t_test(a: ArrayLike, b: ArrayLike) -> PairedTest:
    """Welch's t-test on b - a, two-sided, for two systems that were not asked the same questions."""
    import numpy as np
    from scipy.stats import t

    first, second = (np.asarray(side, dtype=np.float64) for side in (a, b))
    if min(len(first), len(second)) < 2:
        return PairedTest(math.nan, math.nan, "Welch: fewer than two scores")
    parts = [float(side.var(ddof=1)) / len(side) for side in (first, second)]
    difference, variance = float(second.mean() - first.mean()), sum(parts)
    if variance == 0.0:
        return PairedTest(float(difference == 0.0), math.copysign(math.inf, difference), "Welch: no spread")
    # Shares of the variance: squares of tiny ones would vanish.
    shares = [part / variance for part in parts]
    freedom = 1 / sum(s**2 / (len(side) - 1) for s, side in zip(shares, (first, second), strict=True))
    statistic = difference / math.sqrt(variance)
    return PairedTest(2 * float(t.sf(abs(statistic), freedom)), statistic, f"Welch, {freedom:.1f} degrees")


def _paired(a: ArrayLike, b: ArrayLike) -> Array:
    import numpy as np

    first, second = (np.asarray(side, dtype=np.float64) for side in (a, b))
    if first.shape != second.shape or first.ndim != 1:
        raise ValueError(f"paired scores come in two equal lists, not {first.shape} and {second.shape}")
    return np.asarray(second - first)
