"""Whether a system declines where there is no answer, and only there.

A sample is answerable or not by `labels["answerable"]` (true or false), or not answerable by
`labels["scenario"] == "unanswerable"`; samples that say neither are skipped. A system that declines
everything has a perfect rejection_rate: read it beside over_refusal_rate, or use a measure of both.

Whether an answer declines is decided by text/refusal.py: an empty answer does. The detector's precision
and recall against people's labels are there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np

from ...core.metrics_base import SampleMetric, metric, skip
from ...core.scores import Rows, has_field
from ...core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ...errors import ScoringError
from ...stats.intervals import Share
from ...text.refusal import DETECTOR, declines
from .paired_samples import DEFAULT_BASE, OnGivenDocuments, base_metric

_NO_LABEL = "the sample has neither labels.answerable nor the scenario 'unanswerable'"


class RejectionMetric(OnGivenDocuments):
    """A metric of two facts about a sample: is there an answer, and did the system decline?"""

    target = TargetCategory.NEGATIVE_REJECTION
    counted: ClassVar[tuple[bool, ...]] = (True, False)  # True for answerable questions, False for the others

    def not_about(self, sample: EvaluationSample, output: SystemOutputs) -> str:
        try:
            answerable = is_answerable(sample)
        except ScoringError:  # the score says that the labels cannot be used
            return ""
        if answerable is None:
            return _NO_LABEL
        if answerable not in self.counted:
            return "the question is answerable" if answerable else "the question is unanswerable"
        return super().not_about(sample, output)

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        if reason := self.not_about(sample, output):
            return skip(reason)
        declined = declines(output.response)
        if is_answerable(sample) and not declined:
            return self.of_answer(sample, output)
        return self.of_decision(is_answerable(sample) is True, declined)

    def of_answer(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        """Return the score of an answer to a question that has one."""
        return self.of_decision(True, False)

    def of_decision(self, answerable: bool, declined: bool) -> float | SampleScore:
        """Return the score of declining or answering such a question."""
        return float(declined)

    def score_if_failed(self, sample: EvaluationSample, *, high: bool) -> SampleScore:
        try:
            return self.if_failed(is_answerable(sample) is True, high=high)
        except ScoringError as error:  # labels that cannot be used: nothing can be said
            return skip(str(error))

    def if_failed(self, answerable: bool, *, high: bool) -> SampleScore:
        """Return the best or the worst score of a question whose label is known."""
        return SampleScore(self.bounds[high])

    def signature(self) -> Mapping[str, object]:
        return {"detector": DETECTOR}


@metric("rejection_rate")
class RejectionRate(RejectionMetric):
    """Share of the unanswerable questions that the system declined: the recall of abstention.

    RGB's rejection rate counts one fixed sentence only ("insufficient information"); this one knows many.
    """

    counted = (False,)


@metric("over_refusal_rate")
class OverRefusalRate(RejectionMetric):
    """Share of the answerable questions that the system declined all the same."""

    higher_is_better = False
    counted = (True,)


@metric("answer_rate")
class AnswerRate(RejectionMetric):
    """Share of the labelled questions, answerable or not, that the system answered: its coverage.

    Higher means bolder rather than better: compare two systems' answered_accuracy at the coverage that each
    has.
    """

    def of_decision(self, answerable: bool, declined: bool) -> float:
        return float(not declined)


class Decisions(NamedTuple):
    """How often each of the four decisions was made; the parts of a sample are its own, as 0 or 1."""

    rightly_declined: Rows
    wrongly_declined: Rows
    wrongly_answered: Rows
    rightly_answered: Rows


class ConfusionMetric(RejectionMetric):
    """A metric of how often each of four things happened; a sample's value is 1 if the decision was right."""

    of_sums = True

    def of_decision(self, answerable: bool, declined: bool) -> SampleScore:
        place = 2 * (not declined) + answerable  # in the order of Decisions
        return SampleScore(float(declined != answerable), parts=tuple(float(n == place) for n in range(4)))

    def if_failed(self, answerable: bool, *, high: bool) -> SampleScore:
        return self.of_decision(answerable, answerable != high)

    def aggregate(self, rows: Rows) -> Rows:
        counts = Decisions(*np.moveaxis(rows[..., 1:].sum(axis=-2), -1, 0))
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.of_counts(counts)

    def of_counts(self, counts: Decisions) -> Rows:
        """Return the value from the four counts; NaN where a denominator is 0."""
        raise NotImplementedError


@metric("abstention_precision")
class AbstentionPrecision(ConfusionMetric):
    """Of the questions that the system declined, the share that indeed had no answer.

    Not a number where nothing was declined. It depends on how many of the samples are unanswerable: do not
    compare it between datasets.
    """

    oracle = "scikit-learn precision_score"

    def of_counts(self, counts: Decisions) -> Rows:
        return counts.rightly_declined / (counts.rightly_declined + counts.wrongly_declined)

    def value_shares(self, rows: Rows) -> list[Share]:
        return [Share(self.aggregate, rows[:, 1:3].sum(axis=1) > 0)]  # declined, rightly or wrongly


@metric("abstention_f1")
class AbstentionF1(ConfusionMetric):
    """How well the system detects unanswerable questions: harmonic mean of precision and recall of declining.

    Recall is rejection_rate. Rightly answered questions play no part in it; abstention_balanced_accuracy
    counts them.
    """

    oracle = "scikit-learn f1_score"

    def of_counts(self, counts: Decisions) -> Rows:
        twice = 2 * counts.rightly_declined
        return twice / (twice + counts.wrongly_declined + counts.wrongly_answered)

    def value_shares(self, rows: Rows) -> list[Share]:
        return [Share(self.aggregate, rows[:, 1:4].sum(axis=1) > 0)]  # all but the rightly answered


@metric("abstention_balanced_accuracy")
class AbstentionBalancedAccuracy(ConfusionMetric):
    """How often the decision to answer or decline is right, both kinds of question weighing the same.

    (rejection_rate + 1 - over_refusal_rate) / 2: 0.5 for a system that always answers, always declines or
    tosses a coin. Not a number where one kind of question is missing.
    """

    oracle = "scikit-learn balanced_accuracy_score"

    def of_counts(self, counts: Decisions) -> Rows:
        rejected = counts.rightly_declined / (counts.rightly_declined + counts.wrongly_answered)
        answered = counts.rightly_answered / (counts.rightly_answered + counts.wrongly_declined)
        return (rejected + answered) / 2

    def value_shares(self, rows: Rows) -> list[Share]:
        # Right decisions and wrong ones: of the unanswerable questions, then of the answerable ones.
        return [Share(_share_right, rows[:, kind].sum(axis=1) > 0, 0.5) for kind in ([1, 3], [2, 4])]


def _share_right(rows: Rows) -> Rows:
    """Return the share of right decisions among the questions that have a label."""
    return np.asarray(rows[..., 0].sum(axis=-1) / rows[..., 1:].sum(axis=(-2, -1)))


class WithBase(SampleMetric):
    """A metric of your choice, its base, that knows about declined and unanswerable questions."""

    base: str

    def __post_init__(self) -> None:
        self.base_metric = base_metric(self.base)
        self.base = self.base_metric.name

    def of_answer(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        """Return the base's score of an answer, without the parts: here scores are averaged."""
        if missing := _missing(self.base_metric, sample):
            return skip(missing)
        score = self.base_metric.score(sample, output)
        return replace(score, parts=()) if isinstance(score, SampleScore) else score


@metric("answered_accuracy[{base?}]")
class AnsweredAccuracy(WithBase, RejectionMetric):
    """How good the answers are that the system chose to give, by a metric of your choice.

    Mean of the base metric over the answerable questions that were answered. The base is contains_answer, or
    the one in brackets: answered_accuracy[token_f1]. A system that answers only what is easy scores high:
    read answer_rate with it.
    """

    base: str = DEFAULT_BASE
    counted = (True,)

    def of_decision(self, answerable: bool, declined: bool) -> SampleScore:
        return skip("the system declined")


@metric("conditioned_score[{base?}]")
class ConditionedScore(WithBase, RejectionMetric):
    """A metric of your choice, where declining an unanswerable question is a full success.

    1 for a rightful refusal; 0 for declining an answerable question or answering an unanswerable one;
    otherwise the base metric's score: conditioned_score[token_f1]. The mean over all labelled samples, as
    MTRAG conditions its scores with a model that detects refusals.
    """

    base: str = DEFAULT_BASE

    def of_decision(self, answerable: bool, declined: bool) -> float:
        return float(declined and not answerable)


@metric("right[{base?}]")
class Right(WithBase):
    """1 if the answer is right: what the reference says, or declined where there is no answer.

    By another metric, of which at least half is right: right[token_f1]. Declining a question that has an
    answer is wrong; so is every answer to one that has none (`labels.answerable` is false). Every sample
    counts that has a reference or is labelled as unanswerable.
    """

    base: str = DEFAULT_BASE
    target = TargetCategory.GENERATION_CORRECTNESS

    def not_about(self, sample: EvaluationSample, output: SystemOutputs) -> str:
        try:
            return "" if is_answerable(sample) is False else _missing(self.base_metric, sample)
        except ScoringError:  # the score says that the labels cannot be used
            return ""

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        declined = declines(output.response)
        if is_answerable(sample) is False:
            return float(declined)
        score = self.of_answer(sample, output)
        value = score.value if isinstance(score, SampleScore) else score
        return score if value is None else float(value >= HALF and not declined)

    def signature(self) -> Mapping[str, object]:
        return {"detector": DETECTOR, **self.base_metric.signature()}


def _missing(base: SampleMetric, sample: EvaluationSample) -> str:
    """Return that a sample lacks what the base needs; "" if not."""
    return next((f"the sample has no {name}" for name in base.requires if not has_field(sample, name)), "")


HALF = 0.5  # of a graded metric: from here on an answer is right


def is_answerable(sample: EvaluationSample) -> bool | None:
    """Return whether a sample's question has an answer, by its labels; None where they do not say."""
    answerable = sample.labels.get("answerable")
    unanswerable = sample.labels.get("scenario") == "unanswerable"
    if answerable is None:
        return False if unanswerable else None
    if not isinstance(answerable, bool):
        raise ScoringError(f"labels.answerable must be true or false, not {answerable!r:.80}")
    if answerable and unanswerable:
        raise ScoringError("labels.answerable is true, but the scenario is 'unanswerable'")
    return answerable
