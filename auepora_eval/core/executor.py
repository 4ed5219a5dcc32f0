"""How a system is called on many samples: the protocol, the plain loop, and what all executors share."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import cache
from typing import Any, Protocol, TypeVar

from ..errors import RunStoppedError
from .event_loop import new_event_loop

Item = TypeVar("Item")

MOST_LEFT_BEHIND = 512
_CLEAN_UP_SECONDS = 0.5  # for a coroutine that is cancelled; then nobody waits for it any more


class Executor(Protocol):
    """Calls a function on each item.

    Yields (place, result) as the results arrive, in whatever order; a call that raised or took too
    long yields its exception as the result. The function may return an awaitable. The items may be an
    iterator without end: only a window of them is taken before the first results are yielded. A call that
    raises RunStoppedError ends it all: no further item is taken, the calls under way are waited for and
    yielded, then the error is raised. Closing the generator stops at once.
    """

    def map(self, call: Callable[[Item], Any], items: Iterable[Item]) -> Iterator[tuple[int, Any]]: ...


class SerialExecutor:
    """One after the other, in this thread."""

    concurrency = 1

    def __init__(self, *, timeout: float | None = None) -> None:
        self.timeout = timeout

    def map(self, call: Callable[[Item], Any], items: Iterable[Item]) -> Iterator[tuple[int, Any]]:
        for place, item in enumerate(items):
            result = outcome(call, item, self.timeout)
            if isinstance(result, RunStoppedError):
                raise result
            yield place, result


def executor_name(executor: Any) -> str:
    """The name of an executor's class, be it wrapped in one that warms it up or looks at its calls."""
    while (inner := getattr(executor, "executor", None)) is not None:
        executor = inner
    return type(executor).__name__


def window(concurrency: int) -> int:
    """How many items may be under way: enough that no worker waits for whoever takes the results."""
    return 2 * concurrency + 8


def through_a_window(
    items: Iterable[Item],
    size: int | Callable[[], int],
    send: Callable[[int, Item], None],
    receive: Callable[[], tuple[int, Any]],
) -> Iterator[tuple[int, Any]]:
    """Send items and yield what comes back, with at most `size` items between the two, as it then is."""
    room = size if callable(size) else lambda: size
    source = enumerate(items)
    under_way = 0
    more = True
    stopped: RunStoppedError | None = None
    while True:
        while more and under_way < room():
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
    """Whether a call is to be awaited: a coroutine function, or an object that says so of itself."""
    return inspect.iscoroutinefunction(call) or getattr(call, "is_async", False) is True


def outcome(call: Callable[[Item], Any], item: Item, timeout: float | None) -> Any:
    """The result of one call, awaited if need be, or the exception that it ended with."""
    try:
        if timeout is None:
            return _finished(call, item)
        return within(timeout, lambda: _finished(call, item))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a system raises is that sample's outcome
        return error


def _finished(call: Callable[[Item], Any], item: Item) -> Any:
    result = call(item)
    return awaited(result) if inspect.isawaitable(result) else result


def awaited(awaitable: Awaitable[Any]) -> Any:
    """What an awaitable brings, waited for in this thread."""

    async def wait() -> Any:
        return await awaitable

    return asyncio.run_coroutine_threadsafe(wait(), background_loop()).result()


@cache
def background_loop() -> asyncio.AbstractEventLoop:
    """One event loop in a thread of its own: works inside notebooks, and clients keep their connections."""
    loop = new_event_loop()
    given = (loop, _left_behind.tasks)
    threading.Thread(target=_run_for_ever, args=given, name="auepora-loop", daemon=True).start()
    return loop


def _run_for_ever(loop: asyncio.AbstractEventLoop, kept: set[asyncio.Task[Any]]) -> None:
    # `kept` is held by this frame, which the interpreter never clears: at its end it would throw an exception
    # into each task that is left behind, and one that swallows everything would go on for ever.
    loop.run_forever()


class _LeftBehind:
    """How many threads and tasks still work on calls that nobody waits for any more."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self.tasks: set[asyncio.Task[Any]] = set()  # a loop alone does not keep them

    def add(self, change: int) -> None:
        with self._lock:
            self._count += change

    def add_task(self, task: asyncio.Task[Any]) -> None:
        self.add(1)
        self.tasks.add(task)
        task.add_done_callback(self._task_is_done)

    def _task_is_done(self, task: asyncio.Task[Any]) -> None:
        self.add(-1)
        self.tasks.discard(task)

    def __int__(self) -> int:
        return self._count


_left_behind = _LeftBehind()


def threads_left_behind() -> int:
    """The number of hung calls whose threads, or tasks, are still there."""
    return int(_left_behind)


def _refuse_if_too_many_hang() -> None:
    if threads_left_behind() >= MOST_LEFT_BEHIND:
        raise RunStoppedError(
            f"stopped: {MOST_LEFT_BEHIND} calls hang and have not come back; each holds a thread or a task. "
            "Give the system a timeout of its own, or use the executor `processes`, which ends them."
        )


def within(seconds: float, function: Callable[[], Any]) -> Any:
    """Call a function in a thread that can be left behind: a hung call must not hold the run."""
    _refuse_if_too_many_hang()
    lock = threading.Lock()
    box: list[tuple[bool, Any]] = []
    abandoned = False

    def work() -> None:
        try:
            result = (True, function())
        except BaseException as error:  # noqa: BLE001 - handed to the waiting thread below
            result = (False, error)
        with lock:
            box.append(result)
            if abandoned:
                _left_behind.add(-1)

    thread = threading.Thread(target=work, name="auepora-call", daemon=True)
    thread.start()
    thread.join(seconds)
    with lock:
        if not box:
            abandoned = True
            _left_behind.add(1)
            raise TimeoutError(f"no answer within {seconds:g} s")
    succeeded, value = box[0]
    if succeeded:
        return value
    raise value


async def within_async(seconds: float, start: Callable[[], Awaitable[Any]]) -> Any:
    """The same for a coroutine: when the time is up it is cancelled, and left behind if it does not end."""
    _refuse_if_too_many_hang()
    task = asyncio.ensure_future(_settled(start))
    try:
        await asyncio.wait([task], timeout=seconds)
        is_late = not task.done()
        if is_late:
            task.cancel()
            await asyncio.wait([task], timeout=_CLEAN_UP_SECONDS)
    finally:
        if not task.done():
            task.cancel()
            _left_behind.add_task(task)
    if is_late:
        raise TimeoutError(f"no answer within {seconds:g} s")
    if task.cancelled():
        raise asyncio.CancelledError
    value, error = task.result()
    if error is not None:
        raise error
    return value


async def _settled(start: Callable[[], Awaitable[Any]]) -> tuple[Any, BaseException | None]:
    # A task that ended with SystemExit would end the loop; and nobody asks for the error of one left behind.
    try:
        return await start(), None
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - raised again for who waits
        return None, error
