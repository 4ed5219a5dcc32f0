"""A run over an endpoint: failed attempts are reported, and keys are not printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import plan
from tests.servers import chat_server

LINES: list[dict[str, Any]] = [
    {
        "sample_id": f"s{n}",
        "query": f"q {n}",
        "reference_answer": {"text": "a"},
        "relevant_docs": [{"doc_id": "d1", "text": "A."}],
    }
    for n in range(6)
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words: str) -> int:
    return main(["run", "--dataset", "d.jsonl", "--metrics", "exact_match,recall@5", "--out", "out", *words])


def results(name: str) -> dict[str, Any]:
    return EvaluationResultsStorage("out").load_results(name)


def test_failed_attempts_are_reported(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    modes = ["500", "ok", "garbage", "500", "ok", "ok"]
    with chat_server(modes, says=lambda body: {"answer": "a"}, bare=True) as server:
        assert run("--system", f"http:{server.url}/ask", *plan(longest_wait=0.01), "--id", "r") == 0
        assert len(server.requests) == 6 + 3
    told = "Failed attempts: 3 (2 × http_5xx, 1 × bad_output); 2 samples were answered by a later one."
    assert told in " ".join(capsys.readouterr().out.split())
    summary = results("r")["summary"]
    assert summary["failed_attempts"] == {"http_5xx": 2, "bad_output": 1}
    assert (summary["recovered_queries"], summary["failed_queries"]) == (2, 0)
    assert main(["show", "r", "--out", "out"]) == 0
    assert told in " ".join(capsys.readouterr().out.split())


def test_key_in_a_plan_is_rejected_and_not_printed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = "dataset: d.jsonl\nsystem: http:http://127.0.0.1:9/ask\nheaders: {x-api-key: canary-7531}\n"
    (here / "plan.config.yaml").write_text(plan, encoding="utf-8")
    assert main(["run", "--config", "plan.config.yaml", "--out", "out", "--id", "r"]) == 2
    said = capsys.readouterr()
    assert "is not env:NAME" in said.err
    assert "canary-7531" not in said.out + said.err
    assert not (here / "out").exists()


@pytest.mark.parametrize("end", ["/v1", "/v1/chat/completions", "/ask#gpt-4o"])
def test_the_address_of_a_model_is_not_called_as_a_system(
    end: str, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"http://127.0.0.1:1{end}"
    assert main(["run", "--dataset", "demo", "--system", url]) == 2
    said = capsys.readouterr().err
    assert "looks like the address of a chat model" in said
    assert f"openai:{url.partition('#')[0].removesuffix('/chat/completions')}#MODEL" in said
