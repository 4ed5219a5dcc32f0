"""The results of a run that could have stopped early: their intervals hold at whatever moment it stopped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..core.metrics_base import Metric, SampleMetric
from ..core.scores import as_columns
from ..core.stopping import Stopping
from ..core.types import MetricResult
from ..stats.confidence_sequence import METHOD, sequence_interval
from ..stats.drawing import summed_by_unit

if TYPE_CHECKING:
    from ..core.scores import Rows

NO_METHOD = "none: the run could stop early, and the metric is no mean of bounded scores"


def sequence_results(
    metrics: Sequence[Metric], results: Sequence[MetricResult], stopping: Stopping | None
) -> list[MetricResult]:
    """Results with the intervals of a confidence sequence; as they are, for a run of all samples."""
    if stopping is None:
        return list(results)
    by_name = {metric.name: metric for metric in metrics}
    return [sequence_result(by_name[result.name], result, stopping) for result in results]


def sequence_result(metric: Metric, result: MetricResult, stopping: Stopping) -> MetricResult:
    """The same result with an interval that holds although the run could stop early, or with none.

    All metrics of a run go with the one that it was stopped by: an interval for a fixed number of samples
    would be too narrow for any of them.
    """
    details = {**result.details, "confidence_interval": None, "interval_method": NO_METHOD}
    if _is_bounded_mean(metric) and isinstance(metric, SampleMetric) and math.isfinite(result.value):
        low, high = metric.bounds
        totals, sizes = _units(result)
        width = high - low
        found = sequence_interval(
            (totals - low * sizes) / width, sizes=sizes, largest=stopping.largest_cluster
        )
        details["confidence_interval"] = [low + found.low * width, low + found.high * width]
        details["interval_method"] = METHOD
    return replace(result, details=details)


def _is_bounded_mean(metric: Metric) -> bool:
    return (
        isinstance(metric, SampleMetric)
        and type(metric).aggregate is SampleMetric.aggregate
        and not metric.whole_batch
        and all(map(math.isfinite, metric.bounds))
    )


def _units(result: MetricResult) -> tuple[Rows, Rows]:
    """The sum of the scores of each cluster, and how many they are."""
    import numpy as np

    scores = as_columns(result.scores)
    there = np.isfinite(scores.values)
    columns = np.stack([np.where(there, scores.values, 0.0), there.astype(np.float64)], axis=1)
    summed = summed_by_unit(columns, scores.clusters)
    return summed[:, 0], summed[:, 1]
