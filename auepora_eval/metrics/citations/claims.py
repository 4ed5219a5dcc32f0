"""Citation metrics by claim: is each claim cited, and do its citations support it?

Claims are the sentences of the answer that have content words. A support
function (`lexical` unless named: `citation_correctness[trained]`) and a threshold
(`citation_correctness@0.5`) decide whether a text supports a claim. With the lexical function these metrics
measure shared words, not truth: they see neither a negation nor two things that changed places.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace

from ...core.metrics_base import metric, skip
from ...core.scores import Scores
from ...core.types import EvaluationSample, MetricResult, SampleScore
from ..entailment import support_identity
from .answer import (
    CitationMetric,
    CitedAnswer,
    Claim,
    NeedsSupport,
    SupportMetric,
    share,
)
from .evaluator import CONSISTENT, WEIGHTS, assessed, check_weights, consistencies, part_scores, weighted
from .sources import Found

_NO_CLAIMS = "the answer makes no claims"
_MOST_LISTED = 10_000  # of the answers of a run; the rows of a larger run have their scores


@metric("citation_completeness@{threshold?}[{support?}]")
class CitationCompleteness(SupportMetric):
    """Share of the claims that are cited at all, rightly or not.

    Claims with a mark that leads to a document / claims, over all answers. Where the citations come as a list
    without marks, a claim is cited if one of them supports it (support of at least 0.7).
    """

    counted_as = ("cited_claims", "total_claims")

    def of_answer(self, sample: EvaluationSample, answer: CitedAnswer) -> float | SampleScore:
        cited = sum(answer.is_cited(claim, self.threshold) for claim in answer.claims)
        return share(cited, len(answer.claims), _NO_CLAIMS)


@metric("citation_correctness@{threshold?}[{support?}]")
class CitationCorrectness(SupportMetric):
    """Share of the citations that support their claim.

    Citations with a support of at least 0.7 / citations, over all answers; a citation that leads nowhere
    supports nothing, one whose document has no text is left out. Without marks it may support any claim.
    """

    counted_as = ("correct_citations", "total_citations")

    def of_answer(self, sample: EvaluationSample, answer: CitedAnswer) -> float | SampleScore:
        if not answer.attached:
            return skip("the answer cites nothing")
        supports = answer.supports_or_zero
        right = sum(score >= self.threshold for score in supports)
        return share(right, len(supports), "the cited documents have no text")


@metric("citation_density@{threshold?}[{support?}]")
class CitationDensity(SupportMetric):
    """Share of the answer's characters that are in cited claims.

    Characters of cited claims / characters of all claims, marks left out, over all answers; cited as in
    citation_completeness. A long claim counts for more.
    """

    listed = False
    counted_as = ("cited_characters", "total_characters")

    def of_answer(self, sample: EvaluationSample, answer: CitedAnswer) -> float | SampleScore:
        cited = sum(len(claim.text) for claim in answer.claims if answer.is_cited(claim, self.threshold))
        return share(cited, sum(len(claim.text) for claim in answer.claims), _NO_CLAIMS)

    def whole_if_failed(self, sample: EvaluationSample) -> float:
        return 100 * super().whole_if_failed(sample)


@metric("citation_factual_consistency@{threshold?}[{support?}]")
class CitationFactualConsistency(SupportMetric):
    """Share of the claims that agree with what they cite, or, citing nothing, with any of the documents.

    Claims with a support of at least 0.8 by the texts they cite, taken together / claims, over all answers.
    Without any document, and with citations that lead nowhere, a claim is not supported. The details have the
    mean support of all citations (mean_consistency) and of each answer's (consistency_scores).
    """

    threshold: float = CONSISTENT
    reads_documents = True
    counted_as = ("consistent_claims", "total_claims")

    def of_answer(self, sample: EvaluationSample, answer: CitedAnswer) -> float | SampleScore:
        if not answer.claims:
            return skip(_NO_CLAIMS)
        if answer.sources.are_without_texts:
            return skip("the documents have no text")
        right = 0
        for claim, otherwise in zip(answer.claims, answer.best_of_sources, strict=True):
            found = [answer.found[number] for number in answer.citations_at(claim)]
            # A citation that leads nowhere supports nothing; one whose text is unknown says nothing.
            cites = any(one.text or one.trouble for one in found)
            right += (answer.support_by_citations(claim) if cites else otherwise) >= self.threshold
        score, supports = share(right, len(answer.claims), _NO_CLAIMS), consistencies(answer)
        return replace(score, parts=(*score.parts, sum(supports), len(supports)))

    def summarise(self, scores: Scores) -> MetricResult:
        result = super().summarise(scores)
        rows = scores.rows()
        if rows.shape[1] > 3:  # the supports of an answer's citations: their sum and their number
            supports = rows[rows[:, 4] > 0, 3:5]
            if len(supports):
                sums = supports.sum(axis=0)
                result.details["mean_consistency"] = float(sums[0] / sums[1])
                if len(supports) <= _MOST_LISTED:
                    result.details["consistency_scores"] = (supports[:, 0] / supports[:, 1]).tolist()
        return result


@metric("citation_hallucination_rate@{threshold?}[{support?}]")
class CitationHallucinationRate(SupportMetric):
    """Share of the claims that no document supports, cited or not.

    Claims whose best support by a single document is below 0.7 / claims, over all answers. The documents are
    those retrieved, and the relevant and candidate ones; without any, no claim is supported. By words alone
    this is about wording, not truth: publish the agreement of the support function with people beside it.
    """

    counted_as = ("hallucinated_claims", "total_claims")
    reads_documents = True
    higher_is_better = False

    def of_answer(self, sample: EvaluationSample, answer: CitedAnswer) -> float | SampleScore:
        if not answer.claims:
            return skip(_NO_CLAIMS)
        if answer.sources.are_without_texts:
            return skip("the documents have no text")
        unsupported = sum(best < self.threshold for best in answer.best_of_sources)
        return share(unsupported, len(answer.claims), _NO_CLAIMS)


@metric(
    "citation_accuracy[support={support?},span={span?},quality={quality?},consistency={consistency?},hallucination={hallucination?}]",
    ranges=dict.fromkeys(WEIGHTS, "[0, inf)"),
)
class CitationAccuracy(CitationMetric):
    """Weighted mean of an answer's citation scores: spans, support, consistency and hallucination.

    0.30 · span accuracy + 0.30 · share of valid citations + 0.25 · mean support + 0.15 · (1 - hallucination
    rate), divided by the sum of the weights whose part was measured: without gold there is no span part. A
    citation that leads nowhere has no support, and an answer that cites nothing has no valid one. Change the
    weights by name: citation_accuracy[span=0,quality=1]. The mean over answers.
    """

    _: KW_ONLY
    support: str = "lexical"
    span: float = WEIGHTS["span"]
    quality: float = WEIGHTS["quality"]
    consistency: float = WEIGHTS["consistency"]
    hallucination: float = WEIGHTS["hallucination"]

    def __post_init__(self) -> None:
        check_weights(self._weights())

    def signature(self) -> Mapping[str, object]:
        return {
            "support": support_identity(self.support),
            "weights": self._weights(),
            "claims": "sentences",
        }

    def of_answer(self, sample: EvaluationSample, answer: CitedAnswer) -> float | SampleScore:
        if not answer.claims and not answer.gold:
            return skip(_NO_CLAIMS)
        overall, _ = weighted(part_scores(assessed(answer)), self._weights())
        return skip("neither citations nor documents to measure by") if overall is None else overall

    def _weights(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in WEIGHTS}


# Citation quality by sentence, as ALCE and TREC RAG count it, over any support function.
#
# Both need marks, which say which sentence cites what: an answer of several sentences whose citations come
# as a list is skipped. A document's title, where it has one, is put before its text.

PARTIAL = 0.4


class SentenceCitations(NeedsSupport):
    """A metric of the sentences of an answer and the passages that each of them cites."""

    def of_answer(self, sample: EvaluationSample, answer: CitedAnswer) -> float | SampleScore:
        if not answer.claims:
            return skip("the answer makes no claims")
        if not answer.is_attached:
            return skip("the citations are a list: it is not known which sentence makes which")
        return self.of_sentences(answer)

    def of_sentences(self, answer: CitedAnswer) -> float | SampleScore:
        """Return the score of an answer whose sentences cite by marks."""
        raise NotImplementedError


@metric("alce_citation_recall@{threshold?}[{support?}]")
class AlceCitationRecall(SentenceCitations):
    """Share of the answer's sentences that the passages they cite, joined, support.

    A sentence that cites nothing, or something that is not there, counts 0; the mean over the sentences, then
    over answers. ALCE's rule, with the support function in the place of its model.
    """

    def of_sentences(self, answer: CitedAnswer) -> float | SampleScore:
        entailed = sum(_is_entailed(answer, claim, self.threshold) for claim in answer.claims)
        return entailed / len(answer.claims)


@metric("alce_citation_precision@{threshold?}[{support?}]")
class AlceCitationPrecision(SentenceCitations):
    """Share of the citations that are needed: by themselves or together with the others of their sentence.

    A citation counts if its sentence is supported (see alce_citation_recall) and it supports the sentence
    alone, or the others without it do not. Divided by the answer's citations, 0 if it has none. As in ALCE's
    script, the citations of a sentence with one that is not there are not counted.
    """

    def of_sentences(self, answer: CitedAnswer) -> float | SampleScore:
        credited = citations = 0
        for claim in answer.claims:
            passages = _passages(answer, claim)
            if passages is None:
                continue
            citations += len(passages)
            if _is_entailed(answer, claim, self.threshold):
                credited += sum(self._is_needed(answer, claim, passages, n) for n in range(len(passages)))
        return credited / citations if citations else 0.0

    def _is_needed(self, answer: CitedAnswer, claim: Claim, passages: list[str], number: int) -> bool:
        others = passages[:number] + passages[number + 1 :]
        return (
            not others
            or answer.support(passages[number], claim) >= self.threshold
            or answer.support("\n".join(others), claim) < self.threshold
        )


@dataclass
class SupportWeights(SentenceCitations):
    """A metric of how fully each citation supports its sentence: 1, 0.5 or 0."""

    partial: float = PARTIAL

    def __post_init__(self) -> None:
        if isinstance(self.partial, bool) or not 0 < self.partial <= self.threshold:
            raise ValueError(f"partial must be above 0 and at most the threshold, not {self.partial!r}")

    def signature(self) -> Mapping[str, object]:
        return {**super().signature(), "partial": self.partial}

    def weights(self, answer: CitedAnswer, claim: Claim) -> list[float]:
        """Return the weight of each citation of a sentence."""
        passages = [_passage(answer.found[number]) for number in answer.citations_at(claim)]
        supports = [answer.support(passage, claim) for passage in passages]
        # Half a point from `partial` on, and the other half from the threshold on.
        return [((score >= self.partial) + (score >= self.threshold)) / 2 for score in supports]


@metric("trec_support_precision@{threshold?}[{support?},partial={partial?}]")
class TrecSupportPrecision(SupportWeights):
    """How fully the citations support their sentences: TREC RAG's weighted precision.

    Σ weight / citations; 1 for full support (at least 0.7), 0.5 for partial support (at least 0.4), else 0.
    By answer; one that cites nothing is skipped.
    """

    def of_sentences(self, answer: CitedAnswer) -> float | SampleScore:
        weights = [weight for claim in answer.claims for weight in self.weights(answer, claim)]
        return sum(weights) / len(weights) if weights else skip("the answer cites nothing")


@metric("trec_support_recall@{threshold?}[{support?},partial={partial?}]")
class TrecSupportRecall(SupportWeights):
    """How fully the cited passages support the sentences: TREC RAG's weighted recall.

    Σ weight / sentences, with the weights of trec_support_precision; a sentence that cites nothing counts 0.
    Of several citations the best counts (TREC judged one per sentence).
    """

    def of_sentences(self, answer: CitedAnswer) -> float | SampleScore:
        best = [max(self.weights(answer, claim), default=0.0) for claim in answer.claims]
        return sum(best) / len(best)


def _is_entailed(answer: CitedAnswer, claim: Claim, threshold: float) -> bool:
    passages = _passages(answer, claim)
    return bool(passages) and answer.support("\n".join(passages or ()), claim) >= threshold


def _passages(answer: CitedAnswer, claim: Claim) -> list[str] | None:
    """Return the passages that a sentence cites; None if one of them does not exist."""
    found = [answer.found[number] for number in answer.citations_at(claim)]
    return None if any(one.trouble for one in found) else [_passage(one) for one in found]


def _passage(found: Found) -> str:
    title = found.document.metadata.get("title") if found.document is not None and found.text else None
    return f"{title}\n{found.text}" if isinstance(title, str) and title else found.text
