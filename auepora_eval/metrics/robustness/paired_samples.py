"""What metrics that compare samples share: a base metric, pairs of samples, rates given a condition.

A sample may be a variant of another: `labels.variant_of` holds the sample_id of its base question and
`labels.scenario` says in which way it differs.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...core.metrics_base import BatchMetric, OutputNeed, SampleMetric, parse_metric
from ...core.scores import NOT_GIVEN, Batch, Note, Rows, Scores, saw_documents
from ...core.types import EvaluationSample, MetricResult, SampleScore, SystemOutputs
from ...stats.intervals import Share

DEFAULT_BASE = "contains_answer"


class OnGivenDocuments(SampleMetric):
    """A metric of answers from chosen documents: skipped where the system was not given these."""

    def not_about(self, sample: EvaluationSample, output: SystemOutputs) -> str:
        return super().not_about(sample, output) if saw_documents(sample, output) else NOT_GIVEN

    def summarise(self, scores: Scores) -> MetricResult:
        result = super().summarise(scores)
        count = sum(note.reason == NOT_GIVEN for note in scores.notes.values())
        if count and not result.coverage.concerned:
            result.details.setdefault("not_measured", NOT_GIVEN)
        elif count:
            about = f"{self.name}: {count} of {len(scores)} samples are not measured: {NOT_GIVEN}"
            result.details["notes"] = [*result.notes, f"{about} (a system with a parameter `documents` is)."]
        return result


class Contrast(OnGivenDocuments, BatchMetric):
    """A metric of another metric's scores: the base, by its name, is what noise or a variant changes."""

    base: str
    whole_batch = True

    def __post_init__(self) -> None:
        self.base_metric = base_metric(self.base)
        self.base = self.base_metric.name
        vars(self)["requires"] = (*type(self).requires, *self.base_metric.requires)
        vars(self)["scores_failures"] = self.base_metric.scores_failures

    @property
    def output_needs(self) -> tuple[OutputNeed, ...]:
        return self.base_metric.output_needs

    def unscorable(self, batch: Batch) -> dict[int, Note]:
        # A failed answer to a sample that this metric is not about does not count as a failure.
        return {**super().unscorable(batch), **self.left_out(batch)}

    def left_out(self, batch: Batch) -> Mapping[int, Note]:
        """Return the samples that this metric is not about, answered or not."""
        raise NotImplementedError

    def base_scores(self, batch: Batch) -> Scores:
        """Return the base's scores, computed once for all metrics that contrast them; not to be changed."""
        return batch.once(_base_scores, self.base)

    def signature(self) -> Mapping[str, object]:
        return {"base": self.base, **self.base_metric.signature()}


def base_metric(name: str) -> SampleMetric:
    """Return the metric of that name; ValueError unless it scores each answer by itself, from 0 to 1."""
    base = parse_metric(name)
    # A judge is given to the metrics of a plan, not to their bases.
    if base.needs_judge or base.whole_batch:
        raise ValueError(f"the base must score an answer by itself, which {name} does not")
    if base.bounds != (0.0, 1.0) or not base.higher_is_better:
        raise ValueError(f"the base must be a score from 0 to 1, 1 the best: {name} is not")
    return base


class ConditionalRate(SampleMetric):
    """A rate among the samples that meet a condition: Σ value / Σ parts, both 0 or 1.

    Samples that do not meet it are kept, with 0 and 0, so that two systems, whose denominators differ, can
    be resampled together. The interval is of the samples in the denominator; both sums are in the details.
    """

    of_sums = True

    def aggregate(self, rows: Rows) -> Rows:
        with np.errstate(invalid="ignore"):
            return np.asarray(rows[..., 0].sum(axis=-1) / rows[..., 1].sum(axis=-1))

    def score_if_failed(self, sample: EvaluationSample, *, high: bool) -> SampleScore:
        return SampleScore(float(high), parts=(1.0,))

    def value_shares(self, rows: Rows) -> list[Share]:
        # Only samples in the denominator are trials of the proportion.
        return [Share(self.aggregate, rows[:, 1] > 0)]

    def summarise(self, scores: Scores) -> MetricResult:
        result = super().summarise(scores)
        rows = scores.rows()
        result.details["numerator"] = float(rows[:, 0].sum())
        result.details["denominator"] = float(rows[:, 1:2].sum())
        return result


def base_questions(batch: Batch) -> dict[int, int]:
    """Return the place of each variant's base question, where that is in the batch; for batch.once."""
    places = {sample.sample_id: place for place, sample in enumerate(batch.samples)}
    base_of = {}
    for place, sample in enumerate(batch.samples):
        base = places.get(str(sample.labels.get("variant_of")))
        if base is not None and sample.labels.get("variant_of") is not None:
            base_of[place] = base
    return base_of


def scenario(sample: EvaluationSample) -> str:
    """Return what kind of variant a sample is; "" if it does not say."""
    return str(sample.labels.get("scenario") or "")


def _base_scores(batch: Batch, name: str) -> Scores:
    return parse_metric(name).score_batch(batch)
