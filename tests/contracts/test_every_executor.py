"""The contract of every executor: each result once, exceptions as results, a window of items."""

from __future__ import annotations

import asyncio
import copy
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from contextvars import ContextVar
from typing import Any, cast

import pytest

import auepora_eval as ae
from auepora_eval.calls.executors import Executor, window
from auepora_eval.calls.policy import CallPolicy
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.systems.call import EXECUTORS
from auepora_eval.core.systems.named import load_system
from auepora_eval.core.types import Document
from auepora_eval.errors import RunStoppedError
from tests.builders import a_dataset, a_sample
from tests.calls.worker_calls import ending, squared, squared_async

LOCAL = ("serial", "threads", "async", "processes")
# Ray leaves threads and signal handlers in its driver: tests/calls/test_ray.py starts a cluster, and
# these tests once more, in a process of their own.
RAY = os.environ.get("AUEPORA_RAY", "")
every_executor = pytest.mark.parametrize("name", ("ray",) if RAY else LOCAL)


def executor_named(name: str, **options: Any) -> Executor:
    where = {"address": RAY} if name == "ray" else {}
    return EXECUTORS.get(name)(**{"concurrency": 3, **where, **options})


def most_under_way(name: str) -> int:
    """The most items that an executor may take before it yields, at concurrency 3."""
    return 3 * 2 * 256 if name == "ray" else window(3)  # actors, chunks of each, calls in a chunk


class Counted:
    """Numbers without end, and how many of them were taken."""

    def __init__(self) -> None:
        self.taken = 0

    def __iter__(self) -> Iterator[int]:
        for number in itertools.count():
            self.taken += 1
            yield number


def stopping(number: int) -> int:
    if number == 20:
        raise RunStoppedError("enough")
    return number


def collect(source: Iterator[tuple[int, Any]], results: list[tuple[int, Any]]) -> None:
    for pair in source:
        results.append(pair)


def test_every_executor_is_tested() -> None:
    assert set(EXECUTORS) == {*LOCAL, "ray"}


@every_executor
@pytest.mark.parametrize("call", [squared, squared_async])
def test_every_item_has_one_result(name: str, call: Callable[[int], Any]) -> None:
    results = list(executor_named(name).map(call, range(40)))
    assert sorted(place for place, _ in results) == list(range(40))
    found = dict(results)
    assert (type(found[7]), str(found.pop(7))) == (LookupError, "seven")
    assert type(found.pop(8)).__name__ == "CancelledError"  # that of asyncio, or that of its futures
    assert all(value == place * place for place, value in found.items())


@every_executor
def test_what_would_end_an_event_loop_fails_its_item_alone(name: str) -> None:
    results = list(executor_named(name).map(ending, range(12)))
    assert sorted(place for place, _ in results) == list(range(12))
    assert isinstance(dict(results)[5], SystemExit)
    assert [value for place, value in sorted(results) if place != 5] == [n for n in range(12) if n != 5]


def test_a_coroutine_leaves_nothing_behind_for_the_next_one() -> None:
    seen: ContextVar[int] = ContextVar("seen", default=0)

    async def call(number: int) -> tuple[int, int]:
        before = seen.get()
        seen.set(number)
        task = asyncio.current_task()
        assert task is not None
        cancelled = task.cancelling()
        if number % 4 == 3:
            task.cancel()
        await asyncio.sleep(0)
        return before, cancelled

    results = dict(EXECUTORS.get("async")(concurrency=2).map(call, range(12)))
    assert len(results) == 12
    assert all(isinstance(results.pop(n), asyncio.CancelledError) for n in (3, 7, 11))
    assert set(results.values()) == {(0, 0)}


@every_executor
def test_no_items_no_results(name: str) -> None:
    assert list(executor_named(name).map(squared, iter(()))) == []


@every_executor
def test_endless_items_are_read_in_windows(name: str) -> None:
    numbers = Counted()
    most = 0
    with closing(cast(Any, executor_named(name).map(squared, numbers))) as results:
        for yielded, _ in enumerate(itertools.islice(results, 3 * most_under_way(name)), start=1):
            most = max(most, numbers.taken - (yielded - 1))
    assert most <= most_under_way(name)
    print(f"{name}: at most {most} items under way at concurrency 3")


@every_executor
def test_closing_early_stops(name: str) -> None:
    numbers = Counted()
    results = cast(Any, executor_named(name).map(squared, numbers))
    next(results)
    results.close()
    taken = numbers.taken
    assert list(itertools.islice(results, 5)) == []
    assert numbers.taken == taken


@every_executor
def test_stop_yields_calls_in_progress_and_raises(name: str) -> None:
    results: list[tuple[int, Any]] = []
    with pytest.raises(RunStoppedError, match="enough"):
        collect(executor_named(name).map(stopping, itertools.count()), results)
    assert {place for place, _ in results} >= set(range(20))
    # On a cluster the call that stops may wait for a worker that is still starting, while others go on.
    late = 4 if name == "ray" else 1
    assert len(results) == len(dict(results)) <= 20 + late * most_under_way(name)


@every_executor
def test_error_of_the_source_is_raised(name: str) -> None:
    def source() -> Iterator[int]:
        yield from range(3)
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        list(executor_named(name).map(squared, source()))


@every_executor
def test_system_by_name_gives_the_same_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from auepora_eval.core.plan import EvaluationPlan
    from auepora_eval.metrics.parse import parse_metrics

    plan = EvaluationPlan(parse_metrics("recall@5,mrr,token_f1"))
    dataset = a_dataset(
        *(a_sample(f"s{n}", f"query {n}", relevant="ab", reference="answer 1") for n in range(25))
    )
    system = load_system("tests.calls.worker_calls:Quiet")
    plain = AueporaEvaluator(system, plan).run(dataset)
    run = AueporaEvaluator(system, plan, executor=executor_named(name)).run(dataset)
    assert run.results == plain.results
    assert [o.error and (o.error.type, o.error.message) for o in run.outputs] == [
        o.error and (o.error.type, o.error.message) for o in plain.outputs
    ]
    assert run.system_name == "quiet"


@every_executor
def test_system_cannot_change_the_gold(name: str) -> None:
    sample = a_sample("s1", "q", relevant="ab", reference="yes", alternatives=["yeah"])
    sample.candidate_docs, sample.metadata["deep"] = [Document("c", "text")], {"list": ["kept"]}
    before = copy.deepcopy(sample)
    system = load_system("tests.calls.worker_calls:Cheat")
    run = ae.evaluate(system, [sample], metrics="recall@5,exact_match", executor=executor_named(name))
    assert (run["recall@5"].value, run["exact_match"].value) == (0.0, 0.0)
    assert run.samples == [sample] == [before]


# The seconds are those that three documents take, and the limit of a call.
@every_executor
@pytest.mark.parametrize(("pause", "limit", "error"), [(0.05, None, None), (0.2, 0.3, "TimeoutError")])
def test_documents_that_are_yielded_are_a_part_of_the_call(
    name: str, pause: float, limit: float | None, error: str | None
) -> None:
    samples = [{"sample_id": "s1", "query": str(pause), "relevant_docs": ["d0", "d1", "d2"]}]
    run = AueporaEvaluator(
        load_system("tests.calls.worker_calls:lazily"),
        "recall@5",
        executor=executor_named(name),
        policy=CallPolicy(timeout=limit),
    )
    if error is not None:
        with pytest.raises(ae.EvaluationError, match=f"{error}: no answer within 0.3 s"):
            run.run(samples)
        return
    output = run.run(samples).outputs[0]
    assert [hit.doc.doc_id for hit in output.retrieved] == ["d0", "d1", "d2"]
    assert output.timings["end_to_end"] >= 3 * pause


@every_executor
def test_documents_without_end_are_an_error(name: str) -> None:
    system = load_system("tests.calls.worker_calls:endlessly")
    samples = [{"sample_id": "s1", "query": "q", "relevant_docs": ["d0"]}]
    with pytest.raises(ae.EvaluationError, match="more than 100,000 documents"):
        ae.evaluate(system, samples, metrics="recall@5", executor=executor_named(name))


@every_executor
def test_concurrent_maps(name: str) -> None:
    executor, found = executor_named(name, concurrency=2), []

    def work() -> None:
        found.append(sorted(executor.map(abs, range(30))))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[(n, n) for n in range(30)]] * 3
