"""The scores of a run that is scored chunk by chunk: in a file, once they are many, and read when looked at.

A million scores of thirty metrics take 240 MB; what is needed at a time is one column of them.
"""

from __future__ import annotations

import threading
import weakref
from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any, overload

import msgspec

from ..errors import StorageError
from .scores import Note, Scores, alone

if TYPE_CHECKING:
    from numpy.typing import NDArray

IN_MEMORY = 4_000_000  # bytes; more go to the disk


class ScoreStore:
    """Takes the scores of all metrics, chunk after chunk, and gives those of each as a whole."""

    def __init__(self, folder: Path | None = None, *, in_memory: int = IN_MEMORY) -> None:
        where = None if folder is None else str(folder)
        self._file = SpooledTemporaryFile(max_size=in_memory, dir=where)  # noqa: SIM115 - closed below
        weakref.finalize(self, self._file.close)
        self._folder = folder
        self._guard = threading.Lock()
        self._end = 0  # of the file
        self.size = 0  # samples
        self.starts: list[int] = []  # the first sample of each chunk
        self._names: list[tuple[int, int]] = []  # where each chunk's ids and clusters are, and how many bytes
        self.clustered = False  # whether any sample names a cluster
        self._columns: dict[tuple[str, str], _Column] = defaultdict(_Column)
        self._notes: dict[str, StoredNotes] = {}

    def add(self, chunk: Mapping[str, Scores]) -> None:
        """Take the scores of further samples, by metric."""
        first = next(iter(chunk.values()), None)
        if first is None:  # a plan without metrics
            return
        count = len(first)
        self.starts.append(self.size)
        clusters = None if first.clusters is None else [_name(cluster) for cluster in first.clusters]
        self.clustered |= clusters is not None
        names = msgspec.msgpack.encode((list(first.sample_ids), clusters))
        self._names.append((self._write(names), len(names)))
        for metric, scores in chunk.items():
            self._keep(metric, "values", scores.values, self.size)
            if scores.parts is not None:
                self._keep(metric, "parts", scores.parts, self.size)
            for column, rows in zip(("low", "high"), scores.if_failed or (), strict=False):
                self._keep(metric, column, rows, self._columns[metric, column].rows)
            self._notes.setdefault(metric, StoredNotes()).add(scores.notes, self.size)
        self.size += count

    def scores(self, metric: str) -> StoredScores:
        """All scores of a metric; nothing is read before it is looked at."""
        return StoredScores(self, metric)

    def names(self, chunk: int) -> tuple[list[str], list[str | None] | None]:
        """The ids of a chunk's samples, and the clusters that they name, if any does."""
        start, length = self._names[chunk]
        found: tuple[list[str], list[str | None] | None] = _names_of(self._read(start, length))
        return found

    def column(self, metric: str, name: str, *, whole: bool = False) -> NDArray[Any] | None:
        """One column, put together; None if no chunk had it. `whole`: a row for every sample."""
        import numpy as np

        kept = self._columns.get((metric, name))
        if kept is None:
            return None
        count = self.size if whole else kept.rows
        found = np.zeros((count, *kept.shape), np.float64)
        for first, start, rows in kept.pieces:
            piece = found[first : first + rows]
            piece[...] = np.frombuffer(self._read(start, piece.nbytes), np.float64).reshape(piece.shape)
        return found

    def notes(self, metric: str) -> StoredNotes:
        """Why there is no score, by the places where there is none."""
        return self._notes.get(metric) or StoredNotes()

    def _keep(self, metric: str, name: str, rows: NDArray[Any], first: int) -> None:
        kept = self._columns[metric, name]
        if kept.rows and kept.shape != rows.shape[1:]:
            raise ValueError(f"{metric}: the parts of its scores have no common number")
        kept.shape = rows.shape[1:]
        kept.pieces.append((first, self._write(rows.tobytes()), len(rows)))
        kept.rows += len(rows)

    def _write(self, data: bytes) -> int:
        """Append; where it begins."""
        start = self._end
        try:
            self._file.write(data)
        except OSError as error:
            where = self._folder or "the folder of temporary files"
            raise StorageError(f"{where} cannot be written: {error.strerror or error}.") from error
        self._end += len(data)
        return start

    def _read(self, start: int, length: int) -> bytes:
        with self._guard:  # the scores of a run may be looked at by several threads
            self._file.seek(start)
            found = self._file.read(length)
            self._file.seek(self._end)
        return found


_names_of = msgspec.msgpack.Decoder(tuple[list[str], list[str | None] | None]).decode


class _Column:
    """Where the rows of a column are: (first row, byte, how many rows) of each piece."""

    def __init__(self) -> None:
        self.pieces: list[tuple[int, int, int]] = []
        self.shape: tuple[int, ...] = ()  # of one row
        self.rows = 0


def _name(cluster: Any) -> str | None:
    return cluster if isinstance(cluster, str) else None


class StoredScores(Scores):
    """Scores that are read from their store when somebody looks at them, and can be let go again."""

    def __init__(self, store: ScoreStore, metric: str) -> None:
        self._store, self._metric = store, metric
        self.sample_ids = StoredIds(store)

    def __getattr__(self, name: str) -> Any:
        if name not in _READ or "_store" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        found = self.__dict__[name] = getattr(self, f"_read_{name}")()
        return found

    def let_go(self) -> None:
        """Forget what was read; it is read again when it is looked at."""
        for name in _READ:
            self.__dict__.pop(name, None)

    def _read_values(self) -> Any:
        found = self._store.column(self._metric, "values")
        return _nothing() if found is None else found

    def _read_parts(self) -> Any:
        return self._store.column(self._metric, "parts", whole=True)

    def _read_notes(self) -> Any:
        return self._store.notes(self._metric)

    def _read_if_failed(self) -> Any:
        low, high = (self._store.column(self._metric, name) for name in ("low", "high"))
        return None if low is None or high is None else (low, high)

    def _read_clusters(self) -> Any:
        if not self._store.clustered:
            return None
        found: list[Any] = []
        for chunk in range(len(self._store.starts)):
            ids, clusters = self._store.names(chunk)
            found += [
                alone(sample_id) if cluster is None else cluster
                for sample_id, cluster in zip(ids, clusters or [None] * len(ids), strict=True)
            ]
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy, or what goes to another process, has no file behind it.
        columns = (self.values, self.parts, dict(self.notes), self.clusters, self.if_failed)
        return _plain, (list(self.sample_ids), *columns)


def _plain(
    ids: list[str], values: Any, parts: Any, notes: dict[int, Note], clusters: Any, if_failed: Any
) -> Scores:
    scores = Scores(ids, values, parts=parts, notes=notes)
    scores.clusters, scores.if_failed = clusters, if_failed
    return scores


_READ = ("values", "parts", "notes", "clusters", "if_failed")


def _nothing() -> Any:
    import numpy as np

    return np.zeros(0)


class StoredIds(Sequence[str]):
    """The ids of the samples, read a chunk at a time."""

    def __init__(self, store: ScoreStore) -> None:
        self._store = store
        self._last: tuple[int, list[str]] = (-1, [])

    def __len__(self) -> int:
        return self._store.size

    def __iter__(self) -> Iterator[str]:
        for chunk in range(len(self._store.starts)):
            yield from self._store.names(chunk)[0]

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[n] for n in range(*place.indices(len(self)))]
        place = range(len(self))[place]
        chunk = bisect_right(self._store.starts, place) - 1
        number, ids = self._last
        if number != chunk:
            ids = self._store.names(chunk)[0]
            self._last = (chunk, ids)
        return ids[place - self._store.starts[chunk]]


class StoredNotes(Mapping[int, Note]):
    """Why samples have no score, by their places; a reason that many share is there once.

    >>> notes = StoredNotes()
    >>> notes.add({1: Note("no gold"), 0: Note("no gold")}, 10)
    >>> list(notes), notes[11].reason, 12 in notes
    ([10, 11], 'no gold', False)
    """

    def __init__(self) -> None:
        self._places, self._kinds = array("q"), array("q")
        self._notes: list[Note] = []
        self._numbers: dict[Note, int] = {}

    def add(self, notes: Mapping[int, Note], start: int) -> None:
        """Take the notes of a chunk that begins at this sample."""
        for place in sorted(notes):
            note = notes[place]
            number = self._numbers.setdefault(note, len(self._notes))
            if number == len(self._notes):
                self._notes.append(note)
            self._places.append(start + place)
            self._kinds.append(number)

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[int]:
        return iter(self._places)

    def __getitem__(self, place: int) -> Note:
        there = bisect_left(self._places, place)
        if there == len(self._places) or self._places[there] != place:
            raise KeyError(place)
        return self._notes[self._kinds[there]]
