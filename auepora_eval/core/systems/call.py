"""How a system is called on one sample, with retries and checks, and the executors by their names."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Coroutine, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from time import perf_counter
from typing import Any, TypedDict, TypeGuard

import msgspec

from ...calls.executors import (
    AsyncExecutor,
    Executor,
    SerialExecutor,
    ThreadExecutor,
    awaited,
    is_ours,
    one_process,
    within,
    within_async,
)
from ...calls.keys import without_secrets
from ...calls.policy import CallPolicy, Limits, is_refused_key, kind_of
from ...calls.tracebacks import user_traceback
from ...errors import DataError, RunStoppedError
from ...read.outputs import as_outputs, with_listed_documents
from ..dataset import plain
from ..rag_interface import RAGSystemProtocol, takes_documents, with_given
from ..registry import Registry
from ..scores import given_documents
from ..types import (
    DOCUMENTS_GIVEN,
    END_TO_END,
    PAIR,
    STORED_OUTPUT,
    TIMES_LEFT_OUT,
    TRUE_LABEL,
    Document,
    EvaluationSample,
    Failure,
    Response,
    RetrievedDocument,
    SystemOutputs,
    split_timings,
    unscored,
)

EXECUTORS: Registry[Callable[..., Executor]] = Registry("executor")
EXECUTORS.add("serial")(SerialExecutor)
EXECUTORS.add("threads")(ThreadExecutor)
EXECUTORS.add("async")(AsyncExecutor)


@EXECUTORS.add("processes")
def _processes(**options: Any) -> Executor:
    from ...calls.processes import ProcessExecutor

    return ProcessExecutor(**options)


@EXECUTORS.add("ray")
def _ray(**options: Any) -> Executor:
    from ...calls.ray import RayExecutor

    return RayExecutor(**options)


def usage_places(output: SystemOutputs) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return where an output reports the tokens and requests that it took."""
    return output.extra, output.response.metadata


# The call of a system on one sample: timed, retried, checked, and with its failures recorded.


class NoTimeWarning(UserWarning):
    """A system reports a duration of its calls that is not a time."""


OnResult = Callable[[EvaluationSample, SystemOutputs], None]


class SystemCall:
    """Calls a system on a sample and returns its output, or one with the error.

    Raises only RunStoppedError, when the policy allows no further call. An object rather than a function, so
    that it can be sent to another process if the system can.
    """

    def __init__(self, system: RAGSystemProtocol, top_k: int, policy: CallPolicy | None = None) -> None:
        self.system, self.top_k, self.policy = system, top_k, policy or CallPolicy()
        self.limits = Limits(self.policy)
        self.is_async = inspect.iscoroutinefunction(system.run) or getattr(system, "is_async", False) is True
        # A system that talks to an endpoint keeps the time of each attempt itself.
        self._timeout = None if getattr(system, "keeps_time", False) is True else self.policy.timeout
        self._odd_time_warnings = iter((True,))  # one; `next` gives it to the first thread that asks
        # Called by a worker of this process before it takes its next sample; not by workers elsewhere.
        self.on_result: OnResult | None = None

    def __call__(self, sample: EvaluationSample) -> Any:
        attempts = (
            self._attempts(sample) if self.on_result is None else self._reported(sample, self.on_result)
        )
        return attempts if self.is_async else _finished(attempts)

    async def _reported(self, sample: EvaluationSample, on_result: OnResult) -> SystemOutputs:
        output = await self._attempts(sample)
        on_result(sample, output)
        return output

    def __reduce__(self) -> Any:
        # Budgets and the breaker are counted in the process of the run; workers only make the attempts.
        sent = replace(self.policy, max_calls=None, max_tokens=None, max_cost=None)
        sent = replace(sent, breaker_after=None, keep_going=True)
        sent = replace(sent, clock=replace(sent.clock, on_wait=None))
        return SystemCall, (self.system, self.top_k, sent), {"_odd_time_warnings": iter(())}

    def shared_by(self, workers: int) -> SystemCall:
        """Return the call for one of several processes, with its share of the pace."""
        paces = ("requests_per_minute", "tokens_per_minute")
        shares = {name: getattr(self.policy, name) for name in paces}
        cut = {name: value / workers for name, value in shares.items() if value is not None}
        return SystemCall(self.system, self.top_k, replace(self.policy, **cut))

    def made_elsewhere(self, result: Any) -> None:
        """Count a call that another process made; RunStoppedError comes from `limits.check`."""
        if not isinstance(result, SystemOutputs):
            self.limits.failed(type(result).__name__, type(result).__name__, calls=1)
        elif result.error is not None:
            self.limits.failed(str(result.error), result.error.type, calls=attempts_of(result))
        else:
            self.limits.answered(usage_places(result), calls=attempts_of(result))
            self._warn_of_odd_time(result)

    async def _attempts(self, sample: EvaluationSample) -> SystemOutputs:
        """Make the attempts that the policy allows. Only an async system is ever awaited."""
        trial = _Trial(sample, self.limits)
        while True:
            if (pause := self.limits.reserve()) > 0:
                await self._pause(pause)
            shown = as_shown(sample)
            documents = self._documents_for(shown)
            start = perf_counter()
            try:
                call = partial(self.system.run, shown, top_k=self.top_k, **documents)
                output = await self._called_async(call) if self.is_async else self._called(call)
                output = checked_output(output, perf_counter() - start)
                if documents:
                    output = with_given(output, given_documents(sample))
            except RunStoppedError:
                raise
            except BaseException as error:  # a system may raise anything; it is recorded
                if is_ours(error):
                    raise
                seconds = perf_counter() - start
                wait = trial.failed(error, seconds)
                if wait is None:
                    return trial.given_up(error, seconds)
            else:
                self._warn_of_odd_time(output)
                return trial.answered(output)
            await self._pause(wait)

    def _warn_of_odd_time(self, output: SystemOutputs) -> None:
        """Warn, once, that a reported end_to_end is not a time and was replaced by our own measurement."""
        odd = output.extra.get(TIMES_LEFT_OUT)
        if isinstance(odd, dict) and END_TO_END in odd and next(self._odd_time_warnings, False):
            warnings.warn(
                f"The system reports {odd[END_TO_END]!s:.40} seconds as end_to_end, which cannot be a time. "
                "The time measured around the call is used instead, in every output with times_left_out in "
                "its `extra`.",
                NoTimeWarning,
                stacklevel=3,
            )

    async def _pause(self, seconds: float) -> None:
        if self.is_async:
            await self.limits.pause_async(seconds)
        else:
            self.limits.pause(seconds)

    def _documents_for(self, sample: EvaluationSample) -> dict[str, list[Document]]:
        """Return the documents that the system is given with a sample, as an argument; {} if it gets none."""
        documents = given_documents(sample)
        return {"documents": documents} if documents and takes_documents(self.system, sample) else {}

    # The output is read within the time of the call: a system may yield its documents one by one.

    def _called(self, call: Callable[[], Any]) -> SystemOutputs:
        def run() -> SystemOutputs:
            with one_process():
                raw: Any = call()
                return as_outputs(awaited(raw) if inspect.isawaitable(raw) else raw)

        output: SystemOutputs = run() if self._timeout is None else within(self._timeout, run)
        return output

    async def _called_async(self, call: Callable[[], Any]) -> SystemOutputs:
        async def run() -> SystemOutputs:
            with one_process():
                return as_outputs(await with_listed_documents(await call()))

        if self._timeout is None:
            return await run()
        output: SystemOutputs = await within_async(self._timeout, run)
        return output


def _finished(call: Coroutine[Any, Any, SystemOutputs]) -> SystemOutputs:
    """Run a coroutine that awaits nothing: this needs no event loop."""
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
        self._records: list[AttemptRecord] = []

    def answered(self, output: SystemOutputs) -> SystemOutputs:
        self._limits.answered(usage_places(output), calls=_further_calls(output))
        if not self._records:
            return output
        return replace(output, extra={**output.extra, ATTEMPTS: self._records})

    def failed(self, error: BaseException, seconds: float) -> float | None:
        """Record a failed attempt. Return the seconds until the next one, or None if it was the last.

        RunStoppedError if a stop was requested before the next one, or if an endpoint refuses the key: the
        sample has no outcome yet.
        """
        if is_refused_key(error, has_answers=self._limits.has_answers):
            raise self._limits.refuse_key(_message(error)) from None
        record: AttemptRecord = {
            "sample": self._sample.sample_id,
            "attempt": len(self._records) + 1,
            "kind": kind_of(error),
            "type": type(error).__name__,
            "message": _message(error),
            "seconds": seconds,
        }
        if self._limits.policy.names(error):
            record["named"] = True  # the user says that it may pass, also when the run is resumed
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
        """Return the output of a sample that failed for good."""
        output = failed_output(error, seconds)
        self._limits.failed(f"{type(error).__name__}: {_message(error)[:200]}", type(error).__name__)
        return replace(output, extra={ATTEMPTS: self._records})


def _message(error: BaseException) -> str:
    return " ".join(_printable(str(error)).split())[:2000]


def _printable(text: str) -> str:
    """Return a text without secrets, and without lone surrogates, which cannot be written."""
    return without_secrets(text.encode("utf-8", "replace").decode("utf-8"))


def failed_output(error: object, seconds: float | None = None) -> SystemOutputs:
    """Return an empty output with the error. It has no timings: crashing is not answering fast."""
    if isinstance(error, BaseException):
        where = _printable(user_traceback(error))
        failure = Failure(type(error).__name__, _message(error), seconds, where)
    else:
        failure = Failure("BadOutput", f"the executor returned a {type(error).__name__}", seconds)
    return SystemOutputs([], Response(""), error=failure)


def checked_output(output: SystemOutputs, seconds: float) -> SystemOutputs:
    """Return the output of a system with ranks and times checked; raise DataError if it cannot be stored."""
    if not isinstance(output.response, Response) or not isinstance(output.response.text, str):
        raise DataError("the answer", f"is not text but {output.response!r:.60}.")
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
    # Copies, here and in each hit: the system may return the same objects again, changed.
    times, odd = split_timings({END_TO_END: seconds, **output.timings})
    times.setdefault(END_TO_END, seconds)
    own = _without_reserved_names(output.extra)
    checked = replace(
        output,
        response=_copied(output.response),
        retrieved=sorted(hits, key=lambda hit: hit.rank),
        timings=times,
        extra={**own, **odd} if odd else own,
    )
    try:
        _encoder.encode(checked)
    except (UnicodeEncodeError, RecursionError, OverflowError, TypeError, ValueError) as error:
        # What JSON cannot hold (a lone surrogate, a list that contains itself) fails its sample, not the run.
        raise DataError("the output", f"cannot be written as JSON: {error!s:.100}.") from error
    return checked


def _checked_hit(hit: RetrievedDocument) -> RetrievedDocument:
    doc, rank = _copied(hit.doc), hit.rank
    if not isinstance(doc.doc_id, str) or not isinstance(doc.text, str):
        raise DataError("retrieved", f"the document {doc.doc_id!r:.60} needs strings as id and as text.")
    if type(rank) is not int:
        if isinstance(rank, bool) or not isinstance(rank, Integral):
            raise DataError(
                "retrieved", f"the rank {rank!r:.60} is not a whole number.", fix="Use 1, 2, 3, ..."
            )
        rank = int(rank)
    score = float(hit.score)
    if not math.isfinite(score):  # JSON has no such number: it would be read back as a missing score
        return unscored(doc, rank)
    if type(hit) is RetrievedDocument:  # `replace` takes ten times as long, and this is done for every hit
        return RetrievedDocument(doc, score, rank)
    return replace(hit, doc=doc, rank=rank, score=score)


# The encoding of the journal: whatever passes here can be written there.
_encoder = msgspec.json.Encoder(enc_hook=plain, order="deterministic")

# What a system gets of a labelled sample: its question, never its label or anything that reveals it. The true
# label, the notes, the rubric and the hint are for the score and for people. A detector that got them would
# only show that it can read.

_HARMLESS_LABELS = ("scenario", "risk_tier", PAIR)


def without_answers(
    sample: EvaluationSample, *, stored: bool = True, sample_id: str | None = None
) -> EvaluationSample:
    """Return a copy without the true label, notes, rubric, hint, or reference; with `sample_id` if not None.

    The stored answer stays, unless `stored` is False: it is what a detector judges.
    """
    answer = sample.metadata.get(STORED_OUTPUT) if stored else None
    return replace(
        sample,
        sample_id=sample.sample_id if sample_id is None else sample_id,
        labels={name: sample.labels[name] for name in _HARMLESS_LABELS if name in sample.labels},
        metadata={} if answer is None else {STORED_OUTPUT: answer},
        reference_answer=None,
    )


def as_shown(sample: EvaluationSample) -> EvaluationSample:
    """Return a copy of the sample as a system gets it: without answers if it has a true label.

    The system may change whatever is in its copy: the sample itself has the truth that outputs are scored by.
    """
    shown = without_answers(sample) if TRUE_LABEL in sample.labels else copy(sample)
    shown.relevant_docs, shown.candidate_docs = _copied(shown.relevant_docs), _copied(shown.candidate_docs)
    shown.reference_answer = _copied(shown.reference_answer)
    shown.labels, shown.metadata = _copied(shown.labels), _copied(shown.metadata)
    return shown


_UNCHANGEABLE = frozenset({str, int, float, bool, type(None)})


def _copied(value: Any) -> Any:
    """Return a copy of documents, an answer, or the containers in a record; other objects are kept."""
    # Not `deepcopy`: it is slow, and fails on what a user may put into the metadata, such as a client.
    kind = type(value)
    if kind in _UNCHANGEABLE:
        return value
    if kind is Document:  # `copy` takes ten times as long, and a sample may have a hundred of them
        return Document(value.doc_id, value.text, _copied(value.metadata))
    if isinstance(value, dict):
        return {name: _copied(part) for name, part in value.items()} if value else {}
    if kind in (list, tuple, set):
        return kind(map(_copied, value))
    if isinstance(value, (Document, Response)):
        twin = copy(value)
        twin.metadata = _copied(value.metadata)
        if isinstance(twin, Response):
            twin.structured = _copied(twin.structured)
        return twin
    return value


# What a run records in an output about its call, under names that a system cannot set.

ATTEMPTS, CACHED = "attempts", "cached"
FURTHER_CALLS = "further_calls"  # in `extra`: calls beyond the first that one answer took
_RESERVED = frozenset({ATTEMPTS, CACHED, DOCUMENTS_GIVEN})


class AttemptRecord(TypedDict, total=False):
    """A failed attempt, as outputs store it."""

    sample: str
    attempt: int
    kind: str
    type: str
    message: str
    seconds: float
    named: bool  # `retry_on` has its class


def _without_reserved_names(extra: dict[str, Any]) -> dict[str, Any]:
    """Return the `extra` of a system; `system_` is put before names that are reserved for the run.

    >>> _without_reserved_names({"cached": 0, "model": "m"})
    {'model': 'm', 'system_cached': 0}
    """
    if not isinstance(extra, dict) or _RESERVED.isdisjoint(extra):
        return extra
    own = {name: value for name, value in extra.items() if name not in _RESERVED}
    return {**own, **{f"system_{name}": extra[name] for name in sorted(_RESERVED & extra.keys())}}


def failed_attempts(extra: Mapping[str, Any]) -> list[AttemptRecord]:
    """Return the records of failed attempts. Old journals may have a list of the system under this name."""
    records = extra.get(ATTEMPTS)
    if not isinstance(records, list):
        return []
    return [record for record in records if isinstance(record, dict) and _is_attempt(record)]


def _is_attempt(record: Mapping[str, object]) -> TypeGuard[AttemptRecord]:
    return isinstance(record.get("kind"), str) and isinstance(record.get("attempt"), int)


def attempts_of(output: SystemOutputs) -> int:
    """Return how many calls an output took, by its own records."""
    return len(failed_attempts(output.extra)) + (output.error is None) + _further_calls(output)


def _further_calls(output: SystemOutputs) -> int:
    """Return how many calls a system made beyond the first for one answer, if it reports that."""
    count = output.extra.get(FURTHER_CALLS, 0)
    return count if isinstance(count, int) and count > 0 else 0


def is_from_cache(output: SystemOutputs) -> bool:
    """Return whether an answer was made by another run."""
    return output.extra.get(CACHED) is True
