"""How far a judge agrees with people, by its scores and their labels of the same claims.

A calibration belongs to one judge identity. It is stored beside the values that the judge produced, and
printed with them: a value without one comes from an `uncalibrated judge`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from ...core.display import interval_text, value_text
from ...core.types import NOT_ESTIMABLE
from ...errors import DataError
from ...stats.agreement import Statistic
from ...stats.agreement import agreement as agreement_among
from ...stats.arrays import Array
from ...stats.calibration import Platt, calibration, fit_platt
from ...stats.classification import (
    accuracy,
    area_interval,
    area_under_curve,
    cohen_kappa,
    confusion_table,
    table_interval,
)
from ...stats.intervals import Interval, mean_interval
from .labels import Labelled, clusters_of

Flags = NDArray[np.bool_]
Clusters = Sequence[Hashable] | None

UNCALIBRATED = "uncalibrated judge"
LEAST_INFORMED = 0.2  # sensitivity + specificity - 1: below, a correction multiplies noise by more than 5
# Enough to compute the figures, not to trust them: their intervals are then very wide.
FEWEST_LABELS = 2


class Estimate(msgspec.Struct, frozen=True):
    """A figure with its 95% interval and the method of that; None where the labels do not give it."""

    value: float | None = None
    confidence_interval: tuple[float, float] | None = None
    interval_method: str = NOT_ESTIMABLE

    @classmethod
    def of(cls, value: float, interval: Interval | None) -> Estimate:
        """Return a figure with its interval, NaN as None."""
        known = value if math.isfinite(value) else None
        return cls(known) if interval is None else cls(known, (interval.low, interval.high), interval.method)

    def cells(self, *, signed: bool = False) -> tuple[str, str]:
        """Return the value and the interval for two columns of a table."""
        return value_text(self.value, signed=signed), interval_text(self.confidence_interval, signed=signed)

    def __str__(self) -> str:
        if self.value is None:
            return "n/a"
        limits = self.confidence_interval
        return f"{self.value:.2f}" + ("" if limits is None else f" [{limits[0]:.2f}, {limits[1]:.2f}]")


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


@dataclass
class Agreement:
    """How far a judge agrees with people's labels, on all claims or on a group of them."""

    claims: int
    scored: int
    supported: int
    accuracy: Estimate
    auroc: Estimate
    kappa: Estimate
    confusion: dict[str, dict[str, int]]

    @property
    def sensitivity(self) -> Rate:
        return Rate(self.confusion["supported"]["judged supported"], self.supported)

    @property
    def specificity(self) -> Rate:
        return Rate(self.confusion["not supported"]["judged not"], self.scored - self.supported)


def agreement_of(
    claims: int, scores: Array, yes: Flags, threshold: float, clusters: Clusters = None
) -> Agreement:
    """Compare scores with people's yes and no; a score of at least the threshold is the judge's yes."""
    judged = scores >= threshold
    table = confusion_table(yes, judged, 2)
    of_accuracy = of_kappa = None
    if len(scores):
        # One row per claim, with a 1 in its cell of the table: intervals need the spread between claims.
        cells = np.eye(4)[yes.astype(int) * 2 + judged.astype(int)]
        same = (yes == judged).astype(np.float64)
        of_accuracy = mean_interval(same, clusters=clusters, bounds=(0.0, 1.0))
        of_kappa = table_interval(cells, cohen_kappa, clusters=clusters, bounds=(-1.0, 1.0))
    of_area = area_interval(scores, yes, clusters=clusters)
    (right_no, wrong_yes), (wrong_no, right_yes) = table.astype(int).tolist()
    return Agreement(
        claims=claims,
        scored=len(scores),
        supported=int(yes.sum()),
        accuracy=Estimate.of(float(accuracy(table)), of_accuracy),
        auroc=Estimate.of(area_under_curve(scores, yes), of_area),
        kappa=Estimate.of(float(cohen_kappa(table)), of_kappa),
        confusion={
            "supported": {"judged supported": right_yes, "judged not": wrong_no},
            "not supported": {"judged supported": wrong_yes, "judged not": right_no},
        },
    )


def people_alpha(ratings: Sequence[Mapping[str, float]], clusters: Clusters = None) -> Estimate:
    """Return Krippendorff's alpha of the people who rated the same claims; ratings are by name."""
    names = sorted({name for each in ratings for name in each})
    rows = np.array([[each.get(name, math.nan) for name in names] for each in ratings])
    is_binary = bool(np.isin(rows[~np.isnan(rows)], (0.0, 1.0)).all())
    # Yes and no have no order. Grades have one: a grade that is off by 1 is less wrong than one off by 3.
    statistic: Statistic = "krippendorff_alpha_nominal" if is_binary else "krippendorff_alpha_ordinal"
    alpha = agreement_among(rows, statistic, clusters=clusters)
    return Estimate.of(alpha.value, alpha.interval)


class JudgeCalibration(msgspec.Struct, frozen=True, kw_only=True):
    """A judge compared with people on labelled claims.

    A score of at least `threshold` is the judge's yes. `slope` and `intercept` turn its scores into chances.
    `people` is Krippendorff's alpha of the raters, where claims have several.
    """

    identity: str
    date: str
    labels: int
    threshold: float
    auroc: Estimate
    kappa: Estimate
    calibration_error: float
    sensitivity: Rate
    specificity: Rate
    slope: float
    intercept: float
    people: Estimate | None = None

    def chance(self, score: float) -> float:
        """Return the chance that people say yes to a claim with this score."""
        return float(Platt(self.slope, self.intercept).chances([score])[0])

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
    labelled: Sequence[Labelled],
    *,
    date: str,
    threshold: float = 0.5,
) -> JudgeCalibration:
    """Return the calibration of a judge by its scores of labelled claims; those without a score are left out.

    It is stored with the values that the judge produces. The threshold is that of the metrics which are
    corrected by it.
    """
    known = [(score, one) for score, one in zip(scores, labelled, strict=True) if score is not None]
    if len(known) < FEWEST_LABELS:
        raise DataError(
            "the labels",
            f"the judge scored {len(known)} of {len(scores)} labelled claims.",
            fix=f"A calibration needs at least {FEWEST_LABELS}, better 100.",
        )
    claims = [one for _, one in known]
    x = np.array([score for score, _ in known], dtype=np.float64)
    y = np.array([one.people for one in claims], dtype=np.float64)
    yes, groups = np.array([one.is_supported for one in claims]), clusters_of(claims)
    agreement = agreement_of(len(scores), x, yes, threshold, groups)
    fit = fit_platt(x, y)
    ratings = [one.ratings for one in claims]
    return JudgeCalibration(
        identity=identity,
        date=date,
        labels=len(known),
        threshold=threshold,
        auroc=agreement.auroc,
        kappa=agreement.kappa,
        calibration_error=calibration(x, y, clusters=groups).error,
        sensitivity=agreement.sensitivity,
        specificity=agreement.specificity,
        slope=fit.slope,
        intercept=fit.intercept,
        people=people_alpha(ratings) if any(len(each) > 1 for each in ratings) else None,
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
