"""Runs on different samples: the scores of each run by itself, and Welch's test between two of them.

A failed answer counts as the worst. A failed call has no duration, and no duration is the worst possible: it
counts as the slowest call of all runs, so that failing is never faster than answering. If the samples are
split, no other run has the same question: for a metric that is not a mean, failed answers weigh as much as
the same share of another run's worst answers.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ..core.metrics_base import SampleMetric
from ..core.scores import Rows, Scores, as_columns, equally_wide, shared_or_none
from ..core.types import EvaluationRun, EvaluationSample, SampleScore
from ..core.verdict import Verdict
from ..errors import PlanError
from ..stats.intervals import (
    Estimate,
    Interval,
    MeanError,
    Units,
    aggregate_units,
    mean_error,
    mean_units,
    plus_two,
    value_ends,
)
from ..stats.power import Spread, units_needed, units_to_rule_out
from ..stats.significance import UnpairedTest, cohens_d, welch_freedom, welch_of_errors
from .compare import Effect, MetricComparison, Power, SignificanceTest
from .pairing import (
    NEEDS_ITS_CLASS,
    FilledRows,
    clusters_of_rows,
    failed_places,
    filled_by,
    metric_of,
    worse_rows,
)


class RunScores(NamedTuple):
    """The scores of one metric in one run, with their clusters; failed answers have the worst score.

    `failed` counts the rows of failed answers.
    """

    metric: SampleMetric
    rows: Rows
    clusters: Sequence[Hashable] | None
    failed: int = 0

    @property
    def value(self) -> float:
        """The value of the metric; NaN where nothing was measured."""
        return float(self.metric.aggregate(self.rows)) if len(self.rows) else math.nan

    @property
    def measured(self) -> int:
        """How many samples have a score of their own."""
        return len(self.rows) - self.failed

    @property
    def units(self) -> int:
        """How many samples, or clusters of samples, there are."""
        return len(self.rows) if self.clusters is None else len(set(self.clusters))

    def interval(self) -> tuple[float, float] | None:
        """Return the 95% interval of the value, or None where the data cannot give one."""
        interval = self.metric.interval(self.rows, self.clusters) if len(self.rows) else None
        return None if interval is None else (interval.low, interval.high)

    def numbers(self) -> Units:
        """Return one number per unit: the scores of a mean, or what a unit adds to another aggregate."""
        if self.metric.is_mean:
            return mean_units(self.rows[:, 0], self.clusters)
        metric = self.metric
        return aggregate_units(self.rows, metric.aggregate, clusters=self.clusters, of_sums=metric.of_sums)


def scores_by_run(runs: Mapping[str, EvaluationRun], name: str) -> dict[str, RunScores]:
    """Return one metric of several runs: the slowest call and the weight of answers are those of all runs."""
    counted = {
        key: _Counted(run, name, [other for other_key, other in runs.items() if other_key != key])
        for key, run in runs.items()
    }
    measured = [one.rows[one.measured] for one in counted.values() if one.measured.any()]
    if measured and any(one.endless for one in counted.values()):
        width = max(rows.shape[1] for rows in measured)
        padded = [np.pad(rows, ((0, 0), (0, width - rows.shape[1]))) for rows in measured]
        everything = np.concatenate(padded)
        for one in counted.values():
            one.fill(everything)
    return {key: one.scores_of_run() for key, one in counted.items()}


def unpaired_comparison(
    a: RunScores, b: RunScores, test: UnpairedTest | None, not_tested: str = ""
) -> MetricComparison:
    """Return the comparison of two runs on different samples, before its p-value is corrected."""
    metric = a.metric
    change = b.value - a.value if test is None else test.difference
    interval = None
    if test is not None and math.isfinite(test.low) and math.isfinite(test.high) and test.low < test.high:
        low, high = metric.bounds
        interval = Interval(test.low, test.high, "").within(low - high, high - low)[:2]
    p_value = None if test is None or not math.isfinite(test.p_value) else test.p_value
    method = "" if test is None else test.method
    return MetricComparison(
        name=metric.name,
        target=metric.target,
        higher_is_better=metric.higher_is_better,
        unit=metric.unit,
        verdict=Verdict.INCONCLUSIVE if change else Verdict.SAME,
        baseline=a.value,
        candidate=b.value,
        test=SignificanceTest(p_value, None, method, not_tested),
        effect=Effect(change, interval),
    )


def unpaired_test(a: RunScores, b: RunScores) -> UnpairedTest:
    """Return Welch's test of two values."""
    return welch_of_errors(_error(a), _error(b))


def _error(side: RunScores) -> MeanError:
    if side.metric.is_mean or side.units < 2:
        return mean_error(side.rows[:, 0], clusters=side.clusters)
    units = side.numbers()
    error = float(units.numbers.std(ddof=1)) / math.sqrt(len(units.numbers))
    return MeanError(side.value, error, max(units.freedom, 1.0))


def unpaired_power(a: RunScores, b: RunScores, level: float, power: float) -> Power:
    """Return how many samples each run needs to detect a difference of the observed size."""
    effect = cohens_d(a.rows[:, 0], b.rows[:, 0]) if a.metric.is_mean else math.nan
    if not math.isfinite(effect):
        return Power()
    # An effect in units of one score's deviation: the difference of two scores has twice its variance.
    spread = Spread(math.sqrt(2), math.sqrt(2))
    return Power(samples_needed=units_needed(effect, spread, alpha=level, power=power, groups=2))


def unpaired_margin(a: RunScores, b: RunScores) -> Estimate | None:
    """Return the gain of b over a as a margin is judged by; None where a run has fewer than two units.

    Each run has one imaginary unit at either end of the scale, as Agresti and Caffo (2000) have it for 0/1
    scores: a loss that no sample showed may be as large as that.
    """
    if min(a.units, b.units) < 2:
        return None
    sides = [_with_ends(side) for side in (a, b)]
    first, second = (MeanError(float(one.middle), float(one.error), one.freedom) for one in sides)
    gain = second.mean - first.mean
    gain = gain if a.metric.higher_is_better else -gain
    error = math.hypot(first.error, second.error)
    return Estimate(np.asarray(gain), np.asarray(error), welch_freedom(first, second) if error else 1.0)


def _with_ends(side: RunScores) -> Estimate:
    units, bounds = side.numbers(), side.metric.bounds
    ends = zip(bounds, value_ends(units, bounds), strict=True)
    low, high = (bound if math.isfinite(bound) else float(seen) for bound, seen in ends)
    return plus_two(units, low, high)


def unpaired_samples_for_margin(
    test: UnpairedTest, a: RunScores, b: RunScores, margin: float, *, alpha: float, power: float
) -> int | None:
    """Return about how many samples per run would rule out a loss of the margin."""
    low, high = a.metric.bounds
    if not test.error > 0 or not math.isfinite(high - low):
        return None
    gain = test.difference if a.metric.higher_is_better else -test.difference
    # The spread of one difference between the runs; exact if both have the same number of samples.
    sd = test.error * math.sqrt(min(len(a.rows), len(b.rows)))
    return units_to_rule_out(gain + margin, sd, high - low, alpha=alpha, power=power)


class _Counted:
    """The scores of one run while failed answers are filled in."""

    def __init__(self, run: EvaluationRun, name: str, others: Sequence[EvaluationRun]) -> None:
        result = run.result(name)
        metric = metric_of(result)
        if metric is None:
            raise PlanError(f"{name:.60} cannot be compared: {NEEDS_ITS_CLASS}.")
        self.metric, self.scores = metric, as_columns(result.scores)
        samples = {sample.sample_id: sample for sample in run.samples}
        filled = _filled(
            metric, self.scores, samples, [as_columns(other.result(name).scores) for other in others]
        )
        self.rows, self.there = filled.rows, filled.there
        self.measured = np.isfinite(self.scores.values)
        self.clusters = clusters_of_rows(self.scores, samples)
        self.endless: dict[int, SampleScore] = {}
        for place, note in self.scores.notes.items():
            sample = samples.get(self.scores.sample_ids[place])
            if note.failed and not self.there[place] and sample is not None:
                worst = metric.score_if_failed(sample, high=not metric.higher_is_better)
                if worst.value is not None and math.isinf(worst.value):
                    self.endless[place] = worst

    def fill(self, everything: Rows) -> None:
        """Give failed answers without a worst score the worst that any run measured."""
        value = everything[:, 0].min() if self.metric.higher_is_better else everything[:, 0].max()
        for place, worst in self.endless.items():
            parts = (
                part if math.isfinite(part) else everything[:, column].max()
                for column, part in enumerate(worst.parts, start=1)
            )
            self.rows[place] = 0.0
            self.rows[place, : 1 + len(worst.parts)] = (value, *parts)
            self.there[place] = True

    def scores_of_run(self) -> RunScores:
        clusters = self.clusters
        if clusters is not None:
            is_used = self.there.tolist()
            clusters = shared_or_none([one for one, kept in zip(clusters, is_used, strict=True) if kept])
        failed = int((self.there & ~self.measured).sum())
        return RunScores(self.metric, self.rows[self.there], clusters, failed)


def _filled(
    metric: SampleMetric,
    scores: Scores,
    samples: Mapping[str, EvaluationSample],
    others: Sequence[Scores],
) -> FilledRows:
    """Return the rows of one run, with failed answers at their worst given the other runs."""
    filled = FilledRows(metric, scores, samples, beside=_largest_of(scores, others))
    ours = set(scores.sample_ids)
    # Decision 5: only split samples take a share of the worst answers. With the same samples, the answer to
    # the same question is known.
    paired = any(not ours.isdisjoint(other.sample_ids) for other in others)
    if paired or metric.is_mean or not filled.filled.any():
        return filled
    for other in others:
        lent = _share_of_the_worst(metric, scores, int(filled.there.sum()), other)
        rows, instead = equally_wide(filled.rows, filled_by(metric, scores, samples, lent).rows)
        filled.rows = worse_rows(metric, rows, instead, filled.there)
    return filled


def _share_of_the_worst(metric: SampleMetric, scores: Scores, count: int, other: Scores) -> dict[int, Rows]:
    """Return an answer of the other run for each failed score, of `count` in all, worst first."""
    rows = other.rows()
    if not len(rows):
        return {}
    worst = _worst_first(metric, rows)
    # By shares: a small run does not lend its good answers to a large one.
    return {
        place: rows[worst[n * len(rows) // count]] for n, place in enumerate(failed_places(scores)[:count])
    }


def _worst_first(metric: SampleMetric, rows: Rows) -> Sequence[int]:
    """Return the rows in the order of what they cost the whole: long answers may cost most."""
    worth = rows[:, 0]
    if metric.of_sums and len(rows) > 1:
        with np.errstate(divide="ignore", invalid="ignore"):
            worth = -metric.aggregate((rows.sum(axis=0) - rows)[:, np.newaxis, :])  # without each of them
    order: list[int] = np.argsort(worth if metric.higher_is_better else -worth, kind="stable").tolist()
    return order


def _largest_of(scores: Scores, others: Sequence[Scores]) -> Scores | None:
    """Return the parts of the other runs' answers to the same samples, each part at its largest."""
    width = max((0 if other.parts is None else other.parts.shape[1] for other in others), default=0)
    if not width or not scores.notes:
        return None
    values, parts = np.full(len(scores), math.nan), np.zeros((len(scores), width))
    for other in others:
        where = dict(zip(other.sample_ids, range(len(other)), strict=True))
        for place, sample_id in enumerate(scores.sample_ids):
            its = where.get(sample_id)
            if its is not None and other.parts is not None and math.isfinite(other.values[its]):
                # Any finite value marks the parts of this sample as known; the value itself is not used.
                values[place] = 0.0
                parts[place, : other.parts.shape[1]] = np.maximum(
                    parts[place, : other.parts.shape[1]], other.parts[its]
                )
    return Scores(scores.sample_ids, values, parts=parts)
