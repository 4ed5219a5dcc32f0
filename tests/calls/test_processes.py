"""Worker processes: what dies in them, what hangs, and what cannot leave them."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from auepora_eval.calls.asking import Caller
from auepora_eval.calls.policy import CallPolicy, Limits
from auepora_eval.calls.processes import ProcessExecutor
from auepora_eval.core.systems.call import SystemCall
from auepora_eval.core.types import EvaluationSample, SystemOutputs
from auepora_eval.errors import PlanError, WorkerLostError
from tests.builders import an_output
from tests.calls.worker_calls import DeadlyAt, hung, odd

pytestmark = pytest.mark.full


def test_a_sample_that_kills_its_worker_fails_after_three_tries_and_takes_no_other_with_it() -> None:
    results = dict(ProcessExecutor(concurrency=2).map(DeadlyAt(5, 11), range(30)))
    assert len(results) == 30
    lost = {place: result for place, result in results.items() if isinstance(result, WorkerLostError)}
    assert set(lost) == {5, 11}
    assert "died 3 times on it, by signal 9" in str(lost[5])
    assert all(results[n] == n * n for n in range(30) if n not in lost)


def test_a_hung_call_ends_with_its_process() -> None:
    start = time.monotonic()
    call: Caller[int, int] = Caller(hung, Limits(CallPolicy(timeout=0.5)))
    results = dict(ProcessExecutor(concurrency=3).map(call, range(9)))
    seconds = time.monotonic() - start
    assert {place for place, result in results.items() if isinstance(result, TimeoutError)} == {0, 5}
    assert [results[n].value for n in (1, 2, 3, 4, 6, 7, 8)] == [1, 2, 3, 4, 6, 7, 8]
    assert seconds < 25  # a hung call takes 30


def test_what_cannot_be_copied_becomes_words() -> None:
    results = dict(ProcessExecutor(concurrency=1).map(odd, range(6)))
    assert (str(results[1]), type(results[1])) == ("OddError: odd", RuntimeError)
    assert "cannot leave its process" in str(results[2])
    assert "cannot leave its process" in str(results[4])
    assert (results[0], results[3], results[5]) == (0, 3, 5)


def test_an_item_that_cannot_be_sent_fails_alone() -> None:
    results = dict(ProcessExecutor(concurrency=1).map(repr, [1, threading.Lock(), 3]))
    assert "cannot leave its process" in str(results[1])
    assert (results[0], results[2]) == ("1", "3")


def test_a_system_that_cannot_be_sent_is_refused_with_what_to_do() -> None:
    with pytest.raises(PlanError, match="Name it as module:attribute"):
        list(ProcessExecutor().map(lambda number: number, [1]))


def test_workers_share_the_pace() -> None:
    class System:
        def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
            return an_output()

    policy = CallPolicy(requests_per_minute=120, tokens_per_minute=1000, max_calls=5)
    share = Caller(SystemCall(System(), 5), Limits(policy)).shared_by(4).policy
    assert (share.requests_per_minute, share.tokens_per_minute) == (30, 250)


def test_a_script_without_a_main_guard_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from auepora_eval.calls.processes import ProcessExecutor\n"
        "print(list(ProcessExecutor(concurrency=1).map(abs, [1])))\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "if __name__ == '__main__':" in done.stderr.splitlines()[-1]
