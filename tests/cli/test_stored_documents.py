"""auepora show on experiments, and the benchmark file that it writes of a run."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from auepora_eval.cli.main import main

Say = Callable[..., tuple[str, str]]
RUNS = Path("data/evaluation/results")


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Say:
    monkeypatch.chdir(tmp_path)

    def run(*words: str, code: int = 0) -> tuple[str, str]:
        capsys.readouterr()
        assert main(list(words)) == code
        shown = capsys.readouterr()
        return " ".join(shown.out.split()), shown.err

    return run


@pytest.fixture(scope="module")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the bundled experiment was run."""
    folder = tmp_path_factory.mktemp("experiment")
    with contextlib.chdir(folder):
        assert main(["experiment", "demo"]) == 0
    return folder


@pytest.fixture
def experiment(bundled: Path, tmp_path: Path) -> Path:
    """The results of the bundled experiment, in a folder of the test."""
    shutil.copytree(bundled / RUNS, tmp_path / RUNS)
    return next(path.relative_to(tmp_path) for path in (tmp_path / RUNS).glob("ab_test_*.results.json"))


def test_an_experiment_is_shown(say: Say, experiment: Path) -> None:
    document = json.loads(experiment.read_text(encoding="utf-8"))
    out, err = say("show", document["evaluation_id"])
    assert f"Winner: {document['winner']}." in out
    assert " ".join(document["reason"].split()) in out
    assert all(variant["run"] in out for variant in document["variants"].values())
    assert "another tool" not in err
    first = next(iter(document["variants"].values()))["run"]
    assert f"of experiment {document['experiment_id']}: " in say("show", first)[0]


def test_benchmark_file_of_a_run(say: Say) -> None:
    lines = [{"sample_id": str(n), "timings": {"end_to_end": n}, "answer": "x"} for n in (1, 2, 3, 4)]
    lines.append({"sample_id": "5", "error": {"type": "TimeoutError", "message": "late"}})
    samples = [{"sample_id": line["sample_id"], "query": "q"} for line in lines]
    for name, records in (("d", samples), ("p", lines)):
        Path(f"{name}.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    say("score", *"--dataset d.jsonl --outputs p.jsonl --metrics mean_latency --id r".split(), code=3)
    say("show", "r", "--benchmark", "r.benchmark.json")
    document = json.loads(Path("r.benchmark.json").read_text(encoding="utf-8"))
    times = {"average_time": 2.5, "median_time": 2.5, "p95_time": 3.85, "p99_time": 3.97}
    measured = {"total_queries": 5, "failed_queries": 1, **times}
    assert document["query_processing"] == pytest.approx(measured)
    assert document["summary"]["evaluation_id"] == "r"
    assert "valid" in say("dataset", "check", "r.benchmark.json")[0]
    for made in ("r.benchmark.parquet", "r.benchmark.h5", "again.benchmark.json"):
        say("dataset", "convert", "r.benchmark.json", made)
    assert json.loads(Path("again.benchmark.json").read_text(encoding="utf-8")) == document
    assert "exists already" in say("show", "r", "--benchmark", "r.benchmark.json", code=4)[1]
