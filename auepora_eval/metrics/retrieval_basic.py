"""Retrieval metrics against gold documents, as trec_eval defines them.

A document is relevant if it stands in `relevant_docs` with a grade above 0 (`metadata["relevance"]`,
1 when absent). Retrieved documents are taken in the order of their rank; a document that is retrieved
twice counts at its first place, and its second place is a miss. Finding documents (recall, precision,
hit) is filed under RETRIEVAL_RELEVANCE, ranking them (MRR, MAP, nDCG) under RETRIEVAL_ACCURACY; the survey
that coined the targets files all of these under accuracy.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..core.metrics_base import METRICS, SampleMetric, skip
from ..core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ..errors import ScoringError


class RetrievalMetric(SampleMetric):
    """A metric of the grades by rank; `k` cuts the list, None takes all of it."""

    k: int | None
    requires = ("relevant_docs",)

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        grades = gold_grades(sample)
        if not grades:
            return skip("no document of the sample has a grade above 0")
        return self.of_gains(ranked_gains(grades, output, self.k), sorted(grades.values(), reverse=True))

    def of_gains(self, gains: Sequence[float], ideal: Sequence[float]) -> float:
        """The score from the grade at each rank (0 for a miss) and the gold grades, best first."""
        raise NotImplementedError

    def _name(self, base: str) -> str:
        if self.k is not None and (isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1):
            raise ValueError(f"k must be a whole number of at least 1, not {self.k!r}")
        return base if self.k is None else f"{base}@{self.k}"


@METRICS.add("recall")
@dataclass
class RecallAtK(RetrievalMetric):
    """Share of the relevant documents that are among the first k retrieved.

    |relevant ∩ retrieved[:k]| / |relevant|.
    """

    k: int
    target = TargetCategory.RETRIEVAL_RELEVANCE
    oracle = "trec_eval recall_k"

    def __post_init__(self) -> None:
        self.name = self._name("recall")

    def of_gains(self, gains: Sequence[float], ideal: Sequence[float]) -> float:
        return _hits(gains) / len(ideal)


@METRICS.add("precision")
@dataclass
class PrecisionAtK(RetrievalMetric):
    """Share of the first k places that hold a relevant document.

    |relevant ∩ retrieved[:k]| / k: a place that the system left empty is a miss.
    """

    k: int
    target = TargetCategory.RETRIEVAL_RELEVANCE
    oracle = "trec_eval P_k"

    def __post_init__(self) -> None:
        self.name = self._name("precision")

    def of_gains(self, gains: Sequence[float], ideal: Sequence[float]) -> float:
        return _hits(gains) / self.k


@METRICS.add("hit")
@dataclass
class HitAtK(RetrievalMetric):
    """1 if any of the first k documents is relevant, else 0 (also called success@k)."""

    k: int
    target = TargetCategory.RETRIEVAL_RELEVANCE
    oracle = "trec_eval success_k"

    def __post_init__(self) -> None:
        self.name = self._name("hit")

    def of_gains(self, gains: Sequence[float], ideal: Sequence[float]) -> float:
        return float(any(gain > 0 for gain in gains))


@METRICS.add("mrr")
@dataclass
class MRR(RetrievalMetric):
    """1 / rank of the first relevant document; 0 if none is retrieved (within the first k)."""

    k: int | None = None
    target = TargetCategory.RETRIEVAL_ACCURACY
    oracle = "trec_eval recip_rank"

    def __post_init__(self) -> None:
        self.name = self._name("mrr")

    def of_gains(self, gains: Sequence[float], ideal: Sequence[float]) -> float:
        return next((1 / rank for rank, gain in enumerate(gains, start=1) if gain > 0), 0.0)


@METRICS.add("map")
@dataclass
class MeanAveragePrecision(RetrievalMetric):
    """Precision at the rank of each relevant document, averaged over all relevant documents.

    Σ precision@i over the ranks i that hold a relevant document / |relevant|: one that was not
    retrieved counts 0. Tools that divide by min(k, |relevant|) or by the hits print more.
    """

    k: int | None = None
    target = TargetCategory.RETRIEVAL_ACCURACY
    oracle = "trec_eval map, map_cut_k"

    def __post_init__(self) -> None:
        self.name = self._name("map")

    def of_gains(self, gains: Sequence[float], ideal: Sequence[float]) -> float:
        hits, total = 0, 0.0
        for rank, gain in enumerate(gains, start=1):
            if gain > 0:
                hits += 1
                total += hits / rank
        return total / len(ideal)


@METRICS.add("ndcg")
@dataclass
class NDCGAtK(RetrievalMetric):
    """Discounted gain of the list, relative to that of the best possible list.

    Σ grade_i / log2(i + 1) over the first k ranks / the same sum for the gold grades in descending
    order. Gains are linear (Järvelin & Kekäläinen 2002); with binary grades it makes no difference.
    """

    k: int | None = None
    target = TargetCategory.RETRIEVAL_ACCURACY
    oracle = "trec_eval ndcg, ndcg_cut_k"

    def __post_init__(self) -> None:
        self.name = self._name("ndcg")

    def of_gains(self, gains: Sequence[float], ideal: Sequence[float]) -> float:
        return discounted_gain(gains) / discounted_gain(ideal[: self.k])


def gold_grades(sample: EvaluationSample) -> dict[str, float]:
    """The grade of each relevant document by its id; documents graded 0 or less are left out."""
    grades: dict[str, float] = {}
    for doc in sample.relevant_docs or ():
        grade = doc.metadata.get("relevance", 1)
        if isinstance(grade, bool) or not isinstance(grade, int | float) or not math.isfinite(grade):
            raise ScoringError(f"the relevance of document {doc.doc_id!r} is {grade!r}, not a number")
        if grade > 0:
            grades[doc.doc_id] = max(float(grade), grades.get(doc.doc_id, 0.0))
    return grades


def ranked_gains(grades: dict[str, float], output: SystemOutputs, k: int | None) -> list[float]:
    """The grade of the document at each rank: 0 for a miss and for a document that was there before."""
    left = dict(grades)
    ranked = sorted(output.retrieved, key=lambda hit: hit.rank)
    return [left.pop(hit.doc.doc_id, 0.0) for hit in ranked[:k]]


def discounted_gain(gains: Sequence[float]) -> float:
    """Sum of the gains, each divided by log2(rank + 1).

    >>> discounted_gain([3, 0, 1])
    3.5
    """
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def _hits(gains: Sequence[float]) -> int:
    return sum(gain > 0 for gain in gains)
