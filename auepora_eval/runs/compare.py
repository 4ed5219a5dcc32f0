"""Is one run better than another, and can the data tell?

Runs are compared sample by sample. A failed answer counts as the worst score of its metric: leaving it
out would reward a system for crashing on its hard questions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..core.types import EvaluationRun, EvaluationSample, TargetCategory
from ..errors import PlanError
from ..stats.effect_size import cliffs_delta, cohens_dz, odds_ratio
from .cluster_notes import cluster_notes
from .mismatch import (
    data_mismatches,
    refuse_other_data,
    signature_mismatch,
    snapshot_notes,
    stopping_notes,
)
from .paired_tests import RESAMPLES, Tested, family_p, is_of_time, tested_all
from .pairing import Pairing
from .repeats import RunToRun, each_repeated, pooled, question_of, run_to_run, times_by_run
from .slices import SliceComparison, slice_comparisons

__all__ = ["Comparison", "Loser", "MetricComparison", "compare_runs", "refuse_other_data"]

LOSERS = 1_000  # kept of each metric
Runs = EvaluationRun | Sequence[EvaluationRun]
Margin = float | Mapping[str, float] | None
Limits = tuple[float, float]


@dataclass(frozen=True)
class Loser:
    """A sample on which the candidate lost: its two scores, the worst one for a failed answer.

    Of a question that was asked several times, the scores are the means, and the id is that of the repeat
    that lost most.
    """

    sample_id: str
    baseline: float
    candidate: float


@dataclass(frozen=True)
class MetricComparison:
    """One metric in two runs. `difference` is candidate minus baseline over the paired samples.

    `difference_bounds` is where the difference would be had all that failed or has no partner scored as
    badly, or as well, as the metric allows. `detectable` is the smallest difference that the test shows four
    times in five on so many samples; None with `too_few` where not even the largest would be. Effect sizes
    point like the difference: `effect_size` is Cohen's d_z. `untold` says why nothing was tested, where
    nothing was; the p-values are then None. `questions_lost` counts a question once, however often asked.
    `samples_for_margin` is how many samples would rule out a loss of the margin, were there no difference;
    `samples_needed` how many would show a difference of the size that was seen. `clusters` is how many there
    are, where samples come in clusters, and `clusters_worth` how many of equal size would tell as much.
    `no_spread` says that there is no interval because all resamples give the same difference.
    """

    name: str
    target: TargetCategory
    higher_is_better: bool
    unit: str
    baseline: float
    candidate: float
    difference: float
    interval: Limits | None
    p_value: float | None
    p_adjusted: float | None
    wins: int
    ties: int
    losses: int
    failed_baseline: int
    failed_candidate: int
    unmatched: int
    samples_needed: int | None
    verdict: str
    baseline_interval: Limits | None = None
    candidate_interval: Limits | None = None
    difference_bounds: Limits | None = None
    effect_size: float | None = None
    cliffs_delta: float | None = None
    odds_ratio: float | None = None
    detectable: float | None = None
    too_few: bool = False
    margin: float | None = None
    margin_p: float | None = None
    within_margin: bool | None = None
    test: str = ""
    losers: tuple[Loser, ...] = ()
    run_to_run: RunToRun | None = None
    untold: str = ""
    questions_lost: int = 0
    samples_for_margin: int | None = None
    clusters: int | None = None
    clusters_worth: float | None = None
    no_spread: bool = False
    calls_baseline: int = 0
    calls_candidate: int = 0

    @property
    def pairs(self) -> int:
        return self.wins + self.ties + self.losses


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

    def with_verdict(self, verdict: str) -> list[MetricComparison]:
        """The metrics of which this was found: "better", "worse", "no worse", "cannot tell" or "same"."""
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
    mismatches = data_mismatches([*_listed(baseline), *_listed(candidate)], allowed=allow_mismatch)
    spread = run_to_run(_listed(baseline), _listed(candidate))
    a, b = pooled(_listed(baseline), _listed(candidate))
    pairings, left_out = pairings_of(a, b, mismatches, allow_mismatch=allow_mismatch)
    tested = tested_all(pairings, seed=seed, resamples=resamples)
    tested = times_by_run(tested, _listed(baseline), _listed(candidate))
    adjusted = family_p(tested)
    margins = margin_tests(tested, margin)
    tests = sum(p is not None for p in adjusted)
    metrics = [
        metric_comparison(one, p, alpha, tests, margins.get(one.pairing.a.name), spread, resamples)
        for one, p in zip(tested, adjusted, strict=True)
    ]
    repeats = len(_listed(baseline))
    known = a.samples if samples is None else each_repeated(samples, repeats)
    sliced = [one for one in pairings if not is_of_time(one.known)]
    slices, notes = slice_comparisons(
        sliced, by, known, alpha=alpha, seed=seed, resamples=resamples, repeats=repeats
    )
    notes = [*untold_notes(metrics), *cluster_notes(metrics, alpha, repeats), *notes]
    return Comparison(
        a.evaluation_id,
        b.evaluation_id,
        a.system_name,
        b.system_name,
        alpha,
        metrics,
        left_out,
        [*snapshot_notes(a, b), *stopping_notes(*_listed(baseline), *_listed(candidate)), *notes],
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
    samples = {sample.sample_id: sample for run in (b, a) for sample in run.samples}
    pairings = []
    for name in (name for name in ours if name in theirs):
        other = signature_mismatch(ours[name], theirs[name], allowed=allow_mismatch)
        if other:
            mismatches.append(other)
        pairing = Pairing(samples, ours[name], theirs[name])
        if pairing.scored:
            pairings.append(pairing)
        else:
            left_out[name] = (
                "no sample was scored in both" if pairing.metric else "its metric is not registered"
            )
    return pairings, left_out


def metric_comparison(
    tested: Tested,
    p_adjusted: float | None,
    alpha: float,
    tests: int,
    margin: tuple[float, float] | None = None,
    spread: Mapping[str, RunToRun] | None = None,
    resamples: int = RESAMPLES,
) -> MetricComparison:
    """One metric's comparison, once it is known how many others were tested beside it."""
    pairing, metric = tested.pairing, tested.pairing.known
    gains = pairing.differences()[pairing.both] * (1 if metric.higher_is_better else -1)
    wins, losses = int((gains > 0).sum()), int((gains < 0).sum())
    within = None if margin is None else margin[1] < alpha
    verdict = _verdict(tested, p_adjusted, alpha, differs=pairing.differs(), within=bool(within))
    rows_a, rows_b, clusters = pairing.used()
    binary = pairing.is_binary()
    level, name = alpha / max(1, tests), pairing.a.name
    seen = tested.detectable(level, resamples)
    moved = (spread or {}).get(name)
    repeats = 1 if moved is None else len(moved.baseline)
    lost = _losers(pairing, repeats)
    return MetricComparison(
        name=name,
        target=pairing.a.target,
        higher_is_better=metric.higher_is_better,
        unit=metric.unit,
        baseline=tested.value_a,
        candidate=tested.value_b,
        difference=tested.difference,
        interval=_limits(tested.interval),
        p_value=None if p_adjusted is None else tested.test.p_value,
        p_adjusted=p_adjusted,
        wins=wins,
        ties=len(gains) - wins - losses,
        losses=losses,
        failed_baseline=pairing.a.details.get("num_failed", 0),
        failed_candidate=pairing.b.details.get("num_failed", 0),
        unmatched=pairing.unmatched,
        samples_needed=tested.samples_to_show(tested.difference, level, repeats)
        if verdict == "cannot tell"
        else None,
        verdict=verdict,
        baseline_interval=_limits(tested.interval_a),
        candidate_interval=_limits(tested.interval_b),
        difference_bounds=pairing.difference_bounds(),
        effect_size=_number(cohens_dz(rows_b[:, 0] - rows_a[:, 0])) if pairing.is_mean else None,
        cliffs_delta=_number(cliffs_delta(rows_a[:, 0], rows_b[:, 0])),
        odds_ratio=_number(odds_ratio(rows_a[:, 0], rows_b[:, 0])) if binary else None,
        detectable=seen,
        too_few=seen is None and tested.differing(resamples) is not None,
        margin=None if margin is None else margin[0],
        margin_p=None if margin is None or tested.untold else margin[1],
        within_margin=within,
        test="" if tested.untold else tested.test.method,
        losers=tuple(lost[:LOSERS]),
        questions_lost=len(lost),
        samples_for_margin=None
        if margin is None or verdict != "cannot tell"
        else _samples_for_margin(tested, margin[0], alpha, repeats),
        clusters=None if clusters is None else tested.units,
        clusters_worth=tested.clusters_worth,
        no_spread=tested.no_spread,
        run_to_run=moved,
        untold=tested.untold,
        calls_baseline=len(pairing.a.scores),
        calls_candidate=len(pairing.b.scores),
    )


def _listed(runs: Runs) -> list[EvaluationRun]:
    found = [runs] if isinstance(runs, EvaluationRun) else list(runs)
    if not found:
        raise PlanError("there is no run to compare. Name a baseline and a candidate.")
    return found


def untold_notes(metrics: Iterable[MetricComparison]) -> list[str]:
    """Of which metrics nothing can be told, and why."""
    names: dict[str, list[str]] = {}
    for metric in metrics:
        if metric.untold and metric.verdict == "cannot tell":
            names.setdefault(metric.untold, []).append(metric.name)
    return [f"{', '.join(each)}: {why}" for why, each in names.items()]


def _verdict(tested: Tested, p_adjusted: float | None, alpha: float, *, differs: bool, within: bool) -> str:
    if not differs:
        return "same"
    if p_adjusted is not None and p_adjusted < alpha and tested.difference != 0:
        return "better" if (tested.difference > 0) == tested.pairing.known.higher_is_better else "worse"
    return "no worse" if within else "cannot tell"


def margin_tests(tested: Sequence[Tested], margin: Margin) -> dict[str, tuple[float, float]]:
    """The margin of each metric that has one, with the p-value of its test.

    They are not corrected for each other: who asks for margins wants all of them kept, as a gate does, and
    a run that is worse by one of them is called no worse there at most alpha of the time.
    """
    if margin is None:
        return {}
    given = margin.values() if isinstance(margin, Mapping) else [margin]
    if any(not (value > 0 and math.isfinite(value)) for value in given):
        raise PlanError("a margin is a positive number, such as 0.02.")
    if isinstance(margin, Mapping):
        known = {one.pairing.a.name for one in tested}
        unknown = [name for name in margin if name not in known]
        if unknown:
            raise PlanError(f"a margin is given for {unknown[0]!r}, which is not compared. Check its name.")
        margins = dict(margin)
    else:
        # One number can be right for shares; seconds need one of their own.
        margins = {one.pairing.a.name: margin for one in tested if not one.pairing.known.unit}
    return {
        name: (margins[name], one.margin_p(margins[name]))
        for one in tested
        if (name := one.pairing.a.name) in margins
    }


def _losers(pairing: Pairing, repeats: int) -> list[Loser]:
    """The questions that lost, the worst first, each by the mean of its repeats."""
    import numpy as np

    losses = pairing.differences() * (-1 if pairing.known.higher_is_better else 1)
    ids, a, b = pairing.sample_ids, pairing.rows_a[:, 0], pairing.rows_b[:, 0]
    if repeats == 1:
        losses = np.where(losses > 0, losses, -1.0)  # NaN, no pair, is no loss
        order = np.argsort(-losses, kind="stable").tolist()
        return [Loser(ids[n], float(a[n]), float(b[n])) for n in order if losses[n] > 0]
    asked: dict[str, list[int]] = {}
    for place in np.flatnonzero(pairing.both).tolist():
        asked.setdefault(question_of(ids[place], repeats), []).append(place)
    found = [
        (float(losses[places].mean()), max(places, key=lambda place: float(losses[place])), places)
        for places in asked.values()
    ]
    return [
        Loser(ids[worst], float(a[places].mean()), float(b[places].mean()))
        for loss, worst, places in sorted(found, key=lambda each: -each[0])
        if loss > 0
    ]


def _samples_for_margin(tested: Tested, margin: float, alpha: float, repeats: int) -> int | None:
    """None where more samples would not help: the loss itself stands in the way."""
    gain = tested.difference if tested.pairing.known.higher_is_better else -tested.difference
    needed = None if gain <= -margin else tested.samples_to_rule_out(margin, alpha, repeats)
    asked = int(tested.pairing.both.sum()) / repeats
    return None if needed is None or needed <= asked else needed


def _limits(interval: tuple[float, float, str] | None) -> Limits | None:
    return None if interval is None else (interval[0], interval[1])


def _number(value: float) -> float | None:
    """None for what JSON cannot say."""
    return value if math.isfinite(value) else None
