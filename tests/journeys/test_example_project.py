"""The project in examples/: a good change passes its tests, a bad one fails the build."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from auepora_eval.cli.main import main

pytestmark = pytest.mark.full

PROJECT = Path(__file__).parents[2] / "examples" / "tool_library"
GOOD = ("STEM = False", "STEM = True")
BAD = ("LONGEST_QUESTION = 40", "LONGEST_QUESTION = 8")
SUBTLE = ("RARE_WORDS_FIRST = True", "RARE_WORDS_FIRST = False")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    ignored = shutil.ignore_patterns("__pycache__", "runs")
    return Path(shutil.copytree(PROJECT, tmp_path / "project", ignore=ignored))


def built(project: Path, change: tuple[str, str]) -> subprocess.CompletedProcess[str]:
    """Change the system, then run its tests and keep the run, as its CI does."""
    text = (project / "rag.py").read_text(encoding="utf-8")
    assert text.count(change[0]) == 1
    (project / "rag.py").write_text(text.replace(*change), encoding="utf-8")
    words = [sys.executable, "evaluate.py", "this-change"]
    subprocess.run(words, cwd=project, check=True, timeout=120)
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error"]
    return subprocess.run(words, cwd=project, capture_output=True, text=True, check=False, timeout=120)


def gated(project: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """The command that the README gives, which is the step of the workflow too."""
    monkeypatch.chdir(project)
    lines = (project / "README.md").read_text(encoding="utf-8").splitlines()
    [command] = [line.strip() for line in lines if line.strip().startswith("auepora gate ")]
    return main(shlex.split(command)[1:])


def test_good_change_passes(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = built(project, GOOD)
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout
    assert gated(project, monkeypatch) == 0


def test_bad_change_fails_the_build(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = built(project, BAD)
    assert done.returncode == 1, done.stdout
    assert "gate FAILED: this-change against baseline" in done.stdout
    assert "margin recall@3: the best estimate is a loss of 0.05 or more" in done.stdout
    assert gated(project, monkeypatch) == 1


def test_retrieval_regression_with_equal_answers_fails(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = built(project, SUBTLE)
    assert done.returncode == 1, done.stdout
    assert gated(project, monkeypatch) == 1


def test_workflow_runs_the_tested_commands() -> None:
    text = (PROJECT / ".github" / "workflows" / "evaluate.yml").read_text(encoding="utf-8")
    for words in ("pytest", "python evaluate.py this-change", "auepora gate runs/this-change.results.json"):
        assert words in text
    asked = "--rules gate.yaml --no-regression all --margin recall@3=0.05 --margin contains_answer=0.05"
    assert asked in " ".join(text.split())
    assert asked in (PROJECT / "README.md").read_text(encoding="utf-8")
