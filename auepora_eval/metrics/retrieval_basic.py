"""Retrieval metrics against gold documents, as trec_eval defines them.

A document is relevant if it stands in `relevant_docs` with a grade above 0 (`metadata["relevance"]`,
1 when absent), or of at least `level` where one is given: recall@5[level=2] is trec_eval's `-l 2`. Retrieved
documents are taken in the order of their rank; a document that is retrieved twice counts at its first
place, and its second place is a miss. Finding documents (recall, precision, f1, hit) is filed under
RETRIEVAL_RELEVANCE, ranking them (MRR, MAP, nDCG) under RETRIEVAL_ACCURACY; the survey that coined the
targets files all of these under accuracy.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from ..core.batch import Batch
from ..core.metrics_base import METRICS, SampleMetric, skip
from ..core.scores import Scores
from ..core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from .retrieval_hits import (
    RelevantHits,
    best_first,
    discounted_gain,
    discounts,
    found_within,
    gold_grades,
    in_order,
    is_relevant,
    no_relevant,
    ranked_gains,
    relevant_hits,
)

if TYPE_CHECKING:
    from .retrieval_hits import Floats


class RetrievalMetric(SampleMetric):
    """A metric of the grades by rank; `k` cuts the list, None takes all of it."""

    k: int | None
    level: float | None = None
    requires = ("relevant_docs",)

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        judged = gold_grades(sample)
        grades = {doc_id: grade for doc_id, grade in judged.items() if is_relevant(grade, self.level)}
        if not grades:
            return skip(no_relevant(self.level))
        return self.of_gains(self._gains(grades, output), sorted(grades.values(), reverse=True))

    @abstractmethod
    def of_gains(self, gains: Sequence[float], ideal: Sequence[float]) -> float:
        """The score from the grade at each rank (0 for a miss) and the gold grades, best first."""

    def score_all(self, batch: Batch) -> Scores:
        import numpy as np

        hits: RelevantHits = batch.once(relevant_hits, self.level)  # type: ignore[arg-type]
        # A sample without relevant documents divides by zero, and is noted as skipped.
        with np.errstate(all="ignore"):
            values = self.of_hits(batch, hits)
        values[list(hits.notes)] = math.nan
        return Scores(batch.sample_ids(), values, notes=hits.notes)

    @abstractmethod
    def of_hits(self, batch: Batch, hits: RelevantHits) -> Floats:
        """The same score for all samples at once, from their hits."""

    def _gains(self, grades: dict[str, float], output: SystemOutputs) -> list[float]:
        return ranked_gains(grades, output)[: self.k]

    def _found(self, batch: Batch, k: int) -> Floats:
        found: Floats = batch.once(found_within, self.level, k)  # type: ignore[arg-type]
        return found

    def _name(self, base: str, *options: str | None) -> str:
        """The metric's name, with what differs from the default in brackets."""
        if self.k is not None and (isinstance(self.k, bool) or not isinstance(self.k, int) or self.k < 1):
            raise ValueError(f"k must be a whole number of at least 1, not {self.k!r}")
        if self.level is not None and not 0 < self.level < math.inf:
            raise ValueError(f"level must be a number above 0, not {self.level!r}")
        level = None if self.level is None else f"level={self.level:g}"
        inside = ",".join(option for option in (*options, level) if option)
        return f"{base}{'' if self.k is None else f'@{self.k}'}{f'[{inside}]' if inside else ''}"


class VariantMetric(RetrievalMetric):
    """A metric that can also be computed as another tool does, to see why a number moved."""

    variant: str | None
    variants: ClassVar[tuple[str, ...]]

    def score_all(self, batch: Batch) -> Scores:
        return super().score_all(batch) if self.variant is None else SampleMetric.score_all(self, batch)

    def _gains(self, grades: dict[str, float], output: SystemOutputs) -> list[float]:
        if self.variant is None:
            return super()._gains(grades, output)
        # The other tools judge each retrieved chunk by itself: a repeated document counts again.
        return [grades.get(doc_id, 0.0) for doc_id in in_order(output)]

    def _variant_name(self, base: str) -> str:
        if self.variant is not None and self.variant not in self.variants:
            raise ValueError(f"the variants of {base} are {', '.join(self.variants)}; not {self.variant!r}")
        return self._name(base, self.variant)


@METRICS.add("recall")
@dataclass
class RecallAtK(RetrievalMetric):
    """Share of the relevant documents that are among the first k retrieved.

    |relevant ∩ retrieved[:k]| / |relevant|.
    """

    k: int
    level: float | None = field(default=None, kw_only=True)
    target = TargetCategory.RETRIEVAL_RELEVANCE
    oracle = "trec_eval recall_k"

    def __post_init__(self) -> None:
        self.name = self._name("recall")

    def of_gains(self, gains: Sequence[float], ideal: Sequence[float]) -> float:
        return _hits(gains) / len(ideal)

    def of_hits(self, batch: Batch, hits: RelevantHits) -> Floats:
        return self._found(batch, self.k) / hits.total


@METRICS.add("precision")
@dataclass
class PrecisionAtK(RetrievalMetric):
    """Share of the first k places that hold a relevant document.

    |relevant ∩ retrieved[:k]| / k: a place that the system left empty is a miss. Tools that divide by the
    number of retrieved documents print more for a short list.
    """

    k: int
    level: float | None = field(default=None, kw_only=True)
    target = TargetCategory.RETRIEVAL_RELEVANCE
    oracle = "trec_eval P_k"

    def __post_init__(self) -> None:
        self.name = self._name("precision")

    def of_gains(self, gains: Sequence[float], ideal: Sequence[float]) -> float:
        return _hits(gains) / self.k

    def of_hits(self, batch: Batch, hits: RelevantHits) -> Floats:
        return self._found(batch, self.k) / self.k


@METRICS.add("f1")
@dataclass
class F1AtK(RetrievalMetric):
    """Precision and recall of the first k places in one number: high only if both are.

    Their harmonic mean, 2 P R / (P + R), which is 2 |relevant ∩ retrieved[:k]| / (k + |relevant|).
    """

    k: int
    level: float | None = field(default=None, kw_only=True)
    target = TargetCategory.RETRIEVAL_RELEVANCE
    oracle = "2 P R / (P + R) of trec_eval P_k, recall_k"

    def __post_init__(self) -> None:
        self.name = self._name("f1")

    def of_gains(self, gains: Sequence[float], ideal: Sequence[float]) -> float:
        return 2 * _hits(gains) / (self.k + len(ideal))

    def of_hits(self, batch: Batch, hits: RelevantHits) -> Floats:
        return 2 * self._found(batch, self.k) / (self.k + hits.total)


@METRICS.add("hit")
@dataclass
class HitAtK(RetrievalMetric):
    """1 if any of the first k documents is relevant, else 0 (also called success@k)."""

    k: int
    level: float | None = field(default=None, kw_only=True)
    target = TargetCategory.RETRIEVAL_RELEVANCE
    oracle = "trec_eval success_k"

    def __post_init__(self) -> None:
        self.name = self._name("hit")

    def of_gains(self, gains: Sequence[float], ideal: Sequence[float]) -> float:
        return float(any(gain > 0 for gain in gains))

    def of_hits(self, batch: Batch, hits: RelevantHits) -> Floats:
        return (self._found(batch, self.k) > 0).astype(float)


@METRICS.add("mrr")
@dataclass
class MRR(RetrievalMetric):
    """1 / rank of the first relevant document; 0 if none is retrieved (within the first k)."""

    k: int | None = None
    level: float | None = field(default=None, kw_only=True)
    target = TargetCategory.RETRIEVAL_ACCURACY
    oracle = "trec_eval recip_rank"

    def __post_init__(self) -> None:
        self.name = self._name("mrr")

    def of_gains(self, gains: Sequence[float], ideal: Sequence[float]) -> float:
        return next((1 / rank for rank, gain in enumerate(gains, start=1) if gain > 0), 0.0)

    def of_hits(self, batch: Batch, hits: RelevantHits) -> Floats:
        import numpy as np

        first = np.flatnonzero(hits.nth == 0)
        place = hits.place[first]
        values = np.zeros(hits.samples)
        values[hits.sample[first]] = 1 / (place + 1) if self.k is None else (place < self.k) / (place + 1)
        return values


@METRICS.add("map")
@dataclass
class MeanAveragePrecision(VariantMetric):
    """Precision at the rank of each relevant document, averaged over all relevant documents.

    Σ precision@i over the ranks i that hold a relevant document / |relevant|: one that was not
    retrieved counts 0. Tools that divide by min(k, |relevant|) or by the hits print more.

    map[ragas] is RAGAS's context precision with `relevant_docs` as the judge: it divides by the relevant
    documents that were retrieved, so that a missed one costs nothing. LlamaIndex's average precision
    is map itself, as long as no document is retrieved twice; Phoenix has none.
    """

    k: int | None = None
    variant: str | None = None
    level: float | None = field(default=None, kw_only=True)
    target = TargetCategory.RETRIEVAL_ACCURACY
    oracle = "trec_eval map, map_cut_k"
    variants = ("ragas",)

    def __post_init__(self) -> None:
        self.name = self._variant_name("map")

    def of_gains(self, gains: Sequence[float], ideal: Sequence[float]) -> float:
        hits, total = 0, 0.0
        for rank, gain in enumerate(gains[: self.k], start=1):
            if gain > 0:
                hits += 1
                total += hits / rank
        return total / (len(ideal) if self.variant is None else max(hits, 1))

    def of_hits(self, batch: Batch, hits: RelevantHits) -> Floats:
        return hits.sums((hits.nth + 1) / (hits.place + 1), self.k) / hits.total


@METRICS.add("ndcg")
@dataclass
class NDCGAtK(VariantMetric):
    """Discounted gain of the list, relative to that of the best possible list.

    Σ grade_i / log2(i + 1) over the first k ranks / the same sum for the gold grades in descending
    order. Gains are linear (Järvelin & Kekäläinen 2002); with binary grades it makes no difference.

    ndcg[phoenix] takes the best order of what was retrieved for the ideal, so that a missed document costs
    nothing; ndcg[llama_index] ignores grades and takes a list that is relevant at every place for the
    ideal, so that 1 is out of reach with fewer relevant documents than places. RAGAS has none.
    """

    k: int | None = None
    variant: str | None = None
    target = TargetCategory.RETRIEVAL_ACCURACY
    oracle = "trec_eval ndcg, ndcg_cut_k"
    variants = ("phoenix", "llama_index")

    def __post_init__(self) -> None:
        self.name = self._variant_name("ndcg")

    def of_gains(self, gains: Sequence[float], ideal: Sequence[float]) -> float:
        if self.variant == "phoenix":
            ideal = sorted(gains, reverse=True)
        elif self.variant == "llama_index":
            gains = [float(gain > 0) for gain in gains]
            ideal = [1.0] * len(gains)
        best = discounted_gain(ideal[: self.k])
        return discounted_gain(gains[: self.k]) / best if best > 0 else 0.0

    def of_hits(self, batch: Batch, hits: RelevantHits) -> Floats:
        return normalised_gain(batch, hits, self.k, exponential=False)


def normalised_gain(batch: Batch, hits: RelevantHits, k: int | None, *, exponential: bool) -> Floats:
    """nDCG of every sample, with gains as they are or as 2**grade - 1."""
    import numpy as np

    def gain(grade: Floats) -> Floats:
        return np.expm1(grade * math.log(2)) if exponential else grade

    sample, place, grade = batch.once(best_first)
    by_place = discounts(1 + max(int(hits.place.max(initial=0)), int(place.max(initial=0))))
    if k is not None:
        within = place < k
        sample, place, grade = sample[within], place[within], grade[within]
    ideal = np.bincount(sample, gain(grade) / by_place[place], minlength=hits.samples)
    found: Floats = hits.sums(gain(hits.grade) / by_place[hits.place], k) / ideal
    return found


def _hits(gains: Sequence[float]) -> int:
    return sum(gain > 0 for gain in gains)
