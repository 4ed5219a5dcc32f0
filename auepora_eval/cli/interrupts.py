"""Ctrl-C, SIGTERM and a closed terminal: calls are finished at the first signal, the second stops them."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

SECONDS_TO_FINISH = 10.0


class StopNow(KeyboardInterrupt):
    """The process has to end now; the argument is the signal."""


class Signalled:
    """Which signal came, if one did."""

    number: int = 0
    is_now: bool = False  # it came twice, or the calls under way took too long
    is_heeded: bool = False  # the run has stopped: only messages are left, and further signals change nothing

    @property
    def exit_code(self) -> int:
        return 128 + self.number

    @property
    def reason(self) -> str:
        """Return the signal, in words."""
        return f"interrupted ({signal.Signals(self.number).name})" if self.number else "interrupted"


@contextmanager
def stopping_at_once() -> Iterator[None]:
    """Raise StopNow on SIGTERM and when the terminal is closed, as Ctrl-C raises KeyboardInterrupt."""

    def stop(number: int) -> None:
        raise StopNow(number)

    with _handled(stop, signal.SIGTERM, signal.SIGHUP):
        yield


@contextmanager
def finishing_first(stop: Callable[[], None], seconds: float | None = None) -> Iterator[Signalled]:
    """Call `stop` at the first signal; raise StopNow at the second, or after the seconds (default: 10)."""
    signalled, seconds = Signalled(), SECONDS_TO_FINISH if seconds is None else seconds
    timers: list[threading.Timer] = []

    def handle(number: int) -> None:
        if signalled.is_heeded:
            return
        if signalled.number:
            signalled.is_now = True
            raise StopNow(signalled.number)
        signalled.number = number
        stop()
        # Not by print: the signal may have come in the middle of one.
        words = f"\nstopping: the calls under way are finished, {seconds:g} s at most; again to stop now\n"
        with suppress(OSError):  # the terminal may be gone
            os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, words.encode())
        # A real signal: it wakes a main thread that waits for an answer.
        main_thread = threading.main_thread().ident or 0
        timer = threading.Timer(seconds, signal.pthread_kill, [main_thread, signal.SIGTERM])
        timer.daemon = True
        timer.start()
        timers.append(timer)

    try:
        with _handled(handle, signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            yield signalled
    except (Exception, KeyboardInterrupt) as error:
        if signalled.is_now:  # StopNow was raised in other code, which replaced it by another error
            raise StopNow(signalled.number) from error
        raise
    finally:
        for timer in timers:
            timer.cancel()


@contextmanager
def _handled(act: Callable[[int], None], *numbers: int) -> Iterator[None]:
    """Call `act` with each signal of the block, unless `nohup` or a shell has set it to be ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Python lets only the main thread handle signals
        return
    process = os.getpid()
    before = {number: signal.getsignal(number) for number in numbers}
    before = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}

    def handle(number: int, frame: object) -> None:
        if os.getpid() != process:
            # A child that a system forks is to end, not to finish the calls of the run.
            signal.signal(number, before[number])
            signal.raise_signal(number)
            return
        if number == signal.SIGHUP:
            # A closed terminal sends it twice, from the shell and from the system. It is one request.
            signal.signal(number, signal.SIG_IGN)
        act(number)

    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            # The second SIGHUP may come while the process ends, and must not change its exit code.
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, handler)
