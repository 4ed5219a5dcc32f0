"""The batch that metrics score, and its scores as columns, which hold a million samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar, overload

from ..stats.arrays import Array, ArrayLike, np
from .types import Coverage, EvaluationSample, SampleScore, SystemOutputs

# One row per sample: its score first, then what an aggregate needs beside it.
Rows = Array


def alone(sample_id: str) -> Hashable:
    """Return the cluster of a sample that shares none."""
    return ("alone", sample_id)


class Note(NamedTuple):
    """Why a sample has no score: it does not call for this metric, or something failed."""

    reason: str
    failed: bool = False


class Scores(Sequence[SampleScore]):
    """A metric's scores, one a sample; each is a SampleScore when looked at.

    `values` holds NaN where nothing was measured, and `notes` says why at each such place.
    """

    def __init__(
        self,
        sample_ids: Sequence[str],
        values: ArrayLike,
        *,
        parts: ArrayLike | None = None,
        notes: Mapping[int, Note] | None = None,
    ) -> None:
        self.sample_ids = sample_ids
        self.values: Rows = np.asarray(values, dtype=np.float64)
        self.parts: Rows | None = None if parts is None else np.asarray(parts, dtype=np.float64)
        self.notes = dict(notes or {})
        self.clusters: list[Hashable] | None = None
        self.if_failed: tuple[Rows, Rows] | None = None  # what the failed ones could have scored: low, high
        if len(self.values) != len(sample_ids):
            raise ValueError(f"{len(sample_ids)} samples but {len(self.values)} scores")

    @classmethod
    def of(cls, scores: Iterable[SampleScore]) -> Scores:
        """Return the columns of a list of scores."""
        scores = list(scores)
        # A skipped sample has no parts; its row is filled with zeros.
        width = max((len(score.parts) for score in scores), default=0)
        return cls(
            [score.sample_id for score in scores],
            [math.nan if score.value is None else score.value for score in scores],
            parts=[(*score.parts, *([0.0] * (width - len(score.parts)))) for score in scores]
            if width
            else None,
            notes={n: Note(s.reason, s.failed) for n, s in enumerate(scores) if s.value is None},
        )

    @classmethod
    def joined(cls, pieces: Sequence[Scores]) -> Scores:
        """Return the scores of batches that were scored one after the other."""
        notes: dict[int, Note] = {}
        start = 0
        for piece in pieces:
            notes |= {start + place: note for place, note in piece.notes.items()}
            start += len(piece)
        width = max((piece.parts.shape[1] for piece in pieces if piece.parts is not None), default=0)
        # A batch in which nothing was scored has no parts of its own.
        parts = [np.zeros((len(piece), width)) if piece.parts is None else piece.parts for piece in pieces]
        whole = cls(
            [sample_id for piece in pieces for sample_id in piece.sample_ids],
            np.concatenate([piece.values for piece in pieces]) if pieces else [],
            parts=np.concatenate(parts) if width else None,
            notes=notes,
        )
        if any(piece.clusters is not None for piece in pieces):
            whole.clusters = [
                cluster
                for piece in pieces
                for cluster in piece.clusters or [alone(sample_id) for sample_id in piece.sample_ids]
            ]
        failed = [piece.if_failed for piece in pieces if piece.if_failed is not None]
        if failed:
            whole.if_failed = (np.concatenate([f[0] for f in failed]), np.concatenate([f[1] for f in failed]))
        return whole

    def at(self, places: Sequence[int]) -> Scores:
        """Return the scores at these places, in their order."""
        rows = np.array(places, np.intp)
        notes = self.notes  # of few samples, or none
        chosen = Scores(
            [self.sample_ids[place] for place in places],
            self.values[rows],
            parts=None if self.parts is None else self.parts[rows],
            notes={new: notes[place] for new, place in enumerate(places) if place in notes} if notes else {},
        )
        if self.clusters is not None:
            chosen.clusters = [self.clusters[place] for place in places]
        return chosen

    def clusters_of_scored(self) -> list[Hashable] | None:
        """Return the cluster of each row of `rows()`; None where no sample names one."""
        if self.clusters is None:
            return None
        return [cluster for place, cluster in enumerate(self.clusters) if place not in self.notes]

    def rows(self) -> Rows:
        """Return what was scored, as an array: the value first, its parts behind it."""
        scored = ~np.isnan(self.values)
        if self.parts is None:
            return self.values[scored, np.newaxis]
        columns = np.concatenate([self.values[:, np.newaxis], self.parts], axis=1)
        return columns if scored.all() else columns[scored]  # parts are many columns: one copy is enough

    def coverage(self) -> Coverage:
        """Return how many samples the value is based on, and how many were skipped or failed."""
        failed = sum(note.failed for note in self.notes.values())
        skipped = len(self.notes) - failed
        return Coverage(len(self), len(self) - len(self.notes), skipped, failed)

    def __len__(self) -> int:
        return len(self.sample_ids)

    @overload
    def __getitem__(self, place: int) -> SampleScore: ...
    @overload
    def __getitem__(self, place: slice) -> list[SampleScore]: ...
    def __getitem__(self, place: int | slice) -> SampleScore | list[SampleScore]:
        if isinstance(place, slice):
            return [self[n] for n in range(*place.indices(len(self)))]
        # Negative places count from the end, as in a list; IndexError beyond it.
        place = range(len(self))[place]
        note = self.notes.get(place)
        if note is not None:
            return SampleScore(None, note.reason, (), self.sample_ids[place], note.failed)
        parts = () if self.parts is None else tuple(self.parts[place].tolist())
        return SampleScore(float(self.values[place]), "", parts, self.sample_ids[place])

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # equal by content, as a list is

    def __repr__(self) -> str:
        return f"<{len(self)} scores, {len(self) - len(self.notes)} of them measured>"


def as_columns(scores: Sequence[SampleScore]) -> Scores:
    """Return scores as columns, if they are not already."""
    return scores if isinstance(scores, Scores) else Scores.of(scores)


def equally_wide(a: Rows, b: Rows) -> tuple[Rows, Rows]:
    """Return two arrays of rows; the narrower gets parts of 0: a failed answer may have parts of its own."""
    width = max(a.shape[1], b.shape[1])
    wide_a, wide_b = (
        array if array.shape[1] == width else np.pad(array, ((0, 0), (0, width - array.shape[1])))
        for array in (a, b)
    )
    return wide_a, wide_b


T = TypeVar("T")


# Scores that a model was asked for already, by metric and sample.
AskedScores = dict[str, dict[str, SampleScore]]


class Batch:
    """The samples and outputs that a plan's metrics score."""

    def __init__(
        self,
        samples: Sequence[EvaluationSample],
        outputs: Sequence[SystemOutputs],
        asked: AskedScores | None = None,
    ) -> None:
        if len(samples) != len(outputs):
            raise ValueError(f"{len(samples)} samples but {len(outputs)} outputs; pair them first")
        self.samples = samples
        self.outputs = outputs
        self.asked = asked or {}
        self._results: dict[Hashable, Any] = {}

    def __len__(self) -> int:
        return len(self.samples)

    def once(self, compute: Callable[..., T], *arguments: Hashable) -> T:
        """Return compute(batch, *arguments), computed at its first use and shared by all metrics."""
        key = (compute, *arguments)
        if key not in self._results:
            self._results[key] = compute(self, *arguments)
        result: T = self._results[key]
        return result

    def unscorable(self, requires: tuple[str, ...], *, scores_failures: bool = False) -> dict[int, Note]:
        """Return the places that lack a required field (skipped), and those where the system failed."""
        return self.once(_unscorable, requires, scores_failures)

    def sample_ids(self) -> list[str]:
        """Return the id of each sample."""
        return self.once(_sample_ids)

    def clusters(self) -> list[Hashable] | None:
        """Return the cluster of each sample; None where no sample names one."""
        return self.once(_clusters)


def has_field(sample: EvaluationSample, name: str) -> bool:
    """Return whether a sample has a value under "relevant_docs", "labels.scenario", ...; empty is none."""
    first, dot, rest = name.partition(".")
    thing: Any = getattr(sample, first, None)
    for part in rest.split(".") if dot else ():
        thing = thing.get(part) if isinstance(thing, dict) else getattr(thing, part, None)
    return bool(thing) or (thing is not None and not isinstance(thing, list | dict | str))


def is_unanswerable(sample: EvaluationSample) -> bool:
    """Return whether a sample is labelled as a question that the documents do not answer."""
    labels = sample.labels
    return labels.get("answerable") is False or labels.get("scenario") == "unanswerable"


def _unscorable(batch: Batch, requires: tuple[str, ...], scores_failures: bool) -> dict[int, Note]:
    notes = {
        place: Note(f"{output.error.type}: {output.error.message}", failed=True)
        for place, output in enumerate(batch.outputs)
        if output.error is not None and not scores_failures
    }
    # Reversed, so that the first missing field is the one in the note.
    for name in reversed(requires):
        note = Note(f"the sample has no {name}")
        lacking = [n for n, sample in enumerate(batch.samples) if not has_field(sample, name)]
        # A missing field replaces a failure: no metric loses a sample that it does not apply to.
        notes.update(dict.fromkeys(lacking, note))
    return notes


def _sample_ids(batch: Batch) -> list[str]:
    return [sample.sample_id for sample in batch.samples]


def _clusters(batch: Batch) -> list[Hashable] | None:
    return cluster_names(batch.samples)


def cluster_names(samples: Sequence[EvaluationSample]) -> list[Hashable] | None:
    """Return the cluster of each sample: its `metadata["cluster"]`, or itself; None where none has one."""
    # Most datasets have no clusters: None spares a list of a million names.
    if not any("cluster" in sample.metadata for sample in samples):
        return None
    return [
        str(sample.metadata["cluster"]) if "cluster" in sample.metadata else alone(sample.sample_id)
        for sample in samples
    ]


def shared_or_none(clusters: list[Hashable] | None) -> list[Hashable] | None:
    """Return the clusters, or None where no two samples share one: then they are independent."""
    return None if clusters is None or len(set(clusters)) == len(clusters) else clusters
