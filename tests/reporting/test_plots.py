"""The figures say what the results say: positions, extents, labels and bytes."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from auepora_eval.core.types import (
    MetricResult,
    TargetCategory,
)
from auepora_eval.errors import MissingDependencyError
from auepora_eval.reporting.plots import plot_metrics

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

pytest.importorskip("matplotlib")

RELEVANCE = TargetCategory.RETRIEVAL_RELEVANCE


def a_result(
    name: str = "recall@5", value: float = 0.6, *, target: TargetCategory = RELEVANCE, **details: Any
) -> MetricResult:
    return MetricResult(name, target, value, details)


def points(line: Line2D) -> tuple[list[float], list[float]]:
    return np.asarray(line.get_xdata()).tolist(), np.asarray(line.get_ydata()).tolist()


def lines(axes: Axes, label: str) -> list[tuple[list[float], list[float]]]:
    """The x and y of each line that plots.py drew under a label."""
    return [points(line) for line in axes.get_lines() if line.get_label() == label]


def dots(axes: Axes) -> list[float]:
    return [xs[0] for xs, _ in lines(axes, "_value")]


def row_labels(axes: Axes) -> list[str]:
    return [label.get_text() for label in axes.get_yticklabels()]


# --- plot_metrics


def test_dots_are_at_the_values_and_lines_span_the_intervals() -> None:
    figure = plot_metrics(
        [
            a_result("recall@5", 0.6, confidence_interval=[0.5, 0.7]),
            a_result("mrr", 0.3, confidence_interval=None),
        ]
    )
    (axes,) = figure.axes
    assert lines(axes, "_value") == [([0.6], [0.0]), ([0.3], [1.0])]
    assert lines(axes, "_interval") == [([0.5, 0.7], [0.0, 0.0])]
    assert row_labels(axes) == ["recall@5", "mrr"]
    assert axes.yaxis_inverted()  # the first metric is on top


def test_scales_get_panels_of_their_own() -> None:
    figure = plot_metrics(
        [
            a_result("latency", 0.4, target=TargetCategory.LATENCY),
            a_result("tokens", 4000.0),
            a_result("bleu", 0.9, bounds=[0.0, 100.0]),
            a_result("recall@5", 0.6),
            a_result("drop", -0.1),
        ]
    )
    shown = [(axes.get_xlabel(), row_labels(axes), dots(axes)) for axes in figure.axes]
    assert shown == [
        ("share (0 to 1)", ["recall@5"], [0.6]),
        ("a scale of its own", ["latency"], [0.4]),
        ("a scale of its own", ["tokens"], [4000.0]),
        ("a scale of its own", ["bleu"], [0.9]),
        ("a scale of its own", ["drop"], [-0.1]),
    ]
    for axes in figure.axes:
        low, high = axes.get_xlim()
        assert low <= min(dots(axes)) <= high


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_not_measured_is_written_not_drawn_at_zero(value: float) -> None:
    (axes,) = plot_metrics([a_result("mrr", value), a_result("recall@5", 0.6)]).axes
    assert dots(axes) == [0.6]
    (text,) = axes.texts
    assert (text.get_text(), text.get_position()) == ("n/a", (0.01, 0))


def test_a_metric_that_one_system_lacks_is_not_measured_there() -> None:
    (axes,) = plot_metrics({"a": [a_result("mrr", 0.5)], "b": [a_result("recall@5", 0.6)]}).axes
    assert dots(axes) == [0.5, 0.6]
    assert [text.get_text() for text in axes.texts] == ["n/a", "n/a"]


def test_the_range_with_failures_is_next_to_the_dot() -> None:
    (axes,) = plot_metrics([a_result(value=0.6, num_failed=12, bounds_if_failed=[0.4, 0.8])]).axes
    ((ends, heights),) = lines(axes, "_bounds")
    assert ends == [0.4, 0.8]
    assert all(0 < height < 0.5 for height in heights)  # in its row, not hidden by the interval


@pytest.mark.parametrize("name", ["cost in $ and $", r"$\nonsense{$", r"\$", "two\nlines", "^{" * 40])
def test_names_are_shown_as_they_are(name: str, tmp_path: Path) -> None:
    figure = plot_metrics({name: [a_result(name)], "other": [a_result(name)]})
    texts = [text.get_text() for axes in figure.axes for text in axes.get_yticklabels()]
    assert not any(text.count("$") > text.count(r"\$") for text in texts)  # none is taken for a formula
    figure.savefig(tmp_path / "figure.svg")


def test_without_matplotlib_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"plots need matplotlib: pip install .*\[plots\]'"):
        plot_metrics([a_result()])
