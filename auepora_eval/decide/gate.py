"""Pass or fail a run by rules, on its own or against a baseline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..comparison.checks import (
    data_mismatches,
    signature_mismatch,
    snapshot_notes,
    stopping_notes,
    value_notes,
)
from ..comparison.paired_tests import (
    FEW_TO_COMPARE,
    NO_VALUE,
    RESAMPLES,
    Tested,
    corrected,
    is_of_time,
    judge_notes,
    tested_pairs,
)
from ..comparison.pairs import NO_SCORES, pairs_of
from ..core.display import p_text
from ..core.types import EvaluationRun
from ..core.verdict import Outcome
from ..errors import PlanError
from .figures import GatedRun, canonical
from .gate_report import GateReport, RuleResult, shown, shown_interval
from .limits import (
    Change,
    count_drop,
    coverage_verdict,
    distrusted,
    limit_verdict,
    loss_verdict,
    not_measured,
    regressions_hint,
)
from .rules import ABSOLUTE, ALL, COUNT_DROP, COVERAGE, GateRules, Rule, rules_of

__all__ = ["GateReport", "RuleResult", "gate_run"]


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
    parsed = rules if isinstance(rules, GateRules) else rules_of(rules or {})
    ours, base = GatedRun.of(candidate), None if baseline is None else GatedRun.of(baseline)
    if base is not None and ours.is_the_same_as(base):
        raise PlanError(f"{ours.evaluation_id} is its own baseline. Name another run to compare it with.")
    chosen = _complete(parsed, base)
    allowed = chosen.allow_uncalibrated
    verdicts = [limit_verdict(rule, ours, allow_uncalibrated=allowed) for rule in chosen.of(*ABSOLUTE)]
    stopped = _stopped(ours.run) if chosen.of(*ABSOLUTE) else []
    notes: list[str] = []
    mismatches: list[str] = []
    named: list[Rule] = []
    if base is not None:
        named, notes = each_named(chosen.relative, base, ours, allow_mismatch=allow_mismatch)
        paired = paired_runs(named, ours, base, seed=seed, resamples=resamples, allow_mismatch=allow_mismatch)
        looked = stopping_notes(base.run, ours.run)
        mismatches, notes = paired.mismatches, [*notes, *paired.notes, *looked]
        verdicts += relative_verdicts(named, paired, chosen.alpha)
    judged = [rule.name for rule in (*chosen.of(*ABSOLUTE), *named)]
    notes += value_notes(map(canonical, judged), ours.run)
    verdicts += [coverage_verdict(rule, ours, judged) for rule in chosen.of(*COVERAGE)]
    return GateReport(
        ours.evaluation_id,
        ours.run.system_name,
        None if base is None else base.evaluation_id,
        None if base is None else base.run.system_name,
        chosen.alpha,
        chosen.if_inconclusive,
        verdicts,
        [*stopped, *notes],
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


def _complete(rules: GateRules, baseline: GatedRun | None) -> GateRules:
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
    added = []
    if not rules.of("margin", "no_regression", "max_loss"):
        added.append(Rule("no_regression", ALL))
    # What is no longer scored is in no test, so a loss could hide behind missing samples.
    if not rules.of("max_count_drop"):
        added.append(Rule("max_count_drop", limit=COUNT_DROP))
    return replace(rules, rules=(*rules.rules, *added))


@dataclass
class Paired:
    """Two runs, paired on the metrics that the rules are about."""

    candidate: GatedRun
    baseline: GatedRun
    tested: dict[str, Tested]
    left_out: dict[str, str]
    mismatches: list[str]
    notes: list[str] = field(default_factory=list)

    def of(self, name: str) -> Tested | None:
        return self.tested.get(name) or self.tested.get(canonical(name))

    def why_not(self, name: str) -> str:
        return self.left_out.get(name) or self.left_out.get(canonical(name), "")


def paired_runs(
    rules: Sequence[Rule],
    candidate: GatedRun,
    baseline: GatedRun,
    *,
    seed: int,
    resamples: int,
    allow_mismatch: bool,
) -> Paired:
    """Pair and test what the rules are about; other metrics may differ in whatever they like."""
    runs = [baseline.run, candidate.run]
    mismatches = data_mismatches(runs, allowed=allow_mismatch)
    wanted = {name for rule in rules for name in (rule.name, canonical(rule.name))}
    a, b = (replace(run, results=[one for one in run.results if one.name in wanted]) for run in runs)
    every, left_out = pairs_of([a], [b], mismatches, allow_mismatch=allow_mismatch)
    tested = [tested_pairs(one, seed=seed, resamples=resamples) for one in every]
    by_name = {one.pairs.name: one for one in tested}
    notes = [*snapshot_notes(*runs), *judge_notes(tested)]
    return Paired(candidate, baseline, by_name, left_out, mismatches, notes)


def each_named(
    rules: Sequence[Rule], baseline: GatedRun, candidate: GatedRun, *, allow_mismatch: bool
) -> tuple[list[Rule], list[str]]:
    """The rules with one for all metrics written out: one for each that the baseline measured; with notes."""
    not_alike = _without_scores(baseline.run, candidate.run)
    if not allow_mismatch:
        not_alike |= _not_alike(baseline.run, candidate.run)
    metrics = {result.name for result in baseline.run.results}
    # A rule may use a short name; a rule for all metrics must not judge the same metric again.
    named = {(rule.kind, canonical(rule.name)) for rule in rules if rule.name != ALL}
    rules_by_name, notes, times = [], [], []
    for rule in rules:
        if rule.name != ALL:
            rules_by_name.append(rule)
            continue
        for figure in baseline.figures().values():
            if figure.name not in metrics or (rule.kind, figure.name) in named:
                continue
            if figure.of_time:
                times.append(figure.name)
                continue
            if not math.isfinite(figure.value):
                note = f"{figure.name} was not measured in the baseline either: nothing to compare it with"
                notes.append(note)
                continue
            rules_by_name.append(replace(rule, name=figure.name, of_all=True))
    # Nobody named these, so they do not stop the gate; unless nothing else is compared.
    compared = [rule for rule in rules_by_name if not (rule.of_all and rule.name in not_alike)]
    if any(rule.of_all for rule in compared):
        notes += [
            f"{rule.name} is not compared: {not_alike[rule.name]}"
            for rule in rules_by_name
            if rule not in compared
        ]
        rules_by_name = compared
    if times := list(dict.fromkeys(times)):
        notes.append(
            f"times depend on the machine, and count only where a rule names them: {', '.join(times)}"
        )
    return rules_by_name, list(dict.fromkeys(notes))


def _not_alike(baseline: EvaluationRun, candidate: EvaluationRun) -> dict[str, str]:
    """How metrics were computed differently in the two runs, by name."""
    theirs = {one.name: one for one in candidate.results}
    both = [(one, theirs[one.name]) for one in baseline.results if one.name in theirs]
    return {a.name: " (".join(why) + ")" for a, b in both if (why := signature_mismatch(a, b))[0]}


def _without_scores(baseline: EvaluationRun, candidate: EvaluationRun) -> dict[str, str]:
    """Why metrics that have a value and no score per sample are not tested, by name."""
    return {
        one.name: NO_SCORES for run in (baseline, candidate) for one in run.results if not len(one.scores)
    }


def relative_verdicts(rules: Sequence[Rule], paired: Paired, alpha: float) -> list[RuleResult]:
    """A verdict for each rule, in their order."""
    # Decision 12: only these are corrected together. Margins are an intersection-union test (Berger 1982),
    # and limits are not tests.
    family = list(dict.fromkeys(rule.name for rule in rules if rule.kind == "no_regression"))
    names = [name for name in family if paired.of(name) is not None]
    settled, adjusted = corrected([one for name in names if (one := paired.of(name)) is not None], alpha)
    paired.tested.update({one.pairs.a.name: one for one in settled})
    p_values = {name: p for name, p in zip(names, adjusted, strict=True) if p is not None}
    verdicts = []
    for rule in rules:
        tested = paired.of(rule.name)
        if rule.kind == "max_count_drop":
            verdicts.append(count_drop(rule, paired.baseline, paired.candidate))
        elif refusal := _distrusted(rule, paired):
            verdicts.append(refusal)
        elif rule.kind == "max_loss":
            # Resources (memory, tokens) have no scores to pair: their values are compared.
            change = None if tested is None else _change(tested)
            verdicts.append(loss_verdict(rule, paired.baseline, paired.candidate, change))
        elif tested is None:
            verdicts.append(_not_paired(rule, paired))
        elif tested.not_tested:
            fix = _TIMES if is_of_time(tested.pairs.known) else _FAILURES
            if tested.judge is not None:
                fix = _JUDGE
            fix = _NO_VALUE if tested.not_tested == NO_VALUE else fix
            unit = tested.pairs.known.unit
            values = f"{shown(tested.value_a, unit)} before, {shown(tested.value_b, unit)} now"
            verdicts.append(
                _verdict(rule, Outcome.INCONCLUSIVE, f"{values}; {tested.not_tested}", fix, tested, None)
            )
        elif rule.kind == "margin":
            verdicts.append(_margin(rule, tested, paired, alpha))
        else:
            verdicts.append(_regression(rule, tested, paired, p_values, alpha))
    return verdicts


def _distrusted(rule: Rule, paired: Paired) -> RuleResult | None:
    """Return that the judge of either run is not to be used; for a comparison it may be uncalibrated."""
    for run in (paired.candidate, paired.baseline):
        figure = run.find(rule.name)
        if figure is not None and (refusal := distrusted(rule, figure, allow_uncalibrated=True)):
            return refusal
    return None


_TIMES = (
    "Limit how much of it may be lost instead (max_loss, with a generous limit), or compare repeats of both."
)
_NO_VALUE = "Choose a metric that has a value in both runs, or another baseline."
_FAILURES = "Fix the calls that failed, and judge again."
_JUDGE = "Use a judge that agrees more with people, or label samples of both runs."
_FAR = 10_000  # more samples than anyone will measure


def _regression(
    rule: Rule, tested: Tested, paired: Paired, p_values: Mapping[str, float], alpha: float
) -> RuleResult:
    p_value, tests = p_values[rule.name], len(p_values)
    difference, least = _difference_words(tested), min(1.0, tested.smallest_p * tests)
    # Decision 12: a rule that no data of this size could fail must not pass (five pairs: p = 0.0625 at best).
    if least >= alpha:
        words = _unseen(tested) if not tested.pairs.differs() else difference
        why = f"this few samples cannot detect any loss, however large: {words}, {p_text(least)} at best"
        # Of many metrics, some have few samples. Unless they lost, they do not stop the gate.
        others = any(one.smallest_p * tests < alpha for one in paired.tested.values())
        if rule.of_all and others and tested.gain >= 0:
            return _verdict(rule, Outcome.PASSED, why, "", tested, p_value)
        # The smallest p-value of n pairs is 2^(1 - n); times the number of tests it must be below alpha.
        enough = 1 + math.floor(1 + math.log2(tests / alpha))
        fix = f"Measure at least {enough} samples (more, for a loss that is not total); or use max_loss."
        return _verdict(rule, Outcome.INCONCLUSIVE, why, fix, tested, p_value)
    # alpha / tests is the level of the smallest p-value under Holm, the strictest of the family.
    seen = tested.detectable(alpha / tests)
    if not tested.pairs.differs():
        return _verdict(rule, Outcome.PASSED, _unseen(tested), "", tested, p_value, seen)
    corrected = p_text(p_value) + (f", Holm over {tests} metrics" if tests > 1 else "")
    if p_value < alpha and tested.gain < 0:
        hint = regressions_hint(paired.baseline, paired.candidate)
        return _verdict(
            rule,
            Outcome.FAILED,
            f"significantly worse: {difference}, {corrected}",
            hint,
            tested,
            p_value,
            seen,
        )
    sure = "better" if p_value < alpha else "no significant loss"
    why = f"{sure}: {difference}, {corrected}"
    if sure != "better" and seen is not None:
        why += f"; a loss of {shown(seen, tested.pairs.known.unit)} would be detected with 80% power"
    elif sure != "better" and tested.spread() is not None:
        why += "; this few samples detect no loss with 80% power, however large"
    return _verdict(rule, Outcome.PASSED, why, "", tested, p_value, seen)


def _margin(rule: Rule, tested: Tested, paired: Paired, alpha: float) -> RuleResult:
    margin, unit = rule.limit or 0.0, tested.pairs.known.unit
    hint = regressions_hint(paired.baseline, paired.candidate)
    words = _difference_words(tested) if tested.pairs.differs() else _unseen(tested)
    p_value, lowest = tested.margin_p(margin), tested.margin_limit(margin, 1 - alpha)
    if lowest is not None:
        words += f", at worst {shown(lowest, unit, signed=True)}"
    # The lower end of the two-sided interval is the convention of non-inferiority tests: half of alpha.
    if p_value < alpha / 2:
        why = f"a loss of {shown(margin, unit)} or more is ruled out: {words}"
        return _verdict(rule, Outcome.PASSED, why, "", tested, p_value)
    if tested.gain <= -margin:
        why = f"the best estimate is a loss of {shown(margin, unit)} or more: {words}"
        if not _surely_beyond(tested, margin):
            why += "; it may be less, but that is not shown"
        return _verdict(rule, Outcome.FAILED, why, hint, tested, p_value)
    why = f"a loss of {shown(margin, unit)} cannot be ruled out: {words}"
    return _verdict(rule, Outcome.INCONCLUSIVE, why, _enough(tested, margin, alpha, hint), tested, p_value)


def _surely_beyond(tested: Tested, margin: float) -> bool:
    """Whether the whole interval is a loss of the margin or more."""
    if tested.interval is None:
        return False
    higher = tested.pairs.known.higher_is_better
    return (tested.interval.high if higher else -tested.interval.low) <= -margin


def _enough(tested: Tested, margin: float, alpha: float, hint: str) -> str:
    """How many samples would rule the margin out, were there no difference."""
    if _surely_gained(tested):
        return _too_many(tested)
    needed = tested.samples_to_rule_out(margin, alpha)
    if needed is None:
        return "Measure more samples, or allow a wider margin."
    pairs = int(tested.pairs.both.sum())
    if needed <= pairs:  # there are enough samples: the loss is too large
        return f"Allow a wider margin, or win it back. {hint}"
    if needed > _FAR:
        return _too_many(tested)
    return f"About {needed:,} samples would rule it out if there is no difference. Or allow a wider margin."


def _surely_gained(tested: Tested) -> bool:
    """Whether the gain is significant."""
    return tested.is_significant and tested.gain > 0


def _too_many(tested: Tested) -> str:
    """Return why the margin cannot be ruled out: too few units, or more samples than anyone measures."""
    clustered = tested.pairs.used()[2] is not None
    units = f"{tested.units} {'clusters' if clustered else 'samples'}"
    more = "More clusters would, more samples of the same would not" if clustered else "More samples would"
    if _surely_gained(tested):
        gain = f"The gain is significant, but {units} are too few to rule out a loss that none of them shows."
        return f"{gain} {more}; or allow a wider margin."
    if clustered and tested.units < FEW_TO_COMPARE:
        return f"{units} are too few to rule out so small a loss. {more}; or allow a wider margin."
    return f"It would take more than {_FAR:,} samples to rule out so small a loss: allow a wider margin."


def _not_paired(rule: Rule, paired: Paired) -> RuleResult:
    for run in (paired.candidate, paired.baseline):
        figure = run.find(rule.name)
        if figure is None:
            return not_measured(rule, run, None)
        if figure.scored is None:
            is_metric = any(one.name == figure.name for one in run.run.results)
            why = NO_SCORES if is_metric else "it is not a metric: it has no scores to test"
            return RuleResult(
                rule, Outcome.MISSING, f"{figure.name} is not checked: {why}", "Use max_loss for it."
            )
    why = f"{rule.name} cannot be compared: {paired.why_not(rule.name) or 'it is in no sample of both'}"
    fix = "Name the metrics to be judged, or judge in Python, where your own metric is registered."
    return RuleResult(rule, Outcome.MISSING, why, fix)


def _verdict(
    rule: Rule,
    outcome: Outcome,
    why: str,
    fix: str,
    tested: Tested,
    p_value: float | None,
    detectable: float | None = None,
) -> RuleResult:
    sides = (tested.interval_b, tested.interval)
    side, difference = (None if one is None else (one.low, one.high) for one in sides)
    return RuleResult(
        rule,
        outcome,
        why,
        fix,
        value=tested.value_b,
        interval=side,
        baseline=tested.value_a,
        change=tested.difference,
        change_interval=difference,
        p_value=p_value,
        unit=tested.pairs.known.unit,
        detectable=detectable,
        gain=tested.gain,
        failed=_failed(tested),
    )


def _difference_words(tested: Tested) -> str:
    """The change with its interval, and what was counted as what."""
    unit, pairs = tested.pairs.known.unit, tested.pairs
    interval = None if tested.interval is None else (tested.interval.low, tested.interval.high)
    words = f"{shown(tested.difference, unit, signed=True)}{shown_interval(interval, unit)}"
    words += f" on {_pairs(tested)}"
    if failed := _failed(tested):
        words += f" ({failed} failed, counted as the worst)"
    return words + (f" ({pairs.unmatched} without a partner)" if pairs.unmatched else "")


def _pairs(tested: Tested) -> str:
    count = int(tested.pairs.both.sum())
    return f"{count} pair{'s' * (count != 1)}"


def _failed(tested: Tested) -> int:
    """How many samples of the candidate failed, and count as the worst; seconds know no worst."""
    pairs = tested.pairs
    counted = math.isfinite(sum(pairs.known.bounds))
    return pairs.failures[1] if counted else 0


def _unseen(tested: Tested) -> str:
    """How large a loss could have gone unseen where no sample differs."""
    pairs, units = int(tested.pairs.both.sum()), tested.units
    words = f"no sample differs among {_pairs(tested)}" + (f" in {units} clusters" if units < pairs else "")
    if tested.interval is None:
        return words
    loss = tested.interval.high if tested.sign < 0 else -tested.interval.low
    return f"{words} (a loss of up to {shown(loss)} can go unseen)"


def _change(tested: Tested) -> Change:
    metric = tested.pairs.known
    interval = None if tested.interval is None else (tested.interval.low, tested.interval.high)
    return Change(tested.value_a, tested.value_b, metric.higher_is_better, metric.unit, interval)
