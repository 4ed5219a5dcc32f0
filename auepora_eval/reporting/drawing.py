"""Draw what all plots share: colours, the style of a figure, labels and the legend.

Needs the extra `plots`. Figures are made without pyplot, so no window is opened and nothing is kept
between calls: they can be drawn on a server and in threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

from ..errors import MissingDependencyError, install_command

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    LegendEntry = tuple[Artist, str]

MAX_LABEL = 60

# Okabe & Ito's palette without its yellow, which is too light on white. The two lists differ in length,
# so that 42 systems get a pair of their own.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "X")
INK, FAINT, GRID = "#222222", "#999999", "#E6E6E6"


def import_matplotlib() -> ModuleType:
    """Return matplotlib; MissingDependencyError names the extra if it is not installed."""
    try:
        import matplotlib
        import matplotlib.backends.backend_agg
        import matplotlib.figure
    except ImportError as error:
        raise MissingDependencyError(f"plots need matplotlib: {install_command('plots')}") from error
    return matplotlib


def new_figure(title: str, width: float, height: float) -> Figure:
    """Return an empty figure with a title; width and height are in inches."""
    matplotlib = import_matplotlib()
    layout = matplotlib.layout_engine.ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.07)
    figure: Figure = matplotlib.figure.Figure((width, height), dpi=150, facecolor="white", layout=layout)
    matplotlib.backends.backend_agg.FigureCanvasAgg(figure)
    figure.suptitle(label_text(title), x=0.01, ha="left", fontsize=12, fontweight="bold", color=INK)
    return figure


def style_axes(axes: Axes, *, grid: Literal["x", "y"]) -> None:
    """Style a panel: no frame above and at the right, faint lines along one axis."""
    axes.set_facecolor("white")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    axes.grid(visible=True, axis=grid, color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=9, color=FAINT, labelcolor=INK)


def colour_and_marker(place: int) -> dict[str, Any]:
    """Return the colour and the marker of a system."""
    return {"color": COLOURS[place % len(COLOURS)], "marker": MARKERS[place % len(MARKERS)]}


def label_text(text: str) -> str:
    """Return a user's text on one line, cut to MAX_LABEL characters, which matplotlib reads as no formula."""
    flat = " ".join(text.split())
    short = flat if len(flat) <= MAX_LABEL else flat[: MAX_LABEL - 1] + "…"
    return short.replace("$", r"\$")


def add_legend(figure: Figure, keys: Sequence[LegendEntry]) -> None:
    """Add a legend below the panels: in four columns, or in one if a label is long."""
    columns = 1 if any(len(label) > 24 for _, label in keys) else 4
    legend = figure.legend(
        [artist for artist, _ in keys],
        ["-"] * len(keys),
        loc="outside lower left",
        ncols=columns,
        frameon=False,
        fontsize=9,
        labelcolor=INK,
    )
    # Set afterwards, since older versions leave out a label that starts with "_".
    for text, (_, label) in zip(legend.get_texts(), keys, strict=True):
        text.set_text(label)


def with_fixed_layout(figure: Figure) -> Figure:
    """Fix the layout, which would otherwise differ slightly each time the figure is drawn."""
    # The layout settles at the second drawing.
    figure.draw_without_rendering()
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure
