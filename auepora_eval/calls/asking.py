"""Ask many things by one policy. Systems, judges and the generating model are asked here, and nowhere else.

    for request, reply in ask_all(ask, requests, Limits(policy), reply=as_reply, store=log):
        ...

`ask` takes a request and returns a value, or raises. It may have attributes: `is_async` (it returns an
awaitable), `keeps_time` (it ends late calls itself) and `usage(value)`, what the value reports of its cost.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass, field, replace
from time import perf_counter, sleep
from typing import Any, Generic, TypedDict, TypeVar, cast

from ..errors import Failure, InterruptedRunError, RunStoppedError, StorageError
from .executors import (
    Executor,
    SerialExecutor,
    awaited,
    is_async,
    is_ours,
    within,
    within_async,
)
from .keys import without_secrets
from .policy import Limits, is_refused_key, kind_of
from .tracebacks import user_traceback
from .usage import CALLS, Usage

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
    it can be sent to another process if `ask` can. `finish` gets a request with its result in the thread that
    received it, before that takes its next request; not in other processes.
    """

    def __init__(
        self,
        ask: Callable[[Request], Any],
        limits: Limits,
        finish: Callable[[Any, Result[Any]], Any] | None = None,
    ) -> None:
        self.ask, self.limits, self.policy, self.finish = ask, limits, limits.policy, finish
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
        return Caller, (self.ask, self.limits)  # replies are stored in the process of the run

    def shared_by(self, workers: int, **changes: Any) -> Caller[Request, Value]:
        """Return the call for one of several processes, with its share of the pace."""
        paces = ("requests_per_minute", "tokens_per_minute")
        shares = {name: getattr(self.policy, name) for name in paces}
        cut = {name: value / workers for name, value in shares.items() if value is not None}
        return Caller(self.ask, Limits(replace(self.policy, **cut, **changes)))

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
        import asyncio

        for nap in self.limits.naps(seconds):
            if self.is_async:
                await asyncio.sleep(nap)
            else:
                sleep(nap)

    def _asked(self, request: Request) -> Value:
        if self.timeout is not None:
            return cast(Value, within(self.timeout, self.ask, request))
        value: Any = self.ask(request)
        return cast(Value, awaited(value) if inspect.isawaitable(value) else value)

    async def _asked_async(self, request: Request) -> Value:
        if self.timeout is not None:
            return cast(Value, await within_async(self.timeout, self.ask, request))
        return cast(Value, await self.ask(request))


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


def ask_all(
    ask: Callable[[Request], Any],
    requests: Iterable[Request],
    limits: Limits,
    *,
    reply: Callable[[Request, Result[Any]], Reply],
    store: Callable[[Request, Reply], None] | None = None,
    executor: Executor | None = None,
) -> Iterator[tuple[Request, Reply]]:
    """Ask each request, and yield it with its reply as they arrive; `reply` makes one of a result.

    Requests are taken as they are needed: only those under way are in memory. `store` gets a request
    with its reply, an answer or a failure, before it counts: in the thread or task that received it, before
    that takes its next request; for a reply of another process, here. So a kill costs at most the calls under
    way. After a StorageError no further call is made. `limits.halt()` ends the asking from elsewhere.
    RunStoppedError, after the calls under way, if no further call may be made.
    """

    finish = _finishing(reply, store, limits)
    under_way: dict[int, Request] = {}
    todo = _until_halted(requests, limits, under_way)
    call: Caller[Request, Any] = Caller(ask, limits, finish)
    done = 0
    try:
        for place, result in (executor or SerialExecutor()).map(call, todo):
            request = under_way.pop(place)
            if isinstance(result, StorageError):
                raise result
            if isinstance(result, BaseException):  # the worker was lost, or the reply cannot leave it
                result = Result(failure=failure_of(result))
            done += 1
            limits.warn_of_gaps()
            # The result of another process is not finished yet.
            yield request, finish(request, result) if isinstance(result, Result) else result
    except RunStoppedError as stop:
        if not limits.halted:
            # Calls that were under way have added to what a budget is spent on.
            raise (limits.refusal() if limits.is_out_of_budget else stop) from None
    if limits.halted:
        raise InterruptedRunError(f"stopped as asked, after {done} samples.")


def _finishing(
    reply: Callable[[Request, Result[Any]], Reply],
    store: Callable[[Request, Reply], None] | None,
    limits: Limits,
) -> Callable[[Request, Result[Any]], Reply]:
    """Return a function that makes a reply of a result and stores it."""

    def finish(request: Request, result: Result[Any]) -> Reply:
        made = reply(request, result)
        try:
            if store is not None:
                store(request, made)
        except StorageError as error:
            limits.stopped = str(error)  # make no further call: its reply would be lost too
            raise
        return made

    return finish


def _until_halted(
    requests: Iterable[Request], limits: Limits, under_way: dict[int, Request]
) -> Iterator[Request]:
    for place, request in enumerate(requests):
        if limits.halted:
            return
        under_way[place] = request
        yield request
