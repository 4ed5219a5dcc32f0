"""Ask many things by one policy. Systems, judges and the generating model are asked here, and nowhere else.

    for request, reply in ask_all(ask, requests, policy, log, reply=as_reply):
        ...

`ask` takes a request and returns a value, or raises. It may have attributes: `is_async` (it returns an
awaitable), `keeps_time` (it ends late calls itself) and `usage(value)`, what the value reports of its cost.
"""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Generic, TypedDict, TypeVar, cast

from ..errors import Failure, InterruptedRunError, RunStoppedError, StorageError
from .executors import (
    Executor,
    SerialExecutor,
    awaited,
    is_async,
    is_ours,
    one_process,
    within,
    within_async,
)
from .keys import without_secrets
from .log import CallLog
from .policy import CALLS, CallPolicy, Limits, Usage, is_refused_key, kind_of
from .tracebacks import user_traceback

Request = TypeVar("Request")
Value = TypeVar("Value")
Reply = TypeVar("Reply")
T = TypeVar("T")


class AttemptRecord(TypedDict, total=False):
    """A failed attempt, as replies store it."""

    attempt: int
    kind: str
    type: str
    message: str
    seconds: float
    named: bool  # `retry_on` has its class


@dataclass
class Result(Generic[Value]):
    """What asking came to: a value, or the failure of the last attempt; and the attempts that failed."""

    value: Value | None = None
    failure: Failure | None = None
    attempts: list[AttemptRecord] = field(default_factory=list)

    def answer(self) -> Value:
        """Return the value of a request that did not fail."""
        return cast(Value, self.value)


class Caller(Generic[Request, Value]):
    """Makes the attempts at a request that a policy allows, and returns the result.

    Raises only RunStoppedError, when no further call may be made. An object rather than a function, so that
    it can be sent to another process if `ask` can. `finish` gets each request with its result in the thread
    that received it, before that takes its next request; not in other processes.
    """

    def __init__(
        self,
        ask: Callable[[Request], Any],
        policy: CallPolicy | None = None,
        limits: Limits | None = None,
        finish: Callable[[Request, Result[Value]], Any] | None = None,
    ) -> None:
        self.ask = ask
        self.limits = limits or Limits(policy or CallPolicy())
        self.policy, self.finish = self.limits.policy, finish
        self.is_async = is_async(ask)
        self._usage: Callable[[Value], Usage] = getattr(ask, "usage", lambda value: {})
        # Whoever talks to an endpoint keeps the time of each attempt itself.
        self.timeout = None if getattr(ask, "keeps_time", False) is True else self.policy.timeout

    def __call__(self, request: Request) -> Any:
        result = self._finished(request)
        return result if self.is_async else _without_loop(result)

    async def _finished(self, request: Request) -> Any:
        result = await self._attempts(request)
        return result if self.finish is None else self.finish(request, result)

    def __reduce__(self) -> Any:
        # Budgets and the breaker are counted in the process of the run; workers only make the attempts.
        sent = replace(self.policy, max_calls=None, max_tokens=None, max_cost=None)
        sent = replace(sent, breaker_after=None, keep_going=True)
        return Caller, (self.ask, replace(sent, clock=replace(sent.clock, on_wait=None)))

    def shared_by(self, workers: int) -> Caller[Request, Value]:
        """Return the call for one of several processes, with its share of the pace."""
        paces = ("requests_per_minute", "tokens_per_minute")
        shares = {name: getattr(self.policy, name) for name in paces}
        cut = {name: value / workers for name, value in shares.items() if value is not None}
        return Caller(self.ask, replace(self.policy, **cut))

    def without_timeout(self) -> Caller[Request, Value]:
        """Return the call for an executor that ends late calls itself."""
        return Caller(self.ask, replace(self.policy, timeout=None))

    def count(self, result: Any) -> None:
        """Count a call that another process made; RunStoppedError comes from `limits.check`."""
        if not isinstance(result, Result):
            self.limits.failed(type(result).__name__, type(result).__name__, calls=1)
        elif result.failure is not None:
            self.limits.failed(str(result.failure), result.failure.type, calls=len(result.attempts))
        else:
            usage = self._usage(result.answer())
            self.limits.answered(usage, calls=len(result.attempts) + int(usage.get(CALLS, 1)))

    async def _attempts(self, request: Request) -> Result[Value]:
        """Make the attempts that the policy allows. Only an async `ask` is ever awaited."""
        result: Result[Value] = Result()
        while True:
            if (pause := self.limits.reserve()) > 0:
                await self._pause(pause)
            start = perf_counter()
            try:
                result.value = await self._asked_async(request) if self.is_async else self._asked(request)
            except RunStoppedError:
                raise
            except BaseException as error:  # a system may raise anything; it is recorded
                if is_ours(error):
                    raise
                wait = self._failed(result, error, perf_counter() - start)
                if wait is None:
                    self.limits.failed(str(result.failure)[:200], type(error).__name__)
                    return result
            else:
                usage = self._usage(result.answer())
                self.limits.answered(usage, calls=int(usage.get(CALLS, 1)) - 1)
                result.failure = None
                return result
            await self._pause(wait)

    def _failed(self, result: Result[Value], error: BaseException, seconds: float) -> float | None:
        """Record a failed attempt. Return the seconds until the next one, or None if it was the last.

        RunStoppedError if a stop was requested before the next one, or if an endpoint refuses the key: the
        request has no outcome yet.
        """
        limits, policy = self.limits, self.policy
        result.failure = failure_of(error, seconds)
        if is_refused_key(error, has_answers=limits.has_answers):
            raise limits.refuse_key(result.failure.message) from None
        attempt = len(result.attempts) + 1
        record: AttemptRecord = {
            "attempt": attempt,
            "kind": kind_of(error),
            "type": result.failure.type,
            "message": result.failure.message,
            "seconds": seconds,
        }
        if policy.names(error):
            record["named"] = True  # the user says that it may pass, also when the run is resumed
        result.attempts.append(record)
        if not policy.tries_again(error, attempt):
            return None
        if limits.halted:
            raise limits.refusal()
        return None if limits.stopped else policy.wait(error, attempt)

    async def _pause(self, seconds: float) -> None:
        if self.is_async:
            await self.limits.pause_async(seconds)
        else:
            self.limits.pause(seconds)

    def _asked(self, request: Request) -> Value:
        def run() -> Value:
            with one_process():
                value: Any = self.ask(request)
                return cast(Value, awaited(value) if inspect.isawaitable(value) else value)

        return run() if self.timeout is None else cast(Value, within(self.timeout, run))

    async def _asked_async(self, request: Request) -> Value:
        async def run() -> Value:
            with one_process():
                return cast(Value, await self.ask(request))

        return await run() if self.timeout is None else cast(Value, await within_async(self.timeout, run))


def _without_loop(call: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that awaits nothing: this needs no event loop."""
    try:
        call.send(None)
    except StopIteration as ended:
        return cast(T, ended.value)
    raise RuntimeError("a call that should have blocked has waited instead")


def failure_of(error: BaseException, seconds: float | None = None) -> Failure:
    """Return an exception as it is stored: without secrets, with the lines of the user's files."""
    message = " ".join(_printable(str(error)).split())[:2000]
    return Failure(type(error).__name__, message, seconds, _printable(user_traceback(error)))


def _printable(text: str) -> str:
    """Return a text without secrets, and without lone surrogates, which cannot be written."""
    return without_secrets(text.encode("utf-8", "replace").decode("utf-8"))


class _Stored(Generic[Reply]):
    """A reply that the log has."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply


def ask_all(
    ask: Callable[[Request], Any],
    requests: Iterable[Request],
    policy: CallPolicy | None = None,
    log: CallLog[Request, Reply] | None = None,
    *,
    reply: Callable[[Request, Result[Any]], Reply],
    executor: Executor | None = None,
    limits: Limits | None = None,
) -> Iterator[tuple[Request, Reply]]:
    """Ask each request, and yield it with its reply as they arrive; `reply` makes one of a result.

    Requests are taken as they are needed: only those under way are in memory. One whose reply is in the log
    is not asked. A reply is in the log before it is yielded. `limits` are the state of a session of several
    calls to this function, which `limits.halt()` ends from elsewhere. RunStoppedError, after the calls under
    way, if no further call may be made.
    """
    if limits is None:
        limits = Limits(policy or CallPolicy(), () if log is None else log.usages())

    def finish(request: Request, result: Result[Any]) -> _Stored[Reply]:
        made = reply(request, result)
        if log is not None:
            _store(log, request, made, limits)
        return _Stored(made)

    known: deque[tuple[Request, Reply]] = deque()
    under_way: dict[int, Request] = {}
    call = Caller(ask, limits=limits, finish=finish)
    todo = _to_ask(requests, log, limits, known, under_way)
    done = 0
    try:
        for place, result in limits.warn_of_gaps((executor or SerialExecutor()).map(call, todo)):
            yield from _taken(known)
            request = under_way.pop(place)
            if isinstance(result, StorageError):
                raise result
            if isinstance(result, BaseException):  # the worker was lost, or the reply cannot leave it
                result = Result(failure=failure_of(result))
            done += 1
            yield request, (result if isinstance(result, _Stored) else finish(request, result)).reply
        yield from _taken(known)
    except RunStoppedError:
        if not limits.halted:
            raise
    if limits.halted:
        raise InterruptedRunError(f"stopped as asked, after {done} samples.")


def _store(log: CallLog[Request, Reply], request: Request, made: Reply, limits: Limits) -> None:
    try:
        log.store(request, made)
    except StorageError as error:
        limits.stopped = str(error)  # make no further call: its reply would be lost too
        raise


def _to_ask(
    requests: Iterable[Request],
    log: CallLog[Request, Reply] | None,
    limits: Limits,
    known: deque[tuple[Request, Reply]],
    under_way: dict[int, Request],
) -> Iterator[Request]:
    """Yield the requests whose replies are not in the log, until a stop is requested."""
    place = 0
    for request in requests:
        if limits.halted:
            return
        stored = None if log is None else log.known(request)
        if stored is not None:
            known.append((request, stored))
            continue
        under_way[place] = request
        place += 1
        yield request


def _taken(known: deque[tuple[Request, Reply]]) -> Iterator[tuple[Request, Reply]]:
    while known:
        yield known.popleft()
