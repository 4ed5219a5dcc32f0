"""How many samples does it take, and what could this many have shown?

One formula answers both, for the intervals of `intervals.py`. A unit is a sample or a cluster of samples. Its
difference between two systems has a standard deviation of `sd`; `size` is how much a unit differs that does:

    error² = (n (sd² + effect added) + 2 size²) / ((n + 1)(n + 2))
    power  = T(n - 1; effect n / ((n + 2) error) - t(1 - alpha / 2))

`added` is the variance that an effect brings along: it makes units differ that did not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from .intervals import t_quantile

POWER = 0.8  # the usual convention of sample-size tables: found in four of five tries
_MOST = 10**12


def fewest_units(level: float) -> int:
    """How many units have to be lost, and none won, for a p-value below the level.

    >>> fewest_units(0.05), fewest_units(0.05 / 14)
    (6, 10)
    """
    if not 0 < level < 1:
        raise ValueError(f"alpha is between 0 and 1, not {level}")
    return 1 + math.floor(1 - math.log2(level))


@dataclass(frozen=True)
class Spread:
    """How the units of two systems differ, where nothing changes on average.

    `added` is the variance per unit of change. Where it is not given, a change is taken to come from units
    that did not differ, and now do by `size`: none if all units differ, `size` if none does.
    """

    sd: float
    size: float
    added: float | None = None

    def __post_init__(self) -> None:
        if not (self.sd >= 0 and math.isfinite(self.sd)):
            raise ValueError(f"a standard deviation is a number of at least 0, not {self.sd}")

    @property
    def slope(self) -> float:
        """The variance that a change adds, per unit of its size."""
        if self.added is not None or not self.size:
            return self.added or 0.0
        # The share of units that differ is sd² / size²: only the others can begin to differ.
        return max(0.0, self.size - self.sd**2 / self.size)


def detectable_change(
    units: float,
    spread: Spread,
    *,
    alpha: float = 0.05,
    power: float = POWER,
    reach: float = math.inf,
) -> float | None:
    """Return the smallest change that this many units detect with this power; None if there is none.

    `reach` is how far apart two values of the metric can be.

    >>> round(detectable_change(100, Spread(0.3, 0.3)), 3), round(detectable_change(100, Spread(0.0, 1.0)), 3)
    (0.086, 0.097)
    """
    if units < fewest_units(alpha):
        return None
    freedom = units - 1
    errors = t_quantile(freedom, 1 - alpha / 2) + t_quantile(freedom, power)
    # effect n / (n + 2) = errors * error, squared: a quadratic in the effect.
    square = units**2 * (units + 1) / ((units + 2) * errors**2)
    linear, constant = units * spread.slope, units * spread.sd**2 + 2 * spread.size**2
    effect = (linear + math.sqrt(linear**2 + 4 * square * constant)) / (2 * square)
    return effect if effect <= reach else None


def units_needed(effect: float, spread: Spread, *, alpha: float = 0.05, power: float = POWER) -> int | None:
    """Return the least number of units that detects a change of this size; None if none does.

    >>> units_needed(0.2, Spread(1.0, 1.0)), units_needed(0.05, Spread(0.0, 1.0))
    (202, 193)
    """
    if not alpha < power < 1:
        raise ValueError(f"a power is between alpha and 1, not {power}")

    def is_enough(units: int) -> bool:
        least = detectable_change(units, spread, alpha=alpha, power=power)
        return least is not None and least <= abs(effect)

    return _first(is_enough, fewest_units(alpha)) if effect and math.isfinite(effect) else None


def units_to_rule_out(
    margin: float, sd: float, reach: float, *, alpha: float = 0.05, power: float = POWER
) -> int | None:
    """Return how many units rule out a loss of the margin with this power, were there no difference.

    `reach` is the most that a unit can lose: a loss of that size may not have been seen.

    >>> [units_to_rule_out(margin, 0.0, 1.0) for margin in (0.02, 0.05, 0.1)]
    [139, 56, 28]
    """

    def is_enough(units: int) -> bool:
        freedom = units - 1
        error = math.sqrt((units * sd**2 + 2 * reach**2) / ((units + 1) * (units + 2)))
        # The imaginary units widen the interval, but they do not vary.
        chance = t_quantile(freedom, power) * sd / math.sqrt(units) * units / (units + 2)
        return t_quantile(freedom, 1 - alpha / 2) * error + chance < margin

    return _first(is_enough, 2)


def _first(is_enough: Callable[[int], bool], high: int) -> int | None:
    """Return the least number, from `high` on, that is enough; None if no number of samples ever is."""
    low = high - 1
    while not is_enough(high):
        low, high = high, 2 * high
        if high > _MOST:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high
