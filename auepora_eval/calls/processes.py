"""An executor of worker processes: for systems that compute, hang for good or crash the interpreter.

Each worker makes one call at a time. It gets the system by its name and imports it, or gets a copy if the
system can be copied. A worker that dies is replaced. The request that it worked on is tried in another one,
three times in all, then it has failed. If the policy has a timeout and no retries, a call that takes too long
ends with its process.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TextIO, TypeVar, cast

from ..errors import PlanError, RunStoppedError, WorkerLostError
from .asking import Caller
from .executors import late, outcome, positive, through_a_window
from .streams import Lasting

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Item = TypeVar("Item")
MOST_TRIES = 3
_ITEMS_EACH = 2  # one that a worker has, and one that waits here until it finishes
_START_SECONDS = 120.0  # a start imports the system, which may load a model
_LOOK_SECONDS = 0.1  # between two checks of deadlines, and whether the run is to stop


class RemoteCalls(ABC, Generic[Item]):
    """The calls of one map that other processes make, here or on other machines.

    Budgets and the breaker are counted in this process, which gets every result. The pace is divided among
    the workers, because each of them has its own clock.
    """

    def __init__(self, call: Callable[[Item], Any], workers: int) -> None:
        self._caller = call if isinstance(call, Caller) else None
        self._limits = self._caller.limits if self._caller else None
        self._sent: Any = self._caller.shared_by(workers) if self._caller else call  # what a worker gets
        self._todo: deque[tuple[int, Item]] = deque()
        self._done: deque[tuple[int, Any]] = deque()
        self._under_way = 0  # accepted, and not counted yet

    def _drop_waiting(self) -> None:
        """Drop the items that no worker has yet, if the run is to stop or its budget is spent."""
        if not self._todo or self._limits is None:
            return
        with suppress(RunStoppedError):
            self._limits.check()
        if self._limits.stopped:
            self._drop(self._todo)
            self._todo.clear()

    def _drop(self, items: Iterable[tuple[int, Item]]) -> None:
        """Answer items whose calls are not made any more."""
        reason = RunStoppedError("stopped as asked.") if self._limits is None else self._limits.refusal()
        self._done.extend((place, reason) for place, _ in items)

    @property
    def _is_halted(self) -> bool:
        return self._limits is not None and self._limits.halted

    def send(self, place: int, item: Item) -> None:
        """Accept an item, unless the run is to stop."""
        try:
            if self._limits is not None:
                self._limits.check(self._under_way)
        except RunStoppedError as error:
            self._done.append((place, error))
            return
        self._under_way += 1
        self._todo.append((place, item))
        self._distribute()

    def receive(self) -> tuple[int, Any]:
        """Wait for the next result and return it."""
        while not self._done:
            self._listen()
        place, result = self._done.popleft()
        # A call that was not made spends nothing of a budget.
        if not isinstance(result, RunStoppedError):
            self._under_way -= 1
            if self._caller is not None:
                self._caller.count(result)
        return place, result

    @abstractmethod
    def _distribute(self) -> None:
        """Give items to workers that can take some."""

    @abstractmethod
    def _listen(self) -> None:
        """Wait until something happens, and handle it."""

    @abstractmethod
    def dismiss(self) -> None:
        """End everything that is under way."""


class ProcessExecutor:
    """Several calls at a time, each in a process of its own."""

    def __init__(self, *, concurrency: int = 2) -> None:
        self.concurrency = positive(concurrency)

    def map(self, call: Callable[[Item], Any], items: Iterable[Item]) -> Iterator[tuple[int, Any]]:
        pool = _Pool(call, self.concurrency)
        try:
            yield from through_a_window(items, self.concurrency * _ITEMS_EACH, pool.send, pool.receive)
        finally:
            pool.dismiss()


@dataclass(eq=False)
class _Worker(Generic[Item]):
    """A process, the item that it has, and since when it works on it."""

    process: Any
    wire: Connection
    is_ready: bool = False
    since: float = field(default_factory=time.monotonic)
    item: tuple[int, Item] | None = None

    def end(self) -> None:
        # Killed, not asked to end: a system may catch SIGTERM.
        self.process.kill()
        self.process.join()
        self.wire.close()


class _Pool(RemoteCalls[Item]):
    """The workers of one map."""

    def __init__(self, call: Callable[[Item], Any], size: int) -> None:
        import multiprocessing

        super().__init__(call, size)
        # A process that is ended cannot retry. Of two clocks, chance would decide which one ends the call.
        self._timeout = self._caller.timeout if self._caller and not self._caller.policy.retries else None
        if self._caller is not None and self._timeout is not None:
            self._sent = self._caller.shared_by(size, timeout=None)
        # Never fork: a lock that another thread holds would stay locked in the child for ever. No fork server
        # either: its environment is that of its start, and a key that was set since would be missing.
        self._context: Any = multiprocessing.get_context("spawn")
        self._size = size
        self._workers: list[_Worker[Item]] = []
        self._tries: dict[int, int] = {}
        self._failed_starts = 0
        # Workers read this byte before each call. A message would arrive after the item that they have.
        self._halted: Any = self._context.RawValue("b", 0)

    def dismiss(self) -> None:
        """End all workers, busy or not."""
        for worker in self._workers:
            worker.process.kill()  # all are killed before the first wait
        for worker in self._workers:
            worker.end()

    def _started(self) -> _Worker[Item]:
        ours, theirs = self._context.Pipe()
        arguments = (theirs, self._sent, self._halted)
        process = self._context.Process(target=_work, args=arguments, daemon=True)
        try:
            with _signals_blocked():
                process.start()
        except _unpicklable() as error:
            ours.close()
            raise PlanError(
                f"the system cannot be sent to another process: {error}. Name it as module:attribute "
                "(load_system does), or use the executor `threads`."
            ) from error
        finally:
            # If the parent kept this end open, the pipe would have no end of file when the worker dies.
            theirs.close()
        return _Worker(process, ours)

    def _distribute(self) -> None:
        self._drop_waiting()
        busy = sum(worker.item is not None for worker in self._workers)
        # No more workers than items: each start imports the system again.
        while len(self._workers) < min(self._size, len(self._todo) + busy):
            self._workers.append(self._started())
        for worker in self._workers:
            if self._todo and worker.item is None:
                self._assign(worker, self._todo.popleft())

    def _assign(self, worker: _Worker[Item], task: tuple[int, Item]) -> None:
        worker.item, worker.since = task, time.monotonic()
        try:
            worker.wire.send(task)
        except OSError:
            pass  # it has died: `_listen` notices, and gives the task to another
        except _unpicklable() as error:
            worker.item = None
            self._done.append((task[0], error))

    def _listen(self) -> None:
        from multiprocessing.connection import wait

        self._halt_workers()
        self._drop_waiting()
        if self._done:
            return
        ready = wait([worker.wire for worker in self._workers], _LOOK_SECONDS)
        for worker in list(self._workers):
            # A result that arrived in time counts, even if it is read after the deadline.
            if worker.wire in ready:
                self._read(worker)
            elif worker.process.exitcode is not None:
                # A child that the system forked keeps the pipe open, so that it has no end of file.
                self._replace(worker)
            elif worker.item and self._is_late(worker):
                self._replace(worker, is_late=True)
        self._distribute()

    def _halt_workers(self) -> None:
        """Have the workers make no further call if the run is to stop; a start is not waited for."""
        if not self._is_halted:
            return
        self._halted.value = 1
        for worker in [worker for worker in self._workers if worker.item and not worker.is_ready]:
            self._workers.remove(worker)
            worker.end()
            self._drop([worker.item] if worker.item else [])

    def _is_late(self, worker: _Worker[Item]) -> bool:
        seconds = self._timeout if worker.is_ready else _START_SECONDS
        return seconds is not None and time.monotonic() >= worker.since + seconds

    def _read(self, worker: _Worker[Item]) -> None:
        try:
            message = worker.wire.recv()
        except (EOFError, OSError):
            self._replace(worker)
            return
        # Only starts that fail in a row end the run: a worker that answers shows that they can work.
        self._failed_starts = 0
        if message is None:
            worker.is_ready, worker.since = True, time.monotonic()
            return
        worker.item = None
        self._done.append(message)

    def _replace(self, worker: _Worker[Item], *, is_late: bool = False) -> None:
        """End a worker that is dead or late. Its item is tried again, or fails."""
        self._workers.remove(worker)
        worker.end()
        code = worker.process.exitcode
        if not worker.is_ready:
            self._failed_starts += 1
        if self._failed_starts >= MOST_TRIES:
            raise PlanError(
                f"the worker processes end while they start (exit code {code}); what they say is above. "
                "A script that evaluates must do so under `if __name__ == '__main__':`."
            )
        if worker.item is None:
            return
        place = worker.item[0]
        tries = self._tries[place] = self._tries.get(place, 0) + worker.is_ready
        if worker.is_ready and is_late:
            self._done.append((place, late(self._timeout or 0)))
        elif tries < MOST_TRIES:
            self._todo.appendleft(worker.item)
        else:
            how = f"signal {-code}" if isinstance(code, int) and code < 0 else f"exit code {code}"
            error = WorkerLostError(f"the worker process died {MOST_TRIES} times on it, by {how}")
            self._done.append((place, error))


def _unpicklable() -> tuple[type[Exception], ...]:
    """Return the errors of an object that cannot be sent."""
    from multiprocessing import reduction

    return TypeError, AttributeError, ValueError, reduction.pickle.PicklingError  # type: ignore[attr-defined]


_TERMINAL_SIGNALS = {signal.SIGINT, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])}


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Start processes that get neither Ctrl-C nor the end of the terminal, which reach the whole group.

    The parent decides. The children ignore both as soon as they can. While they import, both are blocked.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # its start would unblock the signals
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _TERMINAL_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(wire: Connection, call: Callable[[Any], Any], halted: Any) -> None:
    """Make calls in a worker, until the parent ends it."""
    import multiprocessing

    # To the parent the worker is a daemon: it does not wait for it. A daemon may have no processes of its
    # own, but a system may need some, e.g. to load data.
    multiprocessing.current_process().daemon = False
    for number in _TERMINAL_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _TERMINAL_SIGNALS)
    # What a system prints is not a result. A closed stderr is not a failure.
    sys.stdout = sys.stderr = cast(TextIO, Lasting(sys.stderr)) if sys.stderr is not None else sys.stderr
    threading.Thread(target=_watch, args=(call, halted), daemon=True).start()
    with suppress(EOFError, OSError):  # the parent is gone
        # The system is imported by now, so from here on the timeout is that of a call.
        wire.send(None)  # ready
        while True:
            place, item = wire.recv()
            result = RunStoppedError("stopped as asked.") if halted.value else sendable(outcome(call, item))
            try:
                wire.send((place, result))
            except _unpicklable() as error:
                wire.send((place, TypeError(f"the result cannot leave its process: {error}")))


def _watch(call: Callable[[Any], Any], halted: Any) -> None:
    """End the process with its parent, also in a hung call; make no further call if the run is to stop."""
    import multiprocessing

    parent = multiprocessing.parent_process()
    while parent is not None and parent.is_alive():
        if halted.value and isinstance(call, Caller):
            call.limits.halt()  # calls that wait for their turn or for a retry are not made any more
        time.sleep(_LOOK_SECONDS)
    os._exit(1)


def sendable(result: Any) -> Any:
    """Return a result of a worker; an exception as one of a class that every process has."""
    from asyncio import CancelledError
    from concurrent import futures

    if not isinstance(result, BaseException) or type(result).__module__ == "builtins":
        return result
    if isinstance(result, RunStoppedError | CancelledError | futures.CancelledError):
        return result
    return RuntimeError(f"{type(result).__name__}: {result}")
