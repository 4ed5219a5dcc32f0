"""How well a system orders the candidates that people have graded: Auepora's retrieval accuracy proper.

The grade of a candidate is its `metadata["relevance"]`; where the same document stands in `relevant_docs`,
the grade there counts. Candidates without a grade, or with one below 0 ("not judged"), are left out.
Those that the system did not retrieve are tied in the last place.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from ..core.metrics_base import METRICS, SampleMetric, skip
from ..core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from .retrieval_hits import in_order, judgements

Ranked = list[tuple[int, float]]  # place and grade, the best place first


@METRICS.add("pairwise_accuracy")
@dataclass
class PairwiseAccuracy(SampleMetric):
    """Share of the pairs of a relevant and an irrelevant candidate that are in the right order.

    (pairs in order + tied pairs / 2) / pairs: the area under the ROC curve (AUC). 0.5 is what chance gives,
    and also what a system gets that retrieves none of the candidates. Relevant is a grade above 0.
    """

    target = TargetCategory.RETRIEVAL_ACCURACY
    requires = ("candidate_docs",)
    oracle = "scikit-learn roc_auc_score"

    def __post_init__(self) -> None:
        self.name = "pairwise_accuracy"

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        ranked = [(place, float(grade > 0)) for place, grade in ranked_candidates(sample, output)]
        relevant = sum(grade > 0 for _, grade in ranked)
        pairs = relevant * (len(ranked) - relevant)
        if not pairs:
            return skip("the candidates are not graded both above 0 and 0")
        return (1 + right_less_wrong(ranked) / pairs) / 2


@METRICS.add("kendall_tau")
@dataclass
class KendallTau(SampleMetric):
    """How far the order of the candidates agrees with their grades: 1 is the same order, -1 the reverse.

    Kendall's tau-b: (pairs in order - pairs in reverse order) / √(pairs with different grades · pairs with
    different places). A system that retrieves none of the candidates gives them no order and scores 0;
    scipy calls that not a number.
    """

    target = TargetCategory.RETRIEVAL_ACCURACY
    requires = ("candidate_docs",)
    bounds = (-1.0, 1.0)
    oracle = "scipy.stats.kendalltau"

    def __post_init__(self) -> None:
        self.name = "kendall_tau"

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        ranked = ranked_candidates(sample, output)
        by_grade = _untied_pairs(sorted(grade for _, grade in ranked))
        if not by_grade:
            return skip("the candidates have no two different grades")
        by_place = _untied_pairs([place for place, _ in ranked])
        tau = right_less_wrong(ranked) / math.sqrt(by_grade * by_place) if by_place else 0.0
        return min(1.0, max(-1.0, tau))  # rounding may put a perfect order a hair outside


def ranked_candidates(sample: EvaluationSample, output: SystemOutputs) -> Ranked:
    """The judged candidates by the place that the system gave them; those it did not give one, last."""
    grades = judgements(sample)
    retrieved = in_order(output)
    places = dict(
        zip(reversed(retrieved), range(len(retrieved) - 1, -1, -1), strict=True)
    )  # the first counts
    candidates = {doc.doc_id for doc in sample.candidate_docs or ()}
    return sorted(
        (places.get(doc_id, len(retrieved)), grades[doc_id])
        for doc_id in candidates
        if grades.get(doc_id, -1) >= 0
    )


def right_less_wrong(ranked: Ranked) -> int:
    """The pairs whose higher grade has the better place, minus those where it has the worse one.

    >>> right_less_wrong([(0, 2), (1, 0), (2, 1)])
    1
    """
    balance = 0
    above: list[float] = []  # the grades at better places, in ascending order
    for _, tied in groupby(ranked, key=lambda candidate: candidate[0]):
        grades = [grade for _, grade in tied]
        for grade in grades:
            balance += len(above) - bisect_right(above, grade) - bisect_left(above, grade)
        for grade in grades:
            insort(above, grade)
    return balance


def _untied_pairs(in_order: Sequence[float]) -> int:
    return _pairs(len(in_order)) - sum(_pairs(size) for size in _run_lengths(in_order))


def _pairs(size: int) -> int:
    return size * (size - 1) // 2


def _run_lengths(in_order: Iterable[float]) -> list[int]:
    return [len(list(run)) for _, run in groupby(in_order)]
