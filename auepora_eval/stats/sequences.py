"""Intervals that hold however often one looks: for runs that stop as soon as the answer is clear.

An interval made for a fixed number of samples is wrong too often if one looks again and again and stops when
it is convenient. Here a gambler bets, sample by sample, that the mean is above a threshold. If it is not, no
way of betting makes money on average, and the chance that the wealth ever grows to 1 / alpha times what it
was is at most alpha (Ville), at whatever moment one stops. The thresholds that are not refuted so are the
confidence sequence (Waudby-Smith & Ramdas 2024, "Estimating means of bounded random variables by betting").

It asks for two things: every score lies between bounds that are known beforehand, and the units (samples, or
whole clusters of them) come in random order and were drawn independently from what the mean is of. It does
not ask that scores are normal or that there are many. The wealth is a mean over gamblers who each bet a fixed
share of it, so that it depends on the scores alone and not on their order.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from .arrays import Array
from .intervals import Interval

METHOD = "confidence sequence (betting)"
# Bold gamblers are the first to see a large effect, careful ones see a small one at all. Nobody knows
# beforehand which it will be: all play, and the bolder ones have more of the money.
_SHARES = tuple(0.8 * 0.5**n for n in range(10))
_MONEY = tuple(1 / (n + 1) / sum(1 / (k + 1) for k in range(10)) for n in range(10))
_HALVINGS = 40


class Evidence:
    """How much speaks for a mean above a threshold, of scores between 0 and 1 that come one by one.

    >>> evidence = Evidence(0.5)
    >>> for _ in range(9):
    ...     evidence.add(1.0)
    >>> evidence.is_clear(0.05)
    True
    """

    def __init__(self, threshold: float, *, largest: int = 1) -> None:
        if not 0 < threshold < 1:
            raise ValueError(f"a threshold is between 0 and 1, not {threshold}")
        self.threshold, self.largest = threshold, largest
        self._logs = [math.log(money) for money in _MONEY]

    def add(self, total: float, size: int = 1) -> None:
        """A further independent unit: the sum of its scores, and how many they are (at most `largest`)."""
        if not (0 <= size <= self.largest and -1e-9 <= total <= size + 1e-9):
            raise ValueError(f"{size} scores with a sum of {total} are not {self.largest} between 0 and 1")
        # Scaled so that the largest possible loss is the whole stake. Shares below 1 keep log1p finite.
        gain = max(-1.0, (total - self.threshold * size) / (self.threshold * self.largest))
        for place, share in enumerate(_SHARES):
            self._logs[place] += math.log1p(share * gain)

    @property
    def log_wealth(self) -> float:
        """The logarithm of what the gamblers have, who began with 1."""
        # Log-sum-exp: the wealth of a long run is too large for exp().
        most = max(self._logs)
        return most + math.log(math.fsum(math.exp(log - most) for log in self._logs))

    def is_clear(self, alpha: float) -> bool:
        """Whether the mean is above the threshold, with a chance of at most alpha ever to say so wrongly."""
        return self.log_wealth >= -math.log(alpha)


def sequence_interval(
    lows: ArrayLike,
    highs: ArrayLike | None = None,
    *,
    sizes: ArrayLike | None = None,
    largest: int = 1,
    confidence: float = 0.95,
) -> Interval:
    """The interval of a mean of scores between 0 and 1 that holds at whatever moment one stopped.

    Scores that are not known lie between `lows` and `highs`. With `sizes` each number is the sum of that many
    scores, a cluster's; `largest` is the size of the largest cluster that there could have been.

    >>> interval = sequence_interval([1.0] * 20 + [0.0] * 20)
    >>> round(interval.low, 2), round(interval.high, 2)
    (0.26, 0.74)
    """
    below = np.asarray(lows, dtype=np.float64)
    above = below if highs is None else np.asarray(highs, dtype=np.float64)
    counts = np.ones(len(below)) if sizes is None else np.asarray(sizes, dtype=np.float64)
    alpha = (1 - confidence) / 2
    low = _lower_limit(below, counts, largest, alpha)
    high = 1 - _lower_limit(counts - above, counts, largest, alpha)
    return Interval(low, high, METHOD)


def _lower_limit(totals: Array, sizes: Array, largest: int, alpha: float) -> float:
    """The highest threshold that the mean is clearly above; 0 where there is none."""
    # Many scores are equal: the work is that of the different ones.
    units, often = np.unique(np.stack([totals, sizes], axis=1), axis=0, return_counts=True)
    totals, sizes = units[:, 0], units[:, 1]

    def is_clear(threshold: float) -> bool:
        gains = np.maximum((totals - threshold * sizes) / (threshold * largest), -1.0)
        logs = [float(often @ np.log1p(share * gains)) for share in _SHARES]
        return bool(np.logaddexp.reduce(logs + np.log(_MONEY)) >= -math.log(alpha))

    if not bool((totals > 0).any()):
        return 0.0
    low, high = 0.0, 1.0  # the higher the threshold, the less is won: one place divides clear from not clear
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_clear(middle) else (low, middle)
    return low
