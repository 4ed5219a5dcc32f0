"""A metric over the stored runs, in the order of time, with its intervals.

Runs are joined into a line only if they can be compared: the same samples, the same system with the same
settings, and a metric that was computed alike. Everything else is a separate line.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..comparison.paired_tests import is_of_time
from ..comparison.pairs import FilledRows
from ..core.dataset import canonical_json
from ..core.display import interval_text, number_or_null, value_text
from ..core.metrics_base import SampleMetric
from ..core.scores import Scores, as_columns
from ..core.table import Table
from ..core.types import EvaluationRun, MetricResult
from ..errors import DataError, StorageError, UnknownNameError
from ..io.results.document import results_to_run
from ..metrics.parse import parse_metric
from ..store.state import read_results_head
from ..store.storage import EvaluationResultsStorage

_NOT_RUNS = ("ab_test", "benchmark")


# What a variant of an experiment may set that makes no other system of it.
_HOW_IT_IS_CALLED = frozenset(
    ("dataset", "format", "limit", "metrics", "system", "outputs", "executor", "concurrency", "timeout")
)


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
    failed: int | None
    value_answered: float = math.nan
    failures_counted: bool = False

    @property
    def has_uncounted_failures(self) -> bool:
        """Whether the value is of the answered calls only, and others failed."""
        return bool(self.failed) and not self.failures_counted and math.isfinite(self.value)


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


@dataclass(frozen=True)
class Trend:
    """The lines of a metric, those of most runs first; `left_out` says why a file is in none.

    `metrics` are the names of all that the runs have.
    """

    metric: str
    lines: tuple[TrendLine, ...]
    left_out: Mapping[str, str]
    metrics: tuple[str, ...] = ()


def metric_trend(storage: EvaluationResultsStorage, name: str) -> Trend:
    """The trend of a metric over all stored runs."""
    metric = _known(name)
    name = name if metric is None else metric.name
    groups: dict[tuple[str | bytes, ...], list[TrendLine]] = {}
    left_out: dict[str, str] = {}
    names: dict[str, None] = {}
    for head in storage.list_results():
        if head.get("evaluation_type") in _NOT_RUNS:
            continue
        path = Path(head["file_path"])
        try:
            run = results_to_run(read_results_head(path), None, [], [], path.name)
            # Only failures need the scores: they count as the worst.
            if any(result.name == name and result.coverage.failed for result in run.results):
                run = storage.load_run(path, texts=False)
        except (DataError, StorageError) as error:
            left_out[path.name] = str(error)
            continue
        # Collected for the message if no run has the metric.
        names |= dict.fromkeys(result.name for result in run.results)
        if name not in {result.name for result in run.results}:
            left_out[path.name] = f"has no {name}"
            continue
        one = _line_of_one(run, run.result(name), metric)
        alike = canonical_json([one.signature, one.settings])
        groups.setdefault((one.system, one.dataset_sha256, alike), []).append(one)
    lines = sorted(map(_joined, groups.values()), key=_longest_first)
    return Trend(name, tuple(lines), left_out, tuple(names))


def _known(name: str) -> SampleMetric | None:
    """The metric of that name; a metric of the user's that is stored under it need not be registered."""
    try:
        return parse_metric(name)
    except UnknownNameError:
        return None


def _line_of_one(run: EvaluationRun, result: MetricResult, metric: SampleMetric | None) -> TrendLine:
    return TrendLine(
        dataset=run.dataset_name,
        version=str(run.snapshot.get("version") or ""),
        dataset_sha256=run.dataset_fingerprint,
        system=run.system_name,
        settings=settings_of(run),
        signature=result.signature,
        unit=result.unit,
        higher_is_better=result.higher_is_better,
        points=(_point(run, result, metric),),
    )


def _joined(lines: Sequence[TrendLine]) -> TrendLine:
    points = sorted(
        (point for line in lines for point in line.points), key=lambda p: (p.timestamp, p.evaluation_id)
    )
    return replace(lines[0], points=tuple(points))


def _longest_first(line: TrendLine) -> tuple[int, str, str, str, str]:
    return -len(line.points), line.dataset, line.system, line.dataset_sha256, line.points[0].timestamp


def _point(run: EvaluationRun, result: MetricResult, metric: SampleMetric | None) -> TrendPoint:
    coverage = result.coverage
    point = TrendPoint(
        run.evaluation_id,
        run.started_at,
        run.system_name,
        result.value,
        result.interval,
        coverage.scored if result.reports_coverage else None,
        coverage.failed,
        result.value,
    )
    # Where nothing was answered, nothing was measured.
    if not coverage.failed or not coverage.scored or metric is None or is_of_time(metric):
        return point
    if not metric.is_mean:
        return replace(point, value=math.nan, interval=None)
    scores = as_columns(result.scores)
    filled = FilledRows(metric, scores, {sample.sample_id: sample for sample in run.samples})
    if not filled.filled.any():
        return point
    values = np.where(filled.there, filled.rows[:, 0], math.nan)
    notes = {place: note for place, note in scores.notes.items() if not filled.there[place]}
    whole = Scores(scores.sample_ids, values, notes=notes)
    whole.clusters = scores.clusters
    counted = metric.summarise(whole)
    return replace(point, value=counted.value, interval=counted.interval, failures_counted=True)


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
    return {
        "metric": trend.metric,
        "lines": [_line_to_dict(line) for line in trend.lines],
        "left_out": dict(trend.left_out),
    }


def _line_to_dict(line: TrendLine) -> dict[str, object]:
    points = [{**asdict(point), "value": number_or_null(point.value)} for point in line.points]
    return {**asdict(line), "points": points}


def _system_text(trend: Trend, line: TrendLine) -> str:
    """Return the system, with the settings in which the line differs from others: "rag (top_k=3)"."""
    others = [one for one in trend.lines if one is not line and one.system == line.system]
    settings = [
        f"{name}={_text(line, name)}"
        for name in line.settings
        if any(_text(one, name) != _text(line, name) for one in others)
    ]
    return f"{line.system} ({', '.join(settings)})" if settings else line.system


def _text(line: TrendLine, name: str) -> str:
    if name not in line.settings:
        return ""
    value = line.settings[name]
    return value if isinstance(value, str) else canonical_json(value).decode()


_BARS = "▁▂▃▄▅▆▇█"
_LINES_SHOWN = 10
_POINTS_SHOWN = 40  # of a line


def trend_tables(trend: Trend) -> list[Table]:
    """Return a table per line of two runs or more, the longest first; if there is none, of every line."""
    several = [line for line in trend.lines if len(line.points) > 1]
    return [_line_table(trend, line) for line in (several or trend.lines)[:_LINES_SHOWN]]


def _line_table(trend: Trend, line: TrendLine) -> Table:
    rows = [
        [
            point.timestamp,
            point.evaluation_id,
            value_text(point.value, line.unit) + ("*" if point.has_uncounted_failures else ""),
            interval_text(point.interval, line.unit),
            "-" if point.samples is None else f"{point.samples:,}",
            "-" if point.failed is None else f"{point.failed:,}",
        ]
        for point in line.points[-_POINTS_SHOWN:]
    ]
    notes = []
    if len(rows) < len(line.points):
        notes.append(f"({len(line.points) - len(rows)} older runs are not shown; --json has them)")
    version = f" {line.version}" if line.version else ""
    data = f"{line.dataset}{version} ({line.dataset_sha256[:12]})"
    title = f"{trend.metric}: {_system_text(trend, line)} on {data}, {_runs(len(line.points))}"
    headings = ("When", "Run", "Value", "95% interval", "Scored", "Failed")
    return Table(headings, rows, title=f"{title}  {sparkline(line)}", notes=notes, numeric=(2, 3, 4, 5))


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


def trend_notes(trend: Trend) -> list[str]:
    """Return what the tables do not say: the lines that are not shown, failures, and what is left out."""
    several = [line for line in trend.lines if len(line.points) > 1]
    alone = len(trend.lines) - len(several) if several else 0
    points = [point for line in trend.lines for point in line.points]
    lacking = sum(reason.startswith("has no ") for reason in trend.left_out.values())
    notes = [
        (
            alone,
            f"{_runs(alone)} {'is' if alone == 1 else 'are'} alone on other samples or with another system; "
            "--json shows them.",
        ),
        (len(several) > _LINES_SHOWN, f"{len(several) - _LINES_SHOWN} more lines; --json shows them."),
        (
            len(trend.lines) > 1,
            "Other samples, systems, settings or ways to compute a metric make separate lines.",
        ),
        (
            any(point.failed and point.failures_counted for point in points),
            "Failed calls count as the worst of the metric, as in a comparison.",
        ),
        (
            any(point.has_uncounted_failures for point in points),
            "*: calls failed, and the value leaves them out.",
        ),
        (
            any(point.failed and math.isnan(point.value) for point in points),
            "A run with failed calls has no value of a metric that is not a mean of scores.",
        ),
        (lacking, f"{_runs(lacking)} {'has' if lacking == 1 else 'have'} no {trend.metric}."),
    ]
    left_out = [
        f"{name:.80} is left out: {reason}"
        for name, reason in trend.left_out.items()
        if not reason.startswith("has no ")
    ]
    return [text for applies, text in notes if applies] + left_out
