"""`dataset generate --llm` as a user types it, against a server on loopback."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from auepora_eval.store.database import Database
from tests.generate.test_llm_tasks import good_model
from tests.servers import chat_server

CANARY = "sk-canary-0123456789"
HARBOUR = (
    "The north pier of Annet was built in 1911 by the harbour company of the town. Three boats moor there in"
    " winter, and five in summer, when the bay is calm.\n"
)
LIGHT = "The lamp of the island of Brae is kept by Ansel Moor since the year 1950. It turns by night.\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("THE_KEY", CANARY)
    Path("docs").mkdir()
    Path("docs/harbour.md").write_text(HARBOUR)
    Path("docs/light.md").write_text(LIGHT)
    return tmp_path


def records(name: str = "offline_dataset.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(name).read_text(encoding="utf-8").splitlines()]


def stored_calls() -> int:
    with Database.read(Path("offline_dataset.calls.db")) as database:
        return len(database.select("SELECT 1 FROM call"))


def test_generation_with_a_budget_can_be_resumed(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with chat_server(says=good_model) as server:
        words = f"dataset generate docs --llm {server.url}#small --per-document 1 --json".split()
        words += ["--api-key-env", "THE_KEY"]
        assert main([*words, "--budget-calls", "3"]) == 0
        first = json.loads(capfd.readouterr().out)
        assert main(words) == 4
        assert "offline_dataset.jsonl exists already" in capfd.readouterr().err
        assert main([*words, "--resume"]) == 0
        said = capfd.readouterr()
        assert len(server.requests) == 4
    report = json.loads(said.out)
    assert first["calls"] == {"planned": 4, "answered": 3, "reused": 0, "left": 1}
    assert report["calls"] == {"planned": 4, "answered": 4, "reused": 3, "left": 0}
    assert report["tokens"] == {"prompt": 4 * 11, "completion": 4 * 5}
    assert sum(report["tasks"].values()) == len(records())
    assert report["scenarios"]["base"] == 4
    assert {record["metadata"]["generator_model"] for record in records()} == {"fake-1"}
    passages = {record["doc_id"] for record in records("corpus.jsonl")}
    assert {gold for record in records() for gold in record["metadata"]["selected_chunk_ids"]} <= passages
    written = b"".join(path.read_bytes() for path in place.rglob("*") if path.is_file())
    assert b"canary" not in written
    assert "canary" not in said.out + said.err


def test_nothing_is_written_if_no_call_is_answered(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with chat_server(["no text"], good_model) as server:
        words = ["dataset", "generate", "docs", "--llm", f"{server.url}#small", "--budget-calls", "1"]
        assert main([*words, "--tasks", "qa", "--out", "none.jsonl"]) != 0
    assert "nothing is written" in capfd.readouterr().err
    assert [path.name for path in place.iterdir()] == ["docs"]


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["--llm", "http://127.0.0.1:1/v1"], 2, "there is no model in it"),
        (["--llm", f"http://u:{CANARY}@h/v1#m"], 2, "holds a user name or a password"),
        (["--llm", "http://h/v1#m", "--api-key-env", "THE_KEY"], 2, "unencrypted"),
        (["--llm", "http://127.0.0.1:1/v1#m", "--api-key-env", CANARY], 2, "not the key itself"),
        (["--llm", "http://127.0.0.1:1/v1#m", "--tasks", "citations"], 2, "no task type 'citations'"),
        (["--resume"], 2, "--resume is for a language model"),
        (["--budget-calls", "3"], 2, "--budget-calls is for a language model"),
    ],
)
def test_bad_arguments_fail_before_the_first_call(
    words: list[str], code: int, says: str, place: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["dataset", "generate", "docs", *words]) == code
    said = capfd.readouterr()
    assert says in said.err
    assert "canary" not in said.out + said.err
    assert [path.name for path in place.iterdir()] == ["docs"]


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="this system cannot signal a thread")
def test_an_interrupted_generation_keeps_its_answers(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    requests = []

    def interrupting(body: dict[str, Any]) -> Any:
        requests.append(body)
        if len(requests) == 2:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)  # the call under way is finished and kept
        return good_model(body)

    # A shell starts programs in the background with SIGINT ignored, and so would be this test.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with chat_server(says=interrupting) as server:
        words = ["dataset", "generate", "docs", "--llm", f"{server.url}#small", "--concurrency", "1"]
        words += ["--per-document", "1", "--variants", "none"]
        assert main(words) == 130
        said = capfd.readouterr().err
        kept = stored_calls()
        assert kept == len(requests) == 2
        assert "Resume with the same command and --resume" in said
        assert not Path("offline_dataset.jsonl").exists()
        assert main([*words, "--resume"]) == 0
    assert len(requests) == stored_calls() == 4
