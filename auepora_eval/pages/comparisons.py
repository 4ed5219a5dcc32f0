"""Comparisons, rankings and gates of stored runs: made once, and kept while the runs stay as they are.

A `Pair` is two runs side by side: their comparison, and the scores of the samples that both have.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..comparison.compare import Comparison, compare_runs
from ..comparison.pairs import LAST_BITS
from ..comparison.ranking import Ranking, rank_runs
from ..comparison.words import compared_names
from ..core.settings import out_flag
from ..core.types import EvaluationSample
from ..decide.figures import GatedRun
from ..decide.gate import gate_run
from ..decide.gate_report import GateReport
from ..decide.rules import read_rules
from ..errors import AueporaError
from ..store.pages import Places, RunSamples
from .workspace import SMALL, Workspace

T = TypeVar("T")


def comparison_of(workspace: Workspace, a: str, b: str, *, slices: bool = True) -> Comparison:
    """Return the comparison of two runs, with the slices of every field that the second run has.

    Slices take most of the time, and change nothing in the comparison of all samples.
    """
    return _made(Comparison, _compared, f"Comparing {a} with {b}", workspace, [a, b], slices)


def _compared(workspace: Workspace, run_ids: Sequence[str], slices: bool) -> Comparison:
    # Scores of the indexes share their ids: others would be 100,000 texts more for each run.
    runs, index = [workspace.index(run_id).scored() for run_id in run_ids], workspace.index(run_ids[1])
    fields = list(index.fields) if slices else []
    return _without_regressions(compare_runs(*runs, by=fields, samples=_labels(index) if fields else None))


def ranking_of(workspace: Workspace, run_ids: Sequence[str]) -> Ranking:
    """Return the ranking of three runs or more."""
    return _made(Ranking, _ranked, f"Ranking {len(run_ids)} runs", workspace, list(run_ids))


def _ranked(workspace: Workspace, run_ids: Sequence[str]) -> Ranking:
    ranking = rank_runs([workspace.index(run_id).scored() for run_id in run_ids])
    return replace(ranking, pairs=[_without_regressions(pair) for pair in ranking.pairs])


def gate_of(workspace: Workspace, run_id: str, baseline: str | None) -> GateReport:
    """Return what `auepora gate` reports of a run."""
    run_ids, rules = [run_id] if baseline is None else [run_id, baseline], workspace.rules
    digest = hashlib.sha256(rules.read_bytes()).hexdigest() if rules else "the usual rules"
    return _made(
        GateReport, _gated, f"Checking {run_id} by the rules of the gate", workspace, run_ids, digest
    )


def _gated(workspace: Workspace, run_ids: Sequence[str], digest: str) -> GateReport:
    flags, names = out_flag(workspace.folder), [workspace.name(each) for each in run_ids]
    runs = [GatedRun.stored(workspace.storage, each, flags, with_scores=len(names) > 1) for each in names]
    rules = read_rules(workspace.rules) if workspace.rules else None
    return gate_run(runs[0], rules, baseline=runs[1] if runs[1:] else None)


def _made(kind: type[T], make: Callable[..., T], what: str, workspace: Workspace, *given: Any) -> T:
    """Return what is kept of these runs, or make it; NotReadyError while that of large runs is being made."""
    indexes = [workspace.index(run_id) for run_id in given[0]]
    # The ids too: what is made names the runs, and a copy of a run has its content.
    key = (make.__name__, *map(str, given), *(index.digest for index in indexes))
    made = partial(make, workspace, *given)
    if max(index.size for index in indexes) > SMALL:
        other = partial(_in_child, kind, [make.__name__, workspace.arguments, given])
        made = partial(workspace.background.result, key, other, what)
    return workspace.kept.get(key, made)


_CHILD = """
import json, sys
sys.path, *given = json.load(sys.stdin)
from auepora_eval.pages import comparisons
comparisons.answer(*given)
"""
_LOOK = 0.5  # seconds between two looks whether the server still runs


def _in_child(kind: type[T], given: Sequence[Any]) -> T:
    """Make something in a process of its own: slices of 100,000 samples take 250 MB, which end with it."""
    # Not by multiprocessing: it would run the script of somebody who called `run.view()` again.
    command = [sys.executable, "-I", "-c", _CHILD]
    asked = json.dumps([list(map(str, sys.path)), os.getpid(), *given]).encode()
    done = subprocess.run(command, input=asked, capture_output=True, check=False)  # noqa: S603 - our own code
    if done.returncode:
        raise AueporaError(done.stderr.decode(errors="replace").strip().rpartition("\n")[2])
    return msgspec.msgpack.decode(done.stdout, type=kind)


def answer(server: int, name: str, arguments: Sequence[Any], given: Sequence[Any]) -> None:
    """Write what a process makes for a server: a comparison, a ranking or a gate. An error ends it."""
    threading.Thread(target=_end_with, args=(server,), daemon=True).start()
    make = {one.__name__: one for one in (_compared, _ranked, _gated)}[name]
    try:
        with redirect_stdout(sys.stderr):  # files with metrics may print
            made = make(Workspace(*arguments), *given)
    except AueporaError as error:
        sys.exit(str(error))
    sys.stdout.buffer.write(msgspec.msgpack.encode(made))


def _end_with(server: int) -> None:
    while os.getppid() == server:
        time.sleep(_LOOK)
    os._exit(1)


def _without_regressions(comparison: Comparison) -> Comparison:
    # Lost samples are found by the scores of the indexes. One says that there are some (`lost_most`).
    metrics = [replace(metric, regressions=metric.regressions[:1]) for metric in comparison.metrics]
    return replace(comparison, metrics=metrics)


def _labels(index: RunSamples) -> Iterator[EvaluationSample]:
    """Yield the samples of a run with what they can be sliced by, without reading their texts."""
    names = list(index.fields)
    # Samples with the same labels share them: 100,000 dictionaries would take 200 MB.
    known: dict[tuple[int, ...], dict[str, list[str]]] = {}
    for sample_id, bits in zip(index.ids, index.bits(names).tolist(), strict=True):
        own = known.get(key := tuple(bits))
        if own is None:
            own = known[key] = {
                name: [value for place, value in enumerate(index.fields[name]) if mask >> place & 1]
                for name, mask in zip(names, key, strict=True)
                if mask
            }
        yield EvaluationSample(sample_id, "", labels=own)


# Two runs side by side.

OUTCOMES = ("lost", "won", "tied", "all")


class Scores(NamedTuple):
    """Both scores of each sample, and which way is up.

    A failed call has the worst score of the metric, as in the comparison. NaN if one was not measured.
    """

    before: NDArray[np.float64]
    after: NDArray[np.float64]
    up: bool

    @property
    def gain(self) -> NDArray[np.float64]:
        """Return the gain of each sample, positive if the second run is better. Quicker made than kept."""
        return self.after - self.before if self.up else self.before - self.after

    def mask(self, outcome: str) -> NDArray[np.bool_]:
        """Return which samples were lost, won or tied; all of them otherwise."""
        gain = self.gain
        lost, won = gain < -LAST_BITS, gain > LAST_BITS  # as the comparison counts them
        signs = {"lost": lost, "won": won, "tied": ~lost & ~won & ~np.isnan(gain)}
        return signs.get(outcome, np.ones(len(gain), bool))


@dataclass(frozen=True)
class Pair:
    """A run and its baseline: the comparison, and the scores of each sample of the run in both."""

    baseline: RunSamples
    index: RunSamples
    comparison: Comparison
    _kept: dict[str, Scores] = field(default_factory=dict)

    @cached_property
    def metrics(self) -> list[str]:
        """Return the metrics that were compared and have scores in both runs."""
        names = [one.name for one in self.comparison.metrics]
        return [name for name in names if name in self.baseline.metrics and name in self.index.metrics]

    @cached_property
    def names(self) -> list[str]:
        """Return the names of both systems, or the ids of the runs if both are of one system."""
        return list(compared_names(self.comparison))

    @cached_property
    def _places(self) -> Places | None:
        """Return where the baseline has each sample, or -1; None if all are at the same places, as usual."""
        if self.baseline.ids == self.index.ids:
            return None
        known = {sample_id: place for place, sample_id in enumerate(self.baseline.ids)}
        return np.array([known.get(sample_id, -1) for sample_id in self.index.ids], np.intp)

    @property
    def paired(self) -> int:
        """Return how many samples both runs have."""
        return self.index.size if self._places is None else int((self._places >= 0).sum())

    def scores(self, metric: str) -> Scores:
        """Return what both runs scored on a metric."""
        if metric not in self._kept:
            before, after = _filled(self.baseline, metric), _filled(self.index, metric)
            if self._places is not None:
                before = np.append(before, np.nan)[self._places]  # the place -1 is the last one
            self._kept[metric] = Scores(before, after, self.index.metrics[metric].higher_is_better)
        return self._kept[metric]

    def order(self, metric: str) -> str:
        """Return the name by which the samples of the run are sorted, from the largest loss."""
        name = f"gain of {metric} over {self.baseline.results.name} {self.baseline.digest}"
        self.index.once(name, lambda: self.index.add_order(name, self.scores(metric).gain))
        return name


def _filled(index: RunSamples, metric: str) -> NDArray[np.float64]:
    """Return the scores of a metric, with the worst end of its scale where the call failed."""
    result = index.metrics[metric]
    low, high = result.bounds or (None, None)
    worst = low if result.higher_is_better else high
    values, failed = index.column(metric), index.has_failed(metric)
    # Without failures the column itself, and not a copy: large runs have many metrics.
    return values if worst is None or not failed.any() else np.where(failed, worst, values)


def pair_of(workspace: Workspace, baseline: str, run_id: str, comparison: Comparison | None = None) -> Pair:
    """Return a run and its baseline; NotReadyError while the comparison of large runs is being made."""
    first, second = workspace.index(baseline), workspace.index(run_id)
    # By the indexes themselves: one that is opened again has no orders of a pair that was made before.
    return workspace.kept.get(
        ("pair", first, second),
        lambda: Pair(first, second, comparison or comparison_of(workspace, baseline, run_id)),
    )
