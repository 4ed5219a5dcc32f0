"""The log that calls are written to: a reply is stored before it counts, and is never asked for twice.

This is the seam between calls and the store. Whoever makes calls is handed a log and knows nothing of files;
the store knows nothing of retries, pace or executors. A run, a judge and the generating model each have a log
of their own kind of requests and replies; all of them are rows of one table (`store`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

Asked = TypeVar("Asked", contravariant=True)  # noqa: PLC0105 - a request, as callers say
Reply = TypeVar("Reply")


class CallLog(Protocol[Asked, Reply]):
    """Replies on the disk, by request. Safe to use from several threads."""

    def known(self, request: Asked) -> Reply | None:
        """Return the reply that is stored for a request; None if it has to be asked.

        Asked in the thread of the caller, before the request is handed to an executor. Failures that a retry
        may fix are not known: they are asked again.
        """
        ...

    def store(self, request: Asked, reply: Reply) -> None:
        """Store a reply, an answer or a failure. When this returns, a kill of the process cannot lose it.

        It is called by the thread or task that received the reply, before that takes its next request; for a
        reply of another process, by whoever receives it from there, before it is yielded. So a kill costs at
        most the calls under way. StorageError means that nothing can be stored any more: make no further
        call.
        """
        ...

    def usages(self) -> Iterable[Mapping[str, float]]:
        """Yield what each stored call used: "calls" (attempts), "input_tokens", "output_tokens", ...

        Budgets are checked against the sum, also of calls that failed or were replaced by a later one, so
        that they hold across interruptions. Replies from a cache used nothing.
        """
        ...
