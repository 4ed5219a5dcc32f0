"""The value that people would give, from the scores of a judge and a few labels.

The mean of a judge's scores is off by its errors. Two corrections:

    by labels of the run's own samples   prediction-powered inference with a tuned weight (PPI++)
    by error rates on other labels       Rogan & Gladen: (judged + Sp - 1) / (Se + Sp - 1)

The first assumes that the labelled samples are a random part of the run. The second assumes that the judge
errs on the run as often as on the labelled claims, and works only for shares of yes and no.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from ...core.scores import as_columns, shared_or_none
from ...core.types import MetricResult
from ...stats.arrays import Array
from ...stats.calibration import prediction_powered_mean, true_rate, true_rate_interval
from ...stats.intervals import Estimate as MeanEstimate
from ...stats.intervals import mean_error, mean_interval
from .calibration import JudgeCalibration, Rate, why_not_corrected

FEWEST_LABELS = 20  # labels of a run: with fewer, the errors of a judge are hardly seen
_FEWEST_OTHERS = 2  # judged samples without a label: fewer add nothing to the labels
_Clusters = tuple[Sequence[Hashable], Sequence[Hashable]]  # of those with a label, and of the others


class Corrected(msgspec.Struct, frozen=True):
    """A corrected value with its 95% interval, and how it was computed."""

    value: float
    interval: tuple[float, float]
    method: str


class Powered(NamedTuple):
    """A mean of labels, sharpened by a judge that counts with `weight`, and the estimate of its interval."""

    value: float
    weight: float
    estimate: MeanEstimate

    def limits(self) -> tuple[float, float]:
        """Return the 95% interval."""
        low, high = self.estimate.limits()
        return float(low), float(high)


def powered_mean(
    labels: Array,
    judged: Array,
    others: Array,
    ends: tuple[float, float] = (0.0, 1.0),
    *,
    clusters: _Clusters | None = None,
) -> Powered:
    """Return the mean of labels over all samples, those with a label and those that only the judge scored.

    The interval is that of prediction-powered inference with two imaginary labels, one at each of the `ends`,
    as all our intervals have them: 20 labels that are all yes do not show that the rest are. The weight of
    the judge is tuned.
    """
    if len(others) < _FEWEST_OTHERS:
        alone = mean_error(labels, clusters=None if clusters is None else clusters[0])
        value, weight = alone.mean, 0.0
        error = alone.error if alone.freedom else math.inf
    else:
        plain = prediction_powered_mean(labels, judged, others, clusters=clusters)
        value, weight = plain.value, plain.weight
        error = plain.error * math.sqrt(len(labels) / (len(labels) - 1))
    units = len(labels) if clusters is None else len(set(clusters[0]))
    # Relative to the mean of the labels: where the imaginary ones are, and how far they move the middle.
    low, high = (end - float(labels.mean()) for end in ends)
    shift = (low + high) / (units + 2)
    added = units * shift**2 + (low - shift) ** 2 + (high - shift) ** 2
    error = math.hypot(error, math.sqrt(added / ((units + 1) * (units + 2))))
    estimate = MeanEstimate(np.asarray(value + shift), np.asarray(error), max(1.0, units - 1.0))
    return Powered(value, weight, estimate)


def corrected_value(
    result: MetricResult,
    labels: Mapping[str, float],
    calibration: JudgeCalibration | None = None,
    *,
    is_share: bool = True,
) -> tuple[Corrected | None, str]:
    """Return the corrected value of a judged metric, or None and the reason why there is none.

    `labels` has what people would score each sample, by its id. `is_share` says that the metric is a share
    of yes, which can be corrected by error rates.
    """
    scores = as_columns(result.scores)
    there = np.isfinite(scores.values)
    known: Array = np.array([labels.get(name, math.nan) for name in scores.sample_ids], dtype=np.float64)
    labelled = there & np.isfinite(known)
    count = int(labelled.sum())
    low, high = result.bounds or (0.0, 1.0)
    ends = (0.0 if low is None else low, 1.0 if high is None else high)
    if count >= FEWEST_LABELS:
        groups = None if scores.clusters is None else np.array([str(each) for each in scores.clusters])
        others = there & ~labelled
        clusters = None if groups is None else (groups[labelled].tolist(), groups[others].tolist())
        chosen = known[labelled], scores.values[labelled], scores.values[others]
        if others.sum() < _FEWEST_OTHERS:
            alone = mean_interval(chosen[0], clusters=clusters and clusters[0], bounds=ends)
            # One cluster does not show how much clusters differ.
            limits = ends if alone is None else (alone.low, alone.high)
            return Corrected(float(chosen[0].mean()), limits, f"the mean of {count} labels"), ""
        mean = powered_mean(*chosen, ends, clusters=clusters)
        limits = max(ends[0], mean.limits()[0]), min(ends[1], mean.limits()[1])
        method = f"PPI++, {count} labels and {others.sum()} judged samples, weight {mean.weight:.2f}"
        return Corrected(mean.value, limits, method), ""
    if calibration is None:
        return None, f"{count} judged samples have a label, and a correction needs {FEWEST_LABELS}"
    if not is_share:
        return None, "error rates correct shares of yes and no at the threshold of the labels only"
    groups_of_scored = shared_or_none(scores.clusters_of_scored())
    se, sp = calibration.sensitivity, calibration.specificity
    return by_error_rates(scores.values[there], se, sp, groups_of_scored)


def by_error_rates(
    scores: Array, se: Rate, sp: Rate, clusters: Sequence[Hashable] | None = None
) -> tuple[Corrected | None, str]:
    """Return the true share behind a judged share, by the judge's error rates (Rogan & Gladen).

    None and the reason, where the judge is hardly better than chance, or the rates do not fit the scores.
    """
    if distrust := why_not_corrected(se, sp):
        return None, distrust
    judged = mean_error(scores, clusters=clusters)
    value = true_rate(judged.mean, se.value, sp.value)
    # The interval is for counts of yes: as many independent verdicts as would vary like these samples.
    spread = judged.mean * (1 - judged.mean)
    # Rounding leaves a hair of error where clusters do not differ.
    is_known = math.isfinite(judged.error) and judged.error > 1e-9 and spread > 0
    units = len(scores) if clusters is None else len(set(clusters))
    size = max(2, round(spread / judged.error**2) if is_known else units)
    interval = true_rate_interval((round(judged.mean * size), size), (se.count, se.of), (sp.count, sp.of))
    if interval.low == interval.high:
        # All of the interval is beyond 0 or 1. Cut to that one value, it would claim to be certain.
        share = f"{float(scores.mean()):.0%} of yes is not possible"
        return None, f"the labels do not fit this run: with Se {se}, Sp {sp}, {share}"
    # Small counts move the middle of the interval, but never beyond the value itself.
    limits = (min(interval.low, value), max(interval.high, value))
    return Corrected(value, limits, f"Rogan-Gladen, Se {se}, Sp {sp}"), ""
