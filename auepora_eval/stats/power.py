"""How many samples does it take, and what could this many have shown?

A difference of `effect` between two systems on the same samples, whose differences have a standard deviation
of `sd`, is called at level `alpha` (two-sided) with a chance of `power`. Everything is in these words:

    sample_size                   from the effect
    minimum_detectable_effect     from the number of samples
    power_of                      from both

For several answers a question, `sd_of_means` gives the `sd`; for clusters, `design_effect` says how many
times more samples they cost. `by="t"` is exact for normal differences; `by="z"` is the textbook formula.

Systems that are asked different samples, n each, have `groups=2`, and `sd` is that of the difference between
one score of either: `sd_of_difference` gives it, for both ways.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Literal

By = Literal["t", "z"]
POWER = 0.8  # the usual convention of sample-size tables: found in four of five tries
_MOST = 10**12


def power_of(
    effect: float,
    sd: float,
    n: float,
    *,
    alpha: float = 0.05,
    design_effect: float = 1.0,
    by: By = "t",
    groups: int = 1,
) -> float:
    """The chance that n paired samples, or n in either of two groups, show an effect of this size."""
    _refuse_nonsense(sd, alpha, design_effect)
    units = n / design_effect
    if units <= 0 or (by == "t" and units <= 1):
        return 0.0
    if sd == 0.0:
        return 1.0 if effect else alpha
    away = abs(effect) / sd * math.sqrt(units)
    if by == "z" or units > 5_000:  # there t is normal to five digits, and its noncentral form slow
        critical = NormalDist().inv_cdf(1 - alpha / 2)
        return NormalDist().cdf(away - critical) + NormalDist().cdf(-away - critical)
    from scipy.stats import nct, t

    freedom = groups * (units - 1)
    critical = float(t.ppf(1 - alpha / 2, freedom))
    if away > 35:  # far beyond any doubt, where the noncentral distribution is not computed well
        return 1.0
    wrong_way = float(nct.cdf(-critical, freedom, away))
    # Where the other tail is too thin to be computed it is NaN, and in truth nothing.
    return float(nct.sf(critical, freedom, away)) + (wrong_way if math.isfinite(wrong_way) else 0.0)


def sample_size(
    effect: float,
    sd: float,
    *,
    alpha: float = 0.05,
    power: float = POWER,
    design_effect: float = 1.0,
    by: By = "t",
    groups: int = 1,
) -> int | None:
    """The least number of samples (of either group) that shows an effect with this power; None if none does.

    >>> sample_size(0.2, 1.0), sample_size(0.2, 1.0, by="z")
    (199, 197)
    """
    _refuse_nonsense(sd, alpha, design_effect)
    if not alpha < power < 1:
        raise ValueError(f"a power is between alpha and 1, not {power}")
    if not effect or not math.isfinite(effect):
        return None
    guess = (_z_sum(alpha, power) * sd / effect) ** 2 * design_effect
    if guess > _MOST:
        return None
    if by == "z":
        return max(1, math.ceil(guess - 1e-9))

    def enough(n: int) -> bool:
        return power_of(effect, sd, n, alpha=alpha, design_effect=design_effect, groups=groups) >= power

    low, high = 1, max(2, math.ceil(guess))
    while not enough(high):
        low, high = high, high + max(1, high // 8)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def minimum_detectable_effect(
    sd: float,
    n: float,
    *,
    alpha: float = 0.05,
    power: float = POWER,
    design_effect: float = 1.0,
    by: By = "z",
    groups: int = 1,
) -> float:
    """The smallest effect that n samples (of either group) show with this power; infinite if n < 2 by t.

    >>> round(minimum_detectable_effect(0.3, 100), 3)
    0.084
    """
    _refuse_nonsense(sd, alpha, design_effect)
    if n <= 0 or (by == "t" and n / design_effect <= 1):
        return math.inf
    by_z = _z_sum(alpha, power) * sd * math.sqrt(design_effect / n)
    if by == "z" or sd == 0.0:
        return by_z
    from scipy.optimize import brentq

    def lacking(effect: float) -> float:
        return power_of(effect, sd, n, alpha=alpha, design_effect=design_effect, groups=groups) - power

    high = by_z
    while lacking(high) < 0:
        high *= 2
    return float(brentq(lacking, by_z / 2, high)) if high > by_z else by_z


def sd_of_difference(sd_a: float, sd_b: float, *, correlation: float = 0.0) -> float:
    """The sd of the difference of two systems' scores; 0 is the correlation of samples that are not the same.

    >>> round(sd_of_difference(0.3, 0.3, correlation=0.5), 6), round(sd_of_difference(0.3, 0.4), 6)
    (0.3, 0.5)
    """
    if not -1 <= correlation <= 1:
        raise ValueError(f"a correlation is between -1 and 1, not {correlation}")
    return math.sqrt(max(0.0, sd_a**2 + sd_b**2 - 2 * correlation * sd_a * sd_b))


def sd_of_means(between: float, within_a: float, within_b: float, *, k_a: int = 1, k_b: int = 1) -> float:
    """The sd of a question's difference where each system answers it several times and scores are averaged.

    `between` is the variance of the true differences over questions, `within_a` and `within_b` the variance
    of one system's scores on the same question, `k_a` and `k_b` how many answers there are.

    >>> round(sd_of_means(0.04, 0.05, 0.05, k_a=5, k_b=5) ** 2, 6)
    0.06
    """
    if min(k_a, k_b) < 1 or min(between, within_a, within_b) < 0:
        raise ValueError("variances are not negative, and every question is answered at least once")
    return math.sqrt(between + within_a / k_a + within_b / k_b)


def cluster_design_effect(size: float, correlation: float) -> float:
    """How many times more samples it takes in clusters of `size` whose members correlate so much (Kish)."""
    return max(1.0, 1 + (size - 1) * correlation)


def _z_sum(alpha: float, power: float) -> float:
    return NormalDist().inv_cdf(1 - alpha / 2) + NormalDist().inv_cdf(power)


def _refuse_nonsense(sd: float, alpha: float, design_effect: float) -> None:
    if not (sd >= 0 and math.isfinite(sd)):
        raise ValueError(f"a standard deviation is a number of at least 0, not {sd}")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is between 0 and 1, not {alpha}")
    if not design_effect > 0:
        raise ValueError(f"a design effect is positive, not {design_effect}")
