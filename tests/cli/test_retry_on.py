"""retry_on: custom errors are retried, now and on resume."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auepora_eval.cli.main import main
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import plan

SYSTEM = """
from pathlib import Path


class Loading(LookupError):
    pass


def answer(query):
    asked = Path("asked")
    asked.write_text(asked.read_text() + "x" if asked.exists() else "x")
    if len(asked.read_text()) <= int(Path("failing").read_text()):
        raise Loading("the model is loading")
    return "a"
"""
RUN = ["run", "--dataset", "d.jsonl", "--system", "mine.py:answer", "--metrics", "exact_match", "--out", "r"]
PATIENT: dict[str, object] = {"retries": 2, "longest_wait": 0.001}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    lines = [{"sample_id": f"s{n}", "query": f"q {n}", "reference_answer": {"text": "a"}} for n in range(3)]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (tmp_path / "mine.py").write_text(SYSTEM, encoding="utf-8")
    (tmp_path / "failing").write_text("2", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", ["Loading", "mine.Loading", "KeyError,LookupError"])
def test_named_error_is_retried(here: Path, name: str) -> None:
    assert main([*RUN, *plan(**PATIENT, retry_on=name), "--id", "x"]) == 0
    assert len((here / "asked").read_text()) == 5


def test_resume_retries_named_errors(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "failing").write_text("9", encoding="utf-8")
    assert main([*RUN, *plan(**PATIENT, retry_on="Loading"), "--id", "x"]) == 3
    (here / "failing").write_text("0", encoding="utf-8")
    assert main(["run", "--resume", "x", "--out", "r"]) == 0
    assert "3 of them failed and are retried" in capsys.readouterr().err
    header = EvaluationResultsStorage("r").state("x").header
    assert header is not None
    assert header["configuration"]["retry_on"] == "Loading"
