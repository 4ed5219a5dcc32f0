"""Pass or fail a run by rules, on its own or against a baseline.

Rules about a baseline are decided by the comparison of the two runs: its tests, margins and power.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..comparison.checks import NOT_ALIKE, data_mismatches, snapshot_notes, stopping_notes, value_notes
from ..comparison.compare import MetricComparison, compared_family
from ..comparison.paired_tests import (
    FAILED_AND_BETTER,
    NO_VALUE,
    RESAMPLES,
    Tested,
    judge_notes,
    tested_pairs,
)
from ..comparison.pairs import NO_SCORES, NONE_IN_BOTH, pairs_of
from ..core.display import p_text
from ..core.types import EvaluationRun
from ..core.verdict import Outcome, Verdict
from ..errors import PlanError
from ..stats.power import fewest_units
from .figures import GatedRun, canonical, command_for
from .gate_report import GateReport, RuleResult, shown, shown_interval
from .limits import (
    Change,
    count_drop,
    distrusted,
    failures_verdict,
    limit_verdict,
    loss_verdict,
    not_measured,
    regressions_hint,
    score_again,
    unscored,
    unscored_too_often,
)
from .rules import ABSOLUTE, ALL, COUNT_DROP, GateRules, Rule, rules_of

__all__ = ["GateReport", "RuleResult", "gate_run"]

_TIMES = (
    "Limit how much of it may be lost instead (max_loss, with a generous limit), or compare repeats of both."
)
_NO_LOSS = (NO_VALUE, FAILED_AND_BETTER)
_FAR = 10_000  # more samples than anyone will measure


def gate_run(
    candidate: EvaluationRun | GatedRun,
    rules: GateRules | Mapping[str, Any] | None = None,
    *,
    baseline: EvaluationRun | GatedRun | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
    allow_mismatch: bool = False,
) -> GateReport:
    """Judge a run by rules: {"min": {"recall@5": 0.8}, "margin": {"token_f1": 0.02}, "max_failed": 0.01}.

    With a baseline and no rule that uses it, no metric may be significantly worse, and counts of samples,
    answers and scores may not fall by more than a tenth. PlanError if there is no rule, if a rule needs a
    baseline and there is none, or if the baseline is the run itself.
    """
    ours, base = GatedRun.of(candidate), None if baseline is None else GatedRun.of(baseline)
    chosen = _complete(rules if isinstance(rules, GateRules) else rules_of(rules or {}), ours, base)
    limits = chosen.of(*ABSOLUTE)
    verdicts = [limit_verdict(rule, ours, allow_uncalibrated=chosen.allow_uncalibrated) for rule in limits]
    notes = _stopped(ours.run) if limits else []
    judged, mismatches = [rule.name for rule in limits], []
    if base is not None:
        runs = [base.run, ours.run]
        mismatches = data_mismatches(runs, allowed=allow_mismatch)
        # Only the metrics that the rules are about: others may differ in whatever they like.
        names = {name for rule in chosen.relative for name in (rule.name, canonical(rule.name))}
        a, b = (
            replace(run, results=[one for one in run.results if ALL in names or one.name in names])
            for run in runs
        )
        every, left_out = pairs_of([a], [b], mismatches, allow_mismatch=allow_mismatch)
        named, about_names = _each_named(chosen.relative, base, left_out)
        wanted = {canonical(rule.name) for rule in named}
        tested = [tested_pairs(one, seed=seed, resamples=resamples) for one in every if one.name in wanted]
        pair = _Pair(base, ours, _compared(named, tested, chosen.alpha), left_out, chosen.alpha)
        verdicts += [_relative_verdict(rule, pair) for rule in named]
        judged += [rule.name for rule in named]
        notes += [*about_names, *snapshot_notes(*runs), *judge_notes(tested), *stopping_notes(*runs)]
    notes += value_notes(map(canonical, judged), ours.run)
    verdicts += [failures_verdict(rule, ours, judged) for rule in chosen.of("max_failed")]
    return GateReport(
        ours.evaluation_id,
        ours.run.system_name,
        None if base is None else base.evaluation_id,
        None if base is None else base.run.system_name,
        chosen.alpha,
        chosen.if_inconclusive,
        verdicts,
        notes,
        mismatches,
    )


def _stopped(run: EvaluationRun) -> list[str]:
    """What to know of limits on a run that stopped as soon as it was clear."""
    if run.stopping is None or not run.stopping.stopped_early:
        return []
    used, total = run.stopping.samples_used, run.stopping.samples_in_dataset
    return [
        f"{run.evaluation_id} stopped after {used} of {total} samples, at a moment that looked clear: its "
        "values are a little too good or too bad. Its own verdict, and its intervals (on: bound), hold"
    ]


def _complete(rules: GateRules, run: GatedRun, baseline: GatedRun | None) -> GateRules:
    """The rules with those that a baseline brings along."""
    if baseline is None:
        if rules.relative:
            title = rules.relative[0].title
            raise PlanError(
                f"the rule '{title:.100}' needs a baseline: --baseline RUN (in Python baseline=RUN)."
            )
        if not rules.rules:
            raise PlanError("there is no rule. Give one, such as min={'recall@5': 0.8}, or name a baseline.")
        return rules
    # Given or read twice; another run that is equal is not the same.
    if run.run is baseline.run or (run.path is not None and run.path == baseline.path):
        raise PlanError(f"{run.evaluation_id} is its own baseline. Name another run to compare it with.")
    added = []
    if not rules.of("margin", "no_regression", "max_loss"):
        added.append(Rule("no_regression", ALL))
    # What is no longer scored is in no test, so a loss could hide behind missing samples.
    if not rules.of("max_count_drop"):
        added.append(Rule("max_count_drop", limit=COUNT_DROP))
    return replace(rules, rules=(*rules.rules, *added))


def _each_named(
    rules: Sequence[Rule], baseline: GatedRun, left_out: Mapping[str, str]
) -> tuple[list[Rule], list[str]]:
    """The rules with one for all metrics written out: one for each that the baseline measured; with notes."""
    # A rule may use a short name; a rule for all metrics must not judge the same metric again.
    named = {(rule.kind, canonical(rule.name)) for rule in rules if rule.name != ALL}
    written, skipped, times = [], [], []
    notes: list[str] = []
    for rule in rules:
        if rule.name != ALL:
            written.append(rule)
            continue
        for figure in map(baseline.figures().__getitem__, (one.name for one in baseline.run.results)):
            if (rule.kind, figure.name) in named:
                continue
            own = replace(rule, name=figure.name, of_all=True)
            if figure.of_time:
                times.append(figure.name)
            elif not math.isfinite(figure.value):
                notes.append(
                    f"{figure.name} was not measured in the baseline either: nothing to compare it with"
                )
            elif left_out.get(figure.name, "").startswith((NO_SCORES, *NOT_ALIKE)):
                skipped.append(own)
            else:
                written.append(own)
    # Nobody named these, so they do not stop the gate; unless nothing else is compared.
    if any(rule.of_all for rule in written):
        notes += [f"{rule.name} is not compared: {left_out[rule.name]}" for rule in skipped]
    else:
        written += skipped
    if times:
        names = ", ".join(dict.fromkeys(times))
        notes.append(f"times depend on the machine, and count only where a rule names them: {names}")
    return written, list(dict.fromkeys(notes))


@dataclass(frozen=True)
class _Pair:
    """Two runs, compared on the metrics that the rules are about; `compared` is by kind of rule."""

    baseline: GatedRun
    candidate: GatedRun
    compared: Mapping[str, Mapping[str, MetricComparison]]
    left_out: Mapping[str, str]
    alpha: float

    @property
    def hint(self) -> str:
        return regressions_hint(self.baseline, self.candidate)


def _compared(
    rules: Sequence[Rule], tested: Sequence[Tested], alpha: float
) -> dict[str, dict[str, MetricComparison]]:
    """Return the metrics that the rules of each kind are about, by name."""
    # Decision 12: only no_regression is corrected, over its own rules. Margins are an intersection-union
    # test (Berger 1982), and limits are not tests.
    compared = {}
    for kind in ("no_regression", "margin", "max_loss"):
        limits = {canonical(rule.name): rule.limit or 0.0 for rule in rules if rule.kind == kind}
        family = [one for one in tested if one.pairs.name in limits]
        margins = {one.pairs.name: limits[one.pairs.name] for one in family}
        metrics, _ = compared_family(family, margins if kind == "margin" else None, alpha)
        compared[kind] = {metric.name: metric for metric in metrics}
    return compared


def _relative_verdict(rule: Rule, pair: _Pair) -> RuleResult:
    if rule.kind == "max_count_drop":
        return count_drop(rule, pair.baseline, pair.candidate)
    for run in (pair.candidate, pair.baseline):
        figure = run.find(rule.name)
        # For a comparison a judge may be uncalibrated: only one that failed its probes is not used.
        if figure is not None and (refusal := distrusted(rule, figure, allow_uncalibrated=True)):
            return refusal
        # Nor one that left many answers without a score: which system lost them says nothing of either.
        if figure is not None and unscored_too_often(figure):
            why = f"{figure.name}: {unscored(figure, run)}"
            return RuleResult(rule, Outcome.INCONCLUSIVE, why, score_again(figure.name, run))
    metric = pair.compared[rule.kind].get(canonical(rule.name))
    # The loss of a time that is not tested can still be limited, but not that of a value that does not exist.
    if rule.kind == "max_loss" and (metric is None or metric.test.not_tested not in _NO_LOSS):
        # Resources (memory, tokens) have no scores to pair: their values are compared.
        change = None if metric is None else Change.of(metric)
        return loss_verdict(rule, pair.baseline, pair.candidate, change)
    if metric is None:
        return _not_paired(rule, pair)
    if metric.test.not_tested:
        values = f"{shown(metric.baseline, metric.unit)} before, {shown(metric.candidate, metric.unit)} now"
        fix = _TIMES if metric.unit == "s" else "Fix that and judge again, or choose another metric."
        return _verdict(rule, Outcome.INCONCLUSIVE, f"{values}; {metric.test.not_tested}", fix, metric, None)
    return _margin(rule, metric, pair) if rule.kind == "margin" else _regression(rule, metric, pair)


def _regression(rule: Rule, metric: MetricComparison, pair: _Pair) -> RuleResult:
    family = [one for one in pair.compared["no_regression"].values() if not one.test.not_tested]
    tests, p_value = len(family), metric.test.p_adjusted
    words = _change_words(metric)
    # Decision 12: a rule that no data of this size could fail must not pass (five pairs: p = 0.0625 at best).
    least = min(1.0, metric.test.smallest_p * tests)
    if least >= pair.alpha:
        why = f"so few samples cannot detect any loss, however large: {words}, {p_text(least)} at best"
        # Of many metrics, some have few samples. Unless they lost, they do not stop the gate.
        others = any(one.test.smallest_p * tests < pair.alpha for one in family)
        if rule.of_all and others and metric.gain >= 0:
            return _verdict(rule, Outcome.PASSED, why, "", metric, p_value)
        enough = fewest_units(pair.alpha / tests)
        fix = f"Measure at least {enough} samples (more, for a loss that is not total); or use max_loss."
        return _verdict(rule, Outcome.INCONCLUSIVE, why, fix, metric, p_value)
    seen = metric.power.detectable
    if not metric.differs:
        return _verdict(rule, Outcome.PASSED, words, "", metric, p_value, seen)
    words += f", {p_text(p_value)}" + (f", Holm over {tests} metrics" if tests > 1 else "")
    if metric.verdict is Verdict.WORSE:
        why = f"significantly worse: {words}"
        return _verdict(rule, Outcome.FAILED, why, pair.hint, metric, p_value, seen)
    if metric.verdict is Verdict.BETTER:
        return _verdict(rule, Outcome.PASSED, f"better: {words}", "", metric, p_value, seen)
    why = f"no significant loss: {words}"
    if seen is not None:
        why += f"; a loss of {shown(seen, metric.unit)} would be detected with 80% power"
    elif metric.power.too_few:
        why += "; so few samples detect no loss with 80% power, however large"
    return _verdict(rule, Outcome.PASSED, why, "", metric, p_value, seen)


def _margin(rule: Rule, metric: MetricComparison, pair: _Pair) -> RuleResult:
    test, margin = metric.margin, shown(rule.limit, metric.unit)
    words = _change_words(metric)
    if test.limit is not None:
        worst = test.limit if metric.higher_is_better else -test.limit
        words += f", at worst {shown(worst, metric.unit, signed=True)}"
    if test.within:
        why = f"a loss of {margin} or more is ruled out: {words}"
        return _verdict(rule, Outcome.PASSED, why, "", metric, test.p)
    if metric.gain <= -(rule.limit or 0.0):
        why = f"the best estimate is a loss of {margin} or more: {words}"
        return _verdict(rule, Outcome.FAILED, why, pair.hint, metric, test.p)
    fix = f"Measure more samples, or allow a wider margin. {pair.hint}"
    if test.samples_needed is not None:
        fix = f"About {test.samples_needed:,} samples would rule it out if there is no difference. "
        if test.samples_needed > _FAR:
            fix = f"It would take more than {_FAR:,} samples to rule out so small a loss. "
        fix += "Or allow a wider margin."
    why = f"a loss of {margin} cannot be ruled out: {words}"
    return _verdict(rule, Outcome.INCONCLUSIVE, why, fix, metric, test.p)


def _not_paired(rule: Rule, pair: _Pair) -> RuleResult:
    for run in (pair.candidate, pair.baseline):
        figure = run.find(rule.name)
        if figure is None:
            return not_measured(rule, run, None)
        if figure.scored is None:
            is_metric = any(one.name == figure.name for one in run.run.results)
            why = NO_SCORES if is_metric else "it is not a metric: it has no scores to test"
            return RuleResult(
                rule, Outcome.MISSING, f"{figure.name} is not checked: {why}", "Use max_loss for it."
            )
    reason = pair.left_out.get(canonical(rule.name)) or "it is in no sample of both"
    fix = "Name the metrics to check, or check in Python, where your own metric is registered."
    if reason.startswith(NOT_ALIKE):
        # By the judge of the baseline, which one keeps.
        known = pair.baseline.find(rule.name)
        judge = known.judge if known is not None else ""
        fix = pair.candidate.score_command(rule.name, "Do so", judge) if judge else ""
    if reason == NONE_IN_BOTH:
        fix = f"Find out why: {command_for(f'show {pair.candidate.named}', pair.candidate)}"
    return RuleResult(rule, Outcome.MISSING, f"{rule.name} cannot be compared: {reason}", fix)


def _verdict(
    rule: Rule,
    outcome: Outcome,
    why: str,
    fix: str,
    metric: MetricComparison,
    p_value: float | None,
    detectable: float | None = None,
) -> RuleResult:
    return RuleResult(
        rule,
        outcome,
        why,
        fix,
        value=metric.candidate,
        interval=metric.candidate_interval,
        baseline=metric.baseline,
        change=metric.effect.change,
        change_interval=metric.effect.interval,
        p_value=p_value,
        unit=metric.unit,
        detectable=detectable,
        gain=metric.gain,
        failed=_failed(metric),
    )


def _change_words(metric: MetricComparison) -> str:
    """The change with its interval, and what was counted as what; or that no sample differs."""
    pairs = f"{metric.pairs} pair{'s' * (metric.pairs != 1)}"
    interval = metric.effect.interval
    if not metric.differs:
        clusters = metric.test.clusters
        words = f"no sample differs among {pairs}" + (f" in {clusters} clusters" if clusters else "")
        if interval is None:
            return words
        loss = -interval[0] if metric.higher_is_better else interval[1]
        return f"{words} (a loss of up to {shown(loss)} can go unseen)"
    words = f"{shown(metric.effect.change, metric.unit, signed=True)}{shown_interval(interval, metric.unit)}"
    words += f" on {pairs}"
    if failed := _failed(metric):
        words += f" ({failed} failed, counted as the worst)"
    unmatched = metric.coverage.unmatched
    return words + (f" ({unmatched} without a partner)" if unmatched else "")


def _failed(metric: MetricComparison) -> int:
    """How many samples of the candidate failed, and count as the worst; seconds have no worst."""
    return 0 if metric.unit == "s" else metric.coverage.failed_candidate
