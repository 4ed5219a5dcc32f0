"""Comparisons, rankings and gates of stored runs: made once, and kept while the runs stay as they are.

Those of large runs are made by `python -m auepora_eval.pages.comparisons KIND FILE RULES FOLDER RUN...` and
kept in the user's cache folder, by the content of the runs. The files can be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from ..comparison.compare import Comparison, compare_runs
from ..comparison.ranking import Ranking, rank_runs
from ..core.types import EvaluationSample
from ..decide.figures import GatedRun
from ..decide.gate import gate_run
from ..decide.rules import GateReport, read_rules
from ..io.files import write_bytes
from ..store.pages import RunSamples
from ..store.storage import EvaluationResultsStorage
from .workspace import SMALL, Workspace, out_flag

SCHEMA = 4  # grows whenever an older file must not be read

T = TypeVar("T")
Make = Callable[[EvaluationResultsStorage, Sequence[str], str], Any]  # from a folder, names of runs, rules


def comparison_of(workspace: Workspace, a: str, b: str) -> Comparison:
    """Return the comparison of two runs; NotReadyError while that of large runs is being made."""
    return _made(workspace, Comparison, [a, b], f"Comparing {a} with {b}")


def ranking_of(workspace: Workspace, run_ids: Sequence[str]) -> Ranking:
    """Return the ranking of three runs or more; NotReadyError while that of large runs is being made."""
    return _made(workspace, Ranking, run_ids, f"Ranking {len(run_ids)} runs")


def gate_of(workspace: Workspace, run_id: str, baseline: str | None) -> GateReport:
    """Return what `auepora gate` reports of a run; NotReadyError while that of large runs is being made."""
    run_ids = [run_id] if baseline is None else [run_id, baseline]
    return _made(workspace, GateReport, run_ids, f"Checking {run_id} by the rules of the gate")


def _made(workspace: Workspace, kind: type[T], run_ids: Sequence[str], what: str) -> T:
    indexes = [workspace.index(run_id) for run_id in run_ids]
    rules = "" if workspace.rules is None or kind is not GateReport else str(workspace.rules)
    digests = [kind.__name__, *(index.digest for index in indexes)]
    if rules:
        digests.append(hashlib.sha256(Path(rules).read_bytes()).hexdigest())
    # The ids too: what is written names the runs, and a copy of a run has its content.
    key = f"{SCHEMA} {' '.join(digests)} {' '.join(run_ids)}"
    names = [workspace.name(run_id) for run_id in run_ids]

    def make() -> T:
        if max(index.size for index in indexes) <= SMALL:
            made: T = _MAKERS[kind](workspace.storage, names, rules)
            return made
        path = (
            cache_folder() / f"{hashlib.sha256(key.encode()).hexdigest()[:32]}.{kind.__name__.lower()}.json"
        )
        if not path.is_file():
            words = [__name__, kind.__name__, str(path), rules, str(workspace.folder), *names]
            workspace.background.start(path.name, words, what)
        return msgspec.convert(json.loads(path.read_bytes()), kind)

    return workspace.kept.get(key, make)


def cache_folder() -> Path:
    """Return the folder of files that can be made again, by the rule of the XDG base directories."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "auepora"


def compared(storage: EvaluationResultsStorage, names: Sequence[str], rules: str = "") -> Comparison:
    """Return the comparison of two stored runs, with the slices of every field that the second run has."""
    a, b = (storage.find(name) for name in names)
    with RunSamples(b) as index:
        samples, fields = _labels(index) if index.fields else None, list(index.fields)
    runs = storage.load_run(a, texts=False), storage.load_run(b, texts=False)
    return _without_regressions(compare_runs(*runs, by=fields, samples=samples))


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


def _ranked(storage: EvaluationResultsStorage, names: Sequence[str], rules: str) -> Ranking:
    ranking = rank_runs([storage.load_run(name, texts=False) for name in names])
    return replace(ranking, pairs=[_without_regressions(pair) for pair in ranking.pairs])


def _gated(storage: EvaluationResultsStorage, names: Sequence[str], rules: str) -> GateReport:
    flags = out_flag(storage.results_directory)
    runs = [GatedRun.stored(storage, name, flags, with_scores=len(names) > 1) for name in names]
    return gate_run(runs[0], read_rules(rules) if rules else None, baseline=runs[1] if runs[1:] else None)


_MAKERS: Mapping[type[Any], Make] = {Comparison: compared, Ranking: _ranked, GateReport: _gated}


def _main(kind: str, file: str, rules: str, folder: str, *names: str) -> None:
    make = next(make for made, make in _MAKERS.items() if made.__name__ == kind)
    made = make(EvaluationResultsStorage(folder), names, rules)
    # Not by msgspec: a comparison may have NaN, which its JSON does not keep.
    content = json.dumps(msgspec.to_builtins(made)).encode()
    write_bytes(Path(file), content, force=True, private=True)


if __name__ == "__main__":
    _main(*sys.argv[1:])
