"""The rules of a gate that hold a run against a baseline, sample by sample, as a comparison does.

Which tests share the chance of a false alarm? A gate of `no_regression` rules fails when any of them does, so
their p-values are corrected together (Holm): runs that do not differ fail it at most alpha of the time. A
gate of `margin` rules passes only when all of them do, so each is tested at alpha by itself: a run that is
worse by its margin on any metric passes at most alpha of the time (an intersection-union test).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..stats.paired_margins import unseen_loss
from .cluster_notes import FEW_TO_COMPARE
from .compare import pairings_of
from .gate_absolute import not_measured
from .gate_figures import GatedRun, canonical
from .gate_losses import Change, count_drop, losers_hint, loss_verdict
from .gate_rules import ALL, Rule
from .gate_verdict import FAIL, MISSING, PASS, UNCLEAR, Verdict, shown, shown_interval
from .mismatch import data_mismatches, snapshot_notes
from .paired_tests import Tested, family_p, is_of_time, tested_all
from .repeats import times_by_run


@dataclass
class Paired:
    """Two runs, paired on the metrics that the rules are about."""

    candidate: GatedRun
    baseline: GatedRun
    tested: dict[str, Tested]
    left_out: dict[str, str]
    mismatches: list[str]
    resamples: int
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
    pairings, left_out = pairings_of(a, b, mismatches, allow_mismatch=allow_mismatch)
    tested = times_by_run(tested_all(pairings, seed=seed, resamples=resamples), runs[:1], runs[1:])
    found = {one.pairing.a.name: one for one in tested}
    return Paired(candidate, baseline, found, left_out, mismatches, resamples, snapshot_notes(*runs))


def each_named(rules: Sequence[Rule], baseline: GatedRun) -> tuple[list[Rule], list[str]]:
    """The rules with one for all metrics written out: one for each that the baseline measured; with notes."""
    named = {(rule.kind, canonical(rule.name)) for rule in rules if rule.name != ALL}
    found, notes = [], []
    for rule in rules:
        if rule.name != ALL:
            found.append(rule)
            continue
        for figure in baseline.figures().values():
            if figure.scored is None or (rule.kind, figure.name) in named:
                continue
            if figure.of_time:
                notes.append(f"{figure.name} depends on the machine: it is judged only where a rule names it")
                continue
            if not math.isfinite(figure.value):
                note = f"{figure.name} was not measured in the baseline either: nothing to hold it against"
                notes.append(note)
                continue
            found.append(replace(rule, name=figure.name, of_all=True))
    return found, list(dict.fromkeys(notes))


def relative_verdicts(rules: Sequence[Rule], paired: Paired, alpha: float) -> list[Verdict]:
    """A verdict for each rule, in their order."""
    family = list(dict.fromkeys(rule.name for rule in rules if rule.kind == "no_regression"))
    tests = [(name, one) for name in family if (one := paired.of(name)) is not None]
    adjusted = family_p([one for _, one in tests])
    p_values = {name: p for (name, _), p in zip(tests, adjusted, strict=True) if p is not None}
    found = []
    for rule in rules:
        tested = paired.of(rule.name)
        if rule.kind == "max_count_drop":
            found.append(count_drop(rule, paired.baseline, paired.candidate))
        elif rule.kind == "max_loss":
            change = None if tested is None else _change(tested)
            found.append(loss_verdict(rule, paired.baseline, paired.candidate, change))
        elif tested is None:
            found.append(_not_paired(rule, paired))
        elif tested.untold:
            fix = _TIMES if is_of_time(tested.pairing.known) else _FAILURES
            found.append(_verdict(rule, UNCLEAR, _untold(tested), fix, tested, None))
        elif rule.kind == "margin":
            found.append(_margin(rule, tested, paired, alpha))
        else:
            found.append(_regression(rule, tested, paired, p_values, alpha))
    return found


_TIMES = "Limit how much of it may be lost instead (max_loss, with room), or compare repeats of both."
_FAILURES = "Mend the calls that failed, and judge again."
_FAR = 10_000  # more samples than anyone will measure


def _untold(tested: Tested) -> str:
    unit = tested.pairing.known.unit
    return f"{shown(tested.value_a, unit)} before, {shown(tested.value_b, unit)} now; {tested.untold}"


def _regression(
    rule: Rule, tested: Tested, paired: Paired, p_values: Mapping[str, float], alpha: float
) -> Verdict:
    p_value, tests = p_values[rule.name], len(p_values)
    told, least = _told(tested), _least(tested, paired, tests)
    if least >= alpha:
        words = _unseen(tested) if not tested.pairing.differs() else told
        why = f"so few samples can show no loss, however large: {words}, {_p(least)} at best"
        # Of many metrics some stand on few samples. Unless they lost, they do not stop what the others show.
        others = any(_least(one, paired, tests) < alpha for one in paired.tested.values())
        if rule.of_all and others and _gain(tested) >= 0:
            return _verdict(rule, PASS, why, "", tested, p_value)
        return _verdict(rule, UNCLEAR, why, _enough_for_any(tests, alpha), tested, p_value)
    seen = tested.detectable(alpha / tests, paired.resamples)
    if not tested.pairing.differs():
        return _verdict(rule, PASS, _unseen(tested), "", tested, p_value, seen)
    corrected = _p(p_value) + (f", Holm over {tests} metrics" if tests > 1 else "")
    if p_value < alpha and _gain(tested) < 0:
        hint = losers_hint(paired.baseline, paired.candidate)
        return _verdict(rule, FAIL, f"surely worse: {told}, {corrected}", hint, tested, p_value, seen)
    sure = "better" if p_value < alpha else "no sure loss"
    why = f"{sure}: {told}, {corrected}"
    if sure != "better" and seen is not None:
        why += f"; a loss of {shown(seen, tested.pairing.known.unit)} shows four times in five"
    elif sure != "better" and tested.differing(paired.resamples) is not None:
        why += "; on so few samples no loss, however large, shows four times in five"
    return _verdict(rule, PASS, why, "", tested, p_value, seen)


def _least(tested: Tested, paired: Paired, tests: int) -> float:
    """The smallest p-value that a metric can have beside so many others."""
    return min(1.0, tested.smallest_p(paired.resamples) * tests)


def _enough_for_any(tests: int, alpha: float) -> str:
    least = 1 + math.floor(1 + math.log2(tests / alpha))
    return f"Measure at least {least} samples (more, for a loss that is not total); or use max_loss."


def _margin(rule: Rule, tested: Tested, paired: Paired, alpha: float) -> Verdict:
    margin, told, unit = rule.limit or 0.0, _told(tested), tested.pairing.known.unit
    p_value, differs = tested.margin_p(margin), tested.pairing.differs()
    told = told if differs else _unseen(tested)
    if p_value < alpha:
        why = f"a loss of {shown(margin, unit)} or more is ruled out: {told}, one-sided {_p(p_value)}"
        return _verdict(rule, PASS, why, "", tested, p_value)
    if _gain(tested) <= -margin:
        why = f"the best guess is a loss of {shown(margin, unit)} or more: {told}"
        if not _surely_beyond(tested, margin):
            why += "; it may be less, but that is not shown"
        return _verdict(rule, FAIL, why, losers_hint(paired.baseline, paired.candidate), tested, p_value)
    why = f"a loss of {shown(margin, unit)} cannot be ruled out: {told}, one-sided {_p(p_value)}"
    fix = _enough(tested, margin, alpha, losers_hint(paired.baseline, paired.candidate))
    return _verdict(rule, UNCLEAR, why, fix, tested, p_value)


def _surely_beyond(tested: Tested, margin: float) -> bool:
    """Whether the whole interval is a loss of the margin or more."""
    if tested.interval is None:
        return False
    higher = tested.pairing.known.higher_is_better
    return (tested.interval.high if higher else -tested.interval.low) <= -margin


def _enough(tested: Tested, margin: float, alpha: float, hint: str) -> str:
    """How many samples would rule the margin out, were there no difference."""
    if _surely_gained(tested):
        return _too_many(tested)
    needed = tested.samples_to_rule_out(margin, alpha)
    if needed is None:
        return "Measure more samples, or allow a wider margin."
    pairs = int(tested.pairing.both.sum())
    if needed <= pairs:  # there are enough samples; it is the loss that stands in the way
        return f"Allow a wider margin, or win it back. {hint}"
    if needed > _FAR:
        return _too_many(tested)
    return f"About {needed:,} samples would rule it out, if there is no difference; or allow a wider margin."


def _surely_gained(tested: Tested) -> bool:
    """Whether the whole interval is a gain."""
    limits = tested.interval
    return limits is not None and _gain(tested) > 0 and limits.low * limits.high > 0


def _too_many(tested: Tested) -> str:
    """What stands in the way: of a sure gain few units, else that nobody will measure so many samples."""
    clustered = tested.pairing.used()[2] is not None
    units = f"{tested.units} {'clusters' if clustered else 'samples'}"
    more = "More clusters would, more samples of the same would not" if clustered else "More samples would"
    if _surely_gained(tested):
        gain = f"The gain is sure, but {units} are too few to rule out a loss that none of them shows."
        return f"{gain} {more}; or allow a wider margin."
    if clustered and tested.units < FEW_TO_COMPARE:
        return f"{units} are too few to rule out so small a loss. {more}; or allow a wider margin."
    return f"It would take more than {_FAR:,} samples to rule out so small a loss: allow a wider margin."


def _not_paired(rule: Rule, paired: Paired) -> Verdict:
    severity = rule.severity_of(None)
    for run in (paired.candidate, paired.baseline):
        figure = run.find(rule.name)
        if figure is None:
            return not_measured(rule, run, None)
        if figure.scored is None:
            why = f"{figure.name} is no metric: it has no scores to test"
            return Verdict(rule, MISSING, why, "Use max_loss for it.", severity=severity)
    why = f"{rule.name} cannot be compared: {paired.why_not(rule.name) or 'it is in no sample of both'}"
    fix = "Name the metrics to be judged, or judge in Python, where your own metric is registered."
    return Verdict(rule, MISSING, why, fix, severity=severity)


def _verdict(
    rule: Rule,
    outcome: str,
    why: str,
    fix: str,
    tested: Tested,
    p_value: float | None,
    detectable: float | None = None,
) -> Verdict:
    sides = (tested.interval_b, tested.interval)
    side, difference = (None if one is None else (one.low, one.high) for one in sides)
    return Verdict(
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
        unit=tested.pairing.known.unit,
        severity=rule.severity_of(None),
        detectable=detectable,
        gain=_gain(tested),
        failed=_failed(tested),
    )


def _told(tested: Tested) -> str:
    """The change with its interval, and what was counted as what."""
    unit, pairing = tested.pairing.known.unit, tested.pairing
    interval = None if tested.interval is None else (tested.interval.low, tested.interval.high)
    words = f"{shown(tested.difference, unit, signed=True)}{shown_interval(interval, unit)}"
    words += ", the same for all," if tested.no_spread and tested.difference else ""
    words += f" on {_pairs(tested)}"
    if failed := _failed(tested):
        words += f" ({failed} failed, counted as the worst)"
    return words + (f" ({pairing.unmatched} without a partner)" if pairing.unmatched else "")


def _pairs(tested: Tested) -> str:
    count = int(tested.pairing.both.sum())
    return f"{count} pair{'s' * (count != 1)}"


def _failed(tested: Tested) -> int:
    """How many samples of the candidate failed, and count as the worst; seconds know no worst."""
    pairing = tested.pairing
    counted = math.isfinite(sum(pairing.known.bounds))
    return int(pairing.b.details.get("num_failed", 0)) if counted else 0


def _unseen(tested: Tested) -> str:
    """How large a loss could have gone unseen where no sample differs."""
    low, high = tested.pairing.known.bounds
    pairs, units = int(tested.pairing.both.sum()), tested.units
    words = f"no sample differs among {_pairs(tested)}" + (f" in {units} clusters" if units < pairs else "")
    if not math.isfinite(high - low):
        return words
    unseen = unseen_loss(units, high - low, tested.lost_size)
    return f"{words} (a loss of up to {shown(unseen)} can go unseen by so many)"


def _change(tested: Tested) -> Change:
    metric = tested.pairing.known
    interval = None if tested.interval is None else (tested.interval.low, tested.interval.high)
    return Change(tested.value_a, tested.value_b, metric.higher_is_better, metric.unit, interval)


def _gain(tested: Tested) -> float:
    """The change, upwards for the better."""
    return tested.difference if tested.pairing.known.higher_is_better else -tested.difference


def _p(p_value: float) -> str:
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"
