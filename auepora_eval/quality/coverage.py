"""Is a new version quietly smaller? What went missing against an earlier manifest, and what to read first.

A drop is judged for each split, task type, document and label by itself: a total that stays the same can
hide that a document is gone.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ..core.types import Document, EvaluationSample, Response
from ..io.builds.manifest import Manifest
from ..io.builds.splits import read_split
from ..io.builds.tasks import SplitRecord, question_and_reference
from .answers import reference_support

# The share of records that may be lost: a tenth, as seed 000 has it.
MAX_DROP = 0.10
# Records of a split whose support is measured; a million would take minutes.
LOOKED_AT = 2000


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
    losses = [
        Drop(kind, name, old, new.get(name, 0))
        for kind, earlier, new in _compared(before, after)
        for name, old in earlier.items()
        if old > 0 and (old - new.get(name, 0)) / old > max_drop
    ]
    return sorted(losses, key=lambda drop: (-drop.share, -drop.before, drop.kind, drop.name))


def not_compared(before: Manifest, after: Manifest) -> list[str]:
    """What may have lost records without our knowing: it has too many names to be counted."""
    return sorted({*before.coverage.not_counted, *after.coverage.not_counted})


def _compared(before: Manifest, after: Manifest) -> Iterator[tuple[str, dict[str, int], dict[str, int]]]:
    old, new = ({name: split.count for name, split in each.splits.items()} for each in (before, after))
    yield "split", old, new
    earlier, later = before.coverage, after.coverage
    yield "task type", earlier.task_types, later.task_types
    yield "document", earlier.documents, later.documents
    uncounted = tuple(f"{name.removeprefix('labels.')}=" for name in later.not_counted)
    labels = {name: n for name, n in earlier.labels.items() if not name.startswith(uncounted)}
    yield "label", labels, later.labels


@dataclass(frozen=True)
class SpotCheck:
    """A record to read: does the reference say what the contexts say?

    `support` is the share of the reference's words that are in its contexts; None where words do
    not show it, as for yes or no. `suspicious` are those with the least of it; the others come by chance.
    """

    task_id: str
    question: str
    reference: str
    contexts: tuple[str, ...]
    sources: tuple[str, ...]
    support: float | None
    missing: tuple[str, ...]
    suspicious: bool = False


def spot_checks(split: Path, count: int = 5, *, seed: int = 0, among: int = LOOKED_AT) -> list[SpotCheck]:
    """The records with the least support, then as many chosen by chance; each once.

    Beyond `among` records a seeded choice of that many is looked at. Variants whose contexts were changed, or
    lack the answer, are unsupported by intent: they come by chance alone.
    """
    chance = random.Random(seed)  # noqa: S311 - a spot check
    # Reservoir sampling: every record has the same chance, and only these are in memory.
    looked_at: list[SplitRecord] = []
    for place, (_, record) in enumerate(read_split(split)):
        if len(looked_at) < among:
            looked_at.append(record)
        elif (slot := chance.randrange(place + 1)) < among:
            looked_at[slot] = record
    chance.shuffle(looked_at)
    checks = [_spot_check(record) for record in looked_at]
    by_chance = checks[:count]
    judged = []
    for place, (check, record) in enumerate(zip(checks, looked_at, strict=True)):
        labels = record.metadata.get("labels")
        labels = labels if isinstance(labels, dict) else {}
        by_intent = labels.get("scenario") == "counterfactual" or labels.get("answerable") is False
        if check.support is not None and not by_intent:
            judged.append((check.support, check.task_id, place))
    worst = [replace(checks[place], suspicious=True) for _, _, place in sorted(judged)[:count]]
    chosen = {check.task_id for check in worst}
    return [*worst, *(check for check in by_chance if check.task_id not in chosen)]


def _spot_check(record: SplitRecord) -> SpotCheck:
    question, reference = (getattr(record, name) for name in question_and_reference(type(record)))
    contexts = [Document(source, text) for source, text in zip(record.sources, record.contexts, strict=True)]
    answer = Response(reference)
    sample = EvaluationSample(record.task_id, question, contexts or None, reference_answer=answer)
    support = reference_support(sample, 1)
    return SpotCheck(
        record.task_id,
        question,
        reference,
        tuple(record.contexts),
        tuple(record.sources),
        None if support is None else support.share,
        () if support is None else tuple(support.missing),
    )
