"""Is one run better than another, and can the data tell?

Runs are compared sample by sample. A failed answer counts as the worst score of its metric: leaving it
out would reward a system for crashing on its hard questions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

from ..core.batch import cluster_names, shared_or_none
from ..core.metrics_base import SampleMetric
from ..core.scores import Scores
from ..core.types import EvaluationRun, EvaluationSample, MetricResult, SampleScore, TargetCategory
from ..errors import PlanError, UnknownNameError
from ..metrics.parse import parse_metric
from ..stats.intervals import Interval, bca_mean_interval, bootstrap_interval
from ..stats.significance import holm, paired_permutation_test, paired_swap_test

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
    tested = []
    for name in (name for name in ours if name in theirs):
        pairing = _Pairing(baseline.samples, ours[name], theirs[name], seed)
        if pairing.scored:
            tested.append(pairing)
        else:
            left_out[name] = (
                "no sample was scored in both" if pairing.metric else "its metric is not registered"
            )
    adjusted = holm([pairing.p_value for pairing in tested])
    metrics = [pairing.comparison(p, alpha, len(tested)) for pairing, p in zip(tested, adjusted, strict=True)]
    names = (baseline.evaluation_id, candidate.evaluation_id, baseline.system_name, candidate.system_name)
    return Comparison(*names, alpha, metrics, left_out)


def refuse_other_data(runs: Sequence[EvaluationRun]) -> None:
    """Runs can be put side by side only if they are on the same samples."""
    for run in runs[1:]:
        if run.dataset_fingerprint != runs[0].dataset_fingerprint:
            raise PlanError(
                f"the runs are on different data: {_data(runs[0])} and {_data(run)}. Use one dataset."
            )


def _data(run: EvaluationRun) -> str:
    return f"{run.dataset_name} ({run.dataset_fingerprint[:12]})"


class _Pairing:
    """The two results of one metric, matched by sample."""

    def __init__(
        self, samples: Sequence[EvaluationSample], a: MetricResult, b: MetricResult, seed: int
    ) -> None:
        _refuse_other_signature(a, b)
        self.a, self.b, self.seed = a, b, seed
        self.metric = _metric_of(a)
        left, right = {s.sample_id: s for s in a.scores}, {s.sample_id: s for s in b.scores}
        self.samples: list[EvaluationSample] = []
        self.scores_a: list[SampleScore] = []
        self.scores_b: list[SampleScore] = []
        self.unmatched = 0
        for sample in samples:
            pair = left.get(sample.sample_id), right.get(sample.sample_id)
            filled = [self._worst_if_failed(sample, score) for score in pair]
            if filled[0] is not None and filled[1] is not None:
                self.samples.append(sample)
                self.scores_a.append(filled[0])
                self.scores_b.append(filled[1])
            elif any(score is not None and (score.value is not None or score.failed) for score in pair):
                self.unmatched += 1
        self.scored = len(self.samples) > 0 and self.metric is not None
        if self.scored:
            self._test()

    def _worst_if_failed(self, sample: EvaluationSample, score: SampleScore | None) -> SampleScore | None:
        if score is None or self.metric is None or not score.failed:
            return score if score is not None and score.value is not None else None
        worst = self.metric.score_if_failed(sample, high=not self.metric.higher_is_better)
        return worst if worst.value is not None and math.isfinite(worst.value) else None

    def _test(self) -> None:
        if self.metric is None:
            raise AssertionError("only called for metrics that are known")
        rows_a, rows_b = Scores.of(self.scores_a).rows(), Scores.of(self.scores_b).rows()
        clusters = shared_or_none(cluster_names(self.samples))
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
        return math.ceil(len(self.samples) * needed**2)


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
