"""Is each claim of an answer in the passages that were retrieved for it?

Claims are the sentences of the answer that have content words, or with [claims=llm] the statements that the
judge finds in it. The judge compares each claim with each chunk of each passage, at most 350 words, and the
highest score counts: a claim is supported if some passage supports all of it. `explain` returns the chunk
that decided about each claim, and the words in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from ...core.metrics_base import metric, skip
from ...core.scores import Scores
from ...core.types import EvaluationSample, MetricResult, SampleScore, SystemOutputs, TargetCategory
from ...errors import ScoringError
from ...metrics.citations.answer import Claim
from ..judge import PendingError
from ..metric import JudgedMetric, add_note, no_answer
from ..question import Judgement, Kind, kind_named
from .texts import (
    CHUNK_WORDS,
    Chunk,
    Span,
    best_sentence,
    check_claim_source,
    chunks_of,
    claim_question,
    claims_in,
)

_ONE_BY_ONE = "each claim was compared with several passages, one by one"


@dataclass(frozen=True)
class Evidence:
    """The chunk of a passage that decided about a claim. All places are in the text of the passage.

    The words are `quoted` by the judge; where it quotes none, they are the sentence of the chunk with most
    words of the claim, `matched`. Both are empty if there is no such sentence.
    """

    passage_id: str
    chunk: Span
    quote: str = ""
    quote_at: Span | None = None
    source: Literal["quoted", "matched", ""] = ""


@dataclass(frozen=True)
class ClaimCheck:
    """A claim of an answer, its place there, and the highest score that a passage gave it.

    `at` is None if the answer does not have the claim word by word. `score` is None if every verdict failed;
    `failed` says why one of them did.
    """

    claim: str
    at: Span | None
    score: float | None
    label: str = ""
    evidence: Evidence | None = None
    failed: str = ""


@dataclass
class CheckedClaims(JudgedMetric):
    """A metric of the claims of an answer, each compared with the retrieved passages."""

    threshold: float = 0.5
    claims: str = "sentences"
    target = TargetCategory.GENERATION_FAITHFULNESS
    reads_documents = True
    ranges = {"threshold": "(0, 1]"}  # noqa: RUF012
    kinds = ("support",)
    # An answer without passages: the worst score, or a system would gain by retrieving nothing.
    score_without_passages: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        check_claim_source(self.claims)

    def judged(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        checks = self.checks(sample, output)
        if isinstance(checks, SampleScore):
            return checks
        score = self.of_checks(checks, output.response.text)
        return SampleScore(score, _ONE_BY_ONE if len(chunks_of(output)) > 1 else "")

    def summarise(self, scores: Scores) -> MetricResult:
        result = super().summarise(scores)
        if _ONE_BY_ONE in scores.reasons.values() and self.kinds == ("support",):
            add_note(
                result,
                "A claim counts as supported if any one of its passages is judged to support it: the judge's "
                "false alarms add up with the number of passages.",
            )
        return result

    def of_checks(self, checks: Sequence[ClaimCheck], answer: str) -> float:
        """Return the score of an answer from its claims."""
        raise NotImplementedError

    def explain(self, sample: EvaluationSample, output: SystemOutputs) -> list[ClaimCheck]:
        """Return each claim with its score and its evidence; no claims if the answer is not scored."""
        try:
            checks = self.checks(sample, output, with_evidence=True)
        except PendingError:
            raise ScoringError("the judge was not asked") from None
        return [] if isinstance(checks, SampleScore) else checks

    def checks(
        self, sample: EvaluationSample, output: SystemOutputs, *, with_evidence: bool = False
    ) -> list[ClaimCheck] | SampleScore:
        """Return each claim with its score, or the reason why the answer is not scored."""
        if (left_out := no_answer(output)) is not None:
            return left_out
        chunks = chunks_of(output)
        if output.retrieved and not chunks:
            return skip("the retrieved documents have no text")
        claims = claims_in(output.response.text, sample.query, self.claims, self.ask_all)
        if not claims:
            return skip("the answer makes no claims")
        if not chunks:
            return [ClaimCheck(claim.text, claim.at, self.score_without_passages) for claim in claims]
        kind = kind_named(self.kinds[0])
        questions = [
            claim_question(kind, claim, chunk.text, passage_id=chunk.passage_id, chunk=chunk.at)
            for claim in claims
            for chunk in chunks
        ]
        verdicts = iter(self.ask(questions))
        return [
            _check(claim, [(chunk, next(verdicts)) for chunk in chunks], with_evidence) for claim in claims
        ]

    def reaches(self, check: ClaimCheck) -> bool:
        """Return whether a claim has at least the threshold; ScoringError if a failed verdict decides it."""
        if check.score is not None and check.score >= self.threshold:
            return True
        if check.failed:
            raise ScoringError(f"a verdict on {check.claim!r:.60} failed: {check.failed:.200}")
        return False

    def question_kinds(self) -> list[Kind]:
        kinds = super().question_kinds()
        return [kind_named("claims"), *kinds] if self.claims == "llm" else kinds

    def signature(self) -> Mapping[str, object]:
        return {**super().signature(), "chunk_words": CHUNK_WORDS}


@metric("judged_faithfulness@{threshold?}[soft={soft?},claims={claims?}]")
class JudgedFaithfulness(CheckedClaims):
    """Share of the answer's claims that a retrieved passage supports, as a judge sees it.

    Claims with a score of at least the threshold / claims; the score of a claim is the highest that the judge
    gives it over all chunks of the passages. [soft=true] is the mean of the scores instead, calibrated where
    labels of people were given. [claims=llm] checks the statements that the judge finds in the answer, not
    its sentences. An answer without passages scores 0 and costs no call. An answer that declines is skipped.
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
        of_claim = self._calibrated if self.soft else self.reaches
        return sum(map(of_claim, checks)) / len(checks)

    def _calibrated(self, check: ClaimCheck) -> float:
        # A failed verdict could have given any score up to 1.
        if check.score is None or (check.failed and check.score < 1):
            raise ScoringError(f"a verdict on {check.claim!r:.60} failed: {check.failed:.200}")
        calibrate = self.judging and self.judging.calibrate
        return calibrate(check.score) if calibrate else check.score


@metric("judged_contradiction@{threshold?}[claims={claims?}]")
class JudgedContradiction(CheckedClaims):
    """Share of the answer's claims that some retrieved passage contradicts, as a judge sees it.

    Claims that the judge finds contradicted by at least one chunk of the passages, with a score of at least
    the threshold / claims. A claim that no passage mentions is not contradicted: judged_faithfulness counts
    it. An answer without passages scores 1, or a system would gain by retrieving nothing.
    """

    kinds = ("contradiction",)
    higher_is_better = False
    score_without_passages = 1.0

    def of_checks(self, checks: Sequence[ClaimCheck], answer: str) -> float:
        return sum(map(self.reaches, checks)) / len(checks)


@metric("unsupported_span_share@{threshold?}")
class UnsupportedSpanShare(CheckedClaims):
    """Share of the answer's characters that are in claims without support, as a judge sees it.

    Characters of the sentences whose score is below the threshold / characters of the answer, without white
    space. The same verdicts as judged_faithfulness, but a long unsupported sentence weighs more.
    """

    higher_is_better = False

    def __post_init__(self) -> None:
        if self.claims != "sentences":
            raise ValueError("the claims must be sentences: other claims have no place in the answer")

    def of_checks(self, checks: Sequence[ClaimCheck], answer: str) -> float:
        unsupported = [check.at for check in checks if not self.reaches(check) and check.at is not None]
        return sum(_characters(answer[start:end]) for start, end in unsupported) / _characters(answer)


def _characters(text: str) -> int:
    return sum(map(len, text.split()))


def _check(claim: Claim, verdicts: Sequence[tuple[Chunk, Judgement]], with_evidence: bool) -> ClaimCheck:
    """Return a claim with the chunk that gave it the highest score; the first one of several."""
    failed = next((verdict.failed for _, verdict in verdicts if verdict.failed), "")
    known = [
        (verdict.score, chunk, verdict)
        for chunk, verdict in verdicts
        if verdict.score is not None and not verdict.failed
    ]
    if not known:
        return ClaimCheck(claim.text, claim.at, None, failed=failed)
    score, chunk, verdict = max(known, key=lambda one: one[0])
    # Looking for the best sentence takes longer than all the rest, and a score does not need it.
    evidence = _evidence(claim, chunk, verdict) if with_evidence else None
    return ClaimCheck(claim.text, claim.at, score, verdict.label, evidence, failed)


def _evidence(claim: Claim, chunk: Chunk, verdict: Judgement) -> Evidence:
    at = verdict.quote_at or best_sentence(chunk.text, claim.text)
    if at is None:
        return Evidence(chunk.passage_id, chunk.at)
    start, end = at
    quote_at = (chunk.at[0] + start, chunk.at[0] + end)
    source: Literal["quoted", "matched"] = "quoted" if verdict.quote_at else "matched"
    return Evidence(chunk.passage_id, chunk.at, chunk.text[start:end], quote_at, source)
