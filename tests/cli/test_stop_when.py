"""Early stopping (`stop_when: clear`): output, and later commands on the run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from tests.builders import plan

Auepora = Callable[..., tuple[str, str]]
DEMO = ("--dataset", "demo", "--system", "auepora_eval.demo.systems:bm25", "--metrics", "recall@5,hit@5")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of all samples to compare with, and one that stops early."""
    folder = tmp_path_factory.mktemp("runs")
    early = plan(folder, stop_when="clear", min=["recall@5=0.3"])
    out = ("--out", str(folder), "--json")
    assert main(["run", *DEMO, "--id", "base", *out]) == 0
    assert main(["run", *DEMO, "--id", "early", *early, *out]) == 0
    return folder


@pytest.fixture
def auepora(runs: Path, capsys: pytest.CaptureFixture[str]) -> Auepora:
    def run(*words: str, code: int = 0) -> tuple[str, str]:
        capsys.readouterr()
        assert main([*words, "--out", str(runs)]) == code
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err
        return " ".join(shown.out.split()), " ".join(shown.err.split())

    return run


def stopping(runs: Path, name: str) -> dict[str, Any]:
    document = json.loads((runs / f"{name}.results.json").read_text(encoding="utf-8"))
    found: dict[str, Any] = document["metadata"]["stopping"]
    return found


def test_report(auepora: Auepora, runs: Path) -> None:
    early = plan(runs, stop_when="clear", min=["recall@5=0.3"])
    out, err = auepora("run", *DEMO, *early, "--id", "again", "--concurrency", "4")
    assert "samples run in random order (seed 0)" in err
    assert "decided: recall@5 at least 0.3" in err
    assert "Stopped early, after" in out
    assert "recall@5 at least 0.3: passed" in out
    assert "do not hold here" in out
    told = stopping(runs, "again")
    assert told == stopping(runs, "early")
    assert told["stopped_early"]
    assert told["samples_used"] < told["samples_in_dataset"] == 160
    assert told["goals"][0]["outcome"] == "passed"


def test_stopped_run_is_marked_in_every_command(auepora: Auepora, runs: Path) -> None:
    assert "Stopped early, after" in auepora("show", "early")[0]
    assert "ok" in auepora("show", "early", "--verify")[0]
    assert "Stopped early, after" in auepora("show", "early", "--markdown", "-")[0]
    page = runs / "early.html"
    auepora("show", "early", "--html", str(page))
    assert "Stopped early, after" in page.read_text(encoding="utf-8")
    auepora("score", "--run", "early", "--metrics", "mrr", "--id", "more")
    document = json.loads((runs / "more.results.json").read_text(encoding="utf-8"))
    mrr = document["retrieval_metrics"]["mrr"]
    assert mrr["details"]["interval_method"].startswith("confidence sequence")
    assert document["metadata"]["stopping"]["stopped_early"]
    assert "ok" in auepora("show", "more", "--verify")[0]


def test_stopped_run_is_not_compared_as_complete(auepora: Auepora) -> None:
    _, err = auepora("compare", "base", "early", code=2)
    assert "early stopped after" in err
    assert "--allow-mismatch" in err
    assert "its own verdict holds" in auepora("compare", "base", "early", "--allow-mismatch", "--json")[0]


def test_resume_keeps_the_stopping_rule(auepora: Auepora, runs: Path) -> None:
    (runs / "early.results.json").rename(runs / "early.gone")
    try:
        out, _ = auepora("run", "--resume", "early")
        assert "Stopped early, after" in out
    finally:
        (runs / "early.gone").unlink()


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"min": "recall@5=0.5"}, "min is for early stopping: add 'stop_when: clear'"),
        ({"stop_when": "clear"}, "stop_when needs a goal: give min, max or baseline"),
        ({"stop_when": "clear", "min": "recall@5=high"}, "has no number"),
        ({"stop_when": "clear", "min": "mrr=0.5"}, "mrr is to become clear, but is not measured"),
        ({"stop_when": "clear", "baseline": "base"}, "baseline needs the metric that decides: add stop_on"),
        ({"stop_when": "clear", "margin": "0.1"}, "margin and stop_on need a baseline"),
    ],
)
def test_bad_goals(auepora: Auepora, runs: Path, keys: dict[str, object], told: str) -> None:
    _, err = auepora("run", *DEMO, "--id", "refused", *plan(runs, **keys), code=2)
    assert told in err
    assert not (runs / "refused.results.json").exists()
