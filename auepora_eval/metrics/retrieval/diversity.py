"""How varied the retrieved documents are, and how much of a question's sides they cover.

Variety without relevance is worth nothing, random documents being the most varied of all: print these beside
a relevance metric. Documents are taken by rank, the first k or all; those without text are left out where
texts are compared. Variety of the answers is in answers/diversity.py.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence, Set
from itertools import combinations

import numpy as np

from ...core.matching import source_of
from ...core.metrics_base import SampleMetric, metric, skip
from ...core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ...errors import ScoringError
from ...text.tokens import words
from ..answers.relevance import EmbeddingMetric
from .hits import first_documents, gold_grades, in_order

_TOO_FEW = "fewer than two documents with text were retrieved"


class RetrievedDiversity(SampleMetric):
    """A metric of how different the retrieved documents are."""

    target = TargetCategory.DIVERSITY

    @property
    def is_of_retrieval(self) -> bool:
        return True


class PairwiseMetric(RetrievedDiversity):
    """A metric of the texts of the first k retrieved documents, two by two."""

    k: int | None

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        texts = [doc.text for doc in first_documents(output, self.k) if doc.text.strip()]
        return self.of_texts(texts) if len(texts) > 1 else skip(_TOO_FEW)

    def of_texts(self, texts: Sequence[str]) -> float | SampleScore:
        """Return the score of two texts or more."""
        raise NotImplementedError


@metric("lexical_diversity@{k?}", ranges={"k": "[2, inf)"})
class LexicalDiversity(PairwiseMetric):
    """How different the retrieved documents are from each other, by their words (intra-list distance).

    Mean over all pairs of 1 - |shared words| / |words of both| (Jaccard distance of the sets of words): 0 for
    copies, 1 where no two share a word. Long documents share more words.
    """

    k: int | None = None

    def of_texts(self, texts: Sequence[str]) -> float | SampleScore:
        similarities = jaccard_of_pairs([set(words(text)) for text in texts])
        return sum(1 - similarity for similarity in similarities) / len(similarities)


@metric("embedding_diversity@{k?}[{model?}]", ranges={"k": "[2, inf)"})
class EmbeddingDiversity(EmbeddingMetric, PairwiseMetric):
    """How different the retrieved documents are from each other, by an embedding model.

    Mean over all pairs of 1 - cos(e_i, e_j): intra-list distance, or cosine diversity. Values of different
    models are not comparable.
    """

    k: int | None = None
    model: str = "wordllama"
    bounds = (0.0, 2.0)

    def of_texts(self, texts: Sequence[str]) -> float | SampleScore:
        vectors = self.vectors(texts)
        # A text without tokens has a vector of zeros, which has no direction.
        vectors = vectors[vectors.any(axis=1)].astype(np.float64)
        if len(vectors) < 2:
            return skip(f"{self.model} has vectors for fewer than two documents")
        cosines = (vectors @ vectors.T)[np.triu_indices(len(vectors), 1)]
        return min(2.0, max(0.0, 1 - float(cosines.mean())))


@metric("near_duplicate_rate@{k?}[threshold={threshold?}]", ranges={"k": "[2, inf)", "threshold": "(0, 1]"})
class NearDuplicateRate(PairwiseMetric):
    """Share of the pairs of retrieved documents that are nearly the same text.

    Pairs whose sets of three-word shingles have a Jaccard similarity of at least `threshold` / all pairs. A
    text of fewer than three words is one shingle.
    """

    k: int | None = None
    threshold: float = 0.8
    higher_is_better = False

    def of_texts(self, texts: Sequence[str]) -> float | SampleScore:
        similarities = jaccard_of_pairs([set(_shingles(words(text))) for text in texts])
        return sum(similarity >= self.threshold for similarity in similarities) / len(similarities)


@metric("distinct_source_share@{k?}")
class DistinctSourceShare(RetrievedDiversity):
    """Share of the retrieved documents that come from a source of their own.

    Different sources among the first k / documents among the first k. The source is `metadata["source"]`, or
    else the id: 0.2 means five chunks of one document.
    """

    k: int | None = None

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        documents = first_documents(output, self.k)
        sources = {source_of(doc) for doc in documents}
        return len(sources) / len(documents) if documents else skip("no document was retrieved")


class SubtopicMetric(RetrievedDiversity):
    """A metric of the subtopics that gold documents name in `metadata["subtopics"]`, a list of names."""

    k: int | None
    requires = ("relevant_docs",)
    scores_blank = True

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
        """Return the score from the subtopics at each rank and those of each gold document."""
        raise NotImplementedError


@metric("subtopic_recall@{k?}")
class SubtopicRecall(SubtopicMetric):
    """Share of the sides of a question (its subtopics) that the first k documents cover."""

    k: int | None = None
    oracle = "pyndeval strec@k"

    def of_subtopics(
        self, found: Sequence[Collection[str]], gold: Mapping[str, Collection[str]]
    ) -> float | SampleScore:
        return len(set().union(*found)) / len(set().union(*gold.values()))


@metric("alpha_ndcg@{k?}[alpha={alpha?}]", ranges={"alpha": "[0, 1]"})
class AlphaNDCG(SubtopicMetric):
    """nDCG that values a subtopic less each time it comes up again.

    A document gains (1 - alpha)^(times seen before) for each of its subtopics, divided by log2(rank + 1); the
    sum over the first k, relative to that of a greedy ideal list (Clarke et al. 2008), ties broken by the
    higher document id as in ndeval. alpha 0 counts every repeat in full. A list that beats the greedy one
    scores above 1.
    """

    k: int | None = None
    alpha: float = 0.5
    bounds = (0.0, math.e / (math.e - 1))
    oracle = "pyndeval alpha-nDCG@k"

    def of_subtopics(
        self, found: Sequence[Collection[str]], gold: Mapping[str, Collection[str]]
    ) -> float | SampleScore:
        return self._gain(found) / self._gain(self._ideal(gold))

    def _gain(self, ranked: Sequence[Collection[str]]) -> float:
        seen: Counter[str] = Counter()
        total = 0.0
        for rank, subtopics in enumerate(ranked, start=1):
            total += self._worth(subtopics, seen) / math.log2(rank + 1)
            seen.update(subtopics)
        return total

    def _ideal(self, gold: Mapping[str, Collection[str]]) -> list[Collection[str]]:
        left = sorted(gold.items(), reverse=True)
        seen: Counter[str] = Counter()
        chosen: list[Collection[str]] = []
        while left and (self.k is None or len(chosen) < self.k):
            best = max(range(len(left)), key=lambda place: self._worth(left[place][1], seen))
            _, subtopics = left.pop(best)
            chosen.append(subtopics)
            seen.update(subtopics)
        return chosen

    def _worth(self, subtopics: Collection[str], seen: Counter[str]) -> float:
        return sum((1 - self.alpha) ** seen[subtopic] for subtopic in subtopics)


def gold_subtopics(sample: EvaluationSample) -> dict[str, frozenset[str]]:
    """Return the subtopics of each relevant document that names any, by its id."""
    grades = gold_grades(sample)
    subtopics: dict[str, frozenset[str]] = {}
    for doc in sample.relevant_docs or ():
        named = doc.metadata.get("subtopics") or ()
        if not isinstance(named, list | tuple) or not all(isinstance(name, str) for name in named):
            raise ScoringError(f"the subtopics of {doc.doc_id!r} must be a list of names, not {named!r:.80}")
        if named and grades[doc.doc_id] > 0:
            subtopics[doc.doc_id] = subtopics.get(doc.doc_id, frozenset()) | frozenset(named)
    return subtopics


def jaccard_of_pairs(sets: Sequence[Set[Hashable]]) -> list[float]:
    """Return |shared| / |all of both| of every two sets; two empty sets are the same."""
    shares = []
    for one, other in combinations(sets, 2):
        in_both = len(one & other)
        in_either = len(one) + len(other) - in_both
        shares.append(in_both / in_either if in_either else 1.0)
    return shares


def _shingles(tokens: Sequence[str]) -> Iterable[tuple[str, ...]]:
    """Return the runs of three words; a shorter text is one run."""
    return zip(tokens, tokens[1:], tokens[2:], strict=False) if len(tokens) > 2 else [tuple(tokens)]
