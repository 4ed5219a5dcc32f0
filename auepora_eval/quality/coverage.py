"""What a build lost since an earlier one, by their manifests.

A drop is judged for each split, task type, document and label by itself: a total that stays the same can
hide that a document is gone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..io.builds.manifest import Manifest

# The share of records that may be lost: a tenth, as seed 000 has it.
MAX_DROP = 0.10
_LISTED = 3  # drops of a kind that are described one by one


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


def drops_in_words(losses: list[Drop]) -> list[str]:
    """Return a sentence for each drop, or one for all drops of a kind if there are many of it."""
    by_kind: dict[str, list[Drop]] = {}
    for drop in losses:
        by_kind.setdefault(drop.kind, []).append(drop)
    sentences: list[str] = []
    for kind, group in by_kind.items():
        if len(group) <= _LISTED:
            sentences += map(str, group)
            continue
        gone = sum(drop.after == 0 for drop in group)
        lost = sum(drop.before - drop.after for drop in group)
        largest = sorted(group, key=lambda drop: drop.after - drop.before)[:_LISTED]
        named = ", ".join(f"{drop.name} ({drop.before} to {drop.after})" for drop in largest)
        sentences.append(
            f"{len(group)} {kind}s have lost records: {gone} are gone, {len(group) - gone} have fewer, "
            f"{lost} records in all. The largest losses: {named}."
        )
    return sentences


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
