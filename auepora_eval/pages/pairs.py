"""Two runs side by side: the comparison, and the scores of the samples that both have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..comparison.compare import Comparison
from ..store.pages import Filter, Places, RunSamples
from .comparisons import comparison_of
from .workspace import Workspace

OUTCOMES = ("lost", "won", "tied", "all")


@dataclass(frozen=True)
class Scores:
    """Both scores of each shared sample, and the gain: positive if the second run is better.

    A failed call has the worst score of the metric, as in the comparison. NaN if one was not measured.
    """

    before: NDArray[np.float64]
    after: NDArray[np.float64]
    gain: NDArray[np.float64]
    # Lost, won and tied samples, the largest change first; all of them, from the largest loss.
    outcomes: Mapping[str, Places]


@dataclass(frozen=True)
class Pair:
    """Two runs, the comparison, and where each sample that both have is in either run."""

    a: RunSamples
    b: RunSamples
    comparison: Comparison
    drawn: dict[tuple[str, ...], Any] = field(default_factory=dict)  # parts of pages that stay the same

    @cached_property
    def places(self) -> tuple[Places, Places]:
        """Return the places of the samples that both runs have, in the order of the second run."""
        if self.has_same_samples:
            both = np.arange(self.b.size)
            return both, both
        known = {sample_id: place for place, sample_id in enumerate(self.a.ids)}
        shared = [(known[name], place) for place, name in enumerate(self.b.ids) if name in known]
        ours, theirs = zip(*shared, strict=True) if shared else ((), ())
        return np.array(ours, np.intp), np.array(theirs, np.intp)

    @property
    def has_same_samples(self) -> bool:
        """Return whether both runs have the same samples in the same order, as nearly always."""
        return self.a.ids_digest == self.b.ids_digest

    @property
    def total(self) -> int:
        """Return how many samples there are in either run."""
        return self.a.size + self.b.size - len(self.places[0])

    @cached_property
    def _scores(self) -> dict[str, Scores]:
        return {}

    def scores(self, metric: str) -> Scores:
        """Return what both runs scored on a metric."""
        if metric not in self._scores:
            before, after = _filled(self.a, metric), _filled(self.b, metric)
            if not self.has_same_samples:
                before, after = before[self.places[0]], after[self.places[1]]
            gain = after - before if self.b.metrics[metric].higher_is_better else before - after
            self._scores[metric] = Scores(before, after, gain, _outcomes(gain))
        return self._scores[metric]

    def page(
        self, metric: str, outcome: str, wanted: Filter, *, start: int = 0, count: int = 50
    ) -> tuple[Places, int]:
        """Return the samples of an outcome that match, the largest change first, and how many there are.

        They are numbers into `places`. A filter is that of the second run.
        """
        numbers = self.scores(metric).outcomes[outcome]
        if wanted != Filter():
            numbers = numbers[self.b.matching(wanted)[self.places[1][numbers]]]
        return numbers[start : start + count], len(numbers)


def _outcomes(gain: NDArray[np.float64]) -> dict[str, Places]:
    """Return the lost, won and tied samples. Sorted once: a page is then a part of it."""
    chosen = {"lost": gain < 0, "won": gain > 0, "tied": gain == 0}
    numbers = {outcome: np.flatnonzero(mask) for outcome, mask in chosen.items()}
    sorted_numbers = {
        outcome: each[np.argsort(-np.abs(gain[each]), kind="stable")].astype(np.int32)
        for outcome, each in numbers.items()
    }
    # What was not measured in both is NaN, which is sorted behind all others.
    return {**sorted_numbers, "all": np.argsort(gain, kind="stable").astype(np.int32)}


def _filled(index: RunSamples, metric: str) -> NDArray[np.float64]:
    """Return the scores of a metric, with the worst end of its scale where the call failed."""
    result = index.metrics[metric]
    low, high = result.bounds or (None, None)
    worst = low if result.higher_is_better else high
    values, failed = index.column(metric), index.has_failed(metric)
    # Without failures the column itself, and not a copy: large runs have many metrics.
    return values if worst is None or not failed.any() else np.where(failed, worst, values)


def pair_of(workspace: Workspace, a: str, b: str) -> Pair:
    """Return two runs and their comparison; NotReadyError while that of large runs is being made."""
    first, second = workspace.index(a), workspace.index(b)
    key = ("pair", first.digest, second.digest)
    return workspace.kept.get(key, lambda: Pair(first, second, comparison_of(workspace, a, b)))
