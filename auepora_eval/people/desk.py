"""A task in use: which item a person sees next, and what becomes of the keys that they press."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ..errors import DataError
from .labels import SETTLED, PersonLabels, Said, read_labels
from .results import GROUND_TRUTH, LABELS_FILE, Progress, export, progress_of
from .task import Item, is_swapped, queue_of, read_task

NOT_SURE, SKIP, UNDO, NOTE = "0", "skip", "undo", "note"
_SHOWN_PAIRS = ("A is better", "B is better", "equally good")


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
    """A task that people work on; `clock` returns seconds."""

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.folder = folder
        self.task, self.items = read_task(folder)
        self._labels: dict[str, PersonLabels] = {}
        self._by_id = {item.item_id: item for item in self.items}
        # As keys of a dictionary: in order, and found at once.
        self._queues = {
            person: dict.fromkeys(queue_of(self.task, self.items, person)) for person in self.task.people
        }
        self._clock = clock
        self._since: dict[str, tuple[str, float]] = {}  # by person: the item that is shown, and since when

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
        """Return the item to show; None if the person has finished. Its time runs from now."""
        rest = self.labels(person).rest(self._queue(person))
        if not rest:
            self._since.pop(person, None)
            return None
        item = self._by_id[rest[0]]
        # Loading the page again must not restart the time of an item.
        if self._since.get(person, ("", 0.0))[0] != item.item_id:
            self._since[person] = (item.item_id, self._clock())
        texts = (item.text, item.second)
        first, second = reversed(texts) if is_swapped(self.task, person, item.item_id) else texts
        labels = self.labels(person)
        note = labels.notes.get(item.item_id, "")
        return Shown(item, first, second, note, self.progress(person), labels.last_item is not None)

    def progress(self, person: str) -> Progress:
        """Return how far a person is."""
        return progress_of(person, self._queue(person).keys(), self.labels(person))

    def press(self, person: str, item_id: str, key: str, note: str | None = None) -> None:
        """Save what a key means for an item, and the note if it has changed; both are then on the disk.

        Keys are 1 to 9 for the labels in their order, 0 for "not sure", and `skip`, `undo`, `note`.
        """
        if item_id not in self._queue(person):
            raise DataError(
                "item", f"{item_id!r:.40} is not in the queue of {person}.", fix="Load the page again."
            )
        name = None if key in (NOT_SURE, SKIP, UNDO, NOTE) else self._label(person, item_id, key)
        labels = self.labels(person)
        # The note first: if it is refused, no label is saved either, and the item is still shown.
        if note is not None and note != labels.notes.get(item_id, ""):
            labels.note(item_id, note)
        if key == UNDO:
            labels.take_back()
        elif key == SKIP:
            labels.skip(item_id)
        elif key != NOTE:
            labels.label(item_id, Said(name, self._seconds(person, item_id), _now()))
        # A person's last label writes the files, so that nobody has to remember an export.
        if key not in (SKIP, UNDO, NOTE) and not labels.rest(self._queue(person)):
            self.write_labels()

    def settle(self, item_id: str, key: str) -> None:
        """Save the decision of the lead on an item."""
        if item_id not in self._by_id:
            raise DataError("item", f"there is no item {item_id!r:.40}.", fix="Load the page again.")
        self.labels(SETTLED).label(item_id, Said(self._label("", item_id, key), at=_now()))

    def write_labels(self) -> bool:
        """Write labels.jsonl and labels.gt.json into the folder of the task; False if there are no labels."""
        with suppress(DataError):  # there are no labels yet
            for name in (LABELS_FILE, GROUND_TRUTH):
                export(self.folder, self.folder / name, force=True)
            return True
        return False

    def close(self) -> None:
        """Close the files."""
        for labels in self._labels.values():
            labels.close()

    def __enter__(self) -> Desk:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _queue(self, person: str) -> dict[str, None]:
        if person not in self._queues:
            raise DataError("annotator", f"{person!r:.60} is not one of {', '.join(self.task.people)[:200]}.")
        return self._queues[person]

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

    def _seconds(self, person: str, item_id: str) -> float | None:
        shown, since = self._since.pop(person, ("", 0.0))
        # Another tab may have shown another item since: a time that is not known is not stored.
        return round(self._clock() - since, 1) if shown == item_id else None


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
