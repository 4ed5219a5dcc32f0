"""Which threshold separates accurate answers from hallucinations best, and how much of that is luck.

An answer whose score is above the threshold is called accurate, any other a hallucination; what a detector
calls a contradiction stays one at every threshold. Each figure is shown twice: at the threshold that fits all
the data best (fitted), and at thresholds that were chosen without the samples they are applied to
(cross-validated). Only the second one may be expected of new data.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..core.label_terms import ACCURATE, CONTRADICTION, HALLUCINATION, LABELS
from ..errors import DataError
from ..stats.classification import (
    accuracy,
    area_under_curve,
    class_counts,
    f1,
    macro_f1,
    precision,
    recall,
    table_interval,
)
from ..stats.intervals import Interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Codes = NDArray[np.intp]

THRESHOLDS = tuple(step / 100 for step in range(5, 100, 5))
LEAST_RECALL = 0.80  # of hallucinations
ROBUST_BELOW, SENSITIVE_FROM = 0.02, 0.05
EVERYTHING = "all"
_SHORT = {HALLUCINATION: "hall", ACCURATE: "accurate", CONTRADICTION: "contr"}
COLUMNS = (
    "threshold",
    "accuracy",
    "macro_f1",
    *(f"{short}_{figure}" for short in _SHORT.values() for figure in ("precision", "recall", "f1")),
)
_A, _H, _C = (LABELS.index(label) for label in (ACCURATE, HALLUCINATION, CONTRADICTION))


@dataclass(frozen=True)
class ScoredLabels:
    """What a sweep needs, a row a sample: the true label, the score, and what no threshold changes.

    `contradictions` marks what a detector called one, `hallucinations` what it called one whatever the score.
    A row without a score (NaN) is called a hallucination at every threshold: nothing speaks for it.
    """

    true: Codes
    scores: Array
    contradictions: NDArray[np.bool_]
    hallucinations: NDArray[np.bool_]
    scenarios: Sequence[str]
    clusters: Sequence[Hashable]

    @classmethod
    def of(
        cls,
        labels: Sequence[str],
        scores: Sequence[float | None],
        *,
        contradictions: Sequence[bool] | None = None,
        hallucinations: Sequence[bool] | None = None,
        scenarios: Sequence[str] | None = None,
        clusters: Sequence[Hashable] | None = None,
    ) -> ScoredLabels:
        """The same from lists; without clusters every row is independent of the others."""
        import numpy as np

        numbers = {label: place for place, label in enumerate(LABELS)}
        rows = len(labels)
        known = np.array([math.nan if score is None else score for score in scores], dtype=np.float64)
        beyond = np.flatnonzero((known < 0) | (known > 1))
        if len(beyond):
            where, what = f"scores[{beyond[0]}]", f"{known[beyond[0]]:g} is not a score from 0 to 1."
            raise DataError(where, what, fix="Scale the scores, or leave it out (None).")
        return cls(
            np.array([numbers[label] for label in labels], dtype=np.intp),
            known,
            np.zeros(rows, dtype=bool) if contradictions is None else np.asarray(contradictions, dtype=bool),
            np.zeros(rows, dtype=bool) if hallucinations is None else np.asarray(hallucinations, dtype=bool),
            [EVERYTHING] * rows if scenarios is None else scenarios,
            range(rows) if clusters is None else clusters,
        )

    def __len__(self) -> int:
        return len(self.true)


@dataclass(frozen=True)
class SweepPart:
    """The sweep of one scenario, or of everything."""

    name: str
    samples: int
    rows: list[dict[str, float | None]]
    chosen: float | None
    meets_constraint: bool
    robustness: str
    largest_change: float | None
    area: float | None

    def as_record(self) -> dict[str, Any]:
        return {
            "scenario": self.name,
            "samples": self.samples,
            "chosen_threshold": self.chosen,
            "meets_constraint": self.meets_constraint,
            "robustness": self.robustness,
            "largest_change_next_door": self.largest_change,
            "auc_accurate_vs_hallucination": self.area,
            "rows": self.rows,
        }


@dataclass(frozen=True)
class Sweep:
    """A sweep: every threshold, the chosen ones, and what they are worth on data they were not chosen on."""

    parts: list[SweepPart]
    fitted: dict[str, float | None]
    cross_validated: dict[str, float | None] | None
    interval: Interval | None
    folds: int
    without_score: int

    def as_record(self) -> dict[str, Any]:
        interval = None if self.interval is None else [self.interval.low, self.interval.high]
        return {
            "parts": [part.as_record() for part in self.parts],
            "fitted": self.fitted,
            "cross_validated": self.cross_validated,
            "cross_validated_macro_f1_interval": interval,
            "folds": self.folds,
            "samples_without_score": self.without_score,
            "rule": f"largest macro-F1 with hallucination recall of at least {LEAST_RECALL:g}; "
            "of equals the higher recall, then the lower threshold",
        }


def sweep(
    data: ScoredLabels,
    *,
    thresholds: Sequence[float] = THRESHOLDS,
    per_scenario: bool = False,
    folds: int = 5,
    inclusive: bool = False,
    seed: int = 0,
) -> Sweep:
    """Try every threshold on everything, or on each scenario by itself; `folds` of 0 leaves out the check.

    Thresholds are tried from the lowest to the highest, in whatever order they are given.
    """
    import numpy as np

    thresholds = _ascending(thresholds)
    if not len(data):
        raise DataError("sweep", "there is nothing to sweep: no sample has both a label and a score.")
    names, groups = (
        np.unique(np.array(data.scenarios, dtype=object).astype(str), return_inverse=True)
        if per_scenario
        else (np.array([EVERYTHING]), np.zeros(len(data), dtype=np.intp))
    )
    fold_of = _folds(data, max(folds, 1), seed)
    tables = _tables(data, np.asarray(thresholds), groups, len(names), fold_of, max(folds, 1), inclusive)
    whole = tables.sum(axis=1)  # (groups, thresholds, 3, 3)
    parts = [
        _part(str(names[place]), whole[place], thresholds, data, groups == place)
        for place in range(len(names))
    ]
    chosen = [_chosen(group) for group in whole]
    fitted = sum(whole[place, best] for place, best in enumerate(chosen))
    cells = interval = None
    if folds > 1:
        passed = _passed(data, np.asarray(thresholds), inclusive)
        cells = _cross_validated(data, passed, _chosen_without(tables)[groups, fold_of])
        alone = len(set(data.clusters)) == len(data)
        interval = table_interval(
            cells,
            lambda stack: macro_f1(class_counts(stack)),
            clusters=None if alone else data.clusters,
            seed=seed,
        )
    return Sweep(
        parts,
        _figures(fitted),
        None if cells is None else _figures(cells.sum(axis=0).reshape(len(LABELS), len(LABELS))),
        interval,
        folds,
        int(np.isnan(data.scores).sum()),
    )


def _ascending(thresholds: Sequence[float]) -> list[float]:
    wrong = [one for one in thresholds if not 0 <= one <= 1]
    if wrong or not len(thresholds):
        what = f"the threshold {wrong[0]!r} is not from 0 to 1." if wrong else "there is no threshold to try."
        raise DataError("sweep", what, fix="Give some from 0 to 1.")
    return sorted({float(one) for one in thresholds})


def rows_of(tables: Array, thresholds: Sequence[float]) -> Iterator[dict[str, float | None]]:
    """A row a threshold, with the columns of the CSV."""
    for threshold, table in zip(thresholds, tables, strict=True):
        yield {"threshold": threshold, **_figures(table)}


def csv_text(result: Sweep) -> str:
    """The sweep as CSV; per scenario with the scenario in front. What was not measured is empty."""
    import csv
    import io

    out = io.StringIO()
    several = [part.name for part in result.parts] != [EVERYTHING]
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*(["scenario"] if several else []), *COLUMNS])
    for part in result.parts:
        for row in part.rows:
            cells = [_cell(row[column]) for column in COLUMNS]
            writer.writerow([*([part.name] if several else []), *cells])
    return out.getvalue()


def _cell(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}".rstrip("0").rstrip(".") or "0"


def _tables(
    data: ScoredLabels,
    thresholds: Array,
    groups: Codes,
    group_count: int,
    fold_of: Codes,
    folds: int,
    inclusive: bool,
) -> Array:
    """Confusion tables (groups, folds, thresholds, 3, 3), from one pass over the rows."""
    import numpy as np

    steps = len(thresholds)
    passed = _passed(data, thresholds, inclusive)
    cell = (groups * folds + fold_of) * len(LABELS) + data.true
    called = data.contradictions
    shape = (group_count, folds, len(LABELS))
    size = math.prod(shape)
    conflicts = np.bincount(cell[called], minlength=size).reshape(shape)
    free = np.bincount(cell[~called] * (steps + 1) + passed[~called], minlength=size * (steps + 1))
    free = free.reshape(*shape, steps + 1)
    # Above threshold number t are the rows that pass more than t of them.
    accurate = free[..., ::-1].cumsum(axis=-1)[..., ::-1][..., 1:]
    tables = np.zeros((group_count, folds, steps, len(LABELS), len(LABELS)))
    tables[..., _A] = np.moveaxis(accurate, -1, 2)
    tables[..., _H] = np.moveaxis(free.sum(axis=-1, keepdims=True) - accurate, -1, 2)
    tables[..., _C] = conflicts[:, :, np.newaxis, :]
    return tables


def _passed(data: ScoredLabels, thresholds: Array, inclusive: bool) -> Codes:
    """How many thresholds, from the lowest on, a score passes: 0 for a row that nothing speaks for."""
    import numpy as np

    passed = np.searchsorted(thresholds, data.scores, side="right" if inclusive else "left")
    return np.where(np.isnan(data.scores) | data.hallucinations, 0, passed)


def _chosen(tables: Array) -> int:
    """The place of the threshold that the rule selects."""
    import numpy as np

    counts = class_counts(tables)
    score, found = macro_f1(counts), np.nan_to_num(recall(counts)[..., _H], nan=1.0)
    allowed = found >= LEAST_RECALL - 1e-12
    if not allowed.any():
        # No threshold finds enough: the one that finds most is the nearest to what was asked for.
        allowed = found >= found.max()
    places = np.flatnonzero(allowed)
    order = sorted(places.tolist(), key=lambda place: (-round(float(score[place]), 12), -found[place], place))
    return int(order[0])


def _chosen_without(tables: Array) -> Codes:
    """The place of the threshold that the other folds select, for each group and fold."""
    import numpy as np

    return np.array([[_chosen(group.sum(axis=0) - fold) for fold in group] for group in tables])


def _cross_validated(data: ScoredLabels, passed: Codes, chosen: Codes) -> Array:
    """A row a sample with a 1 in its cell of the table, each at the threshold that was chosen without it."""
    import numpy as np

    called = np.where(data.contradictions, _C, np.where(passed > chosen, _A, _H))
    return np.eye(len(LABELS) ** 2)[data.true * len(LABELS) + called]


def _part(
    name: str, tables: Array, thresholds: Sequence[float], data: ScoredLabels, mask: NDArray[np.bool_]
) -> SweepPart:
    import numpy as np

    best = _chosen(tables)
    counts = class_counts(tables)
    scores, found = macro_f1(counts), recall(counts)[best, _H]
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
        list(rows_of(tables, thresholds)),
        thresholds[best],
        bool(math.isnan(found) or found >= LEAST_RECALL - 1e-12),
        robustness,
        change,
        None if math.isnan(area) else area,
    )


def _figures(table: Array) -> dict[str, float | None]:
    """Accuracy, macro-F1 and each label's figures."""
    counts = class_counts(table)
    figures = {"accuracy": float(accuracy(table)), "macro_f1": float(macro_f1(counts))}
    by_label = {"precision": precision(counts), "recall": recall(counts), "f1": f1(counts)}
    for label, short in _SHORT.items():
        for name, values in by_label.items():
            figures[f"{short}_{name}"] = float(values[LABELS.index(label)])
    return {name: None if math.isnan(value) else value for name, value in figures.items()}


def _folds(data: ScoredLabels, folds: int, seed: int) -> Codes:
    """A fold for each row: samples of a cluster share one, and the labels are dealt out evenly."""
    import numpy as np

    numbers: dict[Hashable, int] = {}
    units = np.array([numbers.setdefault(cluster, len(numbers)) for cluster in data.clusters], dtype=np.intp)
    label_of = np.zeros(len(numbers), dtype=np.intp)
    label_of[units[::-1]] = data.true[::-1]  # of a cluster, the label of its first member
    order = np.random.default_rng(seed).permutation(len(numbers))
    order = order[np.argsort(label_of[order], kind="stable")]
    fold_of = np.empty(len(numbers), dtype=np.intp)
    fold_of[order] = np.arange(len(numbers)) % folds
    return fold_of[units]
