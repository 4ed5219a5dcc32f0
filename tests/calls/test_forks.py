"""A system may fork: its children hold no lock, store nothing, and have no signal handler of ours."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.calls.processes import ProcessExecutor
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.systems.named import load_system
from auepora_eval.core.types import EvaluationSample, SystemOutputs
from auepora_eval.errors import WorkerLostError
from auepora_eval.store.database import Database
from auepora_eval.store.lock import RunLock
from tests.builders import a_dataset, a_sample, an_output

pytestmark = [pytest.mark.full, pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")]
ROOT = Path(__file__).parents[2]
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
FORKS_IN_C = """
import ctypes, os, sys
from pathlib import Path
from auepora_eval.store.lock import RunLock

lock = RunLock(Path("x.run.db"))
libc = ctypes.CDLL(None)
if not (pid := libc.fork()):
    libc.close(1)
    libc.close(2)
    libc.sleep(60)
    os._exit(0)
Path("helper").write_text(str(pid))
os.kill(os.getpid(), 9)
"""
RETURNS_TWICE = """
import os

def system(query):
    if query == "q 1":
        os.fork()
    return "yes"
"""
# Without a journal, which would refuse what a second process writes.
SCRIPT = """
import os, sys
from auepora_eval import evaluate
from auepora_eval.core.systems.call import EXECUTORS

def plain(query):
    if query == "q 1":
        os.fork()
    return "yes"

async def coroutine(query):
    return plain(query)

def awaitable(query):
    return coroutine(query)

samples = [{"sample_id": f"s{n}", "query": f"q {n}", "reference_answer": "yes"} for n in range(3)]
executor = EXECUTORS.get(sys.argv[2])(concurrency=1)
run = evaluate(globals()[sys.argv[1]], samples, metrics="exact_match", executor=executor)
print(run["exact_match"].value, flush=True)
"""


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Path]:
    lines = [f'{{"sample_id": "s{n}", "query": "q {n}", "reference_answer": "yes"}}\n' for n in range(5)]
    (tmp_path / "d.jsonl").write_text("".join(lines), encoding="utf-8")
    yield tmp_path
    if (tmp_path / "helper").exists():
        with suppress(ProcessLookupError):  # it has ended by itself, on a slow machine
            os.kill(int((tmp_path / "helper").read_text()), signal.SIGKILL)


def ran(here: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "auepora_eval", "run", *words],
        cwd=here,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_helper_of_a_killed_run_does_not_keep_its_lock(here: Path) -> None:
    (here / "mine.py").write_text(HELPER, encoding="utf-8")
    assert ran(here, "--system", "mine.py:system", *RUN).returncode == -signal.SIGKILL
    os.kill(int((here / "helper").read_text()), 0)  # it is alive
    done = ran(here, "--resume", "x", "--out", "runs")
    assert done.returncode == 0, done.stderr
    assert "3 of 5 samples have an output" in done.stderr


def test_child_of_a_system_ends_when_it_is_terminated(here: Path) -> None:
    (here / "mine.py").write_text(ENDS_A_CHILD, encoding="utf-8")
    done = ran(here, "--system", "mine.py:system", *RUN)
    assert done.returncode == 0, done.stderr
    assert "stopping" not in done.stderr
    assert "Traceback" not in done.stderr  # the child ended by the signal, not by an exception of ours
    results = json.loads((here / "runs" / "x.results.json").read_text(encoding="utf-8"))
    assert results["performance_metrics"]["latency_stats"]["max"] < 9_000


def test_fork_that_returns_twice_stores_nothing(here: Path) -> None:
    (here / "mine.py").write_text(RETURNS_TWICE, encoding="utf-8")
    done = ran(here, "--system", "mine.py:system", *RUN)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    with Database.read(here / "runs" / "x.run.db") as database:
        stored = [name for (name,) in database.select("SELECT sample FROM call ORDER BY sample")]
    assert stored == [f"s{n}" for n in range(5)]


@pytest.mark.parametrize(
    ("system", "executor"),
    [("plain", "serial"), ("coroutine", "serial"), ("awaitable", "serial"), ("coroutine", "async")],
)
def test_a_script_goes_on_once_after_a_fork_that_returns_twice(
    system: str, executor: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        # Python 3.12 and newer warn of a fork beside threads.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", SCRIPT, system, executor],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,  # until no process has the pipes
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("1.0\n", "")


class Twice:
    """Returns from a fork in both processes."""

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        if sample.sample_id == "s1":
            os.fork()
        return an_output("a", "yes")


class DiesWithAChild:
    """Leaves a child that outlives its worker."""

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        if sample.sample_id == "s1":
            if not os.fork():
                time.sleep(20)
                os._exit(0)
            os._exit(3)
        return an_output("a", "yes")


def outputs_of(name: str) -> list[Any]:
    system = load_system(f"tests.calls.test_forks:{name}")
    samples = a_dataset(*(a_sample(f"s{n}") for n in range(4)))
    executor = ProcessExecutor(concurrency=1)
    return AueporaEvaluator(system, EvaluationPlan([]), executor=executor).run(samples).outputs


def test_worker_whose_fork_returns_twice_has_one_result() -> None:
    assert [output.error for output in outputs_of("Twice")] == [None] * 4


def test_dead_worker_is_noticed_although_its_child_lives() -> None:
    start = time.monotonic()
    errors = [output.error and output.error.type for output in outputs_of("DiesWithAChild")]
    assert errors == [None, WorkerLostError.__name__, None, None]
    assert time.monotonic() - start < 60


def test_a_fork_in_c_does_not_hold_the_lock_of_a_killed_run(here: Path) -> None:
    """C code calls no hook of Python: the note says that the process which took the lock is dead."""
    pytest.importorskip("fcntl")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", FORKS_IN_C], cwd=here, env=environment, check=False)
    helper = int((here / "helper").read_text())
    os.kill(helper, 0)  # it lives
    RunLock(here / "x.run.db").release()
    os.kill(helper, signal.SIGKILL)
