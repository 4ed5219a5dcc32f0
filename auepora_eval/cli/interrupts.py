"""Ctrl-C, SIGTERM and a closed terminal during a run: the first is a request, the second ends it at once."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

SECONDS_TO_FINISH = 10.0


# A closed terminal. The signal comes twice, from the shell and from the system, and is one request.
HANG_UP: int = getattr(signal, "SIGHUP", 0)  # 0 where it does not exist


def ending_signals() -> list[int]:
    """Return the signals that ask a program to end, without SIGHUP if `nohup` has set it to be ignored."""
    is_ignored = not HANG_UP or signal.getsignal(HANG_UP) is signal.SIG_IGN
    return [signal.SIGTERM] if is_ignored else [signal.SIGTERM, HANG_UP]


class StopNow(KeyboardInterrupt):
    """The second signal came, or the calls under way took too long."""


def set_handlers(numbers: Iterable[int], handler: Callable[[int, object], None]) -> dict[int, Any]:
    """Handle signals, and return the handlers from before, which the caller has to set again.

    In a process that a system forks, a signal goes to the handler from before: a child that is terminated is
    to end, not to finish the calls of the run.
    """
    process = os.getpid()

    def handle(number: int, frame: object) -> None:
        if os.getpid() == process:
            handler(number, frame)
        else:
            signal.signal(number, before[number])
            signal.raise_signal(number)

    before: dict[int, Any] = {}
    for number in numbers:
        before[number] = signal.signal(number, handle)
    return before


@dataclass
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
def finishing_first(stop: Callable[[], None], seconds: float | None = None) -> Iterator[Signalled]:
    """Call `stop` at the first signal; raise StopNow at the second, or after the seconds (default: 10).

    Any error that ends the block after that counts as the stop: some libraries replace the exception.
    """
    signalled, seconds = Signalled(), SECONDS_TO_FINISH if seconds is None else seconds
    if threading.current_thread() is not threading.main_thread():
        yield signalled
        return
    over: list[threading.Timer] = []

    def handle(number: int, frame: object) -> None:
        if signalled.is_heeded or (signalled.number and number == HANG_UP):
            return
        if signalled.number:
            signalled.is_now = True
            raise StopNow(number)
        signalled.number = number
        stop()
        # Not by print: the signal may have come in the middle of one.
        words = f"\nstopping: the calls under way are finished, {seconds:g} s at most; again to stop now\n"
        with suppress(OSError):  # the terminal may be gone
            os.write(sys.__stderr__.fileno() if sys.__stderr__ else 2, words.encode())
        # A second SIGHUP is ignored, so after a closed terminal the timer sends SIGTERM.
        timer = threading.Timer(seconds, _send, [signal.SIGTERM if number == HANG_UP else number])
        timer.daemon = True
        timer.start()
        over.append(timer)

    before = set_handlers((signal.SIGINT, *ending_signals()), handle)
    try:
        yield signalled
    except (Exception, KeyboardInterrupt) as error:
        if signalled.is_now:  # StopNow was raised in other code, which replaced it by another error
            raise StopNow(signalled.number) from error
        raise
    finally:
        for number, handler in before.items():
            # The second SIGHUP may come now, when everything is stored: it is ignored.
            is_same = number == HANG_UP == signalled.number
            signal.signal(number, signal.SIG_IGN if is_same else handler)
        for timer in over:
            timer.cancel()


def _send(number: int) -> None:
    # A real signal, where possible: it wakes a main thread that waits for an answer.
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        signal.raise_signal(number)
