"""How good a judge is, measured on labels of people.

A calibration belongs to one judge identity. It is stored beside the values that the judge produced, and
printed with them: a value without one comes from an `uncalibrated judge`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence

import msgspec
import numpy as np

from ...errors import DataError
from ...stats.agreement import agreement
from ...stats.calibration import Platt, calibration, fit_platt
from ...stats.classification import (
    area_interval,
    area_under_curve,
    cohen_kappa,
    confusion_table,
    table_interval,
)
from ...stats.intervals import Interval

UNCALIBRATED = "uncalibrated judge"
LEAST_INFORMED = 0.2  # sensitivity + specificity - 1: below, a correction multiplies noise by more than 5
# Enough to compute the figures, not to trust them: their intervals are then very wide.
FEWEST_LABELS = 2


class Measured(msgspec.Struct, frozen=True):
    """A figure with its 95% interval; None where the labels do not give it."""

    value: float | None = None
    interval: tuple[float, float] | None = None

    def __str__(self) -> str:
        if self.value is None:
            return "n/a"
        limits = "" if self.interval is None else f" [{self.interval[0]:.2f}, {self.interval[1]:.2f}]"
        return f"{self.value:.2f}{limits}"


class Rate(msgspec.Struct, frozen=True):
    """A share as counts: how many of how many."""

    count: int
    of: int

    @property
    def value(self) -> float:
        """The share; NaN of nothing."""
        return self.count / self.of if self.of else math.nan

    @property
    def variance(self) -> float:
        """The variance of the share, with one success and one failure added: 20 of 20 is not certain."""
        share = (self.count + 1) / (self.of + 2)
        return share * (1 - share) / (self.of + 2)

    def __add__(self, other: Rate) -> Rate:
        return Rate(self.count + other.count, self.of + other.of)

    def __str__(self) -> str:
        return f"{self.count} of {self.of}"


class JudgeCalibration(msgspec.Struct, frozen=True, kw_only=True):
    """A judge compared with people on labelled claims.

    A score of at least `threshold` is the judge's yes. `slope` and `intercept` turn its scores into chances.
    `people` is Krippendorff's alpha of the raters, where claims have several. `of_run` says that the claims
    are those of the run that the calibration is stored with.
    """

    identity: str
    date: str
    labels: int
    threshold: float
    auroc: Measured
    kappa: Measured
    calibration_error: float
    sensitivity: Rate
    specificity: Rate
    slope: float
    intercept: float
    people: Measured | None = None
    of_run: bool = False

    def chance(self, score: float) -> float:
        """Return the chance that people say yes to a claim with this score."""
        return float(Platt(self.slope, self.intercept).chances([score])[0])

    @property
    def informedness(self) -> float:
        """Sensitivity + specificity - 1: 1 for a perfect judge, 0 for a coin; NaN without both labels."""
        return self.sensitivity.value + self.specificity.value - 1

    @property
    def distrust(self) -> str:
        """Why values of this judge cannot be corrected by its error rates; "" if they can."""
        return why_not_corrected(self.sensitivity, self.specificity)

    def __str__(self) -> str:
        people = "" if self.people is None else f", people among themselves {self.people}"
        return f"AUROC {self.auroc}, kappa {self.kappa}{people} ({self.labels} labels, {self.date})"


def calibrate(
    identity: str,
    scores: Sequence[float | None],
    labels: Sequence[float],
    *,
    date: str,
    threshold: float = 0.5,
    people_threshold: float = 0.5,
    ratings: Sequence[Mapping[str, float]] = (),
    clusters: Sequence[Hashable] | None = None,
    of_run: bool = False,
) -> JudgeCalibration:
    """Return the calibration of a judge by its scores and people's labels of the same claims.

    Labels are from 0 to 1: yes and no, or the mean of several people. A claim without a score is left out.
    `ratings` has each person's label of each claim, by name, for the agreement of people with each other.
    """
    kept = [place for place, score in enumerate(scores) if score is not None]
    if len(kept) < FEWEST_LABELS:
        raise DataError(
            "the labels",
            f"the judge scored {len(kept)} of {len(scores)} labelled claims.",
            fix=f"A calibration needs at least {FEWEST_LABELS}, better 100.",
        )
    x = np.array([scores[place] for place in kept], dtype=np.float64)
    y = np.array([labels[place] for place in kept], dtype=np.float64)
    groups = None if clusters is None else [clusters[place] for place in kept]
    yes, judged_yes = y >= people_threshold, x >= threshold
    table = confusion_table(yes, judged_yes, 2)
    # One row per claim, with a 1 in its cell of the 2 x 2 table: an interval needs the spread between claims.
    cells = np.eye(4)[yes.astype(int) * 2 + judged_yes.astype(int)]
    fit = fit_platt(x, y)
    (right_no, _), (_, right_yes) = table.astype(int).tolist()
    return JudgeCalibration(
        identity=identity,
        date=date,
        labels=len(kept),
        threshold=threshold,
        auroc=_measured(area_under_curve(x, yes), area_interval(x, yes, clusters=groups)),
        kappa=_measured(
            float(cohen_kappa(table)),
            table_interval(cells, cohen_kappa, clusters=groups, bounds=(-1.0, 1.0)),
        ),
        calibration_error=calibration(x, y, clusters=groups).error,
        sensitivity=Rate(right_yes, int(yes.sum())),
        specificity=Rate(right_no, int((~yes).sum())),
        slope=fit.slope,
        intercept=fit.intercept,
        people=_among_people([ratings[place] for place in kept]) if ratings else None,
        of_run=of_run,
    )


def why_not_corrected(sensitivity: Rate, specificity: Rate) -> str:
    """Return why a judge with these rates cannot be corrected by them; "" if it can."""
    informedness = sensitivity.value + specificity.value - 1
    if math.isnan(informedness):
        return "the labels of its calibration are all yes or all no"
    if informedness >= LEAST_INFORMED:
        return ""
    return (
        f"this judge cannot tell: its sensitivity ({sensitivity}) + specificity ({specificity}) - 1 is "
        f"{informedness:.2f}, and {LEAST_INFORMED:g} is the least that can be corrected"
    )


def calibration_text(calibration: JudgeCalibration | None) -> str:
    """ "AUROC 0.81 [0.72, 0.90], kappa ..., people among themselves ...", or "uncalibrated judge"."""
    return UNCALIBRATED if calibration is None else str(calibration)


def _measured(value: float, interval: Interval | None) -> Measured:
    if not math.isfinite(value):
        return Measured()
    return Measured(value, None if interval is None else (interval.low, interval.high))


def _among_people(ratings: Sequence[Mapping[str, float]]) -> Measured | None:
    if all(len(each) < 2 for each in ratings):
        return None
    names = sorted({name for each in ratings for name in each})
    rows = np.array([[each.get(name, math.nan) for name in names] for each in ratings])
    is_binary = bool(np.isin(rows[~np.isnan(rows)], (0.0, 1.0)).all())
    # Yes and no have no order. Grades have one: a grade that is off by 1 is less wrong than one off by 3.
    level = "krippendorff_alpha_nominal" if is_binary else "krippendorff_alpha_ordinal"
    alpha = agreement(rows, level)  # type: ignore[arg-type]
    return _measured(alpha.value, alpha.interval)
