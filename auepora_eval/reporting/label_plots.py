"""The picture of a sweep: macro-F1 and each label's recall over the threshold. Needs the extra `plots`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..runs.label_sweep import LEAST_RECALL, Sweep, SweepPart
from .drawing import COLOURS, FAINT, INK, add_legend, new_figure, style_axes, with_fixed_layout

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LINES = {
    "macro_f1": ("macro-F1", INK, "-"),
    "hall_recall": ("recall of hallucinations", COLOURS[1], "--"),
    "accurate_recall": ("recall of accurate answers", COLOURS[0], "-."),
    "contr_recall": ("recall of contradictions", COLOURS[2], ":"),
}


def plot_sweep(result: Sweep) -> Figure:
    """A panel for each scenario, or one for everything; a line marks the chosen threshold."""
    columns = min(3, len(result.parts))
    rows = math.ceil(len(result.parts) / columns)
    size = (8, 4.8) if columns == 1 else (3.4 * columns + 1, 2.7 * rows + 1)
    figure = new_figure("Labels by threshold", *size)
    panels = list(figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flat)
    keys: dict[str, Artist] = {}
    for panel, part in zip(panels, result.parts, strict=False):
        style_axes(panel, grid="y")
        keys |= _draw(panel, part)
    for panel in panels[len(result.parts) :]:
        panel.set_visible(False)
    for panel in panels[max(0, len(result.parts) - columns) : len(result.parts)]:  # nothing stands below them
        panel.tick_params(labelbottom=True)
        panel.set_xlabel("threshold", loc="left", color=INK)
    add_legend(figure, [(artist, label) for label, artist in keys.items()])
    return with_fixed_layout(figure)


def _draw(axes: Axes, part: SweepPart) -> dict[str, Artist]:
    thresholds = [row["threshold"] or 0.0 for row in part.rows]
    keys: dict[str, Artist] = {}
    for column, (label, colour, style) in _LINES.items():
        found = [row[column] for row in part.rows]
        values = [math.nan if value is None else value for value in found]
        if not all(map(math.isnan, values)):
            (keys[label],) = axes.plot(thresholds, values, color=colour, linestyle=style, linewidth=1.6)
    if part.chosen is not None:
        label = "chosen threshold"
        keys[label] = axes.axvline(part.chosen, color=FAINT, linewidth=1)
    keys[f"hallucination recall of {LEAST_RECALL:g}"] = axes.axhline(
        LEAST_RECALL, color=FAINT, linewidth=0.8, linestyle=":"
    )
    axes.set(xlim=(0, 1), ylim=(-0.02, 1.02))
    if part.name != "all":
        axes.set_title(
            f"{part.name} ({part.samples})".replace("$", r"\$"), loc="left", fontsize=10, color=INK
        )
    return keys
