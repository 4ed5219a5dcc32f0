"""Calls that fail: why and where, once; a run that cannot succeed ends; a refused key is not a failure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import auepora_eval as ae
from auepora_eval.cli.main import main
from auepora_eval.store.database import Database
from tests.builders import plan
from tests.judges.scripted import judge_server
from tests.servers import chat_server

# Line 3 raises, line 7 calls it; json is of Python, and no frame of it is shown.
SYSTEM = """import json
def load(text):
    return json.loads(text)


def broken(query):
    return load("{" + query)


def odd(query):
    return broken(query) if int(query) % 2 else "yes"


def various(query):
    raise [KeyError, ValueError][int(query) % 2](query)


def late(query):
    return "yes" if int(query) == 19 else broken(query)
"""
FRAMES = (
    '  File "rag.py", line 7, in broken\n    return load("{" + query)\n  File "rag.py", line 3, in load\n'
)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    lines = [{"sample_id": f"s{n}", "query": str(n), "reference_answer": "yes"} for n in range(30)]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (tmp_path / "rag.py").write_text(SYSTEM, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(system: str, *flags: str) -> int:
    words = ("--dataset", "d.jsonl", "--system", system, "--metrics", "exact_match,token_f1", "--id", "r")
    return main(["run", *words, *flags])


def stored_outputs() -> list[dict[str, Any]]:
    with Database.read(Path("data/evaluation/results/r.run.db")) as database:
        return [json.loads(reply) for (reply,) in database.select("SELECT reply FROM call ORDER BY n")]


@pytest.mark.parametrize("executor", ["serial", "threads", "async", "processes"])
def test_traceback_of_the_first_failure_comes_before_the_counts(
    executor: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("rag.py:broken", "--limit", "6", "--executor", executor, "--concurrency", "2") == 3
    said = capsys.readouterr()
    assert FRAMES in said.out
    assert "/json/" not in said.out
    assert "auepora_eval/" not in said.out
    assert said.out.index(FRAMES) < said.out.index("  6 × JSONDecodeError: Expecting property name")
    assert "sample.failed" not in said.err
    assert "Next: auepora show r --failed" in said.out


def test_show_failed_lists_each_reason_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("rag.py:odd", "--limit", "6") == 3
    capsys.readouterr()
    assert main(["show", "r", "--failed"]) == 0
    out = capsys.readouterr().out
    assert "3 of 6 calls failed" in out
    assert out.count("Expecting property name") == out.count(FRAMES) == 1
    assert "samples: s1, s3, s5" in out
    assert main(["show", "r", "--sample", "s1"]) == 0
    out = capsys.readouterr().out
    assert out.count("Expecting property name") == out.count(FRAMES) == 1
    assert "none, since the call failed" in out


@pytest.mark.parametrize(
    ("system", "keys", "code", "outputs"),
    [
        pytest.param("broken", {}, 3, 20, id="twenty alike"),
        pytest.param("broken", {"breaker": 5}, 1, 5, id="the user names a number"),
        pytest.param("various", {}, 3, 30, id="of two kinds"),
        pytest.param("late", {}, 3, 30, id="the twentieth is answered"),
    ],
)
def test_run_without_an_answer_ends(system: str, keys: dict[str, object], code: int, outputs: int) -> None:
    assert run(f"rag.py:{system}", *plan(**keys)) == code
    assert len(stored_outputs()) == outputs


def test_a_flag_keeps_a_run_going() -> None:
    assert run("rag.py:broken", "--keep-going") == 3
    assert len(stored_outputs()) == 30


def test_run_that_ended_is_resumed_after_the_fix(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("rag.py:broken") == 3
    err = capsys.readouterr().err
    assert "none of the first 20 calls was answered" in err
    assert FRAMES in err
    assert "resume: auepora run --resume r --retry-failed" in err
    (here / "rag.py").write_text("def broken(query):\n    return 'yes'\n", encoding="utf-8")
    assert main(["run", "--resume", "r", "--retry-failed"]) == 0
    assert ae.load_run("r")["exact_match"].value == 1.0


def test_secrets_are_not_in_the_traceback(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROVIDER_API_KEY", "a-very-secret-value-1234")
    text = "def rag(query):\n    raise ValueError('a-very-secret-value-1234')\n"
    (here / "rag.py").write_text(text, encoding="utf-8")
    assert run("rag.py:rag", "--limit", "2") == 3
    failures = ae.load_run("r").failures()
    assert [one["sample_id"] for one in failures] == ["s0", "s1"]
    assert "line 2, in rag" in str(failures[0]["traceback"])
    assert "very-secret" not in str(failures)


@pytest.mark.parametrize("mode", ["401", "403"])
def test_refused_key_ends_a_run_at_once(
    mode: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MY_RAG_KEY", "secret-key-of-mine")
    with chat_server([mode, "ok"], says=lambda body: {"answer": "yes"}, bare=True) as server:
        words = (f"http:{server.url}/ask", "--api-key-env", "MY_RAG_KEY")
        assert run(*words) == 2
        assert len(server.requests) == 1
        said = capsys.readouterr()
        assert said.out == ""
        assert len(said.err.splitlines()) == 1
        assert f"{mode} " in said.err
        assert "the API key (MY_RAG_KEY)" in said.err
        assert "secret-key" not in said.err
        assert run(*words) == 0  # with the right key the same command works
        assert len(server.requests) == 1 + 30


def test_one_question_that_is_forbidden_fails_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with chat_server(["ok", "403", "ok"], says=lambda body: {"answer": "yes"}, bare=True) as server:
        assert run(f"http:{server.url}/ask", "--min-coverage", "0.9") == 0
    assert [one["sample_id"] for one in ae.load_run("r").failures()] == ["s1"]


@pytest.mark.parametrize("mode", ["401", "403"])
def test_refused_key_of_a_judge_is_not_a_verdict(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    system = ("--system", "auepora_eval.demo.systems:bm25", "--metrics", "recall@5")
    assert main(["run", "--dataset", "demo", *system, "--limit", "4", "--id", "one"]) == 0
    capsys.readouterr()
    with judge_server(lambda material: "yes", modes=[mode]) as server:
        words = ["judge", "one", "--judge", f"{server.url}#m", "--mode", "label", "--concurrency", "1"]
        assert main(words) == 2
        assert len(server.requests) == 1
        said = capsys.readouterr()
        assert (said.out, len(said.err.splitlines())) == ("", 1)
        assert "--api-key-env" in said.err
        server.modes = ["ok"]
        assert main(words) == 0
    assert "0/4" not in capsys.readouterr().out


def test_key_that_is_refused_midway_keeps_the_answers(capsys: pytest.CaptureFixture[str]) -> None:
    with chat_server(["ok", "ok", "401", "ok"], says=lambda body: {"answer": "yes"}, bare=True) as server:
        assert run(f"http:{server.url}/ask") == 2
        err = capsys.readouterr().err
        assert "kept: 2 outputs" in err
        assert "No API key was sent" in err
        assert main(["run", "--resume", "r"]) == 0
        assert len(server.requests) == 30 + 1
