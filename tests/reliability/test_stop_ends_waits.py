"""A run that is asked to stop ends its waits: for the rate limit, for a retry, for Retry-After."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.builders import plan
from tests.commands import started
from tests.servers import chat_server
from tests.stored import failures, kept

RUN = "run --dataset d.jsonl --metrics exact_match --out runs --id x".split()
SAMPLES = 40


@pytest.fixture
def here(tmp_path: Path) -> Path:
    line = '{{"sample_id": "{0}", "query": "{0}", "reference_answer": "answer"}}\n'
    (tmp_path / "d.jsonl").write_text("".join(line.format(n) for n in range(SAMPLES)), encoding="utf-8")
    return tmp_path


@pytest.mark.skipif(sys.platform == "win32", reason="there are no groups of processes here")
@pytest.mark.parametrize(
    ("mode", "requests", "words", "keys"),
    [
        pytest.param("ok", 2, "--concurrency 4", {"rpm": 30}, id="pace, threads"),
        pytest.param("ok", 2, "--executor serial", {"rpm": 20}, id="pace, serial"),
        pytest.param("ok", 2, "--executor async --concurrency 4", {"rpm": 20}, id="pace, async"),
        pytest.param("ok", 2, "--executor processes --concurrency 2", {"rpm": 20}, id="pace, processes"),
        pytest.param("429", 4, "--concurrency 4", {}, id="Retry-After, threads"),
        pytest.param("429", 2, "--executor processes --concurrency 2", {}, id="Retry-After, processes"),
        pytest.param(
            "500",
            12,
            "--executor processes --concurrency 2",
            {"retries": 20, "longest_wait": 1},
            id="retries",
        ),
    ],
)
def test_signal_ends_waits_without_another_request(
    here: Path, mode: str, requests: int, words: str, keys: dict[str, object]
) -> None:
    asked: list[float] = []

    def mode_of(body: dict[str, Any]) -> str:
        asked.append(time.time())
        return mode

    with chat_server(
        says=lambda body: {"answer": "answer"}, bare=True, mode_of=mode_of, retry_after="30"
    ) as server:
        system = ("--system", f"http:{server.url}/ask", *plan(here, **keys))
        running = started(here, *RUN, *system, *words.split())
        limit = time.monotonic() + 60
        while len(asked) < requests and time.monotonic() < limit and running.poll() is None:
            time.sleep(0.02)
        sent = time.time()
        os.killpg(running.pid, signal.SIGINT)
        _, err = running.communicate(timeout=60)
        seconds = time.time() - sent
    assert running.returncode == 130, err
    assert "Traceback" not in err
    assert "resume: auepora run --resume x" in err
    late = [moment - sent for moment in asked if moment > sent + 0.4]
    print(f"\nwaits, {words}: {len(late)} of {len(asked)} requests after the signal, {seconds:.1f} s")
    assert late == []
    assert seconds < 7  # what a busy machine takes to end a process; not the pause, nor the ten seconds
    path = here / "runs" / "x.run.db"
    assert failures(path) == 0  # those that waited have no outcome: they are asked on resume
    assert kept(path) <= (len(asked) if mode == "ok" else 0)
