"""What a build counts: every record of the source once, and what the records of the splits are about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..io.manifest import Coverage

OTHERS = "(others)"
_MAX_NAMES = 10_000
_MAX_VALUES = 100
_MAX_LENGTH = 200
_NO_LABELS = ("variant_of",)  # these are ids


@dataclass
class BuildCounts:
    """Records by where they went, and records of the splits by type, document and label."""

    records: int = 0
    excluded: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    documents: Counter[str] = field(default_factory=Counter)
    labels: dict[str, Counter[str] | None] = field(default_factory=dict)

    def exclude(self, kind: str) -> None:
        """Count a task whose type has no split."""
        add_name(self.excluded, kind)

    def build(self, metadata: dict[str, Any], sources: Sequence[str]) -> None:
        """Count a record of a split."""
        document = metadata.get("document") or metadata.get("source_path")
        if isinstance(document, str):
            add_name(self.documents, document)
        else:  # the metadata do not say: the documents of its contexts
            for path in {source.partition("#")[0] for source in sources}:
                add_name(self.documents, path)
        labels = metadata.get("labels")
        if isinstance(labels, dict):
            for name, value in labels.items():
                self._add_label(name, value)

    def coverage(self, built: dict[str, int]) -> Coverage:
        """The counts by which a later version is judged, in one order; `built` are the records by type."""
        labels = {
            f"{name}={value}": count
            for name, values in sorted(self.labels.items())
            for value, count in sorted((values or {}).items())
        }
        kinds = Counter(built) + self.excluded
        return Coverage(dict(sorted(kinds.items())), dict(sorted(self.documents.items())), labels)

    def _add_label(self, name: str, value: Any) -> None:
        """A label of a hundred values or more is an id or a measurement, and not counted."""
        if name in _NO_LABELS or not isinstance(value, str | bool | int):
            return
        if name not in self.labels and len(self.labels) >= _MAX_VALUES:
            return
        values = self.labels.setdefault(name[:_MAX_LENGTH], Counter())
        if values is None:
            return
        values[_shown(value)] += 1
        if len(values) > _MAX_VALUES:
            self.labels[name[:_MAX_LENGTH]] = None


def _shown(value: str | bool | int) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)[:_MAX_LENGTH]


def add_name(counts: Counter[str], name: str) -> None:
    """Count a name; beyond ten thousand of them the new ones are counted together."""
    if name not in counts:
        name = name[:_MAX_LENGTH] if len(counts) < _MAX_NAMES else OTHERS
    counts[name] += 1
