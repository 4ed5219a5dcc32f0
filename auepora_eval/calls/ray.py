"""An executor on a Ray cluster: from the processors of one machine to those of many.

A task makes a chunk of calls, several at a time if the concurrency is above the number of processors, and
returns their outputs. Chunks grow until one takes a quarter of a second, so that little is lost with a driver
that is killed. A task whose worker or node dies is run again elsewhere. If that fails too, its samples are
tried one by one after all others: this finds the one that kills its worker, and no other sample is lost.
"""

from __future__ import annotations

import atexit
import logging
import os
import queue
import signal
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from functools import cache, lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar, cast

from ..errors import MissingDependencyError, PlanError, RunStoppedError, WorkerLostError, install_command
from .executors import AsyncExecutor, Executor, ThreadExecutor, is_async, positive, through_a_window
from .processes import RemoteCalls

Item = TypeVar("Item")
T = TypeVar("T")
_TASK_RETRIES = 2
_TASK_SECONDS = 0.25
_MOST_IN_A_TASK = 256
_MOST_ROUNDS = 16  # calls that a thread of a worker makes in one task
_TASKS_AHEAD = 2  # per processor, if tasks are quick: the next one is ready when one is done
# A system may hold a model, so a worker of a long-lived cluster keeps few of them.
_SYSTEMS_KEPT = 2
_LOOK_SECONDS = 0.1  # between two checks whether the run is to stop


class RayExecutor:
    """Calls as tasks on a Ray cluster: the one at `address`, or one on this machine, made for the purpose."""

    def __init__(
        self,
        *,
        concurrency: int = 1,
        address: str | None = None,
        most_in_a_task: int = _MOST_IN_A_TASK,
    ) -> None:
        self.concurrency, self.address = positive(concurrency), address
        self.most_in_a_task = positive(most_in_a_task)

    def map(self, call: Callable[[Item], Any], items: Iterable[Item]) -> Iterator[tuple[int, Any]]:
        ray = connected(self.address, self.concurrency)
        tasks = undisturbed(_Tasks[Item], ray, call, self)
        try:
            yield from through_a_window(items, tasks.window, tasks.send, tasks.receive)
        finally:
            tasks.dismiss()


def connected(address: str | None, processors: int) -> Any:
    """Return Ray, connected to the cluster. No usage is reported, and no dashboard is opened."""
    # Ray reads these when it is imported.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    # Ray would print each dead worker to stdout, which is for results. Its own logs have them too.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    if address is None:
        # Otherwise anyone who reaches this machine reaches a Ray that runs what it is sent.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    else:
        # One try, of some twenty seconds: Ray would try for more than ten minutes.
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
            in_a_thread(lambda: _initialise(options))
    except ImportError as error:
        raise MissingDependencyError(f"the executor `ray` needs Ray: {install_command('ray')}.") from error
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        raise PlanError(
            f"the Ray cluster {address or 'of this machine'} cannot be reached: {error}. "
            "Is it running (ray status), and does `address` name it?"
        ) from error
    return sys.modules["ray"]


def _initialise(options: dict[str, Any]) -> None:
    import ray

    logging.getLogger("ray").setLevel(logging.ERROR)  # it warns that a thread cannot handle SIGTERM
    if not ray.is_initialized():
        ray.init(**options)
        atexit.register(_shut_down, ray)  # before Ray's own: the last registered runs first


def _shut_down(ray: Any) -> None:
    """End Ray at the end of the program. Another Ctrl-C must not interrupt this."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
    ray.shutdown()


class _Tasks(RemoteCalls[Item]):
    """The tasks of one map."""

    def __init__(self, ray: Any, call: Callable[[Item], Any], executor: RayExecutor) -> None:
        processors = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._workers = min(executor.concurrency, processors)
        super().__init__(call, self._workers)
        self._ray = ray
        most = executor.most_in_a_task
        self._threads = min(most, -(-executor.concurrency // self._workers))
        self._chunk, self._most = self._threads, min(most, _MOST_ROUNDS * self._threads)
        self._most_running = self._workers  # until tasks turn out to be quick
        self._task = ray.remote(num_cpus=1, max_retries=_TASK_RETRIES)(_run_chunk).remote
        # In a list: Ray would unpack a bare reference for each task, and the system would be loaded as often.
        self._shipped = [_stored(ray, self._sent)]
        self._running: dict[Any, list[tuple[int, Item]]] = {}
        self._lost: deque[tuple[int, Item]] = deque()  # items of lost chunks, which are tried alone
        self._alone: set[int] = set()  # their places, once they are
        self._is_cancelled = False

    def window(self) -> int:
        """Return how many items may be under way: few if calls are slow, so that a run can stop soon."""
        return self._most_running * self._chunk

    def dismiss(self) -> None:
        """Cancel what is under way."""
        # By force: a call that hangs would keep its processor of the cluster.
        with held_back():
            for task in self._running:
                self._ray.cancel(task, force=True)
        self._running.clear()

    def _distribute(self) -> None:
        self._drop_waiting()
        while len(self._todo) >= self._chunk and len(self._running) < self._most_running:
            self._start()

    def _start(self) -> None:
        chunk = [self._todo.popleft() for _ in range(min(self._chunk, len(self._todo)))]
        self._submit(chunk)

    def _submit(self, chunk: list[tuple[int, Item]]) -> None:
        self._running[undisturbed(self._task, self._shipped, chunk, self._threads)] = chunk

    def _listen(self) -> None:
        self._drop_waiting()
        if self._done:
            return
        # No more items come, or workers are idle: the rest is a chunk.
        while self._todo and len(self._running) < self._workers:
            self._start()
        if not self._running:
            self._try_alone()
        if self._done:
            return
        ready: list[Any] = []
        while not ready:
            self._cancel_if_halted()
            tasks = list(self._running)
            ready, _ = undisturbed(self._ray.wait, tasks, num_returns=1, timeout=_LOOK_SECONDS)
        self._collect(ready[0])
        self._distribute()

    def _try_alone(self) -> None:
        if self._is_halted:
            self._drop(self._lost)
            self._lost.clear()
        while self._lost and len(self._running) < self._workers:
            pair = self._lost.popleft()
            self._alone.add(pair[0])
            self._submit([pair])

    def _cancel_if_halted(self) -> None:
        """Have the workers start no further call. They finish and return those under way."""
        if self._is_cancelled or not self._is_halted:
            return
        self._is_cancelled = True
        for task in self._running:
            undisturbed(self._ray.cancel, task, force=False)

    def _collect(self, task: Any) -> None:
        from ray.exceptions import RayError

        chunk = self._running.pop(task)
        try:
            seconds, results = undisturbed(self._ray.get, task)
        except PlanError as error:  # Ray adds the traceback of the worker
            raise PlanError(str(getattr(error, "cause", error))) from None
        except RayError as error:
            self._handle_lost(chunk, error)
            return
        self._done.extend(results)
        # A task that waits at a busy worker cannot be cancelled. Slow ones are submitted one by one, so that
        # a run which is asked to stop starts no more of them.
        self._most_running = self._workers * (_TASKS_AHEAD if seconds < _TASK_SECONDS else 1)
        wanted = int(len(chunk) * _TASK_SECONDS / max(seconds, 1e-6))
        # In steps: a few quick calls do not predict the next ones.
        self._chunk = max(self._threads, min(self._most, wanted, 4 * self._chunk))

    def _handle_lost(self, chunk: list[tuple[int, Item]], error: Exception) -> None:
        from ray.exceptions import RayTaskError

        if self._is_halted:  # cancelled before it started, or lost: a retry would be another call
            self._drop(chunk)
            return
        place, worker_lives = chunk[0][0], isinstance(error, RayTaskError)
        if len(chunk) > 1 or not (worker_lives or place in self._alone):
            self._lost.extend(chunk)
            return
        if worker_lives:  # the item or its result cannot be pickled
            cause = _in_a_line(getattr(error, "cause", error))
            result: Exception = TypeError(f"it cannot leave its process: {cause}")
        else:
            result = WorkerLostError(f"the task was lost every time: {_in_a_line(error)}")
        self._done.append((place, result))


def _stored(ray: Any, thing: Any) -> Any:
    """Return a reference to a thing that is sent to each node once."""
    try:
        return ray.put(thing)
    except (TypeError, AttributeError, ValueError) as error:
        raise PlanError(f"the system cannot be sent to the cluster: {_in_a_line(error)}") from error


def _in_a_line(error: Any) -> str:
    return " ".join(str(error).partition("\ntraceback:")[0].split())[:300]


def _run_chunk(
    shipped: list[Any], chunk: list[tuple[int, Any]], threads: int
) -> tuple[float, list[tuple[int, Any]]]:
    """Make the calls of a task; return the seconds that they took, and the results with their places."""
    with redirect_stdout(sys.stderr):  # what a system prints is not a result
        _close_sockets_in_forks()  # before the system is loaded: those that are open are Ray's
        call = _loaded(shipped[0])
        start = perf_counter()
        executor = (AsyncExecutor if is_async(call) else ThreadExecutor)(concurrency=threads)
        results = _unless_cancelled(call, lambda: _results(executor, call, [item for _, item in chunk]))
    return perf_counter() - start, [(place, results[turn]) for turn, (place, _) in enumerate(chunk)]


def _results(executor: Executor, call: Callable[[Any], Any], items: list[Any]) -> dict[int, Any]:
    """Return the result of each item by its place; the error for a call that was not made any more."""
    results: dict[int, Any] = {}
    try:
        for turn, result in executor.map(call, items):
            results[turn] = _plain_error(result)
    except RunStoppedError as error:
        results = {turn: results.get(turn, error) for turn in range(len(items))}
    return results


def _unless_cancelled(call: Callable[[Any], Any], work: Callable[[], T]) -> T:
    """Return the result of the calls of a task. If the driver cancels the task, no further call is made.

    Ray cancels a task by SIGINT in the main thread of its worker. The calls are made in another thread, and
    the handler only sets a flag: an exception at a random place could lose results.
    """
    limits: Any = getattr(call, "limits", None)
    if limits is None or threading.current_thread() is not threading.main_thread():
        return work()
    box: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()

    def put() -> None:
        try:
            box.put((True, work()))
        except BaseException as error:  # noqa: BLE001 - raised again below
            box.put((False, error))

    before = signal.signal(signal.SIGINT, lambda number, frame: limits.halt())
    try:
        threading.Thread(target=put, name="auepora-task", daemon=True).start()
        result: tuple[bool, Any] | None = None
        while result is None:
            # In short waits, so that the handler of SIGINT can run.
            with suppress(queue.Empty):
                result = box.get(timeout=_LOOK_SECONDS)
    finally:
        signal.signal(signal.SIGINT, before)
    succeeded, value = result
    if not succeeded:
        raise value
    return cast(T, value)


@cache
def _close_sockets_in_forks() -> None:
    """Have processes that the system forks close the sockets of this worker.

    While one of them is open in a child, Ray does not notice that the worker is dead.
    """
    if not hasattr(os, "register_at_fork"):
        return
    sockets = {number: node for number in _open_files() if (node := _socket_node(number)) is not None}

    def close() -> None:
        for number, node in sockets.items():
            if _socket_node(number) == node:  # the number may be that of another file by now
                os.close(number)

    os.register_at_fork(after_in_child=close)


def _open_files() -> list[int]:
    try:
        return [int(path.name) for path in Path("/dev/fd").iterdir()]
    except OSError:
        return []


def _socket_node(number: int) -> int | None:
    """Return the inode of a socket; None if the file is not a socket, or closed."""
    try:
        facts = os.fstat(number)
    except OSError:
        return None
    return facts.st_ino if stat.S_ISSOCK(facts.st_mode) else None


@lru_cache(maxsize=_SYSTEMS_KEPT)
def _loaded(shipped: Any) -> Callable[[Any], Any]:
    """Return the call, which each worker loads once."""
    import ray
    from ray.exceptions import RaySystemError

    try:
        call: Callable[[Any], Any] = ray.get(shipped)
    except RaySystemError as error:
        raise PlanError(
            f"a worker of the cluster cannot load the system: {_in_a_line(error)}. Is its module installed "
            "on every node, or in the working directory of the job?"
        ) from error
    return call


def _plain_error(result: Any) -> Any:
    """Return an exception as one of a class that the driver has."""
    from asyncio import CancelledError

    is_ours_or_standard = isinstance(result, RunStoppedError | CancelledError)
    is_sendable = is_ours_or_standard or type(result).__module__ == "builtins"
    if is_sendable or not isinstance(result, BaseException):
        return result
    return RuntimeError(f"{type(result).__name__}: {result}")


# Signals during native code: an exception that a handler raises in the middle of it can hang for ever.

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")
_SLIP = 1.0  # seconds within which a second signal counts as the same request


@contextmanager
def held_back() -> Iterator[None]:
    """Raise what signal handlers raise when the block has ended, not within it.

    The handlers themselves run at once. If one raises again, more than a second after the first time, the
    block has lasted too long: the process ends there and then.
    """
    former: dict[int, Any] = {}
    held: list[tuple[BaseException, float]] = []  # the first error, and when it was raised

    def hold(number: int, frame: Any) -> None:
        try:
            former[number](number, frame)
        except BaseException as error:  # noqa: BLE001 - raised when the block has ended
            now = time.monotonic()
            if held and now - held[0][1] > _SLIP:
                os._exit(128 + number)
            held.append((error, now))

    if threading.current_thread() is threading.main_thread():  # Python runs handlers in no other thread
        numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
        former |= {number: handler for number in numbers if callable(handler := signal.getsignal(number))}
    try:
        for number in former:
            signal.signal(number, hold)
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
        if held:
            raise held[0][0]


def undisturbed(function: Callable[..., T], *args: Any, **options: Any) -> T:
    """Return the result of a short call, during which no signal raises an exception."""
    with held_back():
        return function(*args, **options)


def in_a_thread(start: Callable[[], None]) -> None:
    """Start something that would install signal handlers of its own: in another thread it cannot.

    Signals are handled in this thread while it waits. What they raise comes when the start has ended.
    """
    failed: list[BaseException] = []
    done = threading.Event()

    def work() -> None:
        try:
            start()
        except BaseException as error:  # noqa: BLE001 - raised again below
            failed.append(error)
        done.set()
        # On Linux a process may be set to die with its parent, which is the thread that started it.
        threading.Event().wait()

    with held_back():
        threading.Thread(target=work, name="auepora-start", daemon=True).start()
        while not done.wait(_LOOK_SECONDS):  # in short waits, so that handlers can run
            pass
        if failed:
            raise failed[0]
