"""Many threads, running event loops, and nothing left open."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.calls.executors import ThreadExecutor
from auepora_eval.calls.policy import CallPolicy
from auepora_eval.core.dataset import canonical_json
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.systems.call import EXECUTORS
from auepora_eval.core.types import EvaluationRun, EvaluationSample, SystemOutputs
from auepora_eval.metrics.parse import parse_metrics
from tests.builders import a_dataset, a_sample, an_output

PLAN = EvaluationPlan(parse_metrics("recall@3,mrr,token_f1"))
POLICY = CallPolicy(retries=2, breaker_after=100)
SAMPLES = int(os.environ.get("AUEPORA_SAMPLES", "8000"))


class Quick:
    name = "quick"

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        number = int(sample.query.split()[1])
        if number % 97 == 5:
            raise LookupError(f"nothing is known of {number}")
        return an_output("abcd"[number % 3 :][:top_k], f"answer {number % 7}")


class QuickAsync:
    name = "quick"

    async def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        await asyncio.sleep(0)
        return Quick().run(sample, top_k=top_k)


def dataset_of(size: int) -> Any:
    return a_dataset(
        *(
            a_sample(f"s{n}", f"query {n}", relevant="abc"[n % 3], reference=f"answer {n % 5}")
            for n in range(size)
        )
    )


def digest(run: EvaluationRun) -> str:
    """Of everything but times: results, and each output."""
    outputs = [
        [hit.doc.doc_id for hit in o.retrieved] + [o.response.text, o.error.message if o.error else ""]
        for o in run.outputs
    ]
    results = [[result.name, result.value, result.details] for result in run.results]
    return hashlib.sha256(canonical_json([results, outputs])).hexdigest()


def test_32_threads_give_the_results_of_one() -> None:
    dataset = dataset_of(SAMPLES)
    alone = digest(AueporaEvaluator(Quick(), PLAN).run(dataset))
    start = time.perf_counter()
    many = AueporaEvaluator(Quick(), PLAN, executor=ThreadExecutor(concurrency=32), policy=POLICY)
    assert digest(many.run(dataset)) == alone
    seconds = time.perf_counter() - start
    print(f"32 threads, {SAMPLES:,} samples, the digest of one thread; {seconds:.1f} s")


@pytest.mark.parametrize("name", ["serial", "threads", "async"])
def test_evaluator_is_thread_safe(name: str) -> None:
    dataset = dataset_of(200)
    evaluator = AueporaEvaluator(Quick(), PLAN, executor=EXECUTORS.get(name)(concurrency=4), policy=POLICY)
    alone, found = digest(evaluator.run(dataset)), list[str]()
    threads = [
        threading.Thread(target=lambda: found.append(digest(evaluator.run(dataset)))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [alone] * 8


@pytest.mark.parametrize("name", ["serial", "threads", "async"])
@pytest.mark.parametrize("system", [Quick(), QuickAsync()], ids=["function", "coroutine"])
def test_evaluator_inside_a_running_event_loop(name: str, system: Any) -> None:
    """As in a notebook: the loop is there already, and is not ours to patch."""
    dataset = dataset_of(50)
    evaluator = AueporaEvaluator(system, PLAN, executor=EXECUTORS.get(name)(concurrency=4))

    async def cell() -> str:
        return digest(evaluator.run(dataset))

    assert asyncio.run(cell()) == digest(AueporaEvaluator(Quick(), PLAN).run(dataset))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are counted under /proc")
@pytest.mark.parametrize("name", ["threads", "async", "processes"])
def test_no_file_or_thread_is_left_open(name: str) -> None:
    dataset = dataset_of(60)
    executor = EXECUTORS.get(name)(concurrency=2 if name == "processes" else 8)
    evaluator = AueporaEvaluator(QuickAsync(), EvaluationPlan([]), executor=executor)
    evaluator.run(dataset)  # the event loop, and the server that forks, stay for the next run

    def open_things() -> tuple[int, int]:
        gc.collect()
        return len(os.listdir("/proc/self/fd")), threading.active_count()  # noqa: PTH208

    before = open_things()
    for _ in range(3):
        evaluator.run(dataset)
    for _ in range(100):
        # Not the same: what tests before this one left behind may end meanwhile.
        if all(now <= then for now, then in zip(open_things(), before, strict=True)):
            return
        time.sleep(0.02)
    raise AssertionError(f"{open_things()} files and threads are open, {before} before")
