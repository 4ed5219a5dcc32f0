"""The call policy: what happens to calls that hang or fail, how many may be made, and how fast.

policy = CallPolicy(timeout=30, retries=4, requests_per_minute=600, max_cost=5.0, price_input=0.001)
AueporaEvaluator(system, plan, executor=ThreadExecutor(concurrency=16), policy=policy)
"""

from __future__ import annotations

import errno
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import AccessRefusedError, CallError, DataError, RunStoppedError, warn_user
from .usage import CALLS, Usage, reported_tokens

_LOOK_SECONDS = 0.1  # between two checks whether a wait is to end
HOPELESS_AFTER = 20  # equal failures without an answer
# The kinds of failure that another attempt may fix.
PASSING = ("rate_limited", "timeout", "connection", "http_5xx", "bad_output")


@dataclass(frozen=True)
class CallClock:
    """Time and chance, so that a test need not wait for either.

    Without a sleep of its own, waits are real, and end when the run is to stop.
    """

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] | None = None
    chance: Callable[[], float] = random.random


@dataclass(frozen=True)
class CallPolicy:
    """How a system is called on one sample, and when the run is to stop. Seconds, US dollars.

    `timeout` is for each attempt. A failure whose kind (or whose exception's class) is in `retry_on` is
    retried up to `retries` times, after a random wait of up to `backoff`, twice that, and so on, or after the
    time that the server requests; and again when the run is resumed. `retry_on=(*PASSING, "ModelLoading")`
    adds a class. A DataError is never retried: the same call gives the same error.

    `max_calls` (attempts), `max_tokens` and `max_cost` end the run when they are spent. Tokens are those
    that outputs report (`input_tokens`, `output_tokens`, `total_tokens` in `extra`). Where they do not, there
    is a warning and the run continues. `breaker_after` ends it after this many consecutive failed samples.
    Without it, a run ends after 20 samples that all failed with the same class of exception, if none was
    answered before; `keep_going` calls the others too.
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
    keep_going: bool = False
    clock: CallClock = field(default_factory=CallClock, repr=False, compare=False)

    def __post_init__(self) -> None:
        positive = ("timeout", "requests_per_minute", "tokens_per_minute", "breaker_after")
        for name in positive:
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise DataError(name, f"must be a positive number, not {value}.")
        for name in ("retries", "backoff", "longest_wait", "max_calls", "max_tokens", "max_cost"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < float("inf"):
                raise DataError(name, f"must not be negative: {value}.")
        if self.max_cost is not None and self.price_input is None and self.price_output is None:
            raise DataError("max_cost", "needs prices.", fix="Give price_input and price_output.")

    def tries_again(self, error: BaseException, attempt: int) -> bool:
        """Return whether another attempt follows the one with this number (1, 2, ...)."""
        if attempt > self.retries or isinstance(error, DataError | RunStoppedError):
            return False
        if isinstance(error, CallError) and error.lasting:
            return False
        return kind_of(error) in self.retry_on or self.names(error)

    def names(self, error: BaseException) -> bool:
        """Return whether `retry_on` has the class of an error, or one of its base classes."""
        if isinstance(error, DataError | RunStoppedError):
            return False
        return any(kind.__name__ in self.retry_on for kind in type(error).__mro__)

    def wait(self, error: BaseException, attempt: int) -> float:
        """Return the seconds until the next attempt: full jitter, or what the server requests."""
        requested = requested_pause(error)
        if requested is not None:
            return min(requested, self.longest_retry_after) + self.clock.chance() * self.backoff
        longest: float = min(self.longest_wait, self.backoff * 2.0 ** min(attempt - 1, 30))
        return self.clock.chance() * longest


def kind_of(error: BaseException) -> str:
    """Return what kind of failure an exception is, as error records name it.

    >>> kind_of(TimeoutError()), kind_of(ConnectionResetError()), kind_of(KeyError())
    ('timeout', 'connection', 'system_exception')
    """
    if isinstance(error, CallError):
        return error.kind
    if isinstance(error, DataError):
        return "data"
    return _foreign_kind(error) or "system_exception"


def is_refused_key(error: BaseException, *, has_answers: bool) -> bool:
    """Return whether an endpoint of ours refuses the key, which it would do for every sample.

    Some servers answer 403 to one question that they do not like: with the same key, others were answered.
    """
    status = error.status if isinstance(error, CallError) else None
    return status == 401 or (status == 403 and not has_answers)


# Errors of other HTTP clients (requests, httpx, ...), recognised by their names and attributes: no client is
# imported. How a 429 or another status of our own endpoints is classified is in calls/http.py (`_refusal`).

# Classes by their names, or by their package and name where the name alone is ambiguous.
_TIMEOUTS = frozenset(
    "Timeout TimeoutException TimeoutError APITimeoutError ConnectTimeoutError ReadTimeoutError".split()
)
_CONNECTIONS = frozenset(
    """ConnectionError APIConnectionError NetworkError RemoteProtocolError NewConnectionError
    ChunkedEncodingError ClientConnectionError ClientPayloadError urllib3.ProtocolError http.IncompleteRead
    ssl.SSLError socket.gaierror""".split()
)
_UNTRUSTED = frozenset({"ssl.SSLCertVerificationError"})
_UNREACHABLE = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN})


def _foreign_kind(error: BaseException) -> str | None:
    """Return what kind of failure the exception of a client is; None if it cannot be recognised."""
    status = _status(error)
    if status is not None:
        if status in (408, 429):
            return "rate_limited" if status == 429 else "timeout"
        return "http_5xx" if status >= 500 else "http_4xx"
    names = {name for kind in type(error).__mro__ for name in _names(kind)}
    if names & _UNTRUSTED or "CERTIFICATE_VERIFY_FAILED" in str(error):
        return "tls"
    if isinstance(error, TimeoutError) or names & _TIMEOUTS:
        return "timeout"
    unreachable = isinstance(error, OSError) and error.errno in _UNREACHABLE
    if isinstance(error, ConnectionError) or unreachable or names & _CONNECTIONS:
        return "connection"
    reason = getattr(error, "reason", None)  # urllib's URLError wraps another error
    return _foreign_kind(reason) if isinstance(reason, BaseException) and reason is not error else None


def requested_pause(error: BaseException) -> float | None:
    """Return the seconds that a server requested to wait, if the exception has them."""
    value = getattr(error, "retry_after", None)
    if value is None:
        for thing in (getattr(error, "response", None), error):
            get = getattr(getattr(thing, "headers", None), "get", None)
            if callable(get):
                value = get("Retry-After") or get("retry-after")  # a plain dict has it in one spelling
                break
    return None if value is None or isinstance(value, bool) else retry_after(str(value), time.time())


def retry_after(value: str | None, now: float) -> float | None:
    """Return the seconds that a Retry-After header requests, as a number or a date; None if it is neither.

    >>> retry_after("7", 0), retry_after("Thu, 01 Jan 1970 00:01:00 GMT", 45.0), retry_after("soon", 0)
    (7.0, 15.0, None)
    """
    from email.utils import parsedate_to_datetime

    text = (value or "").strip()
    try:
        seconds = float(text) if text[:1].isdigit() else parsedate_to_datetime(text).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return None
    return max(0.0, seconds) if seconds < float("inf") else None


def _status(error: BaseException) -> int | None:
    """Return the HTTP status of an error, by the attribute names that clients use."""
    if not isinstance(error, Exception):
        return None  # SystemExit has a `code` too, which is not a status
    for thing in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "code"):
            status = getattr(thing, name, None)
            if isinstance(status, int) and 400 <= status < 600:
                return int(status)
    return None


def _names(kind: type) -> tuple[str, str]:
    return kind.__name__, f"{kind.__module__.partition('.')[0]}.{kind.__name__}"


# The state of a policy during a session of calls: pace, budgets and breaker.


class Limits:
    """The state of a policy during a session of calls. Safe to use from several threads.

    `usages` are those of the calls of earlier sessions (see `count`).
    """

    def __init__(self, policy: CallPolicy | None = None, usages: Iterable[Usage] = ()) -> None:
        self.policy = policy = policy or CallPolicy()
        self.spent = Spent()
        self.count(usages)
        self.stopped = ""  # why no further call may be made
        self.has_answers = False  # of this process, or of an earlier one of the run
        self.is_hopeless = False  # `stopped` because no call was answered
        self.halted = False  # a stop was requested: requests without an outcome are left for another session
        self.is_out_of_budget = False  # `stopped` because a budget is spent, which is not a failure
        self._lock = threading.Lock()
        self._requests, self._tokens = Pace(policy.requests_per_minute), Pace(policy.tokens_per_minute)
        self._failures_in_a_row = 0
        self._failed_with: set[str] = set()  # the classes of exceptions before the first answer
        self._refused_key = ""  # the same as `stopped`, if an endpoint refuses the key
        self._has_warned = False

    def __reduce__(self) -> Any:
        # Budgets and the breaker are counted in the process of the run; workers only make the attempts.
        sent = replace(self.policy, max_calls=None, max_tokens=None, max_cost=None, breaker_after=None)
        return Limits, (replace(sent, keep_going=True),)

    def count(self, usages: Iterable[Usage]) -> None:
        """Count the calls of earlier sessions: budgets hold across interruptions."""
        for usage in usages:
            self.spent.add_stored(usage, self.policy)

    def halt(self) -> None:
        """Allow no further call, on request. For signal handlers: it takes no lock."""
        self.halted = True
        self.stopped = self.stopped or "somebody asked for it"

    def naps(self, seconds: float) -> Iterator[float]:
        """Yield the naps of a wait before a call; RunStoppedError as soon as the call is not to be made."""
        end = time.monotonic() + seconds
        if self.policy.clock.sleep is not None:
            self.policy.clock.sleep(seconds)
            end = float("-inf")
        while not self._ends_waits and (rest := end - time.monotonic()) > 0:
            yield min(rest, _LOOK_SECONDS)
        if self._ends_waits:
            raise self.refusal()

    @property
    def _ends_waits(self) -> bool:
        # A budget that is spent during the wait does not matter: this call is counted already.
        return self.halted or (bool(self.stopped) and not self.is_out_of_budget)

    def reserve(self) -> float:
        """Count a call and return the seconds until it may be made; RunStoppedError if it may not."""
        with self._lock:
            self._check_budget()
            self.spent.calls += 1
            now = self.policy.clock.now()
            return max(self._requests.reserve(now, 1), self._tokens.reserve(now, self.spent.usual_tokens()))

    def check(self, under_way: int = 0) -> None:
        """Raise RunStoppedError if no call may be made beside those under way, which are not counted yet."""
        most = self.policy.max_calls
        with self._lock:
            self._check_budget()
            if most is not None and under_way and self.spent.calls + under_way >= most:
                raise _refusal(self._calls_are_spent(most))

    def answered(self, usage: Usage, *, calls: int = 0) -> None:
        """Count a request that was answered, and the calls for it that were not counted before."""
        with self._lock:
            self.spent.calls += calls
            self._requests.correct(calls)
            self._failures_in_a_row = 0
            self.has_answers = True
            usual = self.spent.usual_tokens()
            self._tokens.correct(self.spent.add(usage, self.policy) - usual)

    def warn_of_gaps(self) -> None:
        """Warn of the first answer that a limit cannot count."""
        if self.spent.uncounted and not self._has_warned:
            self._has_warned = True
            what = (
                "The tokens of an answer, or their price, are not all known, so limits of tokens and cost "
                "cannot be enforced exactly. The run continues. To limit it in any case, set --budget-calls "
                "(max_calls)."
            )
            warn_user(what, UncountedUsageWarning)

    def failed(self, message: str, kind: str = "", *, calls: int = 0) -> None:
        """Count a request that failed for good; `kind` is the class of the exception."""
        with self._lock:
            self.spent.calls += calls
            self._failures_in_a_row += 1
            self._failed_with.add(kind)
            limit = self._most_failures()
            if limit is not None and self._failures_in_a_row >= limit:
                last = message.rstrip(". ")
                self.stopped = f"{self._failures_in_a_row} samples failed in a row, the last one with {last}"
                self.is_hopeless = self.policy.breaker_after is None

    def _most_failures(self) -> int | None:
        """Return after how many failures in a row the session ends; None for never."""
        policy = self.policy
        if policy.breaker_after is not None or policy.keep_going:
            return policy.breaker_after
        is_always_the_same = len(self._failed_with) == 1 and not self.has_answers
        return HOPELESS_AFTER if is_always_the_same else None

    def refuse_key(self, reason: str) -> RunStoppedError:
        """Allow no further call, since an endpoint refuses the key; return the error."""
        with self._lock:
            self._refused_key = self.stopped = reason
        return self.refusal()

    def refusal(self) -> RunStoppedError:
        """Return the error of a call that may not be made."""
        if self.is_out_of_budget:  # calls that were under way have added to it since
            return _refusal(self._spent_budget())
        return AccessRefusedError(self._refused_key) if self._refused_key else _refusal(self.stopped)

    def _check_budget(self) -> None:
        if not self.stopped:
            spent = self._spent_budget()
            # In this order: waits end for every other reason to stop.
            self.is_out_of_budget, self.stopped = bool(spent), spent
        if self.stopped:
            raise self.refusal()

    def _spent_budget(self) -> str:
        """Return which budget is spent; empty if none is."""
        policy, spent = self.policy, self.spent
        if policy.max_calls is not None and spent.calls >= policy.max_calls:
            return self._calls_are_spent(policy.max_calls)
        if policy.max_tokens is not None and spent.tokens >= policy.max_tokens:
            return f"{spent.tokens:,.10g} tokens were used, of a budget of {policy.max_tokens:,}"
        if policy.max_cost is not None and spent.cost(policy) >= policy.max_cost:
            return f"{spent.cost(policy):.4f} US dollars were spent, of a budget of {policy.max_cost:g}"
        return ""

    def _calls_are_spent(self, most: int) -> str:
        more = f" ({self.spent.calls:,} were made)" if self.spent.calls > most else ""
        return f"the budget of {most:,} calls is used up{more}"


def _refusal(reason: str) -> RunStoppedError:
    return RunStoppedError(f"stopped: {reason}. What is finished is kept.")


class Pace:
    """A rate per minute, spread evenly: each call waits for its turn, so that no minute has more."""

    def __init__(self, per_minute: float | None) -> None:
        self._seconds_each = 60.0 / per_minute if per_minute else 0.0
        self._free_at = float("-inf")

    def reserve(self, now: float, amount: float) -> float:
        """Return the seconds until the caller's turn."""
        if not self._seconds_each:
            return 0.0
        start = max(now, self._free_at)
        self._free_at = start + amount * self._seconds_each
        return start - now

    def correct(self, difference: float) -> None:
        """Add what was used beyond the reserved amount, or less."""
        self._free_at += difference * self._seconds_each


# The cost of calls, by the counts that answers report: the sums that budgets are checked against.


class UncountedUsageWarning(UserWarning):
    """A limit on tokens or money is set, and calls do not report what they used."""


@dataclass
class Spent:
    """Calls and tokens, as far as answers report them, and what those cost."""

    calls: int = 0
    tokens: float = 0
    input_tokens: float = 0  # to pay for at either price
    output_tokens: float = 0
    reporting: int = 0  # answers that report any tokens
    uncounted: int = 0  # answers that a limit of the policy could not count in full

    def add(self, usage: Usage, policy: CallPolicy) -> float:
        """Count an answer by the usage that it reports; return its tokens."""
        sent, written, total = reported_tokens(usage) if usage else (None, None, None)
        tokens = (sent or 0) + (written or 0) if total is None else total
        self.reporting += not (sent is written is total is None)
        if sent is written is None and policy.price_input == policy.price_output:
            sent, written = total, 0  # any of them costs the same
        self.tokens += tokens
        self.input_tokens += sent or 0
        self.output_tokens += written or 0
        needs_tokens = policy.max_tokens is not None or policy.tokens_per_minute is not None
        has_cost = _has_cost(sent, policy.price_input) and _has_cost(written, policy.price_output)
        is_short = (needs_tokens and total is None) or (policy.max_cost is not None and not has_cost)
        self.uncounted += is_short
        return tokens

    def add_stored(self, usage: Usage, policy: CallPolicy) -> None:
        """Count a call of an earlier session."""
        before = self.reporting, self.uncounted
        self.calls += int(usage.get(CALLS, 1))
        self.add(usage, policy)
        self.reporting, self.uncounted = before  # those are of this process

    def usual_tokens(self) -> float:
        """Return the mean tokens of a call so far: those of the next one are not known before it is made."""
        return self.tokens / self.reporting if self.reporting else 0.0

    def cost(self, policy: CallPolicy) -> float:
        """Return the cost in US dollars. Prices are per 1,000 tokens."""
        sent = self.input_tokens * (policy.price_input or 0.0)
        return (sent + self.output_tokens * (policy.price_output or 0.0)) / 1000

    def used(self, policy: CallPolicy) -> dict[str, float]:
        """Return what was used of each budget, by its name in a policy."""
        return {"max_calls": self.calls, "max_tokens": self.tokens, "max_cost": self.cost(policy)}


def _has_cost(tokens: float | None, price: float | None) -> bool:
    return tokens is not None if price else price is not None or not tokens
