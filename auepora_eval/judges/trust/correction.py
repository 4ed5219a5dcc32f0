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
from ...errors import DataError
from ...stats.arrays import Array
from ...stats.calibration import prediction_powered_mean, true_rate, true_rate_interval
from ...stats.intervals import Estimate as MeanEstimate
from ...stats.intervals import mean_error, mean_interval
from .calibration import Estimate, JudgeCalibration, Rate

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
    as all our intervals have them: 20 labels that are all yes do not show that the rest are.
    """
    if len(others) < _FEWEST_OTHERS:
        alone = mean_error(labels, clusters=None if clusters is None else clusters[0])
        value, error, weight = alone.mean, alone.error, 0.0
    else:
        value, _, error, weight = prediction_powered_mean(labels, judged, others, clusters=clusters)
        error *= math.sqrt(len(labels) / (len(labels) - 1))
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
    low, high = result.bounds or (0.0, 1.0)
    ends = (0.0 if low is None else low, 1.0 if high is None else high)
    if int(labelled.sum()) >= FEWEST_LABELS:
        groups = None if scores.clusters is None else np.array([str(each) for each in scores.clusters])
        others = there & ~labelled
        clusters = None if groups is None else (groups[labelled].tolist(), groups[others].tolist())
        return (
            _by_labels(known[labelled], scores.values[labelled], scores.values[others], ends, clusters),
            "",
        )
    if calibration is None:
        count = int(labelled.sum())
        return None, f"{count} judged samples have a label, and a correction needs {FEWEST_LABELS}"
    if not is_share:
        return None, "error rates correct shares of yes and no at the threshold of the labels only"
    if calibration.distrust:
        return None, calibration.distrust
    clusters_of_scored = shared_or_none(scores.clusters_of_scored())
    corrected = by_error_rates(scores.values[there], calibration, clusters_of_scored)
    if corrected.interval[0] == corrected.interval[1]:
        # All of the interval is beyond 0 or 1. Cut to that one value, it would claim to be certain.
        share = float(scores.values[there].mean())
        rates = f"Se {calibration.sensitivity}, Sp {calibration.specificity}"
        return None, f"the labels do not fit this run: with {rates}, {share:.0%} of yes is not possible"
    return corrected, ""


def _by_labels(
    labels: Array,
    judged: Array,
    others: Array,
    ends: tuple[float, float],
    clusters: _Clusters | None,
) -> Corrected:
    if len(others) < _FEWEST_OTHERS:
        groups = None if clusters is None else clusters[0]
        interval = mean_interval(labels, clusters=groups, bounds=ends)
        value = float(labels.mean())
        limits = (value, value) if interval is None else (interval.low, interval.high)
        return Corrected(value, limits, f"the mean of {len(labels)} labels")
    mean = powered_mean(labels, judged, others, ends, clusters=clusters)
    low, high = mean.limits()
    method = f"PPI++, {len(labels)} labels and {len(others)} judged samples, weight {mean.weight:.2f}"
    return Corrected(mean.value, (max(ends[0], low), min(ends[1], high)), method)


def by_error_rates(
    scores: Array, calibration: JudgeCalibration, clusters: Sequence[Hashable] | None = None
) -> Corrected:
    """Return the true share behind a judged share, by the error rates of the judge (Rogan & Gladen)."""
    judged, se, sp = mean_error(scores, clusters=clusters), calibration.sensitivity, calibration.specificity
    value = true_rate(judged.mean, se.value, sp.value)
    # The interval is for counts of yes: as many independent verdicts as would vary like these samples.
    spread = judged.mean * (1 - judged.mean)
    is_known = math.isfinite(judged.error) and judged.error > 0 and spread > 0
    size = max(2, round(spread / judged.error**2)) if is_known else len(scores)
    counts = (round(judged.mean * size), size), (se.count, se.of), (sp.count, sp.of)
    interval = true_rate_interval(*counts)
    # Small counts move the middle of the interval, but never beyond the value itself.
    limits = (min(interval.low, value), max(interval.high, value))
    return Corrected(value, limits, f"Rogan-Gladen, Se {se}, Sp {sp}")


class DifferentErrors(NamedTuple):
    """Fisher's exact test of whether a judge errs alike on two systems."""

    sensitivity_p: float
    specificity_p: float
    text: str

    @property
    def is_significant(self) -> bool:
        """Whether either rate differs, at 5% for both together."""
        return min(self.sensitivity_p, self.specificity_p) < 0.05 / 2


def different_errors(a: JudgeCalibration, b: JudgeCalibration) -> DifferentErrors | None:
    """Return the test for different error rates; None unless both were measured on their own run."""
    from scipy.stats import fisher_exact

    if not (a.of_run and b.of_run):
        return None
    p_values, words = [], []
    for name, one, other in (
        ("sensitivity", a.sensitivity, b.sensitivity),
        ("specificity", a.specificity, b.specificity),
    ):
        table = [[one.count, one.of - one.count], [other.count, other.of - other.count]]
        p_values.append(float(fisher_exact(np.array(table)).pvalue))
        words.append(f"{name} {one} and {other} (p {p_values[-1]:.3f})")
    return DifferentErrors(p_values[0], p_values[1], ", ".join(words))


# What people would say of all claims, from a few labelled claims and a judge that scored all of them.


class TrueRate(Estimate, frozen=True):
    """The share of yes, corrected by the judge's error rates; without a value, `reason` says why."""

    reported: float = math.nan
    sensitivity: float | None = None
    specificity: float | None = None
    reason: str | None = None


class CorrectedMean(msgspec.Struct, frozen=True):
    """The mean of people's labels: by labels alone, by the judge alone, and by both (PPI++)."""

    labels: int
    unlabelled: int
    people_alone: Estimate
    judge_alone: float
    corrected: Estimate
    weight: float
    worth_labels: float | None  # labels that alone would give an interval of the same width


def corrected_mean(
    people: Array,
    scores: Array,
    rest: Array,
    *,
    clusters: _Clusters | None = None,
    yes_from: float | None = None,
) -> CorrectedMean:
    """Return the mean of people's labels over all claims; `rest` has the scores of those without a label.

    For labels of yes and no, a score of at least `yes_from` is the judge's yes. The correction uses the
    scores themselves, which have more information than yes and no.
    """
    if len(people) < 2 or len(rest) < _FEWEST_OTHERS:
        what = f"{len(people)} labelled and {len(rest)} other claims have a score."
        raise DataError("--unlabelled", what, fix="A correction needs at least two of each, better hundreds.")
    try:
        both = prediction_powered_mean(people, scores, rest, clusters=clusters)
    except ValueError as error:
        raise DataError("--unlabelled", f"{error}.", fix="Add claims of more than one cluster.") from error
    alone = prediction_powered_mean(people, scores, rest, weight=0.0, clusters=clusters)
    groups = None if clusters is None else clusters[0]
    interval = mean_interval(people, clusters=groups, bounds=(0.0, 1.0))
    # The judge alone is judged by all claims that it scored, labelled or not.
    everything = np.concatenate([scores, rest])
    return CorrectedMean(
        labels=len(people),
        unlabelled=len(rest),
        people_alone=Estimate.of(float(people.mean()), interval),
        judge_alone=float((everything if yes_from is None else everything >= yes_from).mean()),
        corrected=Estimate.of(both.value, both.interval),
        weight=both.weight,
        worth_labels=None if both.error == 0 else len(people) * (alone.error / both.error) ** 2,
    )


def rate_by_errors(se: Rate, sp: Rate, reported: Rate, *, independent: bool = True) -> TrueRate:
    """Return the true share of yes, from the judge's share and its error rates (Rogan & Gladen).

    It has no value if the judge is not better than chance. Claims in clusters have no interval.
    """
    value, interval, reason = math.nan, None, None
    if not se.of or not sp.of:
        reason = "the labels are all yes or all no"
    else:
        try:
            value = true_rate(reported.value, se.value, sp.value)
            shares = [(each.count, each.of) for each in (reported, se, sp)]
            interval = true_rate_interval(*shares) if independent else None
        except ValueError as error:
            value, reason = math.nan, str(error)
    estimate = Estimate.of(value, interval)
    return TrueRate(
        estimate.value,
        estimate.confidence_interval,
        estimate.interval_method,
        reported.value,
        se.value if se.of else None,
        sp.value if sp.of else None,
        reason,
    )
