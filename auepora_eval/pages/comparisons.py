"""Comparisons, rankings and gates of stored runs: made once, and kept while the runs stay as they are."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from ..comparison.compare import Comparison, compare_runs
from ..comparison.ranking import Ranking, rank_runs
from ..core.types import EvaluationRun, EvaluationSample
from ..decide.figures import GatedRun
from ..decide.gate import gate_run
from ..decide.rules import GateReport, read_rules
from ..store.pages import RunSamples
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
    return workspace.kept.get(key, lambda: workspace.background.result(key, make, what))


def _scores(workspace: Workspace, run_id: str) -> EvaluationRun:
    return workspace.storage.load_run(workspace.path(run_id), texts=False)


def _without_regressions(comparison: Comparison) -> Comparison:
    # Lost samples are found by the scores of the indexes. One says that there are some (`lost_most`).
    metrics = [replace(metric, regressions=metric.regressions[:1]) for metric in comparison.metrics]
    return replace(comparison, metrics=metrics)


def _labels(index: RunSamples) -> list[EvaluationSample]:
    """Return the samples of a run with what they can be sliced by, without reading their texts."""
    labels: list[dict[str, list[str]]] = [{} for _ in range(index.size)]
    for name, values in index.fields.items():
        for value in values:
            for place in np.flatnonzero(index.members(name, value)).tolist():
                labels[place].setdefault(name, []).append(value)
    return [
        EvaluationSample(sample_id, "", labels=own) for sample_id, own in zip(index.ids, labels, strict=True)
    ]
