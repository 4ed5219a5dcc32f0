"""Whole answers: does an answer address the question, and does it say what the reference says?"""

from __future__ import annotations

from ...core.metrics_base import metric, skip
from ...core.scores import Scores
from ...core.types import EvaluationSample, MetricResult, SampleScore, SystemOutputs, TargetCategory
from ...metrics.answers.pairs import answer_text, references
from ..metric import JudgedMetric, declined, no_answer
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

    def notes_on(self, scores: Scores, result: MetricResult) -> list[str]:
        is_scored = result.coverage.scored > 0
        return [f"People hardly agree on what {self.name} measures (alpha 0.07 on MTRAG)."] * is_scored


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
        verdicts = self.ask_all(
            question_about(
                "correctness",
                sample.query,
                {"reference": (text, sample.query), "answer": (answer, text)},
            )
            for text in right
        )
        best = max(verdicts, key=lambda verdict: verdict.score or 0.0)
        return declined(sample) if best.label == "refusal" else best.score or 0.0
