"""How much of the variance of scores is the judge's own: the same questions, asked several times."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...errors import DataError
from ...stats.arrays import Array


@dataclass(frozen=True)
class VarianceParts:
    """The variance of one score, split by where it comes from; the parts add up to `total`.

    `sample`: questions differ. `system`: systems differ, on average or on some questions; 0 for one system.
    `judge`: the same answer gets another score when the judge is asked again.
    """

    sample: float
    system: float
    judge: float
    samples: int
    repeats: int

    @property
    def total(self) -> float:
        return self.sample + self.system + self.judge

    def __str__(self) -> str:
        if math.isnan(self.total):
            samples = "1 sample" if self.samples == 1 else f"{self.samples} samples"
            are = "is" if self.samples == 1 else "are"
            return f"{samples} with all {self.repeats} scores {are} too few to split the variance"
        if not self.total:
            return "all scores are equal"
        names = {"samples": self.sample, "systems": self.system, "judge": self.judge}
        words = ", ".join(f"{name} {part / self.total:.0%}" for name, part in names.items())
        return f"variance by {words} ({self.samples} samples, {self.repeats} repeats)"


def variance_parts(scores: Array) -> VarianceParts:
    """Split the variance of scores by (systems, samples, repeats), or (samples, repeats) of one system.

    The parts are those of an analysis of variance with random effects, none below 0. A sample that lacks a
    score is left out. With fewer than two samples or repeats every part is NaN.
    """
    cells = np.asarray(scores, dtype=np.float64)
    cells = cells[np.newaxis] if cells.ndim == 2 else cells
    if cells.ndim != 3:
        raise DataError("the repeated scores", "are not a table of systems, samples and repeats.")
    cells = cells[:, np.isfinite(cells).all(axis=(0, 2))]
    systems, samples, repeats = cells.shape
    if samples < 2 or repeats < 2:
        return VarianceParts(math.nan, math.nan, math.nan, samples, repeats)
    judge = float(cells.var(axis=2, ddof=1).mean())
    means = cells.mean(axis=2)  # (systems, samples)
    if systems == 1:
        sample = float(means[0].var(ddof=1)) - judge / repeats
        return VarianceParts(max(0.0, sample), 0.0, judge, samples, repeats)
    by_sample, by_system = means.mean(axis=0), means.mean(axis=1)
    rest = means - by_sample - by_system[:, np.newaxis] + means.mean()
    # Mean squares of the table of means; what is expected of them is solved for the parts.
    square_rest = float((rest**2).sum()) / ((systems - 1) * (samples - 1))
    square_sample = systems * float(by_sample.var(ddof=1))
    square_system = samples * float(by_system.var(ddof=1))
    mixed = max(0.0, square_rest - judge / repeats)
    sample = max(0.0, (square_sample - square_rest) / systems)
    system = max(0.0, (square_system - square_rest) / samples)
    return VarianceParts(sample, system + mixed, judge, samples, repeats)


def self_consistency(labels: Sequence[Sequence[str]]) -> float:
    """Return the share of questions on which all repeats chose the same option; NaN without any.

    >>> self_consistency([["yes", "yes"], ["yes", "no"]])
    0.5
    """
    if not labels:
        return math.nan
    return sum(len(set(each)) == 1 for each in labels) / len(labels)
