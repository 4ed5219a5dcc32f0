"""The numbers behind a comparison: the test, the interval, the margin and the power of each pairs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..core.metrics_base import SampleMetric
from ..core.scores import Rows
from ..core.types import MetricResult, TargetCategory
from ..core.verdict import Verdict
from ..stats.arrays import Mask
from ..stats.intervals import (
    Estimate,
    Interval,
    Share,
    Units,
    agreeing_with_test,
    clusters_worth,
    mean_units,
    plus_two,
    shares_change_interval,
    weighted_sum,
)
from ..stats.power import Spread, detectable_change, fewest_units, units_needed, units_to_rule_out
from ..stats.resamples import numbered
from ..stats.significance import (
    LEVEL,
    PairedTest,
    UnpairedTest,
    holm,
    mcnemar_exact,
    paired_swap_test,
    sign_flip_test,
    welch_difference,
)
from .pairs import LAST_BITS, Pairs

if TYPE_CHECKING:
    from .judged import JudgeCorrection

RESAMPLES = 10_000
FEW_TO_COMPARE = 10  # clusters: below that, their spread is itself hardly known
ONE_RUN_EACH = (
    "one run each is not enough to compare times, which vary with the machine: "
    "run both several times and compare A1,A2,A3 B1,B2,B3"
)
NO_VALUE = "it has no value in one of the runs, so there is no difference to test"
FAILED_AND_BETTER = (
    "answers are scored by each other, and some of the better run failed: answered, they might make it worse"
)
FAILED_AND_FASTER = "calls of the faster one failed, and how long they would have taken is not known"
FAILED_AND_UNBOUNDED = "calls of the better one failed, and there is no worst that they could count as"


@dataclass(frozen=True)
class Tested:
    """One pairs with its values, the interval of their difference, and its test.

    `not_tested` says why there is no valid test, where there is none: `test` must then not be used.
    `by_run` is the test of times, of which whole runs are compared instead of samples. `judge` is how a
    judged metric was corrected for the errors of its judge.
    """

    pairs: Pairs
    value_a: float
    value_b: float
    interval_a: Interval | None
    interval_b: Interval | None
    interval: Interval | None
    test: PairedTest
    seed: int = 0
    by_run: UnpairedTest | None = None
    not_tested: str = ""
    judge: JudgeCorrection | None = None

    @property
    def units(self) -> int:
        """The number of pairs, or of clusters of pairs, that take part in the value."""
        rows_a, rows_b, clusters = self.pairs.used()
        chosen = self.pairs.known.whole_value(rows_a, rows_b).takes_part
        if clusters is None:
            return int(chosen.sum())
        return len({cluster for cluster, is_chosen in zip(clusters, chosen, strict=True) if is_chosen})

    @property
    def difference(self) -> float:
        return self.value_b - self.value_a

    @property
    def sign(self) -> int:
        """1 if higher is better, else -1."""
        return 1 if self.pairs.known.higher_is_better else -1

    @property
    def gain(self) -> float:
        """The difference with the sign of "better"."""
        return self.sign * self.difference

    def verdict(self, p_adjusted: float | None, alpha: float, *, within: bool = False) -> Verdict:
        """Return the verdict by the corrected p-value; `within`: a loss of the margin is ruled out."""
        if self.pairs.is_same():
            return Verdict.SAME
        # Before the margin: a significant loss is reported as worse even if it is smaller than the margin.
        if p_adjusted is not None and p_adjusted < alpha and self.difference != 0:
            return Verdict.of_gain(self.gain)
        return Verdict.NO_WORSE if within else Verdict.INCONCLUSIVE

    def margin_estimate(self, margin: float) -> Estimate | None:
        """Return the gain that a margin is judged by: an unseen loss may be as large as the scale."""
        if self.not_tested:
            return None
        if self.by_run is not None and not self.by_run.error:
            return None  # runs that are all alike do not show how much runs differ
        if self.by_run is not None:
            return Estimate(np.asarray(self.gain), np.asarray(self.by_run.error), self.by_run.freedom)
        reach = reach_of(self.pairs, margin)
        if self.units < 2 or not math.isfinite(reach):
            return None
        gains = [units.times(self.sign) for units, _ in changes(self.pairs)]
        estimate = weighted_sum([(one, plus_two(one, -reach, reach)) for one in gains])
        return estimate if self.judge is None else self.judge.estimate(estimate, self.sign)

    @property
    def clusters_worth(self) -> float | None:
        """The number of equal clusters with the same information; None without clusters."""
        clusters = self.pairs.used()[2]
        return None if clusters is None else clusters_worth(list(Counter(clusters).values()))

    def spread(self) -> Spread | None:
        """Return how units change; None where nothing is known of how others would."""
        if self.not_tested or self.by_run is not None or self.units < 2:
            return None
        if self.judge is None:
            return spread_of(self.pairs)
        return self.judge.spread(spread_of(self.pairs))

    def detectable(self, level: float) -> float | None:
        """Return the smallest difference that the test detects with 80% power at this level.

        None where not even the largest would be detected, and where nothing is known of how samples differ.
        """
        spread, worth = self.spread(), self.clusters_worth
        if spread is None or (worth is not None and worth < fewest_units(level)):
            return None
        low, high = self.pairs.known.bounds
        return detectable_change(self.units, spread, alpha=level, reach=high - low)

    def samples_to_show(self, effect: float, level: float) -> int | None:
        """Return how many samples detect an effect of this size, each asked as often as these.

        None of few clusters: how much these differ is itself hardly known.
        """
        spread, worth = self.spread(), self.clusters_worth
        if spread is None or (worth is not None and worth < FEW_TO_COMPARE):
            return None
        return self._samples(units_needed(effect, spread, alpha=level))

    def samples_to_rule_out(self, margin: float, alpha: float) -> int | None:
        """Return how many samples rule out a loss of the margin four times in five, were there no change."""
        reach = reach_of(self.pairs, margin)
        if self.not_tested or self.by_run is not None or self.units < 2 or not math.isfinite(reach):
            return None
        spread = self.spread()
        sd = 0.0 if spread is None else spread.sd
        return self._samples(units_to_rule_out(margin, sd, reach, alpha=alpha))

    @property
    def questions(self) -> float:
        """The number of pairs, those of the repeats of a question together."""
        return int(self.pairs.both.sum()) / len(self.pairs.repeats)

    def _samples(self, units: int | None) -> int | None:
        return None if units is None else math.ceil(units * self.questions / self.units)

    @property
    def smallest_p(self) -> float:
        """The smallest p-value that these samples can have, however much they differ."""
        return 2.0 ** (1 - min(self.units, 1_000))

    def settled(self, level: float) -> Tested:
        """Return the test with more resamples, if other resamples could change its verdict at this level."""
        is_exact = self.by_run is not None or (self.judge is not None and self.judge.powered is not None)
        if self.not_tested or is_exact or not self.test.could_change(level):
            return self
        return replace(self, test=_test(self.pairs, self.test.resamples, self.seed, (LEVEL, level)))


def corrected(
    tested: Sequence[Tested], alpha: float, correct: Callable[[list[float]], list[float]] = holm
) -> tuple[list[Tested], list[float | None]]:
    """Return a family of tests with corrected p-values, None for what was not tested.

    The tests are those given, with more resamples where the verdict would depend on the seed.
    """

    def adjusted(family: Sequence[Tested]) -> list[float | None]:
        p_values = iter(correct([one.test.p_value for one in family if not one.not_tested]))
        return [None if one.not_tested else next(p_values) for one in family]

    # What a p-value is compared with, where the corrected one is compared with alpha.
    settled = [
        one if p is None else one.settled(alpha * one.test.p_value / p if p else alpha)
        for one, p in zip(tested, adjusted(tested), strict=True)
    ]
    return settled, adjusted(settled)


def is_of_time(metric: SampleMetric | MetricResult) -> bool:
    """Whether a metric is of seconds, of what is done in a second, or of answers in time."""
    if metric.unit == "USD":  # what an answer costs does not depend on the machine
        return False
    # A stored result has null for an infinite bound. Its metric need not be registered.
    is_endless = metric.bounds is not None and metric.bounds[1] in (math.inf, None)
    return metric.target is TargetCategory.LATENCY and (is_endless or metric.name.startswith("slo_share"))


def reach_of(pairs: Pairs, margin: float = 0.0) -> float:
    """Return the most that a sample can change, by the bounds of its metric.

    Where there are none, as much as lies between the scores that were seen, or as the whole value; and
    not less than twice the margin, so that a few samples never rule out what they cannot show.
    """
    low, high = pairs.known.bounds
    if math.isfinite(high - low):
        return high - low
    sides = pairs.used()[:2]
    values = [abs(float(pairs.known.aggregate(rows))) for rows in sides]
    scores = np.concatenate([rows[:, 0] for rows in sides])
    seen = max(float(np.ptp(scores)), *values)
    return max(seen, 2 * margin) if math.isfinite(seen) else math.inf


class ChangeUnits(NamedTuple):
    """The units of a difference, or of a share of it, and which of them differ."""

    units: Units
    differs: Mask


def changes(pairs: Pairs) -> list[ChangeUnits]:
    """Return the units of each share of the difference between the two runs."""
    rows_a, rows_b, clusters = pairs.used()
    shares = _shares(pairs)
    if pairs.is_mean:
        units = [mean_units(pairs.differences()[pairs.both], clusters)]
    else:
        before, now = (pairs.known.value_units(rows, clusters, shares) for rows in (rows_a, rows_b))
        units = [b.minus(a) for a, b in zip(before, now, strict=True)]
    differ = _differing_samples(pairs)
    taking_part = [share.takes_part for share in shares if share.takes_part.any()]
    return [
        ChangeUnits(one, _units_with(differ & rows, one, clusters))
        for one, rows in zip(units, taking_part, strict=True)
    ]


def whole_change(pairs: Pairs) -> ChangeUnits:
    """Return the units of the whole difference: the samples that take part in any share of it."""
    shares = changes(pairs)
    if len(shares) == 1:
        return shares[0]
    rows_a, rows_b, clusters = pairs.used()
    before, now = (side_units(pairs, rows) for rows in (rows_a, rows_b))
    return ChangeUnits(units := now.minus(before), _units_with(_differing_samples(pairs), units, clusters))


def side_units(pairs: Pairs, rows: Rows) -> Units:
    """Return the units of the value of one run: the samples that take part in the value of either."""
    rows_a, rows_b, clusters = pairs.used()
    return pairs.known.value_units(rows, clusters, [pairs.known.whole_value(rows_a, rows_b)])[0]


def _shares(pairs: Pairs) -> list[Share]:
    """Return the shares of the value, with the samples that take part in either run."""
    rows_a, rows_b, _ = pairs.used()
    before, now = (pairs.known.value_shares(rows) for rows in (rows_a, rows_b))
    return [a._replace(takes_part=a.takes_part | b.takes_part) for a, b in zip(before, now, strict=True)]


def _differing_samples(pairs: Pairs) -> Mask:
    rows_a, rows_b, _ = pairs.used()
    columns = slice(0, 1) if pairs.is_mean else slice(None)
    differs: Mask = np.any(np.abs(rows_b - rows_a)[:, columns] > LAST_BITS, axis=1)
    return differs


def _units_with(samples: Mask, units: Units, clusters: Sequence[Hashable] | None) -> Mask:
    """Return which of the units have any of these samples."""
    count = len(units.numbers)
    unit_of = np.arange(len(samples)) if clusters is None else numbered(clusters)
    if units.of_whole is not None:
        place = np.full(int(unit_of.max()) + 1, -1)
        place[units.of_whole] = np.arange(len(units.of_whole))
        unit_of = place[unit_of]
    if count <= int(unit_of.max()):  # groups of units were left out together
        unit_of = unit_of % count
    chosen: Mask = np.zeros(count, dtype=bool)
    chosen[unit_of[samples]] = True
    return chosen


def spread_of(pairs: Pairs) -> Spread | None:
    """Return how much units change; None if none does, unless scores are 0 or 1."""
    units, differs = whole_change(pairs)
    is_share = pairs.is_mean and pairs.is_binary()
    if not differs.any():
        return Spread(0.0, 1.0) if is_share else None
    sd = float(units.numbers.std(ddof=1)) if len(units.numbers) > 1 else 0.0
    if not math.isfinite(sd):  # a ratio whose denominator is 0
        return None
    size = 1.0
    if not is_share or pairs.used()[2] is not None:
        size = float(np.sqrt((units.numbers[differs] ** 2).mean()))
    if not size:  # samples differ, but no single one of them moves the value: so the F1 of one class alone
        return None
    # Less the variance that the observed change brought along: the spread is that of an unchanged system.
    unchanged = sd**2 - abs(float(units.value)) * Spread(sd, size).slope
    return Spread(math.sqrt(max(0.0, unchanged)), size)


def tested_pairs(pairs: Pairs, *, seed: int, resamples: int) -> Tested:
    """Return the values of both runs, the interval of their difference, and its test."""
    rows_a, rows_b, clusters = pairs.used()
    metric = pairs.known
    value_a, value_b = pairs.values()
    side_a, side_b = (metric.interval(rows, clusters) for rows in (rows_a, rows_b))
    untested = PairedTest(1.0, value_b - value_a, "")
    tested = Tested(pairs, value_a, value_b, side_a, side_b, None, untested, seed)
    if is_of_time(metric):
        return _by_run(pairs, tested)
    if not math.isfinite(value_b - value_a):  # a ratio whose denominator is 0
        return replace(tested, not_tested=NO_VALUE)
    test = _test(pairs, resamples, seed)
    interval = shares_change_interval(changes(pairs), reach_of(pairs))
    tested = replace(tested, interval=interval, test=test)
    if any("judge" in result.details or "judge" in result.signature for result in (pairs.a, pairs.b)):
        tested = _corrected_by_judge(tested)
    if tested.interval is not None:
        low, high = metric.bounds
        test = tested.test
        within = tested.interval.within(low - high, high - low)
        tested = replace(tested, interval=agreeing_with_test(within, test.statistic, test.p_value))
    if pairs.gains_by_failing:
        # A gain that failures may have caused, by changing the other answers' scores, is not tested.
        return replace(tested, test=untested, not_tested=FAILED_AND_BETTER)
    has_worst = math.isfinite(metric.bounds[not metric.higher_is_better])
    if pairs.is_mean and not has_worst and _gains_by_unknown_failures(pairs, value_a, value_b):
        return replace(tested, test=untested, not_tested=FAILED_AND_UNBOUNDED)
    return tested


def _corrected_by_judge(tested: Tested) -> Tested:
    """Return what people would see of a difference that a judge sees."""
    from .judged import judge_correction

    judge = judge_correction(tested.pairs, *whole_change(tested.pairs), reach_of(tested.pairs))
    if judge is None:
        return tested
    if judge.not_tested:
        test = PairedTest(1.0, tested.difference, "")
        return replace(tested, judge=judge, test=test, not_tested=judge.not_tested)
    value_a, value_b = judge.values or (tested.value_a, tested.value_b)
    return replace(
        tested,
        value_a=value_a,
        value_b=value_b,
        # The intervals of the two runs are those of judged scores: `auepora show` has the corrected ones.
        interval_a=tested.interval_a if judge.values is None else None,
        interval_b=tested.interval_b if judge.values is None else None,
        interval=judge.interval(tested.interval, tested.difference),
        test=judge.test() or tested.test,
        judge=judge,
    )


def judge_notes(tested: Sequence[Tested]) -> list[str]:
    """Return how judged metrics were corrected; why one was not tested is not repeated here."""
    return [
        f"{one.pairs.a.name}: {one.judge.note}"
        for one in tested
        if one.judge is not None and not one.not_tested
    ]


def _test(pairs: Pairs, resamples: int, seed: int, levels: Sequence[float] = (LEVEL,)) -> PairedTest:
    rows_a, rows_b, clusters = pairs.used()
    metric = pairs.known
    if not pairs.is_mean:
        return paired_swap_test(
            rows_a,
            rows_b,
            metric.aggregate,
            clusters=clusters,
            of_sums=metric.of_sums,
            resamples=resamples,
            levels=levels,
            seed=seed,
        )
    gains = pairs.differences()[pairs.both]
    # McNemar's test takes pairs to be independent, which the samples of a cluster are not.
    if clusters is None and pairs.is_binary():
        test = mcnemar_exact(int((gains < 0).sum()), int((gains > 0).sum()))
        return test._replace(statistic=float(gains.mean()))
    return sign_flip_test(gains, clusters=clusters, resamples=resamples, levels=levels, seed=seed)


# Times are compared by whole runs.


def _by_run(pairs: Pairs, tested: Tested) -> Tested:
    """Return the test of times: all samples of a run share the state of the machine.

    So runs are counted, not samples: Welch's test on the values of the repeats. With one run each there is
    no test.
    """
    if len(pairs.repeats) < 2:
        return replace(tested, not_tested=ONE_RUN_EACH)
    # A call that failed has no time: its pair is left out on both sides.
    values = [pair for one in pairs.repeats if all(map(math.isfinite, pair := one.values()))]
    welch = welch_difference([a for a, _ in values], [b for _, b in values])
    if math.isnan(welch.p_value):
        return replace(tested, not_tested="fewer than two runs have times")
    value_a, value_b = (sum(pair[side] for pair in values) / len(values) for side in (0, 1))
    method = f"{welch.method}, {len(values)} runs each"
    return replace(
        tested,
        value_a=value_a,
        value_b=value_b,
        interval_a=None,  # those of all samples together are not of the mean of the runs
        interval_b=None,
        interval=None if welch.low == welch.high else Interval(welch.low, welch.high, method),
        test=PairedTest(welch.p_value, welch.difference, method),
        by_run=welch,
        not_tested=FAILED_AND_FASTER if _gains_by_unknown_failures(pairs, value_a, value_b) else "",
    )


def _gains_by_unknown_failures(pairs: Pairs, value_a: float, value_b: float) -> bool:
    """Return whether the better side has failed calls that, at their worst, would undo its gain."""
    higher = pairs.known.higher_is_better
    is_ahead = (value_b > value_a) == higher
    results = [one.b if is_ahead else one.a for one in pairs.repeats]
    if not any(result.if_failed for result in results):
        return False
    # A quantile can be known although some calls failed. The mean is not: its worst is unbounded.
    worst = [result.if_failed[not higher] if result.if_failed else result.value for result in results]
    known = [value for value in worst if value is not None]
    if len(known) < len(worst):
        return True
    mean, other = sum(known) / len(known), value_a if is_ahead else value_b
    return mean <= other if higher else mean >= other
