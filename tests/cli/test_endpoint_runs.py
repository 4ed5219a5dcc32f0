"""A run over an endpoint: failed attempts, unstored flags and missing values."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from auepora_eval.core.scoring import Tally
from auepora_eval.core.types import Failure
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import an_output, plan
from tests.servers import chat_server

DOCUMENTS = [{"id": "d1", "text": "A.", "score": 0.9}, {"id": "d2", "text": "B."}]
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
    assert told in capsys.readouterr().out
    summary = results("r")["summary"]
    assert summary["failed_attempts"] == {"http_5xx": 2, "bad_output": 1}
    assert (summary["recovered_queries"], summary["failed_queries"]) == (2, 0)
    assert main(["show", "r", "--out", "out"]) == 0
    assert told in capsys.readouterr().out


def test_no_retry_no_report() -> None:
    records = [{"attempt": 1, "kind": "timeout"}, {"attempt": 2, "kind": "timeout"}]
    once = an_output("", "", error=Failure("TimeoutError", "slow", 1.0), extra={"attempts": records[:1]})
    twice = an_output("", "", error=Failure("TimeoutError", "slow", 1.0), extra={"attempts": records})
    cached = an_output("a", "yes", extra={"attempts": records, "cached": True})
    strange = an_output("a", "yes", extra={"attempts": "three"})
    assert not Tally().add([once, cached, strange]).tried_again
    assert Tally().add([twice]).tried_again
    assert Tally().add([once, twice]).failed_attempts == Counter(timeout=3)


def test_missing_score_is_stored_as_none(here: Path) -> None:
    with chat_server(says=lambda body: {"answer": "a", "documents": DOCUMENTS}, bare=True) as server:
        words = ("--system", f"http:{server.url}/ask", "--id", "r", "--spans", "s.jsonl", "--spans-content")
        assert run(*words) == 0
    assert results("r")["query_results"][0]["retrieval_results"]["relevance_scores"] == [0.9, None]
    assert r"{\"id\":\"d2\",\"content\":\"B.\"}" in (here / "s.jsonl").read_text(encoding="utf-8")
    assert main(["show", "r", "--verify", "--out", "out"]) == 0
    assert main(["score", "--run", "r", "--metrics", "recall@1", "--out", "out"]) == 0
    outputs = EvaluationResultsStorage("out").load_run("r").outputs
    assert [(hit.score, hit.rank) for hit in outputs[0].retrieved] == [(0.9, 1), (0.5, 2)]


def test_resume_command_has_unstored_flags(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with chat_server(says=lambda body: {"answer": "a"}, bare=True) as server:
        words = ("--budget-calls", "2", "--spans", "my spans.jsonl", "--spans-content", "--id", "r")
        run("--system", f"http:{server.url}/ask", *words)
        line = "resume: auepora run --resume r --out out --spans 'my spans.jsonl' --spans-content\n"
        assert line in capsys.readouterr().err


def test_headers_and_request_fields_in_a_plan(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY", "canary-7531")
    with chat_server(says=lambda body: "a") as server:
        plan = f"""dataset: d.jsonl
system: openai:{server.url}#m
metrics: [exact_match]
headers: {{x-api-key: "env:GATEWAY"}}
request: {{temperature: null, max_tokens: 50}}
"""
        (here / "plan.config.yaml").write_text(plan, encoding="utf-8")
        assert main(["run", "--config", "plan.config.yaml", "--out", "out", "--id", "r"]) == 0
        assert {headers["x-api-key"] for headers in server.headers} == {"canary-7531"}
        assert all(sent["max_tokens"] == 50 and "temperature" not in sent for sent in server.requests)
    stored = results("r")["configuration"]
    assert stored["headers"] == {"x-api-key": "env:GATEWAY"}
    files = [path for path in (here / "out").rglob("*") if path.is_file()]
    assert files
    assert not any(b"canary-7531" in path.read_bytes() for path in files)


def test_key_in_a_plan_is_rejected_and_not_printed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = "dataset: d.jsonl\nsystem: http:http://127.0.0.1:9/ask\nheaders: {x-api-key: canary-7531}\n"
    (here / "plan.config.yaml").write_text(plan, encoding="utf-8")
    assert main(["run", "--config", "plan.config.yaml", "--out", "out", "--id", "r"]) == 2
    said = capsys.readouterr()
    assert "is not env:NAME" in said.err
    assert "canary-7531" not in said.out + said.err
    assert not (here / "out").exists()


@pytest.mark.parametrize(("given", "measured"), [(False, False), (True, True)])
def test_system_without_documents_has_no_recall(here: Path, given: bool, measured: bool) -> None:
    more = {"candidate_docs": [{"doc_id": "d1", "text": "A."}]} if given else {}
    text = "".join(json.dumps({**line, **more}) + "\n" for line in LINES)
    (here / "d.jsonl").write_text(text, encoding="utf-8")
    with chat_server(says=lambda body: "a") as server:
        words = ["--dataset", "d.jsonl", "--system", f"openai:{server.url}#m", "--out", "out", "--id", "r"]
        assert main(["run", *words]) == 0
    metrics = results("r")["configuration"]["metrics"]
    assert "contains_answer" in metrics
    assert ("recall@5" in metrics) is measured
