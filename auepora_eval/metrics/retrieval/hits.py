"""The base of the retrieval metrics: the relevant documents in the retrieved lists of a batch, read once."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import compress, count
from operator import attrgetter

import numpy as np

from ...core.matching import grade_of
from ...core.metrics_base import BatchMetric
from ...core.scores import Batch, Note, Rows, Scores
from ...core.types import Document, EvaluationSample, RankedIds, SystemOutputs
from ...errors import ScoringError
from ...stats.arrays import Array, Indices

_RANK = attrgetter("rank")


class Hits:
    """Columns of a batch: a row for each relevant document that was retrieved, by sample and rank.

    `sample` numbers the samples from 0, `rank` starts at 1, and `nth` counts the hits of a sample from 1.
    `gold_*` are the same columns of the best list that there could have been. `relevant` and `retrieved` have
    a number for each sample, and `notes` say why a sample has no score.
    """

    def __init__(self, batch: Batch, level: float | None = None, repeats: bool = False) -> None:
        ranks: list[int] = []
        grades: list[float] = []
        gold: list[float] = []
        ends, gold_ends, sizes = [0], [0], []
        self.notes: dict[int, Note] = {}
        for number, (sample, output) in enumerate(zip(batch.samples, batch.outputs, strict=True)):
            left = self._relevant(number, sample, level)
            gold += sorted(left.values(), reverse=True)
            doc_ids = in_order(output)
            # A document that is retrieved twice counts at its first place, where it is taken out of `left`.
            for rank in compress(count(1), map(left.__contains__, doc_ids)):
                doc_id = doc_ids[rank - 1]
                ranks.append(rank)
                grades.append(left[doc_id] if repeats else left.pop(doc_id))
            ends.append(len(ranks))
            gold_ends.append(len(gold))
            sizes.append(len(doc_ids))
        self.sample, self.nth = _numbered(ends)
        self.rank, self.grade = np.array(ranks, np.intp), np.array(grades, np.float64)
        self.gold_sample, self.gold_rank = _numbered(gold_ends)
        self.gold_grade = np.array(gold, np.float64)
        self.relevant, self.retrieved = np.diff(gold_ends).astype(np.float64), np.array(sizes, np.intp)

    def _relevant(self, number: int, sample: EvaluationSample, level: float | None) -> dict[str, float]:
        """Return the grade of each document that counts; a note says why there is none."""
        try:
            grades = gold_grades(sample)
        except ScoringError as error:  # a grade that is not a number
            self.notes[number] = Note(str(error), failed=True, of_metric=True)
            return {}
        least = level or 0.0
        relevant = {doc_id: grade for doc_id, grade in grades.items() if grade > 0 and grade >= least}
        if not relevant:
            self.notes[number] = Note(no_relevant(level))
        return relevant

    def total(self, weights: Array, k: int | None = None, *, ranks: Indices | None = None) -> Array:
        """Return the sum of the weights of each sample's hits at ranks up to k."""
        ranks = self.rank if ranks is None else ranks
        return _total(self.sample, ranks, weights, k, len(self.relevant))

    def within(self, k: int | None) -> Array:
        """Return how many relevant documents are among the first k."""
        return self.total(np.ones(len(self.rank)), k)

    def best_total(self, weights: Array, k: int | None = None) -> Array:
        """Return the same sum of the best list that there could have been."""
        return _total(self.gold_sample, self.gold_rank, weights, k, len(self.relevant))


class RetrievalMetric(BatchMetric):
    """A metric of the ranks at which relevant documents were retrieved."""

    level: float | None = None
    repeats = False  # whether a document that is retrieved twice counts twice
    requires = ("relevant_docs",)
    matches_documents = True
    scores_blank = True

    @abstractmethod
    def of_hits(self, hits: Hits) -> Rows:
        """Return the score of each list of a batch."""

    def score_all(self, batch: Batch) -> Scores:
        # The metrics of a plan share the hits: finding them takes longer than any formula.
        hits = batch.once(Hits, self.level, self.repeats)
        with np.errstate(divide="ignore", invalid="ignore"):  # of samples without relevant documents
            return Scores(batch.sample_ids, self.of_hits(hits), notes=hits.notes)


@dataclass
class LevelMetric(RetrievalMetric):
    """A metric that takes documents for relevant from a given grade on."""

    level: float | None = field(default=None, kw_only=True)
    ranges = {"level": "(0, inf)"}  # noqa: RUF012


def _numbered(ends: list[int]) -> tuple[Indices, Indices]:
    """Return the number of the sample of each row, and the number of the row within its sample."""
    starts, sizes = np.array(ends[:-1], np.intp), np.diff(ends)
    samples = np.repeat(np.arange(len(sizes)), sizes)
    return samples, np.arange(len(samples)) - starts[samples] + 1


def _total(samples: Indices, ranks: Indices, weights: Array, k: int | None, size: int) -> Array:
    if k is not None:
        first = ranks <= k
        samples, weights = samples[first], weights[first]
    # It adds in the order of the ranks, as trec_eval does: the last bit is the same.
    return np.asarray(np.bincount(samples, weights, minlength=size), np.float64)


def by_rank(function: Callable[[int], float], ranks: Indices) -> Array:
    """Return a function of each rank. It is not one of numpy, whose last bit depends on the machine."""
    table = np.array([0.0, *map(function, range(1, int(ranks.max(initial=0)) + 1))])
    return np.asarray(table[ranks])


def discounted(grades: Array, ranks: Indices) -> Array:
    """Return the grades, each divided by log2(rank + 1).

    >>> discounted(np.array([3.0, 1.0]), np.array([1, 3])).tolist()
    [3.0, 0.5]
    """
    return grades / by_rank(lambda rank: math.log2(rank + 1), ranks)


def normalised_gain(hits: Hits, grades: Rows, gold: Rows, k: int | None) -> Rows:
    """Return the discounted gain of the first k documents, relative to that of the best list."""
    return hits.total(discounted(grades, hits.rank), k) / hits.best_total(discounted(gold, hits.gold_rank), k)


def gold_grades(sample: EvaluationSample) -> dict[str, float]:
    """Return the grade of each document in `relevant_docs`, the highest where one is listed twice."""
    docs = sample.relevant_docs or ()
    grades = {doc.doc_id: grade_of(doc) for doc in docs}
    if len(grades) < len(docs):
        for doc in docs:
            grades[doc.doc_id] = max(grades[doc.doc_id], grade_of(doc))
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


def first_documents(output: SystemOutputs, k: int | None = None) -> list[Document]:
    """Return the first k retrieved documents by rank, or all of them."""
    return [hit.doc for hit in sorted(output.retrieved, key=_RANK)[:k]]
