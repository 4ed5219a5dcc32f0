"""Experiments are resumed, and failures of their variants retried."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auepora_eval.cli.main import main
from auepora_eval.store.storage import EvaluationResultsStorage

Said = pytest.CaptureFixture[str]
CONFIG = """
dataset: d.jsonl
out: runs
{more}
ab_testing:
  experiment_id: ab
  variants:
    - {{variant_id: a, system: "one.py:answer"}}
    - {{variant_id: b, system: "two.py:answer"}}
  traffic_allocation: {{a: 0.5, b: 0.5}}
  primary_metric: exact_match
  min_sample_size: 2
"""
GOOD = "def answer(query):\n    return 'hello'\n"
FAILS = "def answer(query):\n    if query == 'q 3':\n        raise LookupError('no')\n    return 'hello'\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    made = ({"sample_id": f"s{n}", "query": f"q {n}", "reference_answer": "hello"} for n in range(8))
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in made), encoding="utf-8")
    (tmp_path / "one.py").write_text(GOOD, encoding="utf-8")
    (tmp_path / "two.py").write_text(FAILS, encoding="utf-8")
    (tmp_path / "e.config.yaml").write_text(CONFIG.format(more=""), encoding="utf-8")
    return tmp_path


def experiment(*words: str) -> int:
    return main(["experiment", "e.config.yaml", *words])


def failed(name: str) -> int:
    return EvaluationResultsStorage("runs").load_tally(name).failed


def test_failures_are_retried(here: Path) -> None:
    assert experiment() == 0
    assert failed("ab-b") == 1
    (here / "two.py").write_text(GOOD, encoding="utf-8")
    assert experiment("--resume") == 0
    assert failed("ab-b") == 1
    assert experiment("--resume", "--retry-failed") == 0
    assert failed("ab-b") == 0
    assert experiment("--resume", "--retry-failed") == 0


@pytest.mark.parametrize("is_finished", [True, False], ids=["finished", "unfinished"])
def test_a_variant_is_resumed_by_its_experiment(here: Path, capsys: Said, is_finished: bool) -> None:
    if not is_finished:
        (here / "e.config.yaml").write_text(CONFIG.format(more="budget_calls: 5"), encoding="utf-8")
    assert experiment() == (0 if is_finished else 1)
    name = "ab-b" if is_finished else "ab-a"
    capsys.readouterr()
    for words in [["--retry-failed"]] if is_finished else [[], ["--retry-failed"]]:
        assert main(["run", "--resume", name, "--out", "runs", *words]) == 2
        said = capsys.readouterr().err
        assert f"--resume {name}: is variant '{name[-1]}' of the experiment 'ab'." in said
        assert "Resume the experiment: auepora experiment FILE --resume --out runs" in said
    assert main(["list", "--out", "runs"]) == 0
    listed = " ".join(capsys.readouterr().out.split())
    assert ("auepora experiment FILE --resume --out runs" in listed) is not is_finished
