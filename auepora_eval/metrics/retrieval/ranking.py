"""Further ranking metrics: other views of the same lists, and the order of graded candidates."""

from __future__ import annotations

import math
from dataclasses import field

import numpy as np

from ...core.matching import grade_of
from ...core.metrics_base import SampleMetric, metric, skip
from ...core.scores import Rows, given
from ...core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ...stats.arrays import Array
from ...stats.classification import area_under_curve
from .hits import (
    Hits,
    LevelMetric,
    RetrievalMetric,
    by_rank,
    gold_grades,
    in_order,
    no_relevant,
    normalised_gain,
)


def judgements(sample: EvaluationSample) -> dict[str, float]:
    """Return the grades of `relevant_docs`, and of the candidates that have one and are not there."""
    judged = [doc for doc in sample.candidate_docs or () if given(doc.metadata, "relevance") is not None]
    return {doc.doc_id: grade_of(doc) for doc in judged} | gold_grades(sample)


@metric("r_precision[level={level?:.15g}]")
class RPrecision(LevelMetric):
    """Share of the first R documents that are relevant, where R is the number of relevant ones.

    |relevant ∩ retrieved[:R]| / R: there precision and recall are equal, so that samples with few and with
    many relevant documents can be averaged.
    """

    target = TargetCategory.RETRIEVAL_ACCURACY
    oracle = "trec_eval Rprec"

    def of_hits(self, hits: Hits) -> Rows:
        first = hits.rank <= hits.relevant[hits.sample]
        return hits.total(first.astype(np.float64)) / hits.relevant


@metric("bpref[level={level?:.15g}]", ranges={"level": "(0, inf)"})
class BPref(SampleMetric):
    """How rarely a document that people judged not relevant is ranked above a relevant one.

    Σ over the relevant documents that were retrieved of 1 - min(n, R) / min(R, N), / R; n is the number of
    documents above it that are judged not relevant, R and N how many are judged relevant and not. Documents
    without a judgement are passed over, which makes it the metric for incomplete judgements. Judged not
    relevant is a grade of 0 (or below the level) in `relevant_docs` or, if the document is not there, in
    `candidate_docs`; a grade below 0 means "not judged". Without any such document it is the share of the
    relevant documents that were retrieved.
    """

    level: float | None = field(default=None, kw_only=True)
    target = TargetCategory.RETRIEVAL_ACCURACY
    requires = ("relevant_docs",)
    matches_documents = True
    scores_blank = True
    oracle = "trec_eval bpref"

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        gold = {doc.doc_id for doc in sample.relevant_docs or ()}
        least = self.level or 0.0
        judged = {
            doc_id: grade > 0 and grade >= least
            for doc_id, grade in judgements(sample).items()
            # A candidate that is relevant but not among the relevant documents is a contradiction.
            if grade >= 0 and (doc_id in gold or grade == 0 or grade < least)
        }
        relevant = sum(judged.values())
        if not relevant:
            return skip(no_relevant(self.level))
        most = max(1, min(relevant, len(judged) - relevant))
        above, total = 0, 0.0
        for doc_id in in_order(output):
            # Each document counts at its first place.
            match judged.pop(doc_id, None):
                case True:
                    total += 1 - min(above, relevant) / most
                case False:
                    above += 1
        return total / relevant


@metric("rbp@{p?}", ranges={"p": "(0, 1)"})
class RankBiasedPrecision(RetrievalMetric):
    """The rate at which a patient reader gains: one who goes on to the next document with probability p.

    (1 - p) Σ gain_i p^(i-1), p = 0.9 unless given: rbp@0.8. Grades above 1 are divided by the highest grade
    of the sample (Moffat & Zobel 2008). Other tools take p = 0.8 and binary relevance. Lists end, so it never
    reaches 1.
    """

    p: float = 0.9
    target = TargetCategory.RETRIEVAL_ACCURACY
    oracle = "trec_eval rbp"

    def of_hits(self, hits: Hits) -> Rows:
        # Binary grades keep a scale of 1: only grades above 1 are divided.
        scale = np.maximum(1.0, hits.best_total(hits.gold_grade, 1))[hits.sample]
        patience = by_rank(lambda rank: self.p ** (rank - 1), hits.rank)
        return (1 - self.p) * hits.total(hits.grade / scale * patience)


@metric("ndcg_exp@{k?}")
class ExponentialNDCG(RetrievalMetric):
    """nDCG that rewards the best documents more: a grade counts as 2^grade - 1.

    As ndcg, with these gains (Burges et al. 2005): the usual form in learning to rank.
    """

    k: int | None = None
    target = TargetCategory.RETRIEVAL_ACCURACY
    oracle = "scikit-learn ndcg_score of 2**grade - 1"

    def of_hits(self, hits: Hits) -> Rows:
        grades, gold = (np.array(list(map(_exponential, each))) for each in (hits.grade, hits.gold_grade))
        return normalised_gain(hits, grades, gold, self.k)


def _exponential(grade: float) -> float:
    """Return 2^grade - 1; infinity where that is too large for a number."""
    return math.expm1(grade * math.log(2)) if grade < 1024 else math.inf


@metric("judged@{k}")
class JudgedAtK(SampleMetric):
    """Share of the first k documents that anyone has judged: how far the other metrics can be trusted.

    A document is judged if it is in `relevant_docs`, or in `candidate_docs` with a `metadata["relevance"]`,
    and its grade is not below 0. Divided by the documents there are if the list is shorter than k.
    """

    k: int
    target = TargetCategory.RETRIEVAL_RELEVANCE
    requires = ("relevant_docs",)
    matches_documents = True
    oracle = "ir_measures Judged@k"

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        judged = judgements(sample)
        first = in_order(output)[: self.k]
        if not first:
            return skip("nothing was retrieved")
        return sum(judged.get(doc_id, -1) >= 0 for doc_id in first) / len(first)


# The order of the candidates that people have graded. The grade of a candidate is its
# `metadata["relevance"]`; where the same document is in `relevant_docs`, the grade there counts. Candidates
# without a grade, or with one below 0 ("not judged"), are left out. Those that were not retrieved are tied
# in the last place.


class CandidateMetric(SampleMetric):
    """A metric of the order of graded candidates."""

    target = TargetCategory.RETRIEVAL_ACCURACY
    requires = ("candidate_docs",)
    matches_documents = True
    scores_blank = True


@metric("pairwise_accuracy")
class PairwiseAccuracy(CandidateMetric):
    """Share of the pairs of a relevant and an irrelevant candidate that are in the right order (AUC).

    (pairs in order + tied pairs / 2) / pairs. 0.5 is chance, and what a system gets that retrieves none of
    the candidates. Relevant is a grade above 0.
    """

    oracle = "scikit-learn roc_auc_score"

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        places, grades = _candidates(sample, output)
        area = area_under_curve(-places, grades > 0)
        return skip("the candidates are not graded both above 0 and 0") if math.isnan(area) else area


@metric("kendall_tau")
class KendallTau(CandidateMetric):
    """How far the order of the candidates agrees with their grades: 1 is the same order, -1 the reverse.

    Kendall's tau-b. A system that retrieves none of the candidates gives them no order and scores 0.
    """

    bounds = (-1.0, 1.0)
    oracle = "scipy.stats.kendalltau"

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        from scipy.stats import kendalltau

        places, grades = _candidates(sample, output)
        if len(set(grades.tolist())) < 2:
            return skip("the candidates have no two different grades")
        return float(kendalltau(-places, grades).statistic) if np.ptp(places) else 0.0


def _candidates(sample: EvaluationSample, output: SystemOutputs) -> tuple[Array, Array]:
    """Return the places and the grades of the judged candidates; those not retrieved come last."""
    grades = judgements(sample)
    retrieved = in_order(output)
    places: dict[str, int] = {}
    for place, doc_id in enumerate(retrieved):
        places.setdefault(doc_id, place)  # of a repeated document the first place counts
    candidates = {doc.doc_id for doc in sample.candidate_docs or ()}
    judged = [doc_id for doc_id in candidates if grades.get(doc_id, -1) >= 0]
    return (
        np.array([places.get(doc_id, len(retrieved)) for doc_id in judged], np.float64),
        np.array([grades[doc_id] for doc_id in judged], np.float64),
    )
