"""Signals while Ray starts: nothing is raised in the middle of it, where it could hang for ever."""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.calls import ray as ray_cluster
from auepora_eval.calls.ray import held_back
from auepora_eval.cli.interrupts import StopNow, finishing_first
from auepora_eval.errors import PlanError

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(sys.platform == "win32", reason="signals are other ones here"),
]
ROOT = Path(__file__).parents[2]


class SlowRay:
    """What is used of Ray to start it; meanwhile signals arrive."""

    def __init__(self, *signals: int, fails: bool = False) -> None:
        self.events: list[str] = []
        self._signals, self._fails = signals, fails

    def is_initialized(self) -> bool:
        return False

    def init(self, **options: Any) -> None:
        if threading.current_thread() is threading.main_thread():  # as Ray does
            signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(number))
        sent = threading.Event()
        threading.Thread(target=self._send, args=(sent,), daemon=True).start()
        try:
            sent.wait(20)
            time.sleep(0.5)
        except BaseException:
            self.events.append("torn")
            raise
        self.events.append("started")
        if self._fails:
            raise ConnectionError("nobody there")

    def _send(self, sent: threading.Event) -> None:
        for number in self._signals:
            time.sleep(0.05)
            os.kill(os.getpid(), number)
        sent.set()

    def shutdown(self) -> None:
        self.events.append("ended")


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("USAGE_STATS_ENABLED", "ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "ENABLE_WINDOWS_OR_OSX_CLUSTER"):
        monkeypatch.setenv(f"RAY_{name}", "0")
    monkeypatch.setenv("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    # A shell that runs the tests in the background has Ctrl-C ignored, and children inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
    atexit.unregister(ray_cluster._shut_down)


def started(monkeypatch: pytest.MonkeyPatch, ray: SlowRay) -> Any:
    monkeypatch.setitem(sys.modules, "ray", ray)
    return ray_cluster.connected(None, 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_waits_until_ray_has_started(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ray, asked = SlowRay(number, number), []
    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    with (
        pytest.raises(StopNow) as stopped,
        finishing_first(lambda: asked.append("stop")),
    ):
        started(monkeypatch, ray)
    assert (stopped.value.args, asked, ray.events) == ((number,), ["stop"], ["started"])
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_one_signal_is_a_request_and_ray_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    ray, asked = SlowRay(signal.SIGTERM), []
    with finishing_first(lambda: asked.append("stop")):
        handler = signal.getsignal(signal.SIGTERM)
        assert started(monkeypatch, ray) is ray
        assert signal.getsignal(signal.SIGTERM) is handler
    assert (asked, ray.events) == (["stop"], ["started"])


def test_where_ctrl_c_is_an_exception_it_comes_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = SlowRay(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        started(monkeypatch, ray)
    assert ray.events == ["started"]


def test_a_start_that_fails_says_so_unless_it_was_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PlanError, match="cannot be reached: nobody there"):
        started(monkeypatch, SlowRay(fails=True))
    with pytest.raises(KeyboardInterrupt):
        started(monkeypatch, SlowRay(signal.SIGINT, fails=True))


def test_what_is_raised_by_a_signal_comes_behind_the_block() -> None:
    done = []

    def work() -> None:
        with held_back():
            signal.raise_signal(signal.SIGINT)
            done.append("to its end")
        done.append("not this")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["to its end"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_third_signal_ends_a_start_that_hangs(tmp_path: Path) -> None:
    (tmp_path / "ray.py").write_text(
        "import time\n"
        "def is_initialized():\n    return False\n"
        "def init(**options):\n    print('starts', flush=True)\n    time.sleep(60)\n",
        encoding="utf-8",
    )
    script = (
        "from auepora_eval.cli.interrupts import finishing_first\n"
        "from auepora_eval.calls.ray import connected\n"
        "with finishing_first(lambda: None):\n    connected(None, 1)\n"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "starts\n"
    for pause in (0.2, 1.2, 0):
        running.send_signal(signal.SIGINT)
        time.sleep(pause)
    _, err = running.communicate(timeout=20)
    assert running.returncode == 130, err
