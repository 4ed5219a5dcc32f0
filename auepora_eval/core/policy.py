"""What is done about calls that hang or fail, and how many may be made.

policy = CallPolicy(timeout=30, retries=4, requests_per_minute=600, max_cost=5.0, price_input=0.001)
AueporaEvaluator(system, plan, executor=ThreadExecutor(concurrency=16), policy=policy)
"""

from __future__ import annotations

import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from ..errors import CallError, DataError, RunStoppedError
from .foreign_errors import asked_pause, foreign_kind

# The kinds of failure that another attempt may mend.
PASSING = ("rate_limited", "timeout", "connection", "http_5xx", "bad_output")
PUSHED_BACK = ("rate_limited", "timeout")


@dataclass(frozen=True)
class CallClock:
    """Time and chance, so that a test need not wait for either.

    Without a sleep of its own, waits are real, and end when the run is to stop. `told` hears of each.
    """

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] | None = None
    sleep_async: Callable[[float], Awaitable[None]] | None = None
    chance: Callable[[], float] = random.random
    told: Callable[[float], None] | None = None


@dataclass(frozen=True)
class CallPolicy:
    """How a system is called on one sample, and when the run is to stop. Seconds, US dollars.

    `timeout` is for each attempt. A failure whose kind (or whose exception's class) `retry_on` names is tried
    again up to `retries` times, after a random wait of up to `backoff`, twice that, and so on, or after
    what the server asks for; and anew when the run is gone on with. `retry_on=(*PASSING, "ModelLoading")`
    adds a class. A DataError is never tried again: the same call gives the same error.

    `max_calls` (attempts), `max_tokens` and `max_cost` end the run when they are used up; tokens are those
    that outputs tell (`input_tokens`, `output_tokens`, `total_tokens` in `extra`); where they do not, a
    warning says so and the run goes on. `breaker_after` ends it after so many failed samples in a row.
    `adaptive` is the number of calls at a time to begin with: it is halved when the endpoint pushes back, and
    grows again while it answers (executors threads and async).
    """

    timeout: float | None = None
    retries: int = 0
    backoff: float = 0.5
    longest_wait: float = 30.0
    longest_retry_after: float = 120.0
    retry_on: tuple[str, ...] = PASSING
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    price_input: float | None = None
    price_output: float | None = None
    breaker_after: int | None = None
    adaptive: int | None = None
    clock: CallClock = field(default_factory=CallClock, repr=False, compare=False)

    def __post_init__(self) -> None:
        positive = ("timeout", "requests_per_minute", "tokens_per_minute", "breaker_after", "adaptive")
        for name in positive:
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise DataError(name, f"must be a positive number, not {value}.")
        for name in ("retries", "backoff", "longest_wait", "max_calls", "max_tokens", "max_cost"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < float("inf"):
                raise DataError(name, f"must not be negative: {value}.")
        if self.max_cost is not None and self.price_input is None and self.price_output is None:
            raise DataError(
                "max_cost", "there are no prices to reckon with.", fix="Give price_input and price_output."
            )

    def tries_again(self, error: BaseException, attempt: int) -> bool:
        """Whether the attempt of that number (1, 2, ...) is to be followed by another."""
        if attempt > self.retries or isinstance(error, DataError | RunStoppedError):
            return False
        if isinstance(error, CallError) and error.lasting:
            return False
        return kind_of(error) in self.retry_on or self.names(error)

    def names(self, error: BaseException) -> bool:
        """Whether `retry_on` names the class of an error, or one that it is derived from."""
        if isinstance(error, DataError | RunStoppedError):
            return False
        return any(kind.__name__ in self.retry_on for kind in type(error).__mro__)

    def wait(self, error: BaseException, attempt: int) -> float:
        """Seconds until the next attempt: full jitter, or what the server asked for and a little more."""
        asked = asked_pause(error)
        if asked is not None:
            return min(asked, self.longest_retry_after) + self.clock.chance() * self.backoff
        longest: float = min(self.longest_wait, self.backoff * 2.0 ** min(attempt - 1, 30))
        return self.clock.chance() * longest


def kind_of(error: BaseException) -> str:
    """What sort of failure an exception is, in the words of an error record.

    >>> kind_of(TimeoutError()), kind_of(ConnectionResetError()), kind_of(KeyError())
    ('timeout', 'connection', 'system_exception')
    """
    if isinstance(error, CallError):
        return error.kind
    if isinstance(error, DataError):
        return "data"
    return foreign_kind(error) or "system_exception"
