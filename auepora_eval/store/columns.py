"""Columns of a run: the scores of each metric, and facts about its samples that pages filter by."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import cached_property
from itertools import repeat
from typing import Any
from unicodedata import combining, normalize

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..core.matching import BY_ID, gold_found
from ..core.scores import Note, Scores, as_columns, cluster_of, clusters_or_none, given, is_given
from ..core.types import (
    EvaluationSample,
    MetricResult,
    SystemOutputs,
    gold_documents,
    names_documents,
    retrieved_ids,
)
from ..errors import DataError
from ..read.names import NOT_READ
from .database import Database

MOST_VALUES = 50  # of a field that samples can be sliced by; the values of a sample are bits of 64
SEVERAL = 5  # samples of a value on average; with fewer, a field names pairs or single samples
MOST_ERRORS = 1_000  # groups of failures: some messages name the sample
SHOWN = 200  # characters of a text in a list
_SEARCHED = 4_000  # characters of an answer that are searched
_SCALARS = (str, int, float)  # what a field to slice by may have as values

ScoreRow = tuple[str, bytes, bytes | None, int, bytes | None, str | None]


def score_row(result: MetricResult) -> ScoreRow:
    """Return the row of a metric: 64-bit floats, NaN where nothing was measured, and why."""
    scores = as_columns(result.scores)
    parts = None if scores.parts is None else np.ascontiguousarray(scores.parts, "<f8").tobytes()
    width = 0 if scores.parts is None else scores.parts.shape[1]
    values = np.array(scores.values, "<f8")
    values[list(scores.notes)] = np.nan
    row = (result.name, values.tobytes(), parts, width)
    if not scores.notes and not scores.reasons:
        return *row, None, None
    codes = np.zeros(len(scores), "<i4")  # 0 is "no note", 1 the first of the list
    known: dict[Note, int] = {}
    for place, note in (*scores.notes.items(), *((n, Note(why)) for n, why in scores.reasons.items())):
        codes[place] = known.setdefault(note, len(known) + 1)
    return *row, codes.tobytes(), msgspec.json.encode(list(known)).decode()


def failed_ids(scores: Scores) -> list[str]:
    """Return the samples without a score because the call or the scoring failed."""
    return [scores.sample_ids[place] for place, note in scores.notes.items() if note.failed]


class ScoreColumns:
    """The scores of a stored run, by metric; each column is read when it is needed."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.names = [name for (name,) in database.select("SELECT metric FROM score")]

    @cached_property
    def ids(self) -> list[str]:
        """Return the id of each sample, in order."""
        return [name for (name,) in self._database.stream("SELECT id FROM sample ORDER BY n")]

    @cached_property
    def _clusters(self) -> Any:
        names = self._database.meta("clusters")
        if names is None:
            return None
        self._check_length("the clusters", names)
        return clusters_or_none(self.ids, names)

    def _check_length(self, what: str, column: Sequence[Any] | NDArray[Any]) -> None:
        if len(column) != len(self.ids):
            found = f"{what} are {len(column):,}, and there are {len(self.ids):,} samples."
            raise DataError(self._database.path.name, found, fix="Was it edited? Score the run again.")

    def scores(self, metric: str) -> Scores:
        """Return the scores of a metric; none if it has no score per sample."""
        if metric not in self.names:
            return Scores([], [])
        query = "SELECT value, parts, width, note, notes FROM score WHERE metric = ?"
        ((content, parts, width, codes, notes),) = self._database.select(query, [metric])
        values = np.frombuffer(content, "<f8")
        self._check_length(f"the scores of {metric}", values)
        named: dict[int, Note] = {}
        if codes is not None:
            known = [Note("")] + [Note(*note) for note in msgspec.json.decode(notes)]
            codes = np.frombuffer(codes, "<i4")
            places = np.flatnonzero(codes)
            named = dict(zip(places.tolist(), map(known.__getitem__, codes[places].tolist()), strict=True))
        missing = np.isnan(values)
        scores = Scores(
            self.ids,
            values,
            parts=None if parts is None else np.frombuffer(parts, "<f8").reshape(-1, width),
            notes={place: note for place, note in named.items() if missing[place]},
            reasons={place: note.reason for place, note in named.items() if not missing[place]},
        )
        scores.clusters = self._clusters
        return scores


class Facts:
    """What pages filter and search by, collected while the samples of a run are stored."""

    def __init__(self, match: str = BY_ID) -> None:
        self.match = match  # by what the run compares documents
        self.clusters: list[str | None] = []  # of each sample
        self._fields: dict[str, _Field] = {}
        self._errors: dict[tuple[str, str], int] = {}
        self._error_codes = array("i")
        self._gold_missed = bytearray()
        self._families: dict[str, list[int]] = {}  # of samples that name a cluster or a base question

    def add(self, sample: EvaluationSample, output: SystemOutputs) -> str:
        """Take a further sample; return its text that is searched."""
        place = len(self.clusters)
        cluster = cluster_of(sample) if sample.metadata else None
        self.clusters.append(cluster)
        self._gold_missed.append(_misses_gold(sample, output, self.match))
        self._error_codes.append(self._error_code(output))
        variant_of = given(sample.labels, "variant_of") if cluster is None and sample.labels else cluster
        if variant_of is not None:
            self._families.setdefault(str(variant_of), []).append(place)
        for name, value in sample.labels.items():
            self._add_value(name, value, place)
        for name, value in sample.metadata.items():
            # A label wins over a metadata field of the same name, as in `auepora compare --by`.
            if name != NOT_READ and given(sample.labels, name) is None:
                self._add_value(name, value, place)
        reference = sample.reference_answer.text if sample.reference_answer is not None else ""
        return searched(f"{sample.query}\n{reference}\n{output.response.text[:_SEARCHED]}")

    def _add_value(self, name: str, value: Any, place: int) -> None:
        if not is_given(value):
            return
        field = self._fields.get(name)
        if field is None:
            field = self._fields[name] = _Field()
        if isinstance(value, _SCALARS):
            field.add(place, (value,))
        elif isinstance(value, list) and all(isinstance(each, _SCALARS) for each in value):
            field.add(place, value)

    def _error_code(self, output: SystemOutputs) -> int:
        if output.error is None:
            return -1
        key = (output.error.type, output.error.message[:SHOWN])
        if len(self._errors) >= MOST_ERRORS and key not in self._errors:
            key = (output.error.type, "other messages")
        return self._errors.setdefault(key, len(self._errors))

    def as_meta(self, database: Database) -> dict[str, Any]:
        """Return the columns as they are stored; the database has the samples."""
        kept = {name: field for name, field in self._fields.items() if field.is_slice}
        return {
            "match": self.match,
            "clusters": self.clusters if any(name is not None for name in self.clusters) else None,
            "fields": {name: list(field.codes) for name, field in kept.items()},
            "errors": list(self._errors),
            "column error": np.array(self._error_codes, "<i4").tobytes(),
            "column gold_missed": bytes(self._gold_missed),
            "column family": self._family_column(database),
            **{f"column field {name}": field.column(len(self.clusters)) for name, field in kept.items()},
        }

    def _family_column(self, database: Database) -> bytes:
        """Return which samples are variants of one question: a code for each, -1 for those without."""
        codes = np.full(len(self.clusters), -1, "<i4")
        # The base question itself does not name its family.
        bases = dict(database.select_in("SELECT id, n FROM sample WHERE id", list(self._families)))
        for code, (name, places) in enumerate(self._families.items()):
            members = [*places, bases[name]] if name in bases else places
            if len(members) > 1:
                codes[members] = code
        return codes.tobytes()


def searched(text: str) -> str:
    """Return a text as it is searched: without case and accents."""
    if not text.isascii():
        text = "".join(letter for letter in normalize("NFKD", text) if not combining(letter))
    return text.lower()


class _Field:
    """The values of a label: each sample has the bits of its values."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        self._bits = array("Q")
        self._given = 0  # samples that have a value

    def add(self, place: int, values: Sequence[Any]) -> None:
        if len(self.codes) > MOST_VALUES:
            return  # an id or a text: not something to slice by
        bits = 0
        for value in values:
            code = self.codes.setdefault(str(value), len(self.codes))
            bits |= 1 << code % 64
        self._bits.extend(repeat(0, place - len(self._bits)))  # of the samples before it, which have no value
        self._bits.append(bits)
        self._given += 1

    @property
    def is_slice(self) -> bool:
        """Return whether the field divides the samples into few groups: an id or a text does not."""
        return 1 < len(self.codes) <= min(MOST_VALUES, self._given // SEVERAL)

    def column(self, samples: int) -> bytes:
        """Return the bits of each sample."""
        column = np.zeros(samples, "<u8")
        column[: len(self._bits)] = self._bits
        return column.tobytes()


def _misses_gold(sample: EvaluationSample, output: SystemOutputs, match: str) -> bool:
    """Return whether a gold document was not retrieved; a failed call has retrieved none."""
    if not sample.relevant_docs:
        return False
    if match != BY_ID or not names_documents(output):
        return bool(gold_found(sample, output, match)[1])
    return not {doc.doc_id for doc in gold_documents(sample)}.issubset(retrieved_ids(output.retrieved))
