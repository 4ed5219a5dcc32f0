"""Differences of judged metrics, corrected for the errors of the judge.

A difference of judged scores is a difference of what a judge says. It becomes one of what people would say

    by labels of both runs   prediction-powered inference on the differences (PPI++)
    by error rates           divided by Se + Sp - 1 (Rogan & Gladen), if the judge errs alike on both systems

Without labels it stays as it is, and the comparison says that the judge is uncalibrated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..judges.trust.calibration import UNCALIBRATED, why_not_corrected
from ..judges.trust.correction import FEWEST_LABELS, Powered, powered_mean
from ..judges.trust.record import JudgeTrust, trust_of
from ..stats.arrays import Array, Mask
from ..stats.intervals import Estimate, Interval, Units, change_size
from ..stats.power import Spread
from ..stats.significance import PairedTest
from .pairs import Pairs

_Z = 1.959964  # of a 95% interval


@dataclass(frozen=True)
class JudgeCorrection:
    """What the errors of a judge change about a comparison; `note` says so to the reader.

    `values` are the corrected values of both runs. With labels, `powered` is the corrected difference, which
    has a test of its own. Otherwise differences are divided by `informedness`, which has the standard error
    `error`: judged rates that are equal are equal in truth too, so the test of the judged scores holds.
    """

    note: str
    values: tuple[float, float] | None = None
    powered: Powered | None = None
    labels: int = 0
    informedness: float = 1.0
    error: float = 0.0
    not_tested: str = ""

    def test(self) -> PairedTest | None:
        """Return the test of the corrected difference; None if that of the judged scores holds."""
        from scipy.special import stdtr

        if self.powered is None:
            return None
        size = abs(self.powered.value) / max(float(self.powered.estimate.error), 1e-300)
        p_value = 2 * float(stdtr(self.powered.estimate.freedom, -size))
        method = f"prediction-powered, {self.labels} labels of both runs, weight {self.powered.weight:.2f}"
        return PairedTest(min(1.0, p_value), self.powered.value, method)

    def interval(self, judged: Interval | None, difference: float) -> Interval | None:
        """Return the interval of the corrected difference, from that of the judged one."""
        if self.powered is not None:
            return Interval(*self.powered.limits(), "prediction-powered")
        if judged is None or self.informedness == 1.0:
            return judged
        # The delta method on each side: the error of the rates adds to that of the scores.
        unsure = _Z * difference * self.error / self.informedness**2
        corrected = difference / self.informedness
        below, above = (
            math.hypot((end - difference) / self.informedness, unsure) for end in (judged.low, judged.high)
        )
        return Interval(corrected - below, corrected + above, f"{judged.method}, Rogan-Gladen")

    def spread(self, judged: Spread | None) -> Spread | None:
        """Return how much corrected differences vary; None if that depends on the number of labels."""
        if judged is None or self.powered is not None:
            return None
        return Spread(judged.sd / self.informedness, judged.size / self.informedness)

    def estimate(self, judged: Estimate, sign: int) -> Estimate:
        """Return the corrected estimate of a gain, from that of the judged scores."""
        if self.powered is not None:
            whole = self.powered.estimate
            return whole._replace(middle=sign * whole.middle)
        middle = judged.middle / self.informedness
        error = np.hypot(judged.error / self.informedness, judged.middle * self.error / self.informedness**2)
        return judged._replace(middle=middle, error=error)


def judge_correction(pairing: Pairs, change: Units, differs: Mask, reach: float) -> JudgeCorrection | None:
    """Return how the comparison of a judged metric is corrected; None if no judge scored it.

    `change` has the units of the judged difference, `reach` the most that a sample can change.
    """
    a, b = trust_of(pairing.a), trust_of(pairing.b)
    if a is None or b is None:
        return None
    distrust = next((trust.distrust for trust in (a, b) if trust.degraded), "")
    if distrust:
        return JudgeCorrection(distrust, not_tested=distrust)
    size = float(change_size(change, differs, reach))
    by_labels = _by_labels(pairing, a.labels, b.labels, size)
    return _by_error_rates(pairing, a, b) if by_labels is None else by_labels


def _by_labels(
    pairing: Pairs, labels_a: Mapping[str, float], labels_b: Mapping[str, float], size: float
) -> JudgeCorrection | None:
    """Return the correction by the samples that have a label in both runs; None if they are too few."""
    rows_a, rows_b, clusters = pairing.used()
    ids = [name for name, there in zip(pairing.sample_ids, pairing.both.tolist(), strict=True) if there]
    known_a, known_b = (
        np.array([labels.get(name, math.nan) for name in ids], dtype=np.float64)
        for labels in (labels_a, labels_b)
    )
    labelled: Mask = np.isfinite(known_a) & np.isfinite(known_b)
    count = int(labelled.sum())
    if count < FEWEST_LABELS or not pairing.is_mean:
        return None
    scores_a, scores_b = rows_a[:, 0], rows_b[:, 0]
    judged, people = scores_b - scores_a, known_b - known_a
    groups = None
    if clusters is not None:
        names = np.array([str(each) for each in clusters])
        groups = (names[labelled].tolist(), names[~labelled].tolist())
    powered = powered_mean(
        people[labelled], judged[labelled], judged[~labelled], (-size, size), clusters=groups
    )
    values = (
        _side(known_a, scores_a, labelled, powered.weight),
        _side(known_b, scores_b, labelled, powered.weight),
    )
    note = (
        f"corrected for the judge's errors by {count} labels of both runs (PPI++, weight "
        f"{powered.weight:.2f}); the judged scores differ by {float(judged.mean()):+.4f}"
    )
    return JudgeCorrection(note, values, powered, count)


def _side(labels: Array, scores: Array, labelled: Mask, weight: float) -> float:
    """Return the value of one run with the weight of the difference, so that values and change agree."""
    others = float(scores[~labelled].mean()) if (~labelled).any() else 0.0
    return weight * others + float((labels[labelled] - weight * scores[labelled]).mean())


def _by_error_rates(pairing: Pairs, a: JudgeTrust, b: JudgeTrust) -> JudgeCorrection:
    ours, theirs = a.calibration, b.calibration
    judged = "the change is one of judged scores"
    if ours is None or theirs is None:
        return JudgeCorrection(f"{f'{UNCALIBRATED} {a.judge}'.rstrip()}: {judged}")
    # The same labels give the same calibration, and must not count twice.
    is_same = ours.sensitivity == theirs.sensitivity and ours.specificity == theirs.specificity
    se = ours.sensitivity if is_same else ours.sensitivity + theirs.sensitivity
    sp = ours.specificity if is_same else ours.specificity + theirs.specificity
    informedness = se.value + sp.value - 1
    if not (a.is_share and b.is_share) or not pairing.is_mean or math.isnan(informedness):
        return JudgeCorrection(f"{judged} (the judge: {ours})")
    if distrust := why_not_corrected(se, sp):
        return JudgeCorrection(distrust, not_tested=distrust)
    rows_a, rows_b, _ = pairing.used()
    # Not kept in [0, 1], unlike the value of one run: the difference of both must stay exact.
    value_a, value_b = (
        (float(rows[:, 0].mean()) + sp.value - 1) / (se.value + sp.value - 1) for rows in (rows_a, rows_b)
    )
    note = (
        f"corrected for the judge's error rates, sensitivity {se} and specificity {sp}, if they are the "
        f"same on both systems; the judged scores differ by {float((rows_b - rows_a)[:, 0].mean()):+.4f}"
    )
    error = math.sqrt(se.variance + sp.variance)
    return JudgeCorrection(note, (value_a, value_b), None, 0, informedness, error)
