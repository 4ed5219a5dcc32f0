"""The numbers behind a comparison: the tests and intervals of many pairings at once.

Metrics that are means share their resamples and flips; any other aggregate is resampled on its own.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

from ..core.metrics_base import SampleMetric
from ..core.types import TargetCategory
from ..metrics.load import SloShare
from ..stats.correction import holm
from ..stats.intervals import Interval, bca_mean_intervals, bootstrap_interval
from ..stats.paired_margins import paired_margin_test
from ..stats.power import POWER, minimum_detectable_effect, sample_size
from ..stats.significance import (
    DRAWS_UP_TO,
    PairedTest,
    mcnemar_exact,
    paired_swap_test,
    sign_flip_tests,
)
from ..stats.standard_error import mean_error

if TYPE_CHECKING:
    from .pairing import Pairing

RESAMPLES = 10_000


@dataclass(frozen=True)
class Tested:
    """One pairing with its values, the interval of their difference, and its test.

    `untold` says why no test can tell, where none can: the test that stands there is then not to be used.
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
            rows_a, rows_b, clusters = self.pairing.used()
            gains = sign * (rows_b[:, 0] - rows_a[:, 0])
            reach = metric.bounds[1] - metric.bounds[0]
            p_value = paired_margin_test(gains, margin, reach, clusters=clusters).p_value
        elif self.error > 0:
            p_value = NormalDist().cdf(-(sign * self.difference + margin) / self.error)
        else:
            p_value = math.nan if math.isnan(self.error) else float(sign * self.difference <= -margin)
        return 1.0 if math.isnan(p_value) else p_value

    def detectable(self, level: float) -> float | None:
        """The smallest difference that so many samples show four times in five at this level."""
        if not self.error > 0 or self.untold or self.freedom is not None or self.units < 2:
            return None
        sd = self.error * math.sqrt(self.units)
        found = minimum_detectable_effect(sd, self.units, alpha=level, power=POWER, by="t")
        return found if math.isfinite(found) else None

    def samples_needed(self, effect: float, level: float, repeats: int = 1) -> int | None:
        """How many samples show an effect of this size, each asked `repeats` times, at this level."""
        if not self.error > 0 or not effect or self.untold or self.freedom is not None or self.units < 2:
            return None
        units = sample_size(effect, self.error * math.sqrt(self.units), alpha=level)
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
    return [_tested(pairing, found.get(place), seed) for place, pairing in enumerate(pairings)]


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
        error = mean_error(rows_b[:, 0] - rows_a[:, 0], clusters=clusters).error
        return Tested(pairing, value_a, value_b, side_a, side_b, interval, test, error)
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
        error = (interval.high - interval.low) / (2 * NormalDist().inv_cdf(0.975))
    return Tested(pairing, value_a, value_b, side_a, side_b, interval, test, error)
