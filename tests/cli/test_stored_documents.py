"""auepora show and verify on experiments, recordings and benchmark files."""

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


def test_an_experiment_is_verified_by_its_runs(say: Say, experiment: Path) -> None:
    path = experiment
    name = path.name.removesuffix(".results.json")
    out, _ = say("verify", name)
    assert f"{name}: ok (" in out
    run = json.loads(path.read_text(encoding="utf-8"))["variants"]
    first, second = (variant["run"] for variant in run.values())
    (RUNS / f"{first}.results.json").unlink()
    assert f"{first}.results.json is not beside it" in say("verify", name, code=3)[0]
    changed(RUNS / f"{second}.results.json", lambda run: run["metadata"].update(dataset_sha256="0" * 64))
    assert "dataset_sha256: the file says" in say("verify", name, code=1)[0]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda found: found.update(winner="nobody we know"), "is none of the variants"),
        (lambda found: found["summary"].update(failed_queries=3), "summary: the file says"),
        (
            lambda found: next(iter(found["primary_metric_results"]["variant_results"].values())).update(
                value=0.99
            ),
            "values: the file says",
        ),
        (lambda found: found.update(evaluation_id="ab_test_other"), "evaluation_id: the file says"),
    ],
)
def test_edited_experiment_is_inconsistent(
    say: Say, experiment: Path, change: Callable[[Any], None], what: str
) -> None:
    path = experiment
    changed(path, change)
    assert what in say("verify", str(path), code=1)[0]


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
    assert "Traceback" not in say("verify", str(path), code=2)[1]
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
    for report in (*reports, "monday.benchmark.json"):
        out, err = say("verify", report)
        assert "ok (" in out
        assert "another tool" not in err
    changed(Path(reports[0]), lambda found: found["operations"]["op"].update(mean_duration=1.0))
    assert "comparisons: the file says" in say("verify", reports[0], code=1)[0]


def test_baselines_are_checked_against_their_recordings(say: Say) -> None:
    recorded("monday.benchmark.json", 1.0)
    say("bench-record", "monday.benchmark.json", "--baselines", "b.benchmark.json")
    assert "2 checks pass, 0 fail" in say("verify", "b.benchmark.json")[0]
    changed(Path("b.benchmark.json"), lambda found: found["op"].update(mean_duration=0.5))
    assert "baseline op: the file says" in say("verify", "b.benchmark.json", code=1)[0]
    changed(Path("b.benchmark.json"), lambda found: found["op"].update(mean_duration="fast"))
    assert "form: " in say("verify", "b.benchmark.json", code=1)[0]
