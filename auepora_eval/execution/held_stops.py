"""Stops that wait for native code: what a signal handler raises in the middle of it can hang for ever."""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")
_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
_LOOK_SECONDS = 0.1
_MEANT = 1.0  # seconds after which another request is no slip of the finger
_LONGEST = 20.0  # seconds that a start is waited for when it is not wanted any more


@dataclass
class Held:
    """What a signal handler raised."""

    error: BaseException | None = None
    exit_code: int = 0
    since: float = 0.0
    is_watched: bool = False  # who holds it back looks whether it is urgent, and ends the block then
    is_urgent: bool = False
    is_over: bool = False  # from here on it is raised where it arises


@contextmanager
def held_back() -> Iterator[Held]:
    """Raise what signal handlers raise when the block has ended, not within it.

    The handlers themselves are called at once. If one wants to end the program again, a second or more after
    the first time, the block has lasted too long: that is the end, there and then, unless somebody watches.
    """
    held = Held()
    former: dict[int, Any] = {}

    def hold(number: int, frame: Any) -> None:
        try:
            former[number](number, frame)
        except BaseException as error:
            if held.is_over:
                raise
            now = time.monotonic()
            if held.error is None:
                held.error, held.exit_code, held.since = error, 128 + number, now
            elif now - held.since > _MEANT:
                held.is_urgent = True
                if not held.is_watched:
                    os._exit(128 + number)

    if threading.current_thread() is threading.main_thread():  # signals come to no other
        numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
        former |= {number: handler for number in numbers if callable(handler := signal.getsignal(number))}
    try:
        for number in former:
            signal.signal(number, hold)
        yield held
    finally:
        held.is_over = True
        for number, handler in former.items():
            signal.signal(number, handler)
        if held.error is not None:
            raise held.error


def undisturbed(function: Callable[..., T], *args: Any, **options: Any) -> T:
    """The result of a short call, during which no signal raises anything."""
    with held_back():
        return function(*args, **options)


def started(start: Callable[[], None], name: str) -> None:
    """Start something that may take long and would take signals for itself: in a thread, which is waited for.

    The thread that hears signals stays here, where they can be heard. A stop waits for the start, but not for
    ever; if the start is given up, the program ends without what would be done at its end.
    """
    if threading.current_thread() is not threading.main_thread():
        start()
        return
    failed: list[BaseException] = []
    done = threading.Event()

    def work() -> None:
        try:
            start()
        except BaseException as error:  # noqa: BLE001 - raised again below
            failed.append(error)
        done.set()
        # On Linux a process may be asked to die with its parent, and that is the thread which started it.
        threading.Event().wait()

    with held_back() as held:
        held.is_watched = True
        threading.Thread(target=work, name="auepora-start", daemon=True).start()
        is_told = False
        while not done.wait(_LOOK_SECONDS):
            if held.error is None:
                continue
            if not is_told:
                is_told = True
                words = f"{name} is still starting, and waited for, {_LONGEST:g} s at most; again to end now"
                warnings.warn(words, stacklevel=2)
            if held.is_urgent or time.monotonic() - held.since > _LONGEST:
                atexit.register(_leave_at_once, done, held.exit_code)
                break
        if failed:
            raise failed[0]


def _leave_at_once(done: threading.Event, exit_code: int) -> None:
    """The last act of a program whose start of something still hangs: to end that could hang as well."""
    if done.is_set():
        return
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed, broken or not there
            stream.flush()
    os._exit(exit_code)
