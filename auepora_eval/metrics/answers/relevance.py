"""How far an answer addresses its question, judged by words and vectors.

The weakest of the targets without a model as judge: an answer that merely repeats the question scores high,
and a right answer of one word scores low. Read these beside correctness, never alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ...core.metrics_base import SampleMetric, metric, skip
from ...core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ...text.content_words import content_words
from ...text.refusal import DETECTOR, declines
from ...text.tokens import words
from ..embeddings import embedder
from .pairs import compared_texts


class EmbeddingMetric(SampleMetric):
    """A metric of the vectors that an embedding model gives to texts."""

    model: str
    bounds = (-1.0, 1.0)

    def ready(self) -> None:
        embedder(self.model)

    def signature(self) -> Mapping[str, object]:
        return {"model": self.model}

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a vector for each text; a repeated text is embedded once."""
        places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        # Tokenizers take no lone surrogates.
        encodable = [text.encode("utf-8", "replace").decode() for text in places]
        return np.asarray(embedder(self.model).embed(encodable))[[places[text] for text in texts]]


@metric("query_coverage")
class QueryCoverage(SampleMetric):
    """Share of the question's content words that the answer takes up.

    Distinct content words of the query found in the answer, both stemmed / distinct content words of the
    query. A right "in 1911" scores 0: it is only a sign of drift.
    """

    listed = False
    target = TargetCategory.GENERATION_RELEVANCE
    requires = ("query",)

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        if not output.response.text.strip():
            return skip("the answer is empty")
        query_words = set(content_words(sample.query, stemmed=True))
        if not query_words:
            return skip("the query has no content words")
        return len(query_words & set(words(output.response.text, stemmed=True))) / len(query_words)

    def signature(self) -> Mapping[str, object]:
        return {"stemmer": "porter (nltk)", "words": "unicode, cjk per character"}


@metric("query_answer_similarity[{model?}]")
class QueryAnswerSimilarity(EmbeddingMetric):
    """How near the answer is to the question in an embedding space: the cosine of their vectors.

    Values of different models are not comparable. It rewards an answer that repeats the question. ragas'
    response relevancy is another number: it compares the question with questions that a language model makes
    up from the answer.
    """

    model: str = "wordllama"
    target = TargetCategory.GENERATION_RELEVANCE
    requires = ("query",)

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        if not output.response.text.strip():
            return skip("the answer is empty")
        asked, given = self.vectors([sample.query, output.response.text])
        if not asked.any() or not given.any():
            return skip(f"{self.model} has no vector for the query or the answer")
        return min(1.0, max(-1.0, float(asked @ given)))


@metric("non_answer_rate")
class NonAnswerRate(SampleMetric):
    """Share of the questions that got no answer: an empty text, or one that declines.

    The refusal detector decides. Declining is right where no answer exists: see rejection_rate and
    over_refusal_rate. An output without the field of an answer counts, unless no output of the run has one:
    then the system was not asked for answers.
    """

    target = TargetCategory.GENERATION_RELEVANCE
    requires = ("query",)
    higher_is_better = False

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float:
        return float(declines(output.response))

    def signature(self) -> Mapping[str, object]:
        return {"detector": DETECTOR}


@metric("semantic_similarity[{model?}]")
class SemanticSimilarity(EmbeddingMetric):
    """How near the answer is to the reference in an embedding space: the cosine of their vectors.

    The highest over the references. An answer without tokens scores 0; a reference without tokens is skipped.
    Values of different models are not comparable (ragas' answer similarity uses a larger one), and a wrong
    name or number hardly moves them: on RAGChecker's pairs token_f1 follows people's overall preference
    better.
    """

    model: str = "wordllama"
    target = TargetCategory.GENERATION_CORRECTNESS
    requires = ("reference_answer",)

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        answer, golds = compared_texts(sample, output)
        answer = answer if answer.strip() else ""  # blanks have tokens
        given, *right = self.vectors([answer, *golds])
        right = [vector for vector in right if vector.any()]
        if not right:
            return skip(f"{self.model} has no vector for the reference")
        # Vectors are of unit length, so the dot product is the cosine.
        cosines = [float((given * vector).sum(dtype=np.float64)) for vector in right]
        return min(1.0, max(-1.0, *cosines))
