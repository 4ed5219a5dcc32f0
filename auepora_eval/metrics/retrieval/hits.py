"""The relevant documents in a retrieved list, read once for all metrics of a batch."""

from __future__ import annotations

import math
from bisect import bisect_right
from operator import attrgetter
from typing import NamedTuple

from ...core.matching import grade_of
from ...core.scores import Batch
from ...core.types import EvaluationSample, RankedIds, SystemOutputs
from ...errors import ScoringError

_RANK = attrgetter("rank")


class Hits(NamedTuple):
    """The relevant documents of one list by rank, and the grades of all that it could have had."""

    ranks: list[int]  # in ascending order, from 1
    grades: list[float]  # at these ranks
    gold: list[float]  # the grades of all relevant documents, the highest first
    size: int  # how many documents were retrieved

    def within(self, k: int | None) -> int:
        """Return how many relevant documents are among the first k."""
        return len(self.ranks) if k is None else bisect_right(self.ranks, k)


def hits_of(
    sample: EvaluationSample, output: SystemOutputs, level: float | None = None, repeats: bool = False
) -> Hits:
    """Return the relevant documents that were retrieved; with `repeats` at each of their places.

    Without, a document that is retrieved twice counts at its first place, and its second place is a miss.
    """
    left = {doc_id: grade for doc_id, grade in gold_grades(sample).items() if is_relevant(grade, level)}
    gold = sorted(left.values(), reverse=True)
    ranks: list[int] = []
    grades: list[float] = []
    doc_ids = in_order(output)
    for rank, doc_id in enumerate(doc_ids, start=1):
        if doc_id in left:
            ranks.append(rank)
            grades.append(left[doc_id] if repeats else left.pop(doc_id))
    return Hits(ranks, grades, gold, len(doc_ids))


def hits_in(batch: Batch, level: float | None, repeats: bool) -> list[tuple[Hits | ScoringError]]:
    """Return the hits of each sample, or why its grades cannot be used; for batch.once."""
    hits: list[tuple[Hits | ScoringError]] = []
    for sample, output in zip(batch.samples, batch.outputs, strict=True):
        try:
            hits.append((hits_of(sample, output, level, repeats),))
        except ScoringError as error:
            hits.append((error,))
    return hits


def gold_grades(sample: EvaluationSample) -> dict[str, float]:
    """Return the grade of each document in `relevant_docs`, the highest where one is listed twice."""
    grades: dict[str, float] = {}
    for doc in sample.relevant_docs or ():
        grade = grade_of(doc)
        if grade > grades.get(doc.doc_id, -math.inf):
            grades[doc.doc_id] = grade
    return grades


def is_relevant(grade: float, level: float | None) -> bool:
    """Say whether a grade counts: above 0 it does, unless a level asks for more."""
    return grade > 0 and (level is None or grade >= level)


def no_relevant(level: float | None) -> str:
    """Return the reason why a sample without relevant documents is skipped."""
    return f"no document of the sample has a grade {'above 0' if level is None else f'of {level:g} or more'}"


def in_order(output: SystemOutputs) -> list[str]:
    """Return the ids of the retrieved documents by their rank, whatever their order in the list."""
    hits = output.retrieved
    if isinstance(hits, RankedIds):
        return hits.doc_ids
    return [hit.doc.doc_id for hit in sorted(hits, key=_RANK)]


def discounted_gain(ranks: list[int] | range, grades: list[float]) -> float:
    """Return the sum of the grades, each divided by log2(rank + 1).

    >>> discounted_gain([1, 3], [3, 1])
    3.5
    """
    return sum(grade / math.log2(rank + 1) for rank, grade in zip(ranks, grades, strict=False))
