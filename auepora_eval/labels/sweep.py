"""Find the threshold that separates accurate answers from hallucinations best, and how much of that is luck.

An answer whose score is above the threshold is called accurate, any other a hallucination; what a detector
calls a contradiction stays one at every threshold. Each figure is shown twice: at the threshold that fits all
the data best (fitted), and at thresholds that were chosen without the samples they are applied to
(cross-validated). Only the second one may be expected of new data.

A sample without a score is a failure. It is left out of the figures, which come with the least and the most
that they could be, had all samples been scored.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.scores import shared_or_none
from ..metrics.labels import LabelMacroF1
from ..stats.arrays import Array, Indices
from ..stats.classification import (
    ClassCounts,
    area_under_curve,
    class_counts,
    confusion_table,
    f1,
    macro_f1,
    precision,
    recall,
)
from ..stats.intervals import Interval
from ..text.label_terms import ACCURATE, CONTRADICTION, HALLUCINATION, LABELS

THRESHOLDS = tuple(step / 100 for step in range(5, 100, 5))
LEAST_RECALL = 0.80  # of hallucinations
# Changes of macro-F1 between neighbouring thresholds.
ROBUST_BELOW, SENSITIVE_FROM = 0.02, 0.05
EVERYTHING = "all"
Figures = dict[str, float | None]
Bounds = dict[str, list[float] | None]  # the least and the most that a figure could be
_SHORT = {HALLUCINATION: "hall", ACCURATE: "accurate", CONTRADICTION: "contr"}
_A, _H, _C = (LABELS.index(label) for label in (ACCURATE, HALLUCINATION, CONTRADICTION))


class ScoredLabels:
    """The true labels and scores of a sweep, one row per sample, and what no threshold changes.

    `contradictions` marks what a detector called one. Any other row without a score is a failure. Without
    clusters every row is independent of the others.
    """

    def __init__(
        self,
        labels: Sequence[str],
        scores: Sequence[float | None],
        *,
        contradictions: Sequence[bool] | None = None,
        scenarios: Sequence[str] | None = None,
        clusters: Sequence[Hashable] | None = None,
    ) -> None:
        rows = len(labels)
        self.true: Indices = np.array([LABELS.index(label) for label in labels], dtype=np.intp)
        self.scores: Array = np.array([math.nan if score is None else score for score in scores], dtype=float)
        self.contradictions: NDArray[np.bool_] = np.array(
            [False] * rows if contradictions is None else contradictions, bool
        )
        self.scenarios = [EVERYTHING] * rows if scenarios is None else scenarios
        self.clusters: Sequence[Hashable] = range(rows) if clusters is None else clusters

    def __len__(self) -> int:
        return len(self.true)

    @property
    def failed(self) -> NDArray[np.bool_]:
        """The rows that the detector gave neither a score nor a label."""
        return np.isnan(self.scores) & ~self.contradictions

    def predicted(self, threshold: float | Array, rows: Any = ...) -> Indices:
        """Return the labels that a threshold, or one per row, makes of the scores of some rows."""
        return np.where(self.contradictions[rows], _C, np.where(self.scores[rows] > threshold, _A, _H))


@dataclass(frozen=True)
class SweepPart:
    """The sweep of one scenario, or of everything; the fields are those of the JSON report.

    Without a single score there is no threshold. Hallucinations without a score count as missed when the
    constraint is checked.
    """

    scenario: str
    samples: int
    chosen_threshold: float | None
    meets_constraint: bool
    robustness: str
    largest_change_next_door: float | None  # of macro-F1, to the thresholds on either side
    auc_accurate_vs_hallucination: float | None
    rows: list[Figures]


@dataclass(frozen=True)
class Sweep:
    """Every threshold, the chosen ones, and their figures on data they were not chosen on.

    The fields are those of the JSON report. The bounds are None if every sample has a score.
    """

    parts: list[SweepPart]
    fitted: Figures
    fitted_bounds_if_failed: Bounds | None
    cross_validated: Figures | None
    cross_validated_bounds_if_failed: Bounds | None
    cross_validated_macro_f1_interval: list[float] | None
    folds: int
    samples_without_score: int
    rule: str = (
        f"largest macro-F1 with hallucination recall of at least {LEAST_RECALL:g}; "
        "of equals the higher recall, then the lower threshold"
    )


def sweep(
    data: ScoredLabels,
    *,
    per_scenario: bool = False,
    folds: int = 5,
    seed: int = 0,
) -> Sweep:
    """Try every threshold on everything, or on each scenario by itself; `folds` of 0 leaves out the check."""
    scenarios = np.array(data.scenarios if per_scenario else [EVERYTHING] * len(data), dtype=object)
    names, groups = np.unique(scenarios.astype(str), return_inverse=True)
    fold_of = _folds(data, max(folds, 1), seed)
    parts, fitted, thresholds = [], np.zeros((len(LABELS), len(LABELS))), np.zeros(len(data))
    for place, name in enumerate(names):
        rows = groups == place
        tables = _tables(data, rows)
        parts.append(_part(str(name), tables, data, rows))
        fitted += tables[_chosen(tables)]
        for fold in range(folds):  # each sample at the threshold that the other folds choose
            chosen = _chosen(_tables(data, rows & (fold_of != fold)))
            thresholds[rows & (fold_of == fold)] = THRESHOLDS[chosen]
    failed = np.bincount(data.true[data.failed], minlength=len(LABELS))
    validated = interval = None
    if folds > 1:
        validated, interval = _validated(data, data.predicted(thresholds))
    return Sweep(
        parts,
        _figures(fitted),
        _bounds(fitted, failed),
        None if validated is None else _figures(validated),
        None if validated is None else _bounds(validated, failed),
        None if interval is None else [interval.low, interval.high],
        folds,
        int(failed.sum()),
    )


def _validated(data: ScoredLabels, predicted: Indices) -> tuple[Array, Interval | None]:
    """Return the confusion table of the samples that have a label, and the interval of its macro-F1."""
    rows = np.flatnonzero(~data.failed)
    cells = np.eye(len(LABELS) ** 2)[data.true[rows] * len(LABELS) + predicted[rows]]
    clusters = shared_or_none([data.clusters[row] for row in rows.tolist()])
    # A metric's rows have the score of the sample in front, which macro-F1 does not use.
    interval = LabelMacroF1().interval(np.pad(cells, ((0, 0), (1, 0))), clusters) if len(rows) else None
    return cells.sum(axis=0).reshape(len(LABELS), len(LABELS)), interval


def _tables(data: ScoredLabels, rows: NDArray[np.bool_]) -> Array:
    """Return the confusion table of some rows at each threshold, without the failures."""
    used = np.flatnonzero(rows & ~data.failed)
    true = data.true[used]
    predictions = (data.predicted(threshold, used) for threshold in THRESHOLDS)
    return np.stack([confusion_table(true, predicted, len(LABELS)) for predicted in predictions])


def _chosen(tables: Array) -> int:
    """Return the place of the threshold that the rule selects."""
    counts = class_counts(tables)
    score, recalls = macro_f1(counts), np.nan_to_num(recall(counts)[..., _H], nan=1.0)
    # If no threshold has enough recall, those with the highest recall are allowed.
    allowed = np.flatnonzero(recalls >= min(LEAST_RECALL - 1e-12, recalls.max()))
    return min(allowed.tolist(), key=lambda place: (-round(float(score[place]), 12), -recalls[place], place))


def _part(name: str, tables: Array, data: ScoredLabels, mask: NDArray[np.bool_]) -> SweepPart:
    best = _chosen(tables)
    counts = class_counts(tables)
    scores = macro_f1(counts)
    missed = int((mask & data.failed & (data.true == _H)).sum())
    hallucinations = tables[best, _H].sum() + missed
    near = [
        abs(float(scores[best] - scores[place])) for place in (best - 1, best + 1) if 0 <= place < len(scores)
    ]
    change = max(near, default=None)
    compared = mask & ~np.isnan(data.scores) & (data.true != _C)
    area = area_under_curve(data.scores[compared], data.true[compared] == _A)
    if change is None or math.isnan(area):  # without both kinds of answers any threshold is as good
        robustness = "unknown"
    elif change < ROBUST_BELOW:
        robustness = "robust"
    else:
        robustness = "sensitive" if change >= SENSITIVE_FROM else "moderate"
    return SweepPart(
        name,
        int(mask.sum()),
        THRESHOLDS[best] if tables.any() else None,
        bool(tables[best, _H, _H] >= LEAST_RECALL * hallucinations - 1e-9),
        robustness,
        change,
        None if math.isnan(area) else area,
        [{"threshold": limit, **_figures(table)} for limit, table in zip(THRESHOLDS, tables, strict=True)],
    )


def _figures(table: Array) -> Figures:
    """Return accuracy, macro-F1 and each label's figures; None for what was not measured."""
    return _named_figures(class_counts(table), float(table.sum()))


def _bounds(table: Array, failed: Indices) -> Bounds | None:
    """Return the least and the most that each figure could be; `failed` counts failures by true label."""
    if not failed.any():
        return None
    total = float(table.sum() + failed.sum())
    right, wrong, missed = class_counts(table)
    # Each label by itself at its worst: what is of it was missed, and all else was taken for it.
    worst = ClassCounts(right, wrong + failed.sum() - failed, missed + failed)
    low = _named_figures(worst, total)
    high = _named_figures(class_counts(table + np.diag(failed)), total)
    return {name: None if most is None else [low[name] or 0.0, most] for name, most in high.items()}


def _named_figures(counts: ClassCounts, total: float) -> Figures:
    is_empty = total == 0
    figures = {
        "accuracy": math.nan if is_empty else float(counts.true_positives.sum()) / total,
        "macro_f1": math.nan if is_empty else float(macro_f1(counts)),
    }
    by_label = {"precision": precision(counts), "recall": recall(counts), "f1": f1(counts)}
    for label, short in _SHORT.items():
        for name, values in by_label.items():
            figures[f"{short}_{name}"] = float(values[LABELS.index(label)])
    return {name: None if math.isnan(value) else value for name, value in figures.items()}


def _folds(data: ScoredLabels, folds: int, seed: int) -> Indices:
    """Return a fold for each row: samples of a cluster share one, and each fold has its share of a label."""
    numbers: dict[Hashable, int] = {}
    units = np.array([numbers.setdefault(cluster, len(numbers)) for cluster in data.clusters], dtype=np.intp)
    label_of = np.zeros(len(numbers), dtype=np.intp)
    label_of[units[::-1]] = data.true[::-1]  # of a cluster, the label of its first member
    # A random order, then by label: dealing out in turn gives each fold its share.
    order = np.random.default_rng(seed).permutation(len(numbers))
    order = order[np.argsort(label_of[order], kind="stable")]
    fold_of = np.empty(len(numbers), dtype=np.intp)
    fold_of[order] = np.arange(len(numbers)) % folds
    return fold_of[units]
