"""One goal of a run that stops when it is clear: the evidence on either side, unit by unit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from ..core.batch import Batch
from ..core.metrics_base import Metric, SampleMetric
from ..core.stopping import ClearVerdict, Goal, GoalOutcome
from ..core.types import EvaluationSample, SystemOutputs
from ..errors import PlanError
from ..stats.confidence_sequence import Evidence, sequence_interval

Side = Literal["above", "below"]


class Known(NamedTuple):
    """What is known of a sample's score: from `low` to `high`; None where the metric does not apply.

    A failure could have been anything that the metric allows: `failed`, and its bounds where they are known.
    """

    low: float | None = None
    high: float | None = None
    failed: bool = False


def known_of(metric: SampleMetric, sample: EvaluationSample, output: SystemOutputs) -> Known:
    """The score of one answer, or the bounds of what it could have been if it failed."""
    scores = metric.score_batch(Batch([sample], [output]))
    value = float(scores.values[0])
    if math.isfinite(value):
        low, high = metric.bounds
        if not low - 1e-9 <= value <= high + 1e-9:
            raise ValueError(
                f"{metric.name} gave {value} for {sample.sample_id!r}, outside of its bounds {metric.bounds}"
            )
        return Known(value, value)
    if not scores.notes[0].failed:
        return Known()
    ends = [metric.score_if_failed(sample, high=best).value for best in (False, True)]
    # A sample that the metric does not apply to has no score, whether the call failed or not.
    return Known(None, None) if None in ends else Known(min(ends), max(ends), True)  # type: ignore[type-var]


class GoalWatch:
    """The evidence for one goal. `side` tells which side of the threshold the truth is on, once clear."""

    def __init__(
        self,
        goal: Goal,
        metric: SampleMetric,
        largest: int,
        alpha: float,
        baseline: Mapping[str, Known],
    ) -> None:
        self.goal, self._metric, self._baseline = goal, metric, baseline
        self._alpha, self._largest = alpha, largest
        self._low, high = metric.bounds
        self._width = high - self._low
        if goal.is_of_baseline:
            self._low, self._width = -self._width, 2 * self._width
        threshold = (self.threshold - self._low) / self._width
        self._above = Evidence(threshold, largest=largest)
        self._below = Evidence(1 - threshold, largest=largest)
        self._units: list[tuple[float, float, int]] = []
        self._sum, self._scored, self._failed = 0.0, 0, 0
        self.side: Side | None = None

    @property
    def threshold(self) -> float:
        """What the value, or the change, is to be on one side of."""
        return _threshold(self.goal, self._metric)

    def add(self, unit: Sequence[tuple[EvaluationSample, Known]]) -> None:
        """A further cluster of samples, or a single one."""
        lows = highs = 0.0
        size = 0
        for sample, known in unit:
            if self.goal.is_of_baseline:
                known = self._change(known, self._baseline.get(sample.sample_id, Known()))
            if known.low is None or known.high is None:
                continue
            size += 1
            lows += min(1.0, max(0.0, (known.low - self._low) / self._width))
            highs += min(1.0, max(0.0, (known.high - self._low) / self._width))
            if known.failed:
                self._failed += 1
            else:
                self._sum, self._scored = self._sum + known.low, self._scored + 1
        self._units.append((lows, highs, size))
        # A failure speaks against whatever would become clear: low for "above", high for "below".
        self._above.add(lows, size)
        self._below.add(size - highs, size)
        if self.side is None:
            if self._above.is_clear(self._alpha / 2):
                self.side = "above"
            elif self._below.is_clear(self._alpha / 2):
                self.side = "below"

    def _change(self, ours: Known, theirs: Known) -> Known:
        """The candidate's score less the baseline's; one that only one of them has could be anything."""
        if ours.low is None and theirs.low is None and not theirs.failed:
            return Known()
        low, high = self._metric.bounds
        (a, b), (c, d) = (
            (low, high) if one.low is None or one.high is None else (one.low, one.high)
            for one in (ours, theirs)
        )
        certain = a == b and c == d
        return Known(a - d, b - c, failed=not certain)

    def outcome(self) -> GoalOutcome:
        """The verdict, with the interval that holds at whatever moment one stopped."""
        lows, highs, sizes = zip(*self._units, strict=True) if self._units else ((), (), ())
        found = sequence_interval(lows, highs, sizes=sizes, largest=self._largest, confidence=1 - self._alpha)
        low, high = (self._low + end * self._width for end in found[:2])
        # Once clear it stays clear: the interval is that of all moments together.
        if self.side == "above":
            low = max(low, self.threshold)
        elif self.side == "below":
            high = min(high, self.threshold)
        value = self._sum / self._scored if self._scored else None
        verdict = _verdict(self.goal, self.side, (low, high), better_above=self._metric.higher_is_better)
        interval = (min(low, high), max(low, high))
        return GoalOutcome(
            self.goal.metric,
            self.goal.kind,
            self.goal.limit,
            verdict,
            value,
            interval,
            self._scored,
            self._failed,
        )


def refuse_unfit(goal: Goal, metric: Metric) -> SampleMetric:
    """The metric, if it is a mean of scores between known bounds, with the limit in them; else PlanError."""
    why = ""
    if not isinstance(metric, SampleMetric) or type(metric).aggregate is not SampleMetric.aggregate:
        why = "is not a mean of its samples' scores"
    elif metric.whole_batch:
        why = "scores samples by looking at the others"
    elif not all(map(math.isfinite, metric.bounds)):
        why = "has no highest score, and one sample could turn everything"
    if why or not isinstance(metric, SampleMetric):
        raise PlanError(
            f"{goal.metric} {why}: no run can be stopped by it and stay right. Name a metric with scores "
            "between bounds, such as recall@5, or run all samples."
        )
    low, high = metric.bounds
    if goal.is_of_baseline:
        low, high = low - high, high - low
    if not low < _threshold(goal, metric) < high:
        raise PlanError(
            f"{goal.metric}: {goal.limit:g} leaves nothing to find out: it lies from {low:g} to {high:g}."
        )
    return metric


def _threshold(goal: Goal, metric: SampleMetric) -> float:
    if goal.kind == "no worse":
        return -goal.limit if metric.higher_is_better else goal.limit
    return goal.limit


def _verdict(
    goal: Goal, side: Side | None, interval: tuple[float, float], *, better_above: bool
) -> ClearVerdict:
    if not goal.is_of_baseline:
        if side is None:
            return "not clear"
        return "yes" if (side == "above") == (goal.kind == "at least") else "no"
    if side is None:
        return "cannot tell"
    if (side == "above") != better_above:
        return "worse"
    gained = interval[0] if better_above else -interval[1]
    return "better" if goal.kind == "better" or gained > 0 else "no worse"
