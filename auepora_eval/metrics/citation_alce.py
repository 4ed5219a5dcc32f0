"""Citation quality by sentence, as ALCE and TREC RAG count it, over any support function.

Both need to know which sentence cites what: marks in the answer say so. An answer of several sentences whose
citations come as a list is skipped. A document's title, where it has one, is put before its text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..core.metrics_base import METRICS, skip
from ..core.types import EvaluationSample, SampleScore
from .citation_answer import Claim, JudgedAnswer
from .citation_base import THRESHOLD, NeedsSupport
from .citation_sources import Found

PARTIAL = 0.4


class SentenceCitations(NeedsSupport):
    """A metric of the sentences of an answer and the passages that each of them cites."""

    def of_answer(self, sample: EvaluationSample, answer: JudgedAnswer) -> float | SampleScore:
        if not answer.claims:
            return skip("the answer makes no claims")
        if not answer.is_attached:
            return skip("the citations are a list: it is not known which sentence makes which")
        return self.of_sentences(answer)

    def of_sentences(self, answer: JudgedAnswer) -> float | SampleScore:
        """The score of an answer whose sentences cite by marks."""
        raise NotImplementedError


@METRICS.add("alce_citation_recall")
@dataclass
class AlceCitationRecall(SentenceCitations):
    """Share of the answer's sentences that the passages they cite, taken together, bear out.

    A sentence that cites nothing, or something that is not there, counts 0; the mean over the sentences, then
    over answers. ALCE's rule, with our sentences and the support function in the place of its model.
    """

    threshold: float = THRESHOLD
    support: str = "lexical"
    base = "alce_citation_recall"

    def of_sentences(self, answer: JudgedAnswer) -> float | SampleScore:
        entailed = sum(_is_entailed(answer, claim, self.threshold) for claim in answer.claims)
        return entailed / len(answer.claims)


@METRICS.add("alce_citation_precision")
@dataclass
class AlceCitationPrecision(SentenceCitations):
    """Share of the citations that are needed: by themselves or together with the others of their sentence.

    A citation counts if its sentence is borne out (see alce_citation_recall) and it is not superfluous: it
    bears out the sentence alone, or the others without it do not. Divided by the answer's citations, 0 if it
    has none. As in ALCE's script, the citations of a sentence with one that is not there are not counted.
    """

    threshold: float = THRESHOLD
    support: str = "lexical"
    base = "alce_citation_precision"

    def of_sentences(self, answer: JudgedAnswer) -> float | SampleScore:
        credited = citations = 0
        for claim in answer.claims:
            passages = _passages(answer, claim)
            if passages is None:
                continue
            citations += len(passages)
            if _is_entailed(answer, claim, self.threshold):
                credited += sum(self._is_needed(answer, claim, passages, n) for n in range(len(passages)))
        return credited / citations if citations else 0.0

    def _is_needed(self, answer: JudgedAnswer, claim: Claim, passages: list[str], number: int) -> bool:
        others = passages[:number] + passages[number + 1 :]
        return (
            not others
            or answer.support(passages[number], claim) >= self.threshold
            or answer.support("\n".join(others), claim) < self.threshold
        )


class SupportWeights(SentenceCitations):
    """A metric of how fully each citation bears out its sentence: 1, 0.5 or 0."""

    partial: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.partial, bool) or not 0 < self.partial <= self.threshold:
            raise ValueError(f"partial must be above 0 and at most the threshold, not {self.partial!r}")
        if self.partial != PARTIAL:
            name, _, options = self.name.rstrip("]").partition("[")
            self.name = f"{name}[{','.join(filter(None, (options, f'partial={self.partial!r}')))}]"

    def signature(self) -> dict[str, Any]:
        return {**super().signature(), "partial": self.partial}

    def weights(self, answer: JudgedAnswer, claim: Claim) -> list[float]:
        """The weight of each citation of a sentence."""
        passages = [_passage(answer.found[number]) for number in answer.citations_at(claim)]
        supports = [answer.support(passage, claim) for passage in passages]
        return [1.0 if s >= self.threshold else 0.5 if s >= self.partial else 0.0 for s in supports]


@METRICS.add("trec_support_precision")
@dataclass
class TrecSupportPrecision(SupportWeights):
    """How fully the citations bear out the sentences they stand at: TREC RAG's weighted precision.

    Σ weight / citations; 1 for full support (at least 0.7), 0.5 for partial support (at least 0.4), else 0.
    By answer; one that cites nothing is skipped.
    """

    threshold: float = THRESHOLD
    support: str = "lexical"
    partial: float = PARTIAL
    base = "trec_support_precision"

    def of_sentences(self, answer: JudgedAnswer) -> float | SampleScore:
        weights = [weight for claim in answer.claims for weight in self.weights(answer, claim)]
        return sum(weights) / len(weights) if weights else skip("the answer cites nothing")


@METRICS.add("trec_support_recall")
@dataclass
class TrecSupportRecall(SupportWeights):
    """How fully the sentences are borne out by what they cite: TREC RAG's weighted recall.

    Σ weight / sentences, with the weights of trec_support_precision; a sentence that cites nothing counts 0.
    TREC judged one citation a sentence; of several we take the best, which keeps the value below 1.
    """

    threshold: float = THRESHOLD
    support: str = "lexical"
    partial: float = PARTIAL
    base = "trec_support_recall"

    def of_sentences(self, answer: JudgedAnswer) -> float | SampleScore:
        best = [max(self.weights(answer, claim), default=0.0) for claim in answer.claims]
        return sum(best) / len(best)


def _is_entailed(answer: JudgedAnswer, claim: Claim, threshold: float) -> bool:
    passages = _passages(answer, claim)
    return bool(passages) and answer.support("\n".join(passages or ()), claim) >= threshold


def _passages(answer: JudgedAnswer, claim: Claim) -> list[str] | None:
    """The passages that a sentence cites; None if one of them is not there."""
    found = [answer.found[number] for number in answer.citations_at(claim)]
    return None if any(one.trouble for one in found) else [_passage(one) for one in found]


def _passage(found: Found) -> str:
    title = found.document.metadata.get("title") if found.document is not None and found.text else None
    return f"{title}\n{found.text}" if isinstance(title, str) and title else found.text
