"""Scores as columns: a million of them fit, and every metric can resample them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from .types import SampleScore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

    Rows = NDArray[np.float64]


def alone(sample_id: str) -> Hashable:
    """The cluster of a sample that shares none."""
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
        import numpy as np

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
        """The columns of scores that are there one by one."""
        scores = list(scores)
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
        """The scores of batches that were scored one after the other."""
        import numpy as np

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
        """The scores at these places, in their order."""
        chosen = Scores(
            [self.sample_ids[place] for place in places],
            self.values[list(places)],
            parts=None if self.parts is None else self.parts[list(places)],
            notes={new: self.notes[place] for new, place in enumerate(places) if place in self.notes},
        )
        if self.clusters is not None:
            chosen.clusters = [self.clusters[place] for place in places]
        return chosen

    def clusters_of_scored(self) -> list[Hashable] | None:
        """The cluster of each row of `rows()`; None where no sample names one."""
        if self.clusters is None:
            return None
        return [cluster for place, cluster in enumerate(self.clusters) if place not in self.notes]

    def rows(self) -> Rows:
        """What was scored, as an array: the value first, its parts behind it."""
        import numpy as np

        scored = ~np.isnan(self.values)
        if self.parts is None:
            return self.values[scored, np.newaxis]
        columns = np.concatenate([self.values[:, np.newaxis], self.parts], axis=1)
        return columns if scored.all() else columns[scored]  # parts are many columns: one copy is enough

    def coverage(self) -> dict[str, int]:
        """How many samples the value stands on, and what became of the others."""
        failed = sum(note.failed for note in self.notes.values())
        return {
            "num_total": len(self),
            "num_samples": len(self) - len(self.notes),
            "num_skipped": len(self.notes) - failed,
            "num_failed": failed,
        }

    def __len__(self) -> int:
        return len(self.sample_ids)

    @overload
    def __getitem__(self, place: int) -> SampleScore: ...
    @overload
    def __getitem__(self, place: slice) -> list[SampleScore]: ...
    def __getitem__(self, place: int | slice) -> SampleScore | list[SampleScore]:
        if isinstance(place, slice):
            return [self[n] for n in range(*place.indices(len(self)))]
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
    """Scores as columns, whichever way they are there."""
    return scores if isinstance(scores, Scores) else Scores.of(scores)


def equally_wide(a: Rows, b: Rows) -> tuple[Rows, Rows]:
    """Two arrays of rows; the narrower gets parts of 0: a failed answer may have parts of its own."""
    import numpy as np

    width = max(a.shape[1], b.shape[1])
    wide_a, wide_b = (
        array if array.shape[1] == width else np.pad(array, ((0, 0), (0, width - array.shape[1])))
        for array in (a, b)
    )
    return wide_a, wide_b
