"""Plots of results: values with their intervals.

Needs the extra `plots`. Figures are made without pyplot, so no window is opened and nothing is kept
between calls: they can be drawn on a server and in threads.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from ..core.display import NOT_MEASURED
from ..core.types import MetricResult
from ..errors import MissingDependencyError, install_command

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Results = Sequence[MetricResult] | Mapping[str, Sequence[MetricResult]]

_MAX_LABEL = 60
# Okabe & Ito's palette without its yellow, which is too light on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")


def plot_metrics(results: Results) -> Figure:
    """Draw a dot with its 95% interval for each metric; several systems if given as {name: results}.

    Shares (0 to 1) are in one panel, each other metric has its own. A thin line shows the range of the value
    if the failed samples had been scored; "n/a" marks metrics without a score. `savefig` of the figure writes
    it to a file.
    """
    systems = results if isinstance(results, Mapping) else {"": results}
    every = [result for members in systems.values() for result in members]
    if not every:
        raise ValueError("no results to plot: give results, or a mapping of systems to their results")
    own_scale = {result.name for result in every if not result.is_share}
    names = dict.fromkeys(result.name for result in every)
    shares = [name for name in names if name not in own_scale]
    panels = [shares] * bool(shares) + [[name] for name in names if name in own_scale]
    height = 1.0 + 0.3 * len(systems) * len(names)
    figure: Figure = _matplotlib().figure.Figure((8.0, height), dpi=150, layout="constrained")
    figure.suptitle("Metrics with 95% intervals", x=0.01, ha="left", fontsize=12, fontweight="bold")
    ratios = {"height_ratios": [len(panel) for panel in panels]}
    grid = figure.subplots(len(panels), squeeze=False, gridspec_kw=ratios)
    for axes, panel in zip(grid[:, 0], panels, strict=True):
        _draw_panel(axes, panel, systems, is_of_shares=panel is shares)
    handles = grid[0, 0].get_legend_handles_labels()
    if any(systems):
        figure.legend(*handles, loc="outside lower left", ncols=2, frameon=False, fontsize=9)
    return figure


def _draw_panel(
    axes: Axes, names: Sequence[str], systems: Mapping[str, Sequence[MetricResult]], *, is_of_shares: bool
) -> None:
    axes.set_yticks(range(len(names)), list(map(_label, names)))
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(visible=True, axis="x", alpha=0.3)
    axes.set_xlabel("share (0 to 1)" if is_of_shares else "a scale of its own", loc="left")
    if is_of_shares:
        axes.set_xlim(-0.02, 1.02)
    step = 0.75 / len(systems)
    for place, (system, members) in enumerate(systems.items()):
        colour = _COLOURS[place % len(_COLOURS)]
        axes.plot([], [], color=colour, marker="o", label=_label(system))
        by_name = {result.name: result for result in members}
        for line, name in enumerate(names):
            height = line + (place - (len(systems) - 1) / 2) * step
            _draw_result(axes, by_name.get(name), height, colour)


def _draw_result(axes: Axes, result: MetricResult | None, height: float, colour: str) -> None:
    if result is None or not math.isfinite(result.value):
        at_the_left = axes.get_yaxis_transform()  # "n/a" where there is no value, which is not a 0
        axes.text(0.01, height, NOT_MEASURED, transform=at_the_left, color=colour, va="center", fontsize=8)
        return
    ends = [end for end in result.if_failed or () if end is not None]
    if len(ends) == 2:
        axes.plot(ends, [height + 0.1] * 2, color=colour, alpha=0.5, linewidth=1, label="_bounds")
    if result.interval is not None:
        axes.plot(result.interval, [height] * 2, color=colour, linewidth=2.2, label="_interval")
    axes.plot([result.value], [height], color=colour, marker="o", label="_value")


def _matplotlib() -> ModuleType:
    """Return matplotlib; MissingDependencyError names the extra if it is not installed."""
    try:
        import matplotlib
        import matplotlib.figure
    except ImportError as error:
        raise MissingDependencyError(f"plots need matplotlib: {install_command('plots')}") from error
    return matplotlib


def _label(text: str) -> str:
    """Return a user's text on one line, cut short, which matplotlib reads as no formula."""
    flat = " ".join(text.split())
    short = flat if len(flat) <= _MAX_LABEL else flat[: _MAX_LABEL - 1] + "…"
    return short.replace("$", r"\$")
