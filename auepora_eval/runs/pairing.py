"""One metric in two runs, sample by sample: what is paired, what failed, what only one of them has."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING

from ..core.batch import shared_or_none
from ..core.metrics_base import SampleMetric
from ..core.scores import Scores, alone, as_columns, equally_wide
from ..core.types import EvaluationSample, MetricResult, SampleScore
from ..errors import UnknownNameError
from ..metrics.parse import parse_metric

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..core.scores import Rows

    Mask = NDArray[np.bool_]

_LAST_BITS = 1e-12


class Pairing:
    """The two results of one metric on the samples that both runs have, in one order.

    `rows_a` and `rows_b` hold a failed answer as the worst of the metric; `both` tells which rows can be
    compared, and `unmatched` how many scores have no partner. Of a metric that is no mean the worst answer
    may lift the whole all the same: whoever failed alone then has the other one's answers there.
    """

    def __init__(self, samples: Mapping[str, EvaluationSample], a: MetricResult, b: MetricResult) -> None:
        self.a, self.b = a, b
        self._samples = samples
        self.metric = metric_of(a)
        self.scored, self.unmatched = False, 0
        if self.metric is None:
            return
        self.first, self.second, alone_in_one = _joined(as_columns(a.scores), as_columns(b.scores))
        filled_a, filled_b = (
            FilledRows(self.metric, scores, samples, beside=other)
            for scores, other in ((self.first, self.second), (self.second, self.first))
        )
        self.both: Mask = filled_a.there & filled_b.there
        self.counted: Mask = filled_a.counts | filled_b.counts
        self.unmatched = alone_in_one + int((self.counted & ~self.both).sum())
        self.scored = bool(self.both.any())
        self.failed = (filled_a.filled, filled_b.filled)
        self._filled = equally_wide(filled_a.rows, filled_b.rows)
        self.rows_a, self.rows_b = self._without_gains()
        self.clusters = clusters_of_rows(self.first, samples)

    @property
    def sample_ids(self) -> Sequence[str]:
        return self.first.sample_ids

    @property
    def known(self) -> SampleMetric:
        """The metric, of a pairing that has one."""
        if self.metric is None:
            raise AssertionError("only asked of metrics that are known")
        return self.metric

    @property
    def is_mean(self) -> bool:
        """Whether the metric's value is the mean of its scores, and not a corpus statistic or a quantile."""
        return type(self.known).aggregate is SampleMetric.aggregate

    def differences(self) -> Rows:
        """Candidate minus baseline for each sample; NaN where there is no pair.

        Equal scores that were added up in another order differ in their last bit: that is no difference.
        """
        import numpy as np

        gains = np.where(self.both, self.rows_b[:, 0] - self.rows_a[:, 0], math.nan)
        return np.where(np.abs(gains) <= _LAST_BITS, 0.0, gains)

    def differs(self) -> bool:
        """Whether any pair differs: in its scores, or in what a metric that is no mean makes of them."""
        import numpy as np

        if self.is_mean:
            return bool(self.differences()[self.both].any())
        apart = np.abs(self.rows_b[self.both] - self.rows_a[self.both])
        return bool((apart > _LAST_BITS).any())

    @property
    def gains_by_failing(self) -> bool:
        """Whether the better side has failures that changed the scores of its other answers."""
        if not self.known.scored_by_others:
            return False
        rows_a, rows_b, _ = self.used()
        change = float(self.known.aggregate(rows_b)) - float(self.known.aggregate(rows_a))
        ahead = (change > 0) == self.known.higher_is_better
        return bool(change and (self.failed[ahead] & self.both).any())

    def _without_gains(self) -> tuple[Rows, Rows]:
        """The rows, a failed answer as the worst; or as the other's, if that makes the whole worse still."""
        import numpy as np

        if self.is_mean or not self.scored:
            return self._filled
        found = []
        for mine, other in ((0, 1), (1, 0)):
            rows = self._filled[mine]
            alone_in_failing = self.both & self.failed[mine] & ~self.failed[other]
            if alone_in_failing.any():
                as_other = np.where(alone_in_failing[:, np.newaxis], self._filled[other], rows)
                rows = worse_rows(self.known, rows, as_other, self.both)
            found.append(rows)
        return found[0], found[1]

    def used(self) -> tuple[Rows, Rows, list[Hashable] | None]:
        """The rows of the pairs, with their clusters."""
        clusters = self.clusters
        if clusters is not None:
            chosen = [cluster for cluster, there in zip(clusters, self.both.tolist(), strict=True) if there]
            clusters = shared_or_none(chosen)
        return self.rows_a[self.both], self.rows_b[self.both], clusters

    def at(self, places: Sequence[int]) -> Pairing:
        """The same pairing on some of its samples."""
        part = copy(self)
        part.first, part.second = self.first.at(places), self.second.at(places)
        part.both, part.counted = self.both[list(places)], self.counted[list(places)]
        part.unmatched = int((part.counted & ~part.both).sum())
        part.scored = bool(part.both.any())
        part.failed = (self.failed[0][list(places)], self.failed[1][list(places)])
        part._filled = (self._filled[0][list(places)], self._filled[1][list(places)])
        part.rows_a, part.rows_b = part._without_gains()
        if self.clusters is not None:
            part.clusters = shared_or_none([self.clusters[place] for place in places])
        return part

    def is_binary(self) -> bool:
        """Whether all scores that are compared are 0 or 1."""
        values = (self.rows_a[self.both, 0], self.rows_b[self.both, 0])
        return all(bool(((one == 0.0) | (one == 1.0)).all()) for one in values)

    def difference_bounds(self) -> tuple[float, float] | None:
        """The difference if all that failed or has no partner had scored lowest, and highest.

        None where nothing is missing, and where a metric has no bounds. A metric that is no mean has those of
        its two values, which tell only of failures.
        """
        import numpy as np

        if not self.is_mean:
            return self._bounds_by_value()
        low, high = self.known.bounds
        a, b = (
            np.where(np.isfinite(side.values), side.values, math.nan) for side in (self.first, self.second)
        )
        a, b = a[self.counted], b[self.counted]
        missing = np.isnan(a) | np.isnan(b)
        if not missing.any() or not math.isfinite(high - low):
            return None
        worst = np.where(np.isnan(b), low, b) - np.where(np.isnan(a), high, a)
        best = np.where(np.isnan(b), high, b) - np.where(np.isnan(a), low, a)
        return float(worst.mean()), float(best.mean())

    def _bounds_by_value(self) -> tuple[float, float] | None:
        bounds = [side.details.get("bounds_if_failed") for side in (self.a, self.b)]
        if self.unmatched or not any(bounds) or self._without_end():
            return None
        ends = [
            [side.value] * 2 if found is None else found
            for side, found in zip((self.a, self.b), bounds, strict=True)
        ]
        if not all(end is not None and math.isfinite(end) for pair in ends for end in pair):
            return None
        (low_a, high_a), (low_b, high_b) = ends
        # What failures are counted as can be worse than the bounds: as long as the other one's answers.
        rows_a, rows_b, _ = self.used()
        counted = float(self.known.aggregate(rows_b)) - float(self.known.aggregate(rows_a))
        return min(low_b - high_a, counted), max(high_b - low_a, counted)

    def _without_end(self) -> bool:
        """Whether the bounds are those of an endless answer, beside which all others are nothing."""
        failed = [
            self._samples[name]
            for side in (self.first, self.second)
            for name in (side.sample_ids[place] for place in failed_places(side))
            if name in self._samples
        ]
        ends = (self.known.score_if_failed(sample, high=best) for sample in failed for best in (False, True))
        return any(math.isinf(part) for end in ends for part in end.parts)


class FilledRows:
    """A metric's scores as rows, the failed ones at their worst: `there` tells which rows can be used.

    `filled` are those that stand for a failed answer. `beside` are the scores of another system on the same
    samples, which tell what an answer to each of them weighs.
    """

    def __init__(
        self,
        metric: SampleMetric,
        scores: Scores,
        samples: Mapping[str, EvaluationSample],
        *,
        beside: Scores | None = None,
    ) -> None:
        import numpy as np

        self.there: Mask = np.isfinite(scores.values)
        usual = _UsualParts(scores, beside)
        failed = {
            place: self._worst(metric, scores, place, samples, usual) for place in failed_places(scores)
        }
        self.counts: Mask = self.there.copy()  # measured, or failed in the attempt
        self.counts[list(failed)] = True
        width = max((len(score.parts) for score in failed.values()), default=0)
        width = max(width, 0 if scores.parts is None else scores.parts.shape[1])
        self.rows = np.zeros((len(scores), 1 + width))
        self.rows[:, 0] = scores.values
        if scores.parts is not None:
            self.rows[:, 1 : 1 + scores.parts.shape[1]] = scores.parts
        for place, worst in failed.items():
            self.there[place] = worst.value is not None and math.isfinite(worst.value)
            if self.there[place]:
                self.rows[place] = 0.0
                self.rows[place, : 1 + len(worst.parts)] = (worst.value, *worst.parts)
        self.filled: Mask = self.there & ~np.isfinite(scores.values)

    def _worst(
        self,
        metric: SampleMetric,
        scores: Scores,
        place: int,
        samples: Mapping[str, EvaluationSample],
        usual: _UsualParts,
    ) -> SampleScore:
        sample = samples.get(scores.sample_ids[place])
        if sample is None:
            return SampleScore(None)  # what it could have scored is not known
        return metric.counted_if_failed(sample, usual.at(place))


class _UsualParts:
    """The parts of an answer to a sample, by the other system that has one, or else the mean of all."""

    def __init__(self, scores: Scores, beside: Scores | None) -> None:
        import numpy as np

        self._beside = beside
        total: Rows = np.zeros((1, 0))
        count = 0
        for side in (scores, beside):
            if side is None or side.parts is None:
                continue
            measured = np.isfinite(side.values)
            # Each side is added up by itself: so both sides find the same mean, to the last bit.
            so_far, more = equally_wide(total, side.parts[measured].sum(axis=0, keepdims=True))
            total, count = so_far + more, count + int(measured.sum())
        self._mean: list[float] = (total[0] / count).tolist() if count else []

    def at(self, place: int) -> list[float]:
        beside = self._beside
        if beside is None or beside.parts is None or not math.isfinite(beside.values[place]):
            return self._mean
        found: list[float] = beside.parts[place].tolist()
        return found


def metric_of(result: MetricResult) -> SampleMetric | None:
    """The metric that made a result; None for a metric of the user's that has no registered name."""
    try:
        return parse_metric(result.name)
    except UnknownNameError:
        return None


def filled_by(
    metric: SampleMetric,
    scores: Scores,
    samples: Mapping[str, EvaluationSample],
    lent: Mapping[int, Rows],
) -> FilledRows:
    """The rows of scores, the failed ones as long as the row lent to each; or those, if they are worse."""
    import numpy as np

    if not lent:
        return FilledRows(metric, scores, samples)
    values = np.full((len(scores), 1), math.nan)
    parts = np.zeros((len(scores), max(map(len, lent.values())) - 1))
    for place, row in lent.items():
        values[place], parts[place, : len(row) - 1] = row[0], row[1:]
    beside = Scores(scores.sample_ids, values[:, 0], parts=parts)
    filled = FilledRows(metric, scores, samples, beside=beside)
    rows, others = equally_wide(filled.rows, np.concatenate([values, parts], axis=1))
    given = filled.filled & np.isfinite(beside.values)
    filled.rows = worse_rows(metric, rows, np.where(given[:, np.newaxis], others, rows), filled.there)
    return filled


def worse_rows(metric: SampleMetric, rows: Rows, instead: Rows, used: Mask) -> Rows:
    """Of two ways to count what failed, the one that makes the whole worse."""
    import numpy as np

    with np.errstate(divide="ignore", invalid="ignore"):
        now, then = (float(metric.aggregate(one[used])) for one in (rows, instead))
    worse = then < now if metric.higher_is_better else then > now
    return instead if worse or math.isnan(now) else rows


def failed_places(scores: Scores) -> list[int]:
    """Where a failure left no score."""
    return [place for place, note in scores.notes.items() if note.failed]


def _joined(a: Scores, b: Scores) -> tuple[Scores, Scores, int]:
    """The scores of the samples that both have, in one order; and how many scores only one of them has."""
    if list(a.sample_ids) == list(b.sample_ids):
        return a, b, 0
    where = dict(zip(b.sample_ids, range(len(b)), strict=True))
    pairs = [(mine, where[name]) for mine, name in enumerate(a.sample_ids) if name in where]
    ours, theirs = [mine for mine, _ in pairs], [its for _, its in pairs]
    alone_in_one = sum(_counted(scores, used) for scores, used in ((a, ours), (b, theirs)))
    return a.at(ours), b.at(theirs), alone_in_one


def _counted(scores: Scores, used: Sequence[int]) -> int:
    """How many scores, measured or failed, are not among those used."""
    rest = set(range(len(scores))) - set(used)
    return sum(place not in scores.notes or scores.notes[place].failed for place in rest)


def clusters_of_rows(scores: Scores, samples: Mapping[str, EvaluationSample]) -> list[Hashable] | None:
    """The clusters of the rows: as the scores tell them, or else as the samples do."""
    names = scores.clusters
    if names is None:
        known = {
            name: sample.metadata["cluster"]
            for name, sample in samples.items()
            if "cluster" in sample.metadata
        }
        if not known:
            return None
        names = [str(known[name]) if name in known else alone(name) for name in scores.sample_ids]
    return shared_or_none(names)
