"""Waits that end before their time when the run is to stop."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


class Alarm:
    """Whoever waits here is woken for good when it rings.

    Ringing takes no lock, so that a signal handler may do it, in the middle of a wait of its own thread too.
    """

    def __init__(self) -> None:
        self._rang = False
        self._wakes: set[Callable[[], None]] = set()

    @property
    def rang(self) -> bool:
        """Whether nobody is to wait any more."""
        return self._rang

    def ring(self) -> None:
        """End all waits, those that are yet to begin too."""
        self._rang = True
        for wake in list(self._wakes):
            wake()

    def wait(self, seconds: float) -> None:
        """Wait so long, in this thread."""
        woken: queue.SimpleQueue[None] = queue.SimpleQueue()  # its `put` may interrupt its own `get`
        with self._waking(lambda: woken.put(None)), suppress(queue.Empty):
            if not self._rang:
                woken.get(timeout=seconds)

    async def wait_async(self, seconds: float) -> None:
        """Wait so long, in this task."""
        loop = asyncio.get_running_loop()
        woken: asyncio.Future[None] = loop.create_future()

        def settle() -> None:
            if not woken.done():
                woken.set_result(None)

        def wake() -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits there
                loop.call_soon_threadsafe(settle)

        with self._waking(wake):
            if not self._rang:
                await asyncio.wait([woken], timeout=seconds)

    @contextmanager
    def _waking(self, wake: Callable[[], None]) -> Iterator[None]:
        # Before it is looked whether it rang: a ring in between would be missed.
        self._wakes.add(wake)
        try:
            yield
        finally:
            self._wakes.discard(wake)
