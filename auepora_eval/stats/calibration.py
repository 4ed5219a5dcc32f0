"""Can a score be read as a chance? Of the samples that a judge scores 0.8, are 80 of 100 right?

    calibration   the gap between scores and labels in bins of equal width (ECE), and the Brier score

The expected calibration error is never 0 on a finite sample, even of a judge that is perfectly calibrated:
what chance alone gives is told beside it. It depends on the bins, so their number belongs to the figure.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .intervals import Interval, mean_interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

BINS, MOST_BINS = 10, 1_000
DRAWS = 1_000
_CELLS_AT_ONCE = 2_000_000
_MANY = 1_000  # members of a bin whose count of labels is as good as normal


class Bin(NamedTuple):
    """Samples that a judge scored from `low` (left out, unless 0) to `high`; NaN means where it is empty."""

    low: float
    high: float
    samples: int
    score: float  # mean of the judge's scores
    label: float  # mean of the labels
    interval: Interval | None  # of the mean of the labels


class Calibration(NamedTuple):
    """How far scores are from shares. `by_chance`: 95% of calibrated judges stay below; None if unknown.

    `brier` is the mean squared distance of score and label, `brier_of_mean` that of always saying their mean.
    """

    error: float
    by_chance: float | None
    brier: float
    brier_interval: Interval | None
    brier_of_mean: float
    bins: tuple[Bin, ...]


def calibration(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    bins: int = BINS,
    clusters: Sequence[Hashable] | None = None,
    seed: int = 0,
) -> Calibration:
    """Scores and labels, both from 0 to 1, held against each other; labels may be shares of people.

    In clusters, labels go together more than chance has it: what chance gives is then not known.

    >>> calibration([0.9, 0.9, 0.1, 0.1], [1, 0, 0, 0]).error
    0.25
    """
    import numpy as np

    x, y = np.asarray(scores, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    if not 1 <= bins <= MOST_BINS:
        raise ValueError(f"there must be from 1 to {MOST_BINS} bins, not {bins}")
    if x.shape != y.shape or x.ndim != 1 or not len(x):
        raise ValueError(f"as many scores as labels are needed, not {x.shape} and {y.shape}")
    if not bool(((x >= 0) & (x <= 1) & (y >= 0) & (y <= 1)).all()):
        raise ValueError("a score or a label is not between 0 and 1")
    edges = np.linspace(0.0, 1.0, bins + 1)
    place = np.searchsorted(edges[1:-1], x)
    squares = (x - y) ** 2
    is_binary = bool(((y == 0) | (y == 1)).all())
    return Calibration(
        _gap(place, x - y, bins) / len(x),
        _error_by_chance(x, place, seed) if is_binary and clusters is None else None,
        float(squares.mean()),
        mean_interval(squares, clusters=clusters, bounds=(0.0, 1.0), seed=seed),
        float(((y - y.mean()) ** 2).mean()),
        tuple(_bin(edges, n, x, y, place == n, clusters, seed) for n in range(bins)),
    )


def _bin(
    edges: Array,
    number: int,
    scores: Array,
    labels: Array,
    there: NDArray[np.bool_],
    clusters: Sequence[Hashable] | None,
    seed: int,
) -> Bin:
    low, high = float(edges[number]), float(edges[number + 1])
    if not there.any():
        return Bin(low, high, 0, math.nan, math.nan, None)
    scores, labels = scores[there], labels[there]
    groups = (
        None if clusters is None else [each for each, is_in in zip(clusters, there, strict=True) if is_in]
    )
    interval = mean_interval(labels, clusters=groups, bounds=(0.0, 1.0), seed=seed)
    return Bin(low, high, len(scores), float(scores.mean()), float(labels.mean()), interval)


def _gap(place: NDArray[np.intp], differences: Array, bins: int) -> float:
    import numpy as np

    return float(np.abs(np.bincount(place, weights=differences, minlength=bins)).sum())


def _error_by_chance(x: Array, place: NDArray[np.intp], seed: int) -> float:
    """The 95% point of the error, had each label been drawn with its score as the chance.

    This is consistency resampling (Bröcker & Smith 2007).
    """
    import numpy as np

    rng = np.random.default_rng(seed)
    gaps = np.zeros(DRAWS)
    for number in np.unique(place):
        chances = x[place == number]
        if len(chances) > _MANY:
            spread = math.sqrt(float((chances * (1 - chances)).sum()))
            gaps += np.abs(rng.normal(0.0, spread, DRAWS))
            continue
        rows = max(1, _CELLS_AT_ONCE // len(chances))
        for start in range(0, DRAWS, rows):
            drawn = rng.random((min(rows, DRAWS - start), len(chances))) < chances
            gaps[start : start + rows] += np.abs(drawn.sum(axis=1) - chances.sum())
    return float(np.quantile(gaps / len(x), 0.95))
