"""Two runs side by side: the comparison, made once and kept, and the scores of the samples that both have.

The comparison of large runs is made by `python -m auepora_eval.web.pairs BASELINE CANDIDATE FILE` and kept in
the user's cache folder, by the content of both runs. The file can be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..comparison.compare import Comparison, compare_runs
from ..core.types import EvaluationSample
from ..io.files.atomic import write_bytes
from ..runs.index.build import cache_folder
from ..runs.index.index import Filter, Places, RunIndex, open_index
from ..runs.store.storage import EvaluationResultsStorage, stored_samples
from .workspace import SMALL, Workspace

SCHEMA = 2  # grows whenever an older file must not be read
OUTCOMES = ("lost", "won", "tied")


@dataclass(frozen=True)
class Scores:
    """Both scores of each shared sample, and the gain: positive if the second run is better.

    A failed call has the worst score of the metric, as in the comparison. NaN if one was not measured.
    """

    before: NDArray[np.float64]
    after: NDArray[np.float64]
    gain: NDArray[np.float64]
    outcomes: Mapping[str, Places]  # lost, won and tied samples, the largest change first


@dataclass(frozen=True)
class Pair:
    """Two runs, the comparison, and where each sample that both have is in either run."""

    a: RunIndex
    b: RunIndex
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
    return {
        outcome: each[np.argsort(-np.abs(gain[each]), kind="stable")].astype(np.int32)
        for outcome, each in numbers.items()
    }


def _filled(index: RunIndex, metric: str) -> NDArray[np.float64]:
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
    return workspace.kept.get(key, lambda: Pair(first, second, _comparison(workspace, a, b, first, second)))


def _comparison(workspace: Workspace, a: str, b: str, first: RunIndex, second: RunIndex) -> Comparison:
    if max(first.size, second.size) <= SMALL:
        return compared(first.results, second.results)
    name = hashlib.sha256(f"{SCHEMA} {first.digest} {second.digest}".encode()).hexdigest()[:32]
    path = cache_folder() / f"{name}.pair.json"
    if not path.is_file():
        words = ["auepora_eval.web.pairs", str(first.results), str(second.results), str(path)]
        workspace.background.start(f"pair {path.name}", words, f"Comparing {a} with {b}")
    return msgspec.convert(json.loads(path.read_bytes()), Comparison)


def compared(a: Path, b: Path) -> Comparison:
    """Return the comparison of two stored runs, with the slices of every field that the second run has."""
    storage = EvaluationResultsStorage(b.parent)
    runs = storage.load_scores(a), storage.load_scores(b)
    index = open_index(b)
    whole = compare_runs(*runs, by=list(index.fields), samples=_labels(b) if index.fields else None)
    # Lost samples are found by the scores of the indexes. One says that there are some (`lost_most`).
    metrics = [replace(metric, regressions=metric.regressions[:1]) for metric in whole.metrics]
    return replace(whole, metrics=metrics)


def _labels(path: Path) -> list[EvaluationSample]:
    """Return the samples of a run without their documents: only labels are needed, and memory is scarce."""
    return [
        EvaluationSample(sample.sample_id, "", labels=sample.labels, metadata=sample.metadata)
        for sample in stored_samples(path)
    ]


if __name__ == "__main__":
    made = compared(Path(sys.argv[1]), Path(sys.argv[2]))
    # Not by msgspec: a comparison may have NaN, which its JSON does not keep.
    write_bytes(Path(sys.argv[3]), json.dumps(msgspec.to_builtins(made)).encode(), force=True, private=True)
