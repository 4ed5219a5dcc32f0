"""Trends: what is joined, what is not, and where a line changes."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from auepora_eval.reporting.plots import save_figure
from auepora_eval.reporting.trend_json import trend_to_dict
from auepora_eval.reporting.trend_plot import plot_trend
from auepora_eval.runs.storage import EvaluationResultsStorage
from auepora_eval.runs.trend import TrendLine, metric_trend
from tests.runs.nightly import store


def lines(folder: Path, name: str = "recall@1", **options: Any) -> tuple[TrendLine, ...]:
    return metric_trend(EvaluationResultsStorage(folder), name, **options).lines


def test_a_step_is_marked_where_it_is(tmp_path: Path) -> None:
    for day, hits in [(3, 30), (1, 30), (2, 31), (5, 45), (4, 44)]:  # stored in any order
        store(tmp_path, day, hits)
    (line,) = lines(tmp_path)
    assert [point.timestamp[8:10] for point in line.points] == ["01", "02", "03", "04", "05"]
    assert line.points[0].interval is not None
    (change,) = line.changes
    assert (change.place, change.evaluation_id) == (3, "rag-60-04")
    assert change.difference == pytest.approx(44.5 / 60 - (30 + 31 + 30) / 180)
    assert change.p_value < 0.05


def test_a_step_back_is_a_change_too(tmp_path: Path) -> None:
    for day, hits in enumerate([30, 30, 50, 50, 30, 30], start=1):
        store(tmp_path, day, hits)
    (line,) = lines(tmp_path)
    assert [change.place for change in line.changes] == [2, 4]
    assert [change.difference > 0 for change in line.changes] == [True, False]


def test_other_data_systems_and_signatures_are_not_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(tmp_path, 1, 30)
    store(tmp_path, 2, 30)
    store(tmp_path, 3, 50, size=61)
    store(tmp_path, 4, 50, name="other")
    found = lines(tmp_path)
    assert [len(line.points) for line in found] == [2, 1, 1]
    assert all(not line.changes for line in found)
    from auepora_eval.metrics.retrieval_basic import RecallAtK

    monkeypatch.setattr(RecallAtK, "signature", lambda self: {"way": "another"})
    store(tmp_path, 5, 50)
    assert [len(line.points) for line in lines(tmp_path)] == [2, 1, 1, 1]


def test_systems_are_joined_when_asked(tmp_path: Path) -> None:
    store(tmp_path, 1, 20)
    store(tmp_path, 2, 50, name="other")
    (line,) = lines(tmp_path, across_systems=True)
    assert (line.system, [change.place for change in line.changes]) == ("all systems", [1])


def test_a_crash_is_a_change_for_the_worse(tmp_path: Path) -> None:
    """Of what was answered more is right, but a fifth was not answered."""
    for day, failing in enumerate([0, 0, 0, 24, 24], start=1):
        store(tmp_path, day, 60, failing=failing)
    (line,) = lines(tmp_path)
    assert [point.value for point in line.points] == [1.0] * 5
    assert [point.failed for point in line.points] == [0, 0, 0, 24, 24]
    assert [change.place for change in line.changes] == [3]


def test_times_waver_from_run_to_run(tmp_path: Path) -> None:
    """Every call of a run is as slow as the others, and no sample shows that it is the machine."""
    for day, seconds in enumerate([0.10, 0.12, 0.11, 0.09, 0.13, 0.10], start=1):
        store(tmp_path, day, 30, seconds=seconds)
    (line,) = lines(tmp_path, "mean_latency")
    assert (line.changes, line.unit) == ((), "s")
    for day, seconds in enumerate([0.30, 0.32, 0.31], start=7):
        store(tmp_path, day, 30, seconds=seconds)
    (line,) = lines(tmp_path, "mean_latency")
    assert [change.place for change in line.changes] == [6]
    assert "Student" in line.method


def test_a_corpus_score_is_compared_by_its_intervals(tmp_path: Path) -> None:
    for day, hits in enumerate([5, 5, 58, 58], start=1):
        store(tmp_path, day, hits)
    (line,) = lines(tmp_path, "bleu")
    assert [change.place for change in line.changes] == [2]
    assert line.method.startswith("by the intervals")


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    store(tmp_path, 1, 30, metrics="mrr")
    store(tmp_path, 2, 30)
    (tmp_path / "x.results.json").write_text("{", encoding="utf-8")
    (tmp_path / "ab_test_e.results.json").write_text(
        '{"evaluation_id": "ab_test_e", "_metadata": {"evaluation_type": "ab_test"}}', encoding="utf-8"
    )
    found = metric_trend(EvaluationResultsStorage(tmp_path), "recall@1")
    assert set(found.left_out) == {"rag-60-01.results.json", "x.results.json"}
    assert found.left_out["rag-60-01.results.json"] == "has no recall@1"


def test_a_run_that_measured_nothing_has_no_value(tmp_path: Path) -> None:
    for day, failing in enumerate([0, 60, 0], start=1):
        store(tmp_path, day, 30, failing=failing)
    (line,) = lines(tmp_path)
    assert math.isnan(line.points[1].value)
    document = trend_to_dict(metric_trend(EvaluationResultsStorage(tmp_path), "recall@1"))
    assert [point["value"] for point in document["lines"][0]["points"]] == [0.5, None, 0.5]


def test_the_plot(tmp_path: Path) -> None:
    for day, hits in enumerate([30, 30, 50], start=1):
        store(tmp_path, day, hits)
    trend = metric_trend(EvaluationResultsStorage(tmp_path), "recall@1")
    figure = plot_trend(trend)
    assert [panel.get_title(loc="left") for panel in figure.axes] == ["rag on small"]
    dots = next(one for one in figure.axes[0].get_lines() if one.get_marker() == "o")
    assert np.asarray(dots.get_ydata()) == pytest.approx([0.5, 0.5, 50 / 60])
    assert "+0.333" in figure.axes[0].texts[0].get_text()
    assert save_figure(figure, tmp_path / "t.png").stat().st_size > 10_000
    with pytest.raises(ValueError, match="nothing to plot"):
        plot_trend(replace(trend, lines=()))
