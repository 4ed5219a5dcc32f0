"""A metric over the stored runs, in the order of time, with the places where it changed.

Runs are joined into a line only if they can be: the same samples, the same system, and a metric that was
computed alike. Everything else is a line of its own.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from ..core.batch import shared_or_none
from ..core.fingerprint import canonical_json
from ..core.metrics_base import SampleMetric
from ..core.scores import Scores, as_columns
from ..core.types import EvaluationRun, MetricResult, TargetCategory
from ..errors import DataError, StorageError, UnknownNameError
from ..metrics.parse import parse_metric
from ..stats.change_points import ChangePoint, changes_of_errors, changes_of_samples, changes_of_values
from .pairing import _clusters, _Filled
from .storage import EvaluationResultsStorage

if TYPE_CHECKING:
    from ..core.scores import Rows

_NOT_RUNS = ("ab_test", "benchmark")
_Z95 = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True)
class TrendPoint:
    """One run: its value, with the interval; NaN where nothing was scored."""

    evaluation_id: str
    timestamp: str
    system: str
    value: float
    interval: tuple[float, float] | None
    samples: int | None
    failed: int | None


@dataclass(frozen=True)
class TrendChange:
    """From the run at `place` on, values are others: the means before and after it, up to the next change."""

    place: int
    evaluation_id: str
    before: float
    after: float
    p_value: float

    @property
    def difference(self) -> float:
        return self.after - self.before


@dataclass(frozen=True)
class TrendLine:
    """Runs that can be compared, oldest first."""

    dataset: str
    version: str
    dataset_sha256: str
    system: str
    signature: Mapping[str, Any]
    unit: str
    higher_is_better: bool
    points: tuple[TrendPoint, ...]
    changes: tuple[TrendChange, ...]
    method: str


@dataclass(frozen=True)
class Trend:
    """The lines of a metric, those of most runs first; `left_out` says why a file is in none."""

    metric: str
    alpha: float
    lines: tuple[TrendLine, ...]
    left_out: Mapping[str, str]


@dataclass(frozen=True)
class _Measured:
    """A run as far as a trend needs it: the texts are let go."""

    point: TrendPoint
    result: MetricResult
    version: str
    dataset: str
    sha256: str
    rows: Rows | None
    clusters: list[Hashable] | None


def metric_trend(
    storage: EvaluationResultsStorage,
    name: str,
    *,
    alpha: float = 0.05,
    across_systems: bool = False,
    seed: int = 0,
) -> Trend:
    """The trend of a metric over all stored runs; with `across_systems` whatever the system is called."""
    metric = _known(name)
    name = name if metric is None else metric.name
    groups: dict[tuple[str, str, bytes], list[_Measured]] = {}
    left_out: dict[str, str] = {}
    for head in storage.list_results():
        if head.get("evaluation_type") in _NOT_RUNS:
            continue
        path = Path(head["file_path"])
        try:
            found = _measured(storage.load_scores(path), name, metric)
        except (DataError, StorageError) as error:
            left_out[path.name] = str(error)
            continue
        if found is None:
            left_out[path.name] = f"has no {name}"
            continue
        system = "" if across_systems else found.point.system
        key = (found.sha256, system, canonical_json(found.result.details.get("signature")))
        groups.setdefault(key, []).append(found)
    lines = [_line(group, metric, system, alpha, seed) for (_, system, _), group in groups.items()]
    lines.sort(key=lambda line: (-len(line.points), line.dataset, line.system, line.dataset_sha256))
    return Trend(name, alpha, tuple(lines), left_out)


def _known(name: str) -> SampleMetric | None:
    """The metric of that name; a metric of the user's that is stored under it need not be registered."""
    try:
        return parse_metric(name)
    except UnknownNameError:
        return None


def _measured(run: EvaluationRun, name: str, metric: SampleMetric | None) -> _Measured | None:
    result = next((one for one in run.results if one.name == name), None)
    if result is None:
        return None
    limits = result.details.get("confidence_interval")
    point = TrendPoint(
        run.evaluation_id,
        run.started_at,
        run.system_name,
        result.value,
        (limits[0], limits[1]) if limits else None,
        result.details.get("num_samples"),
        result.details.get("num_failed"),
    )
    rows = clusters = None
    if metric is not None and _is_mean(metric) and result.scores:
        samples = {sample.sample_id: sample for sample in run.samples}
        scores = _in_order(as_columns(result.scores))
        filled = _Filled(metric, scores, samples)
        import numpy as np

        rows = np.where(filled.there, filled.rows[:, 0], math.nan)
        clusters = _clusters(scores, samples)
    version = str(run.snapshot.get("version") or "")
    return _Measured(point, result, version, run.dataset_name, run.dataset_fingerprint, rows, clusters)


def _in_order(scores: Scores) -> Scores:
    """By id: runs of the same samples then agree in every row."""
    return scores.at(sorted(range(len(scores)), key=lambda place: scores.sample_ids[place]))


def _is_mean(metric: SampleMetric) -> bool:
    return type(metric).aggregate is SampleMetric.aggregate and metric.target is not TargetCategory.LATENCY


def _line(
    group: list[_Measured], metric: SampleMetric | None, system: str, alpha: float, seed: int
) -> TrendLine:
    group = sorted(group, key=lambda one: (one.point.timestamp, one.point.evaluation_id))
    places = [place for place, one in enumerate(group) if math.isfinite(one.point.value)]
    method, marks = _changes([group[place] for place in places], metric, alpha, seed)
    moved = [ChangePoint(places[mark.place], mark.p_value) for mark in marks]
    first = group[0]
    return TrendLine(
        dataset=first.dataset,
        version=first.version,
        dataset_sha256=first.sha256,
        system=system or "all systems",
        signature=first.result.details.get("signature") or {},
        unit=first.result.details.get("unit", ""),
        higher_is_better=first.result.details.get("higher_is_better", True),
        points=tuple(one.point for one in group),
        changes=_in_values([one.point for one in group], moved),
        method=method,
    )


def _changes(
    group: Sequence[_Measured], metric: SampleMetric | None, alpha: float, seed: int
) -> tuple[str, list[ChangePoint]]:
    """How changes are looked for, and those that there are."""
    import numpy as np

    values = [one.point.value for one in group]
    columns = [one.rows for one in group if one.rows is not None]
    if len(group) < 2:
        return "one run", []
    if len(columns) == len(group) and len({len(column) for column in columns}) == 1:
        clusters = None if group[0].clusters is None else shared_or_none(group[0].clusters)
        scores = np.stack(columns, axis=1)
        return "the same samples, shuffled", changes_of_samples(
            scores, clusters=clusters, alpha=alpha, seed=seed
        )
    if metric is None or metric.target is TargetCategory.LATENCY:
        # How fast a machine is changes from day to day: each run is one number, and wavers as a whole.
        return "run by run, Student's t", changes_of_values(values, alpha=alpha)
    errors = [
        (one.point.interval[1] - one.point.interval[0]) / (2 * _Z95) if one.point.interval else math.nan
        for one in group
    ]
    if not all(map(math.isfinite, errors)):
        return "not looked for: a run has no interval", []
    return "by the intervals, normal", changes_of_errors(values, errors, alpha=alpha)


def _in_values(points: Sequence[TrendPoint], marks: Sequence[ChangePoint]) -> tuple[TrendChange, ...]:
    edges = [0, *(mark.place for mark in marks), len(points)]
    means = [_mean(points[start:end]) for start, end in pairwise(edges)]
    return tuple(
        TrendChange(mark.place, points[mark.place].evaluation_id, means[n], means[n + 1], mark.p_value)
        for n, mark in enumerate(marks)
    )


def _mean(points: Sequence[TrendPoint]) -> float:
    known = [point.value for point in points if math.isfinite(point.value)]
    return math.fsum(known) / len(known) if known else math.nan
