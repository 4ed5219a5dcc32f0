"""A run that stops when its verdict is clear, and stays right although somebody looks after every sample.

Samples are asked in a random order that the seed decides, those of one cluster together. Answers count in
that order, whenever they arrive: the decision is the same for any executor, and after a resume.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Literal, NamedTuple

from ..core.dataset import EvaluationDataset, PartOfDataset, canonical_json
from ..core.metrics_base import Metric, SampleMetric
from ..core.scores import Batch, as_columns, cluster_names
from ..core.types import (
    EvaluationRun,
    EvaluationSample,
    SystemOutputs,
)
from ..core.verdict import Goal, GoalOutcome, Outcome, Stopping
from ..errors import PlanError
from ..stats.intervals import Evidence, sequence_interval

if TYPE_CHECKING:
    from ..core.runner import AueporaEvaluator


@dataclass(frozen=True)
class StopRule:
    """Stop when every goal is decided, with a chance of at most `alpha` that any of the verdicts is wrong.

    Goals "better" and "no worse" are about `baseline`, a stored run on the same dataset.
    """

    goals: tuple[Goal, ...]
    alpha: float = 0.05
    baseline: EvaluationRun | None = None

    def __post_init__(self) -> None:
        if not self.goals:
            raise PlanError("stop_when needs a goal: give min, max or baseline.")
        if not 0 < self.alpha < 1:
            raise PlanError(f"alpha is between 0 and 1, not {self.alpha}.")
        if self.baseline is None and any(goal.is_of_baseline for goal in self.goals):
            raise PlanError("This goal compares with a baseline: give baseline: RUN.")

    def as_dict(self) -> dict[str, object]:
        """What decides when the run stops: resuming it under another rule would be another run."""
        rule: dict[str, object] = {"goals": [asdict(goal) for goal in self.goals], "alpha": self.alpha}
        if self.baseline is not None:
            rule["baseline"] = self.baseline.evaluation_id
        return rule

    def watch(self, evaluator: AueporaEvaluator, dataset: EvaluationDataset, dataset_sha256: str) -> Watch:
        """Look at the plan and the data before the first call; PlanError where the rule does not fit them."""
        return Watch(self, evaluator, dataset, dataset_sha256)


class Watch:
    """The answers of one run, taken in the order of the samples until every goal is decided."""

    def __init__(
        self, rule: StopRule, evaluator: AueporaEvaluator, dataset: EvaluationDataset, dataset_sha256: str
    ) -> None:
        self._rule, self._seed, self._sha256 = rule, evaluator.seed, dataset_sha256
        self._metrics = _watched_metrics(rule, evaluator.plan.metrics)
        baseline = _baseline_scores(rule, self._metrics, dataset_sha256)
        self._units = _random_order(list(dataset), evaluator.seed)
        self._largest = max((len(unit) for unit in self._units), default=1)
        # Bonferroni: the chance of any wrong verdict is at most the sum over the goals.
        alpha = rule.alpha / len(rule.goals)
        self._goals = [
            GoalWatch(goal, self._metrics[goal.metric], self._largest, alpha, baseline.get(goal.metric, {}))
            for goal in rule.goals
        ]
        self._answered: dict[str, tuple[EvaluationSample, dict[str, Known]]] = {}
        self._lock = threading.Lock()
        self._next = 0  # the unit that comes next
        self.clear = False

    def samples(self) -> Iterator[EvaluationSample]:
        """The samples in their random order."""
        for unit in self._units:
            yield from unit

    def tell(self, sample: EvaluationSample, output: SystemOutputs) -> None:
        """An answer has arrived. It counts when those before it are there."""
        known = {name: known_of(metric, sample, output) for name, metric in self._metrics.items()}
        with self._lock:
            self._answered[sample.sample_id] = (sample, known)
            while not self.clear and self._next < len(self._units):
                unit = self._units[self._next]
                if not all(sample.sample_id in self._answered for sample in unit):
                    return
                # Popped, so that memory holds only the answers that wait for an earlier one.
                scored = [self._answered.pop(sample.sample_id) for sample in unit]
                for goal in self._goals:
                    goal.add([(one, scores[goal.goal.metric]) for one, scores in scored])
                self._next += 1
                self.clear = all(goal.side is not None for goal in self._goals)

    def outcome(self) -> Stopping:
        """What became clear, on how many samples."""
        used = sum(map(len, self._units[: self._next]))
        total = sum(map(len, self._units))
        return Stopping(
            stopped_early=used < total,
            samples_used=used,
            samples_in_dataset=total,
            dataset_sha256=self._sha256,
            largest_cluster=self._largest,
            alpha=self._rule.alpha,
            seed=self._seed,
            goals=[goal.outcome() for goal in self._goals],
            baseline_id=None if self._rule.baseline is None else self._rule.baseline.evaluation_id,
        )

    def used(self, dataset: EvaluationDataset) -> EvaluationDataset:
        """Return the samples that the verdict is based on, in the order of the dataset.

        What was answered beyond them while the verdict fell does not count: it depends on the executor.
        """
        if self._next == len(self._units):
            return dataset
        ids = {sample.sample_id for unit in self._units[: self._next] for sample in unit}
        return PartOfDataset(dataset, lambda samples: (one for one in samples if one.sample_id in ids))


def _random_order(samples: list[EvaluationSample], seed: int) -> list[list[EvaluationSample]]:
    """The clusters in an order that depends on their names and the seed, not on the order of the file."""
    names: Sequence[Hashable] = cluster_names(samples) or [sample.sample_id for sample in samples]
    units: dict[Hashable, list[EvaluationSample]] = {}
    for name, sample in zip(names, samples, strict=True):
        units.setdefault(name, []).append(sample)

    def key(name: Hashable) -> bytes:
        # A hash, not a shuffle: an added sample does not change the order of the others.
        text = canonical_json([seed, name])
        return blake2b(text, digest_size=16).digest()

    return [units[name] for name in sorted(units, key=key)]


def _watched_metrics(rule: StopRule, metrics: Sequence[Metric]) -> dict[str, SampleMetric]:
    by_name = {metric.name: metric for metric in metrics}
    watched: dict[str, SampleMetric] = {}
    for goal in rule.goals:
        metric = by_name.get(goal.metric)
        if metric is None:
            raise PlanError(
                f"{goal.metric} is to become clear, but is not measured. Add it to --metrics; "
                f"there are {', '.join(by_name)}."
            )
        watched[goal.metric] = check_fit(goal, metric)
    return watched


def _baseline_scores(
    rule: StopRule, metrics: Mapping[str, SampleMetric], dataset_sha256: str
) -> dict[str, dict[str, Known]]:
    """What the baseline scored on each sample, by metric; what failed there could have been anything."""
    if rule.baseline is None:
        return {}
    baseline = rule.baseline
    if baseline.stopping is not None and baseline.stopping.stopped_early:
        raise PlanError(f"the baseline {baseline.evaluation_id} stopped early itself. Name one that did not.")
    if baseline.dataset_fingerprint != dataset_sha256:
        raise PlanError(
            f"the baseline {baseline.evaluation_id} is on other data: {baseline.dataset_fingerprint[:12]}, "
            f"here {dataset_sha256[:12]}. Run it on this dataset, with the same --limit if there is one."
        )
    scores_by_metric: dict[str, dict[str, Known]] = {}
    for name in {goal.metric for goal in rule.goals if goal.is_of_baseline}:
        if name not in baseline:
            names = ", ".join(result.name for result in baseline)
            raise PlanError(f"the baseline {baseline.evaluation_id} has no {name}; it has {names}.")
        result = baseline.result(name)
        ours, theirs = {"metric": name, **metrics[name].signature()}, result.signature
        if theirs != ours:
            raise PlanError(
                f"{name} was not computed alike in the baseline: {theirs}, here {ours}. Score it again."
            )
        scores = as_columns(result.scores)
        scores_by_metric[name] = {
            score.sample_id: Known(score.value, score.value, score.failed) for score in scores
        }
    return scores_by_metric


# One goal of a run that stops when it is clear: the evidence on either side, unit by unit.

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
        return Known(value, value)
    if not scores.notes[0].failed:
        return Known()
    ends = [metric.score_if_failed(sample, high=best).value for best in (False, True)]
    # A sample that the metric does not apply to has no score, whether the call failed or not.
    return Known(None, None) if None in ends else Known(min(ends), max(ends), True)  # type: ignore[type-var]


class GoalWatch:
    """The evidence for one goal. `side` is the side of the threshold, once it is decided."""

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
        self._low, high = _reach(goal, metric)
        self._width = high - self._low
        # What the value, or the change, is to be on one side of.
        self.threshold = _threshold(goal, metric)
        threshold = (self.threshold - self._low) / self._width
        self._above = Evidence(threshold, largest=largest)
        self._below = Evidence(1 - threshold, largest=largest)
        self._units: list[tuple[float, float, int]] = []
        self._sum, self._scored, self._failed = 0.0, 0, 0
        self.side: Side | None = None

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
            # Two one-sided sequences, one per side of the threshold, share the alpha of the goal.
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
        interval = (min(low, high), max(low, high))
        outcome = Outcome.INCONCLUSIVE
        if self.side is not None:
            higher, is_least = self._metric.higher_is_better, self.goal.kind == "at least"
            wanted = "above" if (higher if self.goal.is_of_baseline else is_least) else "below"
            outcome = Outcome.PASSED if self.side == wanted else Outcome.FAILED
        goal = (self.goal.metric, self.goal.kind, self.goal.limit)
        return GoalOutcome(*goal, outcome, value, interval, self._scored, self._failed)


def check_fit(goal: Goal, metric: Metric) -> SampleMetric:
    """The metric, if it is a mean of scores between known bounds, with the limit in them; else PlanError."""
    why = ""
    if not isinstance(metric, SampleMetric) or not metric.is_mean:
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
    low, high = _reach(goal, metric)
    if not low < _threshold(goal, metric) < high:
        raise PlanError(
            f"{goal.metric}: {goal.limit:g} leaves nothing to find out: it lies from {low:g} to {high:g}."
        )
    return metric


def _reach(goal: Goal, metric: SampleMetric) -> tuple[float, float]:
    """Return the lowest and the highest value of a score, or of a change of it."""
    low, high = metric.bounds
    return (low - high, high - low) if goal.is_of_baseline else (low, high)


def _threshold(goal: Goal, metric: SampleMetric) -> float:
    if goal.kind == "no worse":
        return -goal.limit if metric.higher_is_better else goal.limit
    return goal.limit
