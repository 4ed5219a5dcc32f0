"""Trends: what is joined, what is not, and what a line counts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.decide.trend import TrendLine, metric_trend, trend_tables, trend_to_dict
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.decide.nightly import store


def lines(folder: Path, name: str = "recall@1", **options: Any) -> list[TrendLine]:
    return metric_trend(EvaluationResultsStorage(folder), name, **options).lines


def test_runs_are_in_the_order_of_time(tmp_path: Path) -> None:
    for day, hits in [(3, 30), (1, 30), (2, 31), (5, 45), (4, 44)]:  # stored in any order
        store(tmp_path, day, hits)
    (line,) = lines(tmp_path)
    assert [point.timestamp[8:10] for point in line.points] == ["01", "02", "03", "04", "05"]
    assert line.points[0].interval is not None


def test_other_data_systems_and_signatures_are_not_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(tmp_path, 1, 30)
    store(tmp_path, 2, 30)
    store(tmp_path, 3, 50, size=61)
    store(tmp_path, 4, 50, name="other")
    found = lines(tmp_path)
    assert [len(line.points) for line in found] == [2, 1, 1]
    from auepora_eval.metrics.retrieval_basic import RecallAtK

    monkeypatch.setattr(RecallAtK, "signature", lambda self: {"way": "another"})
    store(tmp_path, 5, 50)
    assert [len(line.points) for line in lines(tmp_path)] == [2, 1, 1, 1]


def test_a_crash_counts_as_the_worst(tmp_path: Path) -> None:
    """What was answered is right as before, but two in five were not answered."""
    for day, failing in enumerate([0, 0, 0, 24, 24], start=1):
        store(tmp_path, day, 60, failing=failing)
    (line,) = lines(tmp_path)
    assert [point.value for point in line.points] == [1.0, 1.0, 1.0, 0.6, 0.6]
    assert [point.value_answered for point in line.points] == [1.0] * 5
    low, high = line.points[3].interval or (1.0, 1.0)
    assert low < 0.6 < high
    assert [point.failed for point in line.points] == [0, 0, 0, 24, 24]


def test_times_of_failed_calls_have_no_worst(tmp_path: Path) -> None:
    store(tmp_path, 1, 30, failing=10)
    (line,) = lines(tmp_path, "mean_latency")
    assert (line.points[0].failed, line.points[0].failures_counted) == (10, False)


def test_other_settings_are_another_system(tmp_path: Path) -> None:
    made = [{"pieces": "two"}, {"pieces": "four"}, {"pieces": "two"}]
    for day, arguments in enumerate(made, start=1):
        store(tmp_path, day, 30, arguments=arguments)
    store(tmp_path, 4, 30, top_k=3)
    trend = metric_trend(EvaluationResultsStorage(tmp_path), "recall@1")
    assert [len(line.points) for line in trend.lines] == [2, 1, 1]
    title = trend_tables(trend)[0].title
    assert "rag (top_k=5, pieces=two) on" in title
    assert len([part for part in title.split("  ") if set(part) <= set("▁▂▃▄▅▆▇█")]) == 1


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
    document: dict[str, Any] = trend_to_dict(metric_trend(EvaluationResultsStorage(tmp_path), "recall@1"))
    assert [point["value"] for point in document["lines"][0]["points"]] == [0.5, None, 0.5]
