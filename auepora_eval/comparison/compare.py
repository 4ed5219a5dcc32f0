"""Compare two runs sample by sample: is one better, and is the difference significant?

A failed answer counts as the worst score of its metric: leaving it out would reward a system for crashing
on its hard questions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

import numpy as np

from ..core.display import number_or_null
from ..core.matching import gold_found, match_of
from ..core.types import (
    EvaluationRun,
    EvaluationSample,
    SystemOutputs,
    Target,
    TargetCategory,
    retrieved_ids,
)
from ..core.verdict import Verdict
from ..errors import PlanError, UnknownNameError, did_you_mean
from ..stats.intervals import MANY
from ..stats.significance import cliffs_delta, cohens_dz, odds_ratio
from ..store.pages import RunSamples
from ..store.storage import database_of
from .paired_tests import (
    FEW_TO_COMPARE,
    RESAMPLES,
    Tested,
    corrected,
    is_of_time,
    judge_notes,
    tested_all,
    times_by_run,
    whole_change,
)
from .pairing import (
    NEEDS_ITS_CLASS,
    Pairing,
    RunToRun,
    check_same_data,
    data_mismatches,
    each_repeated,
    pooled,
    question_of,
    run_to_run,
    signature_mismatch,
    single_id,
    snapshot_notes,
    stopping_notes,
    value_notes,
)
from .slices import SliceComparison, slice_comparisons

__all__ = ["Comparison", "MetricComparison", "check_same_data", "compare_runs"]

REGRESSIONS = 1_000  # kept of each metric
ONE_WAY = 0.85  # of the units that differ: a test takes it that the others could have gone as far
Runs = EvaluationRun | Sequence[EvaluationRun]
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


@dataclass(frozen=True)
class Effect:
    """The size of the difference. Effect sizes have the sign of `change`, the candidate minus the baseline.

    `bounds` is the range of the change if failed and unpaired samples had scored lowest, or highest.
    """

    change: float
    interval: Limits | None = None
    d: float | None = None  # Cohen's d_z: in standard deviations of the differences
    delta: float | None = None  # Cliff's delta
    odds_ratio: float | None = None
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

    Calls on samples that the metric does not apply to are not counted.
    """

    failed_baseline: int = 0
    failed_candidate: int = 0
    unmatched: int = 0
    calls_baseline: int = 0
    calls_candidate: int = 0


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
    def is_same_if_paired(self) -> bool:
        """Whether no pair differs, but some samples have a score in one run only."""
        differ = self.effect.wins + self.effect.losses > 0 or self.effect.change != 0
        return self.coverage.unmatched > 0 and not differ

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
    mismatches = data_mismatches([*listed_runs(baseline), *listed_runs(candidate)], allowed=allow_mismatch)
    spread = run_to_run(listed_runs(baseline), listed_runs(candidate))
    a, b = pooled(listed_runs(baseline), listed_runs(candidate))
    pairings, left_out = pairings_of(a, b, mismatches, allow_mismatch=allow_mismatch)
    tested = tested_all(pairings, seed=seed, resamples=resamples)
    # Before the correction: times of one run each are not tested and must not enlarge the family.
    tested = times_by_run(tested, listed_runs(baseline), listed_runs(candidate))
    tested, adjusted = corrected(tested, alpha)
    margins = margin_tests(tested, margin, alpha)
    tests = sum(p is not None for p in adjusted)
    metrics = [
        metric_comparison(one, p, alpha, tests, margins.get(one.pairing.a.name), spread)
        for one, p in zip(tested, adjusted, strict=True)
    ]
    repeats = len(listed_runs(baseline))
    slices: list[SliceComparison] = []
    notes: list[str] = []
    if by:
        sliced_samples = a.samples if samples is None else each_repeated(samples, repeats)
        # Times are tested by whole runs, and a slice is only part of one.
        sliced = [one for one in pairings if not is_of_time(one.known)]
        slices, notes = slice_comparisons(
            sliced, by, sliced_samples, alpha=alpha, seed=seed, resamples=resamples, repeats=repeats
        )
    notes = [
        *judge_notes(tested),
        *value_notes((one.name for one in metrics), *listed_runs(baseline), *listed_runs(candidate)),
        *not_tested_notes(metrics),
        *cluster_notes(metrics, alpha, repeats),
        *notes,
    ]
    return Comparison(
        a.evaluation_id,
        b.evaluation_id,
        a.system_name,
        b.system_name,
        alpha,
        metrics,
        left_out,
        [*snapshot_notes(a, b), *stopping_notes(*listed_runs(baseline), *listed_runs(candidate)), *notes],
        slices,
        mismatches,
        repeats,
    )


def pairings_of(
    a: EvaluationRun, b: EvaluationRun, mismatches: list[str], *, allow_mismatch: bool
) -> tuple[list[Pairing], dict[str, str]]:
    """The metrics that both runs have, paired; and why the others are not. What does not fit is noted."""
    ours, theirs = ({result.name: result for result in run.results} for run in (a, b))
    left_out = {name: f"only {a.evaluation_id} has it" for name in ours if name not in theirs}
    left_out |= {name: f"only {b.evaluation_id} has it" for name in theirs if name not in ours}
    # Later entries replace earlier ones: of a sample in both runs, the baseline's is used.
    samples = {sample.sample_id: sample for run in (b, a) for sample in run.samples}
    pairings = []
    for name in (name for name in ours if name in theirs):
        other, fix = signature_mismatch(ours[name], theirs[name])
        if other and not allow_mismatch:
            left_out[name] = f"{other} ({fix})"
            continue
        if other:
            mismatches.append(f"{name}: {other}")
        pairing = Pairing(samples, ours[name], theirs[name])
        if pairing.scored:
            pairings.append(pairing)
        else:
            left_out[name] = "no sample was scored in both" if pairing.metric else NEEDS_ITS_CLASS
    return pairings, left_out


def metric_comparison(
    tested: Tested,
    p_adjusted: float | None,
    alpha: float,
    tests: int,
    margin: MarginTest | None = None,
    spread: Mapping[str, RunToRun] | None = None,
) -> MetricComparison:
    """Return the comparison of one metric, given how many metrics were tested together with it."""
    pairing, metric = tested.pairing, tested.pairing.known
    margin = margin or MarginTest()
    verdict = _verdict(tested, p_adjusted, alpha, within=bool(margin.within))
    # The level that Holm applies to the smallest p-value, so that power is not overstated.
    level, name = alpha / max(1, tests), pairing.a.name
    moved = (spread or {}).get(name)
    repeats = 1 if moved is None else len(moved.baseline)
    lost = _regressions(pairing, repeats)
    is_open = verdict is Verdict.INCONCLUSIVE
    if is_open and margin.size is not None:
        needed = _samples_for_margin(tested, margin.size, alpha, repeats)
        margin = replace(margin, samples_needed=needed)
    return MetricComparison(
        name=name,
        target=pairing.a.target,
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
            clusters=None if pairing.used()[2] is None else tested.units,
            clusters_worth=tested.clusters_worth,
        ),
        effect=_effect(tested),
        margin=margin,
        power=_power(tested, level, repeats if is_open else None),
        coverage=PairCoverage(
            pairing.a.coverage.failed,
            pairing.b.coverage.failed,
            pairing.unmatched,
            pairing.first.coverage().concerned,
            pairing.second.coverage().concerned,
        ),
        baseline_interval=_limits(tested.interval_a),
        candidate_interval=_limits(tested.interval_b),
        regressions=tuple(lost[:REGRESSIONS]),
        questions_lost=len(lost),
        run_to_run=moved,
        rests_on=_few_units(tested) if verdict.is_significant and not margin.within else None,
        is_share=pairing.a.is_share and pairing.b.is_share,
    )


def _few_units(tested: Tested) -> FewUnits | None:
    """Return the units that a verdict rests on, where a test cannot see how large a rare change would be.

    Scores of 0 and 1 are exempt: no change is larger than those that were seen.
    """
    if tested.by_run is not None or tested.pairing.is_binary():
        return None
    units, differs = whole_change(tested.pairing)
    numbers = units.numbers[differs]
    count, most = len(numbers), max(int((numbers > 0).sum()), int((numbers < 0).sum()))
    if not 0 < count < MANY or most < ONE_WAY * count:
        return None
    low, high = tested.pairing.known.bounds
    if not math.isfinite(high - low):
        return FewUnits(count, tested.units)
    return FewUnits(count, tested.units, high - low, math.floor((high - low) / abs(tested.difference)))


def _effect(tested: Tested) -> Effect:
    pairing = tested.pairing
    gains = pairing.differences()[pairing.both] * (1 if pairing.known.higher_is_better else -1)
    wins, losses = int((gains > 0).sum()), int((gains < 0).sum())
    rows_a, rows_b, _ = pairing.used()
    a, b = rows_a[:, 0], rows_b[:, 0]
    return Effect(
        change=tested.difference,
        interval=_limits(tested.interval),
        d=number_or_null(cohens_dz(b - a)) if pairing.is_mean else None,
        delta=number_or_null(cliffs_delta(a, b)),
        odds_ratio=number_or_null(odds_ratio(a, b)) if pairing.is_binary() else None,
        bounds=pairing.difference_bounds(),
        wins=wins,
        ties=len(gains) - wins - losses,
        losses=losses,
    )


def _power(tested: Tested, level: float, repeats: int | None) -> Power:
    """Return what can be detected; with `repeats`, also how many samples the observed change would take."""
    detectable = tested.detectable(level)
    too_few = detectable is None and tested.spread() is not None
    if repeats is None:
        return Power(detectable, too_few)
    return Power(detectable, too_few, tested.samples_to_show(tested.difference, level, repeats))


def listed_runs(runs: Runs) -> list[EvaluationRun]:
    """Return the repeats of one side as a list; PlanError if there is none."""
    repeats = [runs] if isinstance(runs, EvaluationRun) else list(runs)
    if not repeats:
        raise PlanError("There is no run to compare. Name a baseline and a candidate.")
    return repeats


def not_tested_notes(metrics: Iterable[MetricComparison]) -> list[str]:
    """Name the metrics that could not be tested, with the reason."""
    names: dict[str, list[str]] = {}
    for metric in metrics:
        if metric.test.not_tested and metric.verdict is Verdict.INCONCLUSIVE:
            names.setdefault(metric.test.not_tested, []).append(metric.name)
    return [f"{', '.join(each)}: {why}" for why, each in names.items()]


def cluster_notes(metrics: Sequence[MetricComparison], alpha: float, repeats: int = 1) -> list[str]:
    """Which metrics rest on fewer than ten clusters, and what that means; of repeats a question is one."""
    names_by_clusters: dict[tuple[int, int, float, bool], list[str]] = {}
    for metric in metrics:
        if metric.test.not_tested or metric.verdict is Verdict.SAME or metric.test.clusters is None:
            continue
        worth = metric.test.clusters if metric.test.clusters_worth is None else metric.test.clusters_worth
        if worth < FEW_TO_COMPARE:
            is_inconclusive = metric.verdict is Verdict.INCONCLUSIVE
            names_by_clusters.setdefault(
                (metric.test.clusters, metric.pairs, worth, is_inconclusive), []
            ).append(metric.name)
    notes = []
    for (clusters, pairs, worth, is_inconclusive), names in names_by_clusters.items():
        which = "all metrics" if len(names) == len(metrics) > 1 else ", ".join(names)
        unit = "cluster" if repeats == 1 else "question"
        words = f"{which}: the {pairs} pairs come in {clusters} {unit}{'s' * (clusters > 1)}"
        # Sizes that differ a little cost next to no information and are not worth a remark.
        if worth < 0.9 * clusters:
            words += f", unequal in size, with the information of {worth:.1f}"
        words += ", and those of one count together"
        if not is_inconclusive:
            rest = "verdict rests" if len(names) == 1 else "verdicts rest"
            notes.append(f"{words}: the {rest} on {clusters} {unit}s")
            continue
        # The smallest two-sided p-value of sign flips: all clusters changed in the same direction.
        if 2.0 ** (1 - clusters) >= alpha:
            words += "; no test can be significant with this few"
        notes.append(f"{words}. More {unit}s would help, more samples of the same would not")
    return notes


def _verdict(tested: Tested, p_adjusted: float | None, alpha: float, *, within: bool) -> Verdict:
    if tested.pairing.is_same():
        return Verdict.SAME
    # Before the margin: a significant loss is reported as worse even if it is smaller than the margin.
    if p_adjusted is not None and p_adjusted < alpha and tested.difference != 0:
        return Verdict.of_gain(tested.gain)
    return Verdict.NO_WORSE if within else Verdict.INCONCLUSIVE


def margin_tests(tested: Sequence[Tested], margin: Margin, alpha: float) -> dict[str, MarginTest]:
    """The margin of each metric that has one, and whether a loss of it is ruled out.

    They are not corrected for each other: who asks for margins wants all of them kept, as a gate does, and
    a run that is worse by one of them is called no worse there at most alpha of the time.
    """
    if margin is None:
        return {}
    sizes = margin.values() if isinstance(margin, Mapping) else [margin]
    if any(not (value > 0 and math.isfinite(value)) for value in sizes):
        raise PlanError("a margin is a positive number, such as 0.02.")
    if isinstance(margin, Mapping):
        names = {one.pairing.a.name for one in tested}
        unknown = [name for name in margin if name not in names]
        if unknown:
            raise PlanError(f"a margin is given for {unknown[0]!r}, which is not compared. Check its name.")
        margins = dict(margin)
    else:
        # One number can be right for shares; seconds need one of their own.
        margins = {one.pairing.a.name: margin for one in tested if not one.pairing.known.unit}
    tests = {}
    for one in tested:
        size = margins.get(one.pairing.a.name)
        if size is not None:
            p_value, limit = one.margin_p(size), one.margin_limit(size, 1 - alpha)
            p = None if one.not_tested else p_value
            tests[one.pairing.a.name] = MarginTest(size, p, p_value < alpha / 2, limit)
    return tests


def _regressions(pairing: Pairing, repeats: int) -> list[Regression]:
    """The questions that lost, the worst first, each by the mean of its repeats."""
    losses = pairing.differences() * (-1 if pairing.known.higher_is_better else 1)
    ids, a, b = pairing.sample_ids, pairing.rows_a[:, 0], pairing.rows_b[:, 0]
    if repeats == 1:
        losses = np.where(losses > 0, losses, -1.0)  # NaN means no pair, which does not count as a loss
        order = np.argsort(-losses, kind="stable").tolist()
        return [Regression(ids[n], float(a[n]), float(b[n])) for n in order if losses[n] > 0]
    places_by_question: dict[str, list[int]] = {}
    for place in np.flatnonzero(pairing.both).tolist():
        places_by_question.setdefault(question_of(ids[place], repeats), []).append(place)
    losses_by_question = [
        (float(losses[places].mean()), max(places, key=lambda place: float(losses[place])), places)
        for places in places_by_question.values()
    ]
    return [
        Regression(ids[worst], float(a[places].mean()), float(b[places].mean()))
        for loss, worst, places in sorted(losses_by_question, key=lambda each: -each[0])
        if loss > 0
    ]


def _samples_for_margin(tested: Tested, margin: float, alpha: float, repeats: int) -> int | None:
    """Return how many samples would rule the margin out; None if the loss itself is too large for that."""
    needed = None if tested.gain <= -margin else tested.samples_to_rule_out(margin, alpha, repeats)
    questions = int(tested.pairing.both.sum()) / repeats
    # The estimate assumes no difference. If there are that many samples already, more are the wrong advice.
    return None if needed is None or needed <= questions else needed


def _limits(interval: tuple[float, float, str] | None) -> Limits | None:
    return None if interval is None else (interval[0], interval[1])


# The samples that the candidate lost most on, with what was asked and what both systems said.


_FINDING = (TargetCategory.RETRIEVAL_RELEVANCE, TargetCategory.RETRIEVAL_ACCURACY)
_NO_QUALITY = (TargetCategory.LATENCY, TargetCategory.DIVERSITY)


class _Targeted(Protocol):
    @property
    def target(self) -> Target: ...


One = TypeVar("One", bound=_Targeted)


@dataclass(frozen=True)
class Text:
    """What was asked, the answer (None where there was none), the documents found, the right ones of these.

    `error` is why there is no answer, where the call failed.
    """

    query: str
    answer: str | None
    documents: tuple[str, ...] | None = None
    right: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class LostSample:
    """One sample with both answers and both scores; a text that is not known is None.

    `of_documents` marks a metric about the retrieved documents, which are named by id, best first;
    `right` are those of them that are gold. An `error` is why there is neither. `lost_in_all` counts the
    samples that lost on this metric, shown or not.
    """

    metric: str
    unit: str
    sample_id: str
    query: str | None
    baseline_answer: str | None
    candidate_answer: str | None
    baseline: float
    candidate: float
    of_documents: bool = False
    baseline_documents: tuple[str, ...] | None = None
    candidate_documents: tuple[str, ...] | None = None
    right: tuple[str, ...] = ()
    baseline_error: str | None = None
    candidate_error: str | None = None
    lost_in_all: int = 0


def quality_first(metrics: Sequence[One]) -> list[One]:
    """Metrics of how good answers and documents are, in their order; times and variety after them."""
    return sorted(metrics, key=lambda metric: metric.target in _NO_QUALITY)


def lost_most(comparison: Comparison) -> MetricComparison | None:
    """Return the quality metric to look at first: a significantly worse one, or else one that lost any."""
    losing = [one for one in comparison.metrics if one.regressions and one.target not in _NO_QUALITY]
    worse = [metric for metric in losing if metric.verdict is Verdict.WORSE]
    return next(iter([*worse, *losing]), None)


def lost_samples(
    metric: MetricComparison, baseline: Mapping[str, Text], candidate: Mapping[str, Text], count: int
) -> list[LostSample]:
    """The first `count` regressions of a metric with their texts, as far as these are known."""
    samples = []
    for regression in metric.regressions[:count]:
        ours, theirs = baseline.get(regression.sample_id), candidate.get(regression.sample_id)
        either = ours or theirs
        samples.append(
            LostSample(
                metric.name,
                metric.unit,
                regression.sample_id,
                either.query if either else None,
                ours.answer if ours else None,
                theirs.answer if theirs else None,
                regression.baseline,
                regression.candidate,
                metric.target in _FINDING,
                ours.documents if ours else None,
                theirs.documents if theirs else None,
                tuple(doc_id for each in (ours, theirs) if each for doc_id in each.right),
                ours.error if ours else None,
                theirs.error if theirs else None,
                metric.questions_lost,
            )
        )
    return samples


def stored_texts(results_file: Path, ids: Iterable[str]) -> dict[str, Text]:
    """The texts of some samples of a stored run, by its results file; the others are passed over."""
    if not database_of(results_file).exists():
        return {}  # a document alone, such as a baseline, has no texts
    with RunSamples(results_file) as run:
        match = match_of(run.run)
        return {name: _text(*pair, match) for name, pair in run.named(ids).items()}


def stored_texts_of_repeats(results_files: Sequence[Path], ids: Iterable[str]) -> dict[str, Text]:
    """The same of the repeats of a system, by the ids that the samples have in the pooled run."""
    pooled = list(ids)
    texts: dict[str, Text] = {}
    for number, results_file in enumerate(results_files):
        names = {single: name for name in pooled if (single := single_id(name, number)) is not None}
        texts |= {names[single]: text for single, text in stored_texts(results_file, names).items()}
    return texts


def _text(sample: EvaluationSample, output: SystemOutputs, match: str) -> Text:
    if output.error is not None:
        return Text(sample.query, None, error=f"{output.error.type}: {output.error.message}")
    documents = tuple(retrieved_ids(output.retrieved))
    is_gold, _ = gold_found(sample, output, match)
    return Text(sample.query, output.response.text, documents, tuple(compress(documents, is_gold)))
