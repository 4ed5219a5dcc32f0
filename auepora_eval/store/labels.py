"""The labels of people: an item, a question, a person, an answer.

They are rows of the table `label`, in the database of a run or in a file of their own. An answer is on the
disk when `add` returns, so a killed process loses nothing that was saved.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Collection
from pathlib import Path
from time import time
from typing import Any, NamedTuple

from ..errors import StorageError
from .database import LABELS, Connection


class Answer(NamedTuple):
    """What a person answered to a question about an item."""

    number: int
    item: str
    question: str
    answer: Any


class LabelTable:
    """The answers that one person gave, in their order.

    Several people and processes may write to one file, also while a run is stored in it.
    """

    def __init__(self, path: Path, person: str) -> None:
        self.path, self.person = path, person
        self._one_at_a_time = threading.RLock()  # a server may have several threads
        self._db: sqlite3.Connection | None = None
        self.answers: list[Answer] = self._read() if path.exists() else []

    def add(self, item: str, question: str, answer: Any = None, *, instead_of: Collection[str] = ()) -> None:
        """Write an answer, in place of the item's answers to the questions `instead_of`."""
        with self._one_at_a_time:
            replaced = [one for one in self.answers if one.item == item and one.question in instead_of]
            row = (item, question, self.person, json.dumps(answer), time())
            number = self._change(replaced, row)
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

    def _change(self, removed: list[Answer], row: tuple[Any, ...] | None = None) -> int:
        """Remove rows and add one, all or nothing; return the number of the row that was added."""
        number = 0
        try:
            if self._db is None:
                self._db = self._opened()
            with self._db as changes:
                changes.executemany("DELETE FROM label WHERE n = ?", [(one.number,) for one in removed])
                if row is not None:
                    insert = "INSERT INTO label (item, question, person, answer, at) VALUES (?, ?, ?, ?, ?)"
                    number = changes.execute(insert, row).lastrowid or 0
        except (OSError, sqlite3.Error) as error:
            raise StorageError(f"{self.path} cannot be written: {error}. Nothing was saved.") from error
        return number

    def _opened(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Created by us, since SQLite would let everybody read it.
        os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        db = sqlite3.connect(self.path, check_same_thread=False, factory=Connection)
        db.execute(LABELS)
        return db

    def _read(self) -> list[Answer]:
        try:
            # Not read-only: a label that a kill has cut off has to be undone first.
            db = sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=rw", uri=True)
            try:
                query = "SELECT n, item, question, answer FROM label WHERE person = ? ORDER BY n"
                rows = db.execute(query, [self.person])
                return [Answer(n, item, question, json.loads(text)) for n, item, question, text in rows]
            finally:
                db.close()
        except (sqlite3.Error, ValueError) as error:
            raise StorageError(f"{self.path} has no labels that can be read: {error}.") from error
