"""The numbers behind a comparison: the tests and intervals of many pairings at once.

Metrics that are means share their resamples and flips; any other aggregate is resampled on its own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..core.metrics_base import SampleMetric
from ..core.types import TargetCategory
from ..metrics.load import SloShare
from ..stats.correction import holm
from ..stats.few_clusters import clusters_worth, errors_wide
from ..stats.intervals import Interval, bca_mean_intervals, bootstrap_interval
from ..stats.paired_margins import (
    bounded_margin_p,
    lost_size,
    paired_margin_test,
    pseudo_gains,
    units_to_rule_out,
    unseen_loss_p,
)
from ..stats.paired_power import detectable_change, fewest_units, units_needed
from ..stats.power import sample_size
from ..stats.significance import (
    DRAWS_UP_TO,
    PairedTest,
    mcnemar_exact,
    paired_swap_test,
    sign_flip_tests,
)
from ..stats.standard_error import careful_error
from .cluster_notes import FEW_TO_COMPARE
from .differing import differing_units

if TYPE_CHECKING:
    from ..stats.paired_power import Differing
    from .pairing import Pairing

RESAMPLES = 10_000
FAILED_AND_BETTER = (
    "answers are scored by each other, and some of the better run failed: answered, they might make it worse"
)


@dataclass(frozen=True)
class Tested:
    """One pairing with its values, the interval of their difference, and its test.

    `untold` says why no test can tell, where none can: the test that stands there is then not to be used.
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
    untold: str = ""
    no_spread: bool = False

    @property
    def units(self) -> int:
        """How many pairs, or clusters of them, the test stands on."""
        _, _, clusters = self.pairing.used()
        return int(self.pairing.both.sum()) if clusters is None else len(set(clusters))

    @property
    def difference(self) -> float:
        return self.value_b - self.value_a

    def margin_p(self, margin: float) -> float:
        """The p-value of "worse by the margin or more"; 1 where there is no telling."""
        metric = self.pairing.known
        sign = 1 if metric.higher_is_better else -1
        if self.untold:
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
        """Of an aggregate of sums: what draws at the margin say, where a few units lose all. Else 0."""
        import numpy as np

        rows_a, rows_b, clusters = self.pairing.used()
        if not self.pairing.known.of_sums or not bool(np.isfinite([rows_a, rows_b]).all()):
            return 0.0
        gains = sign * pseudo_gains(rows_a, rows_b, self.pairing.known.aggregate, clusters=clusters)
        reach = self.reach(margin)
        if not bool(np.isfinite(gains).all()) or not math.isfinite(reach):
            return 0.0
        return bounded_margin_p(gains, margin, max(reach, float(-gains.min())))

    def reach(self, margin: float) -> float:
        """The most that a sample can lose, by the bounds of its metric.

        Where there are none, as much as lies between the scores that were seen, or as the whole value; and
        not less than twice the margin, so that a few samples never rule out what they cannot show.
        """
        low, high = self.pairing.known.bounds
        if math.isfinite(high - low):
            return high - low
        import numpy as np

        scores = np.concatenate([rows[:, 0] for rows in self.pairing.used()[:2]])
        seen = max(float(np.ptp(scores)), abs(self.value_a), abs(self.value_b))
        return max(seen, 2 * margin) if math.isfinite(seen) else math.inf

    @property
    def clusters_worth(self) -> float | None:
        """How many clusters of equal size would tell as much; None without clusters."""
        clusters = self.pairing.used()[2]
        return None if clusters is None else clusters_worth(list(Counter(clusters).values()))

    @property
    def lost_size(self) -> float:
        """How many times the average cluster one is that may have been lost; 1 without clusters."""
        clusters = self.pairing.used()[2]
        return 1.0 if clusters is None else lost_size(list(Counter(clusters).values()))

    def differing(self, resamples: int = RESAMPLES) -> Differing | None:
        """Which units differ, and by how much; None where nothing is known of others."""
        if self.untold or self.freedom is not None or self.units < 2:
            return None
        return differing_units(self.pairing, self.error, resamples=resamples)

    def detectable(self, level: float, resamples: int = RESAMPLES) -> float | None:
        """The smallest difference that the test shows four times in five at this level, on so many samples.

        None where not even the largest would be noticed, and where nothing is known of how samples differ.
        """
        differing, worth = self.differing(resamples), self.clusters_worth
        if differing is None or (worth is not None and worth < fewest_units(level)):
            return None
        low, high = self.pairing.known.bounds
        return detectable_change(self.units, self._sd, differing, alpha=level, reach=high - low)

    def samples_to_show(self, effect: float, level: float, repeats: int = 1) -> int | None:
        """How many samples the test takes to show an effect of this size, each asked `repeats` times.

        None of few clusters: how much these differ is itself hardly known.
        """
        differing = self.differing()
        few = self.clusters_worth is not None and self.clusters_worth < FEW_TO_COMPARE
        if differing is None or not effect or few:
            return None
        units = units_needed(effect, self._sd, differing, alpha=level)
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
        if self.untold or self.freedom is not None or self.units < 2:
            return None
        found, reach = [], self.reach(margin)
        if self._sd is not None:
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
            drawn = 1 / 2_001  # what the test of any aggregate draws
        elif self.test.method.startswith("sign flip") and 2.0 ** min(self.units, 64) > resamples:
            drawn = 1 / (resamples + 1) if self.units <= DRAWS_UP_TO else 0.0
        return max(2.0 ** (1 - min(self.units, 1_000)), drawn)


def family_p(tested: Sequence[Tested]) -> list[float | None]:
    """The p-values of tests that are looked at together, corrected by Holm; None where no test can tell."""
    adjusted = iter(holm([one.test.p_value for one in tested if not one.untold]))
    return [None if one.untold else next(adjusted) for one in tested]


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
    """Each pairing tested; those of means on the same samples by the same draws."""
    import numpy as np

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
    return [_no_gain_by_failing(one) for one in tested]


def _no_gain_by_failing(tested: Tested) -> Tested:
    """Nothing is told of a gain that failures may have made, by what they took from the other answers."""
    if not tested.pairing.gains_by_failing:
        return tested
    test = PairedTest(1.0, tested.difference, tested.test.method)
    return replace(tested, test=test, untold=FAILED_AND_BETTER)


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
    """Of 0/1 scores the test can be had without draws, unless samples come in clusters."""
    if pairing.clusters is not None or not pairing.is_binary():
        return test
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
    import numpy as np

    width = rows_a.shape[-1]
    interval = bootstrap_interval(
        np.concatenate([rows_a, rows_b], axis=-1),
        lambda rows: metric.aggregate(rows[..., width:]) - metric.aggregate(rows[..., :width]),
        clusters=clusters,
        of_sums=metric.of_sums,
        seed=seed,
    )
    test = paired_swap_test(
        rows_a, rows_b, metric.aggregate, clusters=clusters, of_sums=metric.of_sums, seed=seed
    )
    error = math.nan
    if interval is not None:
        error = (interval.high - interval.low) / (2 * errors_wide(clusters))
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
