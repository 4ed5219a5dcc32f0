"""The picture of what can be seen: the smallest noticeable change over the number of samples.

Needs the extra `plots`.
"""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

from ..runs.power import MetricPower, PowerReport
from .drawing import (
    COLOURS,
    FAINT,
    INK,
    add_legend,
    colour_and_marker,
    figure_and_axes,
    import_matplotlib,
    label_text,
    style_axes,
    with_fixed_layout,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .drawing import LegendEntry

_POINTS, _MOST = 40, len(COLOURS)


def plot_power(report: PowerReport) -> Figure:
    """A falling line for each metric: the more samples, the smaller a change can be and still be noticed.

    A dot marks how many samples there are. One metric by itself has a second line, for systems that are asked
    different samples. Metrics of other units than the first are left out, and said to be.
    """
    drawable = [one for one in report.metrics if one.is_known]
    if not drawable:
        raise ValueError("no metric varies: there is no change too small to be seen, and nothing to plot")
    chosen = [one for one in drawable if one.unit == drawable[0].unit][:_MOST]
    figure, axes = figure_and_axes("The smallest change that is noticed", 4.6 + 0.2 * len(chosen))
    style_axes(axes, grid="y")
    low, high = _span(report, chosen)
    keys: list[LegendEntry] = []
    for place, metric in enumerate(chosen):
        keys += _draw(axes, report, metric, place, (low, high), alone=len(chosen) == 1)
    keys += _marks(report, chosen)
    if report.effect is not None:
        label = f"a change of {report.effect:g}"
        keys.append((axes.axhline(report.effect, color=FAINT, linewidth=1, linestyle=":"), label))
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(bottom=0)
    ticker = import_matplotlib().ticker
    axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda number, _: f"{number:,.0f}"))
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    chance = f"noticed with a chance of {report.power:g}, false alarms with {report.alpha:g}"
    left_out = [one.name for one in report.metrics if one not in chosen]
    note = "\n" + textwrap.fill(f"Not shown: {', '.join(map(label_text, left_out))}", 90) if left_out else ""
    axes.set_xlabel(f"samples (of each system); {chance}{note}", loc="left", color=INK)
    axes.set_ylabel("change" + (" in seconds" if chosen[0].unit == "s" else ""), color=INK)
    add_legend(figure, keys)
    return with_fixed_layout(figure)


def _marks(report: PowerReport, metrics: list[MetricPower]) -> list[LegendEntry]:
    """What a dot and a diamond mean, of those that are drawn."""
    lines = import_matplotlib().lines
    found: list[LegendEntry] = []
    if any(one.samples is not None and one.detectable_same is not None for one in metrics):
        dot = lines.Line2D([], [], color=INK, marker="o", markersize=6.5, linestyle="")
        found.append((dot, "the samples that there are"))
    if report.effect is not None and any(one.needed_same is not None for one in metrics):
        diamond = lines.Line2D([], [], color=INK, marker="D", markersize=5.5, linestyle="")
        found.append((diamond, "the samples that it takes"))
    return found


def _span(report: PowerReport, metrics: list[MetricPower]) -> tuple[float, float]:
    """From which to which number of samples: around those that there are, and those that are needed."""
    marks = [n for one in metrics for n in (one.samples, one.needed_same, one.needed_other) if n]
    least = max(8.0, *(3 * one.per_unit for one in metrics))
    low = max(least, min(marks, default=100) / 8)
    return low, max(low * 10, max(marks, default=100) * 4)


def _draw(
    axes: Axes,
    report: PowerReport,
    metric: MetricPower,
    place: int,
    span: tuple[float, float],
    *,
    alone: bool,
) -> list[LegendEntry]:
    look = colour_and_marker(place)
    colour = look["color"]
    steps = [span[0] * (span[1] / span[0]) ** (step / (_POINTS - 1)) for step in range(_POINTS)]
    keys: list[LegendEntry] = []
    for same, style in ((True, "-"), (False, "--")):
        if not same and (not alone or not metric.other_is_known):
            continue
        sizes = [report.detectable(metric, n, same=same) for n in steps]
        values = [math.nan if size is None else size for size in sizes]
        (line,) = axes.plot(steps, values, color=colour, linestyle=style, linewidth=1.8)
        about = (", same samples" if same else ", other samples each") if alone else ""
        keys.append((line, label_text(metric.name) + about))
    if metric.samples is not None and metric.detectable_same is not None:
        axes.plot([metric.samples], [metric.detectable_same], markersize=6.5, **look)
    if report.effect is not None and metric.needed_same is not None:
        axes.plot([metric.needed_same], [report.effect], color=colour, marker="D", markersize=5.5)
    return keys
