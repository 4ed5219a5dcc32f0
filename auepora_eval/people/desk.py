"""A task in use: the item that a person sees next, what a key means, and what everybody has said."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from ..errors import DataError
from .labels import SETTLED, PersonLabels, read_labels
from .task import Item, Label, is_swapped, queue_of, read_task

NOT_SURE, SKIP, UNDO, NOTE = "0", "skip", "undo", "note"
_SHOWN_PAIRS = ("A is better", "B is better", "equally good")


@dataclass(frozen=True)
class Progress:
    """How far a person is. `seconds` is the median time per label; None if nothing was timed."""

    person: str
    labelled: int
    not_sure: int
    skipped: int
    total: int
    seconds: float | None = None

    @property
    def is_finished(self) -> bool:
        """Whether every item of the queue has a label, or a "not sure"."""
        return self.labelled + self.not_sure >= self.total


@dataclass(frozen=True)
class Shown:
    """An item as a person sees it: of a pair, `first` is on the left, whichever run it is of."""

    item: Item
    first: str
    second: str
    note: str
    progress: Progress
    can_undo: bool


class Desk:
    """A task that people work on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.task, self.items = read_task(folder)
        self._by_id = {item.item_id: item for item in self.items}
        self._names = {label.name: label for label in self.task.labels}
        self._labels: dict[str, PersonLabels] = {}
        self._shown: dict[str, tuple[str, float]] = {}  # by person: the item, and since when
        # As keys of a dictionary: in order, and found at once.
        self._queues = {
            person: dict.fromkeys(queue_of(self.task, self.items, person)) for person in self.task.people
        }

    @property
    def label_names(self) -> list[str]:
        """The labels as they are shown, in the order of their keys 1, 2, ...: pairs are shown as A and B."""
        if self.task.kind == "pairs":
            return list(_SHOWN_PAIRS)
        return [label.name for label in self.task.labels]

    def labels(self, person: str) -> PersonLabels:
        """Return what a person said so far; DataError if the task has no such person."""
        if person not in self._labels:
            self._labels[person] = read_labels(self.folder, self.task, person)
        return self._labels[person]

    def next_item(self, person: str) -> Shown | None:
        """Return the item to show; None if the person has finished."""
        labels = self.labels(person)
        rest = labels.rest(self._queues[person])
        if not rest:
            return None
        item = self._by_id[rest[0]]
        # Loading the page again must not restart the time of an item.
        if self._shown.get(person, ("", 0.0))[0] != item.item_id:
            self._shown[person] = (item.item_id, time.monotonic())
        texts = (item.text, item.second)
        first, second = reversed(texts) if is_swapped(self.task, person, item.item_id) else texts
        note = labels.notes.get(item.item_id, "")
        return Shown(item, first, second, note, self.progress(person), labels.last_item is not None)

    def progress(self, person: str) -> Progress:
        """Return how far a person is."""
        labels, queue = self.labels(person), self._queues[person]
        # A file that was copied from another folder may have labels of items that are not in this queue.
        said = [label for item, label in labels.said.items() if item in queue]
        not_sure = said.count(None)
        skipped = sum(item in queue for item in labels.skipped)
        times = [time for item, time in labels.seconds.items() if item in queue]
        seconds = median(times) if times else None
        return Progress(person, len(said) - not_sure, not_sure, skipped, len(queue), seconds)

    def press(self, person: str, item_id: str, key: str, note: str | None = None) -> None:
        """Save what a key means for an item, and the note if it has changed; both are then on the disk.

        Keys are 1 to 9 for the labels in their order, 0 for "not sure", and `skip`, `undo`, `note`.
        """
        labels = self.labels(person)
        if item_id not in self._queues[person]:
            raise DataError(
                "item", f"{item_id!r:.40} is not in the queue of {person}.", fix="Load the page again."
            )
        name = None if key in (NOT_SURE, SKIP, UNDO, NOTE) else self._label(person, item_id, key)
        # The note first: if it is refused, no label is saved either, and the item is still shown.
        if note is not None and note != labels.notes.get(item_id, ""):
            labels.note(item_id, note)
        if key == UNDO:
            labels.take_back()
        elif key == SKIP:
            labels.skip(item_id)
        elif key != NOTE:
            shown, since = self._shown.pop(person, ("", 0.0))
            # Another tab may have shown another item since: a time that is not known is not stored.
            seconds = round(time.monotonic() - since, 1) if shown == item_id else None
            labels.label(item_id, name, seconds)

    def settle(self, item_id: str, key: str) -> None:
        """Save the decision of the lead on an item."""
        if item_id not in self._by_id:
            raise DataError("item", f"there is no item {item_id!r:.40}.", fix="Load the page again.")
        self.labels(SETTLED).label(item_id, self._label("", item_id, key))

    def said(self) -> dict[str, dict[str, Label]]:
        """Return the labels of each item by person; "not sure" is none."""
        said: dict[str, dict[str, Label]] = {item.item_id: {} for item in self.items}
        for person in self.task.people:
            for item_id, name in self.labels(person).said.items():
                if name in self._names and item_id in said:
                    said[item_id][person] = self._names[name]
        return said

    def notes(self, item: Item) -> dict[str, str]:
        """Return the note that each person wrote on an item."""
        notes = {person: self.labels(person).notes.get(item.item_id, "") for person in self.task.people}
        return {person: note for person, note in notes.items() if note}

    def decisions(self) -> dict[str, Label]:
        """Return what the lead decided, by item."""
        said = self.labels(SETTLED).said
        return {item_id: self._names[name] for item_id, name in said.items() if name in self._names}

    def _label(self, person: str, item_id: str, key: str) -> str:
        """Return the name of the label of a key, whichever side its answer was shown on."""
        names = [label.name for label in self.task.labels]
        if not key.isascii() or not key.isdecimal() or not 1 <= int(key) <= len(names):
            raise DataError("key", f"{key!r:.20} is not a label.", fix=f"Use 1 to {len(names)}, or 0.")
        place = int(key) - 1
        # Saved as a label of a run, not of a side. The third label is a tie and has no side; the lead ("") is
        # shown the runs in their own order.
        if place < 2 and person and is_swapped(self.task, person, item_id):
            place = 1 - place
        return names[place]
