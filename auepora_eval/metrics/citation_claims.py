"""Citation metrics by claim: is each claim cited, and does what is cited bear it out?

Claims are the sentences of the answer that have content words. Whether a text bears out a claim is asked of a
support function (`lexical` unless the name says another, `citation_correctness[embedding]`) and of a
threshold (`citation_correctness@0.5`). With the lexical function these metrics are about words that are
found, not about truth: neither a negation nor two things that changed places is seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..core.batch import Batch
from ..core.metrics_base import METRICS, skip
from ..core.types import EvaluationSample, SampleScore
from ..judges.entailment import support_function
from .citation_answer import JudgedAnswer
from .citation_base import THRESHOLD, CitationMetric, SupportMetric, judged_answers, share
from .citation_overall import CONSISTENT, WEIGHTS, Weights, assessed

_NO_CLAIMS = "the answer makes no claims"


@METRICS.add("citation_completeness")
@dataclass
class CitationCompleteness(SupportMetric):
    """Share of the claims that are cited at all, rightly or not.

    Claims with a mark that leads to a document / claims, over all answers. Where the citations come as a list
    without marks, a claim is cited if one of them bears it out (support of at least 0.7).
    """

    threshold: float = THRESHOLD
    support: str = "lexical"
    base = "citation_completeness"
    counted_as = ("cited_claims", "total_claims")

    def of_answer(self, sample: EvaluationSample, answer: JudgedAnswer) -> float | SampleScore:
        cited = sum(answer.is_cited(claim, self.threshold) for claim in answer.claims)
        return share(cited, len(answer.claims), _NO_CLAIMS)


@METRICS.add("citation_correctness")
@dataclass
class CitationCorrectness(SupportMetric):
    """Share of the citations that bear out the claim they stand at.

    Citations with a support of at least 0.7 / citations, over all answers; a citation that leads nowhere
    bears out nothing, one whose document has no text is left out. Without marks it may bear out any claim.
    """

    threshold: float = THRESHOLD
    support: str = "lexical"
    base = "citation_correctness"
    counted_as = ("correct_citations", "total_citations")

    def of_answer(self, sample: EvaluationSample, answer: JudgedAnswer) -> float | SampleScore:
        if not answer.answer.attached:
            return skip("the answer cites nothing")
        supports = answer.supports_or_zero
        right = sum(score >= self.threshold for score in supports)
        return share(right, len(supports), "the cited documents have no text")


@METRICS.add("citation_density")
@dataclass
class CitationDensity(SupportMetric):
    """Share of the answer's characters that stand in cited claims.

    Characters of cited claims / characters of all claims, marks left out, over all answers; cited as in
    citation_completeness. A long claim counts for more.
    """

    threshold: float = THRESHOLD
    support: str = "lexical"
    base = "citation_density"
    counted_as = ("cited_characters", "total_characters")

    def of_answer(self, sample: EvaluationSample, answer: JudgedAnswer) -> float | SampleScore:
        cited = sum(claim.length for claim in answer.claims if answer.is_cited(claim, self.threshold))
        return share(cited, sum(claim.length for claim in answer.claims), _NO_CLAIMS)

    def whole_if_failed(self, sample: EvaluationSample) -> float:
        return 100 * super().whole_if_failed(sample)


@METRICS.add("citation_factual_consistency")
@dataclass
class CitationFactualConsistency(SupportMetric):
    """Share of the claims that agree with what they cite, or, citing nothing, with any of the documents.

    Claims with a support of at least 0.8 by the texts they cite, taken together / claims, over all answers.
    """

    threshold: float = CONSISTENT
    support: str = "lexical"
    base = "citation_factual_consistency"
    counted_as = ("consistent_claims", "total_claims")

    def of_answer(self, sample: EvaluationSample, answer: JudgedAnswer) -> float | SampleScore:
        if not answer.claims:
            return skip(_NO_CLAIMS)
        if not answer.answer.sources.texts:
            return skip("no document has a text")
        right = 0
        for claim, otherwise in zip(answer.claims, answer.best_of_sources, strict=True):
            cites = any(answer.found[number].text for number in answer.citations_at(claim))
            right += (answer.support_by_citations(claim) if cites else otherwise) >= self.threshold
        return share(right, len(answer.claims), _NO_CLAIMS)


@METRICS.add("citation_hallucination_rate")
@dataclass
class CitationHallucinationRate(SupportMetric):
    """Share of the claims that no document bears out, cited or not.

    Claims whose best support by a single document is below 0.7 / claims, over all answers. The documents are
    those retrieved, and the relevant and candidate ones. By words alone this is about wording, not truth:
    publish the agreement of the support function with people beside it.
    """

    threshold: float = THRESHOLD
    support: str = "lexical"
    base = "citation_hallucination_rate"
    counted_as = ("hallucinated_claims", "total_claims")
    higher_is_better = False

    def of_answer(self, sample: EvaluationSample, answer: JudgedAnswer) -> float | SampleScore:
        if not answer.claims:
            return skip(_NO_CLAIMS)
        if not answer.answer.sources.texts:
            return skip("no document has a text")
        unsupported = sum(best < self.threshold for best in answer.best_of_sources)
        return share(unsupported, len(answer.claims), _NO_CLAIMS)


@METRICS.add("citation_accuracy")
@dataclass(kw_only=True)
class CitationAccuracy(CitationMetric):
    """One figure for an answer's citations: spans, support, consistency and hallucination, weighted.

    0.30 · span accuracy + 0.30 · share of valid citations + 0.25 · mean support + 0.15 · (1 - hallucination
    rate), the weights divided by the sum of those whose part was measured: without gold there is no span
    part. A citation that leads nowhere has no support, and an answer that cites nothing has no valid one.
    Change the weights by name: citation_accuracy[span=0,quality=1]. The mean over answers.
    """

    support: str = "lexical"
    span: float = WEIGHTS.span
    quality: float = WEIGHTS.quality
    consistency: float = WEIGHTS.consistency
    hallucination: float = WEIGHTS.hallucination
    base = "citation_accuracy"

    def __post_init__(self) -> None:
        self._weights().check()
        options = [] if self.support == "lexical" else [f"support={self.support}"]
        options += [
            f"{name}={given!r}"
            for name, given in self._weights()._asdict().items()
            if given != WEIGHTS._asdict()[name]
        ]
        self.name = f"{self.base}[{','.join(options)}]" if options else self.base

    def ready(self) -> None:
        support_function(self.support)

    def signature(self) -> dict[str, Any]:
        return {"support": self.support, "weights": self._weights()._asdict(), "claims": "sentences"}

    def answers(self, batch: Batch) -> list[Any]:
        return judged_answers(batch, self.support)

    def of_answer(self, sample: EvaluationSample, answer: JudgedAnswer) -> float | SampleScore:
        if not answer.claims and not answer.answer.gold:
            return skip(_NO_CLAIMS)
        overall, _ = self._weights().of(assessed(answer).scores)
        return skip("neither citations nor documents to measure by") if overall is None else overall

    def _weights(self) -> Weights:
        return Weights(self.span, self.quality, self.consistency, self.hallucination)
