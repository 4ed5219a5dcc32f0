"""Is one run better than another, and can the data tell?

Runs are compared sample by sample. A failed answer counts as the worst score of its metric: leaving it
out would reward a system for crashing on its hard questions.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

from ..core.batch import shared_or_none
from ..core.metrics_base import SampleMetric
from ..core.scores import Scores, alone, as_columns
from ..core.types import EvaluationRun, EvaluationSample, MetricResult, SampleScore, TargetCategory
from ..errors import PlanError, UnknownNameError
from ..metrics.parse import parse_metric
from ..stats.intervals import Interval, bca_mean_interval, bootstrap_interval
from ..stats.significance import holm, paired_permutation_test, paired_swap_test

if TYPE_CHECKING:
    from ..core.scores import Rows

_POWER = 0.8  # the usual convention of sample-size tables: found in four of five tries


@dataclass(frozen=True)
class MetricComparison:
    """One metric in two runs. `difference` is candidate minus baseline over the paired samples."""

    name: str
    target: TargetCategory
    higher_is_better: bool
    unit: str
    baseline: float
    candidate: float
    difference: float
    interval: tuple[float, float] | None
    p_value: float
    p_adjusted: float
    wins: int
    ties: int
    losses: int
    failed_baseline: int
    failed_candidate: int
    unmatched: int
    samples_needed: int | None
    verdict: str

    @property
    def pairs(self) -> int:
        return self.wins + self.ties + self.losses


@dataclass(frozen=True)
class Comparison:
    """Two runs on the same samples, metric by metric; what could not be compared, with the reason."""

    baseline_id: str
    candidate_id: str
    baseline_system: str
    candidate_system: str
    alpha: float
    metrics: list[MetricComparison]
    not_compared: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def with_verdict(self, verdict: str) -> list[MetricComparison]:
        """The metrics of which this was found: "better", "worse", "cannot tell" or "same"."""
        return [metric for metric in self.metrics if metric.verdict == verdict]


def compare_runs(
    baseline: EvaluationRun, candidate: EvaluationRun, *, alpha: float = 0.05, seed: int = 0
) -> Comparison:
    """Compare two runs of the same dataset on every metric that both have."""
    refuse_other_data([baseline, candidate])
    ours, theirs = ({result.name: result for result in run.results} for run in (baseline, candidate))
    left_out = {name: f"only {baseline.evaluation_id} has it" for name in ours if name not in theirs}
    left_out |= {name: f"only {candidate.evaluation_id} has it" for name in theirs if name not in ours}
    samples = {sample.sample_id: sample for run in (candidate, baseline) for sample in run.samples}
    tested = []
    for name in (name for name in ours if name in theirs):
        pairing = _Pairing(samples, ours[name], theirs[name], seed)
        if pairing.scored:
            tested.append(pairing)
        else:
            left_out[name] = (
                "no sample was scored in both" if pairing.metric else "its metric is not registered"
            )
    adjusted = holm([pairing.p_value for pairing in tested])
    metrics = [pairing.comparison(p, alpha, len(tested)) for pairing, p in zip(tested, adjusted, strict=True)]
    names = (baseline.evaluation_id, candidate.evaluation_id, baseline.system_name, candidate.system_name)
    return Comparison(*names, alpha, metrics, left_out, _other_snapshot(baseline, candidate))


def refuse_other_data(runs: Sequence[EvaluationRun]) -> None:
    """Runs can be put side by side only if they are on the same samples."""
    for run in runs[1:]:
        if run.dataset_fingerprint != runs[0].dataset_fingerprint:
            raise PlanError(
                f"the runs are on different data: {_data(runs[0])} and {_data(run)}. Use one dataset."
            )


def _data(run: EvaluationRun) -> str:
    version = run.snapshot.get("version")
    name = f"{run.dataset_name} {version}" if version else run.dataset_name
    return f"{name} ({run.dataset_fingerprint[:12]})"


def _other_snapshot(a: EvaluationRun, b: EvaluationRun) -> list[str]:
    """The samples are the same; the builds that they come from need not be."""
    if not (a.snapshot and b.snapshot) or a.snapshot == b.snapshot:
        return []
    told = [
        f"{run.snapshot.get('version', '?')} (manifest {run.snapshot.get('manifest_sha256', '?')[:12]})"
        for run in (a, b)
    ]
    return [
        f"the runs are on different snapshots of the dataset, {told[0]} and {told[1]}, with equal samples"
    ]


class _Pairing:
    """The two results of one metric, matched by sample."""

    def __init__(
        self, samples: Mapping[str, EvaluationSample], a: MetricResult, b: MetricResult, seed: int
    ) -> None:
        _refuse_other_signature(a, b)
        self.a, self.b, self.seed = a, b, seed
        self.metric = _metric_of(a)
        self.scored, self.unmatched = False, 0
        if self.metric is None:
            return
        first, second, alone_in_one = _joined(as_columns(a.scores), as_columns(b.scores))
        rows_a, rows_b = (_Filled(self.metric, scores, samples) for scores in (first, second))
        both = rows_a.there & rows_b.there
        self.unmatched = alone_in_one + int(((rows_a.counts | rows_b.counts) & ~both).sum())
        self.scored = bool(both.any())
        if self.scored:
            self._test(rows_a.rows[both], rows_b.rows[both], _clusters(first, samples, both))

    def _test(self, rows_a: Rows, rows_b: Rows, clusters: list[Hashable] | None) -> None:
        if self.metric is None:
            raise AssertionError("only called for metrics that are known")
        rows_a, rows_b = _equally_wide(rows_a, rows_b)
        width = rows_a.shape[-1]
        aggregate = self.metric.aggregate
        self.value_a, self.value_b = float(aggregate(rows_a)), float(aggregate(rows_b))
        if type(self.metric).aggregate is SampleMetric.aggregate:
            a, b = rows_a[:, 0], rows_b[:, 0]
            self.interval: Interval | None = bca_mean_interval(b - a, clusters=clusters, seed=self.seed)
            test = paired_permutation_test(a, b, clusters=clusters, seed=self.seed)
        else:
            self.interval = bootstrap_interval(
                _side_by_side(rows_a, rows_b),
                lambda rows: aggregate(rows[..., width:]) - aggregate(rows[..., :width]),
                clusters=clusters,
                seed=self.seed,
            )
            test = paired_swap_test(rows_a, rows_b, aggregate, clusters=clusters, seed=self.seed)
        self.p_value = test.p_value
        self.gains = (rows_b[:, 0] - rows_a[:, 0]) * (1 if self.metric.higher_is_better else -1)

    def comparison(self, p_adjusted: float, alpha: float, tests: int) -> MetricComparison:
        higher_is_better = bool(self.metric and self.metric.higher_is_better)
        difference = self.value_b - self.value_a
        wins, losses = int((self.gains > 0).sum()), int((self.gains < 0).sum())
        if wins == losses == 0:
            verdict = "same"
        elif p_adjusted < alpha and difference != 0:
            verdict = "better" if (difference > 0) == higher_is_better else "worse"
        else:
            verdict = "cannot tell"
        return MetricComparison(
            name=self.a.name,
            target=self.a.target,
            higher_is_better=higher_is_better,
            unit="" if self.metric is None else self.metric.unit,
            baseline=self.value_a,
            candidate=self.value_b,
            difference=difference,
            interval=None if self.interval is None else (self.interval.low, self.interval.high),
            p_value=self.p_value,
            p_adjusted=p_adjusted,
            wins=wins,
            ties=len(self.gains) - wins - losses,
            losses=losses,
            failed_baseline=self.a.details.get("num_failed", 0),
            failed_candidate=self.b.details.get("num_failed", 0),
            unmatched=self.unmatched,
            samples_needed=self._samples_needed(difference, alpha / tests)
            if verdict == "cannot tell"
            else None,
            verdict=verdict,
        )

    def _samples_needed(self, difference: float, level: float) -> int | None:
        """How many samples would show a difference of this size, at the level that Holm asks of the best."""
        if self.interval is None or difference == 0:
            return None
        normal = NormalDist()
        standard_error = (self.interval.high - self.interval.low) / (2 * normal.inv_cdf(0.975))
        needed = (normal.inv_cdf(1 - level / 2) + normal.inv_cdf(_POWER)) * standard_error / difference
        return math.ceil(len(self.gains) * needed**2)


class _Filled:
    """A metric's scores as rows, the failed ones at their worst: `there` tells which rows can be used."""

    def __init__(self, metric: SampleMetric, scores: Scores, samples: Mapping[str, EvaluationSample]) -> None:
        import numpy as np

        self.there = np.isfinite(scores.values)
        failed = {place: self._worst(metric, scores, place, samples) for place in _failed(scores)}
        self.counts = self.there.copy()  # measured, or failed in the attempt
        self.counts[list(failed)] = True
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

    def _worst(
        self, metric: SampleMetric, scores: Scores, place: int, samples: Mapping[str, EvaluationSample]
    ) -> SampleScore:
        sample = samples.get(scores.sample_ids[place])
        if sample is None:
            return SampleScore(None)  # what it could have scored is not known
        return metric.score_if_failed(sample, high=not metric.higher_is_better)


def _failed(scores: Scores) -> list[int]:
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
    return sum(place not in scores.notes or scores.notes[place].failed for place in rest)


def _clusters(scores: Scores, samples: Mapping[str, EvaluationSample], used: Any) -> list[Hashable] | None:
    """The clusters of the rows used: as the scores tell them, or else as the samples do."""
    names = scores.clusters
    if names is None:
        known = {
            name: sample.metadata["cluster"]
            for name, sample in samples.items()
            if "cluster" in sample.metadata
        }
        if not known:
            return None
        names = [str(known[name]) if name in known else alone(name) for name in scores.sample_ids]
    return shared_or_none([name for name, is_used in zip(names, used.tolist(), strict=True) if is_used])


def _equally_wide(*arrays: Rows) -> list[Rows]:
    import numpy as np

    width = max(array.shape[1] for array in arrays)
    return [np.pad(array, ((0, 0), (0, width - array.shape[1]))) for array in arrays]


def _metric_of(result: MetricResult) -> SampleMetric | None:
    """The metric that made a result; None for a metric of the user's that has no registered name."""
    try:
        return parse_metric(result.name)
    except UnknownNameError:
        return None


def _refuse_other_signature(a: MetricResult, b: MetricResult) -> None:
    ours, theirs = a.details.get("signature"), b.details.get("signature")
    if ours != theirs:
        raise PlanError(
            f"{a.name} was not computed alike in the two runs: {ours} and {theirs}. Score one again."
        )


def _side_by_side(rows_a: Any, rows_b: Any) -> Any:
    import numpy as np

    return np.concatenate([rows_a, rows_b], axis=-1)
