"""Executors on one machine: serial, threads, asyncio."""

from __future__ import annotations

import asyncio
import inspect
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from ..core.executor import Executor, SerialExecutor, background_loop, outcome
from ..core.registry import Registry

Item = TypeVar("Item")

EXECUTORS: Registry[Callable[..., Executor]] = Registry("executor")


@EXECUTORS.add("serial")
def serial(*, concurrency: int = 1, timeout: float | None = None) -> Executor:
    """One call at a time, whatever the concurrency asked for."""
    return SerialExecutor(timeout=timeout)


@EXECUTORS.add("threads")
class ThreadExecutor:
    """Several calls at a time, each in a thread: for systems that wait on a network or a GPU."""

    def __init__(self, *, concurrency: int = 8, timeout: float | None = None) -> None:
        self.concurrency, self.timeout = _positive(concurrency), timeout

    def map(self, call: Callable[[Item], Any], items: Sequence[Item]) -> Iterator[tuple[int, Any]]:
        todo: queue.SimpleQueue[tuple[int, Item]] = queue.SimpleQueue()
        done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        stopped = threading.Event()
        for place, item in enumerate(items):
            todo.put((place, item))

        def work() -> None:
            while not stopped.is_set():
                try:
                    place, item = todo.get_nowait()
                except queue.Empty:
                    return
                done.put((place, outcome_in_thread(call, item, self.timeout)))

        # Daemon threads of our own: the interpreter joins a ThreadPoolExecutor's at exit, hung or not.
        for number in range(min(self.concurrency, len(items))):
            threading.Thread(target=work, name=f"auepora-{number}", daemon=True).start()
        try:
            for _ in items:
                yield done.get()
        finally:
            stopped.set()


@EXECUTORS.add("async")
class AsyncExecutor:
    """Several calls at a time on one event loop: for systems whose `run` is a coroutine function."""

    def __init__(self, *, concurrency: int = 8, timeout: float | None = None) -> None:
        self.concurrency, self.timeout = _positive(concurrency), timeout

    def map(self, call: Callable[[Item], Any], items: Sequence[Item]) -> Iterator[tuple[int, Any]]:
        done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        running = asyncio.run_coroutine_threadsafe(self._run_all(call, items, done), background_loop())
        try:
            for _ in items:
                yield done.get()
        finally:
            running.cancel()

    async def _run_all(
        self, call: Callable[[Item], Any], items: Sequence[Item], done: queue.SimpleQueue[tuple[int, Any]]
    ) -> None:
        todo = iter(enumerate(items))

        async def work() -> None:
            for place, item in todo:
                done.put((place, await self._outcome(call, item)))

        await asyncio.gather(*(work() for _ in range(min(self.concurrency, len(items)))))

    async def _outcome(self, call: Callable[[Item], Any], item: Item) -> Any:
        # A synchronous call would block the loop: it is made in a thread that can be left behind.
        work = call(item) if inspect.iscoroutinefunction(call) else _in_thread(call, item)
        clock = asyncio.timeout(self.timeout)
        try:
            async with clock:
                return await work
        except (Exception, SystemExit) as error:  # noqa: BLE001 - that sample's outcome
            return TimeoutError(f"no answer within {self.timeout:g} s") if clock.expired() else error


def outcome_in_thread(call: Callable[[Item], Any], item: Item, timeout: float | None) -> Any:
    """As `outcome`, whatever is raised: Ctrl-C reaches no worker, and one that died would be waited for."""
    try:
        return outcome(call, item, timeout)
    except BaseException as error:  # noqa: BLE001
        return error


async def _in_thread(call: Callable[[Item], Any], item: Item) -> Any:
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any) -> None:
        if not answer.done():  # cancelled when the time was up
            answer.set_result(result)

    def work() -> None:
        result = outcome_in_thread(call, item, None)
        loop.call_soon_threadsafe(settle, result)

    threading.Thread(target=work, name="auepora-call", daemon=True).start()
    return await answer


def _positive(concurrency: int) -> int:
    if concurrency < 1:
        raise ValueError(f"concurrency must be at least 1, not {concurrency}")
    return concurrency
