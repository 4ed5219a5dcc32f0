"""Ctrl-C, SIGTERM and a closed terminal while a system is being called: once is a request, twice an order."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

SECONDS_TO_FINISH = 10.0


# A terminal that was closed. It comes twice, from the shell and from the system, and is one request.
HANG_UP: int = getattr(signal, "SIGHUP", 0)  # 0: there is none


def ending_signals() -> list[int]:
    """The signals that ask a program to end; a closed terminal does not where `nohup` has it ignored."""
    hears = HANG_UP and signal.getsignal(HANG_UP) is not signal.SIG_IGN
    return [signal.SIGTERM, HANG_UP] if hears else [signal.SIGTERM]


class StopNow(BaseException):
    """The second signal, or the time for the calls under way is over."""


@dataclass
class Signalled:
    """Which signal came, if one did."""

    number: int = 0
    is_now: bool = False  # it came twice, or the time is over
    is_heeded: bool = False  # the run has stopped: what is left is said, and further signals change nothing

    @property
    def exit_code(self) -> int:
        return 128 + self.number

    @property
    def reason(self) -> str:
        """The signal, in words."""
        return f"interrupted ({signal.Signals(self.number).name})" if self.number else "interrupted"


@contextmanager
def finishing_first(stop: Callable[[], None], seconds: float = SECONDS_TO_FINISH) -> Iterator[Signalled]:
    """At the first signal call `stop`; at the second, or after these seconds, raise StopNow.

    Whatever error ends the block after that is the stop too: some libraries turn the one into the other.
    """
    signalled = Signalled()
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
        timer = threading.Timer(seconds, _send, [signal.SIGTERM if number == HANG_UP else number])
        timer.daemon = True
        timer.start()
        over.append(timer)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, *ending_signals())}
    try:
        yield signalled
    except (Exception, KeyboardInterrupt) as error:
        if signalled.is_now:  # raised in the middle of somebody else's code, which made another error of it
            raise StopNow(signalled.number) from error
        raise
    finally:
        for number, handler in before.items():
            # The second half of a hang-up may come now, when all is said and stored: it changes nothing.
            is_same = number == HANG_UP == signalled.number
            signal.signal(number, signal.SIG_IGN if is_same else handler)
        for timer in over:
            timer.cancel()


def _send(number: int) -> None:
    # A real signal where there are any: it wakes a main thread that waits for an answer.
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        signal.raise_signal(number)
