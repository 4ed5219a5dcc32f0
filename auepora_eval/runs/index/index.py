"""Read a run by its index: filter, sort, page and search its samples, and open one of them.

The interface is small on purpose: `open_index` gives a `RunIndex`; `matching` applies a `Filter` and `page`
sorts it; `sample` reads one sample with its output from the run's own files; `column` gives every score of a
metric. Nothing here reads more of a run than it returns.
"""

from __future__ import annotations

import re
import sqlite3
import threading
import weakref
import zlib
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...core.scores import Note
from ...core.types import EvaluationRun, EvaluationSample, MetricResult, SampleScore, SystemOutputs
from ...errors import DataError, StorageError, UnknownNameError
from ...io.files import file_sha256
from ...io.outputs import missing_output
from ...io.results.document import results_to_run
from ...read.records import read_prediction, read_sample
from ...read.text import parse_json
from ..journal.journal import JOURNAL, record_of, run_key
from ..store.state import read_results_head
from .build import SCHEMA, build_index, index_paths, source_files, stamp

__all__ = ["Filter", "Page", "Row", "RunIndex", "find_index", "open_index"]

_WORD = re.compile(r"[^\W_]+")  # as the tokenizer of SQLite splits a text
_MOST_WORDS = 20

Places = NDArray[np.signedinteger[Any]]  # of samples


@dataclass(frozen=True)
class Filter:
    """Which samples to show. Everything that is given must hold."""

    words: str = ""
    slices: tuple[tuple[str, str], ...] = ()  # (field, value)
    ranges: tuple[tuple[str, float, float], ...] = ()  # (metric, lowest, highest)
    failed: bool = False
    gold_missed: bool = False
    error: int | None = None  # a group of failures, by its place in `errors`


@dataclass(frozen=True)
class Row:
    """A sample in a list, with its texts shortened."""

    place: int
    sample_id: str
    query: str
    answer: str


@dataclass(frozen=True)
class Page:
    """Some of the samples that match: `total` match, and `start` of them come before the first row.

    `before` is what `after` has to be for the page before this one; None if that is the first.
    """

    places: list[int]
    total: int
    start: int
    before: int | None = None

    @property
    def has_more(self) -> bool:
        """Return whether more samples follow."""
        return self.start + len(self.places) < self.total


def find_index(results: Path) -> Path | None:
    """Return the index of a run; None if it has none, or one of other files."""
    return next((path for path in index_paths(results) if _is_current(path, results)), None)


def open_index(results: Path) -> RunIndex:
    """Return the index of a run by its results file. It is built if there is none, or if the run changed."""
    return RunIndex(find_index(results) or build_index(results), results)


def _connected(path: Path) -> sqlite3.Connection:
    # Read-only, and no function of a schema that somebody else may have made is trusted.
    database = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True, check_same_thread=False
    )
    database.execute("PRAGMA trusted_schema=OFF")
    return database


def _header(database: sqlite3.Connection) -> dict[str, Any]:
    return {name: msgspec.json.decode(value) for name, value in database.execute("SELECT * FROM header")}


def _is_current(path: Path, results: Path) -> bool:
    """Return whether an index can be read and was made of the files that the run has now."""
    if not path.is_file():
        return False
    try:
        with closing(_connected(path)) as database:
            header = _header(database)
        files = source_files(results)
        if header["schema"] != SCHEMA or header["files"].keys() != files.keys():
            return False
        return all(_is_same(file, *header["files"][name]) for name, file in files.items())
    except (sqlite3.Error, msgspec.MsgspecError, KeyError, TypeError, AttributeError, OSError):
        return False


def _is_same(path: Path, name: str, size: int, time: int, sha256: str) -> bool:
    now = stamp(path)
    if now == [name, size, time]:
        return True
    # A copy of a run has other times. Only then is the content compared.
    return now[:2] == [name, size] and file_sha256(path) == sha256


class RunIndex:
    """The samples of one stored run. Safe to use from several threads."""

    def __init__(self, path: Path, results: Path) -> None:
        self.path, self.results = path, results
        self._stamps = self._current_stamps()
        self._database = _connected(path)
        weakref.finalize(self, self._database.close)
        self._lock = threading.Lock()
        header = _header(self._database)
        self.size: int = header["samples"]
        self.fields: dict[str, list[str]] = header["fields"]  # what samples can be sliced by, with the values
        self.errors: list[tuple[str, str]] = [(kind, words) for kind, words in header["errors"]]
        self._reasons = {name: [Note(*note) for note in notes] for name, notes in header["reasons"].items()}
        self._columns: dict[str, NDArray[Any]] = {}
        self._orders: dict[str, tuple[Places, Places]] = {}
        # By content: two runs with the same digest have the same samples, outputs and scores.
        self.ids_digest: str = header["ids"]  # equal for runs with the same samples in the same order
        self.digest = "-".join(facts[3][:16] for _, facts in sorted(header["files"].items()))

    def _current_stamps(self) -> list[list[Any]]:
        return [stamp(path) for path in source_files(self.results).values()]

    def is_current(self) -> bool:
        """Return whether the files of the run are those that the index was opened with."""
        try:
            return self._current_stamps() == self._stamps
        except (OSError, StorageError):
            return False

    @cached_property
    def run(self) -> EvaluationRun:
        """Return the run without samples, outputs and scores."""
        head = read_results_head(self.results)
        return results_to_run(head, None, [], [], self.results.name)

    @cached_property
    def metrics(self) -> dict[str, MetricResult]:
        """Return the metrics that have a score per sample, by name, in the order of the plan."""
        return {result.name: result for result in self.run.results if result.name in self._reasons}

    def column(self, metric: str) -> NDArray[np.float64]:
        """Return every score of a metric, NaN where nothing was measured."""
        if metric not in self._reasons:
            raise UnknownNameError(f"the run has no scores of {metric!r:.80}")
        return self._data(f"metric {metric}", "<f8")

    def score(self, metric: str, place: int) -> SampleScore:
        """Return the score of one sample, with the reason if nothing was measured."""
        code = int(self._data(f"reason {metric}", "<i2")[place])
        if code:
            note = self._reasons[metric][code - 1]
            return SampleScore(None, note.reason, failed=note.failed)
        return SampleScore(float(self.column(metric)[place]))

    def has_failed(self, metric: str) -> NDArray[np.bool_]:
        """Return which samples have no score of a metric because the call or the scoring failed."""
        failed = np.array([False, *(note.failed for note in self._reasons[metric])])
        which: NDArray[np.bool_] = failed[self._data(f"reason {metric}", "<i2")]
        return which

    def members(self, name: str, value: str) -> NDArray[np.bool_]:
        """Return which samples are in a slice."""
        if value not in self.fields.get(name, ()):
            raise UnknownNameError(f"no sample has {name!r:.80} = {value!r:.80}")
        bit = np.uint64(1 << self.fields[name].index(value))
        which: NDArray[np.bool_] = (self._data(f"field {name}", "<u8") & bit) != 0
        return which

    def slices_of(self, name: str, place: int) -> list[str]:
        """Return the values of a field that a sample has; none if samples are not sliced by it."""
        values = self.fields.get(name, [])
        bits = int(self._data(f"field {name}", "<u8")[place]) if values else 0
        return [value for number, value in enumerate(values) if bits >> number & 1]

    @property
    def error_codes(self) -> NDArray[np.int32]:
        """Return the group of each failure, -1 for a sample that has an answer."""
        return self._data("error", "<i4")

    @property
    def gold_missed(self) -> NDArray[np.bool_]:
        """Return which samples lack a gold document among the retrieved ones."""
        return self._data("gold_missed", "|u1").view(bool)

    def variants(self, place: int) -> list[int]:
        """Return the other samples that are variants of the same question, in the order of the dataset."""
        families = self._data("family", "<i4")
        if families[place] < 0:
            return []
        return [other for other in np.flatnonzero(families == families[place]).tolist() if other != place]

    def matching(self, wanted: Filter) -> NDArray[np.bool_]:
        """Return which samples a filter lets through."""
        mask = np.ones(self.size, bool)
        for name, value in wanted.slices:
            mask &= self.members(name, value)
        for metric, low, high in wanted.ranges:
            values = self.column(metric)
            mask &= (values >= low) & (values <= high)  # False for NaN: not measured is in no range
        if wanted.failed:
            mask &= self.error_codes >= 0
        if wanted.error is not None:
            mask &= self.error_codes == wanted.error
        if wanted.gold_missed:
            mask &= self.gold_missed
        if wanted.words:
            mask &= self._with_words(wanted.words)
        return mask

    def page(
        self, mask: NDArray[np.bool_], metric: str | None, *, after: int | None = None, count: int = 50
    ) -> Page:
        """Return the next samples of a filter, worst first; in the order of the dataset without a metric.

        `after` is the place of the last sample that was shown: a page is the same whatever was shown before.
        """
        order, rank = self._order(metric)
        shown = mask[order]
        places = order[shown]
        start = 0 if after is None else int(np.count_nonzero(shown[: rank[after] + 1]))
        before = int(places[start - count - 1]) if start > count else None
        return Page(places[start : start + count].tolist(), len(places), start, before)

    def neighbours(
        self, mask: NDArray[np.bool_], metric: str | None, place: int
    ) -> tuple[int, int | None, int | None]:
        """Return how many samples of a filter come before one, and the samples before and after it."""
        order, rank = self._order(metric)
        shown = mask[order]
        places = order[shown]
        at = int(np.count_nonzero(shown[: rank[place]]))
        after = at + int(mask[place])
        return (
            at,
            int(places[at - 1]) if at else None,
            int(places[after]) if after < len(places) else None,
        )

    def rows(self, places: Sequence[int]) -> list[Row]:
        """Return the rows of samples, in this order."""
        marks = ",".join("?" * len(places))
        # The marks are question marks only; the places are parameters.
        query = f"SELECT n, id, query, answer FROM sample WHERE n IN ({marks})"  # noqa: S608
        rows = {row[0]: Row(*row) for row in self._select(query, places)}
        return [rows[place] for place in places]

    def place_of(self, sample_id: str) -> int:
        """Return the place of a sample by its id."""
        rows = self._select("SELECT n FROM sample WHERE id = ?", [sample_id])
        if not rows:
            raise UnknownNameError(f"there is no sample {sample_id!r:.80} in this run")
        return int(rows[0][0])

    @cached_property
    def ids(self) -> list[str]:
        """Return the id of each sample."""
        return [name for (name,) in self._select("SELECT id FROM sample ORDER BY n", [])]

    def sample(self, place: int) -> tuple[EvaluationSample, SystemOutputs]:
        """Return one sample with its output, from the files of the run."""
        files = source_files(self.results)
        columns = "id, sample_start, sample_bytes, output_start, output_bytes"
        ((sample_id, *places),) = self._select(f"SELECT {columns} FROM sample WHERE n = ?", [place])  # noqa: S608
        sample = read_sample(
            parse_json(_line(files["samples"], *places[:2]), files["samples"].name), sample_id
        )
        if places[2] < 0:
            return sample, missing_output()
        line = _line(files["outputs"], *places[2:])
        if files["outputs"].name == JOURNAL:
            record = (record_of(line, run_key(files["outputs"].parent)) or {}).get("output")
        else:
            record = parse_json(line, files["outputs"].name)
        if (
            not isinstance(record, Mapping)
            or sample.sample_id != sample_id
            or record.get("sample_id") != sample_id
        ):
            raise DataError(files["outputs"].name, "it changed while it was read.", fix="Try again.")
        return sample, read_prediction(dict(record), files["outputs"].name)[1]

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def _select(self, query: str, parameters: Sequence[Any]) -> list[Any]:
        with self._lock:
            return self._database.execute(query, parameters).fetchall()

    def _with_words(self, words: str) -> NDArray[np.bool_]:
        """Return which samples have all the words. The last one may be the start of a word."""
        mask = np.zeros(self.size, bool)
        tokens = _WORD.findall(words)[:_MOST_WORDS]
        if tokens:
            # Not below three letters: a thousand words start with one letter, and all would be read.
            query = " ".join(f'"{token}"' for token in tokens) + ("*" if len(tokens[-1]) > 2 else "")
            with suppress(sqlite3.OperationalError):  # letters that SQLite splits and Python does not
                # One text of all numbers: an object for each of 100,000 rows takes five times as long.
                ((found,),) = self._select(
                    "SELECT group_concat(rowid) FROM words WHERE words MATCH ?", [query]
                )
                mask[np.fromstring(found or "", np.intp, sep=",")] = True
        with suppress(UnknownNameError):
            mask[self.place_of(words.strip())] = True
        return mask

    def _order(self, metric: str | None) -> tuple[Places, Places]:
        """Return the places from the worst to the best, and the rank of each place."""
        if metric is None:
            whole = np.arange(self.size)
            return whole, whole
        if metric not in self._orders:
            values = self.column(metric)
            worst = values if self.metrics[metric].higher_is_better else -values
            # A failure is worse than every score; what was skipped comes last.
            worst = np.where(self.has_failed(metric), -np.inf, worst)
            # Half the memory of argsort's own numbers: a run has some ten metrics.
            order = np.argsort(worst, kind="stable").astype(np.int32)
            rank = np.empty(self.size, np.int32)
            rank[order] = np.arange(self.size, dtype=np.int32)
            self._orders[metric] = order, rank
        return self._orders[metric]

    def _data(self, name: str, kind: str) -> NDArray[Any]:
        if name not in self._columns:
            ((content,),) = self._select("SELECT content FROM data WHERE name = ?", [f"{name}\0{kind}"])
            self._columns[name] = np.frombuffer(zlib.decompress(content), kind)
        return self._columns[name]


def _line(path: Path, start: int, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        return file.read(size)
