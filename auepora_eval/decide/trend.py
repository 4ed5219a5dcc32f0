"""A metric over the stored runs, in the order of time, with its intervals.

Runs are joined into a line only if they can be compared: the same samples, the same system with the same
settings, and a metric that was computed alike. Everything else is a separate line.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..comparison.checks import judge_text
from ..comparison.paired_tests import is_of_time
from ..comparison.pairs import FilledRows
from ..core.dataset import canonical_json
from ..core.display import interval_text, number_or_null, value_text
from ..core.metrics_base import SampleMetric, StoredMetric
from ..core.scores import Scores, as_columns
from ..core.table import Table
from ..core.types import EvaluationRun, MetricResult
from ..errors import DataError, StorageError, UnknownNameError
from ..metrics.parse import parse_metric
from ..store.storage import EvaluationResultsStorage

_NOT_RUNS = ("ab_test", "benchmark")
# What a variant of an experiment may set that makes no other system of it.
_HOW_IT_IS_CALLED = frozenset(
    ("dataset", "format", "limit", "metrics", "system", "outputs", "executor", "concurrency", "timeout")
)
_BARS = "▁▂▃▄▅▆▇█"
_LINES_SHOWN = 10


@dataclass(frozen=True)
class TrendPoint:
    """One run: its value, with the interval; NaN where nothing was scored.

    Failed calls count as the worst of the metric; `value_answered` is that of the calls which did not fail.
    Seconds have no worst and are of these. A corpus metric has no value then: what a wrong answer costs
    depends on its length, and leaving it out could be a gain.
    """

    evaluation_id: str
    timestamp: str
    system: str
    value: float
    interval: tuple[float, float] | None
    samples: int | None
    failed: int
    value_answered: float = math.nan
    failures_counted: bool = False


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
    points: list[TrendPoint]


@dataclass(frozen=True)
class Trend:
    """The lines of a metric, those of most runs first; `left_out` says why a file is in none.

    `metrics` are the names of all that the runs have.
    """

    metric: str
    lines: list[TrendLine]
    left_out: Mapping[str, str]
    metrics: tuple[str, ...] = ()


def metric_trend(storage: EvaluationResultsStorage, name: str) -> Trend:
    """The trend of a metric over all stored runs."""
    try:
        metric = parse_metric(name)
        name = metric.name
    except UnknownNameError:
        metric = None  # a metric of the user's that is stored under this name need not be registered
    lines: dict[bytes, TrendLine] = {}
    left_out: dict[str, str] = {}
    names: dict[str, None] = {}
    for head in storage.list_results():
        if head.get("evaluation_type") in _NOT_RUNS:
            continue
        path = Path(head["file_path"])
        try:
            run = storage.load_summary(path)
            # Only failures need the scores: they count as the worst.
            if any(result.name == name and result.coverage.failed for result in run.results):
                run = storage.load_run(path, texts=False)
        except (DataError, StorageError) as error:
            left_out[path.name] = str(error)
            continue
        # Collected for the message if no run has the metric.
        names |= dict.fromkeys(result.name for result in run.results)
        result = next((one for one in run.results if one.name == name), None)
        if result is None:
            left_out[path.name] = f"has no {name}"
            continue
        settings = settings_of(run)
        alike = canonical_json([run.system_name, run.dataset_fingerprint, settings, result.signature])
        if alike not in lines:
            lines[alike] = TrendLine(
                dataset=run.dataset_name,
                version=str(run.snapshot.get("version") or ""),
                dataset_sha256=run.dataset_fingerprint,
                system=run.system_name,
                settings=settings,
                signature=result.signature,
                unit=result.unit,
                higher_is_better=result.higher_is_better,
                points=[],
            )
        lines[alike].points.append(_point(run, result, metric))
    for line in lines.values():
        line.points.sort(key=lambda point: (point.timestamp, point.evaluation_id))
    longest_first = sorted(
        lines.values(), key=lambda one: (-len(one.points), one.dataset, one.system, one.points[0].timestamp)
    )
    return Trend(name, longest_first, left_out, tuple(names))


def _point(run: EvaluationRun, result: MetricResult, metric: SampleMetric | None) -> TrendPoint:
    coverage, value, interval, counted = result.coverage, result.value, result.interval, False
    known = metric or StoredMetric.of(result)
    # Where nothing was answered, nothing was measured. How many were is not always reported.
    was_measured = coverage.scored or not result.reports_coverage
    if coverage.failed and was_measured and not (known is not None and is_of_time(known)):
        # A failed answer may have changed the scores of the others, too: then the worst is not known either.
        if known is not None and known.is_mean and not known.scored_by_others:
            whole = with_failures_as_worst(run, result, known)
            value, interval, counted = whole.value, whole.interval, not whole.coverage.failed
        else:
            value, interval = math.nan, None
    return TrendPoint(
        run.evaluation_id,
        run.started_at,
        run.system_name,
        value,
        interval,
        coverage.scored if result.reports_coverage else None,
        coverage.failed,
        result.value,
        counted,
    )


def with_failures_as_worst(run: EvaluationRun, result: MetricResult, metric: SampleMetric) -> MetricResult:
    """Return the result of a mean in which failed calls count as the worst, as in a comparison."""
    scores = as_columns(result.scores)
    filled = FilledRows(metric, scores, {sample.sample_id: sample for sample in run.samples})
    values = np.where(filled.there, filled.rows[:, 0], math.nan)
    notes = {place: note for place, note in scores.notes.items() if not filled.there[place]}
    whole = Scores(scores.sample_ids, values, notes=notes)
    whole.clusters = scores.clusters
    return metric.summarise(whole)


def settings_of(run: EvaluationRun) -> dict[str, object]:
    """What makes one system two, though it has one name: top_k, a prompt, what an experiment made it with."""
    about = run.configuration.get("experiment")
    experiment: Mapping[str, Any] = about if isinstance(about, dict) else {}
    settings: dict[str, object] = {"top_k": run.top_k}
    settings |= {key: run.configuration[key] for key in ("prompt", "http") if run.configuration.get(key)}
    for part in ("settings", "arguments"):
        entries = experiment.get(part)
        if isinstance(entries, dict):
            settings |= {key: value for key, value in entries.items() if key not in _HOW_IT_IS_CALLED}
    return settings


# A trend as JSON, and as tables with a sparkline each.


def trend_to_dict(trend: Trend) -> dict[str, object]:
    """Return the lines with their points, and what was left out; not measured is null."""
    lines = [asdict(line) for line in trend.lines]
    for line in lines:
        for point in line["points"]:
            point["value"] = number_or_null(point["value"])
    return {"metric": trend.metric, "lines": lines, "left_out": dict(trend.left_out)}


def trend_tables(trend: Trend) -> list[Table]:
    """Return a table per line of two runs or more, the longest first; if there is none, of every line."""
    several = [line for line in trend.lines if len(line.points) > 1]
    return [_line_table(trend, line) for line in (several or trend.lines)[:_LINES_SHOWN]]


def _line_table(trend: Trend, line: TrendLine) -> Table:
    rows = [
        [
            point.timestamp,
            point.evaluation_id,
            value_text(point.value, line.unit) + "*" * bool(point.failed and not point.failures_counted),
            interval_text(point.interval, line.unit),
            "-" if point.samples is None else f"{point.samples:,}",
            f"{point.failed:,}",
        ]
        for point in line.points
    ]
    data = f"{line.dataset} {line.version}".strip() + f" ({line.dataset_sha256[:12]})"
    title = f"{trend.metric}: {_system_text(trend, line)} on {data}, {_runs(len(line.points))}"
    headings = ("When", "Run", "Value", "95% interval", "Scored", "Failed")
    return Table(headings, rows, title=f"{title}  {sparkline(line)}", numeric=(2, 3, 4, 5))


def _system_text(trend: Trend, line: TrendLine) -> str:
    """Return the system, with the settings in which the line differs from others: "rag (top_k=3)"."""
    others = [one.settings for one in trend.lines if one is not line and one.system == line.system]
    settings = [
        f"{name}={value if isinstance(value, str) else canonical_json(value).decode()}"
        for name, value in line.settings.items()
        if any(other.get(name) != value for other in others)
    ]
    if judge := judge_text(line.signature):
        settings.append(f"judge {judge}")
    return f"{line.system} ({', '.join(settings)})" if settings else line.system


def sparkline(line: TrendLine) -> str:
    """Return the values as bars from the lowest to the highest, and a dot where there is no value."""
    values = [point.value for point in line.points]
    finite = [value for value in values if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    drawn = ""
    for value in values:
        level = 0.5 if high == low else (value - low) / (high - low)
        drawn += _BARS[min(len(_BARS) - 1, int(level * len(_BARS)))] if math.isfinite(value) else "·"
    return drawn


def _runs(count: int) -> str:
    return "1 run" if count == 1 else f"{count} runs"


def trend_notes(trend: Trend, *, all_lines: bool = False) -> list[str]:
    """Return what the tables do not say: the lines that are not shown, failures, and what is left out."""
    several = sum(len(line.points) > 1 for line in trend.lines)
    shown = min(several or len(trend.lines), _LINES_SHOWN)
    notes = []
    if len(trend.lines) > 1:
        notes.append("Other samples, systems, settings or ways to compute a metric make separate lines.")
    if len(trend.lines) > shown and not all_lines:
        notes.append(f"Lines that are in --json only: {len(trend.lines) - shown}.")
    if any(point.failed for line in trend.lines for point in line.points):
        notes.append(
            "Failed calls count as the worst of the metric. Times leave them out (*), and so does any metric "
            "with answers that it could not score. A metric that is not a mean of scores has no value then."
        )
    lacking = sum(reason == f"has no {trend.metric}" for reason in trend.left_out.values())
    if lacking:
        notes.append(f"{_runs(lacking)} without {trend.metric}.")
    return notes + [
        f"{name:.80} is left out: {reason}"
        for name, reason in trend.left_out.items()
        if reason != f"has no {trend.metric}"
    ]
