"""Coroutines that do not let themselves be cancelled: their time is up all the same."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.calls.asking import Caller
from auepora_eval.calls.executors import AsyncExecutor, threads_left_behind, within_async
from auepora_eval.calls.policy import CallPolicy
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.systems.call import EXECUTORS
from auepora_eval.core.types import EvaluationSample, SystemOutputs
from tests.builders import a_dataset, a_sample, an_output

pytestmark = pytest.mark.full

ROOT = Path(__file__).parents[2]
SYSTEM = """
import asyncio
async def system(query):
    while query in ("3", "4"):
        try:  # 4 waits for what nobody else knows of
            await (asyncio.sleep(100) if query == "3" else asyncio.get_running_loop().create_future())
        except BaseException:
            pass
    return "answer"
"""


class Stubborn:
    """The third call goes on when it is cancelled, until it is released."""

    name = "stubborn"

    def __init__(self) -> None:
        self.released = False

    async def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        while sample.query == "3" and not self.released:
            try:
                await asyncio.sleep(0.2)
            except asyncio.CancelledError:
                continue
        return an_output("a", "fine")


def settled_count() -> int:
    """Return the number of hung calls once those of earlier tests have ended, or hang for good."""
    count, since = threads_left_behind(), time.monotonic()
    while count and time.monotonic() - since < 0.5:
        time.sleep(0.01)
        if threads_left_behind() != count:
            count, since = threads_left_behind(), time.monotonic()
    return count


@pytest.mark.parametrize("executor", ["async", "threads"])
def test_a_coroutine_that_refuses_to_end_is_recorded_and_left_behind(executor: str) -> None:
    system, before, start = Stubborn(), settled_count(), time.monotonic()
    evaluator = AueporaEvaluator(
        system,
        EvaluationPlan([]),
        executor=EXECUTORS.get(executor)(concurrency=4),
        policy=CallPolicy(timeout=0.1),
    )
    run = evaluator.run(a_dataset(*(a_sample(f"s{n}", f"{n}") for n in range(12))))
    seconds = time.monotonic() - start
    errors = {s.sample_id: o.error for s, o in zip(run.samples, run.outputs, strict=True) if o.error}
    assert list(errors) == ["s3"]
    assert (errors["s3"].type, errors["s3"].message) == ("TimeoutError", "no answer within 0.1 s")
    assert run.outputs[3].extra["attempts"][0]["kind"] == "timeout"
    assert seconds < 5
    assert threads_left_behind() == before + 1
    system.released = True
    for _ in range(200):
        if threads_left_behind() == before:
            break
        time.sleep(0.01)
    assert threads_left_behind() == before


def test_who_ends_when_cancelled_may_clean_up_before_the_slot_is_free() -> None:
    events: list[str] = []

    async def tidy(number: int) -> int:
        events.append(f"begin {number}")
        try:
            await asyncio.sleep(30 if number == 0 else 0)
        finally:
            await asyncio.sleep(0.02)
            events.append(f"end {number}")
        return number

    call: Caller[int, int] = Caller(tidy, CallPolicy(timeout=0.1))
    results = dict(AsyncExecutor(concurrency=1).map(call, range(2)))
    assert results[0].failure.type == "TimeoutError"
    assert events == ["begin 0", "end 0", "begin 1", "end 1"]


@pytest.mark.parametrize("timeout", [None, 5.0])
@pytest.mark.parametrize("raised", [asyncio.CancelledError, SystemExit, LookupError])
def test_whatever_a_coroutine_raises_is_its_outcome_and_the_loop_goes_on(
    raised: type[BaseException], timeout: float | None
) -> None:
    async def raising(number: int) -> int:
        if number < 4:
            raise raised("so it is")
        return number

    call: Caller[int, int] = Caller(raising, CallPolicy(timeout=timeout))
    results = dict(AsyncExecutor(concurrency=2).map(call, range(6)))
    assert (results.pop(4).value, results.pop(5).value) == (4, 5)
    assert [results[n].failure.type for n in range(4)] == [raised.__name__] * 4


def test_an_answer_that_comes_after_its_time_does_not_count() -> None:
    async def late() -> str:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            return "late"
        return "never"

    async def asked() -> Any:
        return await within_async(0.05, late)

    with pytest.raises(TimeoutError, match=r"no answer within 0\.05 s"):
        asyncio.run(asked())


def test_a_run_with_such_calls_ends_and_says_nothing_of_tasks(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(SYSTEM, encoding="utf-8")
    lines = [f'{{"sample_id": "{n}", "query": "{n}", "reference_answer": "answer"}}\n' for n in range(6)]
    (tmp_path / "d.jsonl").write_text("".join(lines), encoding="utf-8")
    words = ["--dataset", "d.jsonl", "--system", "s.py:system", "--metrics", "exact_match", "--id", "x"]
    calls = ["--executor", "async", "--concurrency", "2", "--timeout", "0.3", "--min-coverage", "0"]
    done = subprocess.run(
        [sys.executable, "-m", "auepora_eval", "run", *words, *calls],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "4 of 6 samples answered (66.7%), top_k 5" in done.stdout
    for noise in ("Task was destroyed", "Traceback", "GeneratorExit", "never retrieved"):
        assert noise not in done.stderr


def test_threads_of_a_system_do_not_keep_the_command_alive(tmp_path: Path) -> None:
    (tmp_path / "left.py").write_text(
        "import threading, time\n"
        "def rag(query):\n"
        "    threading.Thread(target=time.sleep, args=(60,), name='client').start()\n"
        "    return 'an answer'\n",
        encoding="utf-8",
    )
    words = [
        "run",
        "--dataset",
        "demo",
        "--limit",
        "2",
        "--system",
        "left.py:rag",
        "--metrics",
        "exact_match",
    ]
    start = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "auepora_eval", *words, "--out", "out"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert (done.returncode, time.monotonic() - start < 40) == (0, True)
    assert "2 threads of the system are still running and are ended: client, client" in done.stderr
    assert len(list((tmp_path / "out").glob("*.results.json"))) == 1
