"""Is a new version quietly smaller? What went missing against an earlier manifest, and what to read first.

A drop is judged for each split, task type, document and label by itself: a total that stays the same can
hide that a document is gone.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..core.types import Document, EvaluationSample, Response
from ..io.manifest import Manifest
from ..io.split_records import SplitRecord, asked_and_expected
from ..io.splits import read_split
from .quality_answers import reference_support

MAX_DROP = 0.10


@dataclass(frozen=True)
class Drop:
    """Something of which there are fewer records than before."""

    kind: str
    name: str
    before: int
    after: int

    @property
    def share(self) -> float:
        """The share that is gone."""
        return (self.before - self.after) / self.before

    def __str__(self) -> str:
        gone = "gone" if not self.after else f"{self.share:.0%} fewer"
        return f"{self.kind} {self.name}: {gone}, {self.after} records after {self.before}."


def drops(before: Manifest, after: Manifest, max_drop: float = MAX_DROP) -> list[Drop]:
    """Whatever lost more than that share of its records, the greatest losses first."""
    found = [
        Drop(kind, name, old, new.get(name, 0))
        for kind, earlier, new in _compared(before, after)
        for name, old in earlier.items()
        if old > 0 and (old - new.get(name, 0)) / old > max_drop
    ]
    return sorted(found, key=lambda drop: (-drop.share, -drop.before, drop.kind, drop.name))


def _compared(before: Manifest, after: Manifest) -> Iterator[tuple[str, dict[str, int], dict[str, int]]]:
    old, new = ({name: split.count for name, split in each.splits.items()} for each in (before, after))
    yield "split", old, new
    if before.coverage.task_types:  # a manifest that only has counts can be compared by these alone
        yield "task type", before.coverage.task_types, after.coverage.task_types
    yield "document", before.coverage.documents, after.coverage.documents
    yield "label", before.coverage.labels, after.coverage.labels


@dataclass(frozen=True)
class SpotCheck:
    """A record to read: does the reference say what the contexts say?

    `support` is the share of the reference's words that stand in its contexts; None where words cannot
    tell, as for yes or no.
    """

    task_id: str
    question: str
    reference: str
    contexts: tuple[str, ...]
    sources: tuple[str, ...]
    support: float | None
    missing: tuple[str, ...]


def spot_checks(split: Path, count: int = 5, *, seed: int = 0) -> list[SpotCheck]:
    """A seeded choice of a split's records, those with the least support first."""
    chance = random.Random(seed)  # noqa: S311 - a spot check
    chosen: list[SplitRecord] = []
    for place, (_, record) in enumerate(read_split(split)):
        if len(chosen) < count:
            chosen.append(record)
        elif (slot := chance.randrange(place + 1)) < count:
            chosen[slot] = record
    looked_at = [_spot_check(record) for record in chosen]
    return sorted(looked_at, key=lambda check: (check.support is None, check.support or 0.0, check.task_id))


def _spot_check(record: SplitRecord) -> SpotCheck:
    asked, expected = asked_and_expected(type(record))
    shown = [Document(source, text) for source, text in zip(record.sources, record.contexts, strict=True)]
    sample = EvaluationSample(
        record.task_id,
        getattr(record, asked),
        relevant_docs=shown or None,
        reference_answer=Response(getattr(record, expected)),
    )
    support = reference_support(sample, 1)
    return SpotCheck(
        record.task_id,
        sample.query,
        getattr(record, expected),
        tuple(record.contexts),
        tuple(record.sources),
        None if support is None else support.share,
        () if support is None else tuple(support.missing),
    )
