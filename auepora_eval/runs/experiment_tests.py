"""The variants of an experiment tested against each other, pair by pair and metric by metric.

On the same samples: sign flips (McNemar for 0/1 scores), or the paired t-test if the experiment asks for it.
On split samples: Welch's t-test, by clusters where there are any. A failed answer counts as the worst one.
Times are not tested: variants run one after the other, and a machine is not as fast in every run.
The p-values of the primary metric are corrected over its pairs; the secondary metrics are a family of their
own, and so are those that only guard rails look at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from statistics import NormalDist

from ..core.metrics_base import SampleMetric
from ..core.types import EvaluationRun
from ..io.experiment_config import PAIRED, Experiment
from ..metrics.parse import parse_metric
from ..stats.classic_tests import paired_t_test
from ..stats.correction import holm
from ..stats.effect_size import cohens_d, cohens_dz
from ..stats.power import sample_size
from ..stats.standard_error import mean_error
from ..stats.unpaired import (
    UnpairedTest,
    normal_difference,
    samples_per_arm,
    two_shares_margin_p,
    welch_difference,
)
from .compare import pairings_of
from .experiment_sides import Side
from .mismatch import refuse_other_data, signature_mismatch
from .paired_tests import RESAMPLES, Tested, is_of_time, tested_all

_Z95 = NormalDist().inv_cdf(0.975)
ONE_RUN_EACH = "not tested: times of one run each"


def _no_telling(margin: float) -> float:
    return 1.0


@dataclass(frozen=True)
class PairTest:
    """One metric of two variants. `difference` is second minus first; `better` names the better, if sure.

    `effect_size` is Cohen's d, in standard deviations of the scores; `effect_size_paired` is d_z, in those of
    the differences. `samples_needed` is how many samples a variant takes to show a difference of this size.
    The p-values are None where nothing was tested; `untold` says why, where that is not for times.
    """

    metric: str
    first: str
    second: str
    difference: float
    interval: tuple[float, float] | None
    p_value: float | None
    p_adjusted: float | None
    effect_size: float | None
    effect_size_paired: float | None
    error: float
    freedom: float
    samples: tuple[int, int]
    higher_is_better: bool
    test: str
    samples_needed: int | None = None
    better: str | None = None
    untold: str = ""
    # The p-value of "the second is worse than the first by this margin or more".
    margin_p: Callable[[float], float] = field(default=_no_telling, compare=False, repr=False)

    @property
    def tested(self) -> bool:
        """Whether there is a test: times of one run each have none, nor what failures leave untold."""
        return not self.of_times and not self.untold

    @property
    def of_times(self) -> bool:
        return self.test == ONE_RUN_EACH


def pair_tests(
    experiment: Experiment,
    runs: Mapping[str, EvaluationRun],
    primary: str,
    sides: Mapping[str, Mapping[str, Side]],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> list[PairTest]:
    """Every pair of variants on every metric; those of the primary metric first.

    `sides` has what each metric says of each variant.
    """
    if experiment.assignment == PAIRED:
        refuse_other_data(list(runs.values()))
    timed = {
        name for name, of_variants in sides.items() if is_of_time(next(iter(of_variants.values())).metric)
    }
    lasting = {
        name: replace(run, results=[result for result in run.results if result.name not in timed])
        for name, run in runs.items()
    }
    found: list[PairTest] = []
    for first, second in combinations(runs, 2):
        names, pair = (first, second), (lasting[first], lasting[second])
        found += [_untested(names, sides[metric][first], sides[metric][second]) for metric in sorted(timed)]
        if experiment.assignment == PAIRED:
            by_t = experiment.statistical_test == "t_test"
            found += _paired(names, pair, by_t=by_t, seed=seed, resamples=resamples)
        else:
            found += _split(names, pair, sides, seed=seed)
    secondary = {parse_metric(name).name for name in experiment.secondary_metrics} - {primary}
    families: list[list[PairTest]] = [[], [], []]
    for one in found:
        families[0 if one.metric == primary else 1 if one.metric in secondary else 2].append(one)
    return [one for family in families for one in _corrected(family, experiment)]


def _corrected(family: Sequence[PairTest], experiment: Experiment) -> list[PairTest]:
    tested = [one for one in family if one.tested]
    adjusted = holm([1.0 if one.p_value is None else one.p_value for one in tested])
    level = experiment.alpha / max(1, len(tested))
    return [
        *(
            replace(
                one,
                p_adjusted=p,
                better=_better(one) if p < experiment.alpha else None,
                samples_needed=None if p < experiment.alpha else _needed(one, experiment, level),
            )
            for one, p in zip(tested, adjusted, strict=True)
        ),
        *(one for one in family if not one.tested),
    ]


def _better(one: PairTest) -> str | None:
    if not one.difference:
        return None
    return one.second if (one.difference > 0) == one.higher_is_better else one.first


def _needed(one: PairTest, experiment: Experiment, level: float) -> int | None:
    """How many samples each variant needs for this difference, at the level that Holm asks of the best."""
    if experiment.assignment == PAIRED:
        if not one.error > 0 or not one.difference:
            return None
        sd = one.error * math.sqrt(one.samples[0])
        return sample_size(one.difference, sd, alpha=level, power=experiment.power, by="z")
    if one.effect_size is None:
        return None
    return samples_per_arm(one.effect_size, alpha=level, power=experiment.power)


def _paired(
    names: tuple[str, str],
    runs: tuple[EvaluationRun, EvaluationRun],
    *,
    by_t: bool,
    seed: int,
    resamples: int,
) -> list[PairTest]:
    pairings, _ = pairings_of(*runs, [], allow_mismatch=False)
    return [
        _of_pairs(names, tested, by_t=by_t) for tested in tested_all(pairings, seed=seed, resamples=resamples)
    ]


def _of_pairs(names: tuple[str, str], tested: Tested, *, by_t: bool) -> PairTest:
    pairing = tested.pairing
    rows_a, rows_b, clusters = pairing.used()
    a, b = rows_a[:, 0], rows_b[:, 0]
    test, freedom = tested.test, math.inf
    if pairing.is_mean:
        freedom = mean_error(b - a, clusters=clusters).freedom
        test = paired_t_test(a, b, clusters=clusters) if by_t else test
    return PairTest(
        metric=pairing.a.name,
        first=names[0],
        second=names[1],
        difference=tested.difference,
        interval=None if tested.interval is None else (tested.interval.low, tested.interval.high),
        p_value=None if tested.untold else _finite(test.p_value),
        p_adjusted=None,
        effect_size=_finite(cohens_d(a, b)) if pairing.is_mean else None,
        effect_size_paired=_finite(cohens_dz(b - a)) if pairing.is_mean else None,
        error=tested.error,
        freedom=freedom,
        samples=(len(a), len(b)),
        higher_is_better=pairing.known.higher_is_better,
        test=test.method,
        untold=tested.untold,
        margin_p=tested.margin_p,
    )


def _untested(names: tuple[str, str], a: Side, b: Side) -> PairTest:
    """Times: what they are, and no test."""
    return PairTest(
        metric=a.metric.name,
        first=names[0],
        second=names[1],
        difference=b.value - a.value,
        interval=None,
        p_value=None,
        p_adjusted=None,
        effect_size=None,
        effect_size_paired=None,
        error=math.nan,
        freedom=0.0,
        samples=(len(a.rows), len(b.rows)),
        higher_is_better=a.metric.higher_is_better,
        test=ONE_RUN_EACH,
    )


def _split(
    names: tuple[str, str],
    runs: tuple[EvaluationRun, EvaluationRun],
    sides: Mapping[str, Mapping[str, Side]],
    *,
    seed: int,
) -> list[PairTest]:
    found = []
    for result in runs[0].results:
        signature_mismatch(result, runs[1].result(result.name), allowed=False)
        a, b = (sides[result.name][name] for name in names)
        found.append(_of_sides(names, a, b, seed=seed))
    return found


def _of_sides(names: tuple[str, str], a: Side, b: Side, *, seed: int) -> PairTest:
    metric = a.metric
    is_mean = type(metric).aggregate is SampleMetric.aggregate
    if is_mean:
        test = welch_difference(a.rows[:, 0], b.rows[:, 0], clusters_a=a.clusters, clusters_b=b.clusters)
    else:
        test = _of_aggregates(a, b, seed)
    known = math.isfinite(test.low) and math.isfinite(test.high) and test.low < test.high
    return PairTest(
        metric=metric.name,
        first=names[0],
        second=names[1],
        difference=test.difference,
        interval=(test.low, test.high) if known else None,
        p_value=_finite(test.p_value),
        p_adjusted=None,
        effect_size=_finite(cohens_d(a.rows[:, 0], b.rows[:, 0])) if is_mean else None,
        effect_size_paired=None,
        error=test.error,
        freedom=test.freedom,
        samples=(len(a.rows), len(b.rows)),
        higher_is_better=metric.higher_is_better,
        test=test.method,
        margin_p=lambda margin: _split_margin_p(test, a, b, margin),
    )


def _split_margin_p(test: UnpairedTest, a: Side, b: Side, margin: float) -> float:
    from scipy.stats import t

    metric = a.metric
    gain = test.difference if metric.higher_is_better else -test.difference
    # What was lost may be on both sides, unseen, so the bound is that of the smaller one.
    most = metric.bounds[1] - metric.bounds[0]
    share = (max(gain, 0.0) + margin) / most if math.isfinite(most) else 0.0
    unseen = math.exp(-min(a.units, b.units) * share)
    if test.error == 0.0:
        return unseen if gain + margin > 0 else 1.0
    if not test.error > 0 or not test.freedom > 0:
        return 1.0
    if _is_share(a) and _is_share(b) and margin < 1:
        hits = [int(side.rows[:, 0].sum()) for side in (a, b)]
        if not metric.higher_is_better:
            hits = [len(side.rows) - count for side, count in zip((a, b), hits, strict=True)]
        return two_shares_margin_p(hits[0], len(a.rows), hits[1], len(b.rows), margin)
    by_t = float(t.sf((gain + margin) / test.error, test.freedom))
    return max(by_t, unseen) if math.isfinite(most) else by_t


def _is_share(side: Side) -> bool:
    """Whether the value is a share of samples, each by itself: the mean of scores that are 0 or 1."""
    scores = side.rows[:, 0]
    is_mean = type(side.metric).aggregate is SampleMetric.aggregate
    return is_mean and side.clusters is None and bool(((scores == 0.0) | (scores == 1.0)).all())


def _of_aggregates(a: Side, b: Side, seed: int) -> UnpairedTest:
    """A quantile or a corpus score has no samples to average: its error is taken from its interval."""
    errors = []
    for side in (a, b):
        interval = side.metric.interval(side.rows, side.clusters, seed=seed) if len(side.rows) else None
        errors.append(math.nan if interval is None else (interval.high - interval.low) / (2 * _Z95))
    return normal_difference(a.value, errors[0], b.value, errors[1])


def _finite(value: float) -> float | None:
    """None for what JSON cannot say."""
    return value if math.isfinite(value) else None
