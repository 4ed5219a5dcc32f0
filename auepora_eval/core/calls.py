"""The call of a system on one sample: timed, tried again, checked, and with its failures on record."""

from __future__ import annotations

import asyncio
import inspect
import warnings
from collections.abc import Coroutine
from dataclasses import replace
from numbers import Integral, Real
from time import perf_counter
from typing import Any

import msgspec

from ..errors import DataError, RunStoppedError
from .blinding import as_shown
from .call_records import ATTEMPTS, attempts_of, with_its_own_names
from .executor import awaited, within, within_async
from .fingerprint import plain
from .limits import Gate, Limits
from .policy import CallPolicy, kind_of
from .rag_interface import RAGSystemProtocol, as_outputs
from .redaction import without_secrets
from .types import (
    END_TO_END,
    TIMES_LEFT_OUT,
    EvaluationSample,
    Failure,
    Response,
    RetrievedDocument,
    SystemOutputs,
    times_told,
)


class NoTimeWarning(UserWarning):
    """A system tells how long its calls take, and it cannot be a time."""


class SystemCall:
    """Calls a system on a sample and returns its output, or one that says why there is none.

    Raises only RunStoppedError, when the policy allows no further call. An object rather than a function, so
    that it can be sent to another process if the system can.
    """

    def __init__(self, system: RAGSystemProtocol, top_k: int, policy: CallPolicy | None = None) -> None:
        self.system, self.top_k, self.policy = system, top_k, policy or CallPolicy()
        self.limits = Limits(self.policy)
        self.is_async = inspect.iscoroutinefunction(system.run) or getattr(system, "is_async", False) is True
        # A system that talks to an endpoint keeps the time of each attempt itself.
        self._timeout = None if getattr(system, "keeps_time", False) is True else self.policy.timeout
        self._to_tell_of_times = iter((True,))  # `next` takes it once, whichever thread comes first

    def __call__(self, sample: EvaluationSample) -> Any:
        attempts = self._attempts(sample)
        return attempts if self.is_async else _ended_at_once(attempts)

    def __reduce__(self) -> Any:
        # What is counted is counted where the run is; only the attempts themselves are made elsewhere.
        sent = replace(self.policy, max_calls=None, max_tokens=None, max_cost=None, breaker_after=None)
        sent = replace(sent, clock=replace(sent.clock, told=None))
        return SystemCall, (self.system, self.top_k, sent), {"_to_tell_of_times": iter(())}

    def shared_by(self, workers: int) -> SystemCall:
        """The call for one of several processes, with its share of the pace."""
        paces = ("requests_per_minute", "tokens_per_minute")
        shares = {name: getattr(self.policy, name) for name in paces}
        cut = {name: value / workers for name, value in shares.items() if value is not None}
        return SystemCall(self.system, self.top_k, replace(self.policy, **cut))

    def made_elsewhere(self, result: Any) -> None:
        """Count a call that another process made; RunStoppedError comes from `limits.check`."""
        if isinstance(result, SystemOutputs) and result.error is None:
            self.limits.answered(result, calls=attempts_of(result))
            self._look_at_times(result)
        else:
            error = result.error if isinstance(result, SystemOutputs) else None
            words = f"{error.type}: {error.message}" if error else type(result).__name__
            calls = attempts_of(result) if isinstance(result, SystemOutputs) else 1
            self.limits.failed(words, calls=calls)

    async def _attempts(self, sample: EvaluationSample) -> SystemOutputs:
        """The call, tried as often as the policy says. Only where the system is async does it ever wait."""
        trial = _Trial(sample, self.limits)
        gate = self.limits.gate
        while True:
            ticket = await self._admitted(gate) if gate else 0
            error: BaseException | None = None
            start = perf_counter()
            try:
                if (pause := self.limits.reserve()) > 0:
                    await self._pause(pause)
                    start = perf_counter()
                raw = self._asked_async(sample) if self.is_async else self._asked(sample)
                output = checked_output(await raw if self.is_async else raw, perf_counter() - start)
            except RunStoppedError:
                raise
            except (Exception, SystemExit) as caught:  # noqa: BLE001 - a system may raise anything; it is recorded
                error = caught
            finally:
                if gate:
                    gate.leave(ticket, error)
            if error is None:
                self._look_at_times(output)
                return trial.answered(output)
            wait = trial.failed(error, perf_counter() - start)
            if wait is None:
                return trial.given_up(error, perf_counter() - start)
            await self._pause(wait)

    def _look_at_times(self, output: SystemOutputs) -> None:
        """Say of the first end_to_end that is no time that our own clock took its place."""
        odd = output.extra.get(TIMES_LEFT_OUT)
        if isinstance(odd, dict) and END_TO_END in odd and next(self._to_tell_of_times, False):
            warnings.warn(
                f"the system tells {odd[END_TO_END]!s:.40} seconds as end_to_end, which cannot be a time. "
                "What our own clock measured around the call is taken instead, in every output that has it "
                "under times_left_out in `extra`.",
                NoTimeWarning,
                stacklevel=3,
            )

    async def _admitted(self, gate: Gate) -> int:
        ticket = gate.enter()
        return await asyncio.wrap_future(ticket) if self.is_async else ticket.result()

    async def _pause(self, seconds: float) -> None:
        if self.is_async:
            await self.limits.pause_async(seconds)
        else:
            self.limits.pause(seconds)

    def _asked(self, sample: EvaluationSample) -> Any:
        if self._timeout is None:
            return self._finished(sample)
        return within(self._timeout, lambda: self._finished(sample))

    def _finished(self, sample: EvaluationSample) -> Any:
        raw: Any = self.system.run(as_shown(sample), top_k=self.top_k)
        return awaited(raw) if inspect.isawaitable(raw) else raw

    async def _asked_async(self, sample: EvaluationSample) -> Any:
        run: Any = self.system.run
        if self._timeout is None:
            return await run(as_shown(sample), top_k=self.top_k)
        return await within_async(self._timeout, lambda: run(as_shown(sample), top_k=self.top_k))


def _ended_at_once(call: Coroutine[Any, Any, SystemOutputs]) -> SystemOutputs:
    """What a coroutine returns that waits for nothing: no event loop is needed to run it."""
    try:
        call.send(None)
    except StopIteration as ended:
        output: SystemOutputs = ended.value
        return output
    raise RuntimeError("a call that should have blocked has waited instead")


class _Trial:
    """The attempts at one sample."""

    def __init__(self, sample: EvaluationSample, limits: Limits) -> None:
        self._sample, self._limits = sample, limits
        self._records: list[dict[str, Any]] = []

    def answered(self, output: SystemOutputs) -> SystemOutputs:
        self._limits.answered(output)
        if not self._records:
            return output
        return replace(output, extra={**output.extra, ATTEMPTS: self._records})

    def failed(self, error: BaseException, seconds: float) -> float | None:
        """Note a failed attempt; the seconds to wait for the next one, None if there is to be none.

        RunStoppedError if there would be one, but for who asked for an end: the sample has no outcome yet.
        """
        record = {
            "sample": self._sample.sample_id,
            "attempt": len(self._records) + 1,
            "kind": kind_of(error),
            "type": type(error).__name__,
            "message": _message(error),
            "seconds": seconds,
        }
        if self._limits.policy.names(error):
            record["named"] = True  # somebody says that it may pass, also when the run is gone on with
        self._records.append(record)
        attempt = len(self._records)
        if not self._limits.policy.tries_again(error, attempt):
            return None
        if self._limits.halted:
            raise self._limits.refusal()
        if self._limits.stopped:
            return None
        return self._limits.policy.wait(error, attempt)

    def given_up(self, error: BaseException, seconds: float) -> SystemOutputs:
        """The output of a sample that failed for good."""
        output = failed_output(error, seconds)
        self._limits.failed(f"{type(error).__name__}: {_message(error)[:200]}")
        return replace(output, extra={ATTEMPTS: self._records})


def _message(error: BaseException) -> str:
    text = str(error).encode("utf-8", "replace").decode("utf-8")  # half a character cannot be written
    return " ".join(without_secrets(text).split())[:2000]


def failed_output(error: object, seconds: float | None = None) -> SystemOutputs:
    """An empty output that says what went wrong. It has no timings: crashing is not answering fast."""
    if isinstance(error, BaseException):
        failure = Failure(type(error).__name__, _message(error), seconds)
    else:
        failure = Failure("BadOutput", f"the executor returned a {type(error).__name__}", seconds)
    return SystemOutputs([], Response(""), error=failure)


def checked_output(raw: Any, seconds: float) -> SystemOutputs:
    """A system's answer in order: ranked, timed, and such that it can be stored; else a DataError."""
    output = as_outputs(raw)
    if not isinstance(output.response, Response) or not isinstance(output.response.text, str):
        raise DataError("the answer", f"is not a text but {output.response!r:.60}.")
    hits = [_checked_hit(hit) for hit in output.retrieved]
    if len({hit.rank for hit in hits}) < len(hits):
        ranks = [hit.rank for hit in hits[:10]]
        raise DataError(
            "retrieved", f"two documents have the same rank: {ranks}.", fix="Number them 1, 2, 3, ..."
        )
    for name, value in output.timings.items():
        is_number = type(value) is float or (isinstance(value, Real) and not isinstance(value, bool))
        if not is_number:
            raise DataError(f"timings[{name!r}]", f"is not a number of seconds: {value!r:.60}.")
    # A copy: the system may hand out the same object again.
    times, odd = times_told({END_TO_END: seconds, **output.timings})
    times.setdefault(END_TO_END, seconds)
    own = with_its_own_names(output.extra)
    checked = replace(
        output,
        retrieved=sorted(hits, key=lambda hit: hit.rank),
        timings=times,
        extra={**own, **odd} if odd else own,
    )
    _refuse_unstorable(checked)
    return checked


def _checked_hit(hit: RetrievedDocument) -> RetrievedDocument:
    doc, rank = hit.doc, hit.rank
    if not isinstance(doc.doc_id, str) or not isinstance(doc.text, str):
        raise DataError("retrieved", f"the document {doc.doc_id!r:.60} must have a text as id and as text.")
    if type(rank) is not int:
        rank = _rank(hit)
    score = float(hit.score)
    if type(hit) is RetrievedDocument:  # `replace` takes ten times as long, and this is done for every hit
        return RetrievedDocument(doc, score, rank)
    return replace(hit, rank=rank, score=score)


def _rank(hit: RetrievedDocument) -> int:
    if isinstance(hit.rank, bool) or not isinstance(hit.rank, Integral):
        raise DataError(
            "retrieved", f"the rank {hit.rank!r:.60} is not a whole number.", fix="Use 1, 2, 3, ..."
        )
    return int(hit.rank)


_encoder = msgspec.json.Encoder(enc_hook=plain)


def _refuse_unstorable(output: SystemOutputs) -> None:
    """What JSON cannot hold (half a character, a list that holds itself) fails its sample, not the run."""
    try:
        _encoder.encode(output)
    except (UnicodeEncodeError, RecursionError, OverflowError, TypeError, ValueError) as error:
        raise DataError("the output", f"cannot be written as JSON: {error!s:.100}.") from error
