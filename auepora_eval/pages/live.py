"""A run that is not finished: how far it is, its failures, and the values of the answers so far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.metrics_base import SampleMetric
from ..core.types import EvaluationSample, MetricResult, SystemOutputs
from ..demo.world import demo_dataset
from ..errors import AueporaError
from ..io.loader import open_dataset
from ..metrics.parse import parse_metric
from ..store.database import ANSWERED, Database, decoded_output
from ..store.state import RunState, Unfinished
from .workspace import Workspace

_SCORED = 500  # answers; more would take longer than the time between two looks
_LARGEST = 50_000_000  # bytes of a dataset that is read for it
_ERRORS = 3  # kinds that are shown


@dataclass(frozen=True)
class Progress:
    """How far a run is: what failed, by message, and what the metrics give for the first answers."""

    state: Unfinished
    failed: int = 0
    errors: Sequence[tuple[str, int]] = ()
    results: Sequence[MetricResult] = ()
    scored: int = 0


# The samples of a run that is going, by id, and its metrics; read once.
_Known = tuple[Mapping[str, EvaluationSample], Sequence[SampleMetric]]


def progress_of(workspace: Workspace, run_id: str) -> Progress:
    """Return how far a run is, with the values so far if its samples can be found."""
    state = workspace.unfinished_run(run_id)
    path = RunState(workspace.folder, run_id)
    with suppress(AueporaError, OSError):  # it may end, or be removed, while it is looked at
        header = path.header or {}
        key = ("live", run_id, header.get("begun_at"))
        known = workspace.kept.get(key, lambda: _known(workspace, header))
        with Database.read(path.database) as database:
            rows = database.select("SELECT sample, outcome, reply FROM call WHERE kind = 'answer' ORDER BY n")
        return _progress(state, known, path.database.name, {row[0]: row[1:] for row in rows})
    return Progress(state)


def _progress(state: Unfinished, known: _Known, name: str, last: Mapping[str, tuple[int, str]]) -> Progress:
    known_samples, metrics = known
    errors: Counter[str] = Counter()
    pairs: list[tuple[EvaluationSample, SystemOutputs]] = []
    for sample_id, (outcome, reply) in last.items():
        wanted = len(pairs) < _SCORED and sample_id in known_samples and bool(metrics)
        if outcome == ANSWERED and not wanted:
            continue
        output = decoded_output(reply, name)
        if output.error is not None:
            errors[f"{output.error.type}: {output.error.message}"] += 1
        if wanted:
            pairs.append((known_samples[sample_id], output))
    samples, outputs = [sample for sample, _ in pairs], [output for _, output in pairs]
    results = [metric.compute(samples, outputs) for metric in metrics] if len(pairs) > 1 else []
    return Progress(state, errors.total(), errors.most_common(_ERRORS), results, len(pairs))


def _known(workspace: Workspace, header: Mapping[str, Any]) -> _Known:
    metrics = []
    for name, signature in (header.get("metrics") or {}).items():
        with suppress(AueporaError):
            # What asks a model is not asked twice.
            if "judge" not in (signature or {}) and isinstance(metric := parse_metric(name), SampleMetric):
                metrics.append(metric)
    return {sample.sample_id: sample for sample in _samples(workspace, header)}, metrics


def _samples(workspace: Workspace, header: Mapping[str, Any]) -> Sequence[EvaluationSample]:
    """Return the samples of a run: those of another run on the same data, or those of its dataset's file."""
    for one in workspace.runs():
        if one.run is not None and one.run.dataset_fingerprint == header.get("dataset_sha256"):
            index = workspace.index(one.id)
            return [sample for sample, _ in index.pairs(range(min(index.size, 10 * _SCORED)))]
    configuration = header.get("configuration") or {}
    name = configuration.get("dataset")
    if name == "demo":
        return list(demo_dataset())
    path = Path(str(name or ""))
    if name and path.is_file() and path.stat().st_size <= _LARGEST:
        return list(open_dataset(path, configuration.get("format")))
    return ()
