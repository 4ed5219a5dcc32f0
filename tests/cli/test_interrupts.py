"""Errors caused by a second signal are a stop."""

from __future__ import annotations

import signal
from collections.abc import Callable

import pytest

from auepora_eval.cli.interrupts import Signalled, StopNow, finishing_first

pytestmark = pytest.mark.full


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
