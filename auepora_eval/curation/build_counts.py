"""What a build counts: every record of the source once, and what the records of the splits are about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..io.manifest import OTHERS, Coverage

_MAX_TYPES = 10_000
_MAX_DOCUMENTS = 1_000_000  # their names must fit into a manifest that can be read
_MAX_LABELS = _MAX_VALUES = 1000
_MAX_LENGTH = 200
_NO_LABELS = ("variant_of", "true_answer", "fake_answer")  # ids and texts, another one in every record


@dataclass
class BuildCounts:
    """Records by where they went, and records of the splits by type, document and label.

    What has too many names to be counted is not counted at all, and said to be so: to count those that
    happen to come first would look like a loss when the order changes.
    """

    records: int = 0
    excluded: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    documents: Counter[str] = field(default_factory=Counter)
    labels: dict[str, Counter[str]] = field(default_factory=dict)
    not_counted: set[str] = field(default_factory=set)

    def exclude(self, kind: str) -> None:
        """Count a task whose type has no split; beyond ten thousand types the new ones together."""
        name = kind[:_MAX_LENGTH]
        if name not in self.excluded and len(self.excluded) >= _MAX_TYPES:
            name = OTHERS
            self.not_counted.add("task_types")
        self.excluded[name] += 1

    def build(self, metadata: dict[str, Any], sources: Sequence[str]) -> None:
        """Count a record of a split."""
        document = metadata.get("document") or metadata.get("source_path")
        if isinstance(document, str):
            self.documents[document[:_MAX_LENGTH]] += 1
        else:  # the metadata do not say: the documents of its contexts
            self.documents.update({source.partition("#page=")[0][:_MAX_LENGTH] for source in sources})
        if len(self.documents) > _MAX_DOCUMENTS:
            self.not_counted.add("documents")
            self.documents.clear()
        labels = metadata.get("labels")
        if isinstance(labels, dict):
            for name, value in labels.items():
                if name not in _NO_LABELS and value is not None:
                    self._add_label(name[:_MAX_LENGTH], value)

    def coverage(self, built: dict[str, int]) -> Coverage:
        """The counts by which a later version is judged, in one order; `built` are the records by type."""
        none = self.not_counted
        kinds = Counter(built) + (Counter() if "task_types" in none else self.excluded)
        documents = {} if "documents" in none else dict(sorted(self.documents.items()))
        labels = {
            f"{name}={value}": count
            for name, values in sorted(self.labels.items())
            if "labels" not in none and f"labels.{name}" not in none
            for value, count in sorted(values.items())
        }
        return Coverage(dict(sorted(kinds.items())), documents, labels, sorted(none))

    def _add_label(self, name: str, value: Any) -> None:
        """Count a label; the entries of a list each. One of too many values is an id or a measurement."""
        if name not in self.labels and len(self.labels) >= _MAX_LABELS:
            self.not_counted.add("labels")
            return
        values = self.labels.setdefault(name, Counter())
        entries = value if isinstance(value, list) else [value]
        if not all(isinstance(entry, str | bool | int | float) for entry in entries):
            self.not_counted.add(f"labels.{name}")
            return
        values.update({_shown(entry) for entry in entries})
        if len(values) > _MAX_VALUES:
            self.not_counted.add(f"labels.{name}")
            values.clear()


def _shown(value: str | bool | int | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)[:_MAX_LENGTH]
