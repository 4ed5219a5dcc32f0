"""Retrieval without gold: what the retrieved texts have to do with the query.

These are the survey's retrieval relevance in the narrow sense: what was retrieved, beside the query that it
was retrieved for. They need the texts; a sample with a document that came without its text is skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.batch import Batch
from ..core.metrics_base import METRICS, SampleMetric, skip
from ..core.scores import Scores
from ..core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ..judges.embeddings import embedder
from .content import content_words
from .text import words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SAMPLES_AT_ONCE = 1_000  # the vectors of that many lists are held at a time


@METRICS.add("query_term_coverage")
@dataclass
class QueryTermCoverage(SampleMetric):
    """Share of the query's content words that occur somewhere in the first k texts.

    Distinct content words of the query found in the texts, both stemmed / distinct content words of the
    query. Needs no gold. It sees words, not meaning: a synonym is a miss, and a text about something else
    in the same words is a hit.
    """

    k: int
    target = TargetCategory.RETRIEVAL_RELEVANCE
    requires = ("query",)

    def __post_init__(self) -> None:
        self.name = _named("query_term_coverage", self.k)

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        asked = set(content_words(sample.query, stemmed=True))
        if not asked:
            return skip("the query has no content words")
        texts = first_texts(output, self.k)
        if isinstance(texts, SampleScore):
            return texts
        found: set[str] = set()
        for text in texts:
            found |= asked.intersection(words(text, stemmed=True))
        return len(found) / len(asked)

    def signature(self) -> dict[str, Any]:
        return {"stemmer": "porter (nltk)", "words": "unicode, cjk per character"}


@METRICS.add("query_doc_similarity")
@dataclass
class QueryDocSimilarity(SampleMetric):
    """How near the first k texts are to the query in an embedding space: the mean cosine of their vectors.

    Σ cos(e(query), e(text)) / number of texts, from -1 to 1. Needs no gold. Values of different models are
    not comparable, and a retriever that ranks by the same model is flattered.
    """

    k: int
    model: str = "wordllama"
    target = TargetCategory.RETRIEVAL_RELEVANCE
    requires = ("query",)
    bounds = (-1.0, 1.0)

    def __post_init__(self) -> None:
        self.name = _named("query_doc_similarity", self.k)
        if self.model != "wordllama":
            self.name += f"[{self.model}]"

    def ready(self) -> None:
        embedder(self.model)

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        texts = first_texts(output, self.k)
        if isinstance(texts, SampleScore):
            return texts
        return self._similarity(sample.query, texts, self._vectors([sample.query, *texts]))

    def score_all(self, batch: Batch) -> Scores:
        return Scores.of(self._each(batch))

    def _each(self, batch: Batch) -> Iterator[SampleScore]:
        for start in range(0, len(batch), _SAMPLES_AT_ONCE):
            queries = [sample.query for sample in batch.samples[start : start + _SAMPLES_AT_ONCE]]
            lists = [
                first_texts(output, self.k) for output in batch.outputs[start : start + _SAMPLES_AT_ONCE]
            ]
            known = [texts for texts in lists if not isinstance(texts, SampleScore)]
            vectors = self._vectors([*queries, *(text for texts in known for text in texts)])
            for query, texts in zip(queries, lists, strict=True):
                if isinstance(texts, SampleScore):
                    yield texts
                else:
                    yield self._similarity(query, texts, vectors)

    def _vectors(self, texts: list[str]) -> dict[str, NDArray[np.float32]]:
        different = list(dict.fromkeys(texts))
        # Tokenizers take no lone surrogates.
        encodable = [text.encode("utf-8", "replace").decode() for text in different]
        return dict(zip(different, embedder(self.model).embed(encodable), strict=True))

    def _similarity(
        self, query: str, texts: list[str], vectors: dict[str, NDArray[np.float32]]
    ) -> SampleScore:
        asked = vectors[query]
        given = [vectors[text] for text in texts]
        if not asked.any() or not all(vector.any() for vector in given):
            return skip(f"{self.model} has no vector for the query or a text")
        mean = sum(float(asked @ vector) for vector in given) / len(given)
        return SampleScore(min(1.0, max(-1.0, mean)))  # rounding may put equal texts a hair above 1

    def signature(self) -> dict[str, Any]:
        return {"model": self.model}


def first_texts(output: SystemOutputs, k: int) -> list[str] | SampleScore:
    """The texts of the first k documents, or why the sample is skipped."""
    first = sorted(output.retrieved, key=lambda hit: hit.rank)[:k]
    if not first:
        return skip("nothing was retrieved")
    if not all(hit.doc.text.strip() and not hit.doc.metadata.get("text_missing") for hit in first):
        return skip(f"a document among the first {k} has no text")
    return [hit.doc.text for hit in first]


def _named(base: str, k: int) -> str:
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise ValueError(f"k must be a whole number of at least 1, not {k!r}")
    return f"{base}@{k}"
