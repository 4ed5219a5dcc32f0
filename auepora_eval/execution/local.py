"""The executors by their names; here those that work in this process: serial, threads, asyncio."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, Generic, TypeVar

from ..core.executor import (
    Executor,
    SerialExecutor,
    background_loop,
    is_async,
    outcome,
    through_a_window,
    window,
    within_async,
)
from ..core.registry import Registry

Item = TypeVar("Item")

_TOGETHER = 0.004  # seconds

EXECUTORS: Registry[Callable[..., Executor]] = Registry("executor")


@EXECUTORS.add("serial")
def serial(*, concurrency: int = 1, timeout: float | None = None) -> Executor:
    """One call at a time, whatever the concurrency asked for."""
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
        crew = _Crew(self, call, loop)
        try:
            yield from through_a_window(items, window(self.concurrency), crew.send, crew.receive)
        finally:
            loop.call_soon_threadsafe(crew.dismiss)

    async def outcome(self, call: Callable[[Item], Any], item: Item) -> Any:
        """The result of a call, or the exception that it ended with."""
        # A synchronous call would block the loop: it is made in a thread that can be left behind.
        start = call if is_async(call) else partial(_in_thread, call)
        try:
            if self.timeout is None:
                return await start(item)
            return await within_async(self.timeout, lambda: start(item))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - that sample's outcome
            return error
        except asyncio.CancelledError:
            if _is_dismissed():
                raise
            return RuntimeError("the system has cancelled the call itself")


class _Crew(Generic[Item]):
    """Tasks on the loop that take what is to be done from one queue and put what is done into another."""

    def __init__(
        self, executor: AsyncExecutor, call: Callable[[Item], Any], loop: asyncio.AbstractEventLoop
    ) -> None:
        self._executor, self._call, self._loop = executor, call, loop
        self._todo: deque[tuple[int, Item]] = deque()
        self._arrived: list[tuple[int, Any]] = []
        self._sent: queue.SimpleQueue[list[tuple[int, Any]]] = queue.SimpleQueue()
        self._received: list[tuple[int, Any]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._working = 0  # tasks that will look into the queue before they end
        self._called = False

    def send(self, place: int, item: Item) -> None:
        """From the thread that takes the results."""
        self._todo.append((place, item))
        # No lock: a worker that ends looks once more after it has said so (`_ended`), and who starts some
        # takes the note away before it looks. One wake-up for many items: each costs a system call.
        if not self._called and self._working < self._executor.concurrency:
            self._called = True
            self._loop.call_soon_threadsafe(self._start)

    def receive(self) -> tuple[int, Any]:
        """From that thread too: the next result, waited for."""
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
                # There is work left to do: a few results go together, so that the two threads, of which
                # only one can run at a time, seldom get into each other's way.
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
        """Stop at once; what is under way is cancelled."""
        self._todo.clear()
        for task in self._tasks:
            task.cancel()


@EXECUTORS.add("processes")
def processes(**options: Any) -> Executor:
    """Several calls at a time, each in a process of its own."""
    from .processes import ProcessExecutor

    return ProcessExecutor(**options)


@EXECUTORS.add("ray")
def ray(**options: Any) -> Executor:
    """Calls as tasks on a Ray cluster."""
    from .ray_cluster import RayExecutor

    return RayExecutor(**options)


def outcome_in_thread(call: Callable[[Item], Any], item: Item, timeout: float | None) -> Any:
    """As `outcome`, whatever is raised: Ctrl-C reaches no worker, and one that died would be waited for."""
    try:
        return outcome(call, item, timeout)
    except BaseException as error:  # noqa: BLE001
        return error


def _is_dismissed() -> bool:
    """Whether it was us who cancelled the task: what a system cancels must not end its worker."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


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
    """The concurrency, if it is one."""
    if concurrency < 1:
        raise ValueError(f"concurrency must be at least 1, not {concurrency}")
    return concurrency
