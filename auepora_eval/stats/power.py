"""How many samples does it take, and what could this many have shown?

A difference of `effect` between two systems on the same samples, whose differences have a standard deviation
of `sd`, is called at level `alpha` (two-sided) with a chance of `power`. Everything is in these words:

    sample_size                   from the effect
    minimum_detectable_effect     from the number of samples
    power_of                      from both

For clusters, `design_effect` says how many times more samples they cost. `by="t"` is exact for normal
differences; `by="z"` is the textbook formula.

Systems that are asked different samples, n each, have `groups=2`, and `sd` is that of the difference between
one score of either: `sd_of_difference` gives it, for both ways.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
    _check_plausible(sd, alpha, design_effect)
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
    _check_plausible(sd, alpha, design_effect)
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
    return _first(enough, low, high)


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
    _check_plausible(sd, alpha, design_effect)
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


def cluster_design_effect(size: float, correlation: float) -> float:
    """How many times more samples it takes in clusters of `size` whose members correlate so much (Kish)."""
    return max(1.0, 1 + (size - 1) * correlation)


def _z_sum(alpha: float, power: float) -> float:
    return NormalDist().inv_cdf(1 - alpha / 2) + NormalDist().inv_cdf(power)


def _check_plausible(sd: float, alpha: float, design_effect: float) -> None:
    if not (sd >= 0 and math.isfinite(sd)):
        raise ValueError(f"a standard deviation is a number of at least 0, not {sd}")
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is between 0 and 1, not {alpha}")
    if not design_effect > 0:
        raise ValueError(f"a design effect is positive, not {design_effect}")


# The smallest change that a test on the same samples shows, counted where it can be counted.
#
# Of 0/1 scores McNemar's exact test looks only at the pairs that one of the systems lost. How many of these
# there will be, and whether they are enough, is a matter of binomial counts; the t formula of `power`, which
# knows one standard deviation, promises too much where few pairs differ. So does it for any test by flips: by
# how little one-way losses are called depends on their number alone, whatever their size.
#
# | mcnemar_power        how often the exact test calls a change
# | detectable_change    the smallest change that this many units can detect, for either kind of score
# | units_needed         how many units a change takes

_NEVER = 1e-12  # pairs that differ, on average: scipy's binomial overflows far below
_NORMAL_ABOVE = 100_000  # pairs that differ, where counts are normal to four digits
_AT_ONCE = 501  # counts of pairs that differ; where more are likely, this many represent all


@dataclass(frozen=True)
class Differing:
    """Which units differ, and by how much: a unit is a pair of scores, or a cluster of them.

    `both_ways` is the share of units that are lost, and as many again won, beside any change: what is seen of
    both kinds. `size` is by how much a unit that differs does, on average. `counted` says that these numbers
    are all there is: 0/1 scores, tested by McNemar. `rate`, the larger share of right or of wrong answers,
    and its `correlation` with the other system's replace `both_ways` where nothing was seen yet.
    `least_p` is the smallest p-value that the test can draw.
    """

    size: float = 1.0
    both_ways: float = 0.0
    counted: bool = False
    rate: float | None = None
    correlation: float = 0.0
    least_p: float = 0.0

    @property
    def largest(self) -> float:
        """The largest change that there can be, as a share of the units."""
        return 1.0 if self.rate is None else self.rate

    def shares(self, change: float) -> tuple[float, float]:
        """The shares of units that are lost and won where the change is of that share of all."""
        if self.rate is None:
            won = min(self.both_ways, (1 - change) / 2)  # where no unit is left that ties, wins are lost
            return won + change, won
        now, then = self.rate, max(0.0, self.rate - change)
        together = now * then + self.correlation * math.sqrt(now * (1 - now) * then * (1 - then))
        together = min(max(together, now + then - 1, 0.0), then)
        return now - together, then - together


def fewest_units(level: float) -> int:
    """How many units have to be lost, and none won, for a p-value below the level.

    >>> fewest_units(0.05), fewest_units(0.05 / 14)
    (6, 10)
    """
    return 1 + math.floor(1 - math.log2(level))


def mcnemar_power(lost: float, won: float, pairs: int, *, alpha: float = 0.05) -> float:
    """How often McNemar's exact test calls a loss, where pairs are lost and won with these chances.

    >>> round(mcnemar_power(0.0837, 0.0, 100), 2)
    0.85
    """
    from scipy.special import bdtr
    from scipy.stats import binom

    differ = min(1.0, lost + won)
    if differ * pairs < _NEVER:
        return 0.0
    if pairs * differ > _NORMAL_ABOVE:
        away = (lost - won) * math.sqrt(pairs) - NormalDist().inv_cdf(1 - alpha / 2) * math.sqrt(differ)
        return NormalDist().cdf(away / math.sqrt(max(differ - (lost - won) ** 2, 1e-300)))
    low, high = (int(binom.ppf(chance, pairs, differ)) for chance in (1e-10, 1 - 1e-10))
    counts = np.unique(np.linspace(low, high, min(_AT_ONCE, high - low + 1)).round()).astype(np.int64)
    chances = binom.pmf(counts, pairs, differ)
    most = _most_won(counts, alpha)
    called = np.where(most >= 0, bdtr(np.maximum(most, 0).astype(np.float64), counts, won / differ), 0.0)
    return float((chances * called).sum() / chances.sum())


def detectable_change(
    units: int,
    sd: float | None,
    differing: Differing | None,
    *,
    alpha: float = 0.05,
    power: float = POWER,
    reach: float = math.inf,
) -> float | None:
    """Return the smallest change that this many units detect with this power; None if there is none.

    `sd` is that of a unit's difference, `reach` how far apart two values of the metric can be. A change that
    is spread over all units is noticed as the t formula says, but no change before enough units differ.

    >>> round(detectable_change(100, None, Differing(counted=True)), 4)
    0.0779
    """
    if units < fewest_units(alpha) or (differing is not None and differing.least_p >= alpha):
        return None
    sizes = []
    if sd and not (differing is not None and differing.counted):
        sizes.append(minimum_detectable_effect(sd, units, alpha=alpha, power=power, by="t"))
    if differing is not None:
        share = _smallest_share(differing, units, alpha, power)
        sizes.append(math.inf if share is None else share * differing.size)
    found = max(sizes, default=math.inf)
    return found if math.isfinite(found) and found <= reach else None


def units_needed(
    effect: float,
    sd: float | None,
    differing: Differing | None,
    *,
    alpha: float = 0.05,
    power: float = POWER,
) -> int | None:
    """The least number of units that shows a change of this size with this power; None if none does."""
    if not effect or not math.isfinite(effect) or (differing is not None and differing.least_p >= alpha):
        return None
    found = [fewest_units(alpha)]
    if sd and not (differing is not None and differing.counted):
        by_t = sample_size(effect, sd, alpha=alpha, power=power)
        if by_t is None:
            return None
        found.append(by_t)
    if differing is not None:
        share = abs(effect) / differing.size
        if share > differing.largest and differing.counted:
            return None
        by_count = _least_units(differing.shares(min(share, differing.largest)), alpha, power)
        if by_count is None:
            return None
        found.append(by_count)
    return max(found) if len(found) > 1 else None


def _smallest_share(differing: Differing, units: int, alpha: float, power: float) -> float | None:
    from scipy.optimize import brentq

    def lacking(change: float) -> float:
        return mcnemar_power(*differing.shares(change), units, alpha=alpha) - power

    if lacking(differing.largest) < 0:
        return None
    return float(brentq(lacking, 0.0, differing.largest, xtol=1e-12, rtol=1e-10))


def _least_units(shares: tuple[float, float], alpha: float, power: float) -> int | None:
    """The least number that is enough, up to the small steps by which counts make power rise and fall."""

    def enough(units: int) -> bool:
        return mcnemar_power(*shares, units, alpha=alpha) >= power

    return _first_from(enough, fewest_units(alpha))


def _first_from(holds: Callable[[int], bool], high: int) -> int | None:
    """Return the least number for which it holds; None if it still does not for a number beyond any dataset.

    The number is doubled until it holds, from `high` on, and then searched below.
    """
    while not holds(high):
        high *= 2
        if high > _MOST:
            return None
    return _first(holds, high // 2, high)


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The first number above `low` for which it holds, as it does for `high`."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _most_won(counts: NDArray[np.int64], alpha: float) -> NDArray[np.int64]:
    """Return the most wins among differing pairs at which a loss is still called; -1 where it never is."""
    from scipy.special import bdtr

    def is_called(won: NDArray[np.int64]) -> NDArray[np.bool_]:
        p_values = 2 * bdtr(np.maximum(won, 0).astype(np.float64), counts, 0.5)
        # Of equal p-values some are a last bit smaller.
        return np.asarray((won < 0) | (p_values < alpha * (1 - 1e-12)))

    z = NormalDist().inv_cdf(1 - alpha / 2)
    most = np.maximum(np.floor((counts - z * np.sqrt(counts) - 1) / 2), -1).astype(np.int64)
    while not (called := is_called(most)).all():
        most = np.where(called, most, most - 1)
    while (more := is_called(most + 1) & (most + 1 <= counts)).any():
        most = np.where(more, most + 1, most)
    return most


# Shares of right answers on samples of one's own: which change does Welch's test show, and with how many?
#
# Two systems on different samples are compared by Welch's test, whose errors are those that either
# sample happens to have. A rate of 0.99 hardly varies, the lower one that it may fall to does: a formula with
# one standard deviation for both promises far too much. Here the chances of all counts are added up.
#
# | share_power             how often the test calls a drop
# | detectable_drop         the smallest drop that this many samples can detect
# | samples_for_drop        how many samples of each system a drop takes

_COUNTED = 20_000  # pairs of counts; where more are likely, they are normal to two digits


def share_power(rate: float, lower: float, n: int, *, alpha: float = 0.05) -> float:
    """How often a drop of the one share to the other is called, n samples of either.

    >>> round(share_power(0.99, 0.9337, 50), 2), round(share_power(0.8, 0.6, 80), 2)
    (0.27, 0.8)
    """
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

    return _first_from(enough, 2)
