"""Whole answers: does an answer address the question, and does it say what the reference says?"""

from __future__ import annotations

from ...core.metrics_base import metric, skip
from ...core.scores import Scores
from ...core.types import EvaluationSample, MetricResult, SampleScore, SystemOutputs, TargetCategory
from ...errors import ScoringError
from ...metrics.answers.pairs import answer_text, references
from ..metric import JudgedMetric, add_note, declined, no_answer
from ..texts import question_about


@metric("judged_answer_relevance")
class JudgedAnswerRelevance(JudgedMetric):
    """Whether the answer addresses the question, as a judge sees it: yes 1, partly 0.5, no 0.

    Right or wrong does not count. People hardly agree on this: Krippendorff's alpha of appropriateness on
    MTRAG's answers is 0.07. Read it beside correctness, never alone. An answer that declines is skipped.
    """

    target = TargetCategory.GENERATION_RELEVANCE
    requires = ("query",)
    kinds = ("answer_relevance",)

    def judged(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        if (left_out := no_answer(output)) is not None:
            return left_out
        texts = {"answer": (output.response.text, sample.query)}
        question = question_about("answer_relevance", sample.query, texts)
        return self.ask_all([question])[0].score or 0.0

    def summarise(self, scores: Scores) -> MetricResult:
        result = super().summarise(scores)
        if result.coverage.scored:
            add_note(result, f"People hardly agree on what {self.name} measures (alpha 0.07 on MTRAG).")
        return result


@metric("judged_correctness")
class JudgedCorrectness(JudgedMetric):
    """Whether the answer says what the reference says, as a judge sees it.

    1 for the same, 0.5 if a part is left out, 0 for a contradiction or an answer to something else. Of
    several references the best counts. An empty answer scores 0, and so does one that declines, as its words
    or the judge say: it gives no right answer. Where there is none to give (an unanswerable question, a
    reference that declines), such an answer is skipped.
    """

    target = TargetCategory.GENERATION_CORRECTNESS
    requires = ("reference_answer",)
    kinds = ("correctness",)

    def judged(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        answer, right = answer_text(output), [text for text in references(sample) if text.strip()]
        if not right:
            return skip("the reference is empty")
        if not answer.strip():
            return 0.0
        if no_answer(output) is not None:
            return declined(sample)
        verdicts = self.answers_to(
            question_about(
                "correctness",
                sample.query,
                {"reference": (text, sample.query), "answer": (answer, text)},
            )
            for text in right
        )
        known = [verdict for verdict in verdicts if not verdict.failed]
        best = max(known, key=lambda verdict: verdict.score or 0.0, default=None)
        failed = next((verdict.failed for verdict in verdicts if verdict.failed), "")
        # A failed verdict on another reference cannot raise a full score.
        if best is None or (failed and best.score != 1):
            raise ScoringError(f"a verdict failed: {failed:.200}")
        return declined(sample) if best.label == "refusal" else best.score or 0.0
