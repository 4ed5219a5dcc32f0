"""Spans of a stored run can be written or sent afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auepora_eval.cli.main import main
from tests.servers import chat_server

SYSTEM = """
from pathlib import Path

def answers(query):
    with Path("asked").open("a") as file:
        file.write(query + "\\n")
    return "a"
"""
RUN = "run --dataset d.jsonl --system calm.py:answers --metrics exact_match --out out".split()


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [{"sample_id": f"s{n}", "query": f"q{n}", "reference_answer": "a"} for n in range(3)]
    Path("d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    Path("calm.py").write_text(SYSTEM, encoding="utf-8")
    return tmp_path


def spans(path: str) -> int:
    documents = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    return sum(len(s["spans"]) for d in documents for r in d["resourceSpans"] for s in r["scopeSpans"])


def test_the_spans_of_a_stored_run_can_be_written(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "--id", "r", "--spans", "first.jsonl"]) == 0
    assert spans("first.jsonl") == 3 + 2
    capsys.readouterr()
    assert main(["show", "r", "--out", "out", "--spans", "later.jsonl"]) == 0
    said = capsys.readouterr()
    assert "exact_match" in said.out
    assert "spans: 5 in later.jsonl" in said.err
    assert spans("later.jsonl") == 5
    assert main(["show", "r", "--out", "out", "--spans", "later.jsonl"]) == 4
    assert main(["show", "r", "--out", "out", "--spans", "later.jsonl", "--force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["evaluation_id"] == "r"


def test_spans_can_be_sent_to_a_collector(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "--id", "r"]) == 0
    with chat_server() as server:
        assert main(["show", "r", "--out", "out", "--spans", f"{server.url}/traces"]) == 0
    assert len(server.requests) == 1
    assert f"spans: 5 in {server.url}/traces" in capsys.readouterr().err


def test_spans_cross_no_network_unencrypted(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "--id", "r", "--spans", "http://collector.example:4318/v1/traces"]) != 0
    assert "unencrypted" in capsys.readouterr().err
    assert not Path("asked").exists()  # before the first call
