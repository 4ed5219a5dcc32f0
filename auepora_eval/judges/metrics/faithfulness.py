"""Is each claim of an answer in the passages that were retrieved for it?

Claims are the sentences of the answer that have content words, or with [claims=llm] the statements that the
judge finds in it. A model sees all passages at once. With [ask=claim] it is asked once per claim, which suits
small models and the mode `logprob`. Judges that compare two texts compare each claim with each passage, and
the highest score counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ...core.metrics_base import metric, skip
from ...core.scores import Scores
from ...core.types import EvaluationSample, MetricResult, SampleScore, SystemOutputs, TargetCategory
from ...errors import PlanError
from ...metrics.citations.answer import Claim
from ..llm import find_quote
from ..metric import SENTENCES, JudgedMetric, check_known, no_answer
from ..question import Kind, Part, Question, claim_material, kind_named, numbered_texts
from ..texts import (
    CONTEXT_WORDS,
    Passage,
    Span,
    best_sentence,
    claims_question,
    shown_passages,
)

_ADDS_UP = "each claim was compared with several passages, one by one"
_CUT = "the passages were shortened for the judge"

Verdict = Literal["supported", "unsupported", "contradicted", "no passages", "failed"]


@dataclass(frozen=True)
class Evidence:
    """The passage that decided about a claim, and words in it; `quote_at` is their place in its text.

    The words are `quoted` by the judge; where it quotes none, they are the sentence of the passage with most
    words of the claim, `matched`. Both are empty if there is no such sentence.
    """

    passage_id: str
    quote: str = ""
    quote_at: Span | None = None
    source: Literal["quoted", "matched", ""] = ""


@dataclass(frozen=True)
class ClaimCheck:
    """A claim of an answer, its place there, and its score by the passages.

    `at` is None if the answer does not have the claim word by word. `score` is None if the verdict failed,
    and `failed` says why.
    """

    claim: str
    at: Span | None
    score: float | None
    verdict: Verdict
    evidence: Evidence | None = None
    failed: str = ""


@dataclass
class CheckedClaims(JudgedMetric):
    """A metric of the claims of an answer, compared with the retrieved passages."""

    threshold: float = 0.5
    claims: str = SENTENCES
    ask: str = ""
    target = TargetCategory.GENERATION_FAITHFULNESS
    reads_documents = True
    ranges = {"threshold": "(0, 1]"}  # noqa: RUF012
    kinds = ("grounding",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ask not in ("", "claim"):
            raise ValueError(f"a judge is asked once, or for each claim (ask=claim), not {self.ask!r}")

    def judged(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        checks = self.checks(sample, output)
        if isinstance(checks, SampleScore):
            return checks
        check_known([check.failed for check in checks])
        passages = shown_passages(output)
        reason = _CUT if any(passage.is_cut for passage in passages) else ""
        compares_pairs = self.asking is not None and self.asking.judge.compares_pairs
        if len(passages) > 1 and compares_pairs and not self.ask:
            reason = _ADDS_UP
        return SampleScore(self.of_checks(checks, output.response.text), reason)

    def notes_on(self, scores: Scores, result: MetricResult) -> list[str]:
        reasons = list(scores.reasons.values())
        notes = [
            "A claim counts as supported if any one of its passages is judged to support it: the judge's "
            "false alarms add up with the number of passages."
        ] * (_ADDS_UP in reasons)
        if cut := reasons.count(_CUT):
            limit = f"{CONTEXT_WORDS:,} words"
            notes.append(f"The passages of {cut} answers were shortened to {limit} for the judge.")
        return notes

    def of_checks(self, checks: Sequence[ClaimCheck], answer: str) -> float:
        """Return the score of an answer from its claims."""
        raise NotImplementedError

    def explain(self, sample: EvaluationSample, output: SystemOutputs) -> list[ClaimCheck]:
        """Return each claim with its score and its evidence; no claims if the answer is not scored."""
        checks = self.checks(sample, output, with_evidence=True)
        return [] if isinstance(checks, SampleScore) else checks

    def checks(
        self, sample: EvaluationSample, output: SystemOutputs, *, with_evidence: bool = False
    ) -> list[ClaimCheck] | SampleScore:
        """Return each claim with its score, or the reason why the answer is not scored."""
        if (left_out := no_answer(output)) is not None:
            return left_out
        passages = shown_passages(output)
        if output.retrieved and not passages:
            return skip("the retrieved documents have no text")
        claims = self.claims_of(output.response.text, sample)
        if not claims:
            return skip("the answer makes no claims")
        if not passages:
            return [ClaimCheck(claim.text, claim.at, 0.0, "no passages") for claim in claims]
        parts = self._parts(claims, passages)
        # Looking for words of evidence takes longer than all the rest, and a score does not need it.
        return [
            ClaimCheck(
                claim.text,
                claim.at,
                part.score,
                self._verdict(part),
                _evidence(claim, part, passages) if with_evidence else None,
                part.failed,
            )
            for claim, part in zip(claims, parts, strict=True)
        ]

    def _parts(self, claims: Sequence[Claim], passages: Sequence[Passage]) -> list[Part]:
        """Return the verdict on each claim."""
        texts = [passage.text for passage in passages]
        if self.ask != "claim":
            return self.verdicts_on([(claims, texts)])[0]
        single, whole = kind_named("support"), claims_question(claims, texts)
        questions = [
            Question(single, claim_material(single, claim, texts)) for claim in numbered_texts(whole, "claim")
        ]
        return [
            Part(verdict.label, verdict.score, [], verdict.quote, verdict.failed)
            for verdict in self.answers_to(questions)
        ]

    def _verdict(self, part: Part) -> Verdict:
        if part.score is None:
            return "failed"
        if part.score >= self.threshold:
            return "supported"
        return "contradicted" if part.label == "contradicted" else "unsupported"

    def question_kinds(self) -> list[Kind]:
        kinds = super().question_kinds()
        return [*kinds[:-1], kind_named("support")] if self.ask == "claim" else kinds

    def signature(self) -> Mapping[str, object]:
        return {**super().signature(), "context_words": CONTEXT_WORDS}


@metric("judged_faithfulness@{threshold?}[soft={soft?},claims={claims?},ask={ask?}]")
class JudgedFaithfulness(CheckedClaims):
    """Share of the answer's claims that the retrieved passages support, as a judge sees it.

    Claims with a score of at least the threshold / claims. A model is asked once per answer about all claims
    and passages, with [ask=claim] once per claim. [soft=true] is the mean of the scores instead, calibrated
    where labels of people were given. [claims=llm] checks the statements that the judge finds in the answer,
    not its sentences. An answer without passages scores 0. An answer that declines is skipped.
    """

    soft: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.soft and self.threshold != CheckedClaims.threshold:
            raise ValueError("with soft=true the scores are averaged, and there is no threshold to set")

    @property
    def is_share_of_yes(self) -> bool:
        return not self.soft

    def of_checks(self, checks: Sequence[ClaimCheck], answer: str) -> float:
        if self.soft:
            return sum(map(self._calibrated, checks)) / len(checks)
        return sum(check.verdict == "supported" for check in checks) / len(checks)

    def _calibrated(self, check: ClaimCheck) -> float:
        audit, score = self.asking and self.asking.audit, check.score or 0.0
        return audit.calibration.chance(score) if audit and audit.calibration else score


@metric("judged_contradiction")
class JudgedContradiction(CheckedClaims):
    """Share of the answer's claims that some retrieved passage contradicts, as a judge sees it.

    By the verdicts of judged_faithfulness. A claim that no passage mentions is not contradicted. An answer
    without passages scores 1. Judges that compare two texts do not know contradictions: use a model.
    """

    higher_is_better = False

    def ready(self) -> None:
        super().ready()
        if self.asking is not None and self.asking.judge.compares_pairs:
            raise PlanError(
                f"{self.name} asks which claims are contradicted, and this judge only says what is "
                "supported. Use a model as the judge."
            )

    def of_checks(self, checks: Sequence[ClaimCheck], answer: str) -> float:
        # Without passages the worst score, or a system would gain by retrieving nothing.
        return sum(check.verdict in ("contradicted", "no passages") for check in checks) / len(checks)


@metric("unsupported_span_share@{threshold?}[ask={ask?}]")
class UnsupportedSpanShare(CheckedClaims):
    """Share of the answer's characters that are in claims without support, as a judge sees it.

    Characters of the sentences whose score is below the threshold / characters of the answer, without white
    space. The same verdicts as judged_faithfulness, but a long unsupported sentence weighs more.
    """

    higher_is_better = False

    def of_checks(self, checks: Sequence[ClaimCheck], answer: str) -> float:
        unsupported = [check.at for check in checks if check.verdict != "supported" and check.at is not None]
        return sum(_characters(answer[start:end]) for start, end in unsupported) / _characters(answer)


def _characters(text: str) -> int:
    return sum(map(len, text.split()))


def _evidence(claim: Claim, part: Part, passages: Sequence[Passage]) -> Evidence | None:
    """Return the words that decided about a claim; None if no passage did."""
    numbers = part.passages or ([1] if len(passages) == 1 else [])
    if not numbers and part.quote:
        numbers = [
            place for place, passage in enumerate(passages, 1) if find_quote(part.quote, passage.whole)
        ]
    if not numbers:
        return None
    passage = passages[numbers[0] - 1]
    source: Literal["quoted", "matched"] = "quoted"
    at = find_quote(part.quote, passage.whole) if part.quote else None
    if at is None:
        at, source = best_sentence(passage.whole, claim.text), "matched"
    if at is None:
        return Evidence(passage.passage_id)
    return Evidence(passage.passage_id, passage.whole[at[0] : at[1]], at, source)
