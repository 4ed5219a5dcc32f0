"""The picture of what can be seen over the number of samples."""

from __future__ import annotations

from pathlib import Path

import pytest

from auepora_eval.reporting.plots import save_figure
from auepora_eval.runs.power import MetricPower, PowerReport, power_from_numbers

pytest.importorskip("matplotlib", reason="plots need matplotlib")

from auepora_eval.reporting.power_plots import plot_power


def test_one_metric_has_two_lines_and_its_marks(tmp_path: Path) -> None:
    report = power_from_numbers(effect=0.03, n=400, rate=0.8)
    figure = plot_power(report)
    solid, dashed = [line for line in figure.axes[0].lines if len(line.get_xdata()) > 2][:2]  # type: ignore[arg-type]
    same, other = (list(map(float, line.get_ydata())) for line in (solid, dashed))  # type: ignore[arg-type]
    assert same == sorted(same, reverse=True)  # the more samples, the smaller
    assert all(a < b for a, b in zip(same, other, strict=True))
    marks = [line for line in figure.axes[0].lines if line.get_marker() in ("o", "D")]
    assert len(marks) == 2
    files = [save_figure(plot_power(report), tmp_path / f"{n}.svg") for n in (1, 2)]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_several_metrics_share_a_scale_and_the_others_are_named() -> None:
    metrics = [MetricPower(f"m{n}$", "", 0.1 + n, 0.2 + n, 100) for n in range(9)]
    metrics.append(MetricPower("latency", "s", 1.0, 2.0, 100))
    axes = plot_power(PowerReport(0.05, 0.005, 0.8, metrics)).axes[0]
    assert sum(len(line.get_xdata()) > 2 for line in axes.lines) == 7  # type: ignore[arg-type]
    assert "latency" in axes.get_xlabel()
    assert r"m8\$" in axes.get_xlabel()


def test_nothing_to_draw() -> None:
    with pytest.raises(ValueError, match="nothing to plot"):
        plot_power(PowerReport(0.05, 0.05, 0.8, [MetricPower("m", "", None, 0.1, 10)]))
