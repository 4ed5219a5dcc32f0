"""The samples of a stored run, a page at a time: sorted, filtered and searched without reading all of them.

Scores are columns, so a page is sorted by numpy, and only its fifty samples are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..core.scores import Scores
from ..core.types import EvaluationRun, EvaluationSample, MetricResult, SampleScore, SystemOutputs
from ..errors import UnknownNameError
from ..io.results.document import results_to_run
from .columns import SHOWN, searched
from .database import Database, decoded_output, decoded_sample
from .state import read_results_head
from .storage import StoredRun

_MOST_WORDS = 20

Places = NDArray[np.signedinteger[Any]]  # of samples
T = TypeVar("T")


@dataclass(frozen=True)
class Filter:
    """Which samples to show. Everything that is given must hold."""

    words: str = ""
    slices: tuple[tuple[str, str], ...] = ()  # (field, value)
    ranges: tuple[tuple[str, float, float], ...] = ()  # (metric, lowest, highest)
    failed: bool = False
    gold_missed: bool = False
    error: int | None = None  # a group of failures, by its place in `errors`
    sample_ids: tuple[str, ...] | None = None  # only these


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


class RunSamples:
    """The samples of one stored run. Safe to use from several threads."""

    def __init__(self, results: Path) -> None:
        self.results = results
        self._stored = StoredRun(results)
        self.database: Database = self._stored.whole()
        self._scores = self._stored.columns
        self._kept: dict[str, Any] = {}
        self._orders: dict[str, tuple[Places, Places]] = {}
        self.size: int = self.database.select("SELECT count(*) FROM sample")[0][0]
        # What samples can be sliced by, with the values.
        self.fields: dict[str, list[str]] = self.database.meta("fields")
        self.errors: list[tuple[str, str]] = [(kind, words) for kind, words in self.database.meta("errors")]

    @cached_property
    def _head(self) -> dict[str, Any]:
        return read_results_head(self.results)

    @cached_property
    def digest(self) -> str:
        """Return what changes with the outputs and the values of the run."""
        facts = self._head["metadata"]
        return str(facts["outputs_sha256"])[:16] + str(facts["plan_sha256"])[:16]

    @cached_property
    def run(self) -> EvaluationRun:
        """Return the run without samples, outputs and scores."""
        return results_to_run(self._head, None, [], [], self.results.name)

    def scored(self) -> EvaluationRun:
        """Return the run with its scores, and of its samples only those that failed: enough to compare it."""
        return self._stored.run(texts=False)

    @cached_property
    def metrics(self) -> dict[str, MetricResult]:
        """Return the metrics that have a score per sample, by name, in the order of the plan."""
        return {result.name: result for result in self.run.results if result.name in self._scores.names}

    def _column(self, metric: str) -> Scores:
        if metric not in self._scores.names:
            raise UnknownNameError(f"the run has no scores of {metric!r:.80}")
        return self.once(f"metric {metric}", lambda: self._scores.scores(metric))

    def column(self, metric: str) -> NDArray[np.float64]:
        """Return every score of a metric, NaN where nothing was measured."""
        return self._column(metric).values

    def score(self, metric: str, place: int) -> SampleScore:
        """Return the score of one sample, with the reason if nothing was measured."""
        return self._column(metric)[place]

    def has_failed(self, metric: str) -> NDArray[np.bool_]:
        """Return which samples have no score of a metric because the call or the scoring failed."""
        which = np.zeros(self.size, bool)
        which[[place for place, note in self._column(metric).notes.items() if note.failed]] = True
        return which

    def members(self, name: str, value: str) -> NDArray[np.bool_]:
        """Return which samples are in a slice."""
        if value not in self.fields.get(name, ()):
            raise UnknownNameError(f"no sample has {name!r:.80} = {value!r:.80}")
        column = self._bits(name)
        bit = column.dtype.type(1 << self.fields[name].index(value))
        which: NDArray[np.bool_] = (column & bit) != 0
        return which

    def bits(self, names: Sequence[str]) -> NDArray[np.uint64]:
        """Return which values of these fields each sample has: a row per sample, a bit per value."""
        rows = np.zeros((self.size, len(names)), np.uint64)
        for place, name in enumerate(names):
            rows[:, place] = self._bits(name)
        return rows

    def _bits(self, name: str) -> NDArray[np.unsignedinteger[Any]]:
        def read() -> NDArray[np.unsignedinteger[Any]]:
            # Most fields have few values: a byte for each sample, instead of the eight that are stored.
            kind = np.min_scalar_type((1 << len(self.fields[name])) - 1)
            return np.frombuffer(self.database.meta(f"column field {name}"), "<u8").astype(kind)

        return self.once(f"field {name}", read)

    def slices_of(self, name: str, place: int) -> list[str]:
        """Return the values of a field that a sample has; none if samples are not sliced by it."""
        values = self.fields.get(name, [])
        bits = int(self._bits(name)[place]) if values else 0
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
        if wanted.sample_ids is not None:
            named = np.zeros(self.size, bool)
            named[self._places(wanted.sample_ids)] = True
            mask &= named
        return mask

    def page(
        self,
        mask: NDArray[np.bool_],
        metric: str | None,
        *,
        after: int | None = None,
        count: int = 50,
        best_first: bool = False,
    ) -> Page:
        """Return the next samples of a filter, worst first; in the order of the dataset without a metric.

        `after` is the place of the last sample that was shown: a page is the same whatever was shown before.
        """
        order, rank = self._order(metric, best_first=best_first)
        shown = mask[order]
        places = order[shown]
        start = 0 if after is None else int(np.count_nonzero(shown[: rank[after] + 1]))
        before = int(places[start - count - 1]) if start > count else None
        return Page(places[start : start + count].tolist(), len(places), start, before)

    def neighbours(
        self, mask: NDArray[np.bool_], metric: str | None, place: int, *, best_first: bool = False
    ) -> tuple[int, int | None, int | None]:
        """Return how many samples of a filter come before one, and the samples before and after it."""
        order, rank = self._order(metric, best_first=best_first)
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
        pairs = self.pairs(places)
        return [
            Row(place, sample.sample_id, sample.query[:SHOWN], output.response.text[:SHOWN])
            for place, (sample, output) in zip(places, pairs, strict=True)
        ]

    def place_of(self, sample_id: str) -> int:
        """Return the place of a sample by its id."""
        places = self._places([sample_id])
        if not places:
            raise UnknownNameError(f"there is no sample {sample_id!r:.80} in this run")
        return places[0]

    def _places(self, sample_ids: Sequence[str]) -> list[int]:
        return [n for (n,) in self.database.select_in("SELECT n FROM sample WHERE id", sample_ids)]

    @property
    def ids(self) -> list[str]:
        """Return the id of each sample."""
        return self._scores.ids

    def sample(self, place: int) -> tuple[EvaluationSample, SystemOutputs]:
        """Return one sample with its output."""
        return self.pairs([place])[0]

    def pairs(self, places: Sequence[int]) -> list[tuple[EvaluationSample, SystemOutputs]]:
        """Return samples with their outputs, in this order."""
        query = "SELECT s.n, s.record, c.reply FROM sample s JOIN call c ON c.n = s.answer WHERE s.n"
        name = self.database.path.name
        found = {
            n: (decoded_sample(record, name), decoded_output(reply, name))
            for n, record, reply in self.database.select_in(query, places)
        }
        return [found[place] for place in places]

    def named(self, sample_ids: Iterable[str]) -> dict[str, tuple[EvaluationSample, SystemOutputs]]:
        """Return the samples of these ids with their outputs, by id; those that the run has."""
        pairs = self.pairs(self._places(list(sample_ids)))
        return {sample.sample_id: (sample, output) for sample, output in pairs}

    def close(self) -> None:
        """Close the file."""
        self.database.close()

    def __enter__(self) -> RunSamples:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _with_words(self, words: str) -> NDArray[np.bool_]:
        """Return which samples have all the words, anywhere in question, reference and answer."""
        mask = np.zeros(self.size, bool)
        tokens = searched(words).split()[:_MOST_WORDS]
        if tokens:
            has_all = " AND ".join(["instr(words, ?)"] * len(tokens))
            # One text of all numbers: an object for each of 100,000 rows takes five times as long.
            query = f"SELECT group_concat(n) FROM text WHERE {has_all}"  # noqa: S608 - question marks only
            ((found,),) = self.database.select(query, tokens)
            mask[np.fromstring(found or "", np.intp, sep=",")] = True
        mask[self._places([words.strip()])] = True
        return mask

    def _order(self, metric: str | None, *, best_first: bool = False) -> tuple[Places, Places]:
        """Return the places from the worst to the best, or the other way, and the rank of each place."""
        if best_first:
            order, rank = self._order(metric)
            return order[::-1], self.size - 1 - rank
        if metric is None:
            whole = np.arange(self.size)
            return whole, whole
        if metric not in self._orders:
            values = self.column(metric)
            worst = values if self.metrics[metric].higher_is_better else -values
            # A failure is worse than every score; what was skipped comes last.
            self.add_order(metric, np.where(self.has_failed(metric), -np.inf, worst))
        return self._orders[metric]

    def add_order(self, name: str, values: NDArray[np.float64]) -> None:
        """Let `page` sort by other values than the scores of a metric: the smallest first, NaN last."""
        # Half the memory of argsort's own numbers: a run has some ten metrics.
        order = np.argsort(values, kind="stable").astype(np.int32)
        rank = np.empty(self.size, np.int32)
        rank[order] = np.arange(self.size, dtype=np.int32)
        self._orders[name] = order, rank

    def _data(self, name: str, kind: str) -> NDArray[Any]:
        column: NDArray[Any] = self.once(
            name, lambda: np.frombuffer(self.database.meta(f"column {name}"), kind)
        )
        return column

    def once(self, name: str, read: Callable[[], T]) -> T:
        """Return what was read under a name, or read it."""
        if name not in self._kept:
            self._kept[name] = read()
        kept: T = self._kept[name]
        return kept


def stamp(path: Path) -> tuple[int, int]:
    """Return the size and time of a file: what a reader compares before it trusts what it has read."""
    facts = path.stat()
    return facts.st_size, facts.st_mtime_ns
