"""What people said about the items of an annotation task: a file of labels for each person.

So files from several machines can be put into one folder (`store.labels` has the table).
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..store.labels import LabelTable
from .task import FOLDER, Task

SETTLED = "_settled"  # the decisions of the lead; no person can have a name that starts with _
LONGEST_NOTE = 10_000
LABEL, SKIP, NOTE = "label", "skip", "note"  # the questions that an answer is to


class PersonLabels(LabelTable):
    """What one person said about the items of a task."""

    def _of(self, question: str) -> dict[str, Any]:
        return {one.item: one.answer for one in self.answers if one.question == question}

    @property
    def said(self) -> dict[str, str | None]:
        """The label of each item; None is "not sure"."""
        return {item: label for item, (label, _) in self._of(LABEL).items()}

    @property
    def seconds(self) -> dict[str, float]:
        """The time that each label took, where it is known."""
        return {item: time for item, (_, time) in self._of(LABEL).items() if time is not None}

    @property
    def notes(self) -> dict[str, str]:
        """The note on each item."""
        return {item: note for item, note in self._of(NOTE).items() if note}

    @property
    def skipped(self) -> list[str]:
        """The items that were skipped, in the order of the skips."""
        return list(self._of(SKIP))

    def label(self, item: str, label: str | None, seconds: float | None = None) -> None:
        """Save a label and the time that it took, in place of the one that the item has."""
        self.add(item, LABEL, [label, seconds], instead_of=(LABEL, SKIP))

    def skip(self, item: str) -> None:
        """Put an item at the end of the queue."""
        self.add(item, SKIP, instead_of=(LABEL, SKIP))

    def note(self, item: str, note: str) -> None:
        """Save a note, in place of the one that the item has."""
        if len(note) > LONGEST_NOTE:
            raise DataError("note", f"it has {len(note):,} characters.", fix=f"Use at most {LONGEST_NOTE:,}.")
        self.add(item, NOTE, note, instead_of=(NOTE,))

    @property
    def last_item(self) -> str | None:
        """The item that `take_back` brings back; None if there is nothing to take back."""
        latest = self.last((LABEL, SKIP))
        return None if latest is None else latest.item

    def take_back(self) -> str | None:
        """Take back the latest label or skip, and return its item; None if there is none."""
        return self.undo((LABEL, SKIP))

    def rest(self, queue: Collection[str]) -> list[str]:
        """Return the items of a queue that have no label yet; those that were skipped come last."""
        said, skipped = self.said, self.skipped
        waiting = [item for item in queue if item not in said and item not in skipped]
        return waiting + [item for item in skipped if item in queue]


def read_labels(folder: Path, task: Task, person: str) -> PersonLabels:
    """Return what a person said so far; DataError if the task has no such person."""
    if person != SETTLED and person not in task.people:
        raise DataError("annotator", f"{person!r:.60} is not one of {', '.join(task.people)[:200]}.")
    return PersonLabels(folder / FOLDER / f"{person}.db", person)
