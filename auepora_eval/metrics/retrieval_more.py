"""Further retrieval metrics against gold documents: other views of the same lists."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..core.batch import Batch
from ..core.metrics_base import METRICS, SampleMetric, skip
from ..core.scores import Scores
from ..core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from .retrieval_basic import RetrievalMetric, normalised_gain
from .retrieval_hits import (
    RelevantHits,
    discounted_gain,
    in_order,
    is_relevant,
    judged_hits,
    judgements,
    no_relevant,
)

if TYPE_CHECKING:
    from .retrieval_hits import Floats


@METRICS.add("r_precision")
@dataclass
class RPrecision(RetrievalMetric):
    """Share of the first R documents that are relevant, where R is how many relevant ones there are.

    |relevant ∩ retrieved[:R]| / R: precision and recall at the place where the two are equal, so that
    samples with few and with many relevant documents can be averaged.
    """

    level: float | None = field(default=None, kw_only=True)
    target = TargetCategory.RETRIEVAL_ACCURACY
    oracle = "trec_eval Rprec"
    k = None

    def __post_init__(self) -> None:
        self.name = self._name("r_precision")

    def of_gains(self, gains: Sequence[float], ideal: Sequence[float]) -> float:
        return sum(gain > 0 for gain in gains[: len(ideal)]) / len(ideal)

    def of_hits(self, batch: Batch, hits: RelevantHits) -> Floats:
        return hits.sums((hits.place < hits.total[hits.sample]).astype(float)) / hits.total


@METRICS.add("bpref")
@dataclass
class BPref(RetrievalMetric):
    """How rarely a document that people judged not relevant stands above a relevant one.

    Σ over the relevant documents that were retrieved of 1 - min(n, R) / min(R, N), / R; n is the number of
    documents above it that are judged not relevant, R and N how many are judged relevant and not.
    Documents without a judgement are passed over, which makes it the metric for incomplete judgements.
    Judged not relevant is what has a grade of 0 (or below the level) in `relevant_docs` or, if it is not
    there, in `candidate_docs`; a grade below 0 stands for "not judged". Without any such document it
    is the share of the relevant documents that were retrieved.
    """

    level: float | None = field(default=None, kw_only=True)
    target = TargetCategory.RETRIEVAL_ACCURACY
    oracle = "trec_eval bpref"
    k = None

    def __post_init__(self) -> None:
        self.name = self._name("bpref")

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        relevant = {doc.doc_id for doc in sample.relevant_docs or ()}
        judged = {
            doc_id: is_relevant(grade, self.level)
            for doc_id, grade in judgements(sample).items()
            # A candidate that is relevant but not among the relevant documents is a contradiction.
            if grade >= 0 and (doc_id in relevant or not is_relevant(grade, self.level))
        }
        total = sum(judged.values())
        if not total:
            return skip(no_relevant(self.level))
        others = len(judged) - total
        value, above = 0.0, 0
        for doc_id in in_order(output):
            if judged.get(doc_id) is False:
                above += 1
            elif judged.get(doc_id):
                value += 1 - min(above, total) / min(others, total) if above else 1
            judged.pop(doc_id, None)
        return value / total

    def of_gains(self, gains: Sequence[float], ideal: Sequence[float]) -> float:
        raise NotImplementedError  # grades alone do not tell a miss from a document judged not relevant

    def score_all(self, batch: Batch) -> Scores:
        if any(sample.candidate_docs for sample in batch.samples):
            return SampleMetric.score_all(self, batch)
        return super().score_all(batch)

    def of_hits(self, batch: Batch, hits: RelevantHits) -> Floats:
        import numpy as np

        judged = batch.once(judged_hits)
        least = 0.0 if self.level is None else self.level
        relevant = (judged.grade > 0) & (judged.grade >= least)
        until = np.concatenate(([0], np.cumsum(~relevant & (judged.grade >= 0))))
        before_sample = until[np.searchsorted(judged.sample, np.arange(judged.samples))]
        above = until[:-1][relevant] - before_sample[hits.sample]
        gold_relevant = (judged.gold_grade > 0) & (judged.gold_grade >= least)
        others = np.bincount(
            judged.gold_sample[~gold_relevant & (judged.gold_grade >= 0)], minlength=judged.samples
        )
        total = hits.total[hits.sample]
        lost = np.minimum(above, total) / np.maximum(1, np.minimum(others[hits.sample], total))
        return hits.sums(1 - lost) / hits.total


@METRICS.add("rbp")
@dataclass
class RankBiasedPrecision(RetrievalMetric):
    """The rate at which a patient reader gains: one who goes on to the next document with probability p.

    (1 - p) Σ gain_i p^(i-1), p = 0.9 unless given: rbp@0.8. Grades above 1 are divided by the highest grade
    of the sample (Moffat & Zobel 2008). Other tools take p = 0.8 and binary relevance by default. It does
    not reach 1: even a list without a miss ends somewhere, and what follows counts as not relevant.
    """

    p: float = 0.9
    target = TargetCategory.RETRIEVAL_ACCURACY
    oracle = "trec_eval rbp"
    k = None

    def __post_init__(self) -> None:
        if not 0 < self.p < 1:
            raise ValueError(f"p must lie between 0 and 1, not {self.p}")
        self.name = "rbp" if self.p == 0.9 else f"rbp@{self.p!r}"

    def of_gains(self, gains: Sequence[float], ideal: Sequence[float]) -> float:
        scale = max(1.0, ideal[0])
        return (1 - self.p) * sum(gain / scale * self.p**place for place, gain in enumerate(gains))

    def of_hits(self, batch: Batch, hits: RelevantHits) -> Floats:
        import numpy as np

        judged = batch.once(judged_hits)
        scale = np.ones(hits.samples)
        np.maximum.at(scale, judged.gold_sample, judged.gold_grade)
        return (1 - self.p) * hits.sums(hits.grade / scale[hits.sample] * self.p**hits.place)


@METRICS.add("ndcg_exp")
@dataclass
class ExponentialNDCG(RetrievalMetric):
    """nDCG that rewards the best documents more: a grade counts as 2^grade - 1.

    Σ (2^grade_i - 1) / log2(i + 1) over the first k ranks / the same sum for the gold grades in descending
    order (Burges et al. 2005). The usual form in learning to rank; with binary grades it equals ndcg.
    """

    k: int | None = None
    target = TargetCategory.RETRIEVAL_ACCURACY
    oracle = "scikit-learn ndcg_score of 2**grade - 1"

    def __post_init__(self) -> None:
        self.name = self._name("ndcg_exp")

    def of_gains(self, gains: Sequence[float], ideal: Sequence[float]) -> float:
        best = [exponential(grade) for grade in ideal[: self.k]]
        return discounted_gain([exponential(grade) for grade in gains]) / discounted_gain(best)

    def of_hits(self, batch: Batch, hits: RelevantHits) -> Floats:
        return normalised_gain(batch, hits, self.k, exponential=True)


@METRICS.add("judged")
@dataclass
class JudgedAtK(SampleMetric):
    """Share of the first k documents that anyone has judged: how far the other metrics can be trusted.

    A document is judged if it stands in `relevant_docs`, or in `candidate_docs` with a
    `metadata["relevance"]`, and its grade is not below 0. The other metrics take a document without a
    judgement for not relevant. Divided by the documents there are if the list is shorter than k;
    trec_eval's unj_k, the share of the others, divides by k.
    """

    k: int
    target = TargetCategory.RETRIEVAL_RELEVANCE
    requires = ("relevant_docs",)
    oracle = "ir_measures Judged@k"

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1:
            raise ValueError(f"k must be a whole number of at least 1, not {self.k!r}")
        self.name = f"judged@{self.k}"

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        judged = judgements(sample)
        first = in_order(output)[: self.k]
        if not first:
            return skip("nothing was retrieved")
        return sum(judged.get(doc_id, -1) >= 0 for doc_id in first) / len(first)


def exponential(grade: float) -> float:
    """2**grade - 1; infinite, not an error, where that is too large."""
    return math.expm1(grade * math.log(2)) if grade < 1024 else math.inf
