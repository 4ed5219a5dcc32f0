"""The relevant documents in a retrieved list, read once for all metrics of a batch."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from ...core.matching import grade_of
from ...core.metrics_base import skip
from ...core.scores import Batch
from ...core.types import EvaluationSample, RankedIds, SampleScore, SystemOutputs
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
) -> Hits | SampleScore:
    """Return the relevant documents that were retrieved, or why the sample is skipped.

    A document that is retrieved twice counts at its first place, and its second place is a miss; with
    `repeats` it counts at each of its places.
    """
    least = level or 0.0
    left = {doc_id: grade for doc_id, grade in gold_grades(sample).items() if grade > 0 and grade >= least}
    if not left:
        return skip(no_relevant(level))
    gold = sorted(left.values(), reverse=True)
    ranks: list[int] = []
    grades: list[float] = []
    doc_ids = in_order(output)
    for rank, doc_id in enumerate(doc_ids, start=1):
        if doc_id in left:
            ranks.append(rank)
            grades.append(left[doc_id] if repeats else left.pop(doc_id))
    return Hits(ranks, grades, gold, len(doc_ids))


def hits_in(batch: Batch, level: float | None, repeats: bool) -> list[Hits | SampleScore]:
    """Return the hits of each sample, or why it has no score; for batch.once."""
    hits: list[Hits | SampleScore] = []
    for sample, output in zip(batch.samples, batch.outputs, strict=True):
        try:
            hits.append(hits_of(sample, output, level, repeats))
        except ScoringError as error:  # a grade that is not a number
            hits.append(SampleScore(None, str(error), failed=True))
    return hits


def gold_grades(sample: EvaluationSample) -> dict[str, float]:
    """Return the grade of each document in `relevant_docs`, the highest where one is listed twice."""
    grades: dict[str, float] = {}
    for doc in sample.relevant_docs or ():
        grade = grade_of(doc)
        if grade > grades.get(doc.doc_id, -math.inf):
            grades[doc.doc_id] = grade
    return grades


def no_relevant(level: float | None) -> str:
    """Return the reason why a sample without relevant documents is skipped."""
    return f"no document of the sample has a grade {'above 0' if level is None else f'of {level:g} or more'}"


def in_order(output: SystemOutputs) -> list[str]:
    """Return the ids of the retrieved documents by their rank, whatever their order in the list."""
    hits = output.retrieved
    if isinstance(hits, RankedIds):
        return hits.doc_ids
    return [hit.doc.doc_id for hit in sorted(hits, key=_RANK)]


@lru_cache(maxsize=1 << 12)
def ideal_gain(grades: tuple[float, ...]) -> float:
    """Return the discounted gain of a list that has these grades from rank 1 on: few are different."""
    return discounted_gain(range(1, len(grades) + 1), grades)


def discounted_gain(ranks: Iterable[int], grades: Iterable[float]) -> float:
    """Return the sum of the grades, each divided by log2(rank + 1).

    >>> discounted_gain([1, 3], [3, 1])
    3.5
    """
    total = 0.0
    for rank, grade in zip(ranks, grades, strict=False):
        total += grade / math.log2(rank + 1)
    return total
