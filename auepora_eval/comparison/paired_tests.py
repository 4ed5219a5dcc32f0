"""The numbers behind a comparison: the tests and intervals of many pairings at once.

Metrics that are means share their resamples and flips; any other aggregate is resampled on its own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ..core.metrics_base import SampleMetric
from ..core.types import EvaluationRun, TargetCategory
from ..metrics.additional import SloShare
from ..stats.intervals import (
    Interval,
    bca_mean_intervals,
    bootstrap_interval,
    careful_error,
    clusters_worth,
    errors_wide,
)
from ..stats.margins import (
    bounded_margin_p,
    lost_size,
    paired_margin_test,
    pseudo_gains,
    units_to_rule_out,
    unseen_loss_p,
)
from ..stats.power import POWER, Differing, detectable_change, fewest_units, sample_size, units_needed
from ..stats.resamples import summed_by_unit
from ..stats.significance import (
    DRAWS_UP_TO,
    PairedTest,
    holm,
    mcnemar_exact,
    paired_swap_test,
    sign_flip_tests,
    welch_difference,
)
from .pairing import Pairing, results_by_name, values_of_pair

if TYPE_CHECKING:
    from ..core.scores import Rows

RESAMPLES = 10_000
FEW_TO_COMPARE = 10  # clusters: below that, their spread is itself hardly known
ONE_RUN_EACH = (
    "one run each is not enough to compare times, which vary with the machine: "
    "run both several times and compare A1,A2,A3 B1,B2,B3"
)
FAILED_AND_BETTER = (
    "answers are scored by each other, and some of the better run failed: answered, they might make it worse"
)


@dataclass(frozen=True)
class Tested:
    """One pairing with its values, the interval of their difference, and its test.

    `not_tested` says why there is no valid test, where there is none: `test` must then not be used.
    `no_spread` says that all resamples give the same difference, as where all samples do: an interval of no
    width would pass for certainty, so there is none.
    """

    pairing: Pairing
    value_a: float
    value_b: float
    interval_a: Interval | None
    interval_b: Interval | None
    interval: Interval | None
    test: PairedTest
    error: float  # standard error of the difference; NaN where it is not known
    freedom: float | None = None  # degrees of freedom of the error, where whole runs were tested
    not_tested: str = ""
    no_spread: bool = False

    @property
    def units(self) -> int:
        """The number of pairs, or of clusters of pairs."""
        _, _, clusters = self.pairing.used()
        return int(self.pairing.both.sum()) if clusters is None else len(set(clusters))

    @property
    def difference(self) -> float:
        return self.value_b - self.value_a

    @property
    def gain(self) -> float:
        """The difference with the sign of "better"."""
        return self.difference if self.pairing.known.higher_is_better else -self.difference

    def margin_p(self, margin: float) -> float:
        """The p-value of "worse by the margin or more"; 1 where there is no telling."""
        metric = self.pairing.known
        sign = 1 if metric.higher_is_better else -1
        if self.not_tested:
            return 1.0
        if self.freedom is not None:
            p_value = _t_above(sign * self.difference + margin, self.error, self.freedom)
        elif self.pairing.is_mean:
            gains = sign * self.pairing.differences()[self.pairing.both]
            clusters = self.pairing.used()[2]
            p_value = paired_margin_test(gains, margin, self.reach(margin), clusters=clusters).p_value
        else:
            gain = sign * self.difference
            p_value = _t_above(gain + margin, self.error, max(1, self.units - 1))
            # A loss that no unit happened to show widens no interval.
            unseen = unseen_loss_p(self.units, max(gain, 0.0), margin, self.reach(margin), self.lost_size)
            p_value = max(p_value, unseen, self._rare_loss_p(sign, margin))
        return 1.0 if math.isnan(p_value) else p_value

    def _rare_loss_p(self, sign: int, margin: float) -> float:
        """Return the p-value of resamples at the margin, for aggregates of sums; else 0."""
        rows_a, rows_b, clusters = self.pairing.used()
        if not self.pairing.known.of_sums or not bool(np.isfinite([rows_a, rows_b]).all()):
            return 0.0
        gains = sign * pseudo_gains(rows_a, rows_b, self.pairing.known.aggregate, clusters=clusters)
        reach = self.reach(margin)
        if not bool(np.isfinite(gains).all()) or not math.isfinite(reach):
            return 0.0
        # The pseudo-values of a ratio of sums can lie outside the bounds of the metric.
        return bounded_margin_p(gains, margin, max(reach, float(-gains.min())))

    def reach(self, margin: float) -> float:
        """The most that a sample can lose, by the bounds of its metric.

        Where there are none, as much as lies between the scores that were seen, or as the whole value; and
        not less than twice the margin, so that a few samples never rule out what they cannot show.
        """
        low, high = self.pairing.known.bounds
        if math.isfinite(high - low):
            return high - low
        scores = np.concatenate([rows[:, 0] for rows in self.pairing.used()[:2]])
        seen = max(float(np.ptp(scores)), abs(self.value_a), abs(self.value_b))
        return max(seen, 2 * margin) if math.isfinite(seen) else math.inf

    @property
    def clusters_worth(self) -> float | None:
        """The number of equal clusters with the same information; None without clusters."""
        clusters = self.pairing.used()[2]
        return None if clusters is None else clusters_worth(list(Counter(clusters).values()))

    @property
    def lost_size(self) -> float:
        """How many times the average cluster one is that may have been lost; 1 without clusters."""
        clusters = self.pairing.used()[2]
        return 1.0 if clusters is None else lost_size(list(Counter(clusters).values()))

    def differing(self, resamples: int = RESAMPLES) -> Differing | None:
        """Which units differ, and by how much; None where nothing is known of others."""
        if self.not_tested or self.freedom is not None or self.units < 2:
            return None
        return differing_units(self.pairing, self.error, resamples=resamples)

    def detectable(self, level: float, resamples: int = RESAMPLES) -> float | None:
        """Return the smallest difference that the test detects with 80% power at this level.

        None where not even the largest would be noticed, and where nothing is known of how samples differ.
        """
        differing, worth = self.differing(resamples), self.clusters_worth
        if differing is None or (worth is not None and worth < fewest_units(level)):
            return None
        low, high = self.pairing.known.bounds
        return detectable_change(self.units, self._sd, differing, alpha=level, reach=high - low)

    def samples_to_show(
        self, effect: float, level: float, repeats: int = 1, power: float = POWER
    ) -> int | None:
        """How many samples the test takes to show an effect of this size, each asked `repeats` times.

        None of few clusters: how much these differ is itself hardly known.
        """
        differing = self.differing()
        few = self.clusters_worth is not None and self.clusters_worth < FEW_TO_COMPARE
        if differing is None or not effect or few:
            return None
        units = units_needed(effect, self._sd, differing, alpha=level, power=power)
        samples = int(self.pairing.both.sum()) / repeats
        return None if units is None else math.ceil(units * samples / self.units)

    @property
    def _sd(self) -> float | None:
        """The standard deviation of a unit's difference."""
        return self.error * math.sqrt(self.units) if self.error > 0 else None

    def samples_to_rule_out(self, margin: float, alpha: float, repeats: int = 1) -> int | None:
        """About how many samples rule out a loss of the margin four times in five, were there no difference.

        As many as a one-sided t-test takes, and no fewer than it takes where no sample differs at all.
        """
        if self.not_tested or self.freedom is not None or self.units < 2:
            return None
        found, reach = [], self.reach(margin)
        if self._sd is not None:
            # One-sided at alpha is two-sided at twice alpha, which must stay below the power of 0.8.
            found.append(sample_size(margin, self._sd, alpha=min(2 * alpha, 0.79)))
        if math.isfinite(reach) and margin < reach:
            found.append(units_to_rule_out(margin, reach, self.lost_size, level=alpha))
        units = max((one for one in found if one is not None), default=None)
        samples = int(self.pairing.both.sum()) / repeats
        return None if units is None else math.ceil(units * samples / self.units)

    def smallest_p(self, resamples: int) -> float:
        """The smallest p-value that these samples can have, however much they differ."""
        drawn = 0.0
        if not self.pairing.is_mean:
            drawn = 1 / 2_001  # the test of any other aggregate has 2,000 resamples
        elif self.test.method.startswith("sign flip") and 2.0 ** min(self.units, 64) > resamples:
            # Only drawn flips have this limit: those of fewer units are enumerated instead.
            drawn = 1 / (resamples + 1) if self.units <= DRAWS_UP_TO else 0.0
        return max(2.0 ** (1 - min(self.units, 1_000)), drawn)


def family_p(tested: Sequence[Tested]) -> list[float | None]:
    """Return the p-values of a family of tests, corrected by Holm; None for what was not tested."""
    adjusted = iter(holm([one.test.p_value for one in tested if not one.not_tested]))
    return [None if one.not_tested else next(adjusted) for one in tested]


def is_of_time(metric: SampleMetric) -> bool:
    """Whether a metric is of seconds, of what is done in a second, or of answers in time."""
    endless = metric.target is TargetCategory.LATENCY and math.isinf(metric.bounds[1])
    return endless or isinstance(metric, SloShare)


def _t_above(gain: float, error: float, freedom: float) -> float:
    from scipy.stats import t

    if not error > 0:
        return float(gain <= 0) if error == 0 else math.nan
    return float(t.sf(gain / error, freedom))


def tested_all(pairings: Sequence[Pairing], *, seed: int, resamples: int) -> list[Tested]:
    """Return each pairing tested; means on the same samples share their resamples."""
    found: dict[int, tuple[PairedTest, Interval | None]] = {}
    for group in _groups_of_means(pairings):
        columns = np.stack([pairings[place].differences() for place in group], axis=1)
        clusters = pairings[group[0]].clusters
        tests = sign_flip_tests(columns, clusters=clusters, resamples=resamples, seed=seed)
        intervals = bca_mean_intervals(
            columns, clusters=clusters, resamples=resamples, draws_up_to=DRAWS_UP_TO, seed=seed
        )
        for place, test, interval in zip(group, tests, intervals, strict=True):
            found[place] = (_exact_if_binary(pairings[place], test), interval)
    tested = [_tested(pairing, found.get(place), seed) for place, pairing in enumerate(pairings)]
    # A gain that failures may have caused, by changing the other answers' scores, is not tested.
    return [
        replace(
            one,
            test=PairedTest(1.0, one.difference, one.test.method),
            not_tested=FAILED_AND_BETTER,
        )
        if one.pairing.gains_by_failing
        else one
        for one in tested
    ]


def _groups_of_means(pairings: Sequence[Pairing]) -> list[list[int]]:
    """The places of the means, those on the same samples and clusters together."""
    groups: list[tuple[Sequence[str], list[Hashable] | None, list[int]]] = []
    for place, pairing in enumerate(pairings):
        if not pairing.is_mean:
            continue
        for sample_ids, clusters, places in groups:
            if list(sample_ids) == list(pairing.sample_ids) and clusters == pairing.clusters:
                places.append(place)
                break
        else:
            groups.append((pairing.sample_ids, pairing.clusters, [place]))
    return [places for _, _, places in groups]


def _exact_if_binary(pairing: Pairing, test: PairedTest) -> PairedTest:
    """Return McNemar's exact test for 0/1 scores, unless samples come in clusters."""
    if pairing.clusters is not None or not pairing.is_binary():
        return test
    # McNemar's test takes pairs to be independent, which the samples of a cluster are not.
    gains = pairing.rows_b[pairing.both, 0] - pairing.rows_a[pairing.both, 0]
    return mcnemar_exact(int((gains < 0).sum()), int((gains > 0).sum()))


def _tested(pairing: Pairing, known: tuple[PairedTest, Interval | None] | None, seed: int) -> Tested:
    rows_a, rows_b, clusters = pairing.used()
    metric = pairing.known
    value_a, value_b = (float(metric.aggregate(rows)) for rows in (rows_a, rows_b))
    side_a, side_b = (metric.interval(rows, clusters, seed=seed) for rows in (rows_a, rows_b))
    if known is not None:
        test, interval = known
        error = careful_error(rows_b[:, 0] - rows_a[:, 0], clusters=clusters)
        return _shown(Tested(pairing, value_a, value_b, side_a, side_b, interval, test, error))
    interval = _difference_interval(pairing, seed)
    test = paired_swap_test(
        rows_a, rows_b, metric.aggregate, clusters=clusters, of_sums=metric.of_sums, seed=seed
    )
    error = _error_of(interval, clusters)
    return _shown(Tested(pairing, value_a, value_b, side_a, side_b, interval, test, error))


def _shown(tested: Tested) -> Tested:
    """Without the intervals that have no width, and the others where a difference can be."""
    kept = [
        None if one is None or one.limits is None else one
        for one in (tested.interval_a, tested.interval_b, tested.interval)
    ]
    no_spread = tested.interval is not None and kept[2] is None
    low, high = tested.pairing.known.bounds
    change = kept[2] and kept[2].within(low - high, high - low)
    return replace(tested, interval_a=kept[0], interval_b=kept[1], interval=change, no_spread=no_spread)


# How much runs vary, and which samples of two differ: what decides which changes could be seen.

_OF_SWAPS = 1 / 2_001  # the smallest p-value of the test for any aggregate
_ROUNDING = 1e-12


def differing_units(pairing: Pairing, error: float, *, resamples: int) -> Differing | None:
    """The samples, or clusters of them, that differ, as the test of the metric counts them.

    `error` is the standard error of the difference. None where it is not known how others would differ: no
    sample does, and scores are not only 0 and 1.
    """
    rows_a, rows_b, clusters = pairing.used()
    if not pairing.is_mean:
        apart = np.abs(rows_b - rows_a).max(axis=1, keepdims=True) > _ROUNDING
        units = summed_by_unit(apart.astype(np.float64), clusters)
        differ = int((units > 0).sum())
        if not differ or not error > 0:
            return None
        # Units of equal size, this many of them, have this error.
        return Differing(error * len(units) / math.sqrt(differ), least_p=_OF_SWAPS)
    gains = pairing.differences()[pairing.both]
    sums = summed_by_unit(gains.reshape(-1, 1), clusters)[:, 0]
    sums = np.where(np.abs(sums) <= _ROUNDING, 0.0, sums)
    binary, units_there = pairing.is_binary(), len(sums)
    counted = binary and clusters is None
    least = 0.0 if counted or units_there > DRAWS_UP_TO else 1 / (resamples + 1)
    lost, won = int((sums < 0).sum()), int((sums > 0).sum())
    if not lost + won:
        return Differing(counted=counted, least_p=least) if binary else None
    # Divided by the samples of an average unit, so that it is on the scale of the metric.
    size = float(np.abs(sums).sum()) / (lost + won) * units_there / len(gains)
    return Differing(size, min(lost, won) / units_there, counted, least_p=least)


def side_error(pairing: Pairing, rows: Rows) -> tuple[float, int]:
    """The standard error of one run's value, and the number of independent units."""
    clusters = pairing.used()[2]
    units = len(rows) if clusters is None else len(set(clusters))
    if pairing.is_mean:
        return careful_error(rows[:, 0], clusters=clusters), units
    return _error_of(pairing.known.interval(rows, clusters), clusters), units


def difference_error(pairing: Pairing) -> tuple[float, int]:
    """The standard error of the difference of two runs on the same samples."""
    rows_a, rows_b, clusters = pairing.used()
    units = len(rows_a) if clusters is None else len(set(clusters))
    if pairing.is_mean:
        return careful_error(rows_b[:, 0] - rows_a[:, 0], clusters=clusters), units
    return _error_of(_difference_interval(pairing, 0), clusters), units


def _difference_interval(pairing: Pairing, seed: int) -> Interval | None:
    """Return the interval of the difference of an aggregate that is not a mean."""
    rows_a, rows_b, clusters = pairing.used()
    metric, width = pairing.known, rows_a.shape[-1]
    return bootstrap_interval(
        np.concatenate([rows_a, rows_b], axis=-1),
        lambda rows: metric.aggregate(rows[..., width:]) - metric.aggregate(rows[..., :width]),
        clusters=clusters,
        of_sums=metric.of_sums,
        seed=seed,
    )


def _error_of(interval: Interval | None, clusters: Sequence[Hashable] | None) -> float:
    """Return the standard error that an interval of 95% implies; NaN without one."""
    return math.nan if interval is None else (interval.high - interval.low) / (2 * errors_wide(clusters))


# Times are compared by whole runs.


def times_by_run(
    tested: Sequence[Tested], baselines: Sequence[EvaluationRun], candidates: Sequence[EvaluationRun]
) -> list[Tested]:
    """Return the tests, with those of times made again: all samples of a run share the state of the machine.

    So runs are counted, not samples: Welch's test on the values of the repeats. With one run each there is
    no test.
    """
    return [_by_run(one, baselines, candidates) if is_of_time(one.pairing.known) else one for one in tested]


def _by_run(
    tested: Tested, baselines: Sequence[EvaluationRun], candidates: Sequence[EvaluationRun]
) -> Tested:
    if len(baselines) < 2:
        return replace(tested, interval=None, error=math.nan, not_tested=ONE_RUN_EACH)
    name = tested.pairing.a.name
    values: tuple[list[float], list[float]] = ([], [])
    for a, b in zip(baselines, candidates, strict=True):
        found = values_of_pair({}, results_by_name(a)[name], results_by_name(b)[name])
        # A call that failed has no time: its pair is left out on both sides.
        if not any(map(math.isnan, found)):
            for side, value in zip(values, found, strict=True):
                side.append(value)
    welch = welch_difference(*values)
    if math.isnan(welch.p_value):
        return replace(tested, interval=None, error=math.nan, not_tested="fewer than two runs have times")
    a_mean, b_mean = (sum(side) / len(side) for side in values)
    method = f"{welch.method}, {len(values[0])} runs each"
    return replace(
        tested,
        value_a=a_mean,
        value_b=b_mean,
        interval=Interval(welch.low, welch.high, method),
        test=PairedTest(welch.p_value, welch.difference, method),
        error=welch.error,
        freedom=welch.freedom,
    )
