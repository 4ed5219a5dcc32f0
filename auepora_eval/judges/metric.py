"""What a metric of verdicts is, and how its questions are asked.

The author of a metric writes `judged`: it makes questions, asks them and computes a score from the verdicts.
The same method runs before anything was asked, to find out which questions there are: PendingError then
stops it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import ClassVar, Self

from ..core.metrics_base import SampleMetric, skip
from ..core.scores import Batch, Scores, is_unanswerable
from ..core.types import (
    EvaluationSample,
    MetricResult,
    Response,
    SampleScore,
    SystemOutputs,
    TargetCategory,
)
from ..errors import PlanError, ScoringError
from ..metrics.answers.pairs import answer_text, references
from ..metrics.citations.answer import Claim
from ..text.refusal import declines
from .ask import Asked, Asking, PendingError, key_of
from .question import Judgement, Kind, Part, Question, kind_named
from .texts import claims_in, claims_question

SENTENCES, LLM = "sentences", "llm"  # where claims come from
DECLINES = "the answer declines"  # the reason of a skipped or wrong answer; how many there are is printed


class JudgedMetric(SampleMetric):
    """A metric whose scores are computed from the verdicts of a judge."""

    kinds: ClassVar[tuple[str, ...]] = ()  # of the questions that it asks
    asking: Asking | None = None
    claims: str = SENTENCES
    repeat: int = 0  # which of several times that the same questions are asked

    def __post_init__(self) -> None:
        if self.claims not in (SENTENCES, LLM):
            raise ValueError(f"claims must be {SENTENCES} or {LLM}, not {self.claims!r}")

    def judged_by(self, asking: Asking, repeat: int = 0) -> Self:
        """Return the metric with a judge."""
        metric = copy(self)
        object.__setattr__(metric, "asking", asking)  # metrics are frozen
        object.__setattr__(metric, "repeat", repeat)
        return metric

    @property
    def needs_judge(self) -> bool:
        """Whether it asks a judge; a metric may also read what people have judged."""
        return True

    @property
    def is_share_of_yes(self) -> bool:
        """Whether its values are shares of yes, which the error rates of a judge correct."""
        return False

    @property
    def says_how_right(self) -> bool:
        """Whether it measures how right answers are: then an answer that declines is wrong."""
        return self.target is TargetCategory.GENERATION_CORRECTNESS and self.higher_is_better

    def question_kinds(self) -> list[Kind]:
        """Return the kinds of questions that it asks, in their order."""
        listed = ["claims"] if self.claims == LLM else []
        return [kind_named(name) for name in (*listed, *self.kinds)]

    def claims_of(self, text: str, sample: EvaluationSample) -> list[Claim]:
        """Return the claims of a text: its sentences, or with [claims=llm] what the judge finds in it."""
        return claims_in(text, sample.query, self.ask_all if self.claims == LLM else None)

    def ready(self) -> None:
        if not self.needs_judge:
            return
        if self.asking is None:
            raise PlanError(
                f"{self.name} needs a judge. Give one: --judge URL#model, --judge support:trained, or "
                "judge=... in Python."
            )
        for kind in self.question_kinds():
            if not self.asking.judge.answers(kind):
                raise PlanError(
                    f"{self.name} asks questions of the kind {kind.name!r}, which a support function "
                    "cannot answer: it compares a claim with a passage. Use a model as the judge."
                )

    def signature(self) -> Mapping[str, object]:
        if self.asking is None or not self.needs_judge:
            return {}
        kinds = self.question_kinds()
        # As the servers report them: a model behind the same name may have been replaced.
        models = {verdict.model for verdict in self.asking.of_judge(kinds) if verdict.model}
        identities = [self.asking.judge.identity(kind) for kind in kinds]
        return {"judge": identities, **({"models": sorted(models)} if models else {})}

    def answers_to(self, questions: Iterable[Question]) -> list[Judgement]:
        """Return the verdicts, failed ones included; while questions are collected this does not return."""
        self.ready()
        assert self.asking is not None  # noqa: S101 - `ready` raises
        if self.repeat:
            questions = [replace(question, repeat=self.repeat) for question in questions]
        return self.asking.known(questions)

    def ask_all(self, questions: Iterable[Question]) -> list[Judgement]:
        """Return the verdicts; ScoringError if one of them failed."""
        verdicts = self.answers_to(questions)
        check_known([verdict.failed for verdict in verdicts])
        return verdicts

    def verdicts_on(self, pairs: Sequence[tuple[Sequence[Claim], Sequence[str]]]) -> list[list[Part]]:
        """Return the verdict on each claim by its texts, one question per pair of claims and texts.

        A claim that has no text to be compared with has a part without a score.
        """
        asked = {
            place: claims_question(claims, texts)
            for place, (claims, texts) in enumerate(pairs)
            if claims and any(map(str.strip, texts))
        }
        known = dict(zip(asked, self.answers_to(asked.values()), strict=True))
        verdicts = [known.get(place, Judgement()) for place in range(len(pairs))]
        return [
            verdict.parts or [Part(failed=verdict.failed)] * len(claims)
            for verdict, (claims, _) in zip(verdicts, pairs, strict=True)
        ]

    @abstractmethod
    def judged(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        """Score a sample by verdicts. Return skip("why") where it does not apply."""

    def score_all(self, batch: Batch) -> Scores:
        scores, wanted = self._scored(batch)
        # Each round needs the verdicts of the round before: claims first, then the check of each claim.
        while wanted and self.asking is not None:
            self.asking.ask(wanted)
            scores, wanted = self._scored(batch)
        return scores

    def open_questions(self, batch: Batch) -> list[Asked]:
        """Return the questions whose verdicts are needed next, each once, in the order of the samples."""
        return [] if self.not_measured else self._scored(batch)[1]

    def _scored(self, batch: Batch) -> tuple[Scores, list[Asked]]:
        """Return the scores by the verdicts that are known, and the questions that others need."""
        wanted: dict[str, Asked] = {}

        def score(sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
            try:
                return self.judged(sample, output)
            except PendingError as pending:
                for judge, question in pending.asked:
                    about = {"sample_id": sample.sample_id, **question.about}
                    wanted.setdefault(key_of((judge, question)), (judge, replace(question, about=about)))
                raise

        scores = self.score_each(batch, score, zip(batch.samples, batch.outputs, strict=True))
        return scores, list(wanted.values())

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        return self.judged(sample, output)

    def notes_on(self, scores: Scores, result: MetricResult) -> list[str]:
        """Return what a reader has to know of a result, besides how far its judge is right."""
        return []

    def summarise(self, scores: Scores) -> MetricResult:
        result = super().summarise(scores)
        left_out = sum(note.reason == DECLINES for note in scores.notes.values())
        wrong = sum(reason == DECLINES for reason in scores.reasons.values())
        if left_out or wrong:
            result.details["num_declined"] = left_out + wrong
        # Without the name of the metric, so that the note of several metrics is printed once.
        declining, of_correctness = f"of {len(scores)} answers decline", "metrics of correctness"
        if left_out and self.says_how_right:
            about = f"{left_out} {declining} a question that has no answer"
            add_note(result, f"{about}: {of_correctness} leave them out.")
        elif left_out:
            add_note(result, f"{left_out} {declining}: all but {of_correctness} leave them out.")
        if wrong:
            about = f"{wrong} {declining} a question that has an answer"
            add_note(result, f"{about}: {of_correctness} count them as wrong.")
        for note in self.notes_on(scores, result):
            add_note(result, note)
        if self.asking is None or not self.needs_judge or not result.coverage.scored:
            return result
        from .trust.record import with_judge  # imported only for judged metrics: it takes time

        kinds = {kind.name for kind in self.question_kinds()} - {"claims"}
        audit = self.asking.audit
        return with_judge(
            result,
            # People labelled whether claims are supported: that says nothing of other questions.
            audit.calibration if audit and kinds == {audit.kind} else None,
            audit.probes_of(kinds) if audit else [],
            labels=self.asking.labels,
            is_share=self.is_share_of_yes,
            threshold=getattr(self, "threshold", None),
            judge=self.asking.judge.name,
        )


def check_known(reasons: Sequence[str]) -> None:
    """Raise ScoringError if a verdict failed, by the reason of each: it could have changed the score."""
    failed = [reason for reason in reasons if reason]
    if failed:
        raise ScoringError(
            f"{len(failed)} of {len(reasons)} verdicts failed, the first with {failed[0]:.200}"
        )


def no_answer(output: SystemOutputs) -> SampleScore | None:
    """Return the skipped score of an answer that is empty or declines; None of any other."""
    if not answer_text(output).strip():
        return skip("the answer is empty")
    return skip(DECLINES) if declines(output.response) else None


def declined(sample: EvaluationSample) -> SampleScore:
    """Return the correctness of an answer that declines: 0 if its question has an answer; else skipped.

    Skipping all of them would let a system win that answers one question and declines the others.
    """
    right = [] if sample.reference_answer is None else references(sample)
    has_answer = not is_unanswerable(sample) and not (right and all(map(_declines, right)))
    return SampleScore(0.0, DECLINES) if has_answer else skip(DECLINES)


def _declines(reference: str) -> bool:
    return declines(Response(reference))


def add_note(result: MetricResult, note: str) -> None:
    """Add a note that is printed below the table of results."""
    result.details["notes"] = [*result.notes, note]
