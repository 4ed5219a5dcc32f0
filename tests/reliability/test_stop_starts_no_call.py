"""A run that is asked to stop starts no further call, on any executor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

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
HERE = str(Path(__file__).parents[2])


def started(here: Path, system: str, executor: str, concurrency: int) -> subprocess.Popen[str]:
    words = [
        "--dataset",
        "d.jsonl",
        "--system",
        f"s.py:{system}",
        "--metrics",
        "exact_match",
        "--out",
        "runs",
    ]
    calls = ["--executor", executor, "--concurrency", str(concurrency), "--id", "x"]
    return subprocess.Popen(
        [sys.executable, "-m", "auepora_eval", "run", *words, *calls],
        cwd=here,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": HERE},
        start_new_session=True,  # a group of its own, as a terminal gives it
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )


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
    running = started(here, system, executor, concurrency)
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
