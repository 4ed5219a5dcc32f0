"""The labels of people: an item, a question, a person, an answer.

They are rows of a table in an SQLite file, one file per person: files from several machines can be put into
one folder. An answer is on the disk when `add` returns, so a killed process loses nothing that was saved.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..errors import DataError, StorageError
from ..io.files import file_name
from ..store.database import Connection
from .task import FOLDER, Task

SETTLED = "_settled"  # the decisions of the lead; no person can have a name that starts with _
LONGEST_NOTE = 10_000
LABEL, SKIP, NOTE = "label", "skip", "note"
_TABLE = (
    "CREATE TABLE IF NOT EXISTS label (number INTEGER PRIMARY KEY, item TEXT NOT NULL,"
    " question TEXT NOT NULL, person TEXT NOT NULL, answer TEXT NOT NULL)"
)


class Answer(NamedTuple):
    """What a person answered to a question about an item."""

    number: int
    item: str
    question: str
    answer: Any


class LabelTable:
    """The answers in one file, in the order in which they were given."""

    def __init__(self, path: Path, person: str) -> None:
        self.path, self.person = path, person
        self._one_at_a_time = threading.RLock()  # a server may have several threads
        self._db: sqlite3.Connection | None = None
        self.answers: list[Answer] = self._read() if path.exists() else []

    def add(self, item: str, question: str, answer: Any = None, *, instead_of: Collection[str] = ()) -> None:
        """Write an answer, in place of the item's answers to the questions `instead_of`."""
        with self._one_at_a_time:
            replaced = [one for one in self.answers if one.item == item and one.question in instead_of]
            row = (item, question, self.person, json.dumps(answer))
            insert = "INSERT INTO label (item, question, person, answer) VALUES (?, ?, ?, ?)"
            number = self._change(replaced, (insert, row))
            # The disk first, then the memory: a full disk must not leave a label that only this process has.
            self.answers = [one for one in self.answers if one not in replaced]
            self.answers.append(Answer(number, item, question, answer))

    def last(self, questions: Collection[str] | None = None) -> Answer | None:
        """Return the latest answer, or the latest to one of the questions; None if there is none."""
        latest = reversed(self.answers)
        return next((one for one in latest if questions is None or one.question in questions), None)

    def undo(self, questions: Collection[str] | None = None) -> str | None:
        """Take back the latest answer and return its item; None if there is none."""
        with self._one_at_a_time:
            latest = self.last(questions)
            if latest is None:
                return None
            self._change([latest])
            self.answers.remove(latest)
            return latest.item

    def close(self) -> None:
        """Close the file."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _change(self, removed: list[Answer], *statements: tuple[str, tuple[str, ...]]) -> int:
        """Remove rows and run the statements, all or nothing; return the number of the row that was added."""
        number = 0
        try:
            if self._db is None:
                self._db = self._opened()
            with self._db as changes:
                changes.executemany("DELETE FROM label WHERE number = ?", [(one.number,) for one in removed])
                for statement, values in statements:
                    number = changes.execute(statement, values).lastrowid or 0
        except (OSError, sqlite3.Error) as error:
            raise StorageError(f"{self.path} cannot be written: {error}. Nothing was saved.") from error
        return number

    def _opened(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Created by us, since SQLite would let everybody read it.
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        db = sqlite3.connect(self.path, check_same_thread=False, factory=Connection)
        db.execute(_TABLE)
        return db

    def _read(self) -> list[Answer]:
        try:
            # Not read-only: a label that a kill has cut off has to be undone first.
            db = sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=rw", uri=True)
            try:
                rows = db.execute("SELECT number, item, question, answer FROM label ORDER BY number")
                return [
                    Answer(number, item, question, json.loads(text)) for number, item, question, text in rows
                ]
            finally:
                db.close()
        except (sqlite3.Error, ValueError) as error:
            raise StorageError(f"{self.path} has no labels that can be read: {error}.") from error


class Said(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a person said about an item: a label, or None for "not sure"."""

    label: str | None
    seconds: float | None = None
    at: str = ""


class PersonLabels(LabelTable):
    """What one person said about the items of a task."""

    @property
    def said(self) -> dict[str, Said]:
        """The label of each item."""
        return {one.item: msgspec.convert(one.answer, Said) for one in self.answers if one.question == LABEL}

    @property
    def notes(self) -> dict[str, str]:
        """The note on each item."""
        return {one.item: str(one.answer) for one in self.answers if one.question == NOTE}

    @property
    def skipped(self) -> list[str]:
        """The items that were skipped, in the order of the skips."""
        return [one.item for one in self.answers if one.question == SKIP]

    def label(self, item: str, said: Said) -> None:
        """Save a label, in place of the one that the item has."""
        self.add(item, LABEL, msgspec.to_builtins(said), instead_of=(LABEL, SKIP))

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
    if person != SETTLED:
        if person not in task.people:
            raise DataError("annotator", f"{person!r:.60} is not one of {', '.join(task.people)[:200]}.")
        # The task may have been edited by hand: a name must not lead out of the folder.
        file_name(person, "the name of an annotator")
    return PersonLabels(folder / FOLDER / f"{person}.db", person)


def labels_of_all(folder: Path, task: Task) -> dict[str, PersonLabels]:
    """Return what each person said so far."""
    return {person: read_labels(folder, task, person) for person in task.people}
