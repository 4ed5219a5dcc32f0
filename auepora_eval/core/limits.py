"""What the calls of one run share: the pace, the budget, the breaker, and how many are made at a time."""

from __future__ import annotations

import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from ..errors import RunStoppedError
from .alarm import Alarm
from .policy import PUSHED_BACK, CallPolicy, kind_of
from .spent import Spent, UncountedUsageWarning
from .types import SystemOutputs

T = TypeVar("T")


class Limits:
    """The state of a policy during a run. Safe to use from several threads."""

    def __init__(self, policy: CallPolicy) -> None:
        self.policy = policy
        self.gate = Gate(policy.adaptive) if policy.adaptive else None
        self.spent = Spent()
        self._warm_up_calls = 0  # of those
        self._warms_up = False
        self._told_of_warm_up: Callable[[Spent], None] | None = None
        self._lock = threading.Lock()
        self._requests, self._tokens = Pace(policy.requests_per_minute), Pace(policy.tokens_per_minute)
        self._paced = bool(policy.requests_per_minute or policy.tokens_per_minute)
        self._failures_in_a_row = 0
        self._stopped = ""
        self._budget = ""  # the same, if it is a budget that is spent
        self._halted = False
        self._alarm = Alarm()
        self._before: Mapping[str, float] = {}
        self._told_of_halt: list[Callable[[], None]] = []

    @property
    def stopped(self) -> str:
        """Why no further call may be made; empty while one may."""
        return self._stopped

    @property
    def halted(self) -> bool:
        """Whether somebody asked for an end: what has no outcome yet is left for another time."""
        return self._halted

    def halt(self) -> None:
        """Allow no further call, because somebody asked. For signal handlers: it takes no lock."""
        self._halted = True
        self._stopped = self._stopped or "somebody asked for it"
        self._alarm.ring()
        for tell in self._told_of_halt:
            tell()

    def pause(self, seconds: float) -> None:
        """Wait so long before a call; RunStoppedError, at once, when it is not to be made any more."""
        clock = self.policy.clock
        if clock.told is not None:
            clock.told(seconds)
        (clock.sleep or self._alarm.wait)(seconds)
        self._refuse_if_rung()

    async def pause_async(self, seconds: float) -> None:
        """The same, in a task."""
        clock = self.policy.clock
        if clock.told is not None:
            clock.told(seconds)
        await (clock.sleep_async or self._alarm.wait_async)(seconds)
        self._refuse_if_rung()

    def when_halted(self, tell: Callable[[], None]) -> None:
        """Call this, from a signal handler perhaps, when the run is asked to stop."""
        self._told_of_halt.append(tell)

    def count_before(self, spent: Mapping[str, float]) -> None:
        """Count what earlier sessions of the run spent: `max_calls`, `max_tokens`, `max_cost`."""
        self._before = spent

    def reserve(self) -> float:
        """Count a call and say in how many seconds it may be made; RunStoppedError if it may not."""
        with self._lock:
            self._refuse_if_spent()
            self.spent.calls += 1
            if not self._paced:
                return 0.0
            now = self.policy.clock.now()
            return max(self._requests.reserve(now, 1), self._tokens.reserve(now, self._usual_tokens()))

    def check(self, under_way: int = 0) -> None:
        """RunStoppedError if no further call may be made, beside so many that are not counted yet."""
        most = self.policy.max_calls
        with self._lock:
            self._refuse_if_spent()
            if most is not None and under_way and self._made() + under_way >= most:
                raise RunStoppedError(self._refused(self._calls_are_spent(most)))

    def answered(self, output: SystemOutputs, *, calls: int = 0) -> None:
        """Note a sample that was answered; `calls` that were made elsewhere are counted too."""
        with self._lock:
            self.spent.calls += calls
            self._failures_in_a_row = 0
            usual = self._usual_tokens() if self._paced else 0.0
            tokens = self.spent.add(output, self.policy)
            if self._paced:
                self._tokens.correct(tokens - usual)

    def failed(self, words: str, *, calls: int = 0) -> None:
        """Note a sample that failed for good."""
        with self._lock:
            self.spent.calls += calls
            if self._warms_up:
                return  # a model that was still loading is not down
            self._failures_in_a_row += 1
            limit = self.policy.breaker_after
            if limit is not None and self._failures_in_a_row >= limit:
                last = words.rstrip(". ")
                self._stopped = f"{self._failures_in_a_row} samples failed in a row, the last one with {last}"
                self._alarm.ring()

    def _refuse_if_spent(self) -> None:
        if not self._stopped:
            self._stopped = self._budget = self._spent_budget()
        if self._stopped:
            raise self.refusal()

    def _spent_budget(self) -> str:
        """Which budget is spent, in words; none if none is."""
        policy, before = self.policy, self._before.get
        if policy.max_calls is not None and self._made() >= policy.max_calls:
            return self._calls_are_spent(policy.max_calls)
        used = self.spent.tokens + before("max_tokens", 0)
        if policy.max_tokens is not None and used >= policy.max_tokens:
            return f"{used:,.10g} tokens were used, of a budget of {policy.max_tokens:,}"
        cost = self.spent.cost(policy) + before("max_cost", 0.0)
        if policy.max_cost is not None and cost >= policy.max_cost:
            return f"{cost:.4f} US dollars were spent, of a budget of {policy.max_cost:g}"
        return ""

    def _refuse_if_rung(self) -> None:
        # A budget that is spent meanwhile is another matter: this call has its place in it.
        if self._alarm.rang:
            raise self.refusal()

    def refusal(self) -> RunStoppedError:
        """What a call that may not be made ends with."""
        return RunStoppedError(self._refused(self._stopped))

    @staticmethod
    def _refused(reason: str) -> str:
        return f"stopped: {reason}. What is finished is kept."

    def _made(self) -> int:
        """The run's calls, in this session and before."""
        return int(self.spent.calls + self._before.get("max_calls", 0))

    def _calls_are_spent(self, most: int) -> str:
        made = self._made()
        warm = f", {self._warm_up_calls:,} of them by the warm-up" if self._warm_up_calls else ""
        more = f" ({made:,} were made)" if made > most else ""
        return f"the budget of {most:,} calls is spent{warm}{more}"

    def _usual_tokens(self) -> float:
        """What a call has used so far, on average: nobody knows before it is made."""
        return self.spent.tokens / self.spent.telling if self.spent.telling else 0.0

    def when_warmed_up(self, tell: Callable[[Spent], None]) -> None:
        """Call this with what a warm-up cost: no output of the run tells it."""
        self._told_of_warm_up = tell

    @contextmanager
    def warming_up(self) -> Iterator[None]:
        """The calls within the block cost what they cost, and say nothing of the system."""
        before = replace(self.spent)
        self._warms_up = True
        try:
            yield
        finally:
            self._warms_up = False
            self._note_warm_up(self.spent.less(before))

    def reserve_warm_up(self, calls: int, under_way: int = 0) -> int:
        """How many of these calls a worker elsewhere may make to warm up; they count as made."""
        most = self.policy.max_calls
        with self._lock:
            if most is not None:
                calls = max(0, min(calls, most - self._made() - under_way))
            self.spent.calls += calls
        self._note_warm_up(Spent(calls))
        return calls

    def warmed_up_elsewhere(self, spent: Spent, *, reserved: int = 0) -> None:
        """Count what a worker's warm-up cost, apart from the calls that were reserved for it."""
        more = replace(spent, calls=max(0, spent.calls - reserved))
        with self._lock:
            self.spent.add_sums(more.sums())
        self._note_warm_up(more)

    def _note_warm_up(self, spent: Spent) -> None:
        self._warm_up_calls += spent.calls
        if self._told_of_warm_up is not None and (spent.calls or spent.tokens):
            self._told_of_warm_up(spent)

    def told_of_gaps(self, results: Iterator[T]) -> Iterator[T]:
        """The same results; where answers do not tell what a limit needs, a warning now and at the end."""
        told = 0
        stop: RunStoppedError | None = None
        try:
            for result in results:
                if self.spent.uncounted and not told:
                    told = self.spent.uncounted
                    self._warn(self.spent.in_words(self.policy))
                yield result
        except RunStoppedError as error:
            stop = error
        if self.spent.uncounted > 1:
            self._warn(self.spent.summary(self.policy))
        if stop is None:
            return
        with self._lock:
            if self._budget:  # calls that were under way have added to it since
                self._stopped = self._budget = self._spent_budget()
                stop = self.refusal()
        raise stop

    def _warn(self, words: str) -> None:
        warnings.warn(words, UncountedUsageWarning, stacklevel=4)


class Pace:
    """So many a minute, evenly: each waits for its turn, so that no minute has more."""

    def __init__(self, per_minute: float | None) -> None:
        self._seconds_each = 60.0 / per_minute if per_minute else 0.0
        self._free_at = float("-inf")

    def reserve(self, now: float, amount: float) -> float:
        """Seconds until it is the turn of whoever asks."""
        if not self._seconds_each:
            return 0.0
        start = max(now, self._free_at)
        self._free_at = start + amount * self._seconds_each
        return start - now

    def correct(self, difference: float) -> None:
        """It was more, or less, than was reserved."""
        self._free_at += difference * self._seconds_each


class Gate:
    """Lets so many calls through at a time: fewer when the endpoint pushes back, more while it answers."""

    def __init__(self, most: int) -> None:
        self._most = self._size = float(most)
        self._inside = 0
        self._epoch = 0
        self._waiting: deque[Future[int]] = deque()
        self._lock = threading.Lock()
        self.lowest = most

    @property
    def size(self) -> int:
        """How many may be inside now."""
        return int(self._size)

    def enter(self) -> Future[int]:
        """A future that is done when there is room; its result goes back to `leave`."""
        ticket: Future[int] = Future()
        with self._lock:
            self._waiting.append(ticket)
            admitted = self._admitted()
        _open(admitted)
        return ticket

    def leave(self, epoch: int, error: BaseException | None) -> None:
        """Make room, and take note of how it went."""
        with self._lock:
            self._inside -= 1
            if error is None:
                self._size = min(self._most, self._size + 1 / self._size)
            elif kind_of(error) in PUSHED_BACK and epoch == self._epoch:
                # Once for all that were inside when it happened: they were too many together.
                self._size = max(1.0, self._size / 2)
                self._epoch += 1
                self.lowest = min(self.lowest, self.size)
            admitted = self._admitted()
        _open(admitted)

    def _admitted(self) -> list[tuple[Future[int], int]]:
        admitted = []
        while self._waiting and self._inside < self.size:
            ticket = self._waiting.popleft()
            if ticket.set_running_or_notify_cancel():  # cancelled by who stopped waiting
                self._inside += 1
                admitted.append((ticket, self._epoch))
        return admitted


def _open(admitted: list[tuple[Future[int], int]]) -> None:
    # Outside the lock: whoever waits may run at once, in this thread.
    for ticket, epoch in admitted:
        ticket.set_result(epoch)
