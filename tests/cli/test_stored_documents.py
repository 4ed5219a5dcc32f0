"""auepora show on experiments, recordings and benchmark files."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


def changed(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")


def recorded(name: str, seconds: float) -> None:
    rows = [
        {"operation": "op", "timestamp": 1772323200 + n, "duration": seconds + n / 1000} for n in range(8)
    ]
    Path(name).write_text(json.dumps(rows), encoding="utf-8")


def test_an_experiment_is_shown(say: Say, experiment: Path) -> None:
    document = json.loads(experiment.read_text(encoding="utf-8"))
    out, err = say("show", document["evaluation_id"])
    assert f"Winner: {document['winner']}." in out
    assert " ".join(document["reason"].split()) in out
    assert "(primary)" in out
    assert all(variant["run"] in out for variant in document["variants"].values())
    assert "another tool" not in err
    first = next(iter(document["variants"].values()))["run"]
    assert f"of experiment {document['experiment_id']}: " in say("show", first)[0]


def test_an_experiment_is_not_a_run_that_can_be_verified(say: Say, experiment: Path) -> None:
    assert "Only runs that auepora stored can be verified" in say("verify", str(experiment), code=2)[1]


@pytest.mark.parametrize(
    "change",
    [
        lambda found: found.pop("variants"),
        lambda found: found.update(variants=[1], primary_metric_results=3, guard_rails={}),
        lambda found: next(iter(found["variants"].values())).update(run="../../x"),
    ],
)
def test_malformed_experiment_is_an_error(say: Say, experiment: Path, change: Callable[[Any], None]) -> None:
    path = experiment
    changed(path, change)
    assert "Winner: " in say("show", str(path))[0]


def test_recordings_and_reports(say: Say) -> None:
    recorded("monday.benchmark.json", 1.0)
    recorded("tuesday.benchmark.json", 2.0)
    say("bench-record", "monday.benchmark.json", "--baselines", "b.benchmark.json")
    reports = ("benchmark_w.results.json", "w.benchmark.json")
    for report in reports:
        words = ("tuesday.benchmark.json", "--baselines", "b.benchmark.json", "--check", "--report", report)
        say("bench-record", *words, code=1)
    assert "critical: op: duration is 2.003, +100%" in say("show", f"./{reports[0]}")[0]
    assert "op 8 0 " in say("show", f"./{reports[0]}")[0]
