"""Which samples a page shows, and in which order: those that explain most come first."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...core.scores import as_columns
from ...core.types import EvaluationRun, MetricResult, TargetCategory

MOST_SAMPLES = 2_000  # in one page; of more, only some are shown
WORST, CHANGED, AT_RANDOM = 500, 500, 200  # how many of them
_SEED = 0


@dataclass(frozen=True)
class Choice:
    """The ids of the samples of a page in their order, and a sentence on those that are left out.

    `metric` is what they are ordered by, and `changes` how much of its scale each sample gained on it.
    """

    ids: list[str]
    metric: MetricResult | None
    changes: Mapping[str, float] = field(default_factory=dict)
    left_out: str = ""


def choose_samples(runs: Sequence[EvaluationRun]) -> Choice:
    """Return the samples of the page: of two runs the largest losses first, of one the worst first."""
    ids = list(dict.fromkeys(sample.sample_id for run in runs for sample in run.samples))
    metric = most_to_explain(runs)
    if metric is None:
        return Choice(ids, None)
    goodness = goodness_of(metric)
    changes: dict[str, float] = {}
    if len(runs) == 2:
        before = next((goodness_of(result) for result in runs[0].results if result.name == metric.name), {})
        changes = {name: value - before[name] for name, value in goodness.items() if name in before}
    # Samples that the metric does not score come last.
    unknown = 2.0 if changes else 0.0
    ids.sort(key=lambda name: (changes.get(name, unknown), goodness.get(name, 2.0)))
    return Choice(ids, metric, changes) if len(ids) <= MOST_SAMPLES else _some(ids, metric, goodness, changes)


def most_to_explain(runs: Sequence[EvaluationRun]) -> MetricResult | None:
    """Return the metric whose samples differ most: between two runs, or within the last one.

    Differences are shares of the metric's scale, squared and added up, so a metric that is 1 everywhere
    explains nothing, and one that few samples call for explains little. Times always differ and are left out.
    """
    scored = [result for result in runs[-1].results if len(result.scores)]
    candidates = [result for result in scored if result.target is not TargetCategory.LATENCY] or scored
    if len(runs) == 2:
        before = {result.name: result for result in runs[0].results}
        shared = [result for result in candidates if result.name in before]
        if shared:
            return max(shared, key=lambda result: _apart(before[result.name], result))
    return max(candidates, key=_spread, default=None)


def known_values(result: MetricResult) -> dict[str, float]:
    """Return the scores of a metric by sample id, without skipped and failed samples."""
    scores = as_columns(result.scores)
    pairs = zip(scores.sample_ids, scores.values.tolist(), strict=True)
    return {name: value for name, value in pairs if math.isfinite(value)}


def goodness_of(result: MetricResult) -> dict[str, float]:
    """Return the goodness of each sample from 0 to 1; a failed one has 0, a skipped one is left out."""
    scores = as_columns(result.scores)
    values = np.where(np.isfinite(scores.values), scores.values, math.nan)
    known = values[~np.isnan(values)]
    low, high = result.bounds or (None, None)
    low = float(known.min(initial=0.0)) if low is None or not math.isfinite(low) else low
    high = float(known.max(initial=low)) if high is None or not math.isfinite(high) else high
    shares = (values - low) / (high - low or 1.0)
    if not result.higher_is_better:
        shares = 1.0 - shares
    for place, note in scores.notes.items():
        shares[place] = 0.0 if note.failed else math.nan
    pairs = zip(scores.sample_ids, shares.tolist(), strict=True)
    return {name: share for name, share in pairs if not math.isnan(share)}


def _spread(result: MetricResult) -> float:
    values = np.array(list(goodness_of(result).values()))
    return float(((values - values.mean()) ** 2).sum()) if len(values) else 0.0


def _apart(a: MetricResult, b: MetricResult) -> float:
    ours, theirs = goodness_of(a), goodness_of(b)
    return sum((theirs[name] - value) ** 2 for name, value in ours.items() if name in theirs)


def _some(
    ids: list[str], metric: MetricResult, goodness: Mapping[str, float], changes: Mapping[str, float]
) -> Choice:
    scored = [name for name in ids if name in goodness]
    worst = sorted(scored, key=lambda name: goodness[name])[:WORST]
    kept, parts = set(worst), [f"the {len(worst)} worst by {metric.name}"]
    if changes:
        changed = sorted(changes, key=lambda name: -abs(changes[name]))[:CHANGED]
        kept.update(changed)
        parts.append(f"the {len(changed)} with the largest change of it")
    # Chance must not depend on the clock: the same runs give the same page.
    kept.update(random.Random(_SEED).sample(ids, AT_RANDOM))  # noqa: S311
    about = f"Of {len(ids):,} samples this page shows {', '.join(parts)} and {AT_RANDOM} at random."
    about += " Metrics, slices and verdicts are of all samples."
    return Choice([name for name in ids if name in kept], metric, changes, about)
