"""Plots of results: values with their intervals, recall by depth.

Needs the extra `plots`. What they share with other pictures is in drawing.py.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from ..core.display import NOT_MEASURED
from ..core.types import EvaluationRun, MetricResult
from ..io.files.atomic import written
from ..metrics.retrieval_basic import RecallAtK
from .drawing import (
    FAINT,
    INK,
    add_legend,
    colour_and_marker,
    figure_and_axes,
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

SHARE, PERCENT, OWN_SCALE, SECONDS = "share (0 to 1)", "0 to 100", "a scale of its own", "seconds"
SUFFIXES = (".png", ".svg")

# matplotlib takes the ids of an SVG from a global salt, which one thread at a time may set.
_SVG_SALT = Lock()


@dataclass(frozen=True)
class _Row:
    """One metric and what each system got in it; None where a system was not measured by it."""

    name: str
    results: list[MetricResult | None]

    def present(self) -> list[MetricResult]:
        return [result for result in self.results if result is not None]


def plot_metrics(results: Results) -> Figure:
    """Draw a dot with its 95% interval for each metric; several systems if given as {name: results}.

    Metrics on different scales (shares, BLEU, seconds) get panels of their own. A thin line shows the
    range of the value if the failed samples had been scored; "n/a" marks metrics without a score.
    """
    systems, rows = _table(results)
    panels: dict[tuple[str, str], list[_Row]] = {}
    for row in rows:
        scale = _scale(row)
        panels.setdefault((scale, row.name if scale == OWN_SCALE else ""), []).append(row)
    order = (SHARE, PERCENT, OWN_SCALE, SECONDS)
    shown = sorted(panels.items(), key=lambda panel: order.index(panel[0][0]))
    line = import_matplotlib().lines.Line2D
    keys: list[LegendEntry] = [
        (line([], [], **colour_and_marker(place)), label_text(name) or "value and 95% interval")
        for place, name in enumerate(systems)
    ]
    if any(_pair(result.if_failed) for row in rows for result in row.present()):
        keys.append((line([], [], color=FAINT, linewidth=1), "range, had the failed samples been scored"))
    figure, axes = _panels("Metrics with 95% intervals", systems, [rows for _, rows in shown], keys)
    for panel, ((scale, _), members) in zip(axes, shown, strict=True):
        panel.set_xlim(*_limits(scale, members))
        panel.set_xlabel(scale, loc="left", color=INK)
        _draw_rows(panel, members)
    return with_fixed_layout(figure)


def plot_recall_by_k(
    runs: EvaluationRun | Mapping[str, EvaluationRun], *, ks: Sequence[int] | None = None
) -> Figure:
    """Draw recall@k over k with its 95% interval; several runs if given as {name: run}.

    Without `ks` each curve ends at the length of the longest list that its run retrieved. Of lists longer
    than 50 some 40 depths are taken, closer together at the top.
    """
    by_name = {runs.system_name: runs} if isinstance(runs, EvaluationRun) else runs
    if not by_name:
        raise ValueError("no runs to plot: give an EvaluationRun, or a mapping of names to runs")
    if ks is not None and not ks:
        raise ValueError("ks is empty: give the depths to plot, or None for all of them")
    curves = {name: _recall_curve(run, ks) for name, run in by_name.items()}
    if all(math.isnan(result.value) for curve in curves.values() for result in curve.values()):
        raise ValueError("recall cannot be plotted: no sample has both relevant documents and an answer")
    figure, axes = figure_and_axes("Recall by depth, with 95% intervals", 4.3 + 0.2 * len(curves))
    keys = [_draw_recall(axes, place, name, curves[name]) for place, name in enumerate(curves)]
    axes.set(xlim=(0.5, max(max(curve) for curve in curves.values()) + 0.5), ylim=(-0.02, 1.02))
    axes.set_xlabel("k: documents retrieved", loc="left", color=INK)
    axes.set_ylabel("recall@k", color=INK)
    axes.xaxis.set_major_locator(import_matplotlib().ticker.MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
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


def _table(results: Results) -> tuple[list[str], list[_Row]]:
    """Return the systems' names, and for each metric a row with one result per system."""
    by_system = results if isinstance(results, Mapping) else {"": results}
    if not by_system:
        raise ValueError("no results to plot: the mapping names no system")
    found: dict[str, dict[str, MetricResult]] = {}
    for system, given in by_system.items():
        if not given:
            raise ValueError(f"no results to plot{f' for system {system!r}' if system else ''}")
        found[system] = {result.name: result for result in given}
        if len(found[system]) < len(given):
            twice = Counter(result.name for result in given).most_common(1)[0][0]
            raise ValueError(f"two results are named {twice!r}: give each metric a name of its own")
    metrics = dict.fromkeys(name for named in found.values() for name in named)
    return list(found), [_Row(name, [named.get(name) for named in found.values()]) for name in metrics]


def _scale(row: _Row) -> str:
    """Return the scale of a metric's values over all systems.

    A BLEU of 0.6 out of 100 and a share of 0.6 are distinguished by the samples' scores.
    """
    if any(result.unit == "s" for result in row.present()):
        return SECONDS
    scores = [s.value for result in row.present() for s in result.scores if s.value is not None]
    numbers = [number for number in scores if math.isfinite(number)] + _numbers([row])
    # A mean of ones can be 1 + 1e-16.
    for scale, top in ((SHARE, 1.0), (PERCENT, 100.0)):
        if all(-1e-9 <= number <= top + 1e-9 for number in numbers):
            return scale
    return OWN_SCALE


def _numbers(rows: Sequence[_Row]) -> list[float]:
    """Return every number that is drawn for the rows."""
    drawn: list[float | None] = []
    for result in (result for row in rows for result in row.present()):
        drawn += [result.value, *_pair(result.interval), *_pair(result.if_failed)]
    return [number for number in drawn if number is not None and math.isfinite(number)]


def _pair(limits: Sequence[float | None] | None) -> list[float | None]:
    """Return [low, high], with None for an open end; [] if there are no limits."""
    return [end if end is not None and math.isfinite(end) else None for end in limits or ()]


def _limits(scale: str, rows: Sequence[_Row]) -> tuple[float, float]:
    if scale in (SHARE, PERCENT):
        top = 1.0 if scale == SHARE else 100.0
        return -0.02 * top, 1.02 * top
    numbers = _numbers(rows) or [0.0, 1.0]
    low, high = min(numbers), max(numbers)
    if scale == SECONDS:
        return min(low, 0.0), high * 1.05 if high > 0 else 1.0
    # Equal values have no range: the margin is then a part of the value itself.
    margin = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return low - margin, high + margin


def _row_label(systems: Sequence[str], row: _Row) -> str:
    """Return the metric's name, and how many samples failed in which system."""
    failed = [result.coverage.failed if result else 0 for result in row.results]
    if len(systems) == 1:
        return label_text(row.name) + (f"  ({failed[0]} failed)" if failed[0] else "")
    notes = [
        f"{label_text(name)}: {count} failed" for name, count in zip(systems, failed, strict=True) if count
    ]
    return "\n".join([label_text(row.name), *notes])


def _panels(
    title: str, systems: Sequence[str], groups: Sequence[list[_Row]], keys: Sequence[LegendEntry]
) -> tuple[Figure, list[Axes]]:
    """Return a figure with a panel for each group, a labelled line for each row, and the legend below."""
    labels = [[_row_label(systems, row) for row in group] for group in groups]
    texts = [label for group in labels for label in group]
    longest = max(len(line) for text in texts for line in text.split("\n"))
    tallest = max(text.count("\n") for text in texts)
    # Heights and widths in inches: a row needs 0.17 per system, or 0.16 per line of its label.
    row_height = max(0.15 + 0.17 * len(systems), 0.32 + 0.16 * tallest)
    height = 0.6 + row_height * len(texts) + 0.65 * len(groups) + 0.22 * len(keys)
    figure = new_figure(title, 6.5 + 0.06 * longest, height)
    ratios = [len(group) for group in groups]
    panels = list(figure.subplots(len(groups), 1, squeeze=False, gridspec_kw={"height_ratios": ratios})[:, 0])
    for axes, group in zip(panels, labels, strict=True):
        style_axes(axes, grid="x")
        axes.set_yticks(range(len(group)), group)
        axes.set_ylim(len(group) - 0.5, -0.5)
        axes.tick_params(axis="y", length=0)
    add_legend(figure, keys)
    return figure, panels


def _draw_rows(axes: Axes, rows: Sequence[_Row]) -> None:
    """Draw each system's result at its height; "n/a" where there is no value, which is not a 0."""
    for line, row in enumerate(rows):
        step = 0.75 / len(row.results)
        for place, result in enumerate(row.results):
            height = line + (place - (len(row.results) - 1) / 2) * step
            if result is not None:
                _draw_dot(axes, result, height, step, place)
            if result is None or not math.isfinite(result.value):
                look = {"color": colour_and_marker(place)["color"], "va": "center", "fontsize": 8}
                axes.text(0.01, height, NOT_MEASURED, transform=axes.get_yaxis_transform(), **look)


def _draw_dot(axes: Axes, result: MetricResult, height: float, step: float, place: int) -> None:
    look = colour_and_marker(place)
    at_edge = zip(_pair(result.if_failed), axes.get_xlim(), strict=False)
    if ends := [edge if end is None else end for end, edge in at_edge]:
        # A little below the dot: behind the interval it would not be seen.
        below = [height + 0.3 * step] * 2
        axes.plot(ends, below, color=look["color"], alpha=0.5, linewidth=1, label="_bounds")
    _draw_interval(axes, result, height, color=look["color"], linewidth=2.2, solid_capstyle="butt")
    if math.isfinite(result.value):
        look |= {"markersize": 6.5, "markeredgecolor": "white", "markeredgewidth": 0.6, "linestyle": "none"}
        axes.plot([result.value], [height], label="_value", **look)


def _draw_interval(axes: Axes, result: MetricResult, height: float, **style: Any) -> None:
    # Not errorbar(): it refuses an interval that the value lies outside of, as a bootstrap's may.
    ends = [end for end in _pair(result.interval) if end is not None]
    if len(ends) == 2:
        axes.plot(ends, [height] * 2, label="_interval", **style)


def _recall_curve(run: EvaluationRun, ks: Sequence[int] | None) -> dict[int, MetricResult]:
    depth = max((len(output.retrieved) for output in run.outputs), default=0) or run.top_k
    if ks is None:
        ks = range(1, depth + 1) if depth <= 50 else [round(depth ** (step / 49)) for step in range(50)]
    return {k: RecallAtK(k).compute(run.samples, run.outputs) for k in sorted(set(ks))}


def _draw_recall(axes: Axes, place: int, name: str, curve: Mapping[int, MetricResult]) -> LegendEntry:
    values = [result.value for result in curve.values()]
    ends = [result.interval or (math.nan, math.nan) for result in curve.values()]
    low, high = zip(*ends, strict=True)
    look = colour_and_marker(place)
    axes.fill_between(list(curve), low, high, facecolor=look["color"] + "2E", edgecolor=look["color"] + "70")
    (line,) = axes.plot(list(curve), values, markersize=5, **look)
    failed = next(iter(curve.values())).coverage.failed
    notes = [f"{failed} failed"] * bool(failed) + [NOT_MEASURED] * all(map(math.isnan, values))
    return line, label_text(name) + (f"  ({', '.join(notes)})" if notes else "")
