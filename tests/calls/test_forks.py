"""A system may fork: its children hold no lock, store nothing, and have no signal handler of ours."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.commands import ran

pytestmark = [pytest.mark.full, pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")]
RUN = ("--dataset", "d.jsonl", "--metrics", "exact_match", "--out", "runs", "--id", "x")
HELPER = """
import os, stat, time
from pathlib import Path

def system(query):
    if not Path("helper").exists():
        if not (pid := os.fork()):
            for fd in map(int, os.listdir("/dev/fd")):
                try:
                    if stat.S_ISFIFO(os.fstat(fd).st_mode):
                        os.close(fd)  # so that the test need not wait for it
                except OSError:
                    pass
            time.sleep(60)
            os._exit(0)
        Path("helper").write_text(str(pid))
    if query == "q 3" and not Path("again").exists():
        Path("again").touch()
        os.kill(os.getpid(), 9)
    time.sleep(0.02)  # outputs that come slower than 5 ms are synced one by one
    return "yes"
"""
ENDS_A_CHILD = """
import multiprocessing, time

def wait(started):
    started.set()
    time.sleep(60)

def system(query):
    fork = multiprocessing.get_context("fork")
    started = fork.Event()
    child = fork.Process(target=wait, args=(started,))
    child.start()
    started.wait()
    child.terminate()
    child.join()
    return "yes"
"""


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Path]:
    lines = [f'{{"sample_id": "s{n}", "query": "q {n}", "reference_answer": "yes"}}\n' for n in range(5)]
    (tmp_path / "d.jsonl").write_text("".join(lines), encoding="utf-8")
    yield tmp_path
    if (tmp_path / "helper").exists():
        with suppress(ProcessLookupError):  # it has ended by itself, on a slow machine
            os.kill(int((tmp_path / "helper").read_text()), signal.SIGKILL)


def test_helper_of_a_killed_run_does_not_keep_its_lock(here: Path) -> None:
    (here / "mine.py").write_text(HELPER, encoding="utf-8")
    assert ran(here, "run", "--system", "mine.py:system", *RUN).returncode == -signal.SIGKILL
    os.kill(int((here / "helper").read_text()), 0)  # it is alive
    done = ran(here, "run", "--resume", "x", "--out", "runs")
    assert done.returncode == 0, done.stderr
    assert "3 of 5 samples have an output" in done.stderr


def test_child_of_a_system_ends_when_it_is_terminated(here: Path) -> None:
    (here / "mine.py").write_text(ENDS_A_CHILD, encoding="utf-8")
    done = ran(here, "run", "--system", "mine.py:system", *RUN)
    assert done.returncode == 0, done.stderr
    assert "stopping" not in done.stderr
    assert "Traceback" not in done.stderr  # the child ended by the signal, not by an exception of ours
    results = json.loads((here / "runs" / "x.results.json").read_text(encoding="utf-8"))
    assert results["performance_metrics"]["latency_stats"]["max"] < 9_000
