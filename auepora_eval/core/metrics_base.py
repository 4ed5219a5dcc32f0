"""What a metric is.

`Metric` is the seed's interface. `SampleMetric` is how ours are written: an author says how one
sample is scored; the house guards required fields and failed outputs, keeps every sample's score,
aggregates, and states coverage and an interval beside the value.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import ScoringError
from ..stats.intervals import Interval, bootstrap_interval, mean_interval
from .registry import Registry
from .types import EvaluationSample, MetricResult, SampleScore, SystemOutputs, TargetCategory

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Rows = NDArray[np.float64]


class Metric(ABC):
    """Anything that turns samples and outputs into a MetricResult."""

    name: str
    target: TargetCategory

    @abstractmethod
    def required_fields(self) -> list[str]:
        """Names of EvaluationSample fields that the metric needs, such as ["relevant_docs"]."""

    @abstractmethod
    def compute(self, samples: list[EvaluationSample], outputs: list[SystemOutputs]) -> MetricResult: ...


class SampleMetric(Metric):
    """A metric that scores each sample by itself and then aggregates the scores."""

    target: TargetCategory
    requires: ClassVar[tuple[str, ...]] = ()
    higher_is_better: ClassVar[bool] = True
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    oracle: ClassVar[str] = ""

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

    def interval(self, rows: Rows, clusters: Sequence[Hashable] | None, *, seed: int = 0) -> Interval | None:
        """The 95% interval of the aggregate, or None where the data cannot give one."""
        if type(self).aggregate is SampleMetric.aggregate:
            return mean_interval(rows[:, 0], clusters=clusters, bounds=self.bounds, seed=seed)
        return bootstrap_interval(rows, self.aggregate, clusters=clusters, seed=seed)

    def signature(self) -> dict[str, Any]:
        """What beside the name decides whether two values may be compared."""
        return {}

    def required_fields(self) -> list[str]:
        return list(self.requires)

    def score_all(
        self, samples: Sequence[EvaluationSample], outputs: Sequence[SystemOutputs]
    ) -> list[SampleScore]:
        """Score samples that have what they need; override for a faster way to the same scores."""
        return [self._guarded(sample, output) for sample, output in zip(samples, outputs, strict=True)]

    def compute(self, samples: list[EvaluationSample], outputs: list[SystemOutputs]) -> MetricResult:
        return self.summarise(samples, self.score_samples(samples, outputs))

    def score_samples(
        self, samples: Sequence[EvaluationSample], outputs: Sequence[SystemOutputs]
    ) -> list[SampleScore]:
        """A score for each sample, in order: a value, or the reason why there is none."""
        if len(samples) != len(outputs):
            raise ValueError(
                f"{self.name}: {len(samples)} samples but {len(outputs)} outputs; pair them first"
            )
        scores: list[SampleScore | None] = [
            self._unscorable(sample, output) for sample, output in zip(samples, outputs, strict=True)
        ]
        open_places = [place for place, score in enumerate(scores) if score is None]
        fresh = self.score_all([samples[i] for i in open_places], [outputs[i] for i in open_places])
        for place, score in zip(open_places, fresh, strict=True):
            scores[place] = _finite(score)
        return [
            SampleScore(score.value, score.reason, score.parts, sample.sample_id, score.failed)
            for sample, score in zip(samples, scores, strict=True)
            if score is not None
        ]

    def summarise(
        self, samples: Sequence[EvaluationSample], scores: Sequence[SampleScore], *, seed: int = 0
    ) -> MetricResult:
        """Aggregate scores that are known already, with their coverage and interval."""
        details: dict[str, Any] = coverage(scores)
        details["higher_is_better"] = self.higher_is_better
        value = math.nan
        interval: Interval | None = None
        if details["num_samples"]:
            rows = rows_of(scores)
            value = float(self.aggregate(rows))
            scored = [
                sample for sample, score in zip(samples, scores, strict=True) if score.value is not None
            ]
            interval = self.interval(rows, clusters_of(scored), seed=seed)
        details["confidence_interval"] = None if interval is None else [interval.low, interval.high]
        details["interval_method"] = "not estimable" if interval is None else interval.method
        details["bounds_if_failed"] = self._bounds_if_failed(samples, scores)
        details["signature"] = {"metric": self.name, **self.signature()}
        return MetricResult(self.name, self.target, value, details, list(scores))

    def _unscorable(self, sample: EvaluationSample, output: SystemOutputs) -> SampleScore | None:
        """Why this sample has no score here, or None if it can be scored."""
        for name in self.requires:
            if not has_field(sample, name):
                return skip(f"the sample has no {name}")
        if output.error is not None:
            return SampleScore(None, f"{output.error.type}: {output.error.message}", failed=True)
        return None

    def _guarded(self, sample: EvaluationSample, output: SystemOutputs) -> SampleScore:
        try:
            score = self.score(sample, output)
        except ScoringError as error:
            return SampleScore(None, str(error), failed=True)
        return score if isinstance(score, SampleScore) else SampleScore(float(score))

    def _bounds_if_failed(
        self, samples: Sequence[EvaluationSample], scores: Sequence[SampleScore]
    ) -> list[float | None] | None:
        """The value if every failure had scored worst, and best: no system gains by crashing."""
        if not any(score.failed for score in scores):
            return None
        values = []
        for high in (False, True):
            filled = [
                self.score_if_failed(sample, high=high) if score.failed else score
                for sample, score in zip(samples, scores, strict=True)
            ]
            values.append(float(self.aggregate(rows_of(filled))))
        # An unbounded metric (seconds) has no worst value, and JSON has no infinity.
        return [value if math.isfinite(value) else None for value in values]


METRICS: Registry[type[SampleMetric]] = Registry("metric")


def skip(reason: str) -> SampleScore:
    """A sample that this metric does not apply to."""
    return SampleScore(None, reason)


def has_field(sample: EvaluationSample, name: str) -> bool:
    """Whether a sample has something under "relevant_docs", "labels.scenario", ...; empty is nothing."""
    thing: Any = sample
    for part in name.split("."):
        thing = thing.get(part) if isinstance(thing, dict) else getattr(thing, part, None)
        if thing is None or (isinstance(thing, list | dict | str) and not thing):
            return False
    return True


def coverage(scores: Sequence[SampleScore]) -> dict[str, int]:
    """How many samples the value stands on, and what became of the others."""
    scored = sum(score.value is not None for score in scores)
    failed = sum(score.failed for score in scores)
    return {
        "num_total": len(scores),
        "num_samples": scored,
        "num_skipped": len(scores) - scored - failed,
        "num_failed": failed,
    }


def rows_of(scores: Sequence[SampleScore]) -> Rows:
    """The scored samples as an array: the value first, its parts behind it."""
    import numpy as np

    return np.array([(s.value, *s.parts) for s in scores if s.value is not None], dtype=np.float64)


def _finite(score: SampleScore) -> SampleScore:
    if score.value is None or math.isfinite(score.value):
        return score
    return SampleScore(
        None, f"the metric returned {score.value}, which is not a number to average", failed=True
    )


def clusters_of(samples: Sequence[EvaluationSample]) -> list[Hashable] | None:
    """The cluster of each sample, itself where it names none; None where no two samples share one."""
    names: list[Hashable] = [
        ("cluster", str(sample.metadata["cluster"])) if "cluster" in sample.metadata else ("alone", place)
        for place, sample in enumerate(samples)
    ]
    return None if len(set(names)) == len(names) else names
