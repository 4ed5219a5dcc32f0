"""What executors share whose calls are made in other processes, here or on other machines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from ..errors import PlanError, RunStoppedError

Item = TypeVar("Item")


class CrewElsewhere(ABC, Generic[Item]):
    """The calls of one map, seen from the process that takes the results.

    Budgets and the breaker are counted here, where every result comes by; the pace is divided among the
    workers, because each of them keeps its own clock.
    """

    def __init__(self, call: Callable[[Item], Any], workers: int) -> None:
        self._limits = getattr(call, "limits", None)
        if getattr(self._limits, "gate", None) is not None:
            # A worker hears of nobody's 429 but its own: together they would not make fewer calls.
            raise PlanError(
                "adaptive concurrency needs calls that are made in this process: use the executor `threads` "
                "or `async`, or a fixed concurrency."
            )
        self._note = getattr(call, "made_elsewhere", None)
        share = getattr(call, "shared_by", None)
        self._sent = share(workers) if share else call  # what a worker gets
        self._todo: deque[tuple[int, Item]] = deque()
        self._done: deque[tuple[int, Any]] = deque()
        self._under_way = 0  # taken on, and not counted yet

    def _leave_the_rest(self) -> None:
        """Do not hand out what is still here when the run is to stop, or its budget is spent meanwhile."""
        if not self._todo or self._limits is None:
            return
        with suppress(RunStoppedError):
            self._limits.check()
        if self._limits.stopped:
            self._not_asked(self._todo)
            self._todo.clear()

    def _warm_up_calls(self, first: list[Item]) -> list[Item]:
        """Those of a worker's warm-up calls for which there is a budget; they count as made."""
        if not first or self._limits is None:
            return first
        return first[: self._limits.reserve_warm_up(len(first), self._under_way)]

    def _not_asked(self, given: Iterable[tuple[int, Item]]) -> None:
        """Note items whose calls are not made any more."""
        reason = RunStoppedError("stopped as asked.") if self._limits is None else self._limits.refusal()
        self._done.extend((place, reason) for place, _ in given)

    @property
    def _is_halted(self) -> bool:
        return self._limits is not None and bool(self._limits.halted)

    def send(self, place: int, item: Item) -> None:
        """Take on an item; a call whose run is to stop gets no further ones."""
        try:
            if self._limits is not None:
                self._limits.check(self._under_way)
        except RunStoppedError as error:
            self._done.append((place, error))
            return
        self._under_way += 1
        self._todo.append((place, item))
        self._hand_out()

    def receive(self) -> tuple[int, Any]:
        """The next result, waited for."""
        while not self._done:
            self._listen()
        place, result = self._done.popleft()
        if not isinstance(result, RunStoppedError):
            self._under_way -= 1
            if self._note is not None:
                self._note(result)
        return place, result

    @abstractmethod
    def _hand_out(self) -> None:
        """Give what is to be done to workers that have room for it."""

    @abstractmethod
    def _listen(self) -> None:
        """Wait until something happens, and take note of it."""

    @abstractmethod
    def dismiss(self) -> None:
        """End whatever is under way."""
