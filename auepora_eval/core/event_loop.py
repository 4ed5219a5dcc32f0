"""An event loop that wakes up on time."""

from __future__ import annotations

import asyncio
import select
import selectors
from typing import Any

_MOST_DESCRIPTORS = 1024  # what select() can look at


def new_event_loop() -> asyncio.AbstractEventLoop:
    """An event loop; on Linux one whose timers are not rounded up to whole milliseconds."""
    if not hasattr(selectors, "EpollSelector"):
        return asyncio.new_event_loop()
    return asyncio.SelectorEventLoop(_precise_selector())


def _precise_selector() -> selectors.BaseSelector:
    class PreciseSelector(selectors.EpollSelector):
        """epoll counts its waits in milliseconds, rounded up: 5% of a call that takes 20.

        select() counts microseconds, and can wait for the epoll itself.
        """

        def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
            if timeout is None or timeout <= 0 or self.fileno() >= _MOST_DESCRIPTORS:
                return super().select(timeout)
            ready: Any = select.select([self.fileno()], [], [], timeout)[0]
            return super().select(0) if ready else []

    return PreciseSelector()
