"""How varied the retrieved documents are, and how much of a question's sides they cover.

Variety without relevance is worth nothing, random documents being the most varied of all: print these beside
a relevance metric. Documents are taken by rank, the first k or all; those without text are left out where
texts are compared. Variety of the answers is in answer_diversity.py.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from ..core.metrics_base import METRICS, SampleMetric, skip
from ..core.types import Document, EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ..errors import ScoringError
from .retrieval_hits import gold_grades, in_order
from .text import words

_TOO_FEW = "fewer than two documents with text were retrieved"


class PairwiseMetric(SampleMetric):
    """A metric of the texts of the first k retrieved documents, two by two."""

    k: int | None
    target = TargetCategory.DIVERSITY

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        texts = [doc.text for doc in first_documents(output, self.k) if doc.text.strip()]
        return self.of_texts(texts) if len(texts) > 1 else skip(_TOO_FEW)

    def of_texts(self, texts: Sequence[str]) -> float | SampleScore:
        """The score of two texts or more."""
        raise NotImplementedError


@METRICS.add("lexical_diversity")
@dataclass
class LexicalDiversity(PairwiseMetric):
    """How different the retrieved documents are from each other, by their words.

    Mean over all pairs of 1 - |shared words| / |words of both| (Jaccard distance of the sets of words): 0
    for copies, 1 where no two share a word. Also called intra-list distance. Long documents share more words.
    """

    k: int | None = None

    def __post_init__(self) -> None:
        self.name = f"lexical_diversity{_cutoff(self.k, least=2)}"

    def of_texts(self, texts: Sequence[str]) -> float | SampleScore:
        return _mean([1 - jaccard(*pair) for pair in combinations([set(words(text)) for text in texts], 2)])


@METRICS.add("embedding_diversity")
@dataclass
class EmbeddingDiversity(PairwiseMetric):
    """How different the retrieved documents are from each other, by an embedding model.

    Mean over all pairs of 1 - cos(e_i, e_j), from 0 (all alike) to 2: intra-list distance, or cosine
    diversity. Values of different models are not comparable.
    """

    k: int | None = None
    model: str = "wordllama"
    bounds = (0.0, 2.0)

    def __post_init__(self) -> None:
        option = "" if self.model == "wordllama" else f"[{self.model}]"
        self.name = f"embedding_diversity{_cutoff(self.k, least=2)}{option}"

    def ready(self) -> None:
        from ..judges.embeddings import embedder

        embedder(self.model)

    def of_texts(self, texts: Sequence[str]) -> float | SampleScore:
        import numpy as np

        from ..judges.embeddings import embedder

        # Tokenizers take no lone surrogates.
        vectors = embedder(self.model).embed([text.encode("utf-8", "replace").decode() for text in texts])
        vectors = vectors[vectors.any(axis=1)].astype(np.float64)
        if len(vectors) < 2:
            return skip(f"{self.model} has vectors for fewer than two documents")
        cosines = (vectors @ vectors.T)[np.triu_indices(len(vectors), 1)]
        return min(2.0, max(0.0, 1 - float(cosines.mean())))

    def signature(self) -> dict[str, Any]:
        return {"model": self.model}


@METRICS.add("near_duplicate_rate")
@dataclass
class NearDuplicateRate(PairwiseMetric):
    """Share of the pairs of retrieved documents that are nearly the same text (lower is better).

    Pairs whose sets of three-word shingles have a Jaccard similarity of at least `threshold` / all pairs.
    A text of fewer than three words is one shingle.
    """

    k: int | None = None
    threshold: float = 0.8
    higher_is_better = False

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise ValueError(f"threshold must lie above 0 and not above 1, not {self.threshold}")
        option = "" if self.threshold == 0.8 else f"[threshold={self.threshold!r}]"
        self.name = f"near_duplicate_rate{_cutoff(self.k, least=2)}{option}"

    def of_texts(self, texts: Sequence[str]) -> float | SampleScore:
        shingles = [_shingles(words(text)) for text in texts]
        return _mean([float(jaccard(*pair) >= self.threshold) for pair in combinations(shingles, 2)])


@METRICS.add("distinct_source_share")
@dataclass
class DistinctSourceShare(SampleMetric):
    """Share of the retrieved documents that come from a source of their own.

    Different sources among the first k / documents among the first k. The source of a document is its
    `metadata["source"]`, or its id where it names none: 0.2 means five chunks of one document.
    """

    k: int | None = None
    target = TargetCategory.DIVERSITY

    def __post_init__(self) -> None:
        self.name = f"distinct_source_share{_cutoff(self.k)}"

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        found = first_documents(output, self.k)
        sources = {str(doc.metadata.get("source", doc.doc_id)) for doc in found}
        return len(sources) / len(found) if found else skip("no document was retrieved")


class SubtopicMetric(SampleMetric):
    """A metric of the subtopics that gold documents name in `metadata["subtopics"]`, a list of names."""

    k: int | None
    target = TargetCategory.DIVERSITY
    requires = ("relevant_docs",)

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        gold = gold_subtopics(sample)
        if not gold:
            return skip("no relevant document of the sample names its subtopics")
        # A document that is retrieved twice counts at its first place; its second place is a miss.
        left = dict(gold)
        return self.of_subtopics(
            [left.pop(doc_id, frozenset()) for doc_id in in_order(output)[: self.k]], gold
        )

    def of_subtopics(
        self, found: Sequence[Collection[str]], gold: Mapping[str, Collection[str]]
    ) -> float | SampleScore:
        """The score from the subtopics at each rank and those of each gold document."""
        raise NotImplementedError


@METRICS.add("subtopic_recall")
@dataclass
class SubtopicRecall(SubtopicMetric):
    """Share of the sides of a question (its subtopics) that the first k documents cover.

    Subtopics of the relevant documents among the first k / subtopics of all relevant documents.
    """

    k: int | None = None
    oracle = "pyndeval strec@k"

    def __post_init__(self) -> None:
        self.name = f"subtopic_recall{_cutoff(self.k)}"

    def of_subtopics(
        self, found: Sequence[Collection[str]], gold: Mapping[str, Collection[str]]
    ) -> float | SampleScore:
        return len(set().union(*found)) / len(set().union(*gold.values()))


@METRICS.add("alpha_ndcg")
@dataclass
class AlphaNDCG(SubtopicMetric):
    """nDCG that values a subtopic less each time it comes up again.

    A document gains (1 - alpha)^(times seen before) for each of its subtopics, divided by log2(rank + 1); the
    sum over the first k, relative to that of a greedy ideal list (Clarke et al. 2008). alpha 0 counts every
    repeat in full. The best list of all is hard to find; the greedy one, ties broken by the higher document
    id, is what ndeval takes. A list that beats it scores above 1, here as there; never above e / (e - 1).
    """

    k: int | None = None
    alpha: float = 0.5
    bounds = (0.0, math.e / (math.e - 1))
    oracle = "pyndeval alpha-nDCG@k"

    def __post_init__(self) -> None:
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha must lie between 0 and 1, not {self.alpha}")
        option = "" if self.alpha == 0.5 else f"[alpha={self.alpha!r}]"
        self.name = f"alpha_ndcg{_cutoff(self.k)}{option}"

    def of_subtopics(
        self, found: Sequence[Collection[str]], gold: Mapping[str, Collection[str]]
    ) -> float | SampleScore:
        return self._gain(found) / self._gain(self._ideal(gold))

    def score_if_failed(self, sample: EvaluationSample, *, high: bool) -> SampleScore:
        return SampleScore(float(high))  # at its best, the ideal list

    def _gain(self, ranked: Sequence[Collection[str]]) -> float:
        seen: dict[str, int] = {}
        total = 0.0
        for rank, subtopics in enumerate(ranked, start=1):
            total += self._worth(subtopics, seen) / math.log2(rank + 1)
            for subtopic in subtopics:
                seen[subtopic] = seen.get(subtopic, 0) + 1
        return total

    def _ideal(self, gold: Mapping[str, Collection[str]]) -> list[Collection[str]]:
        left = sorted(gold.items(), reverse=True)
        seen: dict[str, int] = {}
        chosen: list[Collection[str]] = []
        while left and (self.k is None or len(chosen) < self.k):
            best = max(range(len(left)), key=lambda place: self._worth(left[place][1], seen))
            _, subtopics = left.pop(best)
            chosen.append(subtopics)
            for subtopic in subtopics:
                seen[subtopic] = seen.get(subtopic, 0) + 1
        return chosen

    def _worth(self, subtopics: Collection[str], seen: Mapping[str, int]) -> float:
        return sum((1 - self.alpha) ** seen.get(subtopic, 0) for subtopic in subtopics)


def first_documents(output: SystemOutputs, k: int | None) -> list[Document]:
    """The first k retrieved documents by rank, or all of them."""
    return [hit.doc for hit in sorted(output.retrieved, key=lambda hit: hit.rank)[:k]]


def gold_subtopics(sample: EvaluationSample) -> dict[str, frozenset[str]]:
    """The subtopics of each relevant document that names any, by its id."""
    grades = gold_grades(sample)
    found: dict[str, frozenset[str]] = {}
    for doc in sample.relevant_docs or ():
        named = doc.metadata.get("subtopics") or ()
        if not isinstance(named, list | tuple) or not all(isinstance(name, str) for name in named):
            raise ScoringError(f"the subtopics of {doc.doc_id!r} must be a list of names, not {named!r:.80}")
        if named and grades[doc.doc_id] > 0:
            found[doc.doc_id] = found.get(doc.doc_id, frozenset()) | frozenset(named)
    return found


def jaccard(left: Collection[Any], right: Collection[Any]) -> float:
    """|shared| / |all of both|; two empty sets are the same."""
    left, right = set(left), set(right)
    return len(left & right) / len(left | right) if left or right else 1.0


def _shingles(found: Sequence[str], size: int = 3) -> set[tuple[str, ...]]:
    return {tuple(found[start : start + size]) for start in range(max(1, len(found) - size + 1))}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _cutoff(k: int | None, *, least: int = 1) -> str:
    if k is None:
        return ""
    if isinstance(k, bool) or not isinstance(k, int) or k < least:
        raise ValueError(f"k must be a whole number of at least {least}, not {k!r}")
    return f"@{k}"
