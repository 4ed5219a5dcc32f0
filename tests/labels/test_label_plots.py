"""The picture of a sweep."""

from __future__ import annotations

from pathlib import Path

import pytest

from auepora_eval.labels.sweep import ScoredLabels, sweep
from auepora_eval.reporting.plots import save_figure

pytest.importorskip("matplotlib", reason="plots need matplotlib")

from auepora_eval.labels.sweep import plot_sweep

DATA = ScoredLabels.of(
    ["accurate", "hallucination", "accurate", "hallucination"],
    [0.9, 0.2, 0.6, 0.7],
    scenarios=["news", "news", "$crypto$", "$crypto$"],
)


@pytest.mark.parametrize("per_scenario", [False, True])
def test_a_panel_for_each_scenario_and_the_same_bytes_twice(tmp_path: Path, per_scenario: bool) -> None:
    result = sweep(DATA, per_scenario=per_scenario)
    figure = plot_sweep(result)
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert len(shown) == (2 if per_scenario else 1)
    assert [line.get_label() for line in shown[0].lines]
    files = [save_figure(plot_sweep(result), tmp_path / f"{n}.svg") for n in (1, 2)]
    assert files[0].read_bytes() == files[1].read_bytes()
