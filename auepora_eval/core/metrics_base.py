"""What a metric is.

`Metric` is the seed's interface. `SampleMetric` is how ours are written: an author says how one
sample is scored; the house guards required fields and failed outputs, keeps every sample's score,
aggregates, and states coverage and an interval beside the value.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ..errors import ScoringError
from ..stats.intervals import Interval, bootstrap_interval, mean_interval
from .batch import Batch, shared_or_none
from .redaction import without_secrets
from .registry import Registry
from .scores import Note, Scores, equally_wide
from .types import EvaluationSample, MetricResult, SampleScore, SystemOutputs, TargetCategory

if TYPE_CHECKING:
    from .scores import Rows


class Metric(ABC):
    """Anything that turns samples and outputs into a MetricResult."""

    name: str
    target: TargetCategory

    @abstractmethod
    def required_fields(self) -> list[str]:
        """Names of EvaluationSample fields that the metric needs, such as ["relevant_docs"]."""

    @abstractmethod
    def compute(self, samples: list[EvaluationSample], outputs: list[SystemOutputs]) -> MetricResult: ...


_LARGEST = 1e150  # of a score: the sum of its squares over any number of samples is still a number


class SampleMetric(Metric):
    """A metric that scores each sample by itself and then aggregates the scores."""

    target: TargetCategory
    requires: ClassVar[tuple[str, ...]] = ()
    higher_is_better: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    unit: ClassVar[str] = ""  # "s" for seconds; shares, counts and rates have none
    oracle: ClassVar[str] = ""
    whole_batch: ClassVar[bool] = False  # a sample's score depends on other samples: no scoring in chunks
    asks_a_model: ClassVar[bool] = False  # each worker would keep a pace of its own: scored by the driver
    of_sums: ClassVar[bool] = False  # the aggregate needs no more than the sum of each column of the rows
    scores_failures: ClassVar[bool] = False  # a failed call is a score (failure_rate), not a sample lost
    scored_by_others: ClassVar[bool] = False  # an answer that fails changes the scores of the other answers
    not_measured: str = ""  # why no sample of a run can be scored (`unmeasured`)

    @abstractmethod
    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float | SampleScore:
        """Score one sample. Raise ScoringError, or return skip("why"), where that cannot be done."""

    def aggregate(self, rows: Rows) -> Rows:
        """Reduce the second-last axis of (..., samples, 1 + parts); here to the mean of the values."""
        mean: Rows = rows[..., 0].mean(axis=-1)
        return mean

    def score_if_failed(self, sample: EvaluationSample, *, high: bool) -> SampleScore:
        """The highest or the lowest that a failed sample could have scored: a bound of the metric."""
        return SampleScore(self.bounds[high])

    def counted_if_failed(self, sample: EvaluationSample, usual: Sequence[float]) -> SampleScore:
        """What a failed sample counts as in a comparison: the worst, of no more weight than an answer has.

        `usual` holds the parts of another system's answer to it, or where there is none the mean of all
        answers' parts; it is empty where nothing tells.
        """
        return self.score_if_failed(sample, high=not self.higher_is_better)

    def interval(self, rows: Rows, clusters: Sequence[Hashable] | None, *, seed: int = 0) -> Interval | None:
        """The 95% interval of the aggregate, or None where the data cannot give one."""
        if type(self).aggregate is SampleMetric.aggregate:
            return mean_interval(rows[:, 0], clusters=clusters, bounds=self.bounds, seed=seed)
        found = bootstrap_interval(rows, self.aggregate, clusters=clusters, of_sums=self.of_sums, seed=seed)
        return found and found.within(*self.bounds)

    def signature(self) -> dict[str, Any]:
        """What beside the name decides whether two values may be compared."""
        return {}

    def unmeasured(self, reason: str) -> Self:
        """The same metric for a run that has nothing of what it measures: every sample is skipped."""
        metric = copy(self)
        object.__setattr__(metric, "not_measured", reason)  # most metrics are frozen
        return metric

    def ready(self) -> None:
        """Raise MissingDependencyError if scoring would: asked before the first system call."""

    def required_fields(self) -> list[str]:
        return list(self.requires)

    def unscorable(self, batch: Batch) -> dict[int, Note]:
        """The places that lack a required field (skipped), and those where the system failed."""
        return batch.unscorable(self.requires, scores_failures=self.scores_failures)

    def score_all(self, batch: Batch) -> Scores:
        """Score a whole batch; override for a faster way to the same scores.

        What is returned at a place that `unscorable` names does not count.
        """
        unscorable = self.unscorable(batch)
        return Scores.of(
            SampleScore(None) if place in unscorable else self._guarded(sample, output)
            for place, (sample, output) in enumerate(zip(batch.samples, batch.outputs, strict=True))
        )

    def compute(self, samples: list[EvaluationSample], outputs: list[SystemOutputs]) -> MetricResult:
        return self.summarise(self.score_batch(Batch(samples, outputs)))

    def score_batch(self, batch: Batch) -> Scores:
        """A score for each sample, in order: a value, or the reason why there is none."""
        import numpy as np

        scores = (
            self.score_all(batch) if not self.not_measured else Scores.of([SampleScore(None)] * len(batch))
        )
        scores.sample_ids = batch.sample_ids()
        scores.clusters = batch.clusters()
        if self.not_measured:
            scores.notes |= dict.fromkeys(range(len(batch)), Note(self.not_measured))
        scores.notes |= self.unscorable(batch)
        scores.values[list(scores.notes)] = math.nan
        for place in np.flatnonzero(~(np.abs(scores.values) <= _LARGEST)).tolist():
            if place not in scores.notes:
                value = float(scores.values[place])
                what = "too large" if math.isfinite(value) else "not a number"
                text = f"the metric returned {value}, which is {what} to average"
                scores.notes[place] = Note(text, failed=True)
                scores.values[place] = math.nan
        failed = [batch.samples[place] for place, note in scores.notes.items() if note.failed]
        if failed:
            low, high = (
                Scores.of(self.score_if_failed(sample, high=best) for sample in failed).rows()
                for best in (False, True)
            )
            scores.if_failed = (low, high)
        return scores

    def summarise(self, scores: Scores, *, seed: int = 0) -> MetricResult:
        """Aggregate scores that are known already, with their coverage and interval."""
        details: dict[str, Any] = dict(scores.coverage())
        details["higher_is_better"] = self.higher_is_better
        details["unit"] = self.unit
        if self.not_measured:
            details["not_measured"] = self.not_measured
        details["bounds"] = [bound if math.isfinite(bound) else None for bound in self.bounds]
        value = math.nan
        interval: Interval | None = None
        if details["num_samples"]:
            rows = scores.rows()
            value = float(self.aggregate(rows))
            interval = self.interval(rows, shared_or_none(scores.clusters_of_scored()), seed=seed)
        limits = None if interval is None else interval.limits
        details["confidence_interval"] = None if limits is None else list(limits)
        method = "not estimable" if interval is None else interval.method
        details["interval_method"] = "all resamples equal" if interval and limits is None else method
        details["bounds_if_failed"] = self.bounds_if_failed(scores)
        details["signature"] = {"metric": self.name, **self.signature()}
        return MetricResult(self.name, self.target, value, details, scores)

    def _guarded(self, sample: EvaluationSample, output: SystemOutputs) -> SampleScore:
        try:
            score = self.score(sample, output)
        except ScoringError as error:
            return SampleScore(None, without_secrets(str(error)), failed=True)
        return score if isinstance(score, SampleScore) else SampleScore(float(score))

    def bounds_if_failed(self, scores: Scores) -> list[float | None] | None:
        """The value if every failure had scored lowest, and highest: no system gains by crashing."""
        import numpy as np

        if scores.if_failed is None:
            return None
        known = scores.rows()
        filled = [
            np.concatenate(equally_wide(known, rows)) if len(known) else rows for rows in scores.if_failed
        ]
        if not all(map(len, filled)):  # no failed sample could have been scored
            return None
        values = [float(self.aggregate(rows)) for rows in filled]
        # An unbounded metric (seconds) has no worst value, and JSON has no infinity.
        return [value if math.isfinite(value) else None for value in values]


METRICS: Registry[type[SampleMetric]] = Registry("metric")


def skip(reason: str) -> SampleScore:
    """A sample that this metric does not apply to."""
    return SampleScore(None, reason)
