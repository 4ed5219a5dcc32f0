"""An executor on a Ray cluster: from the processors of one machine to those of many.

Actors make the calls, one on each processor. If there are more calls at a time than processors, an actor
makes several at a time. Requests are sent in chunks and results come back in chunks, of about a tenth of a
second: the driver has little to do for each, and little is lost if it is killed. The requests of an actor
that dies are tried again elsewhere, one by one: this finds the one that kills its actor, and no other is
lost.
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
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, partial
from time import perf_counter
from typing import Any, TypeVar

from ..errors import MissingDependencyError, PlanError, RunStoppedError, WorkerLostError, install_command
from .asking import Caller
from .executors import outcome, positive, through_a_window
from .processes import MOST_TRIES, RemoteCalls, sendable

Item = TypeVar("Item")
T = TypeVar("T")
_CHUNK_SECONDS = 0.1
_MOST_IN_A_CHUNK = 256
_CHUNKS_EACH = 2  # one that an actor works on, and the next
_LOOK_SECONDS = 0.1  # between two checks whether the run is to stop


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


class _Actor:
    """An actor of the cluster, as the driver sees it."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle
        self.start = handle.ready.remote()  # done when the actor has loaded the system
        self.is_ready = False
        self.chunks = 0  # that it has


class _ClusterCalls(RemoteCalls[Item]):
    """The calls of one map, made by actors. What talks to Ray is called in its thread."""

    def __init__(self, call: Callable[[Item], Any], concurrency: int) -> None:
        import ray

        processors = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._size = min(concurrency, processors)
        super().__init__(call, self._size)
        self._threads = -(-concurrency // self._size)
        self._chunk = self._threads  # how many items a chunk has: more, as soon as calls turn out to be quick
        self._ray = ray
        # Spread: a few actors are to be on all nodes.
        options = {"num_cpus": 1, "max_concurrency": _CHUNKS_EACH + 2, "scheduling_strategy": "SPREAD"}
        self._class = ray.remote(**options)(_Worker)
        try:
            self._shipped = ray.put(self._sent)
        except (TypeError, AttributeError, ValueError) as error:
            raise PlanError(f"the system cannot be sent to the cluster: {_in_a_line(error)}") from error
        self._actors: list[_Actor] = []
        self._running: dict[Any, tuple[_Actor, list[tuple[int, Item]]]] = {}
        self._lost: deque[tuple[int, Item]] = deque()  # items that are tried alone, after all others
        self._tries: dict[int, int] = {}  # how often an actor died that had the item alone
        self._failed_starts = 0
        self._is_informed = False  # the actors know that the run is to stop
        for _ in range(self._size):
            self._add_actor()

    def _add_actor(self) -> None:
        # In a list: Ray would unpack a bare reference, and its errors would look like those of the system.
        self._actors.append(_Actor(self._class.remote([self._shipped], self._threads)))

    def window(self) -> int:
        """Return how many items may be under way."""
        return self._size * _CHUNKS_EACH * self._chunk

    def dismiss(self) -> None:
        """End all actors, busy or not."""

        def kill() -> None:
            for actor in self._actors:
                self._ray.kill(actor.handle)

        in_ray(kill)

    def _distribute(self) -> None:
        self._drop_waiting()
        if len(self._todo) >= self._chunk:
            in_ray(self._submit_chunks)

    def _listen(self) -> None:
        self._drop_waiting()
        if not self._done:
            in_ray(self._look)

    # In the thread of Ray.

    def _submit_chunks(self) -> None:
        """Give whole chunks to actors that can take one."""
        while len(self._todo) >= self._chunk and self._submit():
            pass

    def _submit(self) -> bool:
        """Give the next items to the actor that has the fewest; return False if no actor can take them."""
        ready = [actor for actor in self._actors if actor.is_ready]
        actor = min(ready, key=lambda each: each.chunks, default=None)
        # Items that are tried alone are alone with their actor.
        is_alone = not self._todo
        if actor is None or actor.chunks >= (1 if is_alone else _CHUNKS_EACH):
            return False
        source, size = (self._lost, 1) if is_alone else (self._todo, self._chunk)
        chunk = [source.popleft() for _ in range(min(size, len(source)))]
        if chunk:
            actor.chunks += 1
            self._running[actor.handle.run.remote([item for _, item in chunk])] = actor, chunk
        return bool(chunk)

    def _look(self) -> None:
        """Wait for something to happen, not for long, and handle it."""
        self._halt_actors()
        # No more items come: the rest is a chunk. Those that are tried alone wait for all others.
        while (self._todo and self._is_any_idle()) or (self._lost and self._is_alone_time()):
            if not self._submit():
                break
        starts = {actor.start: actor for actor in self._actors if not actor.is_ready}
        awaited = [*self._running, *starts]
        done, _ = self._ray.wait(awaited, num_returns=1, timeout=_LOOK_SECONDS)
        for reference in done:
            if reference in starts:
                self._handle_start(starts[reference])
            else:
                self._collect(reference)
        if self._is_halted and self._lost:
            self._drop(self._lost)
            self._lost.clear()

    def _is_any_idle(self) -> bool:
        return any(actor.is_ready and not actor.chunks for actor in self._actors)

    def _is_alone_time(self) -> bool:
        return not self._todo and all(len(chunk) == 1 for _, chunk in self._running.values())

    def _halt_actors(self) -> None:
        """Have the actors start no further call, if the run is to stop. They finish those under way."""
        if self._is_halted and not self._is_informed:
            self._is_informed = True
            for actor in self._actors:
                actor.handle.halt.remote()

    def _handle_start(self, actor: _Actor) -> None:
        try:
            self._ray.get(actor.start)
        except self._ray.exceptions.RayError as error:
            self._failed_starts += 1
            self._actors.remove(actor)
            if self._failed_starts >= MOST_TRIES:
                raise PlanError(
                    f"a worker of the cluster cannot load the system: {_cause(error)}. Is its module "
                    "installed on every node, or in the working directory of the job?"
                ) from error
            self._add_actor()
        else:
            actor.is_ready, self._failed_starts = True, 0
            self._submit_chunks()

    def _collect(self, reference: Any) -> None:
        actor, chunk = self._running.pop(reference)
        actor.chunks -= 1
        try:
            seconds, results = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:  # an item or a result cannot be pickled
            self._handle_unsendable(chunk, error)
        except self._ray.exceptions.RayError as error:
            self._handle_death(actor, chunk, error)
        else:
            self._done.extend((place, result) for (place, _), result in zip(chunk, results, strict=True))
            self._adapt(len(chunk), seconds)
        self._submit_chunks()

    def _adapt(self, count: int, seconds: float) -> None:
        """Set the size of the next chunks by the time that one took."""
        wanted = int(count * _CHUNK_SECONDS / max(seconds, 1e-6))
        # In steps: a few quick calls do not predict the next ones.
        self._chunk = max(self._threads, min(_MOST_IN_A_CHUNK, wanted, 4 * self._chunk))

    def _handle_unsendable(self, chunk: list[tuple[int, Item]], error: Exception) -> None:
        if len(chunk) > 1:
            self._lost.extend(chunk)
            return
        result = TypeError(f"it cannot leave its process: {_in_a_line(getattr(error, 'cause', error))}")
        self._done.append((chunk[0][0], result))

    def _handle_death(self, actor: _Actor, chunk: list[tuple[int, Item]], error: Exception) -> None:
        """Replace an actor that died with its process or node. Its items are tried again, or fail."""
        if actor in self._actors:
            self._actors.remove(actor)
            self._add_actor()
        if self._is_halted:  # a retry would be another call
            self._drop(chunk)
            return
        for pair in chunk:
            # The first death may be due to another item of the actor: from then on it is tried alone.
            tries = self._tries[pair[0]] = self._tries.get(pair[0], -1) + 1
            if tries >= MOST_TRIES:
                lost = WorkerLostError(f"the worker died {tries} times on it: {_in_a_line(error)}")
                self._done.append((pair[0], lost))
            else:
                self._lost.append(pair)


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
