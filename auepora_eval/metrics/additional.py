"""System-level metrics: how long an answer takes."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.metrics_base import METRICS, SampleMetric, skip
from ..core.types import EvaluationSample, SampleScore, SystemOutputs, TargetCategory, seconds_of
from ..stats.intervals import Interval, quantile_interval

if TYPE_CHECKING:
    from ..core.scores import Rows


class TimingMetric(SampleMetric):
    """A metric of the seconds under one key of `SystemOutputs.timings`; lower is better."""

    timing_key: str
    target = TargetCategory.LATENCY
    higher_is_better = False
    unit = "s"
    bounds = (0.0, math.inf)

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> SampleScore:
        seconds = seconds_of(output, self.timing_key)
        return skip(f"no timing {self.timing_key!r}") if seconds is None else SampleScore(seconds)


@METRICS.add("mean_latency")
@dataclass
class MeanLatency(TimingMetric):
    """Mean seconds per answer, or per stage: mean_latency[retrieval]."""

    timing_key: str = "end_to_end"

    def __post_init__(self) -> None:
        self.name = f"mean_latency[{self.timing_key}]"


@METRICS.add("latency")
@dataclass
class LatencyQuantile(TimingMetric):
    """The time within which a share q of the answers came, in seconds.

    Linear interpolation between order statistics; its interval needs no assumption about the
    distribution and is "not estimable" below the number of samples that it takes (72 for p95).
    """

    q: float = 0.95
    timing_key: str = "end_to_end"
    oracle = "numpy.quantile (linear)"

    def __post_init__(self) -> None:
        if not 0 < self.q < 1:
            raise ValueError(f"q must lie between 0 and 1, not {self.q}")
        self.name = f"latency@{self.q:.15g}[{self.timing_key}]"

    def aggregate(self, rows: Rows) -> Rows:
        import numpy as np

        # A failed answer may stand in as infinity, and interpolating between two of those is not a number.
        with np.errstate(invalid="ignore"):
            return np.asarray(np.quantile(rows[..., 0], self.q, axis=-1))

    def interval(self, rows: Rows, clusters: Sequence[Hashable] | None, *, seed: int = 0) -> Interval | None:
        return quantile_interval(rows[:, 0], self.q)
