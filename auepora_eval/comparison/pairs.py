"""One metric in two runs, sample by sample: what is paired, what failed, what only one of them has."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from statistics import stdev

import numpy as np

from ..core.metrics_base import SampleMetric, StoredMetric
from ..core.scores import Rows, Scores, alone, as_columns, cluster_of, equally_wide, shared_or_none
from ..core.types import EvaluationRun, EvaluationSample, MetricResult
from ..errors import PlanError, UnknownNameError
from ..metrics.parse import parse_metric
from ..stats.arrays import Mask
from .checks import failed_by_metric, signature_mismatch

# Far above the rounding of a sum of scores (about 1e-16), far below any difference of scores.
LAST_BITS = 1e-12
NO_SCORES = (
    "it has one value for all samples, and no score for each of them to pair. Write it as a function with "
    "@ae.metric, or let compute return scores=[SampleScore(...), ...] in its MetricResult"
)
NONE_IN_BOTH = "no sample was scored in both"
NEEDS_ITS_CLASS = (
    "its metric is not registered, and its value is not the mean of stored scores. Write it as a "
    "SampleMetric (a score per sample), import its module and compare in Python, or install it as a plug-in"
)


class Pairs:
    """The two results of one metric on the samples that both runs have, in one order.

    `rows_a` and `rows_b` hold a failed answer as the worst of the metric. An answer that the metric itself
    could not score (`unmeasured`) has no row. `both` marks the rows that can be compared, and `unmatched`
    counts the scores without a partner. If a metric is not a mean, the worst answer
    may still raise the whole: a run that failed alone then gets the answers of the other run there.
    Repeats of both systems are one object, made of the pairs of each: `repeats`.
    """

    def __init__(self, samples: Mapping[str, EvaluationSample], a: MetricResult, b: MetricResult) -> None:
        self.a, self.b = a, b
        self.repeats: tuple[Pairs, ...] = (self,)
        self.unmeasured = (failed_by_metric(a), failed_by_metric(b))
        self.failures = (a.coverage.failed - self.unmeasured[0], b.coverage.failed - self.unmeasured[1])
        self._samples = samples
        self.metric: SampleMetric | None
        try:
            self.metric = parse_metric(a.name)
        except UnknownNameError:
            self.metric = StoredMetric.of(a)
        self.scored, self.unmatched = False, 0
        if self.metric is None:
            return
        self.first, self.second, alone_in_one = _joined(as_columns(a.scores), as_columns(b.scores))
        self.questions: Sequence[str] = self.first.sample_ids
        # Decision 5, rule 1: a failed answer weighs as much as the other system's answer to the question.
        filled_a = FilledRows(self.metric, self.first, samples, beside=self.second)
        filled_b = FilledRows(self.metric, self.second, samples, beside=self.first)
        self.both: Mask = filled_a.there & filled_b.there
        self.counted: Mask = filled_a.counts | filled_b.counts
        self.unmatched = alone_in_one + int((self.counted & ~self.both).sum())
        self.failed = (filled_a.filled, filled_b.filled)
        self._filled = tuple(equally_wide(filled_a.rows, filled_b.rows))
        self.clusters = _clusters(self.first, samples)
        self._settle()

    def _settle(self) -> None:
        """Set the rows: a failed answer is the worst; or the other's, if that makes the whole worse."""
        # Two failures are two worst scores, and no measurement: somewhere one of the two was scored.
        self.scored = bool((self.both & ~(self.failed[0] & self.failed[1])).any())
        self.rows_a, self.rows_b = a, b = self._filled
        if self.scored and not self.is_mean:
            # Decision 5, rule 2. If both failed, neither has an answer that the other could get.
            failed_a, failed_b = self.failed
            self.rows_a = self._worse(a, b, failed_a & ~failed_b & self.both)
            self.rows_b = self._worse(b, a, failed_b & ~failed_a & self.both)

    @classmethod
    def of_repeats(cls, repeats: Sequence[Pairs]) -> Pairs:
        """Return the pairs of all repeats: the first with the first, the second with the second, ..."""
        if len(repeats) == 1:
            return repeats[0]
        whole = copy(repeats[0])
        whole.repeats = tuple(repeats)
        whole.failures = (sum(one.failures[0] for one in repeats), sum(one.failures[1] for one in repeats))
        whole.unmeasured = (
            sum(one.unmeasured[0] for one in repeats),
            sum(one.unmeasured[1] for one in repeats),
        )
        if any(one.metric is None for one in repeats):
            return whole
        whole.first = Scores.joined([one.first for one in repeats])
        whole.second = Scores.joined([one.second for one in repeats])
        for side in (whole.first, whole.second):
            side.sample_ids = [f"{name}{_mark(n)}" for n, one in enumerate(repeats) for name in one.questions]
        whole.questions = [name for one in repeats for name in one.questions]
        whole.both = np.concatenate([one.both for one in repeats])
        whole.counted = np.concatenate([one.counted for one in repeats])
        whole.unmatched = sum(one.unmatched for one in repeats)
        whole.failed = (
            np.concatenate([one.failed[0] for one in repeats]),
            np.concatenate([one.failed[1] for one in repeats]),
        )
        rows = equally_wide(*(side for one in repeats for side in one._filled))
        whole._filled = (np.concatenate(rows[::2]), np.concatenate(rows[1::2]))
        # The repeats of a question are not independent: a question without a cluster becomes one.
        whole.clusters = shared_or_none([name for one in repeats for name in one.clusters or one.questions])
        whole._settle()
        return whole

    def at(self, places: Sequence[int]) -> Pairs:
        """Return the same on some of the samples."""
        part, rows = copy(self), np.array(places, np.intp)
        part.first, part.second = self.first.at(places), self.second.at(places)
        part.questions = [self.questions[place] for place in places]
        part.both, part.counted = self.both[rows], self.counted[rows]
        # A sample that only one run has is in no row, so a part cannot count it.
        part.unmatched = int((part.counted & ~part.both).sum())
        part.failed = (self.failed[0][rows], self.failed[1][rows])
        part._filled = (self._filled[0][rows], self._filled[1][rows])
        if self.clusters is not None:
            part.clusters = shared_or_none([self.clusters[place] for place in places])
        part._settle()
        return part

    @property
    def name(self) -> str:
        return self.a.name

    @property
    def sample_ids(self) -> Sequence[str]:
        """The ids of the samples; in a later repeat they say so."""
        return self.first.sample_ids

    @property
    def known(self) -> SampleMetric:
        """The metric, of pairs that have one."""
        if self.metric is None:
            raise AssertionError("only asked of metrics that are known")
        return self.metric

    @property
    def is_mean(self) -> bool:
        """Whether the metric's value is the mean of its scores, and not a corpus statistic or a quantile."""
        return self.known.is_mean

    def values(self) -> tuple[float, float]:
        """Return the value of both runs on the pairs."""
        if not self.scored:
            return math.nan, math.nan
        rows_a, rows_b, _ = self.used()
        return float(self.known.aggregate(rows_a)), float(self.known.aggregate(rows_b))

    def used(self) -> tuple[Rows, Rows, list[Hashable] | None]:
        """Return the rows of the pairs, with their clusters."""
        clusters = self.clusters
        if clusters is not None:
            clusters = shared_or_none([clusters[place] for place in np.flatnonzero(self.both).tolist()])
        return self.rows_a[self.both], self.rows_b[self.both], clusters

    def differences(self) -> Rows:
        """Return candidate minus baseline for each sample; NaN where there is no pair.

        Equal scores that were added up in another order differ in their last bit, which does not count.
        """
        gains = np.where(self.both, self.rows_b[:, 0] - self.rows_a[:, 0], math.nan)
        return np.where(np.abs(gains) <= LAST_BITS, 0.0, gains)

    def differs(self) -> bool:
        """Return whether any pair differs: in its scores, or in the parts of a metric that is not a mean."""
        if self.is_mean:
            return bool(self.differences()[self.both].any())
        return bool((np.abs(self.rows_b[self.both] - self.rows_a[self.both]) > LAST_BITS).any())

    def is_same(self) -> bool:
        """Return whether every sample has a pair and none differs."""
        return not self.unmatched and not self.differs()

    def is_binary(self) -> bool:
        """Return whether all scores that are compared are 0 or 1."""
        values = (self.rows_a[self.both, 0], self.rows_b[self.both, 0])
        return all(bool(((one == 0.0) | (one == 1.0)).all()) for one in values)

    @property
    def gains_by_failing(self) -> bool:
        """Whether the better side has failures that changed the scores of its other answers."""
        if not self.known.scored_by_others:
            return False
        a, b = self.values()
        # Used as an index into `failed`: False is the baseline, True the candidate.
        ahead = (b > a) == self.known.higher_is_better
        return bool(b != a and (self.failed[ahead] & self.both).any())

    def _worse(self, rows: Rows, other: Rows, failed_alone: Mask) -> Rows:
        """Return the rows, or those with the other's answers where this run failed: what is worse."""
        if not failed_alone.any():
            return rows
        instead = np.where(failed_alone[:, np.newaxis], other, rows)
        with np.errstate(divide="ignore", invalid="ignore"):
            # A ratio of sums may be 0/0. Comparisons with NaN are false, so it is checked on its own.
            now, then = (float(self.known.aggregate(one[self.both])) for one in (rows, instead))
        worse = then < now if self.known.higher_is_better else then > now
        return instead if worse or math.isnan(now) else rows

    def difference_bounds(self) -> tuple[float, float] | None:
        """Return the difference if all that failed or has no partner had scored lowest, and highest.

        None where nothing is missing, and where a metric has no bounds. A metric that is not a mean has
        those of its two values, which cover failures only; of repeats they are not known.
        """
        if not self.is_mean:
            return None if self.unmatched or len(self.repeats) > 1 else self._bounds_by_value()
        low, high = self.known.bounds
        # Raw scores, not the rows: there a failure has the worst value already, and the range would be
        # one-sided.
        a, b = (
            np.where(np.isfinite(side.values), side.values, math.nan)[self.counted]
            for side in (self.first, self.second)
        )
        if not (np.isnan(a) | np.isnan(b)).any() or not math.isfinite(high - low):
            return None
        worst = np.where(np.isnan(b), low, b) - np.where(np.isnan(a), high, a)
        best = np.where(np.isnan(b), high, b) - np.where(np.isnan(a), low, a)
        return float(worst.mean()), float(best.mean())

    def _bounds_by_value(self) -> tuple[float, float] | None:
        bounds = [side.if_failed for side in (self.a, self.b)]
        if not any(bounds) or self._without_end():
            return None
        values = [(side.value, side.value) for side in (self.a, self.b)]
        # An unbounded end is None, which becomes NaN.
        ends = np.array([pair or value for pair, value in zip(bounds, values, strict=True)], np.float64)
        if not np.isfinite(ends).all():
            return None
        (low_a, high_a), (low_b, high_b) = ends.tolist()
        # What failures are counted as can be worse than the bounds: as long as the other one's answers.
        a, b = self.values()
        return min(low_b - high_a, b - a), max(high_b - low_a, b - a)

    def _without_end(self) -> bool:
        """Return whether the bounds are those of an endless answer, beside which all others are nothing."""
        names = [
            side.sample_ids[place] for side in (self.first, self.second) for place in failed_places(side)
        ]
        failed = [self._samples[name] for name in names if name in self._samples]
        ends = (self.known.score_if_failed(sample, high=best) for sample in failed for best in (False, True))
        return any(math.isinf(part) for end in ends for part in end.parts)


class FilledRows:
    """A metric's scores as rows, failed calls at their worst: `there` marks the rows that can be used.

    `filled` are those that stand for a failed answer. `beside` are the scores of another system on the same
    samples, which give the weight of an answer to each of them.
    """

    def __init__(
        self,
        metric: SampleMetric,
        scores: Scores,
        samples: Mapping[str, EvaluationSample],
        *,
        beside: Scores | None = None,
    ) -> None:
        measured: Mask = np.isfinite(scores.values)
        self.there = measured.copy()
        self.counts = measured.copy()  # measured, or failed
        parts = np.zeros((len(scores), 0)) if scores.parts is None else scores.parts
        self.rows = np.concatenate([scores.values[:, np.newaxis], parts], axis=1)
        failed = failed_places(scores)
        usual = _usual_parts(scores, beside) if failed else []
        for place in failed:
            sample = samples.get(scores.sample_ids[place])
            if sample is None:
                self.counts[place] = True  # what it could have scored is not known
                continue
            weight = usual
            if beside is not None and beside.parts is not None and math.isfinite(beside.values[place]):
                weight = beside.parts[place].tolist()
            worst = metric.counted_if_failed(sample, weight)
            # What the metric does not apply to is not counted, whether its call failed or not.
            self.counts[place] = worst.value is not None
            # What the metric itself could not score shows nothing about the system.
            if scores.notes[place].of_metric:
                continue
            self.there[place] = worst.value is not None and math.isfinite(worst.value)
            if self.there[place]:
                self.rows, row = equally_wide(self.rows, np.array([[worst.value, *worst.parts]], np.float64))
                self.rows[place] = row[0]
        self.filled: Mask = self.there & ~measured


def _usual_parts(*sides: Scores | None) -> list[float]:
    """Return the mean of the parts of all answers."""
    total, count = np.zeros((1, 0)), 0
    for side in sides:
        if side is not None and side.parts is not None:
            measured = np.isfinite(side.values)
            # Each side is added up by itself: so both sides find the same mean, to the last bit.
            so_far, more = equally_wide(total, side.parts[measured].sum(axis=0, keepdims=True))
            total, count = so_far + more, count + int(measured.sum())
    usual: list[float] = (total[0] / count).tolist() if count else []
    return usual


def failed_places(scores: Scores) -> list[int]:
    """Return where a failure left no score."""
    return [place for place, note in scores.notes.items() if note.failed]


def _joined(a: Scores, b: Scores) -> tuple[Scores, Scores, int]:
    """Return the scores of the samples that both have, in one order; and how many only one of them has."""
    if list(a.sample_ids) == list(b.sample_ids):
        return a, b, 0
    where = dict(zip(b.sample_ids, range(len(b)), strict=True))
    pairs = [(mine, where[name]) for mine, name in enumerate(a.sample_ids) if name in where]
    ours, theirs = [mine for mine, _ in pairs], [its for _, its in pairs]
    # A note without a failure is a sample that the metric does not apply to: it lacks no partner.
    alone_in_one = sum(
        place not in scores.notes or scores.notes[place].failed
        for scores, used in ((a, ours), (b, theirs))
        for place in set(range(len(scores))) - set(used)
    )
    return a.at(ours), b.at(theirs), alone_in_one


def _clusters(scores: Scores, samples: Mapping[str, EvaluationSample]) -> list[Hashable] | None:
    """Return the clusters of the rows, from the scores or else from the samples."""
    names = scores.clusters
    if names is None:
        named = {name: cluster for name, one in samples.items() if (cluster := cluster_of(one)) is not None}
        if not named:
            return None
        names = [named.get(name, alone(name)) for name in scores.sample_ids]
    return shared_or_none(names)


def _mark(number: int) -> str:
    return f" (repeat {number + 1})" if number else ""


def single_id(sample_id: str, number: int) -> str | None:
    """Return what a sample is called in a repeat, counted from 0; None if it is of another."""
    mark = _mark(number)
    return sample_id.removesuffix(mark) if sample_id.endswith(mark) else None


@dataclass(frozen=True)
class RunToRun:
    """A metric's value in each repeat of the two systems, and the standard deviation of these values."""

    baseline: tuple[float, ...]
    candidate: tuple[float, ...]

    @property
    def baseline_sd(self) -> float | None:
        return _spread(self.baseline)

    @property
    def candidate_sd(self) -> float | None:
        return _spread(self.candidate)


def _spread(values: Sequence[float]) -> float | None:
    return stdev(values) if len(values) >= 2 and all(map(math.isfinite, values)) else None


# The metrics that two systems have, each by one run or by several.

Runs = EvaluationRun | Sequence[EvaluationRun]


def listed_runs(runs: Runs) -> list[EvaluationRun]:
    """Return the repeats of one side as a list; PlanError if there is none, or one twice."""
    repeats = [runs] if isinstance(runs, EvaluationRun) else list(runs)
    if not repeats:
        raise PlanError("There is no run to compare. Name a baseline and a candidate.")
    ids = [run.evaluation_id for run in repeats]
    # A run together with itself would pass for two repeats without any variance from run to run.
    twice = next((name for name in ids if ids.count(name) > 1), None)
    if twice is not None:
        raise PlanError(f"{twice} is named twice as a repeat of itself. Name different runs.")
    return repeats


def pairs_of(
    baselines: Sequence[EvaluationRun],
    candidates: Sequence[EvaluationRun],
    mismatches: list[str],
    *,
    allow_mismatch: bool,
) -> tuple[list[Pairs], dict[str, str]]:
    """Return the metrics that both have, paired; and why the others are not. What does not fit is noted."""
    if len(baselines) != len(candidates):
        counts = f"{len(baselines)} and {len(candidates)}"
        raise PlanError(f"the systems were run {counts} times. Give equally many repeats of both.")
    ours, theirs = (_shared_results(runs) for runs in (baselines, candidates))
    left_out = {name: f"only {ids_of(baselines)} has it" for name in ours if name not in theirs}
    left_out |= {name: f"only {ids_of(candidates)} has it" for name in theirs if name not in ours}
    # Later entries replace earlier ones: of a sample in both runs, the baseline's is used.
    samples = [
        {sample.sample_id: sample for run in (b, a) for sample in run.samples}
        for a, b in zip(baselines, candidates, strict=True)
    ]
    compared = []
    for name in (name for name in ours if name in theirs):
        other, fix = signature_mismatch(ours[name][0], theirs[name][0])
        if other and not allow_mismatch:
            left_out[name] = f"{other} ({fix})"
            continue
        if other:
            mismatches.append(f"{name}: {other}")
        pairs = Pairs.of_repeats(list(map(Pairs, samples, ours[name], theirs[name])))
        if pairs.scored:
            compared.append(pairs)
        elif pairs.metric is not None:
            left_out[name] = NONE_IN_BOTH
        else:
            left_out[name] = NEEDS_ITS_CLASS if len(pairs.a.scores) and len(pairs.b.scores) else NO_SCORES
    return compared, left_out


def ids_of(runs: Sequence[EvaluationRun]) -> str:
    """Return the id of a run, or those of its repeats."""
    return ", ".join(run.evaluation_id for run in runs)


def _shared_results(runs: Sequence[EvaluationRun]) -> dict[str, list[MetricResult]]:
    """Return the results of the metrics that every repeat has, by name."""
    tables = [{result.name: result for result in run.results} for run in runs]
    shared = {name: [table[name] for table in tables] for name in tables[0] if all(name in t for t in tables)}
    for name, results in shared.items():
        signatures = [result.signature for result in results]
        if any(signature != signatures[0] for signature in signatures):
            what = f"{name} was not computed alike in the repeats: {signatures}"
            raise PlanError(f"{what}. Score them again alike.")
    return shared
