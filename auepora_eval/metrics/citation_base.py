"""What the citation metrics share: the answer and its citations, found out once for a batch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ..core.batch import Batch
from ..core.metrics_base import SampleMetric, skip
from ..core.scores import Scores
from ..core.types import EvaluationSample, MetricResult, SampleScore, SystemOutputs, TargetCategory
from ..errors import ScoringError
from ..judges.entailment import support_function
from .citation_answer import CitedAnswer, JudgedAnswer, answer_of

if TYPE_CHECKING:
    from ..core.scores import Rows

THRESHOLD = 0.7  # from this support on, a claim is borne out
# A failed answer's number of claims or citations is not known; its bounds are those of one with this many.
# In a comparison it has as many as another answer to the question, or as usual.
_IF_FAILED = 20.0


class CitationMetric(SampleMetric):
    """A metric of an answer and what it cites."""

    base: str
    target = TargetCategory.GENERATION_FAITHFULNESS

    def __post_init__(self) -> None:
        self.name = self.base

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> SampleScore:
        return self.score_all(Batch([sample], [output]))[0]

    def score_all(self, batch: Batch) -> Scores:
        unscorable = self.unscorable(batch)
        return Scores.of(
            SampleScore(None) if place in unscorable else self._guarded_score(sample, answer)
            for place, (sample, answer) in enumerate(zip(batch.samples, self.answers(batch), strict=True))
        )

    def answers(self, batch: Batch) -> list[Any]:
        """What `of_answer` is given for each sample."""
        return batch.once(_cited_answers)

    def of_answer(self, sample: EvaluationSample, answer: Any) -> float | SampleScore:
        """The score of one answer."""
        raise NotImplementedError

    def _guarded_score(self, sample: EvaluationSample, answer: Any) -> SampleScore:
        try:
            score = self.of_answer(sample, answer)
        except ScoringError as error:
            return SampleScore(None, str(error), failed=True)
        return score if isinstance(score, SampleScore) else SampleScore(float(score))


class CitationShare(CitationMetric):
    """A share over all answers: sums of what counts / sums of what there is, not a mean of shares.

    `counted_as` names the two sums, which stand in the result's details.
    """

    counted_as: ClassVar[tuple[str, str]]
    of_sums = True

    def aggregate(self, rows: Rows) -> Rows:
        shares: Rows = rows[..., 1].sum(axis=-1) / rows[..., 2].sum(axis=-1)
        return shares

    def summarise(self, scores: Scores, *, seed: int = 0) -> MetricResult:
        result = super().summarise(scores, seed=seed)
        rows = scores.rows()
        sums = rows[:, 1:].sum(axis=0).tolist() if rows.shape[1] > 1 else (0, 0)
        for name, total in zip(self.counted_as, sums, strict=True):
            result.details[name] = int(total) if total == int(total) else total
        return result

    def score_if_failed(self, sample: EvaluationSample, *, high: bool) -> SampleScore:
        return share(self.bounds[high] * (whole := self.whole_if_failed(sample)), whole, "nothing to count")

    def counted_if_failed(self, sample: EvaluationSample, usual: Sequence[float]) -> SampleScore:
        if len(usual) < 2 or not usual[1] or not self.whole_if_failed(sample):
            return super().counted_if_failed(sample, usual)
        worst = self.bounds[not self.higher_is_better]
        return share(worst * usual[1], usual[1], "nothing to count")

    def whole_if_failed(self, sample: EvaluationSample) -> float:
        """How much there would have been to count in an answer that failed."""
        return _IF_FAILED


class NeedsSupport(CitationMetric):
    """A metric with a support function: its name is a field, and so is the score that is enough."""

    threshold: float
    support: str

    def __post_init__(self) -> None:
        self.name = name_with_support(self.base, type(self), self.threshold, self.support)

    def ready(self) -> None:
        support_function(self.support)

    def signature(self) -> dict[str, Any]:
        return {"support": self.support, "threshold": self.threshold, "claims": "sentences"}

    def answers(self, batch: Batch) -> list[Any]:
        return judged_answers(batch, self.support)


class SupportMetric(NeedsSupport, CitationShare):
    """A share that needs a support function."""


def name_with_support(base: str, metric: type, threshold: float, support: str) -> str:
    """base, base@0.5, base[embedding]: what differs from the default is in the name."""
    if isinstance(threshold, bool) or not 0 < threshold <= 1:
        raise ValueError(f"the threshold must be above 0 and at most 1, not {threshold!r}")
    number = "" if threshold == metric.threshold else f"@{threshold!r}"  # type: ignore[attr-defined]
    option = "" if support == metric.support else f"[{support}]"  # type: ignore[attr-defined]
    return f"{base}{number}{option}"


def judged_answers(batch: Batch, support: str) -> list[JudgedAnswer]:
    """Every answer with the support function of that name."""
    found: list[JudgedAnswer] = batch.once(_judged, support)  # type: ignore[arg-type]
    return found


def share(part: float, whole: float, if_none: str) -> SampleScore:
    """part / whole with both as parts; where there is nothing to count, a skip with the reason."""
    return SampleScore(part / whole, parts=(part, whole)) if whole else skip(if_none)


def _cited_answers(batch: Batch) -> list[CitedAnswer]:
    return list(_each_answer(batch))


def _judged(batch: Batch, support: str) -> list[JudgedAnswer]:
    function = support_function(support)
    return [JudgedAnswer(answer, function) for answer in batch.once(_cited_answers)]


def _each_answer(batch: Batch) -> Iterator[CitedAnswer]:
    for sample, output in zip(batch.samples, batch.outputs, strict=True):
        yield answer_of(sample, output)
