"""The picture of a trend: values with their intervals over time, and where they changed. Needs `plots`."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from ..runs.benchmark_measurements import time_of
from ..runs.trend import Trend, TrendLine
from .drawing import COLOURS, INK, add_legend, label_text, new_figure, style_axes, with_fixed_layout
from .number_texts import value_text
from .trend_words import settings_in_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .drawing import LegendEntry

PANELS = 6
DATES = 7  # more would overlap
LABEL_WIDTH, LABEL_HEIGHT = 0.19, 11  # of what a mark says: as a share of the axis, in points


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
    unit, factor = _scale(line)
    values = [point.value * factor for point in line.points]
    for place, point in zip(places, line.points, strict=True):
        if point.interval is not None:
            ends = [end * factor for end in point.interval]
            axes.plot([place] * 2, ends, color=COLOURS[0], linewidth=2.2, alpha=0.45)
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
    if line.changes:
        keys += _draw_levels(axes, line, values)
        keys += _draw_marks(axes, line)
    settings = settings_in_words(trend, line)
    system = f"{line.system} ({settings})" if settings else line.system
    axes.set_title(label_text(f"{system} on {line.dataset} {line.version}".strip()), loc="left", fontsize=10)
    axes.set_xlim(-0.6, len(values) - 0.4)
    shown = list(places)[:: math.ceil(len(values) / DATES)]
    axes.set_xticks(shown, [_day(line.points[place].timestamp) for place in shown])
    axes.set_ylabel(unit, color=INK)
    return keys


def _scale(line: TrendLine) -> tuple[str, float]:
    """What the axis is called, and the factor of its values: short times read better in milliseconds."""
    if line.unit != "s":
        return "value", 1.0
    largest = max((abs(point.value) for point in line.points if math.isfinite(point.value)), default=1.0)
    return ("seconds", 1.0) if largest >= 1 else ("milliseconds", 1e3)


def _draw_levels(axes: Axes, line: TrendLine, values: list[float]) -> list[LegendEntry]:
    """The mean between two changes, at the runs that have a value."""
    keys: list[LegendEntry] = []
    for start, end in pairwise([0, *(change.place for change in line.changes), len(values)]):
        known = [place for place in range(start, end) if math.isfinite(values[place])]
        if not known:
            continue
        mean = math.fsum(values[place] for place in known) / len(known)
        for first, last in _stretches(known):
            (level,) = axes.plot([first - 0.4, last + 0.4], [mean] * 2, color=INK, linewidth=1.4)
            keys.append((level, "mean between two changes"))
    return keys


def _stretches(places: list[int]) -> list[tuple[int, int]]:
    """The first and the last of places that follow each other without a gap."""
    found = [(places[0], places[0])]
    for place in places[1:]:
        if place == found[-1][1] + 1:
            found[-1] = (found[-1][0], place)
        else:
            found.append((place, place))
    return found


def _draw_marks(axes: Axes, line: TrendLine) -> list[LegendEntry]:
    """A stroke at each change; what it says goes to the first row above in which there is room for it."""
    keys: list[LegendEntry] = []
    room = LABEL_WIDTH * len(line.points)
    rows: list[float] = []  # how far each row is taken
    for change in line.changes:
        at = change.place - 0.5
        keys.append((axes.axvline(at, color=COLOURS[1], linewidth=1.4, linestyle="--"), "change"))
        side, begin = ("left", at) if at + room < len(line.points) else ("right", at - room)
        row = next((row for row, end in enumerate(rows) if end <= begin), len(rows))
        rows[row : row + 1] = [begin + room]
        moved = value_text(change.difference, line.unit, signed=True)
        axes.annotate(
            f" {moved}, p = {change.p_value:.2g} ",
            (at, 1.0),
            xycoords=axes.get_xaxis_transform(),
            xytext=(0, -2 - LABEL_HEIGHT * row),
            textcoords="offset points",
            va="top",
            ha=side,
            fontsize=8,
            color=COLOURS[1],
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.4},  # over the strokes of others
        )
    low, high = axes.get_ylim()  # what marks say stands above the intervals
    share = min(0.6, 0.08 * len(rows) + 0.04)
    axes.set_ylim(low, low + (high - low) / (1 - share))
    return keys


def _day(stamp: str) -> str:
    time = time_of(stamp)
    return stamp[:10] if time is None else time.strftime("%Y-%m-%d\n%H:%M")
