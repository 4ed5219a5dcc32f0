"""How far an answer speaks to its question, as far as words and vectors can tell.

The weakest of the targets without a model as judge: an answer that merely repeats the question scores high,
and a right answer of one word scores low. People hardly agree on it either: on MTRAG's answers Krippendorff's
alpha of what they call appropriateness is 0.07 (metrics dossier). Read these beside correctness, never alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..core.batch import Batch
from ..core.metrics_base import METRICS, SampleMetric, skip
from ..core.scores import Scores
from ..core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from .content import content_words
from .refusal import DETECTOR, refusal
from .text import words


@METRICS.add("query_coverage")
@dataclass
class QueryCoverage(SampleMetric):
    """Share of the question's content words that the answer takes up.

    Distinct content words of the query found in the answer, both stemmed / distinct content words of the
    query. A question that is repeated scores 1 and a right "in 1911" scores 0: a sign of drift, no more.
    """

    target = TargetCategory.GENERATION_RELEVANCE
    requires = ("query",)

    def __post_init__(self) -> None:
        self.name = "query_coverage"

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        if not output.response.text.strip():
            return skip("the answer is empty")
        asked = set(content_words(sample.query, stemmed=True))
        if not asked:
            return skip("the query has no content words")
        return len(asked & set(words(output.response.text, stemmed=True))) / len(asked)

    def signature(self) -> dict[str, Any]:
        return {"stemmer": "porter (nltk)", "words": "unicode, cjk per character"}


@METRICS.add("query_answer_similarity")
@dataclass
class QueryAnswerSimilarity(SampleMetric):
    """How near the answer is to the question in an embedding space: the cosine of their vectors.

    cos(e(query), e(answer)), from -1 to 1. Values of different models are not comparable. It rewards an
    answer that repeats the question; ragas' response relevancy compares the question with questions that a
    language model makes up from the answer, which is another number.
    """

    model: str = "wordllama"
    target = TargetCategory.GENERATION_RELEVANCE
    requires = ("query",)
    bounds = (-1.0, 1.0)

    def __post_init__(self) -> None:
        base = "query_answer_similarity"
        self.name = base if self.model == "wordllama" else f"{base}[{self.model}]"

    def ready(self) -> None:
        from ..judges.embeddings import embedder

        embedder(self.model)

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        return self.score_all(Batch([sample], [output]))[0]

    def score_all(self, batch: Batch) -> Scores:
        answers = [output.response.text for output in batch.outputs]
        asked = _vectors([sample.query for sample in batch.samples], self.model)
        given = _vectors(answers, self.model)
        scores = []
        for sample, answer, query_vector, vector in zip(batch.samples, answers, asked, given, strict=True):
            if not answer.strip():
                scores.append(skip("the answer is empty"))
            elif not query_vector.any() or not vector.any():
                scores.append(skip(f"{self.model} has no vector for the query or the answer"))
            else:
                cosine = min(1.0, max(-1.0, float(query_vector @ vector)))
                scores.append(SampleScore(cosine, sample_id=sample.sample_id))
        return Scores.of(scores)

    def signature(self) -> dict[str, Any]:
        return {"model": self.model}


@METRICS.add("non_answer_rate")
@dataclass
class NonAnswerRate(SampleMetric):
    """Share of the questions that got no answer: an empty text, or one that declines (lower is better).

    Whether an answer declines is decided by the refusal detector (its precision and recall against people's
    labels stand in metrics/refusal.py). Declining is right where there is no answer to be had: where the
    samples say so, use rejection_rate and over_refusal_rate. An output without text, documents and timings
    is skipped: nothing shows that the system was asked at all.
    """

    target = TargetCategory.GENERATION_RELEVANCE
    requires = ("query",)
    higher_is_better = False

    def __post_init__(self) -> None:
        self.name = "non_answer_rate"

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        if not (output.response.text or output.response.structured or output.retrieved or output.timings):
            return skip("the output is blank: no answer, no documents, no timings")
        return float(refusal(output.response).declined)

    def signature(self) -> dict[str, Any]:
        return {"detector": DETECTOR}


def _vectors(texts: list[str], model: str) -> Any:
    from ..judges.embeddings import embedder

    # Tokenizers take no lone surrogates.
    return embedder(model).embed([text.encode("utf-8", "replace").decode() for text in texts])
