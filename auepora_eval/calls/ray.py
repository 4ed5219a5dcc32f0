"""An executor on a Ray cluster: from the processors of one machine to those of many.

Actors make the calls, one on each processor. If there are more calls at a time than processors, an actor
makes several at a time. Quick calls are sent in chunks, and their results come back in chunks, of some tenths
of a second: the driver has little to do for each, and little is lost if it is killed.
"""

from __future__ import annotations

import atexit
import logging
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from functools import cache, partial
from time import perf_counter
from typing import Any, TypeVar

from ..errors import MissingDependencyError, PlanError, RunStoppedError, WorkerLostError, install_command
from .asking import Caller
from .executors import outcome, positive
from .processes import CHUNK_SECONDS, LOOK_SECONDS, RemoteCalls, UnsendableError, Worker, sendable

Item = TypeVar("Item")
T = TypeVar("T")


class RayExecutor:
    """Calls by actors on a Ray cluster: the one at `address`, or one on this machine, made for it."""

    def __init__(self, *, concurrency: int = 1, address: str | None = None) -> None:
        self.concurrency, self.address = positive(concurrency), address

    def map(self, call: Callable[[Item], Any], items: Iterable[Item]) -> Iterator[tuple[int, Any]]:
        in_ray(partial(_connect, self.address, self.concurrency))
        _restore_signals()
        calls: _ClusterCalls[Item] = in_ray(partial(_ClusterCalls, call, self.concurrency))
        yield from calls.map(items)


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


class _ClusterCalls(RemoteCalls[Item]):
    """The calls of one map, made by actors."""

    most_in_a_chunk = 128

    def __init__(self, call: Callable[[Item], Any], concurrency: int) -> None:
        import ray

        processors = max(1, int(ray.cluster_resources().get("CPU", 1)))
        size = min(concurrency, processors)
        super().__init__(call, size, concurrency)
        self._ray, self._calls_each = ray, -(-concurrency // size)
        try:
            self._shipped = ray.put(self.sent)
        except (TypeError, AttributeError, ValueError) as error:
            raise PlanError(f"the system cannot be sent to the cluster: {_in_a_line(error)}") from error
        self._actors: list[_Actor] = []

    def start(self, *, alone: bool) -> Worker:
        # Spread: a few actors are to be on all nodes. One that tries a call alone does not wait for a
        # processor: the others have them all.
        options = {"num_cpus": 0 if alone else 1, "scheduling_strategy": "SPREAD"}
        actor = self._ray.remote(**options, max_concurrency=self._calls_each + 2)(_Worker)
        # In a list: Ray would unpack a bare reference, and its errors would look like those of the system.
        handle = actor.remote([self._shipped])
        start = handle.ready.remote()
        try:
            while not (done := self._ray.wait([start], timeout=LOOK_SECONDS)[0]):
                self.check_wanted()
            self._ray.get(done)
        except self._ray.exceptions.RayError as error:
            raise PlanError(
                f"a worker of the cluster cannot load the system: {_cause(error)}. Is its module installed "
                "on every node, or in the working directory of the job?"
            ) from None
        self._actors.append(_Actor(self._ray, handle))
        return self._actors[-1]

    def halt(self) -> None:
        actors, self._actors = self._actors, []  # each gets it once
        for actor in actors:
            in_ray(actor.handle.halt.remote)


class _Actor(Worker):
    """An actor of the cluster, as the driver sees it. It makes several calls at a time."""

    def __init__(self, ray: Any, handle: Any) -> None:
        self._ray, self.handle = ray, handle

    def results(self, items: Sequence[Any]) -> Sequence[Any]:
        try:
            results: Sequence[Any] = self._ray.get(self.handle.run.remote(items))
        except self._ray.exceptions.RayTaskError as error:  # an item or a result cannot be pickled
            raise UnsendableError(getattr(error, "cause", error)) from None
        except self._ray.exceptions.RayError as error:  # its process or its node has died
            self.is_alive = False
            raise WorkerLostError(_in_a_line(error)) from None
        except Exception as error:  # noqa: BLE001 - an object may raise anything
            raise UnsendableError(error) from None
        return results

    def end(self) -> None:
        self.is_alive = False
        in_ray(lambda: self._ray.kill(self.handle))


def _in_a_line(error: Any) -> str:
    return " ".join(str(error).partition("\ntraceback:")[0].split())[:300].rstrip(". ")


def _cause(error: Exception) -> str:
    """Return the last line of what Ray says about an actor that could not start."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__)[:300].rstrip(". ")


class _Worker:
    """Makes calls in a process of the cluster, in several threads."""

    def __init__(self, shipped: list[Any]) -> None:
        import ray

        sys.stdout = sys.stderr  # what a system prints is not a result
        self._call: Callable[[Any], Any] = ray.get(shipped[0])
        self._is_halted = False

    def ready(self) -> None:
        """Return when the system is loaded."""

    def halt(self) -> None:
        """Make no further call."""
        self._is_halted = True
        if isinstance(self._call, Caller):
            self._call.limits.halt()

    def run(self, items: list[Any]) -> list[Any]:
        """Return the results of calls, made one after the other: of the first ones, if they are slow."""
        results: list[Any] = []
        stopped, end = RunStoppedError("stopped as asked."), perf_counter() + 2 * CHUNK_SECONDS
        for item in items:
            results.append(stopped if self._is_halted else sendable(outcome(self._call, item)))
            if perf_counter() > end:
                break
        return results
