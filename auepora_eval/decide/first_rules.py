"""The rules of a new gate: the metrics that matter most, as far as there are enough samples to decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.metrics_base import Metric, SampleMetric
from ..core.scores import Batch
from ..core.types import EvaluationSample, SystemOutputs, TargetCategory
from ..stats.power import fewest_units
from .rules import GateRules

# One metric of each of these targets is in the gate: the more there are, the more evidence each one needs.
_GUARDED = (
    TargetCategory.RETRIEVAL_RELEVANCE,
    TargetCategory.GENERATION_CORRECTNESS,
    TargetCategory.NEGATIVE_REJECTION,
)
_PREFERRED = "contains_answer"  # to exact_match, which few systems ever reach


def guarded_metrics(metrics: Sequence[Metric]) -> list[Metric]:
    """Return the metrics that the gate should compare with the baseline."""
    chosen = []
    for target in _GUARDED:
        own = [metric for metric in metrics if metric.target is target]
        preferred = [metric for metric in own if metric.name == _PREFERRED]
        chosen += (preferred or own)[:1]
    others = [metric for metric in metrics if metric.target is not TargetCategory.LATENCY]
    return chosen or others[:1]


def units_of(
    metrics: Sequence[Metric], samples: Sequence[EvaluationSample], answer: SystemOutputs | None
) -> dict[str, int]:
    """Return how many samples, or clusters of them, each metric scores.

    Which ones a metric skips hardly depends on the answer, so that one stands for all.
    """
    counts = dict.fromkeys((metric.name for metric in metrics), len(samples))
    if answer is None:
        return counts
    batch = Batch(samples, [answer] * len(samples))
    for metric in metrics:
        if isinstance(metric, SampleMetric):
            scores = metric.score_batch(batch)
            clusters = scores.clusters_of_scored()
            counts[metric.name] = scores.coverage().scored if clusters is None else len(set(clusters))
    return counts


def decidable(units: Mapping[str, int]) -> tuple[list[str], dict[str, str]]:
    """Return the metrics with enough samples for a rule, and why the others have none.

    The more rules are tested together, the more samples each one needs.
    """
    kept, too_few = dict(units), {}
    while kept:
        needed = fewest_units(GateRules().alpha / len(kept))
        # Of equal ones the last: the first is the one to keep.
        name = min(reversed(kept), key=lambda each: kept[each])
        if kept[name] >= needed:
            break
        too_few[name] = f"it has {kept.pop(name)} samples, and a loss can be significant from {needed} on"
    return list(kept), too_few
