"""Retrieval without gold: what the retrieved texts have to do with the query.

These are the survey's retrieval relevance in the narrow sense: what was retrieved, beside the query that it
was retrieved for. They need the texts; a sample with a document that came without its text is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ...core.metrics_base import BatchMetric, SampleMetric, metric, skip
from ...core.scores import Batch, Scores
from ...core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ...text.content_words import content_words
from ...text.tokens import words
from ..answers.relevance import EmbeddingMetric

Vector = NDArray[np.float32]
_SAMPLES_AT_ONCE = 1_000  # the vectors of that many lists are held at a time


@metric("query_term_coverage@{k}")
class QueryTermCoverage(SampleMetric):
    """Share of the query's content words that occur somewhere in the first k texts.

    Distinct content words of the query found in the texts, both stemmed / distinct content words of the
    query; 0 if nothing was retrieved. Needs no gold. It sees words, not meaning: a synonym is a miss, and a
    text about something else in the same words is a hit.
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
class QueryDocSimilarity(EmbeddingMetric, BatchMetric):
    """How near the first k texts are to the query in an embedding space: the mean cosine of their vectors.

    Σ cos(e(query), e(text)) / number of texts, from -1 to 1; -1 if nothing was retrieved. Needs no gold.
    Values of different models are not comparable, and a retriever that ranks by the same model is flattered.
    """

    k: int
    model: str = "wordllama"
    target = TargetCategory.RETRIEVAL_RELEVANCE
    requires = ("query",)

    def score_all(self, batch: Batch) -> Scores:
        scores: list[SampleScore] = []
        for start in range(0, len(batch), _SAMPLES_AT_ONCE):
            chunk = slice(start, start + _SAMPLES_AT_ONCE)
            scores += self._similarities(batch.samples[chunk], batch.outputs[chunk])
        return Scores.of(scores)

    def _similarities(
        self, samples: Sequence[EvaluationSample], outputs: Sequence[SystemOutputs]
    ) -> Iterator[SampleScore]:
        lists = [first_texts(output, self.k) for output in outputs]
        texts = [sample.query for sample in samples]
        for found in lists:
            texts += [] if isinstance(found, SampleScore) else found
        vector_of = dict(zip(texts, self.vectors(texts), strict=True))
        for sample, found in zip(samples, lists, strict=True):
            if isinstance(found, SampleScore):
                yield found
            else:
                yield self._similarity(vector_of[sample.query], [vector_of[text] for text in found])

    def _similarity(self, query: Vector, texts: Sequence[Vector]) -> SampleScore:
        if not texts:
            return SampleScore(self.bounds[0])
        # A vector of zeros (no known token) has no cosine.
        if not query.any() or not all(vector.any() for vector in texts):
            return skip(f"{self.model} has no vector for the query or a text")
        mean = sum(float(query @ vector) for vector in texts) / len(texts)
        return SampleScore(min(1.0, max(-1.0, mean)))  # rounding may put equal texts a hair above 1


def first_texts(output: SystemOutputs, k: int) -> list[str] | SampleScore:
    """Return the texts of the first k documents, which may be none, or why the sample is skipped."""
    first = sorted(output.retrieved, key=lambda hit: hit.rank)[:k]
    if not all(hit.doc.text.strip() and not hit.doc.metadata.get("text_missing") for hit in first):
        return skip(f"a document among the first {k} has no text")
    return [hit.doc.text for hit in first]
