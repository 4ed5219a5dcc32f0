"""The reliability diagram."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from auepora_eval.judges.trust.audit import Audit, audit
from auepora_eval.judges.trust.labels import Labelled
from auepora_eval.reporting.plots import save_figure

pytest.importorskip("matplotlib", reason="plots need matplotlib")

from auepora_eval.reporting.plots import plot_calibration


def test_plot_has_one_dot_per_nonempty_bin_and_is_reproducible(tmp_path: Path) -> None:
    rows = [(0.95, True), (0.95, True), (0.9, False), (0.35, False), (0.35, True), (0.0, False)]
    claims = [Labelled((), "", label, score=score) for score, label in rows]
    found = audit(claims, None, Audit(bins=4)).calibration
    assert found is not None
    figure: Any = plot_calibration("my $judge$", found)
    dots = next(line for line in figure.axes[0].lines if line.get_marker() == "o")
    assert list(dots.get_xdata()) == pytest.approx([0.0, 0.35, 2.8 / 3])
    assert list(dots.get_ydata()) == pytest.approx([0.0, 0.5, 2 / 3])
    assert [bar.get_height() for bar in figure.axes[1].patches] == [1, 2, 0, 3]
    assert "4 bins" in figure.axes[1].get_xlabel()
    files = [save_figure(plot_calibration("j", found), tmp_path / f"{n}.svg") for n in (1, 2)]
    assert files[0].read_bytes() == files[1].read_bytes()
