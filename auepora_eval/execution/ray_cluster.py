"""An executor on a Ray cluster: from the processors of one machine to those of many.

A task makes a chunk of calls, several at a time if the concurrency is above the number of processors, and
returns their outputs. A task whose worker or node dies is run again elsewhere; if that happens time after
time, its samples are tried one by one, so that the one which kills its worker is found and no other is lost.
"""

from __future__ import annotations

import logging
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout
from typing import Any, Generic, TypeVar

from ..core.executor import is_async, through_a_window
from ..errors import MissingDependencyError, PlanError, RunStoppedError, WorkerLostError
from .local import AsyncExecutor, ThreadExecutor, positive

Item = TypeVar("Item")
_TASK_RETRIES = 2
_MOST_IN_A_TASK = 64
_TASKS_AHEAD = 2  # for each processor: the next one lies ready when one is done


class RayExecutor:
    """Calls as tasks on a Ray cluster: the one at `address`, or one on this machine, made for the purpose."""

    def __init__(
        self, *, concurrency: int = 1, timeout: float | None = None, address: str | None = None
    ) -> None:
        self.concurrency, self.timeout, self.address = positive(concurrency), timeout, address

    def map(self, call: Callable[[Item], Any], items: Iterable[Item]) -> Iterator[tuple[int, Any]]:
        ray = connected(self.address, self.concurrency)
        crew = _Crew(ray, call, self.concurrency, self.timeout)
        try:
            yield from through_a_window(items, crew.window, crew.send, crew.receive)
        finally:
            crew.dismiss()


def connected(address: str | None, processors: int) -> Any:
    """Ray, connected to the cluster; nothing is reported to anyone, and no dashboard is opened."""
    # Ray reads these when it is imported.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if address is None:
        # Otherwise anyone who reaches this machine reaches a Ray that runs what it is sent.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    try:
        import ray
    except ImportError as error:
        raise MissingDependencyError(
            "the executor `ray` needs Ray: pip install 'auepora-eval[ray]'."
        ) from error
    if ray.is_initialized():
        return ray
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        options["include_dashboard"] = False
        options["num_cpus"] = min(processors, os.cpu_count() or 1)
    else:
        options["address"] = address
    try:
        ray.init(**options)
    except (ConnectionError, ValueError, RuntimeError, OSError) as error:
        raise PlanError(
            f"the Ray cluster {address or 'of this machine'} cannot be reached: {error}. "
            "Is it running (ray status), and does --address name it?"
        ) from error
    return ray


class _Crew(Generic[Item]):
    """The tasks of one map, seen from the process that takes the results."""

    def __init__(
        self, ray: Any, call: Callable[[Item], Any], concurrency: int, timeout: float | None
    ) -> None:
        self._ray, self._call = ray, call
        processors = max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._workers = min(concurrency, processors)
        threads = -(-concurrency // self._workers)
        self._chunk = min(_MOST_IN_A_TASK, 4 * threads)
        self.window = self._workers * _TASKS_AHEAD * self._chunk
        share = getattr(call, "shared_by", None)
        self._shipped = _shipped(ray, share(self._workers) if share else call)
        self._task = ray.remote(num_cpus=1, max_retries=_TASK_RETRIES)(_run_chunk).remote
        self._options = (threads, timeout)
        self._todo: deque[tuple[int, Item]] = deque()
        self._running: dict[Any, list[tuple[int, Item]]] = {}
        self._done: deque[tuple[int, Any]] = deque()

    def send(self, place: int, item: Item) -> None:
        """Take on an item; a call whose run is to stop gets no further ones."""
        limits = getattr(self._call, "limits", None)
        try:
            if limits is not None:
                limits.check()
        except RunStoppedError as error:
            self._done.append((place, error))
            return
        self._todo.append((place, item))
        if len(self._todo) >= self._chunk:
            self._start(self._chunk)

    def receive(self) -> tuple[int, Any]:
        """The next result, waited for."""
        # Nothing more comes, or nobody works: what there is, is a chunk.
        if self._todo and len(self._running) < self._workers:
            self._start(self._chunk)
        while not self._done:
            if not self._running:
                self._start(self._chunk)
            ready, _ = self._ray.wait(list(self._running), num_returns=1)
            self._collect(ready[0])
        place, result = self._done.popleft()
        note = getattr(self._call, "made_elsewhere", None)
        if note is not None and not isinstance(result, RunStoppedError):
            note(result)
        return place, result

    def dismiss(self) -> None:
        """Cancel what is under way."""
        for task in self._running:
            self._ray.cancel(task, force=True)
        self._running.clear()

    def _start(self, size: int) -> None:
        chunk = [self._todo.popleft() for _ in range(min(size, len(self._todo)))]
        if chunk:
            self._running[self._task(self._shipped, chunk, *self._options)] = chunk

    def _collect(self, task: Any) -> None:
        from ray.exceptions import RayError

        chunk = self._running.pop(task)
        try:
            self._done.extend(self._ray.get(task))
        except RayError as error:
            if len(chunk) > 1:
                for pair in chunk:  # one by one: the others of the chunk are not to blame
                    self._running[self._task(self._shipped, [pair], *self._options)] = [pair]
            else:
                why = " ".join(str(error).split())[:300]
                self._done.append((chunk[0][0], WorkerLostError(f"the task was lost every time: {why}")))


def _shipped(ray: Any, call: Callable[[Item], Any]) -> Any:
    """The call in the cluster's store: it goes to each worker once."""
    try:
        return ray.put(call)
    except (TypeError, AttributeError, ValueError) as error:
        why = " ".join(str(error).split())[:300]
        raise PlanError(f"the system cannot be sent to the cluster: {why}") from error


def _run_chunk(
    call: Callable[[Any], Any], chunk: list[tuple[int, Any]], threads: int, timeout: float | None
) -> list[tuple[int, Any]]:
    """What a task does."""
    kind = AsyncExecutor if is_async(call) else ThreadExecutor
    executor = kind(concurrency=threads, timeout=timeout)
    with redirect_stdout(sys.stderr):  # what a system prints is not a result
        results = dict(executor.map(call, [item for _, item in chunk]))
    return [(place, _plain_error(results[turn])) for turn, (place, _) in enumerate(chunk)]


def _plain_error(result: Any) -> Any:
    """An exception of a class that the driver may lack comes as one that it has."""
    if isinstance(result, BaseException) and type(result).__module__ != "builtins":
        return RuntimeError(f"{type(result).__name__}: {result}")
    return result
