"""Errors caused by a second signal are a stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from auepora_eval.cli.interrupts import Signalled, StopNow, finishing_first


def twice_within(raised: Callable[[BaseException], BaseException]) -> None:
    """Two signals, the second in the middle of code that raises something else on account of it."""
    signal.raise_signal(signal.SIGINT)
    try:
        signal.raise_signal(signal.SIGINT)
    except StopNow as stop:
        raise raised(stop) from stop


@pytest.mark.parametrize(
    "raised",
    [
        pytest.param(lambda stop: SystemError("wait returned a result with an exception set"), id="C code"),
        pytest.param(lambda stop: RuntimeError("the worker is gone"), id="a library"),
        pytest.param(lambda stop: KeyboardInterrupt(), id="as Python would have it"),
        pytest.param(lambda stop: StopNow(signal.SIGINT), id="nobody"),
    ],
)
def test_error_caused_by_the_second_signal_is_a_stop(
    raised: Callable[[BaseException], BaseException], capfd: pytest.CaptureFixture[str]
) -> None:
    asked: list[str] = []
    with pytest.raises(StopNow) as stopped, finishing_first(lambda: asked.append("stop")):
        twice_within(raised)
    assert stopped.value.args == (signal.SIGINT,)
    assert asked == ["stop"]
    assert "again to stop now" in capfd.readouterr().err


@pytest.mark.parametrize("signals", [0, 1])
def test_other_errors_are_unchanged(signals: int, capfd: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)

    def failing(signalled: list[Signalled]) -> None:
        with finishing_first(lambda: None) as told:
            signalled.append(told)
            for _ in range(signals):
                signal.raise_signal(signal.SIGINT)
            raise OSError("the disk is gone")

    seen: list[Signalled] = []
    with pytest.raises(OSError, match="the disk is gone"):
        failing(seen)
    assert seen[0].is_now is False
    assert signal.getsignal(signal.SIGINT) is before
    assert ("stopping:" in capfd.readouterr().err) is bool(signals)


SIGNAL_IN_A_FORK = """
import os, signal, time

# Registered first, this hook is called after ours.
os.register_at_fork(before=lambda: signal.raise_signal(signal.SIGTERM))
from auepora_eval.cli.interrupts import StopNow, finishing_first

try:
    with finishing_first(lambda: None, seconds=60):
        for _ in range(2):
            if not (child := os.fork()):
                os._exit(0)
            os.waitpid(child, 0)
            time.sleep(1)
except StopNow:
    print("stopped", signal.pthread_sigmask(signal.SIG_BLOCK, []))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_signal_during_a_fork_still_stops_and_none_stays_blocked() -> None:
    """Python drops what is raised while it forks."""
    done = subprocess.run(
        [sys.executable, "-c", SIGNAL_IN_A_FORK], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "stopped set()\n", done.stderr
    assert "ignored" not in done.stderr  # Python reports what it drops
