"""A metric over the stored runs, in the order of time, with its intervals.

Runs are joined into a line only if they can be compared: the same samples, the same system with the same
settings, and a metric that was computed alike. Everything else is a separate line.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..comparison.pairing import FilledRows, failed_places, filled_by
from ..core.dataset import canonical_json
from ..core.display import interval_text, number_or_null, value_text
from ..core.metrics_base import SampleMetric
from ..core.scores import Rows, Scores, as_columns
from ..core.table import Table
from ..core.types import EvaluationRun, EvaluationSample, MetricResult, TargetCategory
from ..errors import DataError, StorageError, UnknownNameError
from ..metrics.parse import parse_metric
from ..reporting.drawing import (
    COLOURS,
    INK,
    add_legend,
    label_text,
    new_figure,
    style_axes,
    with_fixed_layout,
)
from ..runs.store.storage import EvaluationResultsStorage

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..reporting.drawing import LegendEntry

_NOT_RUNS = ("ab_test", "benchmark")


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


def metric_trend(storage: EvaluationResultsStorage, name: str, *, across_systems: bool = False) -> Trend:
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
            run = storage.load_scores(path)
        except (DataError, StorageError) as error:
            left_out[path.name] = str(error)
            continue
        # Collected for the message if no run has the metric.
        names |= dict.fromkeys(result.name for result in run.results)
        measured = point_of_run(run, name, metric)
        if measured is None:
            left_out[path.name] = f"has no {name}"
            continue
        system = "" if across_systems else measured.point.system
        alike = canonical_json([measured.signature, measured.settings])
        groups.setdefault((system, measured.sha256, alike), []).append(measured)
    lines = [_line(group, metric, str(key[0])) for key, group in groups.items()]
    lines.sort(
        key=lambda line: (
            -len(line.points),
            line.dataset,
            line.system,
            line.dataset_sha256,
            line.points[0].timestamp,
        )
    )
    return Trend(name, tuple(lines), left_out, tuple(names))


def _known(name: str) -> SampleMetric | None:
    """The metric of that name; a metric of the user's that is stored under it need not be registered."""
    try:
        return parse_metric(name)
    except UnknownNameError:
        return None


def _line(group: list[Measured], metric: SampleMetric | None, system: str) -> TrendLine:
    group = sorted(group, key=lambda one: (one.point.timestamp, one.point.evaluation_id))
    if metric is not None:
        group = with_failures_beside(group, metric)
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
    )


# One run of a trend: what a stored run, or the results file of another tool, says of a metric.

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

    @property
    def has_uncounted_failures(self) -> bool:
        """Whether the value is of the answered calls only, and others failed."""
        return bool(self.failed) and not self.failures_counted and math.isfinite(self.value)


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
    # For a metric that is not a mean: the scores by id, and the samples that failed.
    scores: Scores | None = None
    failed: Mapping[str, EvaluationSample] = field(default_factory=dict)


def point_of_run(run: EvaluationRun, name: str, metric: SampleMetric | None) -> Measured | None:
    """A stored run; None if it does not have the metric."""
    result = next((one for one in run.results if one.name == name), None)
    if result is None:
        return None
    coverage = result.coverage
    counted, kept = result, None
    samples: dict[str, EvaluationSample] = {}
    if metric is not None and result.scores:
        samples = {sample.sample_id: sample for sample in run.samples}
        scores = as_columns(result.scores)
        # In the order of ids, runs of the same samples agree in every row.
        scores = scores.at(sorted(range(len(scores)), key=lambda place: scores.sample_ids[place]))
        if metric.is_mean and metric.target is not TargetCategory.LATENCY:
            if coverage.failed and coverage.scored:  # where nothing was answered, nothing was measured
                counted = _with_failures(metric, scores, FilledRows(metric, scores, samples)) or result
        else:
            kept = scores
            ids = {scores.sample_ids[place] for place in failed_places(scores)}
            samples = {name: sample for name, sample in samples.items() if name in ids}
    point = TrendPoint(
        run.evaluation_id,
        run.started_at,
        run.system_name,
        counted.value,
        counted.interval,
        coverage.scored if result.reports_coverage else None,
        coverage.failed,
        result.value,
        counted is not result,
    )
    return Measured(
        point,
        dataset=run.dataset_name,
        version=str(run.snapshot.get("version") or ""),
        sha256=run.dataset_fingerprint,
        signature=result.signature,
        unit=result.unit,
        higher_is_better=result.higher_is_better,
        settings=settings_of(run),
        scores=kept,
        failed=samples if kept is not None else {},
    )


def with_failures_beside(group: Sequence[Measured], metric: SampleMetric) -> list[Measured]:
    """The runs of a line, oldest first, with what failed counted, where the metric is not a mean.

    As in a comparison: a failed answer weighs as the run before it answered the same sample, or the next
    run before that; where none did, as the runs after it, and else as the mean of its own run.
    """
    lent = _lent([one.scores for one in group])
    counted_group = []
    for one, beside in zip(group, lent, strict=True):
        counted = None
        if one.scores is not None and one.failed and one.point.samples:
            filled = filled_by(metric, one.scores, one.failed, beside)
            counted = _with_failures(metric, one.scores, filled)
        if counted is None:
            counted_group.append(one)
            continue
        point = replace(one.point, value=counted.value, interval=counted.interval, failures_counted=True)
        counted_group.append(replace(one, point=point))
    return counted_group


def _lent(runs: Sequence[Scores | None]) -> list[dict[int, Rows]]:
    """What each run's failed answers stand beside, by place: rows of the last run that has an answer."""
    failed = [[] if scores is None else failed_places(scores) for scores in runs]
    wanted = {
        scores.sample_ids[place]
        for scores, places in zip(runs, failed, strict=True)
        if scores is not None
        for place in places
    }
    lent: list[dict[int, Rows]] = [{} for _ in runs]
    # First forwards: setdefault keeps the earlier answer, and later runs only fill what is left.
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


def _with_failures(metric: SampleMetric, scores: Scores, filled: FilledRows) -> MetricResult | None:
    """The result with failed calls at their worst; None if the metric has no worst value."""
    # Every note is still without a value: no failure could be filled in.
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
    return metric.summarise(whole)


# A trend as JSON, as tables with a sparkline each, and as a picture.


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
        (lacking, f"{_runs(lacking)} {'has' if lacking == 1 else 'have'} no {trend.metric}."),
    ]
    left_out = [
        f"{name:.80} is left out: {reason}"
        for name, reason in trend.left_out.items()
        if not reason.startswith("has no ")
    ]
    return [text for applies, text in notes if applies] + left_out


# The picture of a trend: values with their intervals over time. Needs `plots`.

PANELS = 6
DATES = 7  # more would overlap


def plot_trend(trend: Trend) -> Figure:
    """A panel for each line of two runs or more, those of most runs first; six of them at most."""
    lines = [line for line in trend.lines if len(line.points) > 1][:PANELS]
    if not lines:
        raise ValueError(f"no two stored runs have {trend.metric} on the same samples: nothing to plot")
    figure = new_figure(f"{trend.metric} over time, with 95% intervals", 8, 1.2 + 2.9 * len(lines))
    panels = list(figure.subplots(len(lines), 1, squeeze=False)[:, 0])
    keys: dict[str, LegendEntry] = {}
    for panel, line in zip(panels, lines, strict=True):
        style_axes(panel, grid="y")
        keys |= {label: (artist, label) for artist, label in _draw(panel, trend, line)}
    panels[-1].set_xlabel("runs, oldest first", loc="left", color=INK)
    add_legend(figure, list(keys.values()))
    return with_fixed_layout(figure)


def _draw(axes: Axes, trend: Trend, line: TrendLine) -> list[LegendEntry]:
    """Runs at equal steps: several of one hour beside one of last year would be a single dot."""
    places = range(len(line.points))
    values = [point.value for point in line.points]
    for place, point in zip(places, line.points, strict=True):
        if point.interval is not None:
            axes.plot([place] * 2, point.interval, color=COLOURS[0], linewidth=2.2, alpha=0.45)
    look = {"markersize": 6, "markeredgecolor": "white", "markeredgewidth": 0.6, "linestyle": "none"}
    (dots,) = axes.plot(places, values, marker="o", color=COLOURS[0], **look)  # type: ignore[arg-type]
    keys: list[LegendEntry] = [(dots, "value and 95% interval of a run")]
    failed = [place for place in places if line.points[place].failed and math.isfinite(values[place])]
    if failed:
        at = [values[place] for place in failed]
        (rings,) = axes.plot(
            failed, at, marker="o", markersize=10, color=COLOURS[1], fillstyle="none", linestyle="none"
        )
        keys.append((rings, "some calls failed"))
    axes.set_title(
        label_text(f"{_system_text(trend, line)} on {line.dataset} {line.version}".strip()),
        loc="left",
        fontsize=10,
    )
    axes.set_xlim(-0.6, len(values) - 0.4)
    dated = list(places)[:: math.ceil(len(values) / DATES)]
    axes.set_xticks(dated, [_day(line.points[place].timestamp) for place in dated])
    axes.set_ylabel("seconds" if line.unit == "s" else "value", color=INK)
    return keys


def _day(stamp: str) -> str:
    time = _time_of(stamp)
    return stamp[:10] if time is None else time.strftime("%Y-%m-%d\n%H:%M")


def _time_of(stamp: object) -> datetime | None:
    """Return the time of a timestamp, ISO 8601 or seconds since 1970; None if it is neither."""
    try:
        if isinstance(stamp, str):
            time = datetime.fromisoformat(stamp)
            # Taken as UTC, because a naive time cannot be compared with an aware one.
            return time if time.tzinfo else time.replace(tzinfo=UTC)
        return datetime.fromtimestamp(stamp, UTC) if isinstance(stamp, int | float) else None
    except (ValueError, OverflowError, OSError):
        return None
