"""What tests look up in the database of a run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from auepora_eval.store.database import FAILED, MAY_PASS, Database


def outcomes(path: Path) -> Counter[int]:
    """How many samples were answered, and how many failed."""
    with Database.read(path) as database:
        return database.outcomes()


def kept(path: Path) -> int:
    """How many samples have an answer or a failure; 0 if there is no file yet."""
    return outcomes(path).total() if path.exists() else 0


def failures(path: Path) -> int:
    """How many samples failed."""
    counts = outcomes(path)
    return counts[FAILED] + counts[MAY_PASS]


def sample_ids(path: Path) -> set[str]:
    """The samples that have an answer or a failure."""
    with Database.read(path) as database:
        return {name for (name,) in database.select("SELECT sample FROM call WHERE kind = 'answer'")}
