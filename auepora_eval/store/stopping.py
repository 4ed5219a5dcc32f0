"""The results of a run that could have stopped early, and what became clear in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..core.display import interval_text, value_text
from ..core.metrics_base import Metric, SampleMetric
from ..core.scores import Rows, as_columns
from ..core.types import MetricResult
from ..core.verdict import GoalOutcome, Stopping
from ..stats.intervals import METHOD, sequence_interval
from ..stats.resamples import summed_by_unit

NO_METHOD = "none: the run could stop early, and the metric is not a mean of bounded scores"


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
    if isinstance(metric, SampleMetric) and _is_bounded_mean(metric) and math.isfinite(result.value):
        low, high = metric.bounds
        totals, sizes = _units(result)
        width = high - low
        interval = sequence_interval(
            (totals - low * sizes) / width, sizes=sizes, largest=stopping.largest_cluster
        )
        return result.with_interval((low + interval.low * width, low + interval.high * width), METHOD)
    return result.with_interval(None, NO_METHOD)


def _is_bounded_mean(metric: SampleMetric) -> bool:
    return metric.is_mean and not metric.whole_batch and all(map(math.isfinite, metric.bounds))


def _units(result: MetricResult) -> tuple[Rows, Rows]:
    """The sum of the scores of each cluster, and how many they are."""
    scores = as_columns(result.scores)
    is_scored = np.isfinite(scores.values)
    columns = np.stack([np.where(is_scored, scores.values, 0.0), is_scored.astype(np.float64)], axis=1)
    summed = summed_by_unit(columns, scores.clusters)
    return summed[:, 0], summed[:, 1]


def stopping_in_words(stopping: Stopping) -> str:
    """Return what became clear, after how many samples, and how far its intervals may be trusted."""
    start = (
        f"{'Stopped early, after' if stopping.stopped_early else 'Asked'} {stopping.samples_used:,} of "
        f"{stopping.samples_in_dataset:,} samples in random order (seed {stopping.seed})."
    )
    verdicts = " ".join(_goal_in_words(goal, stopping) for goal in stopping.goals)
    end = ""
    if len(stopping.goals) > 1:
        end = "These intervals hold for all goals together, and are wider than those of single metrics. "
    end += (
        "Its intervals hold at whatever moment a run stops, and are wider for it; tests and intervals for a "
        "fixed number of samples do not hold here."
    )
    return f"{start} {verdicts} {end}"


def _goal_in_words(goal: GoalOutcome, stopping: Stopping) -> str:
    is_change = goal.kind in ("better", "no worse")
    limit = "" if goal.kind == "better" else f" {'by ' if is_change else ''}{goal.limit:g}"
    rule = f"{goal.metric} {goal.kind}{limit}" + (f" (against {stopping.baseline_id})" if is_change else "")
    value = value_text(goal.value, signed=is_change)
    interval = f"{100 * (1 - stopping.alpha):g}% interval {interval_text(goal.interval, signed=is_change)}"
    failed = f", {goal.failed} not measured and taken for the worst either way" if goal.failed else ""
    return f"{rule}: {goal.outcome}, {'change ' if is_change else ''}{value}, {interval}{failed}."
