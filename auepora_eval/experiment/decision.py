"""Which variant wins an experiment, if any.

Variants are runs: each pair is compared as `compare` does, and guardrails are rules of `gate`. A winner has
enough samples, is significantly better than every other variant on the primary metric, by at least the
minimum lead, and meets every guardrail. If nothing wins, the reason is one sentence.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

from ..comparison.compare import MetricComparison, metric_comparison, pairings_of
from ..comparison.paired_tests import (
    ONE_RUN_EACH,
    RESAMPLES,
    Tested,
    is_of_time,
    tested_all,
    uncorrected_level,
)
from ..comparison.pairing import check_same_data, signature_mismatch
from ..comparison.unpaired import (
    RunScores,
    unpaired_comparison,
    unpaired_margin,
    unpaired_power,
    unpaired_samples_for_margin,
    unpaired_test,
)
from ..core.display import number_or_null, p_text
from ..core.types import EvaluationRun
from ..core.verdict import Verdict
from ..gate.absolute import limit_verdict, loss_verdict, not_measured
from ..gate.figures import Figure, GatedRun
from ..gate.gate import Paired, relative_verdicts
from ..gate.rules import FAIL, INCONCLUSIVE, PASS, Rule, RuleResult, shown
from ..io.config.experiment import PAIRED, Experiment, GuardRail
from ..metrics.parse import parse_metric
from ..stats.intervals import agreeing_with_test
from ..stats.significance import LEVEL, UnpairedTest, cohens_d, holm, paired_t_test

# The value of "winner" in the results file, where a variant id would be.
NOBODY = "none"
USUAL_LEAD = 0.01
Sides = Mapping[str, Mapping[str, RunScores]]  # by metric, then by variant
_GATE_RULES = {"min": "min", "max": "max", "max_increase": "max_loss", "margin": "margin"}


@dataclass(frozen=True)
class PairTest:
    """One metric of two variants; the first one is the baseline of the comparison.

    `effect_size` is Cohen's d in standard deviations of the scores. The one of the paired differences is
    `comparison.effect.d`.
    """

    first: str
    second: str
    comparison: MetricComparison
    samples: tuple[int, int]
    effect_size: float | None = None
    paired: Tested | None = field(default=None, compare=False, repr=False)
    unpaired: UnpairedTest | None = field(default=None, compare=False, repr=False)

    @property
    def metric(self) -> str:
        return self.comparison.name

    @property
    def better(self) -> str | None:
        """The variant that is significantly better, if one is."""
        names = {Verdict.BETTER: self.second, Verdict.WORSE: self.first}
        return names.get(self.comparison.verdict)

    @property
    def is_tested(self) -> bool:
        """Whether there is a test: there is none for times of one run each."""
        return not self.comparison.test.not_tested

    @property
    def p(self) -> float:
        """The p-value before any correction; 1 where there is none."""
        p_value = self.comparison.test.p if self.paired is None else self.paired.test.p_value
        return 1.0 if p_value is None else p_value

    @property
    def is_of_time(self) -> bool:
        return self.comparison.test.not_tested == ONE_RUN_EACH


@dataclass(frozen=True)
class RailCheck:
    """What the gate rule of a guardrail found for one variant."""

    variant: str
    rail: GuardRail
    result: RuleResult

    @property
    def holds(self) -> bool:
        return self.result.outcome == PASS

    @property
    def reason(self) -> str:
        advice = f" {self.result.fix}" if self.result.outcome == INCONCLUSIVE and self.result.fix else ""
        return f"{self.result.why}.{advice}"


@dataclass(frozen=True)
class Decision:
    """The winner ("none" if there is none) and the reason, the leader, and how many samples are missing."""

    winner: str
    reason: str
    leader: str | None
    missing_samples: int
    rails: tuple[RailCheck, ...]


def pair_tests(
    experiment: Experiment,
    runs: Mapping[str, EvaluationRun],
    primary: str,
    sides: Sides,
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> list[PairTest]:
    """Return every pair of variants on every metric, those of the primary metric first.

    The p-values of the primary metric are corrected over its pairs. The secondary metrics are a family of
    their own, and so are those that only guardrails use. Times are not tested: variants run one after the
    other, and the speed of a machine varies from run to run.
    """
    if experiment.assignment == PAIRED:
        check_same_data(list(runs.values()))
    timed = {name for name, by_variant in sides.items() if is_of_time(next(iter(by_variant.values())).metric)}
    tests: list[PairTest] = []
    for names in combinations(runs, 2):
        tests += [_untested(names, sides[metric]) for metric in sorted(timed)]
        pair = [_without(runs[name], timed) for name in names]
        if experiment.assignment == PAIRED:
            by_t = experiment.statistical_test == "t_test"
            tests += _paired_tests(names, pair, by_t=by_t, seed=seed, resamples=resamples)
        else:
            tests += _split_tests(names, pair, sides)
    secondary = {parse_metric(name).name for name in experiment.secondary_metrics} - {primary}
    # Corrected apart: one more secondary metric must not make the primary metric harder to decide.
    families = (
        [test for test in tests if test.metric == primary],
        [test for test in tests if test.metric in secondary],
        [test for test in tests if test.metric not in {primary, *secondary}],
    )
    return [test for family in families for test in _corrected(family, experiment, sides)]


def _without(run: EvaluationRun, names: set[str]) -> EvaluationRun:
    return replace(run, results=[result for result in run.results if result.name not in names])


def _untested(names: tuple[str, str], sides: Mapping[str, RunScores]) -> PairTest:
    a, b = (sides[name] for name in names)
    comparison = unpaired_comparison(a, b, None, ONE_RUN_EACH)
    return PairTest(*names, comparison, (len(a.rows), len(b.rows)))


def _paired_tests(
    names: tuple[str, str], runs: Sequence[EvaluationRun], *, by_t: bool, seed: int, resamples: int
) -> list[PairTest]:
    pairings, _ = pairings_of(runs[0], runs[1], [], allow_mismatch=False)
    tests = []
    for tested in tested_all(pairings, seed=seed, resamples=resamples):
        pairing = tested.pairing
        rows_a, rows_b, clusters = pairing.used()
        a, b = rows_a[:, 0], rows_b[:, 0]
        # Differences that were corrected for the errors of a judge have a test of their own.
        if by_t and pairing.is_mean and not tested.not_tested and tested.judge is None:
            t_test = paired_t_test(a, b, clusters=clusters)
            # One sample has no spread, so the t-test has no p-value.
            reason = "a t-test needs two samples or more" if math.isnan(t_test.p_value) else ""
            interval = tested.interval and agreeing_with_test(
                tested.interval, tested.difference, t_test.p_value
            )
            tested = replace(tested, test=t_test, interval=interval, not_tested=reason)
        effect = cohens_d(a, b) if pairing.is_mean else math.nan
        size = (len(a), len(b))
        # Its verdict follows once all p-values of the family are known.
        comparison = metric_comparison(tested, None, LEVEL, 1)
        tests.append(PairTest(*names, comparison, size, number_or_null(effect), paired=tested))
    return tests


def _split_tests(names: tuple[str, str], runs: Sequence[EvaluationRun], sides: Sides) -> list[PairTest]:
    tests = []
    for result in runs[0].results:
        signature_mismatch(result, runs[1].result(result.name), allowed=False)
        a, b = (sides[result.name][name] for name in names)
        test = unpaired_test(a, b)
        comparison = unpaired_comparison(a, b, test)
        effect = cohens_d(a.rows[:, 0], b.rows[:, 0]) if a.metric.is_mean else math.nan
        size = (len(a.rows), len(b.rows))
        tests.append(PairTest(*names, comparison, size, number_or_null(effect), unpaired=test))
    return tests


def _corrected(family: Sequence[PairTest], experiment: Experiment, sides: Sides) -> list[PairTest]:
    """Return the tests of a family with corrected p-values and verdicts, untested ones last."""
    tested = [test for test in family if test.is_tested]
    settled = []
    for test, p in zip(tested, holm([test.p for test in tested]), strict=True):
        if test.paired is not None:
            level = uncorrected_level(experiment.alpha, test.p, p)
            test = replace(test, paired=test.paired.settled(level))
        settled.append(test)
    corrected = [
        _with_verdict(test, p, len(tested), experiment, sides)
        for test, p in zip(settled, holm([test.p for test in settled]), strict=True)
    ]
    return [*corrected, *(test for test in family if not test.is_tested)]


def _with_verdict(
    test: PairTest, p_adjusted: float, tests: int, experiment: Experiment, sides: Sides
) -> PairTest:
    alpha = experiment.alpha
    if test.paired is not None:
        comparison = metric_comparison(test.paired, p_adjusted, alpha, tests, power=experiment.power)
        return replace(test, comparison=comparison)
    comparison = test.comparison
    comparison = replace(comparison, test=replace(comparison.test, p_adjusted=p_adjusted))
    if p_adjusted < alpha and comparison.gain:
        return replace(test, comparison=replace(comparison, verdict=Verdict.of_gain(comparison.gain)))
    a, b = (sides[test.metric][name] for name in (test.first, test.second))
    power = unpaired_power(a, b, alpha / tests, experiment.power)
    return replace(test, comparison=replace(comparison, power=power))


def decide(
    experiment: Experiment,
    runs: Mapping[str, EvaluationRun],
    tests: Sequence[PairTest],
    primary: str,
    every_side: Sides,
) -> Decision:
    """Return the winner of complete runs. `every_side` has the scores of each metric in each variant."""
    sides = every_side[primary]
    of_primary = [one for one in tests if one.metric == primary]
    leader = _leader(sides)
    samples = {name: len(side.rows) for name, side in sides.items()}
    gated = {name: _gated(run, name, every_side) for name, run in runs.items()}
    rails = tuple(
        check for name in sides for check in _rail_checks(experiment, name, gated, every_side, tests)
    )
    fewest = min(samples, key=lambda name: samples[name])
    missing = max(0, experiment.min_sample_size - samples[fewest])

    def nobody(reason: str, beaten: str = "") -> Decision:
        return Decision(NOBODY, f"{reason}{beaten}", leader, missing, rails)

    if leader is None:
        failed = sum(side.failed for side in sides.values())
        why = f": all {failed:,} answers failed" if failed else ""
        return nobody(f"nothing was measured by {primary}{why}.")
    if cannot_decide(experiment):
        return nobody(cannot_decide(experiment))
    if missing:
        return nobody(
            f"{fewest} has {samples[fewest]:,} samples measured by {primary}, and "
            f"{experiment.min_sample_size:,} are required (min_sample_size): {missing:,} are missing."
        )
    doubt = _doubt(experiment, leader, of_primary, primary)
    beaten = _better_than_control(experiment, of_primary, rails)
    if doubt:
        return nobody(doubt, beaten)
    # An inconclusive guardrail does not hold either: a variant must be shown to respect it.
    broken = [check for check in rails if check.variant == leader and not check.holds]
    if broken:
        reasons = " And ".join(one.reason for one in broken)
        return nobody(f"{leader} is best on {primary}, but {reasons}", beaten)
    others = [name for name in sides if name != leader]
    counts = " and ".join(f"{name} ({_told(_between(of_primary, leader, name), leader)})" for name in others)
    return Decision(leader, f"{leader} is better on {primary} than {counts}.", leader, 0, rails)


def cannot_decide(experiment: Experiment) -> str:
    """Return why the primary metric cannot decide, whatever is measured; "" if it can."""
    metric = parse_metric(experiment.primary_metric)
    if not is_of_time(metric):
        return ""
    return (
        f"{metric.name} is a time, and one run each is not enough to compare times: variants run one "
        "after the other, and the machine is not as fast in every run. Repeat the runs of both and "
        "compare them (auepora compare A1,A2,A3 B1,B2,B3), or make the time a guardrail."
    )


def without_t_test(experiment: Experiment) -> list[str]:
    """Return the metrics that the file's t-test cannot compare, because they are not means."""
    if experiment.statistical_test != "t_test":
        return []
    metrics = [parse_metric(name) for name in (experiment.primary_metric, *experiment.secondary_metrics)]
    return [one.name for one in metrics if not one.is_mean and not is_of_time(one)]


def minimum_lead(experiment: Experiment) -> float:
    """Return by how much the winner must lead. The default, 0.01, is a share: there is none for seconds."""
    if experiment.minimum_lead is not None:
        return experiment.minimum_lead
    return 0.0 if parse_metric(experiment.primary_metric).unit else USUAL_LEAD


def _leader(sides: Mapping[str, RunScores]) -> str | None:
    if not any(side.measured for side in sides.values()):
        return None
    known = {
        name: side.value if side.metric.higher_is_better else -side.value
        for name, side in sides.items()
        if math.isfinite(side.value)
    }
    return max(known, key=lambda name: known[name]) if known else None


def _between(tests: Sequence[PairTest], one: str, other: str) -> PairTest | None:
    return next((test for test in tests if {test.first, test.second} == {one, other}), None)


def _doubt(experiment: Experiment, leader: str, tests: Sequence[PairTest], primary: str) -> str:
    """Return why the leader has not won; "" if it has."""
    least = minimum_lead(experiment)
    for other in (one.variant_id for one in experiment.variants if one.variant_id != leader):
        test = _between(tests, leader, other)
        if test is None:
            return f"{leader} and {other} have no sample in common that {primary} measured."
        if test.comparison.test.not_tested:
            return f"{leader} and {other} cannot be compared on {primary}: {test.comparison.test.not_tested}."
        if test.better != leader:
            needed = needed_text(test.comparison.power.samples_needed)
            what = f"inconclusive on {primary}: {leader} and {other} do not differ significantly"
            return f"{what} ({_told(test, leader)}).{needed}"
        # The sign is known here: the test has found the leader better.
        lead = abs(test.comparison.effect.change)
        if lead < least:
            return (
                f"{leader} leads {other} on {primary} by {lead:.4g}, less than the {least:g} "
                "that is required (minimum_lead)."
            )
    return ""


def _better_than_control(
    experiment: Experiment, tests: Sequence[PairTest], rails: Sequence[RailCheck]
) -> str:
    """Name the variants that meet the guardrails and are significantly better than the control."""
    control, least = experiment.variants[0].variant_id, minimum_lead(experiment)
    broken = {check.variant for check in rails if not check.holds}
    better = []
    for name in (one.variant_id for one in experiment.variants[1:] if one.variant_id not in broken):
        test = _between(tests, control, name)
        if test is not None and test.better == name and abs(test.comparison.effect.change) >= least:
            better.append(f"{name} ({_told(test, name)})")
    if not better:
        return ""
    verb = "is" if len(better) == 1 else "are each"
    return f" But {' and '.join(better)} {verb} better than {control}, the control."


def needed_text(needed: int | None) -> str:
    """Return how many samples would make a difference of this size significant; "" if that is unknown."""
    if needed is None:
        return ""
    count = "over a million" if needed > 1_000_000 else f"about {needed:,}"
    return f" Detecting a difference of this size takes {count} samples per variant."


def _told(test: PairTest | None, leader: str) -> str:
    if test is None or test.comparison.test.p_adjusted is None:
        return "not compared"
    change = test.comparison.effect.change
    difference = change if leader == test.second else -change
    p = p_text(test.comparison.test.p_adjusted)
    return f"{difference:+.4g}, {p}" if difference else f"no difference, {p}"


def _gated(run: EvaluationRun, variant: str, every_side: Sides) -> GatedRun:
    """Return the run as gate rules see it: values with failed answers counted as the worst."""
    figures = {}
    for name, by_variant in every_side.items():
        side = by_variant[variant]
        figures[name] = Figure(
            name,
            # If all answers failed, the value is only what failures count as: not a measurement.
            side.value if side.measured else math.nan,
            unit=side.metric.unit,
            higher_is_better=side.metric.higher_is_better,
            scored=side.measured,
            counted=_failed_text(side),
        )
    return GatedRun(run, _figures=figures)


def _failed_text(side: RunScores) -> str:
    if not side.failed:
        return ""
    worst = "slowest" if is_of_time(side.metric) else "worst"
    return f"{side.failed:,} of {len(side.rows):,} failed and count as the {worst}"


def _rail_checks(
    experiment: Experiment,
    name: str,
    gated: Mapping[str, GatedRun],
    every_side: Sides,
    tests: Sequence[PairTest],
) -> list[RailCheck]:
    """Return the guardrails of one variant; rails against the control do not apply to the control."""
    control = experiment.variants[0].variant_id
    checks = []
    for rail in experiment.guard_rails:
        metric = parse_metric(rail.metric).name
        rule = Rule(_GATE_RULES[rail.kind], metric, rail.limit)
        # Without any measurement a comparison has no value: the limit rule reports that as not measured.
        if rail.kind in ("min", "max") or not every_side[metric][name].measured:
            checks.append(RailCheck(name, rail, limit_verdict(rule, gated[name])))
        elif name == control:
            continue
        elif rail.kind == "max_increase":
            checks.append(RailCheck(name, rail, loss_verdict(rule, gated[control], gated[name], None)))
        else:
            test = _between([one for one in tests if one.metric == metric], name, control)
            result = _margin_result(experiment, rule, gated[control], gated[name], every_side, test)
            checks.append(RailCheck(name, rail, result))
    return checks


def _margin_result(
    experiment: Experiment,
    rule: Rule,
    control: GatedRun,
    variant: GatedRun,
    every_side: Sides,
    test: PairTest | None,
) -> RuleResult:
    if test is None:
        return not_measured(rule, control, control.find(rule.name))
    comparison = test.comparison
    if comparison.test.not_tested:
        why = f"a loss of {rule.name} cannot be ruled out: {comparison.test.not_tested}"
        return RuleResult(rule, INCONCLUSIVE, why)
    if test.paired is not None:
        # Uncorrected, as in a gate: a margin is one part of an intersection-union test (decision 12).
        paired = Paired(variant, control, {rule.name: test.paired}, {}, [])
        return relative_verdicts([rule], paired, experiment.alpha)[0]
    return _split_margin(experiment, rule, every_side[rule.name], test)


def _split_margin(
    experiment: Experiment, rule: Rule, sides: Mapping[str, RunScores], test: PairTest
) -> RuleResult:
    """Return what a margin rule finds on split samples, which a gate does not compare."""
    a, b = sides[test.first], sides[test.second]
    margin, comparison = rule.limit or 0.0, test.comparison
    assert test.unpaired is not None  # noqa: S101 - split samples have this test
    estimate, change = unpaired_margin(a, b), shown(comparison.effect.change, comparison.unit, signed=True)
    p_value = 1.0 if estimate is None else estimate.p_below(-margin)
    if estimate is not None:
        lowest = float(estimate.limits(1 - experiment.alpha)[0])
        change += f", at worst {shown(lowest, comparison.unit, signed=True)}"
    if p_value < experiment.alpha / 2:
        why = f"a loss of {margin:g} or more in {rule.name} is ruled out: {change}"
        return RuleResult(rule, PASS, why, p_value=p_value)
    if comparison.gain <= -margin:
        why = f"the best estimate is a loss of {margin:g} or more in {rule.name}: {change}"
        return RuleResult(rule, FAIL, why, p_value=p_value)
    why = f"a loss of {margin:g} in {rule.name} cannot be ruled out: {change}"
    needed = unpaired_samples_for_margin(
        test.unpaired, a, b, margin, alpha=experiment.alpha, power=experiment.power
    )
    fix = "" if needed is None else f"About {needed:,} samples per variant would rule it out."
    return RuleResult(rule, INCONCLUSIVE, why, fix, p_value=p_value)
