"""The picture of a trend: values with their intervals over time, and where they changed. Needs `plots`."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from ..runs.benchmark_measurements import time_of
from ..runs.trend import Trend, TrendLine
from .plots import COLOURS, INK, _figure, _label, _laid_out, _legend, _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .plots import _Key

PANELS = 6


def plot_trend(trend: Trend) -> Figure:
    """A panel for each line of two runs or more, those of most runs first; six of them at most."""
    lines = [line for line in trend.lines if len(line.points) > 1][:PANELS]
    if not lines:
        raise ValueError(f"no two stored runs have {trend.metric} on the same samples: nothing to plot")
    figure = _figure(f"{trend.metric} over time, with 95% intervals", 8, 1.2 + 2.9 * len(lines))
    panels = list(figure.subplots(len(lines), 1, squeeze=False)[:, 0])
    keys: dict[str, _Key] = {}
    for panel, line in zip(panels, lines, strict=True):
        _style(panel, grid="y")
        keys |= {label: (artist, label) for artist, label in _draw(panel, line)}
    panels[-1].set_xlabel("runs, oldest first", loc="left", color=INK)
    _legend(figure, list(keys.values()))
    return _laid_out(figure)


def _draw(axes: Axes, line: TrendLine) -> list[_Key]:
    """Runs at equal steps: several of one hour beside one of last year would be a single dot."""
    places = range(len(line.points))
    values = [point.value for point in line.points]
    for place, point in zip(places, line.points, strict=True):
        if point.interval is not None:
            axes.plot([place] * 2, point.interval, color=COLOURS[0], linewidth=2.2, alpha=0.45)
    look = {"markersize": 6, "markeredgecolor": "white", "markeredgewidth": 0.6, "linestyle": "none"}
    (dots,) = axes.plot(places, values, marker="o", color=COLOURS[0], **look)  # type: ignore[arg-type]
    keys: list[_Key] = [(dots, "value and 95% interval of a run")]
    for start, end in pairwise([0, *(change.place for change in line.changes), len(values)]):
        known = [value for value in values[start:end] if math.isfinite(value)]
        if known and line.changes:
            mean = math.fsum(known) / len(known)
            (level,) = axes.plot([start - 0.4, end - 0.6], [mean] * 2, color=INK, linewidth=1.4)
            keys.append((level, "mean between two changes"))
    for change in line.changes:
        mark = axes.axvline(change.place - 0.5, color=COLOURS[1], linewidth=1.4, linestyle="--")
        keys.append((mark, "change"))
        text = f" {change.difference:+.3g}, p = {change.p_value:.2g}"
        at = {"transform": axes.get_xaxis_transform(), "fontsize": 8, "color": COLOURS[1]}
        axes.text(change.place - 0.5, 0.98, text, va="top", **at)  # type: ignore[arg-type]
    axes.set_title(_label(f"{line.system} on {line.dataset} {line.version}".strip()), loc="left", fontsize=10)
    axes.margins(y=0.14)  # what a mark says stands above the intervals
    axes.set_xlim(-0.6, len(values) - 0.4)
    step = math.ceil(len(values) / 10)
    shown = list(places)[::step]
    axes.set_xticks(shown, [_day(line.points[place].timestamp) for place in shown])
    axes.set_ylabel("seconds" if line.unit == "s" else "value", color=INK)
    return keys


def _day(stamp: str) -> str:
    time = time_of(stamp)
    return stamp[:10] if time is None else time.strftime("%Y-%m-%d\n%H:%M")
