"""The log of a run: `<id>.run/log.jsonl`, one event a line, beside the journal.

It says what happened and when: calls that failed and were made again, waits, changes of concurrency, how the
run ended. It is for people and their tools: nothing is computed from it, and a run without it is whole.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from ..core.call_records import failed_attempts, is_from_cache
from ..core.executor import executor_name
from ..core.log import LOGGER, clean_facts, tell, tell_clean
from ..core.scored_chunks import scoring_executor
from ..core.types import TIMES_LEFT_OUT, EvaluationSample, Failure, SystemOutputs
from ..errors import RunStoppedError
from ..io.jsonl import encode

if TYPE_CHECKING:
    from ..core.executor import Executor
    from ..core.limits import Limits
    from ..core.runner import AueporaEvaluator, OnOutput

LOG = "log.jsonl"
DEBUG, INFO, WARNING, ERROR = logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR
_MOST_WAITING = 10_000  # events before the run's folder is known to be ours
_SECONDS_BETWEEN_WAITS = 10.0
_OPEN = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)


class RunLog:
    """Events of one run, to its file and to the logger `auepora_eval`. Safe to use from several threads.

    The file has everything from level info on; what is below only if the logger asks for it. It is opened
    by `begin`: before that nobody knows whether the folder is ours, or locked by another process. A log that
    cannot be written is given up; the run goes on.
    """

    def __init__(self, folder: Path, *, anew: bool = True) -> None:
        self.path, self._anew = folder / LOG, anew
        self._file: int | None = None
        self._waiting: list[bytes] = []
        self._given_up = False
        self._lock = threading.Lock()

    def tell(self, level: int, event: str, **facts: Any) -> None:
        """Write an event down, and tell the logger."""
        if level < INFO and not LOGGER.isEnabledFor(level):
            return
        clean = clean_facts(facts)
        tell_clean(level, event, clean)
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        head = {"time": time, "level": logging.getLevelName(level).lower(), "event": event}
        line = encode({**head, **clean}) + b"\n"
        with self._lock:
            if self._file is not None:
                self._write(line)
            elif not self._given_up and len(self._waiting) < _MOST_WAITING:
                self._waiting.append(line)

    def begin(self) -> None:
        """The run's folder is there, and ours: write what waited, and whatever comes."""
        with self._lock:
            if self._file is not None or self._given_up:
                return
            try:
                self._file = os.open(self.path, _OPEN | (os.O_TRUNC if self._anew else 0), 0o600)
                torn = _is_torn(self._file)
            except OSError as error:
                self._give_up(error)
                return
            # What a kill left of a line is not to swallow the next one.
            self._write((b"\n" if torn else b"") + b"".join(self._waiting))
            self._waiting.clear()

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._file is not None:
                os.close(self._file)
                self._file = None
            self._given_up = True

    def _write(self, content: bytes) -> None:
        try:
            rest = memoryview(content)
            while rest and self._file is not None:
                rest = rest[os.write(self._file, rest) :]
        except OSError as error:
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self._given_up = True
        self._waiting.clear()
        if self._file is not None:
            with suppress(OSError):
                os.close(self._file)
            self._file = None
        tell(WARNING, "log.given_up", path=self.path, message=error.strerror or error)


def _is_torn(file: int) -> bool:
    """Whether the last line of a file has no end."""
    size = os.lseek(file, 0, os.SEEK_END)
    return size > 0 and os.lseek(file, size - 1, os.SEEK_SET) >= 0 and os.read(file, 1) != b"\n"


def tell_of_output(log: RunLog, sample: EvaluationSample, output: SystemOutputs) -> None:
    """What became of a sample: its failed attempts by its own records, wherever they were made."""
    attempts = failed_attempts(output.extra)
    for record in attempts:
        known = {name: record.get(name) for name in ("attempt", "kind", "seconds", "message")}
        log.tell(INFO, "attempt.failed", sample_id=sample.sample_id, error_type=record.get("type"), **known)
    if isinstance(odd := output.extra.get(TIMES_LEFT_OUT), dict):
        log.tell(INFO, "times.left_out", sample_id=sample.sample_id, names=", ".join(map(str, odd)))
    if output.error is not None:
        log.tell(
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
        log.tell(DEBUG, event, sample_id=sample.sample_id, seconds=output.timings.get("end_to_end"))


def _seconds(attempts: list[dict[str, Any]], error: Failure) -> float | None:
    """How long a sample's attempts took, without the waits; the last one's where only that is known."""
    each = [record.get("seconds") for record in attempts]
    known = [seconds for seconds in each if isinstance(seconds, int | float)]
    return sum(known) if known and len(known) == len(each) else error.seconds


@dataclass
class _Counts:
    outputs: int = 0
    failed: int = 0
    cached: int = 0
    waits: int = 0
    waited: float = 0.0
    uncounted: int = 0  # answers that do not tell what a limit needs


@contextmanager
def logged(
    evaluator: AueporaEvaluator,
    log: RunLog,
    header: Mapping[str, Any],
    *,
    samples: int,
    there: int | None = None,
) -> Iterator[None]:
    """Log what an evaluator does within the block, and how it ends; the run's folder must be ours.

    `there` is for a run that is gone on with: how many samples need not be asked.
    """
    evaluation_id = header["evaluation_id"]
    before = evaluator.executor, evaluator.policy, evaluator.on_output
    on_output, counts, started = evaluator.on_output, _Counts(), monotonic()

    def note(sample: EvaluationSample, output: SystemOutputs) -> None:
        counts.outputs += 1
        counts.failed += output.error is not None
        counts.cached += is_from_cache(output)
        tell_of_output(log, sample, output)
        if on_output is not None:
            on_output(sample, output)

    log.begin()
    evaluator.on_output = note
    evaluator.executor = _Watched(evaluator.executor, log, counts)
    if evaluator.policy is not None:
        told = _Waits(log, counts)
        clock = replace(evaluator.policy.clock, told=told.add)
        evaluator.policy = replace(evaluator.policy, clock=clock)
    facts = {name: header.get(name) for name in ("evaluation_id", "system", "dataset")}
    concurrency = getattr(before[0], "concurrency", None)
    log.tell(
        INFO,
        "run.started" if there is None else "run.resumed",
        **facts,
        samples=samples,
        there=there,
        executor=executor_name(before[0]),
        concurrency=concurrency,
        process=os.getpid(),
    )
    try:
        yield
    except BaseException as error:
        level, event = _ending(error)
        log.tell(
            level,
            event,
            evaluation_id=evaluation_id,
            error_type=type(error).__name__,
            message=str(error),
            **_summary(counts, monotonic() - started),
        )
        raise
    else:
        log.tell(INFO, "run.finished", evaluation_id=evaluation_id, **_summary(counts, monotonic() - started))
    finally:
        evaluator.executor, evaluator.policy, evaluator.on_output = before
        log.close()


@contextmanager
def logged_scoring(log: RunLog, facts: Mapping[str, Any]) -> Iterator[OnOutput]:
    """Log the scoring of outputs that are there; what is yielded is to be told of each.

    The file is written when all is stored: a run that cannot be stored leaves nothing behind.
    """
    counts, started = _Counts(), monotonic()

    def note(sample: EvaluationSample, output: SystemOutputs) -> None:
        counts.outputs += 1
        counts.failed += output.error is not None
        tell_of_output(log, sample, output)

    log.tell(INFO, "run.started", **facts, scores_only=True)
    try:
        yield note
        ended = _summary(counts, monotonic() - started)
        log.tell(INFO, "run.finished", evaluation_id=facts["evaluation_id"], **ended)
        log.begin()
    finally:
        log.close()


def _ending(error: BaseException) -> tuple[int, str]:
    from ..core.runner import InterruptedRunError

    if isinstance(error, InterruptedRunError) or not isinstance(error, Exception):
        return WARNING, "run.interrupted"
    return (WARNING, "run.stopped") if isinstance(error, RunStoppedError) else (ERROR, "run.failed")


def _summary(counts: _Counts, seconds: float) -> dict[str, Any]:
    return {
        "outputs": counts.outputs,
        "failed": counts.failed,
        "cached": counts.cached or None,
        "waits": counts.waits or None,
        "waited_seconds": counts.waited or None,
        "uncounted": counts.uncounted or None,
        "seconds": seconds,
    }


class _Watched:
    """An executor whose calls are looked at: the run's folder is there when it begins."""

    def __init__(self, executor: Executor, log: RunLog, counts: _Counts) -> None:
        self.executor, self._log, self._counts = executor, log, counts
        self.concurrency = getattr(executor, "concurrency", None)
        self.timeout = getattr(executor, "timeout", None)

    def for_scoring(self) -> Executor | None:
        """The executor itself: only calls are looked at."""
        return scoring_executor(self.executor)

    def map(self, call: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[tuple[int, Any]]:
        self._log.begin()
        limits = getattr(call, "limits", None)
        gate = getattr(limits, "gate", None)
        size = getattr(gate, "size", None)
        for place, result in self.executor.map(call, items):
            if gate is not None and gate.size != size:
                self._log.tell(INFO, "concurrency.changed", before=size, now=gate.size)
                size = gate.size
            if limits is not None and limits.spent.uncounted:
                self._look_at_gaps(limits)
            yield place, result

    def _look_at_gaps(self, limits: Limits) -> None:
        """Write down that a limit cannot be held, at the first answer that does not tell what it needs."""
        if not self._counts.uncounted:
            self._log.tell(INFO, "usage.unknown", message=limits.spent.in_words(limits.policy))
        self._counts.uncounted = limits.spent.uncounted


class _Waits:
    """Waits for a limit or for the next attempt: told now and then, counted always."""

    def __init__(self, log: RunLog, counts: _Counts) -> None:
        self._log, self._counts = log, counts
        self._told_at = float("-inf")
        self._lock = threading.Lock()

    def add(self, seconds: float) -> None:
        with self._lock:
            self._counts.waits += 1
            self._counts.waited += seconds
            now = monotonic()
            often = now - self._told_at < _SECONDS_BETWEEN_WAITS
            self._told_at = self._told_at if often else now
            waits = self._counts.waits
        self._log.tell(DEBUG if often else INFO, "call.waiting", seconds=seconds, waits=waits)
