"""Kill a process at a chosen moment: at a call of the operating system, or after some seconds."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

from auepora_eval.cli.main import main


def die_at(name: str, count: int, *, after: bool) -> None:
    """Let this process be killed before or after the `count`-th call of a function of `os`."""
    real, left = getattr(os, name), [count]

    def call(*args: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] == 0 and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*args, **options)
        if left[0] == 0 and after:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(os, name, call)


def die_at_open() -> None:
    """Let this process be killed when it opens a file: every command does, also one that writes none."""

    def watch(event: str, _: object) -> None:
        if event == "open":
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def forked(words: list[str], moment: tuple[str, int, bool] | float | str | None) -> int:
    """Return how a command ends that is killed at a call of the system, after some seconds, or not at all."""
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if isinstance(moment, tuple):
            die_at(*moment[:2], after=moment[2])
        elif moment == "open":
            die_at_open()
        os._exit(main(words))
    if isinstance(moment, float):
        time.sleep(moment)
        os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
