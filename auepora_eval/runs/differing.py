"""How much runs vary, and which samples of two differ: what decides which changes could be seen."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..stats.drawing import summed_by_unit
from ..stats.few_clusters import errors_wide
from ..stats.intervals import bootstrap_interval
from ..stats.paired_power import Differing
from ..stats.significance import DRAWS_UP_TO
from ..stats.standard_error import careful_error

if TYPE_CHECKING:
    from ..core.scores import Rows
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


def side_error(pairing: Pairing, rows: Rows) -> tuple[float, int]:
    """The standard error of one run's value, and how many independent units it stands on."""
    clusters = pairing.used()[2]
    units = len(rows) if clusters is None else len(set(clusters))
    if pairing.is_mean:
        return careful_error(rows[:, 0], clusters=clusters), units
    interval = pairing.known.interval(rows, clusters)
    return math.nan if interval is None else (interval.high - interval.low) / (
        2 * errors_wide(clusters)
    ), units


def difference_error(pairing: Pairing) -> tuple[float, int]:
    """The standard error of the difference of two runs on the same samples."""
    import numpy as np

    rows_a, rows_b, clusters = pairing.used()
    units = len(rows_a) if clusters is None else len(set(clusters))
    if pairing.is_mean:
        return careful_error(rows_b[:, 0] - rows_a[:, 0], clusters=clusters), units
    metric, width = pairing.known, rows_a.shape[-1]
    interval = bootstrap_interval(
        np.concatenate([rows_a, rows_b], axis=-1),
        lambda rows: metric.aggregate(rows[..., width:]) - metric.aggregate(rows[..., :width]),
        clusters=clusters,
        of_sums=metric.of_sums,
    )
    return math.nan if interval is None else (interval.high - interval.low) / (
        2 * errors_wide(clusters)
    ), units
