"""Whether a system declines where there is no answer, and only there.

A sample is answerable or not by `labels["answerable"]` (true or false), or not answerable by
`labels["scenario"] == "unanswerable"`; samples that say neither are skipped. A system that declines
everything has a perfect rejection_rate: read it beside over_refusal_rate, or use a measure of both.

Whether an answer declines is decided by metrics/refusal.py: an empty answer does. The detector's precision
and recall against people's labels stand there; `refusal(response)` tells what decided about one answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ..core.batch import has_field
from ..core.metrics_base import METRICS, SampleMetric, skip
from ..core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory
from ..errors import ScoringError
from .refusal import DETECTOR, refusal

if TYPE_CHECKING:
    from ..core.scores import Rows

_NO_LABEL = "the sample has neither labels.answerable nor the scenario 'unanswerable'"


class RejectionMetric(SampleMetric):
    """A metric of two facts about a sample: is there an answer, and did the system decline?"""

    target = TargetCategory.NEGATIVE_REJECTION

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        answerable = is_answerable(sample)
        if answerable is None:
            return skip(_NO_LABEL)
        return self.judge(answerable, refusal(output.response).declined, sample, output)

    def judge(
        self, answerable: bool, declined: bool, sample: EvaluationSample, output: SystemOutputs
    ) -> float | SampleScore:
        """The score of a sample whose label is known."""
        raise NotImplementedError

    def signature(self) -> dict[str, Any]:
        return {"detector": DETECTOR}


class RateMetric(RejectionMetric):
    """The share of the samples of one kind for which something holds: the others are skipped."""

    def score_if_failed(self, sample: EvaluationSample, *, high: bool) -> SampleScore:
        return super().score_if_failed(sample, high=high) if self.counts(sample) else skip("not of this kind")

    def counts(self, sample: EvaluationSample) -> bool:
        """Whether a failed sample would have been part of the share."""
        raise NotImplementedError


@METRICS.add("rejection_rate")
@dataclass
class RejectionRate(RateMetric):
    """Share of the unanswerable questions that the system declined.

    Declined / unanswerable; answerable samples are skipped. The same as the recall of abstention. RGB's
    rejection rate counts one fixed sentence only ("insufficient information"); this one knows many.
    """

    def __post_init__(self) -> None:
        self.name = "rejection_rate"

    def judge(
        self, answerable: bool, declined: bool, sample: EvaluationSample, output: SystemOutputs
    ) -> float | SampleScore:
        return skip("the question is answerable") if answerable else float(declined)

    def counts(self, sample: EvaluationSample) -> bool:
        return _label(sample) is False


@METRICS.add("over_refusal_rate")
@dataclass
class OverRefusalRate(RateMetric):
    """Share of the answerable questions that the system declined all the same (lower is better).

    Declined / answerable; unanswerable samples are skipped.
    """

    higher_is_better = False

    def __post_init__(self) -> None:
        self.name = "over_refusal_rate"

    def judge(
        self, answerable: bool, declined: bool, sample: EvaluationSample, output: SystemOutputs
    ) -> float | SampleScore:
        return float(declined) if answerable else skip("the question is unanswerable")

    def counts(self, sample: EvaluationSample) -> bool:
        return _label(sample) is True


@METRICS.add("answer_rate")
@dataclass
class AnswerRate(RateMetric):
    """Share of the labelled questions, answerable or not, that the system answered: its coverage.

    Answered / (answerable + unanswerable). Higher means bolder rather than better: compare two systems'
    answered_accuracy at the coverage that each of them has.
    """

    def __post_init__(self) -> None:
        self.name = "answer_rate"

    def judge(
        self, answerable: bool, declined: bool, sample: EvaluationSample, output: SystemOutputs
    ) -> float | SampleScore:
        return float(not declined)

    def counts(self, sample: EvaluationSample) -> bool:
        return _label(sample) is not None


class ConfusionMetric(RejectionMetric):
    """A metric of how often each of four things happened; a sample's value is 1 if the decision was right."""

    of_sums = True

    def judge(
        self, answerable: bool, declined: bool, sample: EvaluationSample, output: SystemOutputs
    ) -> float | SampleScore:
        cells = (
            float(declined and not answerable),
            float(declined and answerable),
            float(not declined and not answerable),
            float(not declined and answerable),
        )
        return SampleScore(float(declined != answerable), parts=cells)

    def score_if_failed(self, sample: EvaluationSample, *, high: bool) -> SampleScore:
        answerable = _label(sample)
        if answerable is None:
            return SampleScore(0.0, parts=(0.0, 0.0, 0.0, 0.0))
        right = (0.0, 0.0, 0.0, 1.0) if answerable else (1.0, 0.0, 0.0, 0.0)
        wrong = (0.0, 1.0, 0.0, 0.0) if answerable else (0.0, 0.0, 1.0, 0.0)
        return SampleScore(float(high), parts=right if high else wrong)

    def aggregate(self, rows: Rows) -> Rows:
        import numpy as np

        rightly_declined, wrongly_declined, wrongly_answered, rightly_answered = np.moveaxis(
            rows[..., 1:].sum(axis=-2), -1, 0
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.of_counts(rightly_declined, wrongly_declined, wrongly_answered, rightly_answered)

    def of_counts(
        self, rightly_declined: Rows, wrongly_declined: Rows, wrongly_answered: Rows, rightly_answered: Rows
    ) -> Rows:
        """The value from the four counts; not a number where a denominator is 0."""
        raise NotImplementedError


@METRICS.add("abstention_precision")
@dataclass
class AbstentionPrecision(ConfusionMetric):
    """Of the questions that the system declined, the share that indeed had no answer.

    Declined and unanswerable / declined; not a number where nothing was declined. It depends on how many
    of the samples are unanswerable: do not compare it between datasets.
    """

    oracle = "scikit-learn precision_score"

    def __post_init__(self) -> None:
        self.name = "abstention_precision"

    def of_counts(
        self, rightly_declined: Rows, wrongly_declined: Rows, wrongly_answered: Rows, rightly_answered: Rows
    ) -> Rows:
        return rightly_declined / (rightly_declined + wrongly_declined)


@METRICS.add("abstention_f1")
@dataclass
class AbstentionF1(ConfusionMetric):
    """How well the system tells unanswerable questions: harmonic mean of precision and recall of declining.

    2 · rightly declined / (2 · rightly declined + wrongly declined + wrongly answered). Recall is
    rejection_rate. Rightly answered questions play no part in it; abstention_balanced_accuracy counts them.
    """

    oracle = "scikit-learn f1_score"

    def __post_init__(self) -> None:
        self.name = "abstention_f1"

    def of_counts(
        self, rightly_declined: Rows, wrongly_declined: Rows, wrongly_answered: Rows, rightly_answered: Rows
    ) -> Rows:
        return 2 * rightly_declined / (2 * rightly_declined + wrongly_declined + wrongly_answered)


@METRICS.add("abstention_balanced_accuracy")
@dataclass
class AbstentionBalancedAccuracy(ConfusionMetric):
    """How often the decision to answer or decline is right, both kinds of question weighing the same.

    (rejection_rate + 1 - over_refusal_rate) / 2: 0.5 for a system that always answers, always declines or
    tosses a coin. Not a number where one kind of question is missing.
    """

    oracle = "scikit-learn balanced_accuracy_score"

    def __post_init__(self) -> None:
        self.name = "abstention_balanced_accuracy"

    def of_counts(
        self, rightly_declined: Rows, wrongly_declined: Rows, wrongly_answered: Rows, rightly_answered: Rows
    ) -> Rows:
        rejected = rightly_declined / (rightly_declined + wrongly_answered)
        answered = rightly_answered / (rightly_answered + wrongly_declined)
        return (rejected + answered) / 2


class BaseMetric(RejectionMetric):
    """A metric that hands answered, answerable questions to another one, its base."""

    base: str

    def _named(self, own: str) -> str:
        from .parse import parse_metric

        self._base = parse_metric(self.base)
        averaged = type(self._base).aggregate is SampleMetric.aggregate and not self._base.whole_batch
        if self._base.bounds != (0.0, 1.0) or not self._base.higher_is_better or not averaged:
            raise ValueError(f"the base must be a mean of scores from 0 to 1, 1 the best: {self.base} is not")
        self.base = self._base.name
        vars(self)["asks_a_model"] = self._base.asks_a_model
        if self.base == "exact_match":
            return own
        # A bare option ends at an equals sign: a base with options of its own is written with its key.
        return f"{own}[base={self.base}]" if "=" in self.base else f"{own}[{self.base}]"

    def _base_score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        missing = [name for name in self._base.requires if not has_field(sample, name)]
        if missing:
            return skip(f"the sample has no {missing[0]}")
        score = self._base.score(sample, output)
        return replace(score, parts=()) if isinstance(score, SampleScore) else score


@METRICS.add("answered_accuracy")
@dataclass
class AnsweredAccuracy(BaseMetric):
    """How good the answers are that the system chose to give, by a metric of your choice.

    Mean of the base metric over the answerable questions that were answered: answered_accuracy[token_f1];
    the others are skipped. A system that answers only what is easy scores high: read answer_rate with it.
    """

    base: str = "exact_match"

    def __post_init__(self) -> None:
        self.name = self._named("answered_accuracy")

    def judge(
        self, answerable: bool, declined: bool, sample: EvaluationSample, output: SystemOutputs
    ) -> float | SampleScore:
        if not answerable:
            return skip("the question is unanswerable")
        return skip("the system declined") if declined else self._base_score(sample, output)

    def score_if_failed(self, sample: EvaluationSample, *, high: bool) -> SampleScore:
        answerable = _label(sample)
        return super().score_if_failed(sample, high=high) if answerable else skip("not answerable")


@METRICS.add("conditioned_score")
@dataclass
class ConditionedScore(BaseMetric):
    """A metric of your choice, where declining an unanswerable question is a full success.

    1 for a rightful refusal; 0 for declining an answerable question or answering an unanswerable one;
    otherwise the base metric's score: conditioned_score[token_f1]. The mean over all labelled samples.
    MTRAG conditions its scores in this way, with a model to tell refusals.
    """

    base: str = "exact_match"

    def __post_init__(self) -> None:
        self.name = self._named("conditioned_score")

    def judge(
        self, answerable: bool, declined: bool, sample: EvaluationSample, output: SystemOutputs
    ) -> float | SampleScore:
        if declined or not answerable:
            return float(declined and not answerable)
        return self._base_score(sample, output)

    def score_if_failed(self, sample: EvaluationSample, *, high: bool) -> SampleScore:
        return skip(_NO_LABEL) if _label(sample) is None else super().score_if_failed(sample, high=high)


def is_answerable(sample: EvaluationSample) -> bool | None:
    """Whether a sample's question has an answer, by its labels; None where they do not say."""
    answerable = sample.labels.get("answerable")
    unanswerable = sample.labels.get("scenario") == "unanswerable"
    if answerable is None:
        return False if unanswerable else None
    if not isinstance(answerable, bool):
        raise ScoringError(f"labels.answerable must be true or false, not {answerable!r:.80}")
    if answerable and unanswerable:
        raise ScoringError("labels.answerable is true, but the scenario is 'unanswerable'")
    return answerable


def _label(sample: EvaluationSample) -> bool | None:
    """The same for a sample that has failed, perhaps by its labels: those that cannot be used say nothing."""
    try:
        return is_answerable(sample)
    except ScoringError:
        return None
