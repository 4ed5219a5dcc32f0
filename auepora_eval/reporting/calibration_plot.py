"""The reliability diagram of a judge: what people say over what it says. Needs the extra `plots`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .drawing import (
    COLOURS,
    FAINT,
    INK,
    add_legend,
    import_matplotlib,
    label_text,
    new_figure,
    style_axes,
    with_fixed_layout,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_calibration(judge: str, calibration: Mapping[str, Any]) -> Figure:
    """Dots on the dashed line: scores can be read as shares. Below it, people say less than it does.

    `calibration` is that part of an audit (`runs.judge_audit.audit`). The bars show how many claims a dot
    stands on.
    """
    bins = [each for each in calibration["table"] if each["claims"]]
    figure = new_figure(f"Is {judge} calibrated?", 6.4, 6.8)
    upper, lower = figure.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": (4, 1)})
    (ideal,) = upper.plot([0, 1], [0, 1], color=FAINT, linestyle="--", linewidth=1.2)
    at = [each["judge"] for each in bins]
    people = [each["people"]["value"] for each in bins]
    for place, each in zip(at, bins, strict=True):
        if limits := each["people"]["confidence_interval"]:
            upper.plot([place, place], limits, color=COLOURS[0], alpha=0.45, linewidth=2.2, label="_interval")
    (dots,) = upper.plot(at, people, color=COLOURS[0], marker="o", markersize=6, linewidth=1)
    style_axes(upper, grid="y")
    upper.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    upper.set_ylabel("what people say", color=INK)
    style_axes(lower, grid="y")
    middles = [(each["from"] + each["to"]) / 2 for each in calibration["table"]]
    counts = [each["claims"] for each in calibration["table"]]
    lower.bar(middles, counts, width=0.92 / len(middles), color=COLOURS[0], alpha=0.45)
    lower.yaxis.set_major_locator(import_matplotlib().ticker.MaxNLocator(3, integer=True))
    lower.set_ylabel("claims", color=INK)
    error, brier = calibration["expected_calibration_error"], calibration["brier"]["value"]
    words = f"ECE {error:.3f} ({calibration['bins']} bins), Brier {brier:.3f}, {sum(counts)} claims"
    lower.set_xlabel(f"what {label_text(judge)} says\n{words}", loc="left", color=INK)
    add_legend(figure, [(dots, "people's mean, 95% interval"), (ideal, "perfectly calibrated")])
    return with_fixed_layout(figure)
