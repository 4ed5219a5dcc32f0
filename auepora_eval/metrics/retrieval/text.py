"""Retrieval without gold: what the retrieved texts have to do with the query.

These are the survey's retrieval relevance in the narrow sense: what was retrieved, beside the query that it
was retrieved for. They need the texts; a sample with a document that came without its text is skipped.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...core.metrics_base import SampleMetric, metric, skip
from ...core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ...text.content_words import content_words
from ...text.tokens import words
from ..answers.relevance import EmbeddingMetric
from .hits import first_documents


@metric("query_term_coverage@{k}")
class QueryTermCoverage(SampleMetric):
    """Share of the query's content words that occur somewhere in the first k texts.

    Distinct content words of the query found in the texts, both stemmed / distinct content words of the
    query; 0 if nothing was retrieved. It sees words, not meaning: a synonym is a miss.
    """

    listed = False
    k: int
    target = TargetCategory.RETRIEVAL_RELEVANCE
    requires = ("query",)

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        wanted = set(content_words(sample.query, stemmed=True))
        if not wanted:
            return skip("the query has no content words")
        texts = first_texts(output, self.k)
        if isinstance(texts, SampleScore):
            return texts
        covered: set[str] = set()
        for text in texts:
            covered |= wanted.intersection(words(text, stemmed=True))
        return len(covered) / len(wanted)

    def signature(self) -> Mapping[str, object]:
        return {"stemmer": "porter (nltk)", "words": "unicode, cjk per character"}


@metric("query_doc_similarity@{k}[{model?}]")
class QueryDocSimilarity(EmbeddingMetric):
    """How near the first k texts are to the query in an embedding space: the mean cosine of their vectors.

    -1 if nothing was retrieved. Values of different models are not comparable, and a retriever that ranks by
    the same model is flattered.
    """

    k: int
    model: str = "wordllama"
    target = TargetCategory.RETRIEVAL_RELEVANCE
    requires = ("query",)

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        texts = first_texts(output, self.k)
        if isinstance(texts, SampleScore):
            return texts
        if not texts:
            return self.bounds[0]
        query, *others = self.vectors([sample.query, *texts])
        # A vector of zeros (no known token) has no cosine.
        if not query.any() or not all(vector.any() for vector in others):
            return skip(f"{self.model} has no vector for the query or a text")
        mean = sum(float(query @ vector) for vector in others) / len(texts)
        return min(1.0, max(-1.0, mean))  # rounding may put equal texts a hair above 1


def first_texts(output: SystemOutputs, k: int) -> list[str] | SampleScore:
    """Return the texts of the first k documents, which may be none, or why the sample is skipped."""
    first = first_documents(output, k)
    if not all(doc.text.strip() and not doc.metadata.get("text_missing") for doc in first):
        return skip(f"a document among the first {k} has no text")
    return [doc.text for doc in first]
