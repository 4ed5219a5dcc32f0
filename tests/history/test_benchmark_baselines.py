"""Baselines and the rules: what is a regression, which way, and how grave."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.errors import DataError
from auepora_eval.history.bench import (
    THRESHOLDS,
    Baseline,
    Measurement,
    measurements,
    pooled,
    read_baselines,
    time_of,
    with_recordings,
    write_baselines,
)
from auepora_eval.history.bench_report import recording, save_recording
from auepora_eval.history.bench_rules import regressions
from auepora_eval.io.schema.validate import DataFormatValidator
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.runs.store.storage import EvaluationResultsStorage
from tests.builders import a_dataset, a_sample, an_output

BEFORE = Measurement("op", 20, 1.0, 0.1, 100.0, 10.0, timestamp="2026-03-01T00:00:00Z", source="before")
NOW = replace(BEFORE, timestamp="2026-03-03T00:00:00Z", source="now")
EXPERTS = {"routing_accuracy": 0.8, "gate_f1": 0.8, "rerank_gain": 0.8, "moe_latency": 1.0}


def judged(now: Measurement, before: Measurement = BEFORE) -> dict[str, tuple[str, tuple[str, ...]]]:
    baselines = {"op": Baseline("op", (before,))}
    found = regressions([now], baselines, alpha=None)
    return {one.quantity: (one.severity, one.rules) for one in found}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({}, {}, id="nothing changed"),
        pytest.param({"mean_duration": 1.09}, {}, id="9% slower"),
        pytest.param({"mean_duration": 1.15}, {"duration": ("medium", ("relative",))}, id="15% slower"),
        pytest.param(
            {"mean_duration": 1.25}, {"duration": ("medium", ("sigma", "relative"))}, id="2.5 sigma"
        ),
        pytest.param({"mean_duration": 1.45}, {"duration": ("high", ("sigma", "relative"))}, id="45% slower"),
        pytest.param(
            {"mean_duration": 1.6},
            {"duration": ("critical", ("sigma", "relative", "factor"))},
            id="60% slower",
        ),
        pytest.param({"mean_duration": 0.2}, {}, id="five times as fast"),
        pytest.param({"mean_memory": 119.0}, {}, id="19% more memory"),
        pytest.param({"mean_memory": 121.0}, {"memory": ("high", ("factor",))}, id="21% more memory"),
        pytest.param({"mean_memory": 10.0}, {}, id="less memory"),
        pytest.param({"mean_memory": None}, {}, id="memory was not measured"),
        pytest.param({"throughput": 9.2}, {}, id="8% less throughput"),
        pytest.param({"throughput": 8.5}, {"throughput": ("medium", ("relative",))}, id="15% less"),
        pytest.param({"throughput": 7.0}, {"throughput": ("high", ("relative",))}, id="30% less"),
        pytest.param({"throughput": 4.0}, {"throughput": ("critical", ("relative",))}, id="60% less"),
        pytest.param({"throughput": 30.0}, {}, id="three times the throughput"),
    ],
)
def test_the_rules(changes: dict[str, Any], expected: dict[str, Any]) -> None:
    assert judged(replace(NOW, **changes)) == expected


@pytest.mark.parametrize(
    ("name", "value", "severity"),
    [
        ("routing_accuracy", 0.77, None),
        ("routing_accuracy", 0.75, "medium"),
        ("routing_accuracy", 0.99, None),
        ("gate_f1", 0.73, None),
        ("gate_f1", 0.70, "medium"),
        ("rerank_gain", 0.70, None),
        ("rerank_gain", 0.66, "medium"),
        ("rerank_gain", 0.3, "critical"),
        ("moe_latency", 1.19, None),
        ("moe_latency", 1.21, "medium"),
        ("moe_latency", 0.5, None),  # the sign that the rule is known to have had wrong
        ("moe_latency", 1.0, None),
    ],
)
def test_a_mixture_of_experts(name: str, value: float, severity: str | None) -> None:
    now = replace(NOW, quantities={**EXPERTS, name: value})
    found = judged(now, replace(BEFORE, quantities=EXPERTS))
    assert found == ({} if severity is None else {name: (severity, ("relative",))})


def test_sigma_looks_at_the_last_seven_days() -> None:
    now = replace(NOW, mean_duration=1.09)
    narrow = replace(BEFORE, std_duration=0.02)
    assert judged(now, narrow) == {"duration": ("high", ("sigma",))}
    assert judged(now, replace(narrow, timestamp="2026-02-20T00:00:00Z")) == {}
    assert judged(now, replace(narrow, count=9)) == {}
    assert judged(now, replace(narrow, std_duration=None)) == {}


def test_what_may_be_chance_is_low() -> None:
    baselines = {"op": Baseline("op", (replace(BEFORE, std_duration=1.0),))}
    slower = replace(NOW, mean_duration=1.6, std_duration=1.0)
    (found,) = regressions([slower], baselines)
    assert (found.severity, found.rules[-1]) == ("low", "may be chance")
    assert found.p_value == pytest.approx(0.0656, abs=1e-3)  # t = 0.6 / sqrt(0.1) on 38 degrees
    (sure,) = regressions(
        [replace(slower, count=2000)], {"op": Baseline("op", (replace(BEFORE, count=2000),))}
    )
    assert sure.severity == "critical"


def test_a_baseline_needs_some_samples_first() -> None:
    few = {"op": Baseline("op", (replace(BEFORE, count=4),))}
    slow = replace(NOW, mean_duration=9.0)
    assert few["op"].lacking_samples() == 1
    assert regressions([slow], few) == []
    enough = replace(few["op"], thresholds={**few["op"].thresholds, "min_samples_for_baseline": 4})
    assert regressions([slow], {"op": enough})
    assert regressions([replace(slow, operation="new")], few) == []


@given(groups=st.lists(st.lists(st.floats(0.01, 100), min_size=1, max_size=8), min_size=1, max_size=5))
def test_a_pool_is_what_all_samples_together_give(groups: list[list[float]]) -> None:
    parts = [
        Measurement("op", len(g), fmean(g), stdev(g) if len(g) > 1 else None, throughput=len(g) / sum(g))
        for g in groups
    ]
    every = [value for group in groups for value in group]
    found = pooled(parts)
    assert found.count == len(every)
    assert found.mean_duration == pytest.approx(fmean(every))
    assert found.throughput == pytest.approx(len(every) / sum(every))
    if len(every) > 1:
        assert found.std_duration == pytest.approx(stdev(every), abs=1e-6)


def test_the_file_of_baselines(tmp_path: Path) -> None:
    path = tmp_path / "b.benchmark.json"
    assert read_baselines(path) == {}
    memory = replace(NOW, mean_duration=3.0, mean_memory=None, quantities=EXPERTS)
    kept = with_recordings({}, [BEFORE, memory, memory])
    assert len(kept["op"].recordings) == 2  # the same one is not recorded twice
    kept["op"] = replace(kept["op"], history=(replace(BEFORE, mean_duration=9.0),))
    write_baselines(kept, path)
    assert read_baselines(path) == kept
    document = json.loads(path.read_text(encoding="utf-8"))
    assert DataFormatValidator().validate_benchmark(document) == []
    entry = document["op"]
    assert (entry["mean_duration"], entry["sample_count"], entry["mean_memory"]) == (2.0, 40, 100.0)
    assert entry["last_updated"] == NOW.timestamp
    assert entry["thresholds"] == THRESHOLDS


def test_baselines_of_another_tool_are_one_recording(tmp_path: Path) -> None:
    path = tmp_path / "b.json"
    theirs = {
        "operation": "op",
        "mean_duration": 1.0,
        "std_duration": 0.1,
        "mean_memory": 50,
        "sample_count": 30,
        "last_updated": 1772323200,
        "thresholds": {"duration_regression_threshold": 3.0},
    }
    path.write_text(json.dumps({"op": theirs}), encoding="utf-8")
    baseline = read_baselines(path)["op"]
    assert (baseline.expected.count, baseline.thresholds["memory_regression_threshold"]) == (30, 1.2)
    assert [one.rules for one in regressions([replace(NOW, mean_duration=1.6)], {"op": baseline})] == [
        ("relative",),
        ("factor",),
    ]


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ([{"operation": "op", "timestamp": 0, "duration": 1.0}], "but no baselines"),
        ({"op": {"mean_duration": 1, "sample_count": 1, "recordings": [3]}}, "'sample_count' is missing"),
        (
            {"op": {"mean_duration": 1, "sample_count": 1, "history": [{"sample_count": 1}]}},
            "'mean_duration' is missing",
        ),
        (
            {"op": {"mean_duration": 1, "sample_count": 1, "throughput": "x"}},
            "throughput: a number or null",
        ),
        ({"op": {"mean_duration": 1, "sample_count": 1, "quantities": {"a": "x"}}}, "a number was expected"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, document: Any, says: str) -> None:
    path = tmp_path / "b.benchmark.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(DataError, match=says):
        read_baselines(path)


# Where measurements come from


def test_a_run_is_measured_by_its_timings(tmp_path: Path) -> None:
    def system(query: str) -> Any:
        if query == "q 3":
            raise RuntimeError("down")
        return an_output("a", "x", timings={"end_to_end": 0.1 * (1 + int(query[-1])), "retrieval": 0.05})

    storage = EvaluationResultsStorage(tmp_path)
    dataset = a_dataset(*(a_sample(f"s{n}", f"q {n}", relevant="a") for n in range(4)))
    plan = EvaluationPlan(parse_metrics("recall@1"))
    AueporaEvaluator(system, plan).run(dataset, evaluation_id="r", storage=storage)
    found = {one.operation: one for one in measurements("r", storage)}
    assert set(found) == {"end_to_end", "retrieval"}
    whole = found["end_to_end"]
    assert (whole.count, whole.failed, whole.source) == (3, 1, "r")
    assert whole.mean_duration == pytest.approx(0.2)
    assert whole.std_duration == pytest.approx(0.1)
    assert whole.throughput is None  # it says 0.6 s of work, but the clock ran for less
    assert whole.mean_memory is not None
    assert found["retrieval"].mean_memory is None
    assert (found["retrieval"].failed, found["retrieval"].throughput) == (0, None)


def written(tmp_path: Path, name: str, document: Any) -> str:
    (tmp_path / name).write_text(json.dumps(document), encoding="utf-8")
    return str(tmp_path / name)


def test_records_suites_and_results_are_measured(tmp_path: Path) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    records = [
        {"operation": "op", "timestamp": 1772323200, "duration": 1.0, "memory_usage": 10},
        {"operation": "op", "timestamp": "2026-03-02T00:00:00Z", "duration": 3.0},
        {"operation": "op", "timestamp": "2026-03-01T00:00:00Z", "duration": 99.0, "success": False},
        {"operation": "lost", "timestamp": 0, "duration": 9.0, "success": False},
    ]
    one, lost = measurements(written(tmp_path, "r.benchmark.json", records), storage)
    assert (lost.operation, lost.count, lost.failed) == ("lost", 0, 1)
    assert (one.count, one.failed, one.mean_duration, one.mean_memory) == (2, 1, 2.0, 10)
    assert one.timestamp == "2026-03-02T00:00:00Z"
    suite = {
        "query_processing": {"total_queries": 50, "average_time": 0.5, "throughput": 7.5},
        "moe_performance": {"routing_accuracy": 0.9, "notes": "x"},
        "resource_usage": {"memory_mb": {"mean": 512}},
        "summary": {"benchmark_timestamp": "2026-03-01T00:00:00Z"},
    }
    (one,) = measurements(written(tmp_path, "s.benchmark.json", suite), storage)
    assert (one.operation, one.count, one.throughput, one.mean_memory) == ("query_processing", 50, 7.5, 512)
    assert one.quantities == {"routing_accuracy": 0.9}
    results = {
        "evaluation_id": "foreign",
        "timestamp": "2026-03-01T00:00:00Z",
        "summary": {"successful_queries": 9, "failed_queries": 1, "total_evaluation_time_seconds": 3},
        "performance_metrics": {"latency_stats": {"mean": 250}},
    }
    (one,) = measurements(written(tmp_path, "f.results.json", results), storage)
    assert (one.count, one.mean_duration, one.throughput, one.failed) == (9, 0.25, 3.0, 1)


@pytest.mark.parametrize("name", ["benchmark_weekly.results.json", "weekly.benchmark.json"])
def test_what_is_written_is_valid_and_read_again(tmp_path: Path, name: str) -> None:
    slow = replace(NOW, mean_duration=2.0, quantities=EXPERTS)
    baselines = {"op": Baseline("op", (BEFORE,))}
    document = recording([slow], baselines, regressions([slow], baselines))
    path = save_recording(document, tmp_path / name)
    stored = json.loads(path.read_text(encoding="utf-8"))
    check = DataFormatValidator()
    validate = check.validate_benchmark if "weekly.b" in name else check.validate_evaluation_results
    assert validate(stored) == []
    (again,) = measurements(str(path), EvaluationResultsStorage(tmp_path))
    assert (again.mean_duration, again.count, again.quantities) == (2.0, 20, EXPERTS)
    assert document["worst_severity"] == "critical"


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({"op": {"mean_duration": 1, "sample_count": 1}}, "no measurements"),
        ({"query_processing": {}, "summary": {}}, "needs average_time"),
        ({"metadata": {}, "summary": {}, "detailed_results": {"op": 3}}, "'sample_count' is missing"),
        ([], "nothing was timed"),
    ],
)
def test_files_that_measure_nothing(tmp_path: Path, document: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        measurements(written(tmp_path, "x.benchmark.json", document), EvaluationResultsStorage(tmp_path))


@pytest.mark.parametrize("stamp", [None, "soon", float("inf"), 1e300, [], "9999999-01-01"])
def test_times_that_are_none(stamp: Any) -> None:
    assert time_of(stamp) is None
