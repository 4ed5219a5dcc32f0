"""A run that is asked to stop starts no further call, on any executor."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.commands import started
from tests.stored import failures, kept

SYSTEM = """
import asyncio, os, time
log = os.open("log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
def system(query):
    os.write(log, f"{time.time()}\\n".encode())
    time.sleep(0.8)
    return "answer"
class Async:
    name = "waits"
    async def run(self, sample, *, top_k=5):
        os.write(log, f"{time.time()}\\n".encode())
        await asyncio.sleep(0.8)
        return "answer"
"""
RUN = "run --dataset d.jsonl --metrics exact_match --out runs --id x".split()


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "s.py").write_text(SYSTEM, encoding="utf-8")
    lines = [f'{{"sample_id": "{n}", "query": "{n}", "reference_answer": "answer"}}\n' for n in range(200)]
    (tmp_path / "d.jsonl").write_text("".join(lines), encoding="utf-8")
    return tmp_path


def asked(here: Path) -> list[float]:
    return [float(line) for line in (here / "log").read_text().split()] if (here / "log").exists() else []


@pytest.mark.parametrize(
    ("system", "executor", "concurrency"),
    [("system", "threads", 4), ("Async", "async", 4), ("system", "processes", 2)],
)
def test_no_call_starts_after_the_signal(here: Path, system: str, executor: str, concurrency: int) -> None:
    how = ("--executor", executor, "--concurrency", str(concurrency))
    running = started(here, *RUN, "--system", f"s.py:{system}", *how)
    for _ in range(3000):
        if len(asked(here)) > concurrency:  # the second round has begun: the third is most of a second away
            break
        time.sleep(0.02)
    sent = time.time()
    os.killpg(running.pid, signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert running.returncode == 130, err
    assert "Traceback" not in err
    late = [moment - sent for moment in asked(here) if moment > sent + 0.4]
    print(f"\n{executor}: {len(late)} calls started after the signal, of {len(asked(here))}")
    assert late == []
    path = here / "runs" / "x.run.db"
    assert kept(path) == len(asked(here))  # what was under way is finished and kept
    assert failures(path) == 0
