"""Retrieval metrics against gold documents, as trec_eval defines them.

A document is relevant if it is in `relevant_docs` with a grade above 0 (`metadata["relevance"]`, 1 when
absent), or of at least `level` where one is given: recall@5[level=2] is trec_eval's `-l 2`. Retrieved
documents are taken in the order of their rank; a document that is retrieved twice counts at its first
place, and its second place is a miss. Finding documents (recall, precision, f1, hit) is filed under
RETRIEVAL_RELEVANCE, ranking them (MRR, MAP, nDCG) under RETRIEVAL_ACCURACY; the survey that coined the
targets files all of these under accuracy.
"""

from __future__ import annotations

import numpy as np

from ..core.metrics_base import metric
from ..core.scores import Rows
from ..core.types import TargetCategory
from .retrieval.hits import Hits, LevelMetric, RetrievalMetric, discounted, normalised_gain


@metric("recall@{k}[level={level?:.15g}]")
class RecallAtK(LevelMetric):
    """Share of the relevant documents that are among the first k retrieved.

    |relevant ∩ retrieved[:k]| / |relevant|.
    """

    k: int
    target = TargetCategory.RETRIEVAL_RELEVANCE
    oracle = "trec_eval recall_k"

    def of_hits(self, hits: Hits) -> Rows:
        return hits.within(self.k) / hits.relevant


@metric("precision@{k}[level={level?:.15g}]")
class PrecisionAtK(LevelMetric):
    """Share of the first k places that have a relevant document.

    |relevant ∩ retrieved[:k]| / k: a place that the system left empty is a miss.
    """

    k: int
    target = TargetCategory.RETRIEVAL_RELEVANCE
    oracle = "trec_eval P_k"

    def of_hits(self, hits: Hits) -> Rows:
        return hits.within(self.k) / self.k


@metric("f1@{k}[level={level?:.15g}]")
class F1AtK(LevelMetric):
    """Harmonic mean of precision and recall of the first k places: high only if both are.

    2 |relevant ∩ retrieved[:k]| / (k + |relevant|).
    """

    k: int
    target = TargetCategory.RETRIEVAL_RELEVANCE
    oracle = "2 P R / (P + R) of trec_eval P_k, recall_k"

    def of_hits(self, hits: Hits) -> Rows:
        return 2 * hits.within(self.k) / (self.k + hits.relevant)


@metric("hit@{k}[level={level?:.15g}]")
class HitAtK(LevelMetric):
    """1 if any of the first k documents is relevant, else 0 (also called success@k)."""

    k: int
    target = TargetCategory.RETRIEVAL_RELEVANCE
    oracle = "trec_eval success_k"

    def of_hits(self, hits: Hits) -> Rows:
        return (hits.within(self.k) > 0).astype(np.float64)


@metric("mrr@{k?}[level={level?:.15g}]")
class MRR(LevelMetric):
    """1 / rank of the first relevant document; 0 if none is retrieved (within the first k)."""

    k: int | None = None
    target = TargetCategory.RETRIEVAL_ACCURACY
    oracle = "trec_eval recip_rank"

    def of_hits(self, hits: Hits) -> Rows:
        return hits.total((hits.nth == 1) / hits.rank, self.k)


@metric("map@{k?}[{variant?},level={level?:.15g}]")
class MeanAveragePrecision(LevelMetric):
    """Precision at the rank of each relevant document, averaged over all relevant documents.

    Σ precision@i over the ranks i that have a relevant document / |relevant|.

    map[ragas] is RAGAS's context precision with `relevant_docs` as the judge: it divides by the relevant
    documents that were retrieved, so a missed one costs nothing.
    """

    k: int | None = None
    variant: str | None = None
    target = TargetCategory.RETRIEVAL_ACCURACY
    oracle = "trec_eval map, map_cut_k"

    def __post_init__(self) -> None:
        _check_variant("map", self.variant, "ragas")
        self.repeats = self.variant is not None

    def of_hits(self, hits: Hits) -> Rows:
        precisions = hits.total(hits.nth / hits.rank, self.k)
        return precisions / (hits.relevant if self.variant is None else np.maximum(hits.within(self.k), 1))


@metric("ndcg@{k?}[{variant?}]")
class NDCGAtK(RetrievalMetric):
    """Discounted gain of the list, relative to that of the best possible list.

    Σ grade_i / log2(i + 1) over the first k ranks / the same sum for the gold grades in descending order
    (Järvelin & Kekäläinen 2002).

    ndcg[phoenix] takes the best order of the retrieved documents as the ideal, so a missed document costs
    nothing. ndcg[llama_index] ignores grades and takes a list that is relevant at every place as the ideal.
    """

    k: int | None = None
    variant: str | None = None
    target = TargetCategory.RETRIEVAL_ACCURACY
    oracle = "trec_eval ndcg, ndcg_cut_k"

    def __post_init__(self) -> None:
        _check_variant("ndcg", self.variant, "phoenix", "llama_index")
        self.repeats = self.variant is not None

    def of_hits(self, hits: Hits) -> Rows:
        if self.variant is None:
            return normalised_gain(hits, hits.grade, hits.gold_grade, self.k)
        if self.variant == "phoenix":
            grades, order = hits.grade, np.lexsort((-hits.grade, hits.sample))
            ideal = hits.total(discounted(grades[order], hits.nth), self.k, ranks=hits.nth)
        else:
            grades, places = np.ones(len(hits.rank)), np.arange(1, 1 + hits.retrieved.max(initial=0))
            ideal = np.cumsum([0.0, *discounted(np.ones(len(places)), places)])[
                np.minimum(hits.retrieved, self.k or hits.retrieved)
            ]
        gain = hits.total(discounted(grades, hits.rank), self.k)
        return np.where(ideal > 0, gain / ideal, 0.0)


def _check_variant(name: str, variant: str | None, *known: str) -> None:
    """Raise ValueError unless the metric can be computed as that other tool does."""
    if variant is not None and variant not in known:
        raise ValueError(f"the variants of {name} are {', '.join(known)}; not {variant!r}")
