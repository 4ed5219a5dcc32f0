"""auepora bench-record: baselines and reported regressions."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from auepora_eval.cli.main import main

Record = Callable[..., tuple[str, str]]


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Record:
    monkeypatch.chdir(tmp_path)

    def run(*words: str, code: int = 0) -> tuple[str, str]:
        capsys.readouterr()
        assert main(["bench-record", *words]) == code
        shown = capsys.readouterr()
        return " ".join(shown.out.split()), shown.err

    return run


def records(name: str, seconds: Sequence[float], day: int) -> str:
    """A file of benchmark records, one a duration."""
    rows = [
        {
            "operation": "search",
            "timestamp": f"2026-03-{day:02}T00:00:00Z",
            "duration": one,
            "memory_usage": 100,
        }
        for one in seconds
    ]
    Path(name).write_text(json.dumps(rows), encoding="utf-8")
    return name


STEADY = [1.0, 1.02, 0.98, 1.01, 0.99] * 2


def test_baselines_grow_until_a_regression(record: Record) -> None:
    out, err = record(records("1.benchmark.json", STEADY, 1), "--baselines", "b.json")
    assert "search 10" in out
    assert out.endswith("new")
    assert "recorded in b.json" in err
    assert record(records("2.benchmark.json", STEADY, 2), "--baselines", "b.json")[0].endswith("ok")
    kept = json.loads(Path("b.json").read_text(encoding="utf-8"))
    assert kept["search"]["sample_count"] == 20
    slow = records("3.benchmark.json", [1.3 * one for one in STEADY], 3)
    out, err = record(slow, "--baselines", "b.json", code=1)
    assert "high: search: duration is 1.3, +30% against the baseline of 1. Rules: sigma, relative, p =" in out
    assert "not recorded: b.json is as it was" in err
    assert json.loads(Path("b.json").read_text(encoding="utf-8")) == kept
    record(slow, "--baselines", "b.json", "--fail-on", "critical", "--check")
    out, err = record(slow, "--baselines", "b.json", "--accept")
    assert "recorded in b.json" in err
    assert "search: a new baseline begins with 3.benchmark.json." in err
    entry = json.loads(Path("b.json").read_text(encoding="utf-8"))["search"]
    assert (entry["sample_count"], len(entry["history"])) == (10, 2)  # what was before is kept beside it
    again = records("4.benchmark.json", [1.3 * one for one in STEADY], 4)
    assert record(again, "--baselines", "b.json")[0].endswith("+0% ok")  # it is normal now


def scaled(factor: float) -> list[float]:
    return [factor * one for one in STEADY]


def test_regression_after_an_improvement_is_detected(record: Record) -> None:
    def days(*factors: float) -> None:
        Path("b.json").unlink(missing_ok=True)
        for day, factor in enumerate(factors, start=1):
            record(records(f"{day}.benchmark.json", scaled(factor), day), "--baselines", "b.json")

    days(2.5)
    better = records("2.benchmark.json", scaled(1.0), 2)
    out, err = record(better, "--baselines", "b.json", "--check")
    assert "-60% better" in out
    assert (
        "better: search: duration is 1, -60% against the baseline of 2.5. Rules: sigma, relative, fac" in out
    )
    assert "a new baseline would begin with 2.benchmark.json." in err
    document = json.loads(record(better, "--baselines", "b.json", "--json")[0])
    assert document["new_baselines"] == ["search"]
    assert [one["quantity"] for one in document["improvements"]] == ["duration"]
    out, err = record(records("3.benchmark.json", scaled(1.6), 3), "--baselines", "b.json", code=1)
    assert "critical: search: duration is 1.6, +60% against the baseline of 1." in out
    days(2.5, 1.0, 1.0)
    record(records("4.benchmark.json", scaled(1.6), 4), "--baselines", "b.json", code=1)
    days(2.5, 2.48, 2.52, 1.0, 0.7, 0.72)  # better twice
    entry = json.loads(Path("b.json").read_text(encoding="utf-8"))["search"]
    assert [round(one["mean_duration"], 2) for one in entry["recordings"]] == [0.7, 0.72]
    assert [round(one["mean_duration"], 2) for one in entry["history"]] == [2.5, 2.48, 2.52, 1.0]
    assert main(["dataset", "validate", "b.json", "--format", "benchmark"]) == 0


def test_small_improvement_starts_no_new_baseline(record: Record) -> None:
    noisy = [0.2, 2.0, 0.4, 1.4, 1.0]
    record(records("1.benchmark.json", noisy, 1), "--baselines", "b.json")
    faster = records("2.benchmark.json", [0.7 * one for one in noisy], 2)
    assert record(faster, "--baselines", "b.json")[0].endswith("ok")
    same = records("3.benchmark.json", [0.85 * one for one in noisy], 3)
    assert "new baseline" not in record(same, "--baselines", "b.json")[1]
    entry = json.loads(Path("b.json").read_text(encoding="utf-8"))["search"]
    assert (len(entry["recordings"]), "history" in entry) == (3, False)


def test_accept_records_inconclusive_changes(record: Record) -> None:
    noisy = [0.2, 2.0, 0.4, 1.4, 1.0]
    record(records("1.benchmark.json", noisy, 1), "--baselines", "b.json")
    faster = records("2.benchmark.json", [0.7 * one for one in noisy], 2)
    assert "new baseline begins with 2" in record(faster, "--baselines", "b.json", "--accept")[1]
    # An old one is taken up again, though the file has it already.
    assert "new baseline begins with 1" in record("1.benchmark.json", "--baselines", "b.json", "--accept")[1]
    assert json.loads(Path("b.json").read_text(encoding="utf-8"))["search"]["sample_count"] == 5


def test_failures_are_reported(record: Record) -> None:
    record(records("1.benchmark.json", STEADY, 1), "--baselines", "b.json")
    rows = json.loads(Path(records("2.benchmark.json", STEADY, 2)).read_text(encoding="utf-8"))
    half = [{**row, "success": number < 1} for number, row in enumerate(rows)]
    Path("half.benchmark.json").write_text(json.dumps(half), encoding="utf-8")
    out, _ = record("half.benchmark.json", "--baselines", "b.json", "--check", code=1)
    assert "search 1 9" in out
    assert "critical: search: 90% of the calls failed, 0% in the baseline. Rules: failures, p =" in out
    none = [{**row, "success": False} for row in rows] + [{**row, "operation": "other"} for row in rows]
    Path("none.benchmark.json").write_text(json.dumps(none), encoding="utf-8")
    out, err = record("none.benchmark.json", "--baselines", "b.json", "--accept", code=1)
    assert "search 0 10 n/a" in out
    assert "search: all calls failed; there is nothing to record" in err
    assert "recorded in b.json (1 of 2 operations)" in err
    document = json.loads(
        record("none.benchmark.json", "--baselines", "b.json", "--check", "--json", code=1)[0]
    )
    assert document["operations"]["search"]["mean_duration"] is None
    _, err = record(records("3.benchmark.json", STEADY, 3), "--baselines", "b.json", "--check")
    assert "in the baselines, but not measured this time: other." in err


def test_concurrent_recordings_are_all_kept(record: Record, tmp_path: Path) -> None:
    record(records("1.benchmark.json", STEADY, 1), "--baselines", "b.json")
    names = []
    for number in range(4):
        rows = json.loads(Path(records(f"p{number}.benchmark.json", STEADY, 2)).read_text(encoding="utf-8"))
        names.append(f"p{number}.benchmark.json")
        Path(names[-1]).write_text(
            json.dumps([{**row, "operation": f"op{number}"} for row in rows]), encoding="utf-8"
        )
    words = [sys.executable, "-m", "auepora_eval", "bench-record"]
    running = [
        subprocess.Popen([*words, name, "--baselines", "b.json"], stdout=subprocess.DEVNULL, cwd=tmp_path)
        for name in names
    ]
    assert [one.wait() for one in running] == [0] * len(names)
    kept = json.loads(Path("b.json").read_text(encoding="utf-8"))
    assert set(kept) == {"search", *(f"op{number}" for number in range(4))}


def test_recorded_file_is_not_recorded_again(record: Record) -> None:
    source = records("1.benchmark.json", STEADY, 1)
    record(source, "--baselines", "b.json")
    assert (
        "nothing to record: b.json has these measurements already"
        in record(source, "--baselines", "b.json")[1]
    )
    # The nightly file of the same name and stamp, but measured anew.
    records("1.benchmark.json", [1.001 * one for one in STEADY], 1)
    assert "recorded in b.json" in record(source, "--baselines", "b.json")[1]
    assert json.loads(Path("b.json").read_text(encoding="utf-8"))["search"]["sample_count"] == 20


def test_chance(record: Record) -> None:
    noisy = [0.2, 2.0, 0.4, 1.4, 1.0]
    record(records("1.benchmark.json", noisy, 1))
    slow = records("2.benchmark.json", [1.3 * one for one in noisy], 2)
    assert "low: search: duration" in record(slow, "--check")[0]
    assert "high: search: duration" in record(slow, "--check", "--ignore-chance", code=1)[0]


def test_a_baseline_of_few_samples(record: Record) -> None:
    record(records("1.benchmark.json", STEADY[:3], 1))
    slow = records("2.benchmark.json", [9.0, 9.1], 2)
    assert record(slow, "--check")[0].endswith("baseline lacks 2")


@pytest.mark.parametrize("name", ["benchmark_weekly.results.json", "weekly.benchmark.json"])
def test_reports(record: Record, name: str) -> None:
    source = records("1.benchmark.json", STEADY, 1)
    assert f"stored: {name}" in record(source, "--report", name)[1]
    assert main(["dataset", "validate", name]) == 0
    record(source, "--report", name, code=4)
    record(source, "--report", name, "--force")


def test_json_of_a_run(record: Record) -> None:
    system = "auepora_eval.demo.systems:bm25"
    run = ["run", "--dataset", "demo", "--system", system, "--metrics", "mean_latency", "--id", "monday"]
    assert main([*run, "--limit", "5"]) == 0
    document = json.loads(record("monday", "--json")[0])
    assert set(document["operations"]) == {"end_to_end", "retrieval", "generation"}
    assert document["recorded"] is True
    assert Path("data/benchmarks/performance/baselines.benchmark.json").is_file()


def test_rejected_arguments(record: Record) -> None:
    assert "No run 'nothing'" in record("nothing", code=2)[1]
    source = records("1.benchmark.json", STEADY, 1)
    assert "choose one" in record(source, "--check", "--accept", code=2)[1]
    assert "Use benchmark_w.results.json" in record(source, "--report", "w.json", code=2)[1]
    assert not Path("w.json").exists()
    assert "but no baselines" in record(source, "--baselines", source, code=2)[1]
