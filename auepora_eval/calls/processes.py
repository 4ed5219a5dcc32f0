"""Calls in other processes, and an executor on processes of this machine: for systems that compute.

Each worker makes one call at a time. It gets the system by its name and imports it, or gets a copy if the
system can be copied. If the policy has a timeout and no retries, a call that takes too long ends with its
process.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Generic, TextIO, TypeVar, cast

from ..errors import PlanError, RunStoppedError, WorkerLostError
from .asking import Caller
from .executors import late, outcome, positive, through_a_window
from .policy import Limits
from .streams import Lasting

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Item = TypeVar("Item")
MOST_TRIES = 3
LOOK_SECONDS = 0.1  # between two checks of deadlines, and whether the run is to stop
CHUNK_SECONDS = 0.2  # that a chunk of calls takes
_START_SECONDS = 120.0  # a start imports the system, which may load a model


class Worker(ABC):
    """A process that makes calls, here or on another machine."""

    is_alive = True

    @abstractmethod
    def results(self, items: Sequence[Any]) -> Sequence[Any]:
        """Return results of the first calls or of all; WorkerLostError, UnsendableError if there are none."""

    @abstractmethod
    def end(self) -> None:
        """End it, busy or not."""


class UnsendableError(Exception):
    """An item cannot be sent to a worker, or a result cannot leave it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(f"it cannot leave its process: {' '.join(str(error).split())[:300]}")


class _Place:
    """Where a worker is, or the one that replaces it."""

    def __init__(self, *, alone: bool) -> None:
        self.alone = alone  # it has one item at a time
        self.worker: Worker | None = None
        self.lock = threading.Lock()


class RemoteCalls(ABC, Generic[Item]):
    """The calls of one map that other processes make, here or on other machines.

    A thread here waits for each call that is under way there. Quick calls are sent in chunks. If a worker
    dies that had several items, they are tried again one by one, by a worker that has nothing else: this
    finds the one that kills its worker, and no other is lost. An item has failed when three workers died that
    had it alone.

    Budgets and the breaker are counted in this process, which gets every result. The pace is divided among
    the workers, because each of them has its own clock.
    """

    most_in_a_chunk = 1

    def __init__(self, call: Callable[[Item], Any], workers: int, concurrency: int) -> None:
        self.caller = call if isinstance(call, Caller) else None
        self.limits = self.caller.limits if self.caller else Limits()
        self.sent: Any = self.caller.shared_by(workers) if self.caller else call  # what a worker gets
        self.is_closed = False
        is_alone = self.most_in_a_chunk == 1 and workers == concurrency
        self._places = [_Place(alone=is_alone) for _ in range(workers)]
        self._last_place = _Place(alone=True)  # of the worker that finds the item which kills
        self._concurrency, self._threads = concurrency, 0
        self._chunk = 1  # how many items are sent at once; more, as soon as calls turn out to be quick
        self._todo: queue.SimpleQueue[tuple[int, Item]] = queue.SimpleQueue()
        # Not a SimpleQueue: a signal that is handled at the end of its timeout makes it wait for ever.
        self._done: queue.Queue[tuple[int, Any]] = queue.Queue()
        self._under_way = 0  # accepted, and not counted yet
        self._taking, self._trying = threading.Lock(), threading.Lock()

    def map(self, items: Iterable[Item]) -> Iterator[tuple[int, Any]]:
        """Yield (place, result) as the results arrive."""
        try:
            yield from through_a_window(
                items, lambda: 2 * self._concurrency * self._chunk, self._send, self._receive
            )
        finally:
            self.is_closed, self._chunk = True, 1
            for _ in range(2 * self._threads):
                self._todo.put(cast(Any, None))
            for place in (*self._places, self._last_place):
                with place.lock:
                    if place.worker is not None:
                        place.worker.end()

    @abstractmethod
    def start(self, *, alone: bool) -> Worker:
        """Start a worker and wait until it has loaded the system; PlanError if it cannot."""

    @abstractmethod
    def halt(self) -> None:
        """Have the workers start no further call. They finish those under way."""

    def check_wanted(self) -> None:
        """RunStoppedError if nobody waits for a worker that starts any more."""
        if self.is_closed or self.limits.halted:
            raise RunStoppedError("stopped as asked.")

    def _send(self, number: int, item: Item) -> None:
        """Accept an item, unless the run is to stop."""
        try:
            self.limits.check(self._under_way)
        except RunStoppedError as error:
            self._done.put((number, error))
            return
        self._under_way += 1
        self._todo.put((number, item))
        if self._threads < self._concurrency:  # no more workers than items: each imports the system again
            place = self._places[self._threads % len(self._places)]
            threading.Thread(target=self._work, args=[place], name="auepora-worker", daemon=True).start()
            self._threads += 1

    def _receive(self) -> tuple[int, Any]:
        """Wait for the next result and return it."""
        while True:
            if self.limits.halted:
                self.halt()
            with suppress(queue.Empty):
                number, result = self._done.get(timeout=LOOK_SECONDS)
                break
        if number < 0:  # what ended a thread
            raise result
        # A call that was not made spends nothing of a budget.
        if not isinstance(result, RunStoppedError):
            self._under_way -= 1
            if self.caller is not None:
                self.caller.count(result)
        return number, result

    # In a thread for each call that is under way.

    def _work(self, place: _Place) -> None:
        try:
            while not self.is_closed:
                # First: there may be no place for a worker any more, and no item is to wait for it.
                with suppress(RunStoppedError):
                    self._worker_at(place)
                with self._taking:  # one thread waits for items
                    chunk = [self._todo.get()]
                    others = min(self._chunk - 1, self._todo.qsize() // self._concurrency)
                    chunk += [self._todo.get() for _ in range(others)]
                if not self.is_closed:
                    self._make(place, chunk)
        except BaseException as error:  # noqa: BLE001 - raised by `_receive`
            self._done.put((-1, error))

    def _make(self, place: _Place, chunk: list[tuple[int, Item]]) -> None:
        """Have a worker make the calls, and take the results."""
        results: Sequence[Any] | None = None
        try:
            results = self._results([item for _, item in chunk], place)
        except RunStoppedError as error:
            results = [error] * len(chunk)
        except (UnsendableError, WorkerLostError) as error:
            if len(chunk) == 1 and (place.alone or isinstance(error, UnsendableError)):
                results = [error if isinstance(error, WorkerLostError) else TypeError(str(error))]
        if results is None:
            with self._trying:
                for task in chunk:
                    self._make(self._last_place, [task])
            return
        for (number, _), result in zip(chunk, results, strict=False):
            self._done.put((number, result))
        for task in chunk[len(results) :]:  # the calls have become slow
            self._todo.put(task)

    def _results(self, items: list[Item], place: _Place) -> Sequence[Any]:
        """Return the results of calls; WorkerLostError if several workers died that had one alone."""
        for _ in range(MOST_TRIES):
            self.limits.check()
            worker, start = self._worker_at(place), time.perf_counter()
            try:
                results = worker.results(items)
            except WorkerLostError as error:
                if not place.alone:
                    raise
                how = error
            else:
                # In steps: a few quick calls do not predict the next ones.
                wanted = int(len(results) * CHUNK_SECONDS / max(time.perf_counter() - start, 1e-6))
                self._chunk = max(1, min(self.most_in_a_chunk, wanted, 4 * self._chunk))
                return results
        raise WorkerLostError(f"the worker died {MOST_TRIES} times on it, {how}")

    def _worker_at(self, place: _Place) -> Worker:
        """Return the worker of a place, or another one if it has died; PlanError if none can start."""
        with place.lock:
            for number in range(1, MOST_TRIES + 1):
                if place.worker is not None and place.worker.is_alive:
                    break
                try:
                    self.check_wanted()
                    place.worker = self.start(alone=place.alone)
                except PlanError:
                    if number == MOST_TRIES:
                        raise
            return cast(Worker, place.worker)


class ProcessExecutor:
    """Several calls at a time, each in a process of its own."""

    def __init__(self, *, concurrency: int = 2) -> None:
        self.concurrency = positive(concurrency)

    def map(self, call: Callable[[Item], Any], items: Iterable[Item]) -> Iterator[tuple[int, Any]]:
        return _Pool(call, self.concurrency).map(items)


class _Pool(RemoteCalls[Item]):
    """The worker processes of one map."""

    def __init__(self, call: Callable[[Item], Any], size: int) -> None:
        import multiprocessing

        super().__init__(call, size, size)
        # A process that is ended cannot retry. Of two clocks, chance would decide which one ends the call.
        self._timeout = self.caller.timeout if self.caller and not self.caller.policy.retries else None
        if self.caller is not None and self._timeout is not None:
            self.sent = self.caller.shared_by(size, timeout=None)
        try:
            _pickled(self.sent)
        except Exception as error:
            raise PlanError(
                f"the system cannot be sent to another process: {error}. Name it as module:attribute "
                "(load_system does), or use the executor `threads`."
            ) from error
        # Never fork: a lock that another thread holds would stay locked in the child for ever. No fork server
        # either: its environment is that of its start, and a key that was set since would be missing.
        self._context: Any = multiprocessing.get_context("spawn")
        # Workers read this byte before each call. A message would arrive after the item that they have.
        self._halted: Any = self._context.RawValue("b", 0)

    def halt(self) -> None:
        self._halted.value = True

    def start(self, *, alone: bool) -> Worker:
        ours, theirs = self._context.Pipe()
        arguments = (theirs, self.sent, self._halted)
        process = self._context.Process(target=_work, args=arguments, daemon=True)
        with _starting, _signals_blocked():
            process.start()
        theirs.close()  # if the parent kept this end open, the pipe would not end with the worker
        worker = _Process(process, ours)
        try:
            # Its first message says that it has loaded the system.
            worker.message(_START_SECONDS, self.check_wanted)
        except (EOFError, OSError, TimeoutError):
            raise PlanError(
                f"the worker processes end while they start ({worker.fate()}); what they say is above. "
                "A script that evaluates must do so under `if __name__ == '__main__':`."
            ) from None
        except RunStoppedError:
            worker.end()
            raise
        worker.timeout = self._timeout
        return worker


_starting = threading.Lock()  # multiprocessing notes its processes in a set


class _Process(Worker):
    """A worker process, which makes one call at a time."""

    timeout: float | None = None

    def __init__(self, process: Any, wire: Connection) -> None:
        self._process, self._wire = process, wire

    def results(self, items: Sequence[Any]) -> Sequence[Any]:
        from multiprocessing.reduction import ForkingPickler

        try:
            message = _pickled(items[0])
        except Exception as error:  # an object may raise anything
            raise UnsendableError(error) from error
        try:
            self._wire.send_bytes(message)
            reply = self.message(self.timeout)
        except TimeoutError as error:
            self.end()
            return [error]
        except (EOFError, OSError):
            raise WorkerLostError(f"by {self.fate()}") from None
        try:
            return [ForkingPickler.loads(reply)]
        except Exception as error:  # an object may raise anything
            raise UnsendableError(error) from error

    def message(self, seconds: float | None, check: Callable[[], None] = lambda: None) -> bytes:
        """Return the next message; EOFError if none can come, TimeoutError if it is late."""
        end = time.monotonic() + (seconds or 0)
        while not self._wire.poll(LOOK_SECONDS if seconds is None else min(LOOK_SECONDS, seconds)):
            check()
            if self._process.exitcode is not None:
                raise EOFError  # a child that the system forked keeps the pipe open
            if seconds is not None and time.monotonic() >= end:
                raise late(seconds)
        return self._wire.recv_bytes()

    def end(self) -> None:
        # Killed, not asked to end: a system may catch SIGTERM.
        self.is_alive = False
        self._process.kill()
        self._process.join()

    def fate(self) -> str:
        """Return how the process has ended, or ends now."""
        self.end()
        code = self._process.exitcode
        return f"signal {-code}" if code < 0 else f"exit code {code}"


def _pickled(thing: Any) -> bytes:
    from multiprocessing.reduction import ForkingPickler

    return bytes(ForkingPickler.dumps(thing))


_TERMINAL_SIGNALS = {signal.SIGINT, signal.SIGHUP}


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Start processes that get neither Ctrl-C nor the end of the terminal, which reach the whole group.

    The parent decides. The children ignore both as soon as they can. While they import, both are blocked.
    """
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
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _TERMINAL_SIGNALS)
    # What a system prints is not a result. A closed stderr is not a failure.
    sys.stdout = sys.stderr = cast(TextIO, Lasting(sys.stderr)) if sys.stderr is not None else sys.stderr
    threading.Thread(target=_watch, args=(call, halted), daemon=True).start()
    with suppress(EOFError, OSError):  # the parent is gone
        # The system is imported by now, so from here on the timeout is that of a call.
        wire.send_bytes(b"ready")
        while True:
            item = wire.recv()
            result = RunStoppedError("stopped as asked.") if halted.value else sendable(outcome(call, item))
            try:
                message = _pickled(result)
            except Exception as error:  # noqa: BLE001 - an object may raise anything
                message = _pickled(TypeError(str(UnsendableError(error))))
            wire.send_bytes(message)


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
