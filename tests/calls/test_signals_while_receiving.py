"""The executor `processes` hears of a stop at whatever moment the signal comes."""

from __future__ import annotations

import os
import signal
import time
from threading import Timer

from auepora_eval.calls.processes import LOOK_SECONDS, _Pool


def test_a_signal_at_the_end_of_a_look_stops_the_workers() -> None:
    """queue.SimpleQueue waits for ever if a handler returns after the timeout of its `get`."""
    pool: _Pool[str] = _Pool(len, 1)
    seen: list[bool] = []

    def stop(number: int, frame: object) -> None:
        pool.limits.halt()
        time.sleep(0.1)

    before = signal.signal(signal.SIGUSR1, stop)
    timers = [
        Timer(LOOK_SECONDS / 2, os.kill, (os.getpid(), signal.SIGUSR1)),
        Timer(1.0, lambda: seen.append(bool(pool._halted.value))),
        Timer(2.0, pool._done.put, [(0, 3)]),  # the result that a call of many retries gives at last
    ]
    try:
        for timer in timers:
            timer.start()
        assert pool._receive() == (0, 3)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert seen == [True]
