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


def test_a_table_with_names_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    Path("bot.csv").write_text("Question,Reply,Retrieved chunks\nWho?,Ada,['Ada']\n", encoding="utf-8")
    assert main(["score", "bot.csv"]) == 0
    assert "if one is answer, name it: --columns answer=NAME" in capsys.readouterr().err
    assert main(["score", "bot.csv", "--columns", "answer=Reply", "--metrics", "grounding_overlap"]) == 0
    Path("bot.csv").write_text("Question,Reply\nWho?,Ada\n", encoding="utf-8")
    assert main(["score", "bot.csv"]) == 2
    assert "Give --columns answer=NAME" in capsys.readouterr().err
