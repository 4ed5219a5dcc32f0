"""Hung calls free their slots."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from auepora_eval.calls.policy import CallPolicy
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.systems.call import EXECUTORS
from auepora_eval.core.systems.named import load_system
from auepora_eval.core.types import EvaluationSample, SystemOutputs
from tests.builders import a_dataset, a_sample, an_output
from tests.servers import chat_server

TIMEOUT = 3.0  # what is healthy takes milliseconds, and on a busy machine a second


def is_hung(number: int) -> bool:
    return number < 8  # the first eight: they have every slot


@contextmanager
def function() -> Iterator[Any]:
    release = threading.Event()

    def system(query: str) -> str:
        if is_hung(int(query)):
            release.wait(30)
        return "fine"

    yield system
    release.set()


@contextmanager
def coroutine() -> Iterator[Any]:
    class System:
        async def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
            if is_hung(int(sample.query)):
                await asyncio.sleep(30)
            return an_output("a", "fine")

    yield System()


@contextmanager
def endpoint() -> Iterator[Any]:
    def mode_of(body: dict[str, Any]) -> str:
        return "hung" if is_hung(int(body["query"])) else "ok"

    with chat_server(says=lambda body: {"answer": "fine"}, bare=True, mode_of=mode_of) as server:
        yield load_system(f"http:{server.url}/ask", {"timeout": TIMEOUT})


@pytest.mark.parametrize(
    ("executor", "system"),
    [("threads", function), ("async", function), ("async", coroutine), ("threads", endpoint)],
    ids=["a function in threads", "a function on the loop", "a coroutine", "an endpoint"],
)
def test_hung_calls_do_not_block_the_others(executor: str, system: Callable[[], Any]) -> None:
    arrived: list[float] = []
    start = time.perf_counter()

    def note(sample: EvaluationSample, output: SystemOutputs) -> None:
        if output.error is None:
            arrived.append(time.perf_counter() - start)

    with system() as thing:
        evaluator = AueporaEvaluator(
            thing,
            EvaluationPlan([]),
            executor=EXECUTORS.get(executor)(concurrency=8),
            policy=CallPolicy(timeout=TIMEOUT),
            on_output=note,
        )
        run = evaluator.run(a_dataset(*(a_sample(f"s{n}", f"{n}") for n in range(40))))
    failed = [sample.sample_id for sample, o in zip(run.samples, run.outputs, strict=True) if o.error]
    assert failed == [f"s{n}" for n in range(8)]
    assert {o.extra["attempts"][0]["kind"] for o in run.outputs if o.error} == {"timeout"}
    assert len(arrived) == 32
    assert max(arrived) < 2 * TIMEOUT
    print(f"{json.dumps(executor)}: 32 of 32 healthy after {max(arrived):.2f} s, timeout {TIMEOUT} s")
