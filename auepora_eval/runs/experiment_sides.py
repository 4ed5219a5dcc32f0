"""What one metric says of each variant by itself: the rows that count, failed answers at their worst.

A failed call has no time, and the worst time has no end. It counts as the slowest call of all variants: so
failing is never faster than answering. On split samples no other variant has the same question: of a metric
that is no mean, what failed weighs as the worst answers of another variant, as large a share of them.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..core.batch import shared_or_none
from ..core.metrics_base import SampleMetric
from ..core.scores import Scores, as_columns, equally_wide
from ..core.types import EvaluationRun, EvaluationSample, SampleScore
from ..errors import PlanError
from ..io.predictions import MISSING_PREDICTION
from .pairing import (
    FilledRows,
    clusters_of_rows,
    failed_places,
    filled_by,
    metric_of,
    worse_rows,
)

if TYPE_CHECKING:
    from ..core.scores import Rows


class Side(NamedTuple):
    """What is known of one variant: the rows that count with their clusters, and what is not its own answer.

    `failed` counts rows that stand for a failed answer, `lost` those without any prediction; of samples in
    clusters `lost` counts the clusters that lost one.
    """

    metric: SampleMetric
    rows: Rows
    clusters: Sequence[Hashable] | None
    failed: int = 0
    lost: int = 0

    @property
    def value(self) -> float:
        """The metric's value with failed answers at their worst; NaN where nothing was measured."""
        return float(self.metric.aggregate(self.rows)) if len(self.rows) else math.nan

    @property
    def measured(self) -> int:
        """How many samples have a score of their own."""
        return len(self.rows) - self.failed

    @property
    def units(self) -> int:
        """How many samples, or clusters of them, there are."""
        return len(self.rows) if self.clusters is None else len(set(self.clusters))

    def interval(self, seed: int = 0) -> tuple[float, float] | None:
        """The 95% interval of the value; None where it has no width, as of scores that are all alike."""
        found = self.metric.interval(self.rows, self.clusters, seed=seed) if len(self.rows) else None
        return None if found is None else found.limits


def sides_of(runs: Mapping[str, EvaluationRun], name: str) -> dict[str, Side]:
    """One metric of all variants. It takes all of them to know the slowest call, and what answers weigh."""
    import numpy as np

    found = {
        variant: _Counted(run, name, [other for key, other in runs.items() if key != variant])
        for variant, run in runs.items()
    }
    measured = [one.rows[one.measured] for one in found.values() if one.measured.any()]
    if measured and any(one.endless for one in found.values()):
        width = max(rows.shape[1] for rows in measured)
        padded = [np.pad(rows, ((0, 0), (0, width - rows.shape[1]))) for rows in measured]
        everything = np.concatenate(padded)
        for one in found.values():
            one.fill(everything)
    return {variant: one.side() for variant, one in found.items()}


class _Counted:
    """The scores of one variant on the way to a side."""

    def __init__(self, run: EvaluationRun, name: str, others: Sequence[EvaluationRun]) -> None:
        import numpy as np

        result = run.result(name)
        metric = metric_of(result)
        if metric is None:
            raise PlanError(f"the metric {name!r:.60} is not registered: it cannot be compared.")
        self.metric, self.scores = metric, as_columns(result.scores)
        samples = {sample.sample_id: sample for sample in run.samples}
        filled = _filled(
            metric, self.scores, samples, [as_columns(other.result(name).scores) for other in others]
        )
        self.rows, self.there = filled.rows, filled.there
        self.measured = np.isfinite(self.scores.values)
        self.clusters = clusters_of_rows(self.scores, samples)
        self.endless: dict[int, SampleScore] = {}
        for place, note in self.scores.notes.items():
            sample = samples.get(self.scores.sample_ids[place])
            if note.failed and not self.there[place] and sample is not None:
                worst = metric.score_if_failed(sample, high=not metric.higher_is_better)
                if worst.value is not None and math.isinf(worst.value):
                    self.endless[place] = worst

    def fill(self, everything: Rows) -> None:
        """Put the worst that any variant measured where a failed answer has no worst of its own."""
        value = everything[:, 0].min() if self.metric.higher_is_better else everything[:, 0].max()
        for place, worst in self.endless.items():
            parts = (
                part if math.isfinite(part) else everything[:, column].max()
                for column, part in enumerate(worst.parts, start=1)
            )
            self.rows[place] = 0.0
            self.rows[place, : 1 + len(worst.parts)] = (value, *parts)
            self.there[place] = True

    def side(self) -> Side:
        clusters = self.clusters
        if clusters is not None:
            there = self.there.tolist()
            clusters = shared_or_none([one for one, kept in zip(clusters, there, strict=True) if kept])
        failed = int((self.there & ~self.measured).sum())
        return Side(self.metric, self.rows[self.there], clusters, failed, self._lost(clusters))

    def _lost(self, clusters: Sequence[Hashable] | None) -> int:
        places = [place for place in _unpredicted(self.scores) if self.there[place]]
        if clusters is None or self.clusters is None:
            return len(places)
        return len({self.clusters[place] for place in places})


def _filled(
    metric: SampleMetric,
    scores: Scores,
    samples: Mapping[str, EvaluationSample],
    others: Sequence[Scores],
) -> FilledRows:
    """The rows of one variant, what failed at its worst beside the other variants."""
    filled = FilledRows(metric, scores, samples, beside=_largest_of(scores, others))
    ours = set(scores.sample_ids)
    paired = any(not ours.isdisjoint(other.sample_ids) for other in others)
    if paired or type(metric).aggregate is SampleMetric.aggregate or not filled.filled.any():
        return filled
    for other in others:
        lent = _share_of_the_worst(metric, scores, int(filled.there.sum()), other)
        rows, instead = equally_wide(filled.rows, filled_by(metric, scores, samples, lent).rows)
        filled.rows = worse_rows(metric, rows, instead, filled.there)
    return filled


def _share_of_the_worst(metric: SampleMetric, scores: Scores, count: int, other: Scores) -> dict[int, Rows]:
    """For each of the failed scores, of `count` in all, an answer of the other variant, from the worst on."""
    rows = other.rows()
    if not len(rows):
        return {}
    worst = _worst_first(metric, rows)
    # By shares: a small variant does not lend its good answers to a large one.
    return {
        place: rows[worst[n * len(rows) // count]] for n, place in enumerate(failed_places(scores)[:count])
    }


def _worst_first(metric: SampleMetric, rows: Rows) -> Sequence[int]:
    """Those that cost the whole most: long answers may, though they score higher than short ones."""
    import numpy as np

    worth = rows[:, 0]
    if metric.of_sums and len(rows) > 1:
        with np.errstate(divide="ignore", invalid="ignore"):
            worth = -metric.aggregate((rows.sum(axis=0) - rows)[:, np.newaxis, :])  # without each of them
    found: list[int] = np.argsort(worth if metric.higher_is_better else -worth, kind="stable").tolist()
    return found


def _largest_of(scores: Scores, others: Sequence[Scores]) -> Scores | None:
    """The parts of other variants' answers to the same samples, each part at its largest."""
    import numpy as np

    width = max((0 if other.parts is None else other.parts.shape[1] for other in others), default=0)
    if not width or not scores.notes:
        return None
    values, parts = np.full(len(scores), math.nan), np.zeros((len(scores), width))
    for other in others:
        where = dict(zip(other.sample_ids, range(len(other)), strict=True))
        for place, sample_id in enumerate(scores.sample_ids):
            its = where.get(sample_id)
            if its is not None and other.parts is not None and math.isfinite(other.values[its]):
                values[place] = 0.0
                parts[place, : other.parts.shape[1]] = np.maximum(
                    parts[place, : other.parts.shape[1]], other.parts[its]
                )
    return Scores(scores.sample_ids, values, parts=parts)


def _unpredicted(scores: Scores) -> list[int]:
    """The places of samples that a file of predictions has no line for."""
    return [
        place
        for place, note in scores.notes.items()
        if note.failed and note.reason.startswith(f"{MISSING_PREDICTION}:")
    ]
