"""When did a value change? Marks in a row of runs, at a stated rate of false ones.

A row is cut where its two sides differ most. If chance alone would make such a cut somewhere in the row in
fewer than alpha of all cases, the place is marked, and both sides are looked at in the same way. So a row
without any change gets a mark in at most alpha of all cases, and so does every stretch between two true
changes. How the two sides are compared depends on what is known:

    changes_of_samples   the scores of the same samples in every run: the scores of each sample are shuffled,
                         and the largest difference of all cuts is compared with that of the shuffles
    changes_of_values    one number a run, which wavers from run to run: Student's t, times the places
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from statistics import fmean
from typing import NamedTuple

import numpy as np

from .arrays import Array
from .resamples import summed_by_unit

_DRAWS = 2_000
_NORMAL_ABOVE = 5_000  # scores; with this many that differ, sums over samples are normal
_NORMAL_DRAWS = 20_000
_AT_ONCE = 2_000_000  # numbers


class ChangePoint(NamedTuple):
    """The run at `place` is the first after a change; `p_value` is corrected for all places."""

    place: int
    p_value: float


class _Cut(NamedTuple):
    """Where the sides of a row differ most, and how often chance does as much somewhere in the row."""

    place: int
    p_value: float


BestCut = Callable[[int, int], _Cut]  # of the runs from the first number up to the second


def changes_of_samples(
    scores: Array, *, clusters: Sequence[Hashable] | None = None, alpha: float = 0.05, seed: int = 0
) -> list[ChangePoint]:
    """Changes in an array (samples, runs). A sample that lacks a score (NaN) in a stretch is left out of it.

    If nothing changed, the scores of a sample might have come in any order: they are shuffled within each
    sample, together for the samples of a cluster. Samples that score the same in every run say nothing.
    """
    if scores.ndim != 2:
        raise ValueError(f"scores come as (samples, runs), not {scores.shape}")

    def best(first: int, end: int) -> _Cut:
        stretch = scores[:, first:end]
        there = np.asarray(np.isfinite(stretch).all(axis=1))
        chosen = None
        if clusters is not None:
            chosen = [cluster for cluster, kept in zip(clusters, there.tolist(), strict=True) if kept]
        units = summed_by_unit(stretch[there], chosen)
        units = units[np.ptp(units, axis=1) > 1e-12]
        if not len(units):
            return _Cut(first + 1, 1.0)
        found = _differences(units.sum(axis=0))
        sd = math.sqrt(float(units.var(axis=1, ddof=1).sum()))
        limit = float(found.max()) * (1 - 1e-9)  # a shuffle that ties must count
        many = units.size > _NORMAL_ABOVE
        p_value = _normal_p(limit / sd, end - first) if many else _shuffled_p(units, limit, seed)
        return _Cut(first + 1 + int(found.argmax()), p_value)

    return _marked(scores.shape[1], best, alpha)


def _differences(sums: Array) -> Array:
    """How far apart the two sides of each cut are, over the root of what their difference varies by.

    `sums` has a number a run on its last axis.
    """
    runs = sums.shape[-1]
    left = np.arange(1, runs)
    before = np.cumsum(sums, axis=-1)
    whole = before[..., -1:]
    # The mean after each cut less the mean before it, for all cuts at once from cumulative sums.
    apart = (whole - before[..., :-1]) / (runs - left) - before[..., :-1] / left
    return np.asarray(np.abs(apart) / np.sqrt(1 / left + 1 / (runs - left)))


def _shuffled_p(units: Array, limit: float, seed: int) -> float:
    rng = np.random.default_rng(seed)
    extreme, done = 0, 0
    while done < _DRAWS:
        count = min(_DRAWS - done, max(1, _AT_ONCE // units.size))
        shuffled = rng.permuted(np.broadcast_to(units, (count, *units.shape)), axis=-1)
        extreme += int((_differences(shuffled.sum(axis=1)).max(axis=-1) >= limit).sum())
        done += count
    # The observed order is one of the shuffles, so p is never 0 (Phipson & Smyth 2010).
    return (extreme + 1) / (_DRAWS + 1)


@lru_cache(maxsize=256)
def _normal_maxima(runs: int) -> Array:
    """The largest difference of a row in which nothing changes, many times, in ascending order."""
    # Seeded by the length of the row: the null distribution is the same for every caller and can be cached.
    rng = np.random.default_rng(runs)
    return np.sort(_differences(rng.standard_normal((_NORMAL_DRAWS, runs))).max(axis=-1))


def _normal_p(limit: float, runs: int) -> float:
    maxima = _normal_maxima(runs)
    above = len(maxima) - int(np.searchsorted(maxima, limit, side="left"))
    return (above + 1) / (len(maxima) + 1)


def changes_of_values(values: Sequence[float], *, alpha: float = 0.05) -> list[ChangePoint]:
    """Changes in numbers that waver from run to run by themselves; it takes three runs at least.

    >>> changes_of_values([1.0, 1.1, 0.9, 1.0, 2.0, 2.1, 1.9, 2.0])[0].place
    4
    """
    from scipy.special import stdtr

    def best(first: int, end: int) -> _Cut:
        found = []
        for cut in range(first + 1, end):
            left, right = values[first:cut], values[cut:end]
            freedom = len(left) + len(right) - 2
            difference = fmean(right) - fmean(left)
            squares = sum((x - fmean(side)) ** 2 for side in (left, right) for x in side)
            error = 0.0
            if freedom:
                error = math.sqrt(squares / freedom * (1 / len(left) + 1 / len(right)))
            if error > 1e-12 * abs(difference):
                p_value = 2 * float(stdtr(freedom, -abs(difference) / error))
            else:  # no spread at all: any difference is sure, if there was a chance to see a spread
                p_value = float(not freedom or abs(difference) <= 1e-12 * abs(fmean(left)))
            # Of equal p-values the larger difference comes first, then the earlier run.
            found.append((p_value, -abs(difference), cut))
        return _surest(found)

    return _marked(len(values), best, alpha)


def _surest(found: Sequence[tuple[float, float, int]]) -> _Cut:
    """The cut with the smallest p-value, times the number of cuts (Bonferroni)."""
    p_value, _, cut = min(found)
    return _Cut(cut, min(1.0, p_value * len(found)))


def _marked(size: int, best: BestCut, alpha: float) -> list[ChangePoint]:
    found: list[ChangePoint] = []
    waiting = [(0, size)]
    while waiting:
        first, end = waiting.pop()
        if end - first < 2:
            continue
        cut = best(first, end)
        if cut.p_value < alpha:
            found.append(ChangePoint(cut.place, cut.p_value))
            waiting += [(first, cut.place), (cut.place, end)]
    return sorted(found)
