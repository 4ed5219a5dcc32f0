"""An executor on a Ray cluster: from the processors of one machine to those of many.

A task makes a chunk of calls, several at a time if the concurrency is above the number of processors, and
returns their outputs; chunks grow until one takes a quarter of a second, so that little is lost with a driver
that is killed. A task whose worker or node dies is run again elsewhere; if that happens time after time, its
samples are tried one by one when the others are done: so the one which kills its worker is found, no other is
lost, and a storm in which many workers die has passed.
"""

from __future__ import annotations

import atexit
import logging
import os
import queue
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout, suppress
from dataclasses import replace
from functools import lru_cache
from time import perf_counter
from typing import Any, TypeVar, cast

from ..core.executor import Executor, is_async, outcome, through_a_window
from ..core.spent import Spent
from ..errors import MissingDependencyError, PlanError, RunStoppedError, WorkerLostError
from .elsewhere import CrewElsewhere
from .held_stops import held_back, started, undisturbed
from .local import AsyncExecutor, ThreadExecutor, positive

Item = TypeVar("Item")
T = TypeVar("T")
_TASK_RETRIES = 2
_TASK_SECONDS = 0.25
_MOST_IN_A_TASK = 256
_MOST_ROUNDS = 16  # calls that a thread of a worker makes in one task
_TASKS_AHEAD = 2  # for each processor: the next one lies ready when one is done, if they are quick
_SYSTEMS_KEPT = 2
_LOOK_SECONDS = 0.1  # between two looks whether the run is to stop
_warm_ups: list[Spent] = []  # of this worker, not reported yet


class RayExecutor:
    """Calls as tasks on a Ray cluster: the one at `address`, or one on this machine, made for the purpose."""

    def __init__(
        self,
        *,
        concurrency: int = 1,
        timeout: float | None = None,
        address: str | None = None,
        most_in_a_task: int = _MOST_IN_A_TASK,
    ) -> None:
        self.concurrency, self.timeout, self.address = positive(concurrency), timeout, address
        self.most_in_a_task = positive(most_in_a_task)
        self._first: list[Any] = []

    def warm_up(self, items: list[Any]) -> None:
        """Let each worker make these calls before its first one that counts."""
        self._first = items

    def for_scoring(self) -> RayExecutor | None:
        """The same cluster for items that are large and keep a processor busy; None for one at a time."""
        if self.concurrency == 1:
            return None
        return RayExecutor(concurrency=self.concurrency, address=self.address, most_in_a_task=1)

    def map(self, call: Callable[[Item], Any], items: Iterable[Item]) -> Iterator[tuple[int, Any]]:
        ray = connected(self.address, self.concurrency)
        crew = undisturbed(_Crew[Item], ray, call, self)
        try:
            yield from through_a_window(items, crew.window, crew.send, crew.receive)
        finally:
            crew.dismiss()


def connected(address: str | None, processors: int) -> Any:
    """Ray, connected to the cluster; nothing is reported to anyone, and no dashboard is opened."""
    # Ray reads these when it is imported.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    # It would print of each dead worker to stdout, where the results go; it is in Ray's own logs too.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    if address is None:
        # Otherwise anyone who reaches this machine reaches a Ray that runs what it is sent.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    else:
        # One try, of some twenty seconds: Ray would go on for more than ten minutes if nobody is there.
        os.environ.setdefault("RAY_gcs_server_port_wait_time_s", "1")
        os.environ.setdefault("RAY_py_gcs_connect_timeout_s", "10")
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        options["include_dashboard"] = False
        options["num_cpus"] = min(processors, os.cpu_count() or 1)
    else:
        options["address"] = address
    loaded: Any = sys.modules.get("ray")
    try:
        if loaded is None or not loaded.is_initialized():
            started(lambda: _initialised(options), "Ray")
    except ImportError as error:
        raise MissingDependencyError(
            "the executor `ray` needs Ray: pip install 'auepora-eval[ray]'."
        ) from error
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        raise PlanError(
            f"the Ray cluster {address or 'of this machine'} cannot be reached: {error}. "
            "Is it running (ray status), and does --address name it?"
        ) from error
    return sys.modules["ray"]


def _initialised(options: dict[str, Any]) -> None:
    import ray

    logging.getLogger("ray").setLevel(logging.ERROR)  # it says that a thread cannot take SIGTERM for itself
    if not ray.is_initialized():
        ray.init(**options)
        atexit.register(_shut_down, ray)  # before Ray's own: what is registered last comes first


def _shut_down(ray: Any) -> None:
    """End Ray at the end of the program; who presses Ctrl-C once more must not tear it apart meanwhile."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
    ray.shutdown()


class _Crew(CrewElsewhere[Item]):
    """The tasks of one map."""

    def __init__(self, ray: Any, call: Callable[[Item], Any], executor: RayExecutor) -> None:
        processors = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._workers = min(executor.concurrency, processors)
        super().__init__(call, self._workers)
        self._ray = ray
        most = executor.most_in_a_task
        self._threads = min(most, -(-executor.concurrency // self._workers))
        self._chunk, self._most = self._threads, min(most, _MOST_ROUNDS * self._threads)
        self._most_running = self._workers  # until it is known that tasks are quick
        self._task = ray.remote(num_cpus=1, max_retries=_TASK_RETRIES)(_run_chunk).remote
        # In a list, or Ray would unpack it for each task, and the system would be loaded as often.
        self._shipped = [_in_the_store(ray, (self._sent, executor._first))]
        self._options = (self._threads, executor.timeout)
        self._running: dict[Any, list[tuple[int, Item]]] = {}
        self._lost: deque[tuple[int, Item]] = deque()  # with their chunk, each time: to be tried alone
        self._alone: set[int] = set()  # places of those that are
        self._told = False  # the workers know that the run is to stop

    def window(self) -> int:
        """How many items may be under way: few of slow calls, so that a run which is to stop soon does."""
        return self._most_running * self._chunk

    def dismiss(self) -> None:
        """Cancel what is under way."""
        with held_back():
            for task in self._running:
                self._ray.cancel(task, force=True)
        self._running.clear()

    def _hand_out(self) -> None:
        self._leave_the_rest()
        while len(self._todo) >= self._chunk and len(self._running) < self._most_running:
            self._start()

    def _start(self) -> None:
        chunk = [self._todo.popleft() for _ in range(min(self._chunk, len(self._todo)))]
        self._submit(chunk)

    def _submit(self, chunk: list[tuple[int, Item]]) -> None:
        self._running[undisturbed(self._task, self._shipped, chunk, *self._options)] = chunk

    def _listen(self) -> None:
        self._leave_the_rest()
        if self._done:
            return
        # Nothing more comes, or nobody works: what there is, is a chunk.
        while self._todo and len(self._running) < self._workers:
            self._start()
        if not self._running:
            self._try_alone()
        if self._done:
            return
        ready: list[Any] = []
        while not ready:
            self._tell_of_halt()
            tasks = list(self._running)
            ready, _ = undisturbed(self._ray.wait, tasks, num_returns=1, timeout=_LOOK_SECONDS)
        self._collect(ready[0])
        self._hand_out()

    def _try_alone(self) -> None:
        if self._is_halted:
            self._not_asked(self._lost)
            self._lost.clear()
        while self._lost and len(self._running) < self._workers:
            pair = self._lost.popleft()
            self._alone.add(pair[0])
            self._submit([pair])

    def _tell_of_halt(self) -> None:
        """Have the workers start no further call; what they have under way they finish and return."""
        if self._told or not self._is_halted:
            return
        self._told = True
        for task in self._running:
            undisturbed(self._ray.cancel, task, force=False)

    def _collect(self, task: Any) -> None:
        from ray.exceptions import RayError, RayTaskError

        chunk = self._running.pop(task)
        try:
            seconds, results, warm_up = undisturbed(self._ray.get, task)
        except PlanError as error:  # as Ray brings it: with the worker's whole traceback
            raise PlanError(str(getattr(error, "cause", error))) from None
        except RayError as error:
            if self._is_halted:  # taken back before it had begun, or lost: another try would be a call too
                self._not_asked(chunk)
                return
            place, nobody_died = chunk[0][0], isinstance(error, RayTaskError)
            if len(chunk) > 1 or not (nobody_died or place in self._alone):
                self._lost.extend(chunk)
                return
            if nobody_died:  # what was given or returned cannot be sent
                result: Exception = TypeError(
                    f"it cannot leave its process: {_in_a_line(getattr(error, 'cause', error))}"
                )
            else:
                result = WorkerLostError(f"the task was lost every time: {_in_a_line(error)}")
            self._done.append((place, result))
            return
        if warm_up is not None and self._limits is not None:
            self._limits.warmed_up_elsewhere(warm_up)
        self._done.extend(results)
        # A task that waits at a busy worker cannot be taken back: slow ones are handed out one by one, so
        # that a run which is asked to stop starts no more of them.
        self._most_running = self._workers * (_TASKS_AHEAD if seconds < _TASK_SECONDS else 1)
        wanted = int(len(chunk) * _TASK_SECONDS / max(seconds, 1e-6))
        # Not at one bound: a few quick calls say little about the next ones.
        self._chunk = max(self._threads, min(self._most, wanted, 4 * self._chunk))


def _in_the_store(ray: Any, thing: Any) -> Any:
    """A reference to a thing that goes to each node once."""
    try:
        return ray.put(thing)
    except (TypeError, AttributeError, ValueError) as error:
        raise PlanError(f"the system cannot be sent to the cluster: {_in_a_line(error)}") from error


def _in_a_line(error: Any) -> str:
    return " ".join(str(error).partition("\ntraceback:")[0].split())[:300]


def _run_chunk(
    shipped: list[Any], chunk: list[tuple[int, Any]], threads: int, timeout: float | None
) -> tuple[float, list[tuple[int, Any]], Spent | None]:
    """What a task does: the calls, the seconds that they took, and what a warm-up before them cost."""
    with redirect_stdout(sys.stderr):  # what a system prints is not a result
        call = _loaded(shipped[0], timeout)
        start = perf_counter()
        executor = (AsyncExecutor if is_async(call) else ThreadExecutor)(concurrency=threads, timeout=timeout)
        results = _unless_halted(call, lambda: _results(executor, call, [item for _, item in chunk]))
    warm_up = _warm_ups.pop() if _warm_ups else None
    return perf_counter() - start, [(place, results[turn]) for turn, (place, _) in enumerate(chunk)], warm_up


def _results(executor: Executor, call: Callable[[Any], Any], items: list[Any]) -> dict[int, Any]:
    """What came of each item, by its place; the error of a call that was not made any more."""
    results: dict[int, Any] = {}
    try:
        for turn, result in executor.map(call, items):
            results[turn] = _plain_error(result)
    except RunStoppedError as error:
        results = {turn: results.get(turn, error) for turn in range(len(items))}
    return results


def _unless_halted(call: Callable[[Any], Any], work: Callable[[], T]) -> T:
    """The result of work that calls; where the driver takes the task back, no further call is made.

    Ray takes a task back by what Ctrl-C does to its main thread: the work is in another one, and this one
    listens. It is no exception, which would be lost or lose something at the wrong moment.
    """
    limits: Any = getattr(call, "limits", None)
    if limits is None or threading.current_thread() is not threading.main_thread():
        return work()
    box: list[tuple[bool, Any]] = []
    news: queue.SimpleQueue[None] = queue.SimpleQueue()

    def put() -> None:
        try:
            box.append((True, work()))
        except BaseException as error:  # noqa: BLE001 - raised again below
            box.append((False, error))
        news.put(None)

    before = signal.signal(signal.SIGINT, lambda number, frame: limits.halt())
    try:
        threading.Thread(target=put, name="auepora-task", daemon=True).start()
        while not box:
            with suppress(queue.Empty):
                news.get(timeout=_LOOK_SECONDS)
    finally:
        signal.signal(signal.SIGINT, before)
    succeeded, value = box[0]
    if not succeeded:
        raise value
    return cast(T, value)


@lru_cache(maxsize=_SYSTEMS_KEPT)
def _loaded(shipped: Any, timeout: float | None) -> Callable[[Any], Any]:
    """The call, loaded once by each worker and warmed up."""
    import ray
    from ray.exceptions import RaySystemError

    try:
        call, first = ray.get(shipped)
    except RaySystemError as error:
        raise PlanError(
            f"a worker of the cluster cannot load the system: {_in_a_line(error)}. Is its module installed "
            "on every node, or in the working directory of the job?"
        ) from error
    for item in first:
        outcome(call, item, timeout)
    if first and hasattr(call, "limits"):
        _warm_ups.append(replace(call.limits.spent))
    loaded: Callable[[Any], Any] = call
    return loaded


def _plain_error(result: Any) -> Any:
    """An exception of a class that the driver may lack comes as one that it has."""
    known = isinstance(result, RunStoppedError) or type(result).__module__ == "builtins"
    if known or not isinstance(result, BaseException):
        return result
    return RuntimeError(f"{type(result).__name__}: {result}")
