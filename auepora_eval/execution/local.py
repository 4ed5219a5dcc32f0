"""The executors by their names, and those that work in this process: serial, threads, asyncio."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from itertools import chain, islice
from typing import Any, Generic, TypeVar

from ..core.calls.executor import (
    Executor,
    SerialExecutor,
    background_loop,
    executor_name,
    is_async,
    outcome,
    through_a_window,
    window,
    within_async,
)
from ..core.registry import Registry
from ..errors import PlanError

Item = TypeVar("Item")

_TOGETHER = 0.004  # seconds

# The executors in other modules register themselves when they are first used: ray takes a second to import.
EXECUTORS: Registry[Callable[..., Executor]] = Registry(
    "executor",
    {"processes": "auepora_eval.execution.processes", "ray": "auepora_eval.execution.ray"},
)


@EXECUTORS.add("serial")
def serial(*, concurrency: int = 1, timeout: float | None = None) -> Executor:
    """Make one call at a time, whatever the concurrency."""
    return SerialExecutor(timeout=timeout)


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
                done.put((task[0], outcome_in_thread(call, task[1], self.timeout)))

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
        loop = background_loop()
        tasks = _Tasks(self, call, loop)
        try:
            yield from through_a_window(items, window(self.concurrency), tasks.send, tasks.receive)
        finally:
            loop.call_soon_threadsafe(tasks.dismiss)

    async def outcome(self, call: Callable[[Item], Any], item: Item) -> Any:
        """Return the result of a call, or the exception that it ended with."""
        # A synchronous call would block the loop: it is made in a thread that can be left behind.
        start = call if is_async(call) else partial(_in_thread, call)
        try:
            if self.timeout is None:
                return await start(item)
            return await within_async(self.timeout, lambda: start(item))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - that sample's outcome
            # Raised in a task, SystemExit would end the loop and with it the calls of all other samples.
            return error
        except asyncio.CancelledError:
            # What a system cancels must not end its worker. Our own cancellation does.
            task = asyncio.current_task()
            if task is None or task.cancelling() > 0:
                raise
            return RuntimeError("the system has cancelled the call itself")


class _Tasks(Generic[Item]):
    """Tasks on the loop that take items from one queue and put results into another."""

    def __init__(
        self, executor: AsyncExecutor, call: Callable[[Item], Any], loop: asyncio.AbstractEventLoop
    ) -> None:
        self._executor, self._call, self._loop = executor, call, loop
        self._todo: deque[tuple[int, Item]] = deque()
        self._arrived: list[tuple[int, Any]] = []
        self._sent: queue.SimpleQueue[list[tuple[int, Any]]] = queue.SimpleQueue()
        self._received: list[tuple[int, Any]] = []
        # The loop has only weak references to its tasks: without these, one that waits could be collected.
        self._tasks: set[asyncio.Task[None]] = set()
        self._working = 0  # tasks that will check the queue before they end
        self._called = False

    def send(self, place: int, item: Item) -> None:
        """Accept an item, in the thread that takes the results."""
        self._todo.append((place, item))
        # No lock: a task that ends checks the queue once more (`_ended`), and `_start` resets the flag before
        # it reads the queue. One wake-up for many items: each costs a system call.
        if not self._called and self._working < self._executor.concurrency:
            self._called = True
            self._loop.call_soon_threadsafe(self._start)

    def receive(self) -> tuple[int, Any]:
        """Wait for the next result and return it, in that thread too."""
        if not self._received:
            self._received = self._sent.get()
            self._received.reverse()
        return self._received.pop()

    def _start(self) -> None:
        self._called = False
        for _ in range(min(len(self._todo), self._executor.concurrency - self._working)):
            self._working += 1
            task = self._loop.create_task(self._work())
            self._tasks.add(task)
            task.add_done_callback(self._ended)

    async def _work(self) -> None:
        while self._todo:
            place, item = self._todo.popleft()
            result = await self._executor.outcome(self._call, item)
            self._arrived.append((place, result))
            if not self._todo:
                self._hand_over()
            elif len(self._arrived) == 1:
                # While there are items left, results are handed over in groups: the two threads, of which
                # only one can run at a time, switch less often.
                self._loop.call_later(_TOGETHER, self._hand_over)

    def _hand_over(self) -> None:
        arrived, self._arrived = self._arrived, []
        if arrived:
            self._sent.put(arrived)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._working -= 1
        self._start()

    def dismiss(self) -> None:
        """Stop at once and cancel the calls under way."""
        self._todo.clear()
        for task in self._tasks:
            task.cancel()


def outcome_in_thread(call: Callable[[Item], Any], item: Item, timeout: float | None) -> Any:
    """Do the same as `outcome` for any exception: a thread that dies would be waited for."""
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


def positive(concurrency: int) -> int:
    """Return the concurrency; raise ValueError if it is not positive."""
    if concurrency < 1:
        raise ValueError(f"concurrency must be at least 1, not {concurrency}")
    return concurrency


class WarmedUp:
    """An executor that calls the first items once before, so that a model has loaded when it is timed.

    The first items are called again in their turn. The cost of the extra calls counts for a budget; their
    results and failures do not count. Worker processes cannot be warmed up: they come and go.
    """

    def __init__(self, executor: Executor, calls: int) -> None:
        if executor_name(executor) in ("ProcessExecutor", "RayExecutor"):
            raise PlanError("A warm-up needs the executor serial, threads or async.")
        self.executor, self.calls = executor, calls
        self.concurrency = getattr(executor, "concurrency", None)
        self.timeout = getattr(executor, "timeout", None)

    def map(self, call: Callable[[Item], Any], items: Iterable[Item]) -> Iterator[tuple[int, Any]]:
        source = iter(items)
        first = list(islice(source, self.calls))
        limits: Any = getattr(call, "limits", None)
        with nullcontext() if limits is None else limits.warming_up():
            for _ in self.executor.map(call, first):
                pass
        yield from self.executor.map(call, chain(first, source))
