"""How many things are asked at a time: one by one, in threads, on an event loop.

`processes` and `ray` have modules of their own.
"""

from __future__ import annotations

import inspect
import queue
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from ..errors import RunStoppedError

if TYPE_CHECKING:
    import asyncio  # in functions too: it takes 25 ms to import, and most commands make no call

Item = TypeVar("Item")

_CLEAN_UP_SECONDS = 0.5  # for a cancelled coroutine; after that it is left behind


class Executor(Protocol):
    """Calls a function on each item.

    Yields (place, result) as the results arrive, in any order. The result of a call that raised is its
    exception. The function may return an awaitable. The items may be an endless iterator: only a window of
    them is taken before the first results are yielded. A call that raises RunStoppedError ends the map: no
    further item is taken, the calls under way are finished and yielded, then the error is raised. Closing the
    generator stops at once.
    """

    def map(self, call: Callable[[Item], Any], items: Iterable[Item]) -> Iterator[tuple[int, Any]]: ...


class SerialExecutor:
    """Calls one after the other, in this thread, whatever the concurrency."""

    def __init__(self, *, concurrency: int = 1) -> None:
        self.concurrency = 1

    def map(self, call: Callable[[Item], Any], items: Iterable[Item]) -> Iterator[tuple[int, Any]]:
        for place, item in enumerate(items):
            result = outcome(call, item)
            # Ctrl-C is raised in the middle of a call, since this is the main thread of a command.
            if isinstance(result, RunStoppedError | KeyboardInterrupt):
                raise result
            yield place, result


class ThreadExecutor:
    """Several calls at a time, each in a thread: for systems that wait on a network or a GPU."""

    def __init__(self, *, concurrency: int = 8) -> None:
        self.concurrency = positive(concurrency)

    def map(self, call: Callable[[Item], Any], items: Iterable[Item]) -> Iterator[tuple[int, Any]]:
        todo: queue.SimpleQueue[tuple[int, Item] | None] = queue.SimpleQueue()
        done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        stopped = threading.Event()
        threads: list[threading.Thread] = []

        def work() -> None:
            # A map that is stopped leaves items in the queue, before the None: those must not be called.
            while (task := todo.get()) is not None and not stopped.is_set():
                done.put((task[0], outcome(call, task[1])))

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


class AsyncExecutor:
    """Several calls at a time on one event loop: for systems whose `run` is a coroutine function."""

    def __init__(self, *, concurrency: int = 8) -> None:
        self.concurrency = positive(concurrency)

    def map(self, call: Callable[[Item], Any], items: Iterable[Item]) -> Iterator[tuple[int, Any]]:
        import asyncio

        loop = background_loop()
        done: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        todo: deque[tuple[int, Item]] = deque()
        # The loop has only weak references to its tasks: without these, one that waits could be collected.
        tasks: set[asyncio.Task[Any]] = set()

        def begin() -> None:
            if todo and len(tasks) < self.concurrency:
                place, item = todo.popleft()
                # One each: what a call leaves behind, a context or a cancellation, is not for the next one.
                task = loop.create_task(_outcome_async(call, item))
                tasks.add(task)
                task.add_done_callback(partial(end, place))

        def end(place: int, task: asyncio.Task[Any]) -> None:
            tasks.discard(task)
            begin()
            lost = asyncio.CancelledError() if task.cancelled() else task.exception()
            done.put((place, lost or task.result()))

        def send(place: int, item: Item) -> None:
            todo.append((place, item))
            if len(tasks) < self.concurrency:  # else a task that ends begins it: to wake the loop takes time
                loop.call_soon_threadsafe(begin)

        def dismiss() -> None:
            todo.clear()
            for task in tasks:
                task.cancel()

        try:
            yield from through_a_window(items, window(self.concurrency), send, done.get)
        finally:
            loop.call_soon_threadsafe(dismiss)


def positive(concurrency: int) -> int:
    """Return the concurrency; raise ValueError if it is not positive."""
    if concurrency < 1:
        raise ValueError(f"concurrency must be at least 1, not {concurrency}")
    return concurrency


def window(concurrency: int) -> int:
    """Return how many items may be under way: enough that no worker waits for the consumer of results."""
    return 2 * concurrency + 8


def through_a_window(
    items: Iterable[Item],
    size: int | Callable[[], int],
    send: Callable[[int, Item], None],
    receive: Callable[[], tuple[int, Any]],
) -> Iterator[tuple[int, Any]]:
    """Send items and yield the results, with at most `size` items under way."""
    limit = size if callable(size) else lambda: size
    source = enumerate(items)
    under_way = 0
    more = True
    stopped: RunStoppedError | None = None
    while True:
        while more and under_way < limit():
            pair = next(source, None)
            if pair is None:
                more = False
            else:
                send(*pair)
                under_way += 1
        if not under_way:
            break
        place, result = receive()
        under_way -= 1
        if isinstance(result, RunStoppedError):
            stopped, more = stopped or result, False
        else:
            yield place, result
    if stopped is not None:
        raise stopped


def is_async(call: Callable[..., Any]) -> bool:
    """Return whether a call is to be awaited: a coroutine function, or an object with `is_async`."""
    return inspect.iscoroutinefunction(call) or getattr(call, "is_async", False) is True


def outcome(call: Callable[[Item], Any], item: Item) -> Any:
    """Return the result of one call, awaited if need be, or the exception that it ended with."""
    try:
        result = call(item)
        return awaited(result) if inspect.isawaitable(result) else result
    except BaseException as error:  # noqa: BLE001 - whatever a system raises is the outcome of its request
        return error


async def _outcome_async(call: Callable[[Item], Any], item: Item) -> Any:
    try:
        # A synchronous call would block the loop: it is made in a thread that can be left behind.
        return await (call(item) if is_async(call) else _in_thread(call, item))
    except BaseException as error:
        if is_ours(error) and not isinstance(error, KeyboardInterrupt):
            raise
        # Raised in a task, it would end the loop and with it all other calls.
        return error


async def _in_thread(call: Callable[[Item], Any], item: Item) -> Any:
    import asyncio

    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any) -> None:
        if not answer.done():  # cancelled when the map was closed
            answer.set_result(result)

    def work() -> None:
        result = outcome(call, item)
        loop.call_soon_threadsafe(settle, result)

    threading.Thread(target=work, name="auepora-call", daemon=True).start()
    return await answer


def is_ours(error: BaseException) -> bool:
    """Return whether an exception ends a call from outside: Ctrl-C, or the cancellation of its task."""
    import asyncio

    if not isinstance(error, asyncio.CancelledError):
        return isinstance(error, KeyboardInterrupt | GeneratorExit)
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread: the system has raised it
        return False
    return task is not None and task.cancelling() > 0


def awaited(awaitable: Awaitable[Any]) -> Any:
    """Return the result of an awaitable, waited for in this thread."""
    import asyncio

    async def wait() -> tuple[Any, BaseException | None]:
        try:
            return await awaitable, None
        except (SystemExit, KeyboardInterrupt) as error:  # raised in a task, it would end the loop
            return None, error

    result, error = asyncio.run_coroutine_threadsafe(wait(), background_loop()).result()
    if error is not None:
        raise error
    return result


@cache
def background_loop() -> asyncio.AbstractEventLoop:
    """Return one event loop in its own thread: it works in notebooks, and clients keep their connections."""
    import asyncio

    loop = asyncio.new_event_loop()
    # The thread's frame keeps the tasks alive: at its exit, the interpreter would throw an exception into
    # each task that is left behind, and one that swallows everything would run for ever.
    arguments = (loop, _left_behind)
    threading.Thread(target=_run_loop, args=arguments, name="auepora-loop", daemon=True).start()
    return loop


def _run_loop(loop: asyncio.AbstractEventLoop, kept: object) -> None:
    loop.run_forever()


# Deadlines. Tasks that still work on calls which have timed out are kept: a loop alone does not keep them.
_left_behind: set[asyncio.Task[Any]] = set()


def within(seconds: float, call: Callable[[Item], Any], item: Item) -> Any:
    """Make a call in a thread that can be left behind: a hung call must not block the run."""
    box: list[Any] = []

    def work() -> None:
        box.append(outcome(call, item))

    thread = threading.Thread(target=work, name="auepora-call", daemon=True)
    thread.start()
    thread.join(seconds)
    if not box:
        raise late(seconds)
    if isinstance(box[0], BaseException):
        raise box[0]
    return box[0]


async def within_async(seconds: float, call: Callable[[Item], Awaitable[Any]], item: Item) -> Any:
    """Do the same for a coroutine: after the timeout it is cancelled, and left behind if it does not end."""
    import asyncio

    clock = asyncio.get_running_loop().time
    started = clock()
    task = asyncio.ensure_future(_settled(call, item))
    try:
        await asyncio.wait([task], timeout=seconds)
        # One that blocks the loop is done when the loop looks at the clock again.
        is_late = not task.done() or clock() - started > seconds
        if not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=_CLEAN_UP_SECONDS)
    finally:
        if not task.done():
            task.cancel()
            _left_behind.add(task)
            task.add_done_callback(_left_behind.discard)
    if is_late:
        raise late(seconds)
    if task.cancelled():
        raise asyncio.CancelledError
    if isinstance(result := task.result(), BaseException):
        raise result
    return result


async def _settled(call: Callable[[Item], Awaitable[Any]], item: Item) -> Any:
    import asyncio

    # A task that ends with SystemExit would end the loop, and the error of one left behind is never read.
    try:
        return await call(item)
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - raised again by the caller
        return error


def late(seconds: float) -> TimeoutError:
    """Return the error of a call that has taken too long."""
    return TimeoutError(f"no answer within {seconds:g} s")
