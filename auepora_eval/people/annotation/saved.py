"""The labels of people on the disk: `annotations/NAME.jsonl`, to which lines are only added.

A line is on the disk before the next item is shown, so a killed process loses nothing that was saved. Undo is
another line. What a person said is computed from the lines: a torn last line, which nobody was shown as
saved, is dropped.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from ...errors import DataError, StorageError
from ...io.files import file_name
from ...runs.journal.journal import KeptLines, Lines
from ...runs.journal.lock import RunLock, writer_of
from .task import FOLDER, Task

# The same for all files: a person's file may be copied into another copy of the task.
_KEY = b"auepora.annotations/1"
SETTLED = "_settled"  # the decisions of the lead; no person can have a name that starts with _
LONGEST_NOTE = 10_000

Step = Literal["label", "skip", "note", "undo"]


class Said(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a person said about an item: a label, or None for "not sure"."""

    label: str | None
    seconds: float | None = None
    at: str = ""


class PersonLabels(KeptLines):
    """What one person said so far, by their file."""

    def __init__(self, path: Path) -> None:
        self.said: dict[str, Said] = {}
        self.notes: dict[str, str] = {}
        self.skipped: dict[str, None] = {}  # in the order of the skips
        self._done: list[str] = []  # items labelled or skipped, the latest last, for undo
        super().__init__(path, _KEY)

    @property
    def last(self) -> str | None:
        """The item that undo brings back; None if there is nothing to undo."""
        return self._done[-1] if self._done else None

    def take(self, record: Mapping[str, Any]) -> None:
        """Apply one line."""
        item, kind = str(record.get("item", "")), record.get("type")
        if kind == "note":
            self.notes[item] = str(record.get("note", ""))
        elif kind == "undo":
            self._undo(item)
        # A second label of an item replaces the first, and is the one that undo takes back.
        elif kind in ("label", "skip"):
            self._undo(item)
            self._done.append(item)
            if kind == "skip":
                self.skipped[item] = None
            else:
                self.said[item] = msgspec.convert(record["said"], Said)

    def _undo(self, item: str) -> None:
        self.said.pop(item, None)
        self.skipped.pop(item, None)
        if item in self._done:
            self._done.remove(item)

    def rest(self, queue: Collection[str]) -> list[str]:
        """Return the items of a queue that have no label yet; those that were skipped come last."""
        waiting = [item for item in queue if item not in self.said and item not in self.skipped]
        return waiting + [item for item in self.skipped if item in queue]


class LabelFiles:
    """The files of a task's labels, open for writing. Their folder is locked until `close`."""

    def __init__(self, folder: Path, task: Task) -> None:
        self.folder, self._task = folder / FOLDER, task
        # Asked before the lock is taken, whose own message is about runs.
        if who := writer_of(self.folder):
            raise StorageError(f"{folder} is being labelled through {who}. Use its page, or stop it first.")
        self._lock = RunLock(self.folder)
        self._people: dict[str, PersonLabels] = {}
        self._files: dict[str, Lines] = {}
        self._one_at_a_time = threading.RLock()  # a server may have several threads

    def of(self, person: str) -> PersonLabels:
        """Return what a person said so far; DataError if the task has no such person."""
        if person not in self._people:
            self._people[person] = read_labels(self.folder.parent, self._task, person)
        return self._people[person]

    def add(self, person: str, step: Step, item: str, **facts: object) -> None:
        """Write a line. It is on the disk when this returns; StorageError if it cannot be."""
        with self._one_at_a_time:
            labels = self.of(person)
            if person not in self._files:
                known = labels if labels.path.exists() else None
                self._files[person] = Lines(labels.path, self._lock, _KEY, known)
            lines = self._files[person]
            # The disk first, then the memory: a full disk must not leave a label that only this process has.
            lines.wait(lines.put(step, {"item": item, **facts}))
            labels.take({"type": step, "item": item, **facts})

    def label(self, person: str, item: str, said: Said) -> None:
        """Save a label, in place of the one that the item has."""
        self.add(person, "label", item, said=msgspec.to_builtins(said))

    def note(self, person: str, item: str, note: str) -> None:
        """Save a note, in place of the one that the item has."""
        if len(note) > LONGEST_NOTE:
            raise DataError("note", f"it has {len(note):,} characters.", fix=f"Use at most {LONGEST_NOTE:,}.")
        self.add(person, "note", item, note=note)

    def undo(self, person: str) -> str | None:
        """Take back the latest label or skip of a person and return its item; None if there is none."""
        with self._one_at_a_time:
            item = self.of(person).last
            if item is not None:
                self.add(person, "undo", item)
            return item

    def close(self) -> None:
        """Close the files and unlock their folder."""
        for lines in self._files.values():
            lines.close()
        self._lock.release()

    def __enter__(self) -> LabelFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read_labels(folder: Path, task: Task, person: str) -> PersonLabels:
    """Return what a person said so far, without locking anything."""
    if person != SETTLED:
        if person not in task.people:
            raise DataError("annotator", f"{person!r:.60} is not one of {', '.join(task.people)[:200]}.")
        # The task may have been edited by hand: a name must not lead out of the folder.
        file_name(person, "the name of an annotator")
    return PersonLabels(folder / FOLDER / f"{person}.jsonl")


def labels_of_all(folder: Path, task: Task) -> dict[str, PersonLabels]:
    """Return what each person said so far."""
    return {person: read_labels(folder, task, person) for person in task.people}
