"""An executor on a Ray cluster: from the processors of one machine to those of many.

Actors make the calls, one on each processor. If there are more calls at a time than processors, an actor
makes several at a time. Requests are sent in chunks and results come back in chunks, of about a tenth of a
second: the driver has little to do for each, and little is lost if it is killed.
"""

from __future__ import annotations

import atexit
import logging
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from time import perf_counter
from typing import Any, TypeVar

from ..errors import MissingDependencyError, PlanError, RunStoppedError, install_command
from .asking import Caller
from .executors import outcome, positive, through_a_window
from .processes import LOOK_SECONDS, RemoteCalls, Worker, sendable

Item = TypeVar("Item")
T = TypeVar("T")
_CHUNK_SECONDS = 0.1
_MOST_IN_A_CHUNK = 256


class RayExecutor:
    """Calls by actors on a Ray cluster: the one at `address`, or one on this machine, made for it."""

    def __init__(self, *, concurrency: int = 1, address: str | None = None) -> None:
        self.concurrency, self.address = positive(concurrency), address

    def map(self, call: Callable[[Item], Any], items: Iterable[Item]) -> Iterator[tuple[int, Any]]:
        in_ray(partial(_connect, self.address, self.concurrency))
        _restore_signals()
        calls: _ClusterCalls[Item] = in_ray(partial(_ClusterCalls, call, self.concurrency))
        try:
            yield from through_a_window(items, calls.window, calls.send, calls.receive)
        finally:
            calls.dismiss()


# Ray is used in a thread of its own. In the main thread it would replace our signal handlers, and an
# exception that a handler raises in the middle of its native code can hang for ever. The thread does not end
# before the program: the processes that it started would end with it.


@cache
def _ray_thread() -> queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]]:
    jobs: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()

    def work() -> None:
        while True:
            job, future = jobs.get()
            try:
                future.set_result(job())
            except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                future.set_exception(error)

    threading.Thread(target=work, name="auepora-ray", daemon=True).start()
    return jobs


def in_ray(job: Callable[[], T]) -> T:
    """Return what a function returns that is called in the thread of Ray."""
    future: Future[T] = Future()
    _ray_thread().put((job, future))
    return future.result()


def _restore_signals() -> None:
    """Set the signal handlers of Python again: the native code of Ray has set its own."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            if (handler := signal.getsignal(number)) is not None:
                signal.signal(number, handler)


def _connect(address: str | None, processors: int) -> None:
    """Connect to the cluster, if there is no connection. No usage is reported, and no dashboard is opened."""
    # Ray reads these when it is imported.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    # Ray would print each dead worker to stdout, which is for results. Its own logs have them too.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        # Otherwise anyone who reaches this machine reaches a Ray that runs what it is sent.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
        options |= {"include_dashboard": False, "num_cpus": min(processors, os.cpu_count() or 1)}
    else:
        # One try, of some twenty seconds: Ray would try for more than ten minutes.
        os.environ.setdefault("RAY_gcs_server_port_wait_time_s", "1")
        os.environ.setdefault("RAY_py_gcs_connect_timeout_s", "10")
        options["address"] = address
    try:
        import ray
    except ImportError as error:
        raise MissingDependencyError(f"the executor `ray` needs Ray: {install_command('ray')}.") from error
    logging.getLogger("ray").setLevel(logging.ERROR)  # it warns that a thread cannot handle SIGTERM
    if ray.is_initialized():
        return
    try:
        ray.init(**options)
    except (ConnectionError, ValueError, RuntimeError, OSError, ray.exceptions.RayError) as error:
        where = address or "of this machine"
        raise PlanError(
            f"the Ray cluster {where} cannot be reached: {_in_a_line(error)}. Is it running (ray status), "
            "does `address` name it, and is its token set (RAY_AUTH_TOKEN, printed by `ray get-auth-token`)?"
        ) from error
    atexit.register(_shut_down)  # before Ray's own: the last registered runs first


def _shut_down() -> None:
    """End Ray at the end of the program. Another Ctrl-C must not interrupt this."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
    in_ray(sys.modules["ray"].shutdown)


@dataclass(eq=False)
class _Actor(Worker):
    """An actor of the cluster, as the driver sees it."""

    start: Any  # done when the actor has loaded the system


class _ClusterCalls(RemoteCalls[Item]):
    """The calls of one map, made by actors. What talks to Ray is called in its thread."""

    chunks_each = 2  # one that an actor works on, and the next

    def __init__(self, call: Callable[[Item], Any], concurrency: int) -> None:
        import ray

        processors = max(1, int(ray.cluster_resources().get("CPU", 1)))
        super().__init__(call, min(concurrency, processors))
        self._threads = -(-concurrency // self._size)
        self.chunk = self._threads  # more, as soon as calls turn out to be quick
        self._ray = ray
        # Spread: a few actors are to be on all nodes.
        options = {"num_cpus": 1, "max_concurrency": self.chunks_each + 2, "scheduling_strategy": "SPREAD"}
        self._class = ray.remote(**options)(_Worker)
        try:
            self._shipped = ray.put(self._sent)
        except (TypeError, AttributeError, ValueError) as error:
            raise PlanError(f"the system cannot be sent to the cluster: {_in_a_line(error)}") from error
        self._is_informed = False  # the actors know that the run is to stop
        for _ in range(self._size):
            self._add_actor()

    def _add_actor(self) -> None:
        # In a list: Ray would unpack a bare reference, and its errors would look like those of the system.
        handle = self._class.remote([self._shipped], self._threads)
        self._workers.append(_Actor(handle, handle.ready.remote()))

    def window(self) -> int:
        """Return how many items may be under way."""
        return self._size * self.chunks_each * self.chunk

    def dismiss(self) -> None:
        """End all actors, busy or not."""

        def kill() -> None:
            for actor in self._workers:
                self._ray.kill(actor.handle)

        in_ray(kill)

    def _distribute(self) -> None:
        if len(self._todo) >= self.chunk:
            in_ray(self._give)

    def _listen(self) -> None:
        in_ray(self._look)

    # In the thread of Ray.

    def _submit(self, worker: _Actor, chunk: list[tuple[int, Item]]) -> Any:
        return worker.handle.run.remote([item for _, item in chunk])

    def _look(self) -> None:
        """Wait for something to happen, not for long, and handle it."""
        self._halt_actors()
        self._give(is_waiting=True)
        starts = {actor.start: actor for actor in self._workers if not actor.is_ready}
        done, _ = self._ray.wait([*self._running, *starts], num_returns=1, timeout=LOOK_SECONDS)
        for reference in done:
            if reference in starts:
                self._see_start(starts[reference])
            else:
                self._collect(reference)
        self._give()

    def _halt_actors(self) -> None:
        """Have the actors start no further call, if the run is to stop. They finish those under way."""
        if self._is_halted and not self._is_informed:
            self._is_informed = True
            for actor in self._workers:
                actor.handle.halt.remote()

    def _see_start(self, actor: _Actor) -> None:
        try:
            self._ray.get(actor.start)
        except self._ray.exceptions.RayError as error:
            self._handle_failed_start(
                actor,
                f"a worker of the cluster cannot load the system: {_cause(error)}. Is its module installed "
                "on every node, or in the working directory of the job?",
            )
            self._add_actor()
        else:
            self._handle_start(actor)

    def _collect(self, reference: Any) -> None:
        actor, chunk, _ = self._running[reference]
        try:
            seconds, results = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:  # an item or a result cannot be pickled
            actor.chunks -= 1
            self._refuse(self._running.pop(reference)[1], getattr(error, "cause", error))
        except self._ray.exceptions.RayError as error:  # its process or its node has died
            if actor in self._workers:
                self._workers.remove(actor)
                self._add_actor()
            self._lose(reference, _in_a_line(error))
        else:
            self._finish(reference, results)
            # Set the size of the next chunks by the time that this one took, in steps: a few quick calls do
            # not predict the next ones.
            wanted = int(len(chunk) * _CHUNK_SECONDS / max(seconds, 1e-6))
            self.chunk = max(self._threads, min(_MOST_IN_A_CHUNK, wanted, 4 * self.chunk))


def _in_a_line(error: Any) -> str:
    return " ".join(str(error).partition("\ntraceback:")[0].split())[:300].rstrip(". ")


def _cause(error: Exception) -> str:
    """Return the last line of what Ray says about an actor that could not start."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__)[:300].rstrip(". ")


class _Worker:
    """Makes calls in a process of the cluster, several at a time."""

    def __init__(self, shipped: list[Any], threads: int) -> None:
        import ray

        sys.stdout = sys.stderr  # what a system prints is not a result
        self._call: Callable[[Any], Any] = ray.get(shipped[0])
        self._is_halted = False
        self._pool = ThreadPoolExecutor(threads)

    def ready(self) -> None:
        """Return when the system is loaded."""

    def halt(self) -> None:
        """Make no further call."""
        self._is_halted = True
        if isinstance(self._call, Caller):
            self._call.limits.halt()

    def run(self, items: list[Any]) -> tuple[float, list[Any]]:
        """Return the seconds that the calls took, and their results."""
        start = perf_counter()
        results = [sendable(result) for result in self._pool.map(self._result, items)]
        return perf_counter() - start, results

    def _result(self, item: Any) -> Any:
        return RunStoppedError("stopped as asked.") if self._is_halted else outcome(self._call, item)
