"""A run that stops when its verdict is clear, and stays right although somebody looks after every sample.

Samples are asked in a random order that the seed decides, those of one cluster together. Answers count in
that order, whenever they arrive: the decision is the same for any executor, and after a resume.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b, sha256
from typing import TYPE_CHECKING, Any

from ..core.batch import cluster_names
from ..core.dataset import EvaluationDataset, PartOfDataset
from ..core.fingerprint import canonical_json
from ..core.metrics_base import Metric, SampleMetric
from ..core.scores import as_columns
from ..core.stopping import Goal, Stopping
from ..core.types import EvaluationRun, EvaluationSample, MetricResult, SystemOutputs
from ..errors import PlanError
from .stopping_goals import GoalWatch, Known, known_of, refuse_unfit

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
            raise PlanError("nothing says what is to become clear. Name a limit (--min) or a --baseline.")
        if not 0 < self.alpha < 1:
            raise PlanError(f"alpha is between 0 and 1, not {self.alpha}.")
        if self.baseline is None and any(goal.is_of_baseline for goal in self.goals):
            raise PlanError("better than what? Name the --baseline.")

    def as_dict(self) -> dict[str, Any]:
        """What decides when the run stops: resuming it under another rule would be another run."""
        told: dict[str, Any] = {"goals": [asdict(goal) for goal in self.goals], "alpha": self.alpha}
        if self.baseline is not None:
            told["baseline"] = self.baseline.evaluation_id
            told["baseline_sha256"] = self._baseline_sha256(self.baseline)
        return told

    def _baseline_sha256(self, baseline: EvaluationRun) -> str:
        digest = sha256()
        for name in sorted({goal.metric for goal in self.goals if goal.is_of_baseline}):
            scores = as_columns(_baseline_result(baseline, name).scores)
            digest.update(canonical_json([name, list(scores.sample_ids), scores.values.tolist()]))
        return digest.hexdigest()

    def watch(self, evaluator: AueporaEvaluator, dataset: EvaluationDataset, dataset_sha256: str) -> Watch:
        """Look at the plan and the data before the first call; PlanError where the rule does not fit them."""
        return Watch(self, evaluator.plan.metrics, dataset, dataset_sha256, evaluator.seed)


class Watch:
    """The answers of one run, taken in the order of the samples until every goal is decided."""

    def __init__(
        self,
        rule: StopRule,
        metrics: Sequence[Metric],
        dataset: EvaluationDataset,
        dataset_sha256: str,
        seed: int,
    ) -> None:
        self._rule, self._seed, self._sha256 = rule, seed, dataset_sha256
        self._metrics = _watched_metrics(rule, metrics)
        baseline = _baseline_scores(rule, self._metrics, dataset_sha256)
        self._units = _random_order(list(dataset), seed)
        largest = max((len(unit) for unit in self._units), default=1)
        alpha = rule.alpha / len(rule.goals)
        self._goals = [
            GoalWatch(goal, self._metrics[goal.metric], largest, alpha, baseline.get(goal.metric, {}))
            for goal in rule.goals
        ]
        self._largest = largest
        self._told: dict[str, tuple[EvaluationSample, dict[str, Known]]] = {}
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
            self._told[sample.sample_id] = (sample, known)
            while not self.clear and self._next < len(self._units):
                unit = self._units[self._next]
                if not all(sample.sample_id in self._told for sample in unit):
                    return
                told = [self._told.pop(sample.sample_id) for sample in unit]
                for goal in self._goals:
                    goal.add([(one, scores[goal.goal.metric]) for one, scores in told])
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
        """The samples that the verdict stands on, in the dataset's own order.

        What was answered beyond them while the verdict fell does not count: it depends on the executor.
        """
        if self._next == len(self._units):
            return dataset
        return ChosenSamples(dataset, {s.sample_id for unit in self._units[: self._next] for s in unit})


class ChosenSamples(PartOfDataset):
    """Those samples of a dataset that have one of these ids."""

    def __init__(self, dataset: EvaluationDataset, ids: set[str]) -> None:
        super().__init__(dataset)
        self._ids = ids

    def __iter__(self) -> Iterator[EvaluationSample]:
        return (sample for sample in self._dataset if sample.sample_id in self._ids)

    def __len__(self) -> int:
        return len(self._ids)


def _random_order(samples: list[EvaluationSample], seed: int) -> list[list[EvaluationSample]]:
    """The clusters in an order that depends on their names and the seed, not on the order of the file."""
    names: Sequence[Hashable] = cluster_names(samples) or [sample.sample_id for sample in samples]
    units: dict[Hashable, list[EvaluationSample]] = {}
    for name, sample in zip(names, samples, strict=True):
        units.setdefault(name, []).append(sample)

    def key(name: Hashable) -> bytes:
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
        watched[goal.metric] = refuse_unfit(goal, metric)
    return watched


def _baseline_result(baseline: EvaluationRun, name: str) -> MetricResult:
    for result in baseline.results:
        if result.name == name:
            return result
    names = ", ".join(result.name for result in baseline.results)
    raise PlanError(f"the baseline {baseline.evaluation_id} has no {name}; it has {names}.")


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
    found: dict[str, dict[str, Known]] = {}
    for name in {goal.metric for goal in rule.goals if goal.is_of_baseline}:
        result, metric = _baseline_result(baseline, name), metrics[name]
        ours, theirs = {"metric": name, **metric.signature()}, result.details.get("signature")
        if theirs != ours:
            raise PlanError(
                f"{name} was not computed alike in the baseline: {theirs}, here {ours}. Score it again."
            )
        scores = as_columns(result.scores)
        found[name] = {
            sample_id: Known(value, value) if math.isfinite(value) else _unknown(scores.notes[place].failed)
            for place, (sample_id, value) in enumerate(
                zip(scores.sample_ids, scores.values.tolist(), strict=True)
            )
        }
    return found


def _unknown(failed: bool) -> Known:
    return Known(failed=failed)
