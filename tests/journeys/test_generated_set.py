"""A generated set, asked of a system that names whole documents: ids never meet, sources and texts do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auepora_eval.cli.main import main

RUN = "run --dataset o.jsonl --system auepora_eval.demo.systems:bm25 --metrics recall@5,span_recall@5 --force"


@pytest.fixture(autouse=True)
def generated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert main("dataset generate demo --out o.jsonl".split()) == 0
    capsys.readouterr()


def test_ids_that_never_meet_are_noted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(RUN.split()) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "No retrieved document id equals a relevant one" in printed
    assert "--match source" in printed or "--match text" in printed


@pytest.mark.parametrize("match", ["source", "text"])
def test_sources_and_texts_meet(match: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN.split(), "--match", match, "--json"]) == 0
    values = json.loads(capsys.readouterr().out)["retrieval_metrics"]
    assert values["recall@5"]["value"] > 0.9
    assert values["span_recall@5"]["value"] > 0.9
