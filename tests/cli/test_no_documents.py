"""Systems without documents: retrieval is not measured. An empty list is a measurement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from tests.servers import chat_server

SYSTEM = """
def text(query):
    return "a"

def without(query):
    return {"answer": "a"}

def empty(query):
    return {"answer": "a", "retrieved": []}

def sometimes(query):
    return "a" if query != "q3" else {"answer": "a", "retrieved": ["d1"]}

def sometimes_empty(query):
    return "a" if query != "q3" else ([], "a")

def mostly_fails(query):
    if query != "q3":
        raise ValueError("no")
    return "a"
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [
        {"sample_id": f"s{n}", "query": f"q{n}", "relevant_docs": ["d1"], "reference_answer": "a"}
        for n in range(6)
    ]
    Path("d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    Path("s.py").write_text(SYSTEM, encoding="utf-8")
    return tmp_path


def result(capsys: pytest.CaptureFixture[str], name: str = "recall@5") -> dict[str, Any]:
    document = json.loads(capsys.readouterr().out)
    found: dict[str, Any] = document["retrieval_metrics"][name]
    return found


def run(system: str, *flags: str) -> int:
    return main(["run", "--dataset", "d.jsonl", "--system", system, "--out", "out", "--id", "r", *flags])


@pytest.mark.parametrize(
    ("system", "value", "scored"),
    [
        ("text", None, 0),
        ("without", None, 0),
        ("empty", 0.0, 6),
        # A server that leaves an empty list out must not be better for it.
        ("sometimes", 1 / 6, 6),
        ("sometimes_empty", 0.0, 6),
        ("mostly_fails", None, 0),
    ],
)
@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_recall_of_functions(
    system: str,
    value: float | None,
    scored: int,
    executor: str,
    work: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run(f"s.py:{system}", "--executor", executor, "--json")
    found = result(capsys)
    assert found["value"] == (None if value is None else pytest.approx(value))
    assert found["details"]["num_samples"] == scored
    assert main(["show", "r", "--verify", "--out", "out"]) == 0
    capsys.readouterr()
    main(["score", "--run", "r", "--metrics", "mrr", "--out", "out", "--json"])
    assert result(capsys, "mrr")["value"] == (None if value is None else pytest.approx(value))


@pytest.mark.parametrize(
    ("reply", "value"), [({}, None), ({"documents": None}, None), ({"documents": []}, 0.0)]
)
def test_recall_of_a_server(
    reply: dict[str, Any], value: float | None, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with chat_server(says=lambda body: {"answer": "a", **reply}, bare=True) as server:
        assert run(f"http:{server.url}/ask", "--json") == 0
    assert result(capsys)["value"] == value


@pytest.mark.parametrize(("more", "value"), [({}, None), ({"retrieved": []}, 0.0)])
def test_recall_of_predictions(
    more: dict[str, Any], value: float | None, work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [json.dumps({"sample_id": f"s{n}", "answer": "a", **more}) for n in range(6)]
    Path("p.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert main(["score", "--dataset", "d.jsonl", "--outputs", "p.jsonl", "--out", "out", "--json"]) == 0
    assert result(capsys)["value"] == value
