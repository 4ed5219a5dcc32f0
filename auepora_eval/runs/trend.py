"""A metric over the stored runs, in the order of time, with the places where it changed.

Runs are joined into a line only if they can be: the same samples, the same system made with the same
settings, and a metric that was computed alike. Everything else is a line of its own. Of the results files of
other tools nobody can tell the samples: they are joined by the dataset's name and the number of queries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import NormalDist
from typing import Any

from ..core.batch import shared_or_none
from ..core.fingerprint import canonical_json
from ..core.metrics_base import SampleMetric
from ..core.types import TargetCategory
from ..errors import DataError, StorageError, UnknownNameError
from ..io.results_json import is_ours
from ..metrics.parse import parse_metric
from ..stats.change_points import ChangePoint, changes_of_errors, changes_of_samples, changes_of_values
from .storage import EvaluationResultsStorage, read_results
from .trend_points import (
    Measured,
    TrendPoint,
    metric_names,
    point_of_document,
    point_of_run,
    with_failures_beside,
)

_NOT_RUNS = ("ab_test", "benchmark")
_Z95 = NormalDist().inv_cdf(0.975)


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
    settings: Mapping[str, Any]
    signature: Mapping[str, Any]
    unit: str
    higher_is_better: bool
    points: tuple[TrendPoint, ...]
    changes: tuple[TrendChange, ...]
    method: str


@dataclass(frozen=True)
class Trend:
    """The lines of a metric, those of most runs first; `left_out` says why a file is in none.

    `metrics` are the names of all that the runs have.
    """

    metric: str
    alpha: float
    lines: tuple[TrendLine, ...]
    left_out: Mapping[str, str]
    metrics: tuple[str, ...] = ()


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
    groups: dict[tuple[str | bytes, ...], list[Measured]] = {}
    left_out: dict[str, str] = {}
    names: dict[str, None] = {}
    for head in storage.list_results():
        if head.get("evaluation_type") in _NOT_RUNS:
            continue
        path = Path(head["file_path"])
        try:
            found, has = _found(storage, path, name, metric, seed)
        except (DataError, StorageError) as error:
            left_out[path.name] = str(error)
            continue
        names |= dict.fromkeys(has)
        if found is None:
            left_out[path.name] = f"has no {name}"
            continue
        system = "" if across_systems else found.point.system
        alike = canonical_json([found.signature, found.settings])
        samples = found.sha256 or f"named {found.dataset}"
        groups.setdefault((system, samples, alike), []).append(found)
    lines = [_line(group, metric, str(key[0]), alpha, seed) for key, group in groups.items()]
    lines.sort(
        key=lambda line: (
            -len(line.points),
            line.dataset,
            line.system,
            line.dataset_sha256,
            line.points[0].timestamp,
        )
    )
    return Trend(name, alpha, tuple(lines), left_out, tuple(names))


def _found(
    storage: EvaluationResultsStorage, path: Path, name: str, metric: SampleMetric | None, seed: int
) -> tuple[Measured | None, list[str]]:
    """What a file says of the metric, and which ones it has."""
    try:
        run = storage.load_scores(path)
    except DataError:
        results = read_results(path)
        if is_ours(results):
            raise
        return point_of_document(results, name, metric, path.name), metric_names(results)
    return point_of_run(run, name, metric, seed), [result.name for result in run.results]


def _known(name: str) -> SampleMetric | None:
    """The metric of that name; a metric of the user's that is stored under it need not be registered."""
    try:
        return parse_metric(name)
    except UnknownNameError:
        return None


def _line(
    group: list[Measured], metric: SampleMetric | None, system: str, alpha: float, seed: int
) -> TrendLine:
    group = sorted(group, key=lambda one: (one.point.timestamp, one.point.evaluation_id))
    if metric is not None:
        group = with_failures_beside(group, metric, seed)
    places = [place for place, one in enumerate(group) if math.isfinite(one.point.value)]
    method, marks = _changes([group[place] for place in places], metric, alpha, seed)
    moved = [ChangePoint(places[mark.place], mark.p_value) for mark in marks]
    first = group[0]
    return TrendLine(
        dataset=first.dataset,
        version=first.version,
        dataset_sha256=first.sha256,
        system=system or "all systems",
        settings=first.settings,
        signature=first.signature,
        unit=first.unit,
        higher_is_better=first.higher_is_better,
        points=tuple(one.point for one in group),
        changes=_in_values([one.point for one in group], moved),
        method=method,
    )


def _changes(
    group: Sequence[Measured], metric: SampleMetric | None, alpha: float, seed: int
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
