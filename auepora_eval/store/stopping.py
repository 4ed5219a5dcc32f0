"""The results of a run that could have stopped early, and what became clear in words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..core.display import interval_text, value_text
from ..core.metrics_base import Metric, SampleMetric
from ..core.scores import Rows, as_columns
from ..core.types import MetricResult
from ..core.verdict import GoalOutcome, Outcome, Stopping
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
    if _is_bounded_mean(metric) and isinstance(metric, SampleMetric) and math.isfinite(result.value):
        low, high = metric.bounds
        totals, sizes = _units(result)
        width = high - low
        interval = sequence_interval(
            (totals - low * sizes) / width, sizes=sizes, largest=stopping.largest_cluster
        )
        return result.with_interval((low + interval.low * width, low + interval.high * width), METHOD)
    return result.with_interval(None, NO_METHOD)


def _is_bounded_mean(metric: Metric) -> bool:
    return (
        isinstance(metric, SampleMetric)
        and metric.is_mean
        and not metric.whole_batch
        and all(map(math.isfinite, metric.bounds))
    )


def _units(result: MetricResult) -> tuple[Rows, Rows]:
    """The sum of the scores of each cluster, and how many they are."""
    scores = as_columns(result.scores)
    is_scored = np.isfinite(scores.values)
    columns = np.stack([np.where(is_scored, scores.values, 0.0), is_scored.astype(np.float64)], axis=1)
    summed = summed_by_unit(columns, scores.clusters)
    return summed[:, 0], summed[:, 1]


def stopping_in_words(stopping: Stopping) -> str:
    """Return what became clear, after how many samples, and how far its intervals may be trusted."""
    if stopping.stopped_early:
        start = (
            f"Stopped early, after {stopping.samples_used:,} of {stopping.samples_in_dataset:,} samples in "
            f"random order (seed {stopping.seed}), when the verdict was clear."
        )
    else:
        start = (
            f"All {stopping.samples_used:,} samples were asked, in random order (seed {stopping.seed}); the "
            "run would have stopped when the verdict was clear."
        )
    verdicts = " ".join(_goal_in_words(goal, stopping) for goal in stopping.goals)
    if not stopping.stopped_early and stopping.largest_cluster > 1:
        verdicts += f" Clusters of up to {stopping.largest_cluster} samples make a verdict take longer."
    end = (
        "Its intervals hold at whatever moment a run stops, and are wider for it; tests and intervals for a "
        "fixed number of samples do not hold here."
    )
    return f"{start} {verdicts} {end}"


def _goal_in_words(goal: GoalOutcome, stopping: Stopping) -> str:
    of_baseline = goal.kind in ("better", "no worse")
    level = f"{100 * (1 - stopping.alpha):g}%"
    interval = interval_text(goal.interval, signed=of_baseline)
    number = f"{value_text(goal.value, signed=of_baseline)}, {level} interval {interval}"
    if goal.failed:
        number += f", {goal.failed} not measured and taken for the worst either way"
    if not of_baseline:
        limit = f"{goal.kind} {goal.limit:g}"
        words = {
            Outcome.PASSED: f"{goal.metric} is {limit}",
            Outcome.FAILED: f"{goal.metric} is not {limit}",
        }.get(goal.outcome, f"It is inconclusive whether {goal.metric} is {limit}")
        return f"{words} ({number})."
    than = f"than {stopping.baseline_id} on {goal.metric}"
    within, beyond = (
        (f", within {goal.limit:g}", f", by more than {goal.limit:g}")
        if goal.kind == "no worse"
        else ("", "")
    )
    words = {
        Outcome.PASSED: f"It is {goal.kind} {than}{within}",
        Outcome.FAILED: f"It is worse {than}{beyond}",
    }.get(goal.outcome, f"It is inconclusive whether it is {goal.kind} {than}")
    return f"{words} (change {number})."
