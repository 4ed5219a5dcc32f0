"""Shares of right answers on samples of one's own: which change does Welch's test show, and with how many?

Two systems that are asked other samples are told apart by Welch's test, whose errors are those that either
sample happens to have. A rate of 0.99 hardly varies, the lower one that it may fall to does: a formula with
one standard deviation for both promises far too much. Here the chances of all counts are added up.

    share_power             how often the test calls a drop
    detectable_drop         the smallest drop that so many samples show
    samples_for_drop        how many samples of each system a drop takes
"""

from __future__ import annotations

import math

from .power import POWER, power_of, sd_of_difference

_COUNTED = 20_000  # pairs of counts; where more are likely, they are normal to two digits
_MOST = 10**12


def share_power(rate: float, lower: float, n: int, *, alpha: float = 0.05) -> float:
    """How often a drop of the one share to the other is called, n samples of either.

    >>> round(share_power(0.99, 0.9337, 50), 2), round(share_power(0.8, 0.6, 80), 2)
    (0.27, 0.8)
    """
    import numpy as np
    from scipy.special import stdtr
    from scipy.stats import binom

    if n < 2:
        return 0.0
    ends = [[int(binom.ppf(level, n, share)) for level in (1e-9, 1 - 1e-9)] for share in (rate, lower)]
    counts = [np.arange(max(0, low), high + 1) for low, high in ends]
    if len(counts[0]) * len(counts[1]) > _COUNTED:
        sds = [math.sqrt(share * (1 - share)) for share in (rate, lower)]
        return power_of(rate - lower, sd_of_difference(*sds), n, alpha=alpha, groups=2)
    first, second = counts[0][:, np.newaxis] / n, counts[1][np.newaxis, :] / n
    errors = [share * (1 - share) / (n - 1) for share in (first, second)]
    both = errors[0] + errors[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = (n - 1) * both**2 / (errors[0] ** 2 + errors[1] ** 2)
        p_values = 2 * stdtr(freedom, -(first - second) / np.sqrt(both))
    # All right on the one side and all wrong on the other: there is no spread, and no doubt.
    called = (first > second) & np.where(both > 0, p_values < alpha, True)
    chances = [binom.pmf(count, n, share) for count, share in zip(counts, (rate, lower), strict=True)]
    return float(chances[0] @ called @ chances[1])


def detectable_drop(rate: float, n: int, *, alpha: float = 0.05, power: float = POWER) -> float | None:
    """The smallest drop of a share that n samples of either system show; None where none is large enough."""
    from scipy.optimize import brentq

    def lacking(drop: float) -> float:
        return share_power(rate, max(0.0, rate - drop), n, alpha=alpha) - power

    if lacking(rate) < 0:
        return None
    return float(brentq(lacking, 0.0, rate, xtol=1e-9))


def samples_for_drop(drop: float, rate: float, *, alpha: float = 0.05, power: float = POWER) -> int | None:
    """The least number of samples of either system that shows a drop; None where no number does."""
    if not 0 < drop <= rate:
        return None

    def enough(n: int) -> bool:
        return share_power(rate, rate - drop, n, alpha=alpha) >= power

    low, high = 1, 2
    while not enough(high):
        low, high = high, 2 * high
        if high > _MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
