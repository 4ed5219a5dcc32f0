"""Which samples of two runs differ, and by how much: what decides the smallest change that could be seen."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..stats.drawing import summed_by_unit
from ..stats.paired_power import Differing
from ..stats.significance import DRAWS_UP_TO

if TYPE_CHECKING:
    from .pairing import Pairing

_OF_SWAPS = 1 / 2_001  # the smallest p-value of the test for any aggregate
_ROUNDING = 1e-12


def differing_units(pairing: Pairing, error: float, *, resamples: int) -> Differing | None:
    """The samples, or clusters of them, that differ, as the test of the metric counts them.

    `error` is the standard error of the difference. None where it is not known how others would differ: no
    sample does, and scores are not only 0 and 1.
    """
    import numpy as np

    rows_a, rows_b, clusters = pairing.used()
    if not pairing.is_mean:
        apart = np.abs(rows_b - rows_a).max(axis=1, keepdims=True) > _ROUNDING
        units = summed_by_unit(apart.astype(np.float64), clusters)
        differ = int((units > 0).sum())
        if not differ or not error > 0:
            return None
        # Alike in size, so many of them have this error.
        return Differing(error * len(units) / math.sqrt(differ), least_p=_OF_SWAPS)
    gains = pairing.differences()[pairing.both]
    sums = summed_by_unit(gains.reshape(-1, 1), clusters)[:, 0]
    sums = np.where(np.abs(sums) <= _ROUNDING, 0.0, sums)
    binary, units_there = pairing.is_binary(), len(sums)
    counted = binary and clusters is None
    least = 0.0 if counted or units_there > DRAWS_UP_TO else 1 / (resamples + 1)
    lost, won = int((sums < 0).sum()), int((sums > 0).sum())
    if not lost + won:
        return Differing(counted=counted, least_p=least) if binary else None
    size = float(np.abs(sums).sum()) / (lost + won) * units_there / len(gains)
    return Differing(size, min(lost, won) / units_there, counted, least_p=least)
