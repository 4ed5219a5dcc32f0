"""The executors by their names, and those that work in this process: serial, threads, asyncio."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.calls.executor import (
    Executor,
    SerialExecutor,
    background_loop,
    is_async,
    is_ours,
    outcome,
    through_a_window,
    window,
    within_async,
)
from ..core.registry import Registry

if TYPE_CHECKING:
    import asyncio

Item = TypeVar("Item")

# The executors in other modules register themselves when they are first used: ray takes a second to import.
EXECUTORS: Registry[Callable[..., Executor]] = Registry(
    "executor",
    {"processes": "auepora_eval.execution.processes", "ray": "auepora_eval.execution.ray"},
)


EXECUTORS.add("serial")(SerialExecutor)


@EXECUTORS.add("threads")
class ThreadExecutor:
    """Several calls at a time, each in a thread: for systems that wait on a network or a GPU."""

    def __init__(self, *, concurrency: int = 8, timeout: float | None = None) -> None:
        self.concurrency, self.timeout = positive(concurrency), timeout

    def map(self, call: Callable[[Item], Any], items: Iterable[Item]) -> Iterator[tuple[int, Any]]:
        todo: queue.SimpleQueue[tuple[int, Item] | None] = queue.SimpleQueue()
        done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        stopped = threading.Event()
        threads: list[threading.Thread] = []

        def work() -> None:
            # A map that is stopped leaves items in the queue, before the None: those must not be called.
            while (task := todo.get()) is not None and not stopped.is_set():
                done.put((task[0], outcome(call, task[1], self.timeout)))

        def send(place: int, item: Item) -> None:
            todo.put((place, item))
            if len(threads) < self.concurrency:
                # Daemon threads: the interpreter joins those of a ThreadPoolExecutor at exit, hung or not.
                threads.append(threading.Thread(target=work, name=f"auepora-{len(threads)}", daemon=True))
                threads[-1].start()

        try:
            yield from through_a_window(items, window(self.concurrency), send, done.get)
        finally:
            # Not joined: a thread in a hung call would block the end of the run.
            stopped.set()
            for _ in threads:
                todo.put(None)


@EXECUTORS.add("async")
class AsyncExecutor:
    """Several calls at a time on one event loop: for systems whose `run` is a coroutine function."""

    def __init__(self, *, concurrency: int = 8, timeout: float | None = None) -> None:
        self.concurrency, self.timeout = positive(concurrency), timeout

    def map(self, call: Callable[[Item], Any], items: Iterable[Item]) -> Iterator[tuple[int, Any]]:
        import asyncio

        loop = background_loop()
        done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        slots = asyncio.Semaphore(self.concurrency)
        # The loop has only weak references to its tasks: without these, one that waits could be collected.
        tasks: set[asyncio.Task[None]] = set()

        async def work(place: int, item: Item) -> None:
            async with slots:
                result = await self.outcome(call, item)
            done.put((place, result))

        def start(place: int, item: Item) -> None:
            task = loop.create_task(work(place, item))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        def send(place: int, item: Item) -> None:
            loop.call_soon_threadsafe(start, place, item)

        def dismiss() -> None:
            for task in tasks:
                task.cancel()

        try:
            yield from through_a_window(items, window(self.concurrency), send, done.get)
        finally:
            loop.call_soon_threadsafe(dismiss)

    async def outcome(self, call: Callable[[Item], Any], item: Item) -> Any:
        """Return the result of a call, or the exception that it ended with."""
        # A synchronous call would block the loop: it is made in a thread that can be left behind.
        start = call if is_async(call) else partial(_in_thread, call)
        try:
            if self.timeout is None:
                return await start(item)
            return await within_async(self.timeout, lambda: start(item))
        except BaseException as error:
            if is_ours(error) and not isinstance(error, KeyboardInterrupt):
                raise
            # Raised in a task, it would end the loop and with it the calls of all other samples.
            return error


async def _in_thread(call: Callable[[Item], Any], item: Item) -> Any:
    import asyncio

    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any) -> None:
        if not answer.done():  # cancelled when the time was up
            answer.set_result(result)

    def work() -> None:
        result = outcome(call, item, None)
        loop.call_soon_threadsafe(settle, result)

    threading.Thread(target=work, name="auepora-call", daemon=True).start()
    return await answer


def positive(concurrency: int) -> int:
    """Return the concurrency; raise ValueError if it is not positive."""
    if concurrency < 1:
        raise ValueError(f"concurrency must be at least 1, not {concurrency}")
    return concurrency
