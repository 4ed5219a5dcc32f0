"""The log of a run: `<id>.run/log.jsonl`, with one event per line, beside the journal.

It has what happened and when: failed and retried calls, waits, and how the run ended. It is for people and
their tools: nothing is computed from it, and a run is complete without it.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from ..calls.asking import AttemptRecord
from ..calls.keys import without_secrets
from ..core.runner import AueporaEvaluator
from ..core.systems.call import failed_attempts, is_from_cache
from ..core.types import TIMES_LEFT_OUT, EvaluationSample, Failure, SystemOutputs
from ..errors import InterruptedRunError, RunStoppedError
from ..io.jsonl import encode

LOG = "log.jsonl"
# Nothing is printed unless the program that uses the library adds a handler of its own.
LOGGER = logging.getLogger("auepora_eval")
LOGGER.addHandler(logging.NullHandler())
_LONGEST = 500  # characters of a fact
DEBUG, INFO, WARNING, ERROR = logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR
# No link is followed: one in the folder of a run could point to any file of the user.
_OPEN = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)

Facts = dict[str, Any]  # of an event, by name


def _log(level: int, event: str, facts: Facts) -> None:
    if LOGGER.isEnabledFor(level):
        LOGGER.log(level, "%s", in_words(event, facts), extra={"event": event, "facts": facts})


def clean_facts(facts: Facts) -> Facts:
    """Return facts as they may be written: without secrets, without None, of bounded length."""
    plain = {name: _plain(value) for name, value in facts.items() if value is not None}
    texts = {name: value.replace("\0", "\ufffd") for name, value in plain.items() if isinstance(value, str)}
    if not texts:
        return plain
    # All at once, since each call searches the environment for keys. No key has a NUL in it.
    # Redact before cutting: half a key would not be recognised.
    redacted = without_secrets("\0".join(texts.values())).split("\0")
    return plain | {name: text[:_LONGEST] for name, text in zip(texts, redacted, strict=True)}


def _plain(value: Any) -> Any:
    if isinstance(value, bool | int):
        return value
    # JSON has no NaN and no infinity: both are written as text.
    if isinstance(value, float) and abs(value) < float("inf"):
        return round(value, 6)
    # A lone surrogate cannot be written.
    return str(value).encode("utf-8", "replace").decode("utf-8")


def in_words(event: str, facts: Facts) -> str:
    """Return an event as one line.

    >>> in_words("sample.failed", {"sample_id": "q 7", "attempts": 3})
    "sample.failed sample_id='q 7' attempts=3"
    """
    words = [event]
    for name, value in facts.items():
        words.append(f"{name}={value!r}" if isinstance(value, str) else f"{name}={value}")
    return " ".join(words)


class RunLog:
    """Events of one run, to its file and to the logger `auepora_eval`. Safe to use from several threads.

    The file has everything from level info on, and lower levels if the logger has them. It is opened at once:
    the run must be locked by this process. If it cannot be written, it is given up and the run continues.
    """

    def __init__(self, folder: Path, *, restart: bool = True) -> None:
        self.path = folder / LOG
        self._file: int | None = None
        self._lock = threading.Lock()
        try:
            self._file = os.open(self.path, _OPEN | (os.O_TRUNC if restart else 0), 0o600)
            size = os.lseek(self._file, 0, os.SEEK_END)
            if size > 0 and os.pread(self._file, 1, size - 1) != b"\n":
                self._append(b"\n")  # a line that a kill cut off must not swallow the next one
        except OSError as error:
            self._give_up(error)

    def write(self, level: int, event: str, **facts: Any) -> None:
        """Write an event to the file, and to the logger."""
        if level < INFO and not LOGGER.isEnabledFor(level):
            return
        clean = clean_facts(facts)
        _log(level, event, clean)
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        head = {"time": time, "level": logging.getLevelName(level).lower(), "event": event}
        line = encode({**head, **clean}) + b"\n"
        with self._lock:
            self._append(line)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None  # a call that was left behind may still log

    def _append(self, content: bytes) -> None:
        try:
            rest = memoryview(content)
            # A write may be short, for example on a disk that is nearly full.
            while rest and self._file is not None:
                rest = rest[os.write(self._file, rest) :]
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        if self._file is not None:
            with suppress(OSError):
                os.close(self._file)
            self._file = None
        _log(WARNING, "log.given_up", clean_facts({"path": self.path, "message": error.strerror or error}))


def _log_output(log: RunLog, sample: EvaluationSample, output: SystemOutputs) -> None:
    """Write the outcome of a sample, and its failed attempts, which the output has records of."""
    attempts = failed_attempts(output.extra)
    for record in attempts:
        facts = {name: record.get(name) for name in ("attempt", "kind", "seconds", "message")}
        log.write(INFO, "attempt.failed", sample_id=sample.sample_id, error_type=record.get("type"), **facts)
    if isinstance(odd := output.extra.get(TIMES_LEFT_OUT), dict):
        log.write(INFO, "times.left_out", sample_id=sample.sample_id, names=", ".join(map(str, odd)))
    if output.error is not None:
        log.write(
            WARNING,
            "sample.failed",
            sample_id=sample.sample_id,
            attempts=len(attempts) or None,
            error_type=output.error.type,
            message=output.error.message,
            seconds=_seconds(attempts, output.error),
        )
    elif LOGGER.isEnabledFor(DEBUG):
        event = "cache.hit" if is_from_cache(output) else "sample.answered"
        log.write(DEBUG, event, sample_id=sample.sample_id, seconds=output.timings.get("end_to_end"))


def _seconds(attempts: list[AttemptRecord], error: Failure) -> float | None:
    """Return the seconds of all attempts, without the waits; of the last one if only that is known."""
    seconds = [record["seconds"] for record in attempts if isinstance(record.get("seconds"), int | float)]
    return sum(seconds) if seconds and len(seconds) == len(attempts) else error.seconds


@dataclass
class _Counts:
    outputs: int = 0
    failed: int = 0
    cached: int = 0
    waits: int = 0
    waited: float = 0.0

    def add(self, output: SystemOutputs) -> None:
        self.outputs += 1
        self.failed += output.error is not None
        self.cached += is_from_cache(output)

    def as_facts(self, started: float) -> Facts:
        return {
            "outputs": self.outputs,
            "failed": self.failed,
            "cached": self.cached or None,
            "waits": self.waits or None,
            "waited_seconds": self.waited or None,
            "seconds": monotonic() - started,
        }


@contextmanager
def logged(
    evaluator: AueporaEvaluator,
    log: RunLog,
    header: Mapping[str, Any],
    *,
    samples: int,
    kept: int | None = None,
) -> Iterator[None]:
    """Log what an evaluator does within the block, and how it ends. The run must be locked.

    `kept` is for a run that is resumed: how many samples are not called again.
    """
    evaluation_id = header["evaluation_id"]
    before = evaluator.policy, evaluator.on_output
    on_output, counts, started = evaluator.on_output, _Counts(), monotonic()
    counting = threading.Lock()

    def note(sample: EvaluationSample, output: SystemOutputs) -> None:
        counts.add(output)
        _log_output(log, sample, output)
        if on_output is not None:
            on_output(sample, output)

    def wait(seconds: float) -> None:
        with counting:
            counts.waits += 1
            counts.waited += seconds
        # Under a rate limit nearly every call waits: at a higher level the failures would be buried.
        log.write(DEBUG, "call.waiting", seconds=seconds)

    evaluator.on_output = note
    if evaluator.policy is not None:
        clock = replace(evaluator.policy.clock, on_wait=wait)
        evaluator.policy = replace(evaluator.policy, clock=clock)
    log.write(
        INFO,
        "run.started" if kept is None else "run.resumed",
        **{name: header.get(name) for name in ("evaluation_id", "system", "dataset")},
        samples=samples,
        kept=kept,
        executor=type(evaluator.executor).__name__,
        concurrency=getattr(evaluator.executor, "concurrency", None),
        process=os.getpid(),
    )
    try:
        yield
    except BaseException as error:
        level, event = _ending(error)
        facts = {"evaluation_id": evaluation_id, "error_type": type(error).__name__, "message": str(error)}
        log.write(level, event, **facts, **counts.as_facts(started))
        raise
    else:
        log.write(INFO, "run.finished", evaluation_id=evaluation_id, **counts.as_facts(started))
    finally:
        # The evaluator may be used for another run, which has a log of its own.
        evaluator.policy, evaluator.on_output = before
        log.close()


def _ending(error: BaseException) -> tuple[int, str]:
    if isinstance(error, InterruptedRunError) or not isinstance(error, Exception):
        return WARNING, "run.interrupted"
    return (WARNING, "run.stopped") if isinstance(error, RunStoppedError) else (ERROR, "run.failed")
