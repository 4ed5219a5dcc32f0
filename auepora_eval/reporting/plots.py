"""Plots of results: values with their intervals, and the reliability diagram of a judge.

Needs the extra `plots`. What they share with other pictures is in drawing.py.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from ..core.display import NOT_MEASURED
from ..core.types import MetricResult
from ..io.files import written
from .drawing import (
    FAINT,
    INK,
    add_legend,
    colour_and_marker,
    import_matplotlib,
    label_text,
    new_figure,
    style_axes,
    with_fixed_layout,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .drawing import LegendEntry

Results = Sequence[MetricResult] | Mapping[str, Sequence[MetricResult]]
ByName = dict[str, MetricResult]

SUFFIXES = (".png", ".svg")

# matplotlib takes the ids of an SVG from a global salt, which one thread at a time may set.
_SVG_SALT = Lock()


def plot_metrics(results: Results) -> Figure:
    """Draw a dot with its 95% interval for each metric; several systems if given as {name: results}.

    Shares (0 to 1) are in one panel, each other metric has its own. A thin line shows the range of the value
    if the failed samples had been scored; "n/a" marks metrics without a score.
    """
    systems = _by_system(results)
    names = dict.fromkeys(name for named in systems.values() for name in named)
    every = [result for named in systems.values() for result in named.values()]
    own_scale = {result.name for result in every if not result.is_share}
    shares = [name for name in names if name not in own_scale]
    panels = [shares] * bool(shares) + [[name] for name in names if name in own_scale]
    figure = new_figure("Metrics with 95% intervals", *_size(systems, panels))
    ratios = {"height_ratios": [len(panel) for panel in panels]}
    grid = figure.subplots(len(panels), squeeze=False, gridspec_kw=ratios)
    for axes, panel in zip(grid[:, 0], panels, strict=True):
        _draw_panel(axes, panel, systems, is_of_shares=panel is shares)
    line = import_matplotlib().lines.Line2D
    keys: list[LegendEntry] = [
        (line([], [], **colour_and_marker(place)), label_text(name) or "value and 95% interval")
        for place, name in enumerate(systems)
    ]
    if any(result.if_failed for result in every):
        keys.append((line([], [], color=FAINT, linewidth=1), "range, had the failed samples been scored"))
    add_legend(figure, keys)
    return with_fixed_layout(figure)


def save_figure(figure: Figure, path: str | Path, *, force: bool = False) -> Path:
    """Write a PNG or an SVG, by the suffix; the same figure gives the same bytes."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"{path} cannot be written as {suffix or 'a file without suffix'}: use .png or .svg")
    metadata = {"Date": None} if suffix == ".svg" else {"Software": None}
    salted = import_matplotlib().rc_context({"svg.hashsalt": "auepora-eval"})
    with _SVG_SALT, salted, written(path, force=force) as file:
        figure.savefig(file, format=suffix[1:], metadata=metadata)
    return path


def _by_system(results: Results) -> dict[str, ByName]:
    """Return the results of each system by the name of their metric."""
    systems = results if isinstance(results, Mapping) else {"": results}
    by_system: dict[str, ByName] = {}
    for system, members in systems.items():
        by_system[system] = {result.name: result for result in members}
        if len(by_system[system]) < len(members):
            twice = Counter(result.name for result in members).most_common(1)[0][0]
            raise ValueError(f"two results are named {twice!r}: give each metric a name of its own")
    if not any(by_system.values()):
        raise ValueError("no results to plot: give results, or a mapping of systems to their results")
    return by_system


def _size(systems: Mapping[str, ByName], panels: Sequence[Sequence[str]]) -> tuple[float, float]:
    """Return width and height in inches: a row needs 0.17 per system, or 0.16 per line of its label."""
    labels = [_row_label(systems, name) for panel in panels for name in panel]
    longest = max(len(line) for label in labels for line in label.split("\n"))
    tallest = max(label.count("\n") for label in labels)
    row_height = max(0.15 + 0.17 * len(systems), 0.32 + 0.16 * tallest)
    return 6.5 + 0.06 * longest, 0.8 + row_height * len(labels) + 0.65 * len(panels) + 0.22 * len(systems)


def _row_label(systems: Mapping[str, ByName], name: str) -> str:
    """Return the metric's name, and how many samples failed in which system."""
    failed = {system: named[name].coverage.failed for system, named in systems.items() if name in named}
    notes = [
        f"{label_text(system)}: {count} failed".lstrip(": ") for system, count in failed.items() if count
    ]
    return "\n".join([label_text(name), *notes])


def _draw_panel(
    axes: Axes, names: Sequence[str], systems: Mapping[str, ByName], *, is_of_shares: bool
) -> None:
    """Draw each system's result at its height; "n/a" where there is no value, which is not a 0."""
    style_axes(axes, grid="x")
    axes.set_yticks(range(len(names)), [_row_label(systems, name) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    if is_of_shares:
        axes.set_xlim(-0.02, 1.02)
    unit = next(named[names[0]].unit for named in systems.values() if names[0] in named)
    label = "share (0 to 1)" if is_of_shares else {"s": "seconds"}.get(unit, "a scale of its own")
    axes.set_xlabel(label, loc="left", color=INK)
    step = 0.75 / len(systems)
    for line, name in enumerate(names):
        for place, named in enumerate(systems.values()):
            height = line + (place - (len(systems) - 1) / 2) * step
            _draw_result(axes, named.get(name), height, step, place)


def _draw_result(axes: Axes, result: MetricResult | None, height: float, step: float, place: int) -> None:
    look = colour_and_marker(place)
    colour = look["color"]
    if result is None or not math.isfinite(result.value):
        at_the_left = axes.get_yaxis_transform()
        axes.text(0.01, height, NOT_MEASURED, transform=at_the_left, color=colour, va="center", fontsize=8)
        return
    ends = [end for end in result.if_failed or () if end is not None and math.isfinite(end)]
    if len(ends) == 2:
        # A little below the dot: behind the interval it would not be seen.
        below = [height + 0.3 * step] * 2
        axes.plot(ends, below, color=colour, alpha=0.5, linewidth=1, label="_bounds")
    # Not errorbar(): it refuses an interval that the value lies outside of, as a bootstrap's may.
    if result.interval is not None:
        style = {"color": colour, "linewidth": 2.2, "solid_capstyle": "butt"}
        axes.plot(list(result.interval), [height] * 2, label="_interval", **style)
    look |= {"markersize": 6.5, "markeredgecolor": "white", "markeredgewidth": 0.6, "linestyle": "none"}
    axes.plot([result.value], [height], label="_value", **look)
