"""One run of a trend: what a stored run, or the results file of another tool, says of a metric."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ..core.metrics_base import SampleMetric
from ..core.scores import Scores, as_columns
from ..core.types import EvaluationRun, EvaluationSample, MetricResult, TargetCategory
from ..metrics.parse import parse_metric
from .pairing import FilledRows, clusters_of_rows, failed_places, filled_by
from .side_by_side import metric_values

if TYPE_CHECKING:
    from ..core.scores import Rows

# What a variant of an experiment may set that makes no other system of it.
_HOW_IT_IS_CALLED = frozenset(
    ("dataset", "format", "limit", "metrics", "system", "outputs", "executor", "concurrency", "timeout")
)


@dataclass(frozen=True)
class TrendPoint:
    """One run: its value, with the interval; NaN where nothing was scored.

    Failed calls count as the worst of the metric, as in a comparison with the run before it, where it has a
    worst value; `value_answered` is that of the calls which did not fail.
    """

    evaluation_id: str
    timestamp: str
    system: str
    value: float
    interval: tuple[float, float] | None
    samples: int | None
    failed: int | None
    value_answered: float = math.nan
    failures_counted: bool = False


@dataclass(frozen=True)
class Measured:
    """A run as far as a trend needs it: the texts are let go."""

    point: TrendPoint
    dataset: str
    version: str
    sha256: str
    signature: Mapping[str, Any]
    unit: str
    higher_is_better: bool
    settings: Mapping[str, Any] = field(default_factory=dict)
    rows: Rows | None = None
    clusters: list[Hashable] | None = None
    # Of a metric that is no mean: the scores by id, and the samples that failed.
    scores: Scores | None = None
    failed: Mapping[str, EvaluationSample] = field(default_factory=dict)


def point_of_run(run: EvaluationRun, name: str, metric: SampleMetric | None, seed: int) -> Measured | None:
    """A stored run; None if it does not have the metric."""
    result = next((one for one in run.results if one.name == name), None)
    if result is None:
        return None
    details, failed = result.details, result.details.get("num_failed")
    counted, rows, clusters, kept = result, None, None, None
    samples: dict[str, EvaluationSample] = {}
    if metric is not None and result.scores:
        samples = {sample.sample_id: sample for sample in run.samples}
        scores = _in_order(as_columns(result.scores))
        if _is_mean(metric):
            import numpy as np

            filled = FilledRows(metric, scores, samples)
            if failed and details.get("num_samples"):  # where nothing was answered, nothing was measured
                counted = _with_failures(metric, scores, filled, seed) or result
            rows = np.where(filled.there, filled.rows[:, 0], math.nan)
            clusters = clusters_of_rows(scores, samples)
        else:
            kept = scores
            ids = {scores.sample_ids[place] for place in failed_places(scores)}
            samples = {name: sample for name, sample in samples.items() if name in ids}
    limits = counted.details.get("confidence_interval")
    point = TrendPoint(
        run.evaluation_id,
        run.started_at,
        run.system_name,
        counted.value,
        (limits[0], limits[1]) if limits else None,
        details.get("num_samples"),
        failed,
        result.value,
        counted is not result,
    )
    return Measured(
        point,
        dataset=run.dataset_name,
        version=str(run.snapshot.get("version") or ""),
        sha256=run.dataset_fingerprint,
        signature=details.get("signature") or {},
        unit=details.get("unit", ""),
        higher_is_better=details.get("higher_is_better", True),
        settings=settings_of(run),
        rows=rows,
        clusters=clusters,
        scores=kept,
        failed=samples if kept is not None else {},
    )


def with_failures_beside(group: Sequence[Measured], metric: SampleMetric, seed: int) -> list[Measured]:
    """The runs of a line, oldest first, with what failed counted, where the metric is no mean.

    As in a comparison: a failed answer weighs as the run before it answered the same sample, or the next
    run before that; where none did, as the runs after it, and else as the mean of its own run.
    """
    lent = _lent([one.scores for one in group])
    found = []
    for one, beside in zip(group, lent, strict=True):
        counted = None
        if one.scores is not None and one.failed and one.point.samples:
            filled = filled_by(metric, one.scores, one.failed, beside)
            counted = _with_failures(metric, one.scores, filled, seed)
        if counted is None:
            found.append(one)
            continue
        limits = counted.details.get("confidence_interval")
        interval = (limits[0], limits[1]) if limits else None
        point = replace(one.point, value=counted.value, interval=interval, failures_counted=True)
        found.append(replace(one, point=point))
    return found


def _lent(runs: Sequence[Scores | None]) -> list[dict[int, Rows]]:
    """What each run's failed answers stand beside, by place: rows of the last run that has an answer."""
    import numpy as np

    failed = [[] if scores is None else failed_places(scores) for scores in runs]
    wanted = {
        scores.sample_ids[place]
        for scores, places in zip(runs, failed, strict=True)
        if scores is not None
        for place in places
    }
    lent: list[dict[int, Rows]] = [{} for _ in runs]
    for order in (range(len(runs)), reversed(range(len(runs)))) if wanted else ():
        last: dict[str, Rows] = {}
        for number in order:
            scores = runs[number]
            if scores is None:
                continue
            for place in failed[number]:
                if scores.sample_ids[place] in last:
                    lent[number].setdefault(place, last[scores.sample_ids[place]])
            for place, name in enumerate(scores.sample_ids):
                if name in wanted and math.isfinite(scores.values[place]):
                    parts = () if scores.parts is None else scores.parts[place]
                    last[name] = np.asarray([scores.values[place], *parts])
    return lent


def point_of_document(
    results: Mapping[str, Any], name: str, metric: SampleMetric | None, file: str
) -> Measured | None:
    """A results file of another tool: its value as it is; which samples it is of, nobody can tell."""
    values = {_canonical(key): (value, interval) for key, value, interval in metric_values(results)}
    value, interval = values.get(name, (None, None))
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    told = results.get("summary")
    summary: Mapping[str, Any] = told if isinstance(told, dict) else {}
    counts = [summary.get(key) for key in ("total_queries", "successful_queries", "failed_queries")]
    total, answered, failed = (count if isinstance(count, int) else None for count in counts)
    point = TrendPoint(
        str(results.get("evaluation_id") or file),
        str(results.get("timestamp") or ""),
        str(results.get("system_version") or "?"),
        float(value),
        _limits(interval),
        total if answered is None else answered,
        failed,
        float(value),
    )
    return Measured(
        point,
        dataset=str(results.get("dataset_id") or "?"),
        version="",
        sha256="",
        signature={"tool": "another", "total_queries": total},
        unit="" if metric is None else metric.unit,
        higher_is_better=True if metric is None else metric.higher_is_better,
    )


def settings_of(run: EvaluationRun) -> dict[str, Any]:
    """What makes one system two, though it has one name: top_k, a prompt, what an experiment made it with."""
    told = run.configuration.get("experiment")
    experiment: Mapping[str, Any] = told if isinstance(told, dict) else {}
    found: dict[str, Any] = {"top_k": run.top_k}
    found |= {key: run.configuration[key] for key in ("prompt", "http") if run.configuration.get(key)}
    for part in ("settings", "arguments"):
        entries = experiment.get(part)
        if isinstance(entries, dict):
            found |= {key: value for key, value in entries.items() if key not in _HOW_IT_IS_CALLED}
    return found


def metric_names(results: Mapping[str, Any]) -> list[str]:
    """The metrics of a results file, of whatever tool."""
    return [_canonical(name) for name, _, _ in metric_values(results)]


def _canonical(name: str) -> str:
    try:
        return parse_metric(name).name
    except ValueError:  # a name of the other tool's own, or none that we would read
        return name


def _limits(interval: Any) -> tuple[float, float] | None:
    if not isinstance(interval, list) or len(interval) != 2:
        return None
    low, high = interval
    if not all(isinstance(end, int | float) and math.isfinite(end) for end in interval):
        return None
    return float(low), float(high)


def _with_failures(
    metric: SampleMetric, scores: Scores, filled: FilledRows, seed: int
) -> MetricResult | None:
    """The result with failed calls at their worst; None if the metric has no worst value."""
    import numpy as np

    if len(scores) - int(filled.there.sum()) == len(scores.notes):
        return None
    rows = filled.rows
    whole = Scores(
        scores.sample_ids,
        np.where(filled.there, rows[:, 0], math.nan),
        parts=rows[:, 1:] if rows.shape[1] > 1 else None,
        notes={place: note for place, note in scores.notes.items() if not filled.there[place]},
    )
    whole.clusters = scores.clusters
    return metric.summarise(whole, seed=seed)


def _in_order(scores: Scores) -> Scores:
    """By id: runs of the same samples then agree in every row."""
    return scores.at(sorted(range(len(scores)), key=lambda place: scores.sample_ids[place]))


def _is_mean(metric: SampleMetric) -> bool:
    return type(metric).aggregate is SampleMetric.aggregate and metric.target is not TargetCategory.LATENCY
