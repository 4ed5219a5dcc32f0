"""How far a judge agrees with people, by its scores and their labels of the same claims.

A score of at least the threshold means "supported". Accuracy and kappa compare that with people's labels;
AUROC measures whether supported claims score higher, at any threshold. An audit belongs to one judge
identity. It is stored beside the runs that the judge scores, and printed with its values: a value without one
comes from an `uncalibrated judge`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence

import msgspec
import numpy as np

from ...core.display import interval_text, value_text
from ...core.table import Table
from ...core.types import NOT_ESTIMABLE
from ...stats.agreement import Statistic
from ...stats.agreement import agreement as agreement_among
from ...stats.arrays import Array
from ...stats.calibration import Platt, calibration_error, fit_platt
from ...stats.classification import (
    accuracy,
    area_interval,
    area_under_curve,
    cohen_kappa,
    confusion_table,
    table_interval,
)
from ...stats.intervals import TOO_NARROW, Interval, mean_interval
from .labels import Labelled, clusters_of

Clusters = Sequence[Hashable] | None

UNCALIBRATED = "uncalibrated judge"
LEAST_INFORMED = 0.2  # sensitivity + specificity - 1: below, a correction multiplies noise by more than 5


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
    def cautious(self) -> float:
        """The share with one success and one failure added: 20 of 20 is not certain."""
        return (self.count + 1) / (self.of + 2)

    @property
    def variance(self) -> float:
        """The variance of the share, with one success and one failure added."""
        return self.cautious * (1 - self.cautious) / (self.of + 2)

    def __add__(self, other: Rate) -> Rate:
        return Rate(self.count + other.count, self.of + other.of)

    def __str__(self) -> str:
        return f"{self.count} of {self.of}"


class JudgeCalibration(msgspec.Struct, frozen=True, kw_only=True):
    """A judge compared with people on labelled claims, of which it could score `labels`.

    `slope` and `intercept` turn its scores into chances. `people` is Krippendorff's alpha of the raters,
    where claims have several.
    """

    identity: str
    date: str
    labels: int
    threshold: float
    auroc: Estimate
    kappa: Estimate
    sensitivity: Rate
    specificity: Rate
    claims: int = 0
    accuracy: Estimate = Estimate()
    calibration_error: float | None = None
    slope: float = 1.0
    intercept: float = 0.0
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

    def tables(self) -> Iterator[Table]:
        """Yield the tables of the audit: agreement and confusion."""
        estimates = {
            f"accuracy at {self.threshold:g}": self.accuracy,
            "AUROC (0.5 is chance)": self.auroc,
            f"Cohen's kappa at {self.threshold:g}": self.kappa,
        }
        if self.people is not None:
            estimates["people among themselves (alpha)"] = self.people
        rows = [
            (name, value_text(each.value), interval_text(each.confidence_interval))
            for name, each in estimates.items()
        ]
        title = f"{self.identity} compared with {self.claims} labelled claims, "
        title += f"{self.sensitivity.of} of the scored ones supported"
        headings = ("Agreement with people", "Value", "95% interval")
        yield Table(headings, rows, title, list(self._notes()), numeric=(1, 2))
        yes, no = self.sensitivity, self.specificity
        cells = [
            ["labelled supported", str(yes.count), str(yes.of - yes.count)],
            ["labelled not supported", str(no.of - no.count), str(no.count)],
        ]
        yield Table(("", "judged supported", "judged not"), cells, numeric=(1, 2))

    def _notes(self) -> Iterator[str]:
        if any(TOO_NARROW in each.interval_method for each in (self.accuracy, self.auroc, self.kappa)):
            yield "Fewer than 50 claims: if a label is rare, the interval of kappa is too narrow."
        if self.labels < self.claims:
            yield f"{self.claims - self.labels} claims could not be scored; they are left out."
        if self.labels and self.auroc.value is None:
            kind = "supported" if self.sensitivity.of else "not supported"
            yield f"No AUROC: it needs claims of both kinds, but all claims are labelled {kind}."
        if self.calibration_error is not None:
            yield f"Expected calibration error {self.calibration_error:.3f}."


def calibrate(
    identity: str,
    scores: Sequence[float | None],
    labelled: Sequence[Labelled],
    *,
    date: str = "",
    threshold: float = 0.5,
) -> JudgeCalibration:
    """Return how far a judge agrees with people, by its scores of labelled claims.

    Claims without a score are left out. The threshold is that of the metrics which are corrected by it.
    """
    known = [(score, one) for score, one in zip(scores, labelled, strict=True) if score is not None]
    claims = [one for _, one in known]
    clusters, ratings = clusters_of(claims), [one.ratings for one in claims]
    x: Array = np.array([score for score, _ in known], dtype=np.float64)
    y: Array = np.array([one.people for one in claims], dtype=np.float64)
    yes, judged = np.array([one.is_supported for one in claims], dtype=bool), x >= threshold
    table = confusion_table(yes, judged, 2)
    (right_no, _), (_, right_yes) = table.astype(int).tolist()
    of_accuracy = of_kappa = people = error = None
    fit = Platt(1.0, 0.0)
    if known:
        # One row per claim, with a 1 in its cell of the table: intervals need the spread between claims.
        cells = np.eye(4)[yes.astype(int) * 2 + judged.astype(int)]
        same = (yes == judged).astype(np.float64)
        of_accuracy = mean_interval(same, clusters=clusters, bounds=(0.0, 1.0))
        of_kappa = table_interval(cells, cohen_kappa, clusters=clusters, bounds=(-1.0, 1.0))
        error, fit = calibration_error(x, y), fit_platt(x, y)
    if any(len(each) > 1 for each in ratings):
        people = people_alpha(ratings, clusters)
    return JudgeCalibration(
        identity=identity,
        date=date,
        claims=len(labelled),
        labels=len(known),
        threshold=threshold,
        accuracy=Estimate.of(float(accuracy(table)), of_accuracy),
        auroc=Estimate.of(area_under_curve(x, yes), area_interval(x, yes, clusters=clusters)),
        kappa=Estimate.of(float(cohen_kappa(table)), of_kappa),
        sensitivity=Rate(right_yes, int(yes.sum())),
        specificity=Rate(right_no, int((~yes).sum())),
        calibration_error=error,
        slope=fit.slope,
        intercept=fit.intercept,
        people=people,
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


def why_not_corrected(sensitivity: Rate, specificity: Rate) -> str:
    """Return why a judge with these rates cannot be corrected by them; "" if it can."""
    informedness = sensitivity.value + specificity.value - 1
    if math.isnan(informedness):
        return "the labels of its calibration are all yes or all no"
    if informedness >= LEAST_INFORMED:
        # With a success and a failure more of each, a few labels may leave nothing that is known.
        is_known = sensitivity.cautious + specificity.cautious > 1
        return "" if is_known else f"its labels are too few: {sensitivity} yes and {specificity} no are right"
    return (
        f"this judge cannot tell: its sensitivity ({sensitivity}) + specificity ({specificity}) - 1 is "
        f"{informedness:.2f}, and {LEAST_INFORMED:g} is the least that can be corrected"
    )
