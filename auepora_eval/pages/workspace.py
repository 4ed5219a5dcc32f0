"""The runs that the pages show: found by id, opened once, compared once.

A page never gets a path: it asks for a run by its id. Reading a run again costs nothing while its files stay
as they are. A comparison of large runs is made in a thread of its own, and the server keeps answering.
"""

from __future__ import annotations

import shlex
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ..core.settings import out_flag
from ..core.types import EvaluationRun
from ..errors import AueporaError, DataError, NotFoundError
from ..io.results.document import results_to_run
from ..store.lock import writer_of
from ..store.pages import RunSamples, stamp
from ..store.state import SUFFIX, RunState, Unfinished, read_results_head, unfinished_ids, unfinished_run
from ..store.storage import EvaluationResultsStorage

SMALL = 5_000  # samples that are compared while the page waits
_KEPT = 8  # runs and comparisons in memory
_RECENT = 20  # runs in the frame of a page

T = TypeVar("T")
Recent = tuple[str, str, str]  # a run in the frame: its id, its state, and what is to be known of it


class NotReadyError(Exception):
    """Something is being made in the background: the page says so and loads itself again."""


@dataclass(frozen=True)
class Stored:
    """A document in the folder of runs: a run or an experiment; or why it cannot be read."""

    id: str
    head: Mapping[str, Any]
    run: EvaluationRun | None = None
    error: str = ""

    @property
    def kind(self) -> str:
        """Return "experiment" or "run"."""
        note = self.head.get("_metadata")
        kind = note.get("evaluation_type") if isinstance(note, dict) else None
        return "experiment" if kind == "ab_test" else "run"

    @property
    def time(self) -> str:
        """Return when it was made."""
        return str(self.head.get("timestamp") or "")

    @property
    def system(self) -> str:
        """Return the name of the system of a run."""
        return str(self.head.get("system_name") or self.head.get("system_version") or "")

    @property
    def dataset(self) -> str:
        """Return the fingerprint of the samples of a run."""
        return self.run.dataset_fingerprint if self.run else ""

    @property
    def state(self) -> str:
        """Return how the calls of a run went: complete, partial or failed, if a tenth failed or more."""
        total, failed = self.count("total_queries") or 0, self.count("failed_queries") or 0
        return "failed" if total and failed * 10 >= total else "partial" if failed else "complete"

    def count(self, name: str) -> int | None:
        """Return a number of the summary."""
        summary = self.head.get("summary")
        value = summary.get(name) if isinstance(summary, dict) else None
        return value if isinstance(value, int) else None


class Cache:
    """The last few things that were made, by key."""

    def __init__(self, kept: int = _KEPT) -> None:
        self._kept, self._members = kept, OrderedDict[Hashable, Any]()
        # Reentrant: a pair of runs is made from a comparison, which is kept here too.
        self._lock = threading.RLock()

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what is kept under a key, or make it while other requests wait."""
        with self._lock:
            made: T = self._members[key] if key in self._members else make()
            self._members[key] = made
            self._members.move_to_end(key)
            while len(self._members) > self._kept:
                self._members.popitem(last=False)
            return made


class Background:
    """What is being made for a page, each in a thread."""

    def __init__(self) -> None:
        self._threads, self._running = ThreadPoolExecutor(), dict[Hashable, Future[Any]]()
        self._lock = threading.Lock()

    def result(self, key: Hashable, make: Callable[[], T], what: str) -> T:
        """Return what was made, or raise what went wrong; NotReadyError until it has ended."""
        with self._lock:
            future = self._running.get(key)
            if future is None:
                future = self._running[key] = self._threads.submit(make)
            if not future.done():
                raise NotReadyError(what)
            # Also after a failure, so that loading the page again starts again.
            del self._running[key]
        made: T = future.result()
        return made


class Workspace:
    """The stored runs of a folder, or only those that were named. `rules` is a file of rules for the gate."""

    def __init__(
        self,
        folder: str | Path,
        only: Mapping[str, str | Path] | None = None,
        rules: str | Path | None = None,
    ) -> None:
        self.folder, self.rules = Path(folder), Path(rules) if rules else None
        self.only = {run_id: Path(path) for run_id, path in (only or {}).items()}
        self.storage = EvaluationResultsStorage(folder)
        self.background = Background()
        self.kept = Cache()
        self.tasks: Path | None = self.folder.parent / "annotations"
        self.person = ""  # the only one who labels; "" if everybody may
        self.desks = Cache(kept=50)  # tasks and labels of people, whose files stay open
        # The list of runs reads every head in order. With fewer places than runs, the oldest entry would be
        # dropped just before it is read, and the cache would never hit.
        self._heads = Cache(kept=2_000)
        self._samples = Cache(kept=6)  # 100,000 samples take 25 MB
        self.trends = Cache(kept=50)

    @property
    def arguments(self) -> tuple[str, Mapping[str, str], str | None]:
        """Return what another process opens the same runs with."""
        only = {run_id: str(path) for run_id, path in self.only.items()}
        return str(self.folder), only, str(self.rules) if self.rules else None

    @classmethod
    def named(cls, folder: str | Path, names: Iterable[str], rules: Path | None = None) -> Workspace:
        """Return the runs that a command names, by id or path."""
        storage = EvaluationResultsStorage(folder)
        paths = [storage.find(name) for name in names]
        return cls(folder, {path.name.removesuffix(SUFFIX): path for path in paths}, rules)

    def command(self, *words: str) -> str:
        """Return a command to type, with the folder of runs if it is not the usual one."""
        return shlex.join(["auepora", *words]) + out_flag(self.folder)

    def name(self, run_id: str) -> str:
        """Return how a command names a run: by its id, or by its path if it is elsewhere."""
        path = self.only.get(run_id)
        return run_id if path is None or path.parent == self.folder else str(path)

    def path(self, run_id: str) -> Path:
        """Return the results file of a run by its id, which cannot be a path."""
        if self.only:
            path = self.only.get(run_id)
            if path is None or not path.is_file():
                raise NotFoundError("", f"There is no run {run_id!r:.80} here.")
            return path
        try:
            path = RunState(self.folder, run_id).path
        # An id such as "../x" gets the reply of an unknown run: it reveals nothing about other files.
        except DataError as error:
            raise NotFoundError("", f"There is no run {run_id!r:.80} here.") from error
        if not path.is_file():
            raise NotFoundError("", f"There is no run {run_id!r:.80} in {self.folder}.")
        return path

    def documents(self) -> list[Stored]:
        """Return everything that is stored, newest first."""
        paths = self.only.values() if self.only else self.folder.glob(f"*{SUFFIX}")
        return sorted(map(self._stored, paths), key=lambda one: (one.time, one.id), reverse=True)

    def runs(self) -> list[Stored]:
        """Return the finished runs, newest first, without those that `auepora diagnose` made of one."""
        return [one for one in self.documents() if one.run is not None and "~" not in one.id]

    def recent(self) -> list[Recent]:
        """Return the newest runs for the frame of each page; read again when a file came or went."""
        if not self.folder.is_dir():
            return []
        going, finished = self.trends.get(("recent", self.folder.stat().st_mtime_ns), self._recent)
        # Looked up each time: a process that is killed changes no file.
        writers = {run_id: writer_of(RunState(self.folder, run_id).database) for run_id in going}
        unfinished = [
            (run_id, "running" if writer else "stopped", "not finished") for run_id, writer in writers.items()
        ]
        return [*unfinished, *finished][:_RECENT]

    def _recent(self) -> tuple[list[str], list[Recent]]:
        going = [run_id for run_id in self.unfinished_ids() if "~" not in run_id]
        return going[:_RECENT], [_recent(one) for one in self.runs()[:_RECENT]]

    def before(self, run_id: str, runs: Sequence[Stored] | None = None) -> list[str]:
        """Return the runs with the same samples as one, which it can be compared with: older ones first."""
        one = self.document(run_id)
        others = [
            other
            for other in (self.runs() if runs is None else runs)
            if other.id != run_id and other.dataset == one.dataset
        ]
        return [other.id for other in sorted(others, key=lambda other: other.time > one.time)]

    def document(self, run_id: str) -> Stored:
        """Return one stored document by its id."""
        return self._stored(self.path(run_id))

    def _stored(self, path: Path) -> Stored:
        run_id = path.name.removesuffix(SUFFIX)
        try:
            return self._heads.get((path, *stamp(path)), lambda: _read(run_id, path))
        except OSError as error:
            return Stored(run_id, {}, error=str(error))

    def unfinished_ids(self) -> list[str]:
        """Return the runs that were started and have no results."""
        return [] if self.only else unfinished_ids(self.folder)

    def unfinished_run(self, run_id: str) -> Unfinished:
        """Return how far a run is."""
        return unfinished_run(RunState(self.folder, run_id))

    def index(self, run_id: str) -> RunSamples:
        """Return the samples of a run."""
        path = self.path(run_id)
        return self._samples.get((path, *stamp(path)), lambda: RunSamples(path))


def _recent(one: Stored) -> Recent:
    failed = one.count("failed_queries")
    return one.id, one.state, f"{failed:,} failed" if failed else ""


def _read(run_id: str, path: Path) -> Stored:
    try:
        head = read_results_head(path)
    except (AueporaError, OSError) as error:
        return Stored(run_id, {}, error=str(error))
    try:
        run = results_to_run(head, None, [], [], path.name)
    except AueporaError:
        run = None  # an experiment, a recording, or a file of another tool
    return Stored(run_id, head, run)
