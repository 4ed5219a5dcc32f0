"""The batch that metrics score, and its scores as columns, which hold a million samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, TypeVar, overload

import numpy as np

from ..errors import AueporaError, PlanError
from ..stats.arrays import Array, ArrayLike
from .types import (
    DOCUMENTS_GIVEN,
    Coverage,
    Document,
    EvaluationSample,
    SampleScore,
    SystemOutputs,
)

# One row per sample: its score first, then what an aggregate needs beside it.
Rows = Array


def alone(sample_id: str) -> Hashable:
    """Return the cluster of a sample that shares none."""
    return ("alone", sample_id)


class Note(NamedTuple):
    """Why a sample has no score: it does not call for this metric, or something failed.

    What failed is the system, or the metric (`of_metric`): then nothing is known of the system.
    """

    reason: str
    failed: bool = False
    of_metric: bool = False


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
        reasons: Mapping[int, str] | None = None,
    ) -> None:
        self.sample_ids = sample_ids
        self.values: Rows = np.asarray(values, dtype=np.float64)
        self.parts: Rows | None = None if parts is None else np.asarray(parts, dtype=np.float64)
        self.notes = dict(notes or {})
        self.reasons = dict(reasons or {})  # of scores that need one, such as the 0 of a refusal
        self.clusters: list[Hashable] | None = None
        self.if_failed: tuple[Rows, Rows] | None = None  # what the failed ones could have scored: low, high
        if len(self.values) != len(sample_ids):
            raise ValueError(f"{len(sample_ids)} samples but {len(self.values)} scores")

    @classmethod
    def of(cls, scores: Iterable[float | SampleScore]) -> Scores:
        """Return the columns of a list of scores; a plain number has no id, parts or reason."""
        scores = list(scores)
        ids = [""] * len(scores)
        values: list[Any] = list(scores)
        parts: dict[int, tuple[float, ...]] = {}
        notes: dict[int, Note] = {}
        reasons: dict[int, str] = {}
        for place, score in enumerate(scores):
            if not isinstance(score, SampleScore):
                continue
            ids[place], values[place] = score.sample_id, math.nan if score.value is None else score.value
            if score.parts:
                parts[place] = score.parts
            if score.value is None:
                notes[place] = Note(score.reason, score.failed, score.of_metric)
            elif score.reason:
                reasons[place] = score.reason
        columns = None
        if parts:
            # A skipped sample has no parts; its row is filled with zeros.
            columns = np.zeros((len(scores), max(map(len, parts.values()))))
            for place, row in parts.items():
                columns[place, : len(row)] = row
        return cls(ids, values, parts=columns, notes=notes, reasons=reasons)

    @classmethod
    def joined(cls, pieces: Sequence[Scores]) -> Scores:
        """Return the scores of batches that were scored one after the other."""
        notes: dict[int, Note] = {}
        reasons: dict[int, str] = {}
        start = 0
        for piece in pieces:
            notes |= {start + place: note for place, note in piece.notes.items()}
            reasons |= {start + place: reason for place, reason in piece.reasons.items()}
            start += len(piece)
        width = max((piece.parts.shape[1] for piece in pieces if piece.parts is not None), default=0)
        # A batch in which nothing was scored has no parts of its own.
        parts = [np.zeros((len(piece), width)) if piece.parts is None else piece.parts for piece in pieces]
        whole = cls(
            [sample_id for piece in pieces for sample_id in piece.sample_ids],
            np.concatenate([piece.values for piece in pieces]) if pieces else [],
            parts=np.concatenate(parts) if width else None,
            notes=notes,
            reasons=reasons,
        )
        if any(piece.clusters is not None for piece in pieces):
            whole.clusters = [
                cluster
                for piece in pieces
                for cluster in piece.clusters or [alone(sample_id) for sample_id in piece.sample_ids]
            ]
        failed = [piece.if_failed for piece in pieces if piece.if_failed is not None]
        if failed:
            low, high = (np.concatenate(equally_wide(*rows)) for rows in zip(*failed, strict=True))
            whole.if_failed = (low, high)
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
            reasons={new: self.reasons[place] for new, place in enumerate(places) if place in self.reasons},
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
            return SampleScore(None, note.reason, (), self.sample_ids[place], note.failed, note.of_metric)
        parts = () if self.parts is None else tuple(self.parts[place].tolist())
        reason = self.reasons.get(place, "")
        return SampleScore(float(self.values[place]), reason, parts, self.sample_ids[place])

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # equal by content, as a list is

    def __repr__(self) -> str:
        return f"<{len(self)} scores, {len(self) - len(self.notes)} of them measured>"


def as_columns(scores: Sequence[SampleScore]) -> Scores:
    """Return scores as columns, if they are not already."""
    return scores if isinstance(scores, Scores) else Scores.of(scores)


def equally_wide(*arrays: Rows) -> list[Rows]:
    """Return arrays of rows; the narrower get parts of 0, as a failed answer may have other parts."""
    width = max(array.shape[1] for array in arrays)
    return [
        array if array.shape[1] == width else np.pad(array, ((0, 0), (0, width - array.shape[1])))
        for array in arrays
    ]


T = TypeVar("T")


class Batch:
    """The samples and outputs that a plan's metrics score."""

    def __init__(self, samples: Sequence[EvaluationSample], outputs: Sequence[SystemOutputs]) -> None:
        if len(samples) != len(outputs):
            raise ValueError(f"{len(samples)} samples but {len(outputs)} outputs; pair them first")
        self.samples = samples
        self.outputs = outputs
        self.sample_ids = [sample.sample_id for sample in samples]
        self.clusters = cluster_names(samples)
        self._results: dict[Hashable, Any] = {}

    @classmethod
    def of(cls, pairs: Sequence[tuple[EvaluationSample, SystemOutputs]]) -> Batch:
        """Return the batch of samples with their outputs."""
        return cls([sample for sample, _ in pairs], [output for _, output in pairs])

    def __len__(self) -> int:
        return len(self.samples)

    def once(self, compute: Callable[..., T], *arguments: Hashable) -> T:
        """Return compute(batch, *arguments), computed at its first use and shared by all metrics."""
        key = (compute, *arguments)
        if key not in self._results:
            self._results[key] = compute(self, *arguments)
        result: T = self._results[key]
        return result


_SIZED = (str, list, dict)  # a union would be made again at each call


def is_given(value: object) -> bool:
    """Return whether a field says something: null, NaN, "" and empty lists mean "not given"."""
    if isinstance(value, float):
        return not math.isnan(value)
    return value is not None and not (isinstance(value, _SIZED) and not value)


def given(fields: Mapping[str, Any], name: str) -> Any:
    """Return a field of metadata or labels; None if it is missing or not given."""
    value = fields.get(name)
    return value if is_given(value) else None


def has_field(sample: EvaluationSample, name: str) -> bool:
    """Return whether a sample has a value under "relevant_docs", "labels.scenario", ...; empty is none."""
    first, dot, rest = name.partition(".")
    thing: Any = getattr(sample, first, None)
    for part in rest.split(".") if dot else ():
        thing = thing.get(part) if isinstance(thing, dict) else getattr(thing, part, None)
    return is_given(thing)


def is_unanswerable(sample: EvaluationSample) -> bool:
    """Return whether a sample is labelled as a question that the documents do not answer."""
    labels = sample.labels
    return labels.get("answerable") is False or labels.get("scenario") == "unanswerable"


# A sample may bring the documents that it must be answered from, such as noise or a false document. A system
# that searches its own index never sees them, and its answer then says nothing about them.

NOT_GIVEN = "the system was not given this sample's documents"


def given_documents(sample: EvaluationSample) -> list[Document]:
    """Return the documents that a sample must be answered from (`metadata.closed_context`), or none."""
    return list(sample.candidate_docs or ()) if sample.metadata.get("closed_context") is True else []


def saw_documents(sample: EvaluationSample, output: SystemOutputs) -> bool:
    """Return whether an answer is from the documents that its sample brings, if it brings some.

    Whether a failed call would have used them is not known: it stays a failure.

    The run marks outputs of systems that it has given the documents. Others show it by what they retrieved:
    a system that searched more, and found none but these, would have found the same among them.
    """
    documents = given_documents(sample)
    if not documents or output.error is not None or output.extra.get(DOCUMENTS_GIVEN) is True:
        return True
    ids, texts = {doc.doc_id for doc in documents}, {spaced(doc.text) for doc in documents} - {""}
    hits = [(hit.doc.doc_id, spaced(hit.doc.text)) for hit in output.retrieved]
    # An edited document may have the id of the original: where both have a text, the text decides.
    return bool(hits) and all(text in texts if text and texts else doc_id in ids for doc_id, text in hits)


def spaced(text: str) -> str:
    """Return a text with single spaces: loaders and splitters change white space, and no meaning."""
    return " ".join(text.split())


def lacking_or_failed(batch: Batch, requires: tuple[str, ...], scores_failures: bool) -> dict[int, Note]:
    """Return the places that lack a required field (skipped), and those where the system failed."""
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


def failed_or_given(batch: Batch) -> list[int]:
    """Return the places where the call failed, or the system was given its sample's own documents."""
    return [
        place
        for place, output in enumerate(batch.outputs)
        if output.error is not None or output.extra.get(DOCUMENTS_GIVEN) is True
    ]


def cluster_of(sample: EvaluationSample) -> str | None:
    """Return the cluster that a sample names in `metadata["cluster"]`; None if it is in none."""
    cluster = given(sample.metadata, "cluster")
    return None if cluster is None else str(cluster)


def cluster_names(samples: Sequence[EvaluationSample]) -> list[Hashable] | None:
    """Return the cluster of each sample: its `metadata["cluster"]`, or itself; None where none has one."""
    return clusters_or_none([sample.sample_id for sample in samples], [cluster_of(one) for one in samples])


def clusters_or_none(sample_ids: Sequence[str], names: Sequence[str | None]) -> list[Hashable] | None:
    """Return the cluster of each sample: the one it names, or itself; None where no sample names one."""
    if not any(name is not None for name in names):
        return None
    return [alone(id_) if name is None else name for id_, name in zip(sample_ids, names, strict=True)]


def shared_or_none(clusters: list[Hashable] | None) -> list[Hashable] | None:
    """Return the clusters, or None where no two samples share one: then they are independent."""
    return None if clusters is None or len(set(clusters)) == len(clusters) else clusters


def raise_fault(metric: Any, error: Exception, sample_id: str = "", what: str = "") -> NoReturn:
    """End scoring: name the metric that failed, the sample, and the place in the user's file."""
    if isinstance(error, AueporaError) or type(metric).__module__.startswith("auepora_eval."):
        raise error  # it says what to do, or it is a fault of this library, whose traceback is needed
    from ..calls.keys import without_secrets
    from ..calls.tracebacks import user_place

    on, place = (f" on the sample {sample_id!r:.80}" if sample_id else ""), user_place(error)
    what = what or f"{type(error).__name__}: {error!s:.200}" + (place and f" ({place})")
    raise PlanError(
        f"the metric {metric.name!r} failed{on}: {without_secrets(what)}. Correct it, and score again."
    ) from error


def is_score(thing: object) -> bool:
    """Return whether a metric may return it: a number, or a SampleScore with one or none."""
    value: Any = thing.value if isinstance(thing, SampleScore) else thing
    try:
        return value is None or float(value) is not None
    except (TypeError, ValueError):
        return False
