"""Two systems that were not asked the same questions: is one better, and how many questions does it take?

welch_difference      the difference of two means, by Welch's t, also where samples come in clusters
normal_difference     the difference of any two values whose standard errors are known
two_shares_margin_p   whether a share is worse than another by less than a margin
samples_per_arm       how many samples each system needs for an effect of that size
sample_ratio_p        whether samples were divided as they should have been
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

from .power import POWER, sample_size
from .standard_error import mean_error

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class UnpairedTest(NamedTuple):
    """Second minus first: the difference with its interval, and how often chance alone does as well."""

    difference: float
    low: float
    high: float
    p_value: float
    error: float
    freedom: float
    method: str


def welch_difference(
    a: ArrayLike,
    b: ArrayLike,
    *,
    clusters_a: Sequence[Hashable] | None = None,
    clusters_b: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
) -> UnpairedTest:
    """Welch's t-test on mean b - mean a, two-sided; with clusters on their robust errors.

    The p-value is NaN where a side has fewer than two units.

    >>> round(welch_difference([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]).p_value, 4)
    0.2209
    """
    from scipy.stats import t

    first, second = mean_error(a, clusters=clusters_a), mean_error(b, clusters=clusters_b)
    difference = second.mean - first.mean
    if not first.freedom or not second.freedom:
        return _unknown(difference, "Welch: fewer than two samples")
    error = math.hypot(first.error, second.error)
    if error <= 1e-15 * abs(difference) or error == 0.0:
        p_value = float(difference == 0.0)
        return UnpairedTest(difference, difference, difference, p_value, 0.0, math.inf, "Welch: no spread")
    # Shares of the variance: squares of tiny ones would vanish.
    shares = [(side.error / error) ** 2 for side in (first, second)]
    freedom = 1 / sum(s**2 / side.freedom for s, side in zip(shares, (first, second), strict=True))
    half = float(t.ppf((1 + confidence) / 2, freedom)) * error
    p_value = 2 * float(t.sf(abs(difference) / error, freedom))
    method = f"Welch, {freedom:.1f} degrees of freedom"
    return UnpairedTest(difference, difference - half, difference + half, p_value, error, freedom, method)


def normal_difference(
    a: float, error_a: float, b: float, error_b: float, *, confidence: float = 0.95
) -> UnpairedTest:
    """The same for values of any kind with their standard errors, by the normal distribution."""
    difference, error = b - a, math.hypot(error_a, error_b)
    if not error > 0:
        return _unknown(difference, "normal: an error is not known")
    half = NormalDist().inv_cdf((1 + confidence) / 2) * error
    p_value = 2 * NormalDist().cdf(-abs(difference) / error)
    low, high, method = difference - half, difference + half, "normal, errors from the intervals"
    return UnpairedTest(difference, low, high, p_value, error, math.inf, method)


def two_shares_margin_p(hits_a: int, size_a: int, hits_b: int, size_b: int, margin: float) -> float:
    """The p-value of "the second share is below the first by the margin or more", one-sided.

    The score test of Farrington and Manning (1990): errors are those at the margin, not those seen. By the
    seen ones (Welch) one loss in 150 would rule out one in 50 four times as often as it should.

    >>> round(two_shares_margin_p(150, 150, 149, 150, 0.02), 2)
    0.12
    >>> round(two_shares_margin_p(90, 100, 90, 100, 0.1), 3)
    0.013
    """
    if not size_a or not size_b:
        return math.nan
    share_a, share_b = hits_a / size_a, hits_b / size_b
    low = _share_at_margin(share_a, size_a, share_b, size_b, margin)
    high = low + margin
    variance = low * (1 - low) / size_b + high * (1 - high) / size_a
    gap = share_b - share_a + margin
    if not variance > 0:
        return float(gap <= 0)
    return NormalDist().cdf(-gap / math.sqrt(variance))


def _share_at_margin(share_a: float, size_a: int, share_b: float, size_b: int, margin: float) -> float:
    """The likeliest second share, if the first is above it by the margin: the root of a cubic."""
    ratio = size_a / size_b
    a = 1 + ratio
    b = -(1 + ratio + share_b + ratio * share_a - margin * (ratio + 2))
    c = margin**2 - margin * (2 * share_b + ratio + 1) + share_b + ratio * share_a
    d = share_b * margin * (1 - margin)
    v = b**3 / (27 * a**3) - b * c / (6 * a**2) + d / (2 * a)
    u = math.copysign(math.sqrt(max(0.0, b**2 / (9 * a**2) - c / (3 * a))), v)
    angle = math.acos(max(-1.0, min(1.0, v / u**3))) if u else 0.0
    root = 2 * u * math.cos((math.pi + angle) / 3) - b / (3 * a)
    return min(max(root, 0.0), 1 - margin)


def samples_per_arm(effect: float, *, alpha: float = 0.05, power: float = POWER) -> int | None:
    """How many samples each of two systems needs to show a Cohen's d of this size; None for no effect.

    2 ((z + z') / d)²: both means waver, so it takes twice what one mean against a number would.

    >>> samples_per_arm(0.5)
    63
    """
    return sample_size(effect, math.sqrt(2), alpha=alpha, power=power, by="z")


def sample_ratio_p(counts: Sequence[int], shares: Sequence[float]) -> float:
    """The p-value of a chi-square test: could samples divided by these shares come out as these counts?

    >>> round(sample_ratio_p([500, 500], [0.5, 0.5]), 3), sample_ratio_p([600, 400], [0.5, 0.5]) < 1e-9
    (1.0, True)
    """
    from scipy.stats import chi2

    if len(counts) != len(shares) or min(shares, default=0) <= 0:
        raise ValueError("each count has a share, and each share is above 0")
    total, whole = sum(counts), math.fsum(shares)
    if not total:
        return math.nan
    expected = [total * share / whole for share in shares]
    statistic = sum((n - e) ** 2 / e for n, e in zip(counts, expected, strict=True))
    return float(chi2.sf(statistic, len(counts) - 1))


def _unknown(difference: float, method: str) -> UnpairedTest:
    return UnpairedTest(difference, math.nan, math.nan, math.nan, math.nan, 0.0, method)
