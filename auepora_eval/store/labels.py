"""The labels of people: an item, a question, a person, an answer.

They are rows of the table `label`, in the database of a run or in a file of their own. An answer is on the
disk when `add` returns, so a killed process loses nothing that was saved.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Collection
from contextlib import closing
from pathlib import Path
from time import time
from typing import Any, NamedTuple

from ..errors import StorageError
from .database import LABELS


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
        self.answers: list[Answer] = self._read() if path.exists() else []

    def add(self, item: str, question: str, answer: Any = None, *, instead_of: Collection[str] = ()) -> None:
        """Write an answer, in place of the item's answers to the questions `instead_of`."""
        replaced = [
            ("DELETE FROM label WHERE person = ? AND item = ? AND question = ?", (self.person, item, each))
            for each in instead_of
        ]
        insert = "INSERT INTO label (item, question, person, answer, at) VALUES (?, ?, ?, ?, ?)"
        self._change(*replaced, (insert, (item, question, self.person, json.dumps(answer), time())))

    def last(self, questions: Collection[str] | None = None) -> Answer | None:
        """Return the latest answer, or the latest to one of the questions; None if there is none."""
        latest = reversed(self.answers)
        return next((one for one in latest if questions is None or one.question in questions), None)

    def undo(self, questions: Collection[str] | None = None) -> str | None:
        """Take back the latest answer and return its item; None if there is none."""
        latest = self.last(questions)
        if latest is None:
            return None
        self._change(("DELETE FROM label WHERE n = ?", (latest.number,)))
        return latest.item

    def _change(self, *statements: tuple[str, tuple[Any, ...]]) -> None:
        """Change the file, all or nothing, and read it again."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Created by us, since SQLite would let everybody read it.
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
            with closing(sqlite3.connect(self.path)) as db, db:
                db.execute(LABELS)
                for statement, values in statements:
                    db.execute(statement, values)
        except (OSError, sqlite3.Error) as error:
            raise StorageError(f"{self.path} cannot be written: {error}. Nothing was saved.") from error
        self.answers = self._read()

    def _read(self) -> list[Answer]:
        query = "SELECT n, item, question, answer FROM label WHERE person = ? ORDER BY n"
        try:
            # Not read-only: a label that a kill has cut off has to be undone first.
            with closing(sqlite3.connect(f"{self.path.resolve().as_uri()}?mode=rw", uri=True)) as db:
                rows = db.execute(query, [self.person]).fetchall()
            return [Answer(n, item, question, json.loads(text)) for n, item, question, text in rows]
        except (sqlite3.Error, ValueError) as error:
            raise StorageError(f"{self.path} has no labels that can be read: {error}.") from error
