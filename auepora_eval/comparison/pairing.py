"""One metric in two runs, sample by sample: what is paired, what failed, what only one of them has."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from statistics import stdev

import numpy as np

from ..core.metrics_base import SampleMetric, StoredMetric
from ..core.scores import Rows, Scores, alone, as_columns, cluster_of, equally_wide, shared_or_none
from ..core.types import EvaluationRun, EvaluationSample, MetricResult, SampleScore
from ..errors import PlanError, UnknownNameError
from ..metrics.parse import parse_metric
from ..stats.arrays import Mask

# Far above the rounding of a sum of scores (about 1e-16), far below any difference of scores.
LAST_BITS = 1e-12


class Pairing:
    """The two results of one metric on the samples that both runs have, in one order.

    `rows_a` and `rows_b` hold a failed answer as the worst of the metric; `both` marks the rows that can be
    compared, and `unmatched` counts the scores without a partner. If a metric is not a mean, the worst answer
    may still raise the whole: a run that failed alone then gets the answers of the other run there.
    """

    def __init__(self, samples: Mapping[str, EvaluationSample], a: MetricResult, b: MetricResult) -> None:
        self.a, self.b = a, b
        self._samples = samples
        self.metric = metric_of(a)
        self.scored, self.unmatched = False, 0
        if self.metric is None:
            return
        self.first, self.second, alone_in_one = _joined(as_columns(a.scores), as_columns(b.scores))
        # Decision 5, rule 1: a failed answer weighs as much as the other system's answer to the question.
        filled_a, filled_b = (
            FilledRows(self.metric, scores, samples, beside=other)
            for scores, other in ((self.first, self.second), (self.second, self.first))
        )
        self.both: Mask = filled_a.there & filled_b.there
        self.counted: Mask = filled_a.counts | filled_b.counts
        self.unmatched = alone_in_one + int((self.counted & ~self.both).sum())
        self.scored = bool(self.both.any())
        self.failed = (filled_a.filled, filled_b.filled)
        rows_a, rows_b = equally_wide(filled_a.rows, filled_b.rows)
        self._filled = rows_a, rows_b
        self.rows_a, self.rows_b = self._without_gains()
        self.clusters = clusters_of_rows(self.first, samples)

    @property
    def sample_ids(self) -> Sequence[str]:
        return self.first.sample_ids

    @property
    def known(self) -> SampleMetric:
        """The metric, of a pairing that has one."""
        if self.metric is None:
            raise AssertionError("only asked of metrics that are known")
        return self.metric

    @property
    def is_mean(self) -> bool:
        """Whether the metric's value is the mean of its scores, and not a corpus statistic or a quantile."""
        return self.known.is_mean

    def differences(self) -> Rows:
        """Candidate minus baseline for each sample; NaN where there is no pair.

        Equal scores that were added up in another order differ in their last bit, which does not count.
        """
        gains = np.where(self.both, self.rows_b[:, 0] - self.rows_a[:, 0], math.nan)
        return np.where(np.abs(gains) <= LAST_BITS, 0.0, gains)

    def differs(self) -> bool:
        """Whether any pair differs: in its scores, or in the parts of a metric that is not a mean."""
        if self.is_mean:
            return bool(self.differences()[self.both].any())
        apart = np.abs(self.rows_b[self.both] - self.rows_a[self.both])
        return bool((apart > LAST_BITS).any())

    def is_same(self) -> bool:
        """Whether every sample has a pair and none differs."""
        return not self.unmatched and not self.differs()

    @property
    def gains_by_failing(self) -> bool:
        """Whether the better side has failures that changed the scores of its other answers."""
        if not self.known.scored_by_others:
            return False
        rows_a, rows_b, _ = self.used()
        change = float(self.known.aggregate(rows_b)) - float(self.known.aggregate(rows_a))
        # Used as an index into `failed`: False is the baseline, True the candidate.
        ahead = (change > 0) == self.known.higher_is_better
        return bool(change and (self.failed[ahead] & self.both).any())

    def _without_gains(self) -> tuple[Rows, Rows]:
        """The rows, a failed answer as the worst; or as the other's, if that makes the whole worse still."""
        if self.is_mean or not self.scored:
            return self._filled
        sides = []
        for mine, other in ((0, 1), (1, 0)):
            rows = self._filled[mine]
            # Decision 5, rule 2. If both failed, neither has an answer that the other could get.
            alone_in_failing = self.both & self.failed[mine] & ~self.failed[other]
            if alone_in_failing.any():
                as_other = np.where(alone_in_failing[:, np.newaxis], self._filled[other], rows)
                rows = worse_rows(self.known, rows, as_other, self.both)
            sides.append(rows)
        return sides[0], sides[1]

    def used(self) -> tuple[Rows, Rows, list[Hashable] | None]:
        """The rows of the pairs, with their clusters."""
        clusters = self.clusters
        if clusters is not None:
            chosen = [
                cluster for cluster, is_used in zip(clusters, self.both.tolist(), strict=True) if is_used
            ]
            clusters = shared_or_none(chosen)
        return self.rows_a[self.both], self.rows_b[self.both], clusters

    def at(self, places: Sequence[int]) -> Pairing:
        """The same pairing on some of its samples."""
        part = copy(self)
        part.first, part.second = self.first.at(places), self.second.at(places)
        rows = np.array(places, np.intp)
        part.both, part.counted = self.both[rows], self.counted[rows]
        # A sample that only one run has is in no row, so a part cannot count it.
        part.unmatched = int((part.counted & ~part.both).sum())
        part.scored = bool(part.both.any())
        part.failed = (self.failed[0][rows], self.failed[1][rows])
        part._filled = (self._filled[0][rows], self._filled[1][rows])
        # Which way of counting failures is worse depends on the samples, so it is decided again.
        part.rows_a, part.rows_b = part._without_gains()
        if self.clusters is not None:
            part.clusters = shared_or_none([self.clusters[place] for place in places])
        return part

    def is_binary(self) -> bool:
        """Whether all scores that are compared are 0 or 1."""
        values = (self.rows_a[self.both, 0], self.rows_b[self.both, 0])
        return all(bool(((one == 0.0) | (one == 1.0)).all()) for one in values)

    def difference_bounds(self) -> tuple[float, float] | None:
        """The difference if all that failed or has no partner had scored lowest, and highest.

        None where nothing is missing, and where a metric has no bounds. A metric that is not a mean has
        those of its two values, which cover failures only.
        """
        if not self.is_mean:
            return self._bounds_by_value()
        low, high = self.known.bounds
        a, b = (
            np.where(np.isfinite(side.values), side.values, math.nan) for side in (self.first, self.second)
        )
        # Raw scores, not the rows: there a failure has the worst value already, and the range would be
        # one-sided.
        a, b = a[self.counted], b[self.counted]
        missing = np.isnan(a) | np.isnan(b)
        if not missing.any() or not math.isfinite(high - low):
            return None
        worst = np.where(np.isnan(b), low, b) - np.where(np.isnan(a), high, a)
        best = np.where(np.isnan(b), high, b) - np.where(np.isnan(a), low, a)
        return float(worst.mean()), float(best.mean())

    def _bounds_by_value(self) -> tuple[float, float] | None:
        bounds = [side.if_failed for side in (self.a, self.b)]
        if self.unmatched or not any(bounds) or self._without_end():
            return None
        values = [(side.value, side.value) for side in (self.a, self.b)]
        pairs = [pair or value for pair, value in zip(bounds, values, strict=True)]
        # An unbounded end is None, which becomes NaN.
        ends = np.array(pairs, dtype=np.float64)
        if not np.isfinite(ends).all():
            return None
        (low_a, high_a), (low_b, high_b) = ends.tolist()
        # What failures are counted as can be worse than the bounds: as long as the other one's answers.
        rows_a, rows_b, _ = self.used()
        counted = float(self.known.aggregate(rows_b)) - float(self.known.aggregate(rows_a))
        return min(low_b - high_a, counted), max(high_b - low_a, counted)

    def _without_end(self) -> bool:
        """Whether the bounds are those of an endless answer, beside which all others are nothing."""
        failed = [
            self._samples[name]
            for side in (self.first, self.second)
            for name in (side.sample_ids[place] for place in failed_places(side))
            if name in self._samples
        ]
        ends = (self.known.score_if_failed(sample, high=best) for sample in failed for best in (False, True))
        return any(math.isinf(part) for end in ends for part in end.parts)


class FilledRows:
    """A metric's scores as rows, the failed ones at their worst: `there` marks the rows that can be used.

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
        self.there: Mask = np.isfinite(scores.values)
        usual = _UsualParts(scores, beside)
        failed = {
            place: self._worst(metric, scores, place, samples, usual) for place in failed_places(scores)
        }
        self.counts: Mask = self.there.copy()  # measured, or failed in the attempt
        # What the metric does not apply to is not counted, whether its call failed or not.
        self.counts[[place for place, worst in failed.items() if worst.value is not None]] = True
        width = max((len(score.parts) for score in failed.values()), default=0)
        width = max(width, 0 if scores.parts is None else scores.parts.shape[1])
        self.rows = np.zeros((len(scores), 1 + width))
        self.rows[:, 0] = scores.values
        if scores.parts is not None:
            self.rows[:, 1 : 1 + scores.parts.shape[1]] = scores.parts
        for place, worst in failed.items():
            self.there[place] = worst.value is not None and math.isfinite(worst.value)
            if self.there[place]:
                self.rows[place] = 0.0
                self.rows[place, : 1 + len(worst.parts)] = (worst.value, *worst.parts)
        self.filled: Mask = self.there & ~np.isfinite(scores.values)

    def _worst(
        self,
        metric: SampleMetric,
        scores: Scores,
        place: int,
        samples: Mapping[str, EvaluationSample],
        usual: _UsualParts,
    ) -> SampleScore:
        sample = samples.get(scores.sample_ids[place])
        if sample is None:
            return SampleScore(math.nan)  # what it could have scored is not known
        return metric.counted_if_failed(sample, usual.at(place))


class _UsualParts:
    """The parts of an answer to a sample, by the other system that has one, or else the mean of all."""

    def __init__(self, scores: Scores, beside: Scores | None) -> None:
        self._beside = beside
        total: Rows = np.zeros((1, 0))
        count = 0
        for side in (scores, beside):
            if side is None or side.parts is None:
                continue
            measured = np.isfinite(side.values)
            # Each side is added up by itself: so both sides find the same mean, to the last bit.
            so_far, more = equally_wide(total, side.parts[measured].sum(axis=0, keepdims=True))
            total, count = so_far + more, count + int(measured.sum())
        self._mean: list[float] = (total[0] / count).tolist() if count else []

    def at(self, place: int) -> list[float]:
        beside = self._beside
        if beside is None or beside.parts is None or not math.isfinite(beside.values[place]):
            return self._mean
        parts: list[float] = beside.parts[place].tolist()
        return parts


NEEDS_ITS_CLASS = (
    "its metric is not registered, and its value is not the mean of stored scores. Write it as a "
    "SampleMetric (a score per sample), import its module and compare in Python, or install it as a plug-in"
)


def metric_of(result: MetricResult) -> SampleMetric | None:
    """Return the metric of a result, by its name or by what is stored of it; None if neither is enough."""
    try:
        return parse_metric(result.name)
    except UnknownNameError:
        return StoredMetric.of(result)


def worse_rows(metric: SampleMetric, rows: Rows, instead: Rows, used: Mask) -> Rows:
    """Of two ways to count what failed, the one that makes the whole worse."""
    with np.errstate(divide="ignore", invalid="ignore"):
        # A ratio of sums may be 0/0. Comparisons with NaN are false, so it is checked on its own.
        now, then = (float(metric.aggregate(one[used])) for one in (rows, instead))
    worse = then < now if metric.higher_is_better else then > now
    return instead if worse or math.isnan(now) else rows


def failed_places(scores: Scores) -> list[int]:
    """Where a failure left no score."""
    return [place for place, note in scores.notes.items() if note.failed]


def _joined(a: Scores, b: Scores) -> tuple[Scores, Scores, int]:
    """The scores of the samples that both have, in one order; and how many scores only one of them has."""
    if list(a.sample_ids) == list(b.sample_ids):
        return a, b, 0
    where = dict(zip(b.sample_ids, range(len(b)), strict=True))
    pairs = [(mine, where[name]) for mine, name in enumerate(a.sample_ids) if name in where]
    ours, theirs = [mine for mine, _ in pairs], [its for _, its in pairs]
    alone_in_one = sum(_counted(scores, used) for scores, used in ((a, ours), (b, theirs)))
    return a.at(ours), b.at(theirs), alone_in_one


def _counted(scores: Scores, used: Sequence[int]) -> int:
    """How many scores, measured or failed, are not among those used."""
    rest = set(range(len(scores))) - set(used)
    # A note without a failure is a sample that the metric does not apply to: it lacks no partner.
    return sum(place not in scores.notes or scores.notes[place].failed for place in rest)


def clusters_of_rows(scores: Scores, samples: Mapping[str, EvaluationSample]) -> list[Hashable] | None:
    """Return the clusters of the rows, from the scores or else from the samples."""
    names = scores.clusters
    if names is None:
        named = {name: cluster for name, one in samples.items() if (cluster := cluster_of(one)) is not None}
        if not named:
            return None
        names = [named.get(name, alone(name)) for name in scores.sample_ids]
    return shared_or_none(names)


# Checks before two runs are compared. Differences are named; they are passed over only on request.

_ANYWAY = "auepora compare --allow-mismatch compares them all the same, with this on record."


def check_same_data(runs: Sequence[EvaluationRun]) -> None:
    """Runs can be put side by side only if they are on the same samples."""
    data_mismatches(runs, allowed=False)


def data_mismatches(runs: Sequence[EvaluationRun], *, allowed: bool) -> list[str]:
    """How the runs' datasets differ, and which of them stopped early; PlanError unless that is allowed."""
    # One run alone may have stopped early: `power` uses only how much its scores vary.
    early = [stopped for run in runs if len(runs) > 1 and (stopped := _stopped_early(run))]
    if early and not allowed:
        raise PlanError(f"{early[0]}. Run all samples to compare it. {_ANYWAY}")
    others = {
        f"the runs are on different data: {_data(runs[0])} and {_data(run)}"
        for run in runs[1:]
        if run.dataset_fingerprint != runs[0].dataset_fingerprint
    }
    if others and not allowed:
        raise PlanError(f"{sorted(others)[0]}. Use one dataset. {_ANYWAY}")
    return [*early, *sorted(others)]


def _stopped_early(run: EvaluationRun) -> str:
    """What is wrong with comparing a run that stopped when it was clear; "" for any other run."""
    if run.stopping is None or not run.stopping.stopped_early:
        return ""
    used, total = run.stopping.samples_used, run.stopping.samples_in_dataset
    return (
        f"{run.evaluation_id} stopped after {used} of {total} samples, when its verdict was clear: a test "
        "for a fixed number of samples would find too much in it (its own verdict holds)"
    )


def stopping_notes(*runs: EvaluationRun) -> list[str]:
    """Which runs could have stopped early and did not: their tests are no longer quite those of one look."""
    return [
        f"{run.evaluation_id} was to stop when clear and went on to the last sample: looking at it again is "
        f"a second look, and the chance of a false alarm is that of both ({run.stopping.alpha:g} more)"
        for run in runs
        if run.stopping is not None and not run.stopping.stopped_early
    ]


def signature_mismatch(a: MetricResult, b: MetricResult) -> tuple[str, str]:
    """How two results of a metric were computed differently, and what to do; "" if they were not."""
    ours, theirs = a.signature, b.signature
    if ours == theirs:
        return "", ""
    judges = [_judge_text(signature) for signature in (ours, theirs)]
    if all(judges) and judges[0] != judges[1]:
        return f"it has another judge in each run: {judges[0]} and {judges[1]}", "judge both by the same one"
    names = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
    sides = (", ".join(f"{name} {side.get(name, '-')}" for name in names) for side in (ours, theirs))
    return f"it was not computed alike: {' and '.join(sides)}", "score one again"


def _judge_text(signature: Mapping[str, object]) -> str:
    """Return the identities of a judge, with the models as their servers report them; "" without a judge."""
    parts = [signature.get(name) for name in ("judge", "models")]
    return " as ".join(", ".join(map(str, part)) for part in parts if isinstance(part, list) and part)


def value_notes(names: Iterable[str], *runs: EvaluationRun) -> list[str]:
    """What the values of these metrics do not show: ids that never match, values by construction."""
    wanted = set(names)
    # What is known of a judge is said beside its metrics.
    results = [r for run in runs for r in run.results if r.name in wanted and "judge" not in r.details]
    return list(dict.fromkeys(note.removesuffix(".") for result in results for note in result.notes))


def snapshot_notes(a: EvaluationRun, b: EvaluationRun) -> list[str]:
    """The samples are the same; the builds that they come from need not be."""
    if not (a.snapshot and b.snapshot) or a.snapshot == b.snapshot:
        return []
    versions = [
        f"{run.snapshot.get('version', '?')} (manifest {run.snapshot.get('manifest_sha256', '?')[:12]})"
        for run in (a, b)
    ]
    equal = ", with equal samples" if a.dataset_fingerprint == b.dataset_fingerprint else ""
    return [f"the runs are on different snapshots of the dataset, {versions[0]} and {versions[1]}{equal}"]


def _data(run: EvaluationRun) -> str:
    version = run.snapshot.get("version")
    name = f"{run.dataset_name} {version}" if version else run.dataset_name
    return f"{name} ({run.dataset_fingerprint[:12]})"


def failed_calls(name: str, counts: Sequence[tuple[int, int, str]]) -> str:
    """ "10 of 60 calls of new failed", by (failed, calls, metric) of each metric; nothing if none did."""
    most, calls, metric = max(counts, key=lambda each: each[0], default=(0, 0, ""))
    if not most:
        return ""
    # A call that fails, fails for every metric; a judge fails for its own.
    if all(count for count, _, _ in counts):
        # A metric that does not concern all samples says nothing of the other calls.
        what = "calls" if len({total for _, total, _ in counts}) == 1 else "scores"
        return f"{most} of {calls} {what} of {name} failed"
    return f"{most} of {calls} scores of {name} failed ({metric})"


# Several runs of one system: how much its value varies from run to run, and one run made of them all.


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


def run_to_run(
    baselines: Sequence[EvaluationRun], candidates: Sequence[EvaluationRun]
) -> dict[str, RunToRun]:
    """What the repeats of either system scored, by metric; nothing where there are none.

    Failed answers count as they do in the comparison of one repeat with the other system's.
    """
    # Unequal numbers of repeats are an error of `pooled`, which has the message for it.
    if len(baselines) == len(candidates) == 1 or len(baselines) != len(candidates):
        return {}
    runs = [*baselines, *candidates]
    samples = {sample.sample_id: sample for run in runs for sample in run.samples}
    tables = [results_by_name(run) for run in runs]
    by_metric = {}
    for name in tables[0]:
        if all(name in table for table in tables):
            pairs = zip(tables[: len(baselines)], tables[len(baselines) :], strict=True)
            values = [values_of_pair(samples, a[name], b[name]) for a, b in pairs]
            by_metric[name] = RunToRun(tuple(a for a, _ in values), tuple(b for _, b in values))
    return by_metric


def pooled(
    baselines: Sequence[EvaluationRun], candidates: Sequence[EvaluationRun]
) -> tuple[EvaluationRun, EvaluationRun]:
    """One run of all repeats on either side: the first with the first, the second with the second, ..."""
    if len(baselines) != len(candidates):
        counts = f"{len(baselines)} and {len(candidates)}"
        raise PlanError(f"the systems were run {counts} times. Give equally many repeats of both.")
    for runs in (baselines, candidates):
        ids = [run.evaluation_id for run in runs]
        # A run pooled with itself would pass for two repeats without any variance from run to run.
        twice = next((name for name in ids if ids.count(name) > 1), None)
        if twice is not None:
            raise PlanError(f"{twice} is named twice as a repeat of itself. Name different runs.")
    return _pooled(baselines), _pooled(candidates)


def within_question_variance(runs: Sequence[EvaluationRun], name: str) -> float:
    """How much one system's scores vary from run to run on the same question, on average; NaN if unknown."""
    tables = []
    for run in runs:
        scores = as_columns(results_by_name(run)[name].scores)
        tables.append(dict(zip(scores.sample_ids, scores.values.tolist(), strict=True)))
    shared = [key for key in tables[0] if all(math.isfinite(table.get(key, math.nan)) for table in tables)]
    if len(runs) < 2 or not shared:
        return math.nan
    scored = np.array([[table[key] for table in tables] for key in shared])
    return float(scored.var(axis=1, ddof=1).mean())


def each_repeated(samples: Iterable[EvaluationSample], times: int) -> Iterator[EvaluationSample]:
    """The samples as a pooled run names them, once for each repeat."""
    for sample in samples:
        yield sample
        for number in range(1, times):
            yield from _renamed([sample], number)


def _pooled(runs: Sequence[EvaluationRun]) -> EvaluationRun:
    if len(runs) == 1:
        return runs[0]
    names = [result.name for result in runs[0].results]
    shared = [name for name in names if all(name in results_by_name(run) for run in runs)]
    samples = [sample for number, run in enumerate(runs) for sample in _renamed(run.samples, number)]
    by_id = {sample.sample_id: sample for sample in samples}
    return replace(
        runs[0],
        evaluation_id=", ".join(run.evaluation_id for run in runs),
        results=[_pooled_result([results_by_name(run)[name] for run in runs], by_id) for name in shared],
        samples=samples,
        outputs=[],
    )


def _if_failed(
    metric: SampleMetric, scores: Scores, samples: Mapping[str, EvaluationSample]
) -> tuple[Rows, Rows] | None:
    """What the failed answers could have scored, at the least and at the most; None if that is not known."""
    failed = [scores.sample_ids[place] for place, note in scores.notes.items() if note.failed]
    if not failed or any(name not in samples for name in failed):
        return None
    low, high = (
        Scores.of(metric.score_if_failed(samples[name], high=best) for name in failed).rows()
        for best in (False, True)
    )
    return low, high


def _pooled_result(results: Sequence[MetricResult], samples: Mapping[str, EvaluationSample]) -> MetricResult:
    signatures = [result.signature for result in results]
    if any(signature != signatures[0] for signature in signatures):
        what = f"{results[0].name} was not computed alike in the repeats: {signatures}"
        raise PlanError(f"{what}. Score them again alike.")
    pieces = []
    for number, result in enumerate(results):
        scores = as_columns(result.scores)
        piece = Scores(
            [_name(sample_id, number) for sample_id in scores.sample_ids],
            scores.values,
            parts=scores.parts,
            notes=scores.notes,
        )
        # The repeats of a question are not independent: a question without a cluster becomes one.
        piece.clusters = list(scores.clusters) if scores.clusters is not None else list(scores.sample_ids)
        pieces.append(piece)
    failed = sum(result.coverage.failed for result in results)
    whole = Scores.joined(pieces)
    metric, value, bounds = metric_of(results[0]), math.nan, None
    if metric is not None and whole.coverage().scored:
        # What the first repeat's failures could have been says nothing of all of them.
        whole.if_failed = _if_failed(metric, whole, samples)
        value, bounds = float(metric.aggregate(whole.rows())), metric.bounds_if_failed(whole)
    pooled = results[0].with_failures(failed, bounds)
    return replace(pooled, value=value, scores=whole)


def _renamed(samples: Sequence[EvaluationSample], number: int) -> list[EvaluationSample]:
    return [replace(sample, sample_id=_name(sample.sample_id, number)) for sample in samples]


def single_id(pooled_id: str, number: int) -> str | None:
    """What a sample of the pooled run is called in a repeat, counted from 0; None if it is of another."""
    mark = _name("", number)
    return pooled_id.removesuffix(mark) if pooled_id.endswith(mark) else None


def question_of(pooled_id: str, repeats: int) -> str:
    """The sample that a sample of the pooled run is a repeat of."""
    singles = (single_id(pooled_id, number) for number in range(1, repeats))
    return next((single for single in singles if single is not None), pooled_id)


def _name(sample_id: str, number: int) -> str:
    return sample_id if number == 0 else f"{sample_id} (repeat {number + 1})"


def results_by_name(run: EvaluationRun) -> Mapping[str, MetricResult]:
    return {result.name: result for result in run.results}


def values_of_pair(
    samples: Mapping[str, EvaluationSample], a: MetricResult, b: MetricResult
) -> tuple[float, float]:
    """The values of one repeat of both on the samples that are compared."""
    pairing = Pairing(samples, a, b)
    if pairing.metric is None:  # nothing is compared then, but the values are known
        return a.value, b.value
    if not pairing.scored:
        return math.nan, math.nan
    rows_a, rows_b, _ = pairing.used()
    return float(pairing.known.aggregate(rows_a)), float(pairing.known.aggregate(rows_b))


def _spread(values: Sequence[float]) -> float | None:
    return stdev(values) if len(values) >= 2 and all(map(math.isfinite, values)) else None
