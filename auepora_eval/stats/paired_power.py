"""The smallest change that a test on the same samples shows, counted where it can be counted.

Of 0/1 scores McNemar's exact test looks only at the pairs that one of the systems lost. How many of these
there will be, and whether they are enough, is a matter of binomial counts; the t formula of `power`, which
knows one standard deviation, promises too much where few pairs differ. So does it for any test by flips: by
how little one-way losses are called depends on their number alone, whatever their size.

    mcnemar_power        how often the exact test calls a change
    detectable_change    the smallest change that so many units show, for either kind of score
    units_needed         how many units a change takes
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

from .power import POWER, minimum_detectable_effect, sample_size

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NEVER = 1e-12  # pairs that differ, on average: scipy's binomial overflows far below
_NORMAL_ABOVE = 100_000  # pairs that differ, where counts are normal to four digits
_AT_ONCE = 501  # counts of pairs that differ; where more are likely, so many of them stand for all
_MOST = 10**12


@dataclass(frozen=True)
class Differing:
    """Which units differ, and by how much: a unit is a pair of scores, or a cluster of them.

    `both_ways` is the share of units that are lost, and as many again won, beside any change: what is seen of
    both kinds. `size` is by how much a unit that differs does, on average. `counted` says that these numbers
    are all there is: 0/1 scores, tested by McNemar. `rate`, the larger share of right or of wrong answers,
    and its `correlation` with the other system's stand in for `both_ways` where nothing was seen yet.
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
    import numpy as np
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
    """The smallest change that so many units show with this power; None where not even the largest does.

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

    high = fewest_units(alpha)
    while not enough(high):
        high *= 2
        if high > _MOST:
            return None
    return _first(enough, high // 2, high)


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The first number above `low` for which it holds, as it does for `high`."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _most_won(counts: NDArray[np.int64], alpha: float) -> NDArray[np.int64]:
    """The most wins among so many pairs that differ at which a loss is still called; -1 where it never is."""
    import numpy as np
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
