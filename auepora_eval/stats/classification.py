"""How good a classifier is, from its confusion table: rows are the true classes, columns the predicted ones.

Every function takes a stack of tables (..., classes, classes) and reduces the last two axes: one table gives
one number, a thousand resamples give a thousand. What has no denominator is NaN: not measured is not 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .arrays import Array
from .intervals import Interval, aggregate_units, value_interval

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class ClassCounts(NamedTuple):
    """For each class on its own: rightly predicted, wrongly predicted, missed."""

    true_positives: Array
    false_positives: Array
    false_negatives: Array


def confusion_table(true: ArrayLike, predicted: ArrayLike, classes: int) -> Array:
    """Count the pairs of class numbers.

    >>> confusion_table([0, 0, 1], [0, 1, 1], 2).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    cells = np.asarray(true, dtype=np.intp) * classes + np.asarray(predicted, dtype=np.intp)
    counts = np.bincount(cells, minlength=classes * classes)
    return counts.reshape(classes, classes).astype(np.float64)


def class_counts(tables: Array) -> ClassCounts:
    """What each class got right and wrong: (..., classes)."""
    right = np.diagonal(tables, axis1=-2, axis2=-1)
    return ClassCounts(right, tables.sum(axis=-2) - right, tables.sum(axis=-1) - right)


def accuracy(tables: Array) -> Array:
    """Share of the samples whose class was predicted."""
    return _ratio(class_counts(tables).true_positives.sum(axis=-1), tables.sum(axis=(-2, -1)))


def precision(counts: ClassCounts) -> Array:
    """Of what was predicted as a class, the share that is of it; NaN for a class never predicted."""
    return _ratio(counts.true_positives, counts.true_positives + counts.false_positives)


def recall(counts: ClassCounts) -> Array:
    """Of what is of a class, the share that was predicted as it; NaN for a class without samples."""
    return _ratio(counts.true_positives, counts.true_positives + counts.false_negatives)


def f1(counts: ClassCounts) -> Array:
    """2 TP / (2 TP + FP + FN); NaN only for a class that neither occurs nor is predicted."""
    twice = 2 * counts.true_positives
    return _ratio(twice, twice + counts.false_positives + counts.false_negatives)


def macro_f1(counts: ClassCounts) -> Array:
    """Mean F1 of all classes; one that neither occurs nor is predicted counts 0, as scikit-learn has it."""
    return np.asarray(np.nan_to_num(f1(counts)).mean(axis=-1))


def macro_f1_supported(counts: ClassCounts) -> Array:
    """Mean F1 of the classes that have samples."""
    return _mean_of_supported(f1(counts), counts)


def balanced_accuracy(counts: ClassCounts) -> Array:
    """Mean recall of the classes that have samples."""
    return _mean_of_supported(recall(counts), counts)


def cohen_kappa(tables: Array) -> Array:
    """Agreement beyond what the two marginals give by chance; NaN where chance alone agrees always."""
    total = tables.sum(axis=(-2, -1))
    # Everything is multiplied by total², so that counts stay whole: perfect agreement is exactly 1.
    expected = (tables.sum(axis=-1) * tables.sum(axis=-2)).sum(axis=-1)
    observed = class_counts(tables).true_positives.sum(axis=-1) * total
    return _ratio(observed - expected, total**2 - expected)


def matthews(tables: Array) -> Array:
    """Matthews' correlation for several classes (Gorodkin's R_K); 0 where one side is constant."""
    total = tables.sum(axis=(-2, -1))
    rows, columns = tables.sum(axis=-1), tables.sum(axis=-2)
    covariance = class_counts(tables).true_positives.sum(axis=-1) * total - (rows * columns).sum(axis=-1)
    spread = (total**2 - (rows**2).sum(axis=-1)) * (total**2 - (columns**2).sum(axis=-1))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(spread > 0, covariance / np.sqrt(np.maximum(spread, 0)), 0.0)
    return np.asarray(np.where(total > 0, found, np.nan))


def area_under_curve(scores: ArrayLike, positive: ArrayLike) -> float:
    """The chance that a positive sample scores above a negative one, ties counted half; NaN without both."""
    from scipy.stats import rankdata

    values, chosen = np.asarray(scores, dtype=np.float64), np.asarray(positive, dtype=bool)
    above, below = int(chosen.sum()), int((~chosen).sum())
    if not above or not below:
        return math.nan
    # The Mann-Whitney U statistic over the number of pairs; midranks count ties half.
    ranks = float(np.asarray(rankdata(values))[chosen].sum())
    return (ranks - above * (above + 1) / 2) / (above * below)


def area_interval(
    scores: ArrayLike, positive: ArrayLike, *, clusters: Sequence[Hashable] | None = None
) -> Interval | None:
    """Return the interval of the area under the curve; None if there are not samples of both kinds."""
    rows = np.column_stack([np.asarray(scores, dtype=np.float64), np.asarray(positive, dtype=np.float64)])
    if not 0 < rows[:, 1].sum() < len(rows):
        return None

    def area(some: Array) -> Array:
        return np.asarray(area_under_curve(some[:, 0], some[:, 1] > 0))

    return value_interval(aggregate_units(rows, area, clusters=clusters), (0.0, 1.0))


def table_interval(
    cells: Array,
    statistic: Callable[[Array], Array],
    *,
    clusters: Sequence[Hashable] | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> Interval | None:
    """Return the interval of a statistic of a confusion table; None where the data cannot give one.

    `cells` has a row per sample, with a 1 in its cell of the flattened table.
    """
    if not len(cells):
        return None
    size = math.isqrt(cells.shape[-1])

    def of_rows(rows: Array) -> Array:
        return np.asarray(statistic(rows.sum(axis=-2).reshape(*rows.shape[:-2], size, size)))

    interval = value_interval(aggregate_units(cells, of_rows, clusters=clusters, of_sums=True), bounds)
    return interval and interval.of_labels(len(cells))


def _mean_of_supported(values: Array, counts: ClassCounts) -> Array:
    supported = counts.true_positives + counts.false_negatives > 0
    return _ratio(np.where(supported, values, 0.0).sum(axis=-1), supported.sum(axis=-1))


def _ratio(numerator: Array, denominator: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(denominator > 0, numerator / denominator, np.nan))
