"""Compare two runs sample by sample: is one better, and is the difference significant?

A failed answer counts as the worst score of its metric: leaving it out would reward a system for crashing
on its hard questions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from ..core.display import number_or_null
from ..core.types import EvaluationSample, MetricResult, Target
from ..core.verdict import Verdict
from ..errors import PlanError, UnknownNameError, did_you_mean
from ..stats.intervals import MANY
from ..stats.significance import LEVEL, cohens_dz
from .checks import data_mismatches, snapshot_notes, stopping_notes, value_notes
from .paired_tests import (
    FEW_TO_COMPARE,
    RESAMPLES,
    Tested,
    corrected,
    is_of_time,
    judge_notes,
    tested_pairs,
    whole_change,
)
from .pairs import LAST_BITS, Pairs, Runs, RunToRun, ids_of, listed_runs, pairs_of
from .slices import SliceComparison, slice_comparisons

REGRESSIONS = 1_000  # kept of each metric
ONE_WAY = 0.85  # of the units that differ: a test takes it that the others could have gone as far
Margin = float | Mapping[str, float] | None
Limits = tuple[float, float]


@dataclass(frozen=True)
class Regression:
    """A sample on which the candidate scored lower; a failed answer has the worst score of the metric.

    If a question was asked several times, the scores are means, and the id is that of the repeat with the
    largest loss.
    """

    sample_id: str
    baseline: float
    candidate: float


@dataclass(frozen=True)
class SignificanceTest:
    """The test for a difference. The p-values are None where nothing was tested: `not_tested` says why.

    `clusters` is the number of clusters, if samples come in clusters, and `clusters_worth` the number of
    clusters of equal size with the same information.
    """

    p: float | None = None
    p_adjusted: float | None = None  # by Holm, over all metrics that were compared
    method: str = ""
    not_tested: str = ""
    clusters: int | None = None
    clusters_worth: float | None = None
    smallest_p: float = 0.0  # that this number of samples can have, however much they differ


@dataclass(frozen=True)
class Effect:
    """The size of the difference. Effect sizes have the sign of `change`, the candidate minus the baseline.

    `bounds` is the range of the change if failed and unpaired samples had scored lowest, or highest.
    """

    change: float
    interval: Limits | None = None
    d: float | None = None  # Cohen's d_z: in standard deviations of the differences
    bounds: Limits | None = None
    wins: int = 0
    ties: int = 0
    losses: int = 0


@dataclass(frozen=True)
class MarginTest:
    """Whether a loss of the margin is ruled out; every field is None where no margin was given.

    It is if `limit`, the lower end of a 95% interval of the gain (at an alpha of 0.05), lies above minus the
    margin, and so if the one-sided `p` is below alpha / 2. A loss that no sample showed may be as large as
    the scale of the metric, so the limit can lie below the interval of the change. `samples_needed` is the
    number of samples that would rule the loss out if there were no difference.
    """

    size: float | None = None
    p: float | None = None
    within: bool | None = None
    limit: float | None = None
    samples_needed: int | None = None


@dataclass(frozen=True)
class Power:
    """What this number of samples can detect, with 80% power.

    `detectable` is None, with `too_few`, if not even the largest difference would be detected.
    `samples_needed` is the number of samples that would detect a difference of the observed size.
    """

    detectable: float | None = None
    too_few: bool = False
    samples_needed: int | None = None


@dataclass(frozen=True)
class PairCoverage:
    """How many samples were measured: calls and failures of either run, and scores without a partner.

    `unmeasured` are answers that the metric could not score, such as failed verdicts of a judge. Calls on
    samples that the metric does not apply to are not counted.
    """

    failed_baseline: int = 0
    failed_candidate: int = 0
    unmatched: int = 0
    calls_baseline: int = 0
    calls_candidate: int = 0
    unmeasured_baseline: int = 0
    unmeasured_candidate: int = 0

    @property
    def unmeasured(self) -> int:
        """How many scores of both runs the metric failed to compute."""
        return self.unmeasured_baseline + self.unmeasured_candidate


class FewUnits(NamedTuple):
    """What a significant verdict rests on, if few units differ and almost all go one way.

    A change the other way, of size `undone_by` in one of `one_of` units, would undo the difference, and this
    number of units need not show one. It is None for a metric without bounds.
    """

    differ: int
    units: int
    undone_by: float | None = None
    one_of: int | None = None


@dataclass(frozen=True)
class MetricComparison:
    """One metric in two runs: the values, the verdict and what it is based on.

    `regressions` are the samples that lost most, worst first. `questions_lost` counts every question that
    lost, and a question that was asked several times once.
    """

    name: str
    target: Target
    higher_is_better: bool
    unit: str
    verdict: Verdict
    baseline: float
    candidate: float
    test: SignificanceTest
    effect: Effect
    margin: MarginTest = MarginTest()
    power: Power = Power()
    coverage: PairCoverage = PairCoverage()
    baseline_interval: Limits | None = None
    candidate_interval: Limits | None = None
    regressions: tuple[Regression, ...] = ()
    questions_lost: int = 0
    run_to_run: RunToRun | None = None
    rests_on: FewUnits | None = None
    is_share: bool = True  # both values are between 0 and 1

    @property
    def pairs(self) -> int:
        """How many samples were paired."""
        return self.effect.wins + self.effect.ties + self.effect.losses

    @property
    def differs(self) -> bool:
        """Whether any pair differs. The last bits of a sum do not count."""
        return self.effect.wins + self.effect.losses > 0 or abs(self.effect.change) > LAST_BITS

    @property
    def is_same_if_paired(self) -> bool:
        """Whether no pair differs, but some samples have a score in one run only."""
        return self.coverage.unmatched > 0 and not self.differs

    @property
    def gain(self) -> float:
        """The change with the sign of "better"."""
        return self.effect.change if self.higher_is_better else -self.effect.change


@dataclass(frozen=True)
class Comparison:
    """Two runs on the same samples, metric by metric; what could not be compared, with the reason."""

    baseline_id: str
    candidate_id: str
    baseline_system: str
    candidate_system: str
    alpha: float
    metrics: list[MetricComparison]
    not_compared: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    slices: list[SliceComparison] = field(default_factory=list)
    mismatches: list[str] = field(default_factory=list)
    repeats: int = 1

    def __getitem__(self, name: str) -> MetricComparison:
        for metric in self.metrics:
            if metric.name == name:
                return metric
        names = [metric.name for metric in self.metrics]
        hint = did_you_mean(name, names, f"There are {', '.join(names)}.")
        raise UnknownNameError(f"{name!r} is not compared. {hint}")

    def with_verdict(self, verdict: Verdict) -> list[MetricComparison]:
        """Return the metrics with this verdict."""
        return [metric for metric in self.metrics if metric.verdict == verdict]

    @property
    def counts(self) -> dict[Verdict, int]:
        """Return how many metrics have each verdict that occurs."""
        return {each: len(found) for each in Verdict if (found := self.with_verdict(each))}

    def counts_in_words(self) -> str:
        """Return the counts as "4 better, 3 inconclusive"; "" without metrics."""
        return ", ".join(f"{count} {verdict}" for verdict, count in self.counts.items())


def compare_runs(
    baseline: Runs,
    candidate: Runs,
    *,
    alpha: float = 0.05,
    seed: int = 0,
    margin: Margin = None,
    by: Sequence[str] = (),
    samples: Iterable[EvaluationSample] | None = None,
    resamples: int = RESAMPLES,
    allow_mismatch: bool = False,
) -> Comparison:
    """Compare two runs of the same dataset on every metric that both have.

    Several runs of one system are repeats: give them as a list on either side, equally many. `margin` is how
    much worse would not matter: one number for all metrics without a unit, or one by name. `by` names labels
    or metadata fields to slice by, which are those of `samples`, or of the runs' own.
    """
    a, b = listed_runs(baseline), listed_runs(candidate)
    mismatches = data_mismatches([*a, *b], allowed=allow_mismatch)
    every, left_out = pairs_of(a, b, mismatches, allow_mismatch=allow_mismatch)
    family = [tested_pairs(pairs, seed=seed, resamples=resamples) for pairs in every]
    metrics, tested = compared_family(family, margin, alpha)
    # Times are tested by whole runs, and a slice is only part of one.
    sliced = [pairs for pairs in every if not is_of_time(pairs.known)]
    of_slices = a[0].samples if samples is None else samples
    slices, slice_notes = slice_comparisons(
        sliced, by, of_slices, alpha=alpha, seed=seed, resamples=resamples
    )
    notes = [
        *snapshot_notes(a[0], b[0]),
        *stopping_notes(*a, *b),
        *judge_notes(tested),
        *value_notes((one.name for one in metrics), *a, *b),
        *cluster_notes(metrics, len(a)),
        *slice_notes,
    ]
    systems = (ids_of(a), ids_of(b), a[0].system_name, b[0].system_name)
    return Comparison(*systems, alpha, metrics, left_out, notes, slices, mismatches, len(a))


def compare_results(a: MetricResult, b: MetricResult) -> MetricComparison:
    """Compare two results of one metric on the same samples."""
    tested = tested_pairs(Pairs({}, a, b), seed=0, resamples=RESAMPLES)
    return compared_family([tested], None, 0.05)[0][0]


def compared_family(
    family: Sequence[Tested], margin: Margin, alpha: float
) -> tuple[list[MetricComparison], list[Tested]]:
    """Return the comparison of each metric, corrected for all that are tested together; and the tests."""
    # Times of one run each are not tested and do not enlarge the family.
    settled, adjusted = corrected(family, alpha)
    margins = margin_tests(settled, margin, alpha)
    tests = sum(p is not None for p in adjusted)
    pairs = zip(settled, adjusted, margins, strict=True)
    return [metric_comparison(one, p, alpha, tests, within) for one, p, within in pairs], settled


def metric_comparison(
    tested: Tested, p_adjusted: float | None, alpha: float, tests: int, margin: MarginTest
) -> MetricComparison:
    """Return the comparison of one metric, given how many metrics were tested together with it."""
    pairs, metric = tested.pairs, tested.pairs.known
    verdict = tested.verdict(p_adjusted, alpha, within=bool(margin.within))
    # The level that Holm applies to the smallest p-value, so that power is not overstated.
    level = alpha / max(1, tests)
    lost, questions_lost = _regressions(pairs)
    is_open = verdict is Verdict.INCONCLUSIVE
    # Not where the loss itself is too large to be ruled out.
    if margin.size is not None and not margin.within and tested.gain > -margin.size:
        needed = tested.samples_to_rule_out(margin.size, alpha)
        # It assumes no difference. If there are that many samples already, more are the wrong advice.
        if needed is not None and needed > tested.questions:
            margin = replace(margin, samples_needed=needed)
    detectable = tested.detectable(level)
    values_of_repeats = list(zip(*(one.values() for one in pairs.repeats), strict=True))
    return MetricComparison(
        name=pairs.name,
        target=pairs.a.target,
        higher_is_better=metric.higher_is_better,
        unit=metric.unit,
        verdict=verdict,
        baseline=tested.value_a,
        candidate=tested.value_b,
        test=SignificanceTest(
            p=None if p_adjusted is None else tested.test.p_value,
            p_adjusted=p_adjusted,
            method="" if tested.not_tested else tested.test.method,
            not_tested=tested.not_tested,
            clusters=None if pairs.used()[2] is None else tested.units,
            clusters_worth=tested.clusters_worth,
            smallest_p=tested.smallest_p,
        ),
        effect=_effect(tested),
        margin=margin,
        power=Power(
            detectable,
            too_few=detectable is None and tested.spread() is not None,
            samples_needed=tested.samples_to_show(tested.difference, level) if is_open else None,
        ),
        coverage=PairCoverage(
            *pairs.failures,
            pairs.unmatched,
            pairs.first.coverage().concerned,
            pairs.second.coverage().concerned,
            *pairs.unmeasured,
        ),
        baseline_interval=_limits(tested.interval_a),
        candidate_interval=_limits(tested.interval_b),
        regressions=lost,
        questions_lost=questions_lost,
        run_to_run=RunToRun(*values_of_repeats) if len(pairs.repeats) > 1 else None,
        rests_on=_few_units(tested) if verdict.is_significant and not margin.within else None,
        is_share=pairs.a.is_share and pairs.b.is_share,
    )


def _few_units(tested: Tested) -> FewUnits | None:
    """Return the units that a verdict rests on, where a test cannot see how large a rare change would be.

    Scores of 0 and 1 are exempt: no change is larger than those that were seen.
    """
    if tested.by_run is not None or tested.pairs.is_binary():
        return None
    units, differs = whole_change(tested.pairs)
    numbers = units.numbers[differs]
    count, most = len(numbers), max(int((numbers > 0).sum()), int((numbers < 0).sum()))
    if not 0 < count < MANY or most < ONE_WAY * count:
        return None
    low, high = tested.pairs.known.bounds
    if not math.isfinite(high - low):
        return FewUnits(count, tested.units)
    one_of = (high - low) / abs(tested.difference)
    # A change that more than this share of units make would have been seen: 95 times in 100.
    is_unseen = (1 - 1 / one_of) ** tested.units >= LEVEL
    return FewUnits(count, tested.units, high - low, math.floor(one_of)) if is_unseen else None


def _effect(tested: Tested) -> Effect:
    pairs = tested.pairs
    gains = pairs.differences()[pairs.both] * (1 if pairs.known.higher_is_better else -1)
    wins, losses = int((gains > 0).sum()), int((gains < 0).sum())
    return Effect(
        change=tested.difference,
        interval=_limits(tested.interval),
        d=number_or_null(cohens_dz(pairs.differences()[pairs.both])) if pairs.is_mean else None,
        bounds=pairs.difference_bounds(),
        wins=wins,
        ties=len(gains) - wins - losses,
        losses=losses,
    )


def cluster_notes(metrics: Sequence[MetricComparison], repeats: int = 1) -> list[str]:
    """Which metrics rest on fewer than ten clusters, and what that means; of repeats a question is one."""
    unit = "cluster" if repeats == 1 else "question"
    names: dict[str, list[str]] = {}
    for metric in metrics:
        count, worth = metric.test.clusters, metric.test.clusters_worth
        if metric.test.not_tested or metric.verdict is Verdict.SAME or count is None or worth is None:
            continue
        if worth < FEW_TO_COMPARE:
            # Sizes that differ a little cost next to no information and are not worth a remark.
            equal = f" (worth {worth:.1f} of equal size)" if worth < 0.9 * count else ""
            words = f"the {metric.pairs} pairs come in {count} {unit}{'s' * (count > 1)}{equal}"
            names.setdefault(words, []).append(metric.name)
    more = f"More {unit}s would help, more samples of the same would not"
    return [
        f"{', '.join(each)}: {words}, and those of one count together. {more}"
        for words, each in names.items()
    ]


def margin_tests(tested: Sequence[Tested], margin: Margin, alpha: float) -> list[MarginTest]:
    """Return the margin of each metric, if it has one, and whether a loss of it is ruled out.

    They are not corrected for each other: who asks for margins wants all of them kept, as a gate does, and
    a run that is worse by one of them is called no worse there at most alpha of the time.
    """
    sizes = margin.values() if isinstance(margin, Mapping) else [] if margin is None else [margin]
    if any(not (value > 0 and math.isfinite(value)) for value in sizes):
        raise PlanError("a margin is a positive number, such as 0.02.")
    if isinstance(margin, Mapping):
        margins = dict(margin)
        unknown = margins.keys() - {one.pairs.name for one in tested}
        if unknown:
            raise PlanError(f"a margin is given for {min(unknown)!r}, which is not compared. Check its name.")
    else:
        # One number can be right for shares; seconds need one of their own.
        names = [one.pairs.name for one in tested if not one.pairs.known.unit]
        margins = {} if margin is None else dict.fromkeys(names, margin)
    tests = []
    for one in tested:
        size = margins.get(one.pairs.name)
        if size is None:
            tests.append(MarginTest())
            continue
        estimate = one.margin_estimate(size)
        # The one-sided p-value of "worse by the margin or more", and the lower limit of a two-sided interval.
        p_value = 1.0 if estimate is None else estimate.p_below(-size)
        low, high = one.pairs.known.bounds
        # No loss is larger than the scale.
        limit = None if estimate is None else max(float(estimate.limits(1 - alpha)[0]), low - high)
        tests.append(MarginTest(size, None if one.not_tested else p_value, p_value < alpha / 2, limit))
    return tests


def _regressions(pairs: Pairs) -> tuple[tuple[Regression, ...], int]:
    """Return the questions that lost most, each by the mean of its repeats, and how many lost at all."""
    losses = pairs.differences() * (-1 if pairs.known.higher_is_better else 1)
    ids, a, b = pairs.sample_ids, pairs.rows_a[:, 0], pairs.rows_b[:, 0]
    if len(pairs.repeats) == 1:
        losses = np.where(losses > 0, losses, -1.0)  # NaN means no pair, which does not count as a loss
        order = np.argsort(-losses, kind="stable")
        count = int((losses > 0).sum())
        shown = order[: min(count, REGRESSIONS)].tolist()
        return tuple(Regression(ids[n], float(a[n]), float(b[n])) for n in shown), count
    places_by_question: dict[str, list[int]] = {}
    for place in np.flatnonzero(pairs.both).tolist():
        places_by_question.setdefault(pairs.questions[place], []).append(place)
    means = ((float(losses[places].mean()), places) for places in places_by_question.values())
    lost = sorted((each for each in means if each[0] > 0), key=lambda each: -each[0])
    shown = [
        (places, max(places, key=lambda place: float(losses[place]))) for _, places in lost[:REGRESSIONS]
    ]
    return tuple(
        Regression(ids[worst], float(a[places].mean()), float(b[places].mean())) for places, worst in shown
    ), len(lost)


def _limits(interval: tuple[float, float, str] | None) -> Limits | None:
    return None if interval is None else (interval[0], interval[1])
