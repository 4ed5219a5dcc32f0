"""Calls before the first one that counts: a model that loads at its first call is not slow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from itertools import chain, islice
from typing import Any, TypeVar

from ..core.executor import Executor
from ..core.scored_chunks import scoring_executor

Item = TypeVar("Item")


class WarmedUp:
    """An executor that calls the first items once beforehand, and forgets what came of it.

    They are called again when it is their turn: every sample has an output, and none has a cold one. What the
    calls cost counts for a budget; whether they fail counts for nothing.
    """

    def __init__(self, executor: Executor, calls: int) -> None:
        self.executor, self.calls = executor, calls
        self.concurrency = getattr(executor, "concurrency", None)
        self.timeout = getattr(executor, "timeout", None)

    def for_scoring(self) -> Executor | None:
        """The executor itself: scoring has nothing to warm up by calls that count for nothing."""
        return scoring_executor(self.executor)

    def map(self, call: Callable[[Item], Any], items: Iterable[Item]) -> Iterator[tuple[int, Any]]:
        source = iter(items)
        first = list(islice(source, self.calls))
        warm = getattr(self.executor, "warm_up", None)
        if warm is not None:  # workers come and go there: each warms up for itself
            warm(first)
        else:
            limits: Any = getattr(call, "limits", None)
            with nullcontext() if limits is None else limits.warming_up():
                for _ in self.executor.map(call, first):
                    pass
        yield from self.executor.map(call, chain(first, source))
