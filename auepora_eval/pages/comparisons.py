"""Comparisons, rankings and gates of stored runs: made once, and kept while the runs stay as they are.

A `Pair` is two runs side by side: their comparison, and the scores of the samples that both have.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..comparison.compare import Comparison, compare_runs
from ..comparison.ranking import Ranking, rank_runs
from ..core.types import EvaluationRun, EvaluationSample
from ..decide.figures import GatedRun
from ..decide.gate import gate_run
from ..decide.gate_report import GateReport
from ..decide.rules import read_rules
from ..store.pages import Filter, Places, RunSamples
from .workspace import SMALL, Workspace, out_flag

T = TypeVar("T")


def comparison_of(workspace: Workspace, a: str, b: str) -> Comparison:
    """Return the comparison of two runs, with the slices of every field that the second run has."""

    def make() -> Comparison:
        index = workspace.index(b)
        samples = _labels(index) if index.fields else None
        runs = _scores(workspace, a), _scores(workspace, b)
        return _without_regressions(compare_runs(*runs, by=list(index.fields), samples=samples))

    return _made(workspace, [a, b], make, f"Comparing {a} with {b}")


def ranking_of(workspace: Workspace, run_ids: Sequence[str]) -> Ranking:
    """Return the ranking of three runs or more."""

    def make() -> Ranking:
        ranking = rank_runs([_scores(workspace, run_id) for run_id in run_ids])
        return replace(ranking, pairs=[_without_regressions(pair) for pair in ranking.pairs])

    return _made(workspace, run_ids, make, f"Ranking {len(run_ids)} runs")


def gate_of(workspace: Workspace, run_id: str, baseline: str | None) -> GateReport:
    """Return what `auepora gate` reports of a run."""
    run_ids = [run_id] if baseline is None else [run_id, baseline]
    rules = workspace.rules
    digest = hashlib.sha256(rules.read_bytes()).hexdigest() if rules else "the usual rules"

    def make() -> GateReport:
        flags, names = out_flag(workspace.folder), [workspace.name(each) for each in run_ids]
        with_scores = baseline is not None
        runs = [GatedRun.stored(workspace.storage, name, flags, with_scores=with_scores) for name in names]
        return gate_run(runs[0], read_rules(rules) if rules else None, baseline=runs[1] if runs[1:] else None)

    return _made(workspace, run_ids, make, f"Checking {run_id} by the rules of the gate", digest)


def _made(workspace: Workspace, run_ids: Sequence[str], make: Callable[[], T], what: str, *more: str) -> T:
    """Return what is kept of these runs, or make it; NotReadyError while that of large runs is being made."""
    indexes = [workspace.index(run_id) for run_id in run_ids]
    # The ids too: what is made names the runs, and a copy of a run has its content.
    key = (what, *more, *run_ids, *(index.digest for index in indexes))
    if max(index.size for index in indexes) <= SMALL:
        return workspace.kept.get(key, make)
    return workspace.kept.get(key, lambda: workspace.background.result(key, lambda: _trimmed(make), what))


def _trimmed(make: Callable[[], T]) -> T:
    """Make something, and give the memory that it took on the way back to the system."""
    made = make()
    # glibc keeps it otherwise: the slices of 100,000 samples take 250 MB for a moment.
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)
    return made


def _scores(workspace: Workspace, run_id: str) -> EvaluationRun:
    return workspace.storage.load_run(workspace.path(run_id), texts=False)


def _without_regressions(comparison: Comparison) -> Comparison:
    # Lost samples are found by the scores of the indexes. One says that there are some (`lost_most`).
    metrics = [replace(metric, regressions=metric.regressions[:1]) for metric in comparison.metrics]
    return replace(comparison, metrics=metrics)


def _labels(index: RunSamples) -> list[EvaluationSample]:
    """Return the samples of a run with what they can be sliced by, without reading their texts."""
    names = list(index.fields)
    # Samples with the same labels share them: 100,000 dictionaries would take 200 MB.
    known: dict[tuple[int, ...], dict[str, list[str]]] = {}
    samples = []
    for sample_id, bits in zip(index.ids, index.bits(names).tolist(), strict=True):
        own = known.get(key := tuple(bits))
        if own is None:
            own = known[key] = {
                name: [value for place, value in enumerate(index.fields[name]) if mask >> place & 1]
                for name, mask in zip(names, key, strict=True)
                if mask
            }
        samples.append(EvaluationSample(sample_id, "", labels=own))
    return samples


# Two runs side by side.

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
