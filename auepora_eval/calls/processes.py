"""Calls in other processes, and an executor on processes of this machine: for systems that compute.

Each worker makes one call at a time. It gets the system by its name and imports it, or gets a copy if the
system can be copied. If the policy has a timeout and no retries, a call that takes too long ends with its
process.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
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
LOOK_SECONDS = 0.1  # between two checks of deadlines, and whether the run is to stop
_ITEMS_EACH = 2  # one that a worker has, and one that waits here until it finishes
_START_SECONDS = 120.0  # a start imports the system, which may load a model


@dataclass(eq=False)
class Worker:
    """A worker elsewhere: a process or an actor of a cluster."""

    handle: Any
    is_ready: bool = field(default=False, init=False)  # it has loaded the system
    chunks: int = field(default=0, init=False)  # of items that it has


class RemoteCalls(ABC, Generic[Item]):
    """The calls of one map that other processes make, here or on other machines.

    Items are sent in chunks. If a worker dies, its items are tried again one by one, after all others: this
    finds the one that kills its worker, and no other is lost. An item has failed when three workers died that
    had it alone.

    Budgets and the breaker are counted in this process, which gets every result. The pace is divided among
    the workers, because each of them has its own clock.
    """

    chunk = 1  # how many items are sent at once
    chunks_each = 1  # that a worker has at a time

    def __init__(self, call: Callable[[Item], Any], size: int) -> None:
        self._size = size  # how many workers there are
        self._caller = call if isinstance(call, Caller) else None
        self._limits = self._caller.limits if self._caller else None
        self._sent: Any = self._caller.shared_by(size) if self._caller else call  # what a worker gets
        self._todo: deque[tuple[int, Item]] = deque()
        self._lost: deque[tuple[int, Item]] = deque()  # to be tried alone
        self._done: deque[tuple[int, Any]] = deque()
        self._under_way = 0  # accepted, and not counted yet
        self._workers: list[Any] = []
        # What workers have, by what `_submit` returned; and whether a worker has the item alone.
        self._running: dict[Any, tuple[Any, list[tuple[int, Item]], bool]] = {}
        self._tries: dict[int, int] = {}  # how often a worker died that had the item alone
        self._failed_starts = 0  # in a row

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
            self._drop_waiting()
            if not self._done:
                self._listen()
        place, result = self._done.popleft()
        # A call that was not made spends nothing of a budget.
        if not isinstance(result, RunStoppedError):
            self._under_way -= 1
            if self._caller is not None:
                self._caller.count(result)
        return place, result

    @property
    def _is_halted(self) -> bool:
        return self._limits is not None and self._limits.halted

    def _drop_waiting(self) -> None:
        """Answer the items that no worker has, if the run is to stop or its budget is spent."""
        if self._limits is None or not (self._todo or self._lost):
            return
        with suppress(RunStoppedError):
            self._limits.check()
        if self._limits.stopped:
            reason = self._limits.refusal()
            self._done.extend((place, reason) for place, _ in (*self._todo, *self._lost))
            self._todo.clear()
            self._lost.clear()

    def _give(self, *, is_waiting: bool = False) -> None:
        """Give chunks to the workers that can take one; less than a chunk only if somebody waits for it."""
        while (todo := self._next_source(is_waiting=is_waiting)) is not None:
            is_alone = todo is self._lost or (self.chunk == self.chunks_each == 1)
            ready = [worker for worker in self._workers if worker.is_ready]
            worker = min(ready, key=lambda each: each.chunks, default=None)
            is_whole = todo is self._todo and len(todo) >= self.chunk
            if worker is None or worker.chunks >= (self.chunks_each if is_whole else 1):
                return
            size = self.chunk if todo is self._todo else 1
            chunk = [todo.popleft() for _ in range(min(size, len(todo)))]
            try:
                self._running[self._submit(worker, chunk)] = worker, chunk, is_alone
            except unpicklable() as error:
                self._refuse(chunk, error)
            else:
                worker.chunks += 1

    def _next_source(self, *, is_waiting: bool) -> deque[tuple[int, Item]] | None:
        if len(self._todo) >= self.chunk or (self._todo and is_waiting):
            return self._todo
        others_are_done = not self._todo and all(len(chunk) == 1 for _, chunk, _ in self._running.values())
        return self._lost if self._lost and is_waiting and others_are_done else None

    def _finish(self, key: Any, results: Sequence[Any]) -> None:
        """Take the results of a chunk."""
        worker, chunk, _ = self._running.pop(key)
        worker.chunks -= 1
        self._done.extend((place, result) for (place, _), result in zip(chunk, results, strict=True))

    def _lose(self, key: Any, how: str) -> None:
        """Try the items of a chunk again whose worker has died, or let them fail."""
        _, chunk, is_alone = self._running.pop(key)
        for place, item in chunk:
            tries = self._tries[place] = self._tries.get(place, 0) + is_alone
            if tries >= MOST_TRIES:
                self._done.append((place, WorkerLostError(f"the worker died {tries} times on it, {how}")))
            else:
                self._lost.append((place, item))

    def _refuse(self, chunk: list[tuple[int, Item]], error: BaseException) -> None:
        """Answer an item that cannot be sent, or whose result cannot; of several, it is to be found."""
        if len(chunk) > 1:
            self._lost.extend(chunk)
        else:
            words = " ".join(str(error).split())[:300]
            self._done.append((chunk[0][0], TypeError(f"it cannot leave its process: {words}")))

    def _handle_failed_start(self, worker: Any, why: str) -> None:
        """Forget a worker that could not start; PlanError if that happens again and again."""
        self._workers.remove(worker)
        self._failed_starts += 1
        if self._failed_starts >= MOST_TRIES:
            raise PlanError(why)

    def _handle_start(self, worker: Any) -> None:
        worker.is_ready, self._failed_starts = True, 0

    @abstractmethod
    def _distribute(self) -> None:
        """Start workers if need be, and give them items."""

    @abstractmethod
    def _submit(self, worker: Any, chunk: list[tuple[int, Item]]) -> Any:
        """Send a chunk to a worker, and return what its result is found by."""

    @abstractmethod
    def _listen(self) -> None:
        """Wait until something happens, not for long, and handle it."""

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
class _Process(Worker):
    """A worker process, and since when it starts or works."""

    wire: Connection
    since: float = field(default_factory=time.monotonic)

    def end(self) -> str:
        """End the process, and return how it has ended."""
        # Killed, not asked to end: a system may catch SIGTERM.
        self.handle.kill()
        self.handle.join()
        self.wire.close()
        code = self.handle.exitcode
        return f"signal {-code}" if isinstance(code, int) and code < 0 else f"exit code {code}"


class _Pool(RemoteCalls[Item]):
    """The worker processes of one map."""

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
        # Workers read this byte before each call. A message would arrive after the item that they have.
        self._halted: Any = self._context.RawValue("b", 0)

    def dismiss(self) -> None:
        """End all workers, busy or not."""
        for worker in self._workers:
            worker.handle.kill()  # all are killed before the first wait
        for worker in self._workers:
            worker.end()

    def _started(self) -> _Process:
        ours, theirs = self._context.Pipe()
        arguments = (theirs, self._sent, self._halted)
        process = self._context.Process(target=_work, args=arguments, daemon=True)
        try:
            with _signals_blocked():
                process.start()
        except unpicklable() as error:
            ours.close()
            raise PlanError(
                f"the system cannot be sent to another process: {error}. Name it as module:attribute "
                "(load_system does), or use the executor `threads`."
            ) from error
        finally:
            # If the parent kept this end open, the pipe would have no end of file when the worker dies.
            theirs.close()
        return _Process(process, ours)

    def _distribute(self) -> None:
        # No more workers than items: each start imports the system again.
        wanted = min(self._size, len(self._todo) + len(self._lost) + len(self._running))
        while len(self._workers) < wanted and not self._is_halted:
            self._workers.append(self._started())
        self._give(is_waiting=True)

    def _submit(self, worker: _Process, chunk: list[tuple[int, Item]]) -> _Process:
        worker.since = time.monotonic()
        with suppress(OSError):  # it has died: `_listen` notices
            worker.wire.send(chunk[0][1])
        return worker

    def _listen(self) -> None:
        from multiprocessing.connection import wait

        self._halted.value = self._is_halted
        self._distribute()
        ready = wait([worker.wire for worker in self._workers], LOOK_SECONDS)
        for worker in list(self._workers):
            # A result that arrived in time counts, even if it is read after the deadline.
            if worker.wire in ready:
                self._read(worker)
            elif worker.handle.exitcode is not None:
                # A child that the system forked keeps the pipe open, so that it has no end of file.
                self._replace(worker)
            elif self._is_late(worker):
                self._replace(worker, is_late=True)
        self._distribute()

    def _read(self, worker: _Process) -> None:
        try:
            message = worker.wire.recv()
        except (EOFError, OSError):
            self._replace(worker)
            return
        worker.since = time.monotonic()
        if worker.is_ready:
            self._finish(worker, [message])
        else:  # its first message says that it has loaded the system
            self._handle_start(worker)

    def _is_late(self, worker: _Process) -> bool:
        is_idle = worker.is_ready and worker not in self._running
        seconds = self._timeout if worker.is_ready else _START_SECONDS
        return not is_idle and seconds is not None and time.monotonic() >= worker.since + seconds

    def _replace(self, worker: _Process, *, is_late: bool = False) -> None:
        """End a worker that is dead or late. Its item is tried again, or fails."""
        how = worker.end()
        if not worker.is_ready:
            self._handle_failed_start(
                worker,
                f"the worker processes end while they start ({how}); what they say is above. "
                "A script that evaluates must do so under `if __name__ == '__main__':`.",
            )
            return
        self._workers.remove(worker)
        if worker in self._running and is_late:
            self._finish(worker, [late(self._timeout or 0)])
        elif worker in self._running:
            self._lose(worker, f"by {how}")


def unpicklable() -> tuple[type[Exception], ...]:
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
            item = wire.recv()
            result = RunStoppedError("stopped as asked.") if halted.value else sendable(outcome(call, item))
            try:
                wire.send(result)
            except unpicklable() as error:
                wire.send(TypeError(f"the result cannot leave its process: {error}"))


def _watch(call: Callable[[Any], Any], halted: Any) -> None:
    """End the process with its parent, also in a hung call; make no further call if the run is to stop."""
    import multiprocessing

    parent = multiprocessing.parent_process()
    while parent is not None and parent.is_alive():
        if halted.value and isinstance(call, Caller):
            call.limits.halt()  # calls that wait for their turn or for a retry are not made any more
        time.sleep(LOOK_SECONDS)
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
