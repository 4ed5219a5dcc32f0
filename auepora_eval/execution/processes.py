"""An executor of worker processes: for systems that compute, hang for good or crash the interpreter.

Each worker makes one call at a time. It gets the system by its name and imports it, or gets a copy if the
system can be copied. A worker that dies is replaced; the sample that it worked on is tried in another one,
three times in all, then it has failed. A call that takes too long ends with its process: nothing is left.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TextIO, TypeVar, cast

from ..core.executor import outcome, through_a_window
from ..core.lasting_streams import Lasting
from ..core.spent import Spent
from ..errors import PlanError, RunStoppedError, WorkerLostError
from .elsewhere import CrewElsewhere
from .local import positive

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Item = TypeVar("Item")
MOST_TRIES = 3
_AHEAD = 2  # items that a worker has: the next one lies ready when it is done with one
_START_SECONDS = 120.0
_LOOK_SECONDS = 0.1  # between two looks whether the run is to stop


class ProcessExecutor:
    """Several calls at a time, each in a process of its own."""

    def __init__(self, *, concurrency: int = 2, timeout: float | None = None) -> None:
        self.concurrency, self.timeout = positive(concurrency), timeout
        self._first: list[Any] = []

    def warm_up(self, items: list[Any]) -> None:
        """Let each worker make these calls before its first one that counts."""
        self._first = items

    def for_scoring(self) -> ProcessExecutor | None:
        """As many workers as there are processors to score on; None if that is no more than one."""
        workers = min(self.concurrency, os.cpu_count() or 1)
        return ProcessExecutor(concurrency=workers) if workers > 1 else None

    def map(self, call: Callable[[Item], Any], items: Iterable[Item]) -> Iterator[tuple[int, Any]]:
        crew = _Crew(call, self.concurrency, self.timeout, self._first)
        try:
            yield from through_a_window(items, crew.window, crew.send, crew.receive)
        finally:
            crew.dismiss()


@dataclass(eq=False)
class _Worker(Generic[Item]):
    """A process, what it was given, and since when it works on the first of that."""

    process: Any
    wire: Connection
    first: list[Item]
    warming: int | None = None  # which of the first calls it is at, while it is not ready
    ready: bool = False
    since: float = field(default_factory=time.monotonic)
    given: deque[tuple[int, Item]] = field(default_factory=deque)


class _Crew(CrewElsewhere[Item]):
    """The workers of one map."""

    def __init__(
        self, call: Callable[[Item], Any], size: int, timeout: float | None, first: list[Item]
    ) -> None:
        import multiprocessing

        super().__init__(call, size)
        # Never fork: a lock that another thread holds would be held in the child for ever. Nor let a server
        # fork: its environment is that of its start, and a key that was set since would be missing.
        self._context: Any = multiprocessing.get_context("spawn")
        self._size, self._timeout, self._first = size, timeout, first
        self.window = size * _AHEAD
        self._workers: list[_Worker[Item]] = []
        self._tries: dict[int, int] = {}
        self._failed_starts = 0
        # What lies ready or waits at a worker is taken back by a byte that all see: a message comes late.
        self._halted: Any = self._context.RawValue("b", 0)
        if self._limits is not None:
            self._limits.when_halted(self._halt)

    def _halt(self) -> None:
        self._halted.value = 1

    def dismiss(self) -> None:
        """End all workers, busy or not."""
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
            worker.wire.close()

    def _settle(self, place: int, result: Any) -> None:
        self._tries.pop(place, None)
        self._done.append((place, result))

    def _started(self) -> _Worker[Item]:
        ours, theirs = self._context.Pipe()
        first = self._warm_up_calls(self._first)
        given = (theirs, self._sent, first, self._halted)
        process = self._context.Process(target=_work, args=given, daemon=True)
        try:
            with _deaf_children():
                process.start()
        except (TypeError, AttributeError, ValueError, _pickling_error()) as error:
            ours.close()
            raise PlanError(
                f"the system cannot be sent to another process: {error}. Name it as module:attribute "
                "(load_system does), or use the executor `threads`."
            ) from error
        finally:
            theirs.close()
        return _Worker(process, ours, first)

    def _hand_out(self) -> None:
        self._leave_the_rest()
        given = sum(len(worker.given) for worker in self._workers)
        while len(self._workers) < min(self._size, len(self._todo) + given):
            self._workers.append(self._started())
            self._leave_the_rest()  # a warm-up may have been all that the budget allows
        for ahead in range(_AHEAD):  # one for each worker before anyone gets a second
            for worker in self._workers:
                if self._todo and len(worker.given) <= ahead:
                    self._give(worker, self._todo.popleft())

    def _give(self, worker: _Worker[Item], task: tuple[int, Item]) -> None:
        if not worker.given:
            worker.since = time.monotonic()
        worker.given.append(task)
        try:
            worker.wire.send(task)
        except OSError:
            pass  # it has died: `_listen` finds out, and gives the task to another
        except (TypeError, AttributeError, ValueError, _pickling_error()) as error:
            worker.given.pop()
            self._settle(task[0], error)

    def _listen(self) -> None:
        from multiprocessing.connection import wait

        self._leave_the_rest()
        self._leave_those_that_start()
        if self._done:
            return
        heard = wait([worker.wire for worker in self._workers], self._patience())
        for worker in list(self._workers):
            if worker.wire in heard:
                self._hear(worker)
            elif self._is_late(worker):
                self._end_hung(worker)
        self._hand_out()

    def _leave_those_that_start(self) -> None:
        """A worker that is not ready has begun no call: nobody waits for it when the run is to stop."""
        starting = [worker for worker in self._workers if worker.given and not worker.ready]
        for worker in starting if self._is_halted else []:
            self._end(worker)
            self._not_asked(worker.given)

    def _patience(self) -> float | None:
        if any(worker.given and not worker.ready for worker in self._workers):
            return _LOOK_SECONDS  # nobody may speak for long, and the run may be asked to stop
        limits = [self._limit(worker) for worker in self._workers if worker.given]
        known = [limit for limit in limits if limit is not None]
        return max(0.0, min(known) - time.monotonic()) if known else None

    def _limit(self, worker: _Worker[Item]) -> float | None:
        """When a worker will have taken too long; None if it may take for ever."""
        if not worker.ready and worker.warming is None:
            return worker.since + _START_SECONDS
        return None if self._timeout is None else worker.since + self._timeout

    def _is_late(self, worker: _Worker[Item]) -> bool:
        limit = self._limit(worker)
        return bool(worker.given) and limit is not None and time.monotonic() >= limit

    def _hear(self, worker: _Worker[Item]) -> None:
        try:
            said = worker.wire.recv()
        except (EOFError, OSError):
            self._lost(worker)
            return
        worker.since = time.monotonic()
        self._failed_starts = 0
        if said is None or isinstance(said, Spent):
            worker.ready = True
            if said is not None and self._limits is not None:
                self._limits.warmed_up_elsewhere(said, reserved=len(worker.first))
            return
        if isinstance(said, int):
            worker.warming = said
            return
        worker.given.popleft()
        self._settle(*said)

    def _end_hung(self, worker: _Worker[Item]) -> None:
        if worker.ready:
            place, _ = worker.given.popleft()
            self._settle(place, TimeoutError(f"no answer within {self._timeout:g} s"))
        self._lost(worker, blame=False)

    def _lost(self, worker: _Worker[Item], *, blame: bool = True) -> None:
        """A worker is gone: another takes its place, and what it had is done again."""
        self._end(worker)
        if not worker.ready and worker.warming is not None:
            # It hung or killed its worker, which is no sample's failure: the next ones go without that call.
            self._first = [item for item in self._first if item is not worker.first[worker.warming]]
        elif not worker.ready:
            self._refuse_to_start(worker)
        elif worker.given and blame:
            place = worker.given[0][0]
            self._tries[place] = self._tries.get(place, 0) + 1
            if self._tries[place] >= MOST_TRIES:
                worker.given.popleft()
                code = worker.process.exitcode
                how = f"signal {-code}" if isinstance(code, int) and code < 0 else f"exit code {code}"
                error = WorkerLostError(f"the worker process died {MOST_TRIES} times on it, by {how}")
                self._settle(place, error)
        self._todo.extendleft(reversed(worker.given))
        worker.given.clear()

    def _end(self, worker: _Worker[Item]) -> None:
        self._workers.remove(worker)
        worker.process.kill()
        worker.process.join()
        worker.wire.close()

    def _refuse_to_start(self, worker: _Worker[Item]) -> None:
        self._failed_starts += 1
        if self._failed_starts >= MOST_TRIES:
            raise PlanError(
                f"the worker processes end while they start (exit code {worker.process.exitcode}); what they "
                "say is above. A script that evaluates must do so under `if __name__ == '__main__':`."
            )


def _pickling_error() -> type[Exception]:
    from multiprocessing import reduction

    error: type[Exception] = reduction.pickle.PicklingError  # type: ignore[attr-defined]
    return error


_OF_THE_TERMINAL = {signal.SIGINT, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])}


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Start processes that hear neither Ctrl-C nor the end of the terminal, which reach the whole group.

    The parent decides. They ignore both as soon as they can; while they import, the two are held back.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # its start would let the signal through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _OF_THE_TERMINAL)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _work(wire: Connection, call: Callable[[Any], Any], first: list[Any], halted: Any) -> None:
    """What a worker does: call after call, until nobody sends any more."""
    for number in _OF_THE_TERMINAL:
        signal.signal(number, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _OF_THE_TERMINAL)
    # What a system prints is not a result, and that nobody reads it is no failure.
    sys.stdout = sys.stderr = cast(TextIO, Lasting(sys.stderr)) if sys.stderr is not None else sys.stderr
    given: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
    limits: Any = getattr(call, "limits", None)

    def read() -> None:
        # In a thread of its own: a parent that sends while the worker sends too would wait for ever, and a
        # worker in a hung call would not notice that its parent is gone.
        try:
            while True:
                given.put(wire.recv())
        except (EOFError, OSError):
            os._exit(1)

    def watch() -> None:
        # Calls that wait, for their turn or for another attempt, are not made any more.
        while not halted.value:
            time.sleep(_LOOK_SECONDS)
        limits.halt()

    threading.Thread(target=read, daemon=True).start()
    if limits is not None:
        threading.Thread(target=watch, daemon=True).start()
    for turn, item in enumerate(first):
        wire.send(turn)
        outcome(call, item, None)
    wire.send(replace(limits.spent) if first and limits is not None else None)
    while True:
        place, item = given.get()
        result = RunStoppedError("stopped as asked.") if halted.value else outcome(call, item, None)
        if isinstance(result, BaseException):
            result = _sendable(result)
        try:
            wire.send((place, result))
        except OSError:
            return
        except (TypeError, AttributeError, ValueError, _pickling_error()) as error:
            wire.send((place, TypeError(f"the result cannot leave its process: {error}")))


def _sendable(error: BaseException) -> BaseException:
    """An exception that arrives: some cannot be copied, and some only seem to."""
    from multiprocessing.reduction import ForkingPickler

    try:
        ForkingPickler.loads(ForkingPickler.dumps(error))
    except Exception:  # noqa: BLE001 - a foreign class's own code runs here
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
