"""How a system is called on many samples: the protocol, the plain loop, and what all executors share."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import cache
from typing import Any, Protocol, TypeVar

Item = TypeVar("Item")


class Executor(Protocol):
    """Calls a function on each item.

    Yields (place, result) as the results arrive, in whatever order; a call that raised or took too
    long yields its exception as the result. The function may return an awaitable.
    """

    def map(self, call: Callable[[Item], Any], items: Sequence[Item]) -> Iterator[tuple[int, Any]]: ...


class SerialExecutor:
    """One after the other, in this thread."""

    def __init__(self, *, timeout: float | None = None) -> None:
        self.timeout = timeout

    def map(self, call: Callable[[Item], Any], items: Sequence[Item]) -> Iterator[tuple[int, Any]]:
        for place, item in enumerate(items):
            yield place, outcome(call, item, self.timeout)


def outcome(call: Callable[[Item], Any], item: Item, timeout: float | None) -> Any:
    """The result of one call, awaited if need be, or the exception that it ended with."""
    try:
        if timeout is None:
            return _finished(call, item)
        return _within(timeout, lambda: _finished(call, item))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a system raises is that sample's outcome
        return error


def _finished(call: Callable[[Item], Any], item: Item) -> Any:
    result = call(item)
    if inspect.isawaitable(result):
        return asyncio.run_coroutine_threadsafe(_wait(result), background_loop()).result()
    return result


async def _wait(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


@cache
def background_loop() -> asyncio.AbstractEventLoop:
    """One event loop in a thread of its own: works inside notebooks, and clients keep their connections."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="auepora-loop", daemon=True).start()
    return loop


def _within(seconds: float, function: Callable[[], Any]) -> Any:
    """Call a function in a thread that can be left behind: a hung call must not hold the run."""
    box: list[tuple[bool, Any]] = []

    def work() -> None:
        try:
            box.append((True, function()))
        except BaseException as error:  # noqa: BLE001 - handed to the waiting thread below
            box.append((False, error))

    thread = threading.Thread(target=work, name="auepora-call", daemon=True)
    thread.start()
    thread.join(seconds)
    if not box:
        raise TimeoutError(f"no answer within {seconds:g} s")
    succeeded, value = box[0]
    if succeeded:
        return value
    raise value
