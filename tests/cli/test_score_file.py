"""`auepora score FILE`: questions and answers in one file need no flag."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auepora_eval.cli.main import main

ROWS = [
    {"question": "Who?", "ground_truth": "Ada", "answer": "Ada"},
    {"question": "What?", "ground_truth": "Bee"},
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.json").write_text(json.dumps([{"answer": "Cee", **row} for row in ROWS]), encoding="utf-8")


@pytest.mark.parametrize("words", [["rows.json"], ["--dataset", "rows.json"]])
def test_a_file_alone_is_scored(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", *words, "--metrics", "exact_match", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["answer_quality_metrics"]["exact_match"]["value"] == 0.5


@pytest.mark.parametrize("words", [[], ["rows.json", "--run", "r"], ["rows.json", "--dataset", "rows.json"]])
def test_one_thing_is_scored(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score", *words]) == 2
    assert "--dataset" in capsys.readouterr().err
