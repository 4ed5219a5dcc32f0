"""A trend as JSON, as tables with a sparkline each, and as a picture."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING

from ..core.dataset import canonical_json
from ..core.display import interval_text, number_or_null, value_text
from ..core.table import Table
from ..core.verdict import Verdict
from ..reporting.drawing import (
    COLOURS,
    INK,
    add_legend,
    label_text,
    new_figure,
    style_axes,
    with_fixed_layout,
)
from .bench import time_of
from .trend import Trend, TrendChange, TrendLine

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..reporting.drawing import LegendEntry


def trend_to_dict(trend: Trend) -> dict[str, object]:
    """Return the lines with their points and changes, and what was left out; not measured is null."""
    return {
        "metric": trend.metric,
        "alpha": trend.alpha,
        "lines": [_line(line) for line in trend.lines],
        "left_out": dict(trend.left_out),
    }


def _line(line: TrendLine) -> dict[str, object]:
    points = [{**asdict(point), "value": number_or_null(point.value)} for point in line.points]
    changes = [{**asdict(change), "difference": change.difference} for change in line.changes]
    return {**asdict(line), "points": points, "changes": changes}


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
_POINTS_SHOWN = 40  # of a line; a change is always shown


def trend_tables(trend: Trend) -> list[Table]:
    """Return a table per line of two runs or more, the longest first; if there is none, of every line."""
    several = [line for line in trend.lines if len(line.points) > 1]
    return [_line_table(trend, line) for line in (several or trend.lines)[:_LINES_SHOWN]]


def _line_table(trend: Trend, line: TrendLine) -> Table:
    changes = {change.place: change for change in line.changes}
    first_shown = len(line.points) - _POINTS_SHOWN
    rows = [
        [
            point.timestamp,
            point.evaluation_id,
            value_text(point.value, line.unit) + ("*" if point.has_uncounted_failures else ""),
            interval_text(point.interval, line.unit),
            "-" if point.samples is None else f"{point.samples:,}",
            "-" if point.failed is None else f"{point.failed:,}",
            _change_text(line, changes.get(place)),
        ]
        for place, point in enumerate(line.points)
        if place in changes or place >= first_shown
    ]
    notes = []
    if len(rows) < len(line.points):
        notes.append(f"({len(line.points) - len(rows)} older runs are not shown; --json has them)")
    if len(line.points) > 1:
        notes.append(_in_words(trend, line))
    version = f" {line.version}" if line.version else ""
    data = f"{line.dataset}{version} ({line.dataset_sha256[:12]})"
    title = f"{trend.metric}: {_system_text(trend, line)} on {data}, {len(line.points)} runs"
    headings = ("When", "Run", "Value", "95% interval", "Scored", "Failed", "")
    return Table(headings, rows, title=f"{title}  {sparkline(line)}", notes=notes, numeric=(2, 3, 4, 5))


def _change_text(line: TrendLine, change: TrendChange | None) -> str:
    if change is None:
        return ""
    return f"change: {value_text(change.difference, line.unit, signed=True)}, p = {change.p_value:.2g}"


def _in_words(trend: Trend, line: TrendLine) -> str:
    how = f"({line.method}; a line without changes gets a mark in {trend.alpha:.0%} of cases at most)"
    if not line.changes:
        return f"No change found {how}."
    last = line.changes[-1]
    moved = f"from {value_text(last.before, line.unit)} to {value_text(last.after, line.unit)}"
    count = "1 change" if len(line.changes) == 1 else f"{len(line.changes)} changes"
    verdict = str(line.verdict(last))
    if verdict == Verdict.INCONCLUSIVE:
        verdict = "better for the calls that were answered, but others failed"
    return f"{count}; the last one at {last.evaluation_id}, {moved}: {verdict} {how}."


def sparkline(line: TrendLine) -> str:
    """Return the values as bars from the lowest to the highest.

    A stroke is before each change, and a dot where there is no value.
    """
    values = [point.value for point in line.points]
    finite = [value for value in values if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    places = {change.place for change in line.changes}
    drawn = []
    for place, value in enumerate(values):
        level = 0.5 if high == low else (value - low) / (high - low)
        bar = _BARS[min(len(_BARS) - 1, int(level * len(_BARS)))] if math.isfinite(value) else "·"
        drawn.append(f"│{bar}" if place in places else bar)
    return "".join(drawn)


def trend_notes(trend: Trend) -> list[str]:
    """Return what the tables do not say: the lines that are not shown, failures, and what is left out."""
    several = [line for line in trend.lines if len(line.points) > 1]
    alone = len(trend.lines) - len(several) if several else 0
    points = [point for line in trend.lines for point in line.points]
    lacking = sum(reason.startswith("has no ") for reason in trend.left_out.values())
    notes = [
        (alone, f"{alone} runs are alone on their samples or with their system; --json shows them."),
        (len(several) > _LINES_SHOWN, f"{len(several) - _LINES_SHOWN} more lines; --json shows them."),
        (
            len(trend.lines) > 1,
            "other samples, systems, settings or ways to compute a metric make separate lines.",
        ),
        (
            any(point.failed and point.failures_counted for point in points),
            "failed calls count as the worst of the metric, as in a comparison.",
        ),
        (
            any(point.has_uncounted_failures for point in points),
            "*: calls failed, and the value leaves them out.",
        ),
        (lacking, f"{lacking} runs have no {trend.metric}."),
    ]
    left_out = [
        f"{name:.80} is left out: {reason}"
        for name, reason in trend.left_out.items()
        if not reason.startswith("has no ")
    ]
    return [text for applies, text in notes if applies] + left_out


# The picture of a trend: values with their intervals over time, and where they changed. Needs `plots`.

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
    keys += _draw_changes(axes, line)
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


def _draw_changes(axes: Axes, line: TrendLine) -> list[LegendEntry]:
    """Draw a stroke at each change, and along it by how much the values moved."""
    keys: list[LegendEntry] = []
    for change in line.changes:
        at = change.place - 0.5
        keys.append((axes.axvline(at, color=COLOURS[1], linewidth=1.4, linestyle="--"), "change"))
        axes.annotate(
            f"{value_text(change.difference, line.unit, signed=True)}, p = {change.p_value:.2g}",
            (at, 1.0),
            xycoords=axes.get_xaxis_transform(),
            xytext=(2, -2),
            textcoords="offset points",
            va="top",
            rotation=90,  # so that the texts of neighbouring changes do not overlap
            fontsize=8,
            color=COLOURS[1],
        )
    return keys


def _day(stamp: str) -> str:
    time = time_of(stamp)
    return stamp[:10] if time is None else time.strftime("%Y-%m-%d\n%H:%M")
