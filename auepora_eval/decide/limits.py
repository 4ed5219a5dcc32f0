"""The rules of a gate that need no baseline: limits of a figure, and how much was measured."""

from __future__ import annotations

import math
import shlex
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..comparison.compare import MetricComparison
from ..core.verdict import Outcome
from .figures import Figure, GatedRun, command_for
from .gate_report import Limits, RuleResult, shown
from .rules import Rule

_UNCALIBRATED = (
    "Compare the judge with people: auepora judge RUN --calibrate labels.jsonl; or allow it in a file of "
    "rules: allow_uncalibrated: true."
)
_DISTRUSTED = "Use another judge, and look at its probes and its audit (auepora judge-audit)."


def limit_verdict(rule: Rule, run: GatedRun, *, allow_uncalibrated: bool = False) -> RuleResult:
    """Does a figure, or the worse end of its interval, keep its limit?"""
    figure = run.find(rule.name)
    if figure is None or not math.isfinite(figure.value):
        return not_measured(rule, run, figure)
    if refusal := distrusted(rule, figure, allow_uncalibrated=allow_uncalibrated):
        return refusal
    held, what = figure.value, "the value"
    if rule.on == "bound":
        if figure.interval is None:
            why = f"{figure.name} is {shown(figure.value, figure.unit)}, with no interval to hold it by"
            fix = "Measure more samples, or judge the value (on: value)."
            return RuleResult(rule, Outcome.INCONCLUSIVE, why, fix, value=figure.value, unit=figure.unit)
        held = figure.interval[0] if rule.kind == "min" else figure.interval[1]
        what = f"the {'lower' if rule.kind == 'min' else 'upper'} bound"
    outcome, why, fix = _held(rule, figure, held, what, run)
    return RuleResult(
        rule,
        outcome,
        why,
        fix,
        value=figure.value,
        interval=figure.interval,
        unit=figure.unit,
        failed=figure.failed,
    )


def distrusted(rule: Rule, figure: Figure, *, allow_uncalibrated: bool) -> RuleResult | None:
    """Return that a rule cannot be decided by the value of this judge; None if it can."""
    why, fix = figure.distrust, _DISTRUSTED
    if not why and figure.uncorrected and not allow_uncalibrated:
        why, fix = figure.uncorrected, _UNCALIBRATED
    if not why:
        return None
    # The value is not part of the result: it could be taken for one that was judged.
    return RuleResult(rule, Outcome.MISSING, f"{figure.name}: {why}", fix, unit=figure.unit)


def _held(rule: Rule, figure: Figure, held: float, what: str, run: GatedRun) -> tuple[Outcome, str, str]:
    """(outcome, why, what to do) of a figure that was measured."""
    limit = rule.limit or 0.0
    unit, comparison = figure.unit, "at least" if rule.kind == "min" else "at most"
    words = f"{what} of {figure.name} is {shown(held, unit)}, {comparison} {shown(limit, unit)} is required"
    words += f" ({figure.counted})" if figure.counted else ""
    if not _keeps(rule, held):
        if held != figure.value and _keeps(rule, figure.value):
            return Outcome.FAILED, f"{words}; the value, {shown(figure.value, unit)}, would do", _MORE
        if figure.scored is None:
            return Outcome.FAILED, words, "Find out what takes so much; or raise the limit."
        best = figure.worst(lowest=rule.kind == "max")
        if unscored_too_often(figure) and (best is None or _keeps(rule, best)):
            return (
                Outcome.INCONCLUSIVE,
                f"{words}, but {unscored(figure, run)}",
                score_again(figure.name, run),
            )
        command = command_for(f"show {run.named} --worst {shlex.quote(figure.name)}", run)
        return Outcome.FAILED, words, f"Look at the samples behind it: {command}"
    if not figure.failed:
        return Outcome.PASSED, words, ""
    # A limit is kept only if it holds whatever the failed calls could have answered.
    worst = figure.worst(lowest=rule.kind == "min")
    if worst is None:
        return Outcome.PASSED, f"{words} ({figure.failed} failed calls are not in it)", ""
    if _keeps(rule, worst):
        return Outcome.PASSED, f"{words}, also if the {figure.failed} that failed count as wrong", ""
    again = score_again(figure.name, run) if figure.unmeasured else call_again(run)
    return Outcome.INCONCLUSIVE, f"{words}, but {_with_failures(figure, worst)}", again


def unscored_too_often(figure: Figure) -> bool:
    """Return whether a metric left too many answers without a score for its value to decide anything."""
    return figure.unmeasured > _MOST_UNSCORED * ((figure.scored or 0) + figure.failed)


def unscored(figure: Figure, run: GatedRun) -> str:
    """Say how many answers a metric could not score."""
    total = (figure.scored or 0) + figure.failed
    share = figure.unmeasured / max(1, total)
    return f"{figure.unmeasured} of {total} answers of {run.evaluation_id} could not be scored ({share:.1%})"


def score_again(name: str, run: GatedRun) -> str:
    """Return how to get the scores that a metric failed to compute: failed verdicts are asked again."""
    return run.score_command(name, "Judge again" if run.needs_judge(name) else "Score again")


def call_again(run: GatedRun) -> str:
    """Return how to call the samples again that failed: by a command if the run knows its system."""
    command = ""
    if run.path is not None and run.run.configuration.get("system"):
        words = f"run --resume {shlex.quote(run.evaluation_id)} --retry-failed"
        command = f" ({command_for(words, run)})"
    return f"Call the failed samples again{command}, then judge again."


def _with_failures(figure: Figure, worst: float) -> str:
    """Say what a figure would be with the calls that failed."""
    if not math.isfinite(worst):
        calls, they = ("1 call", "it") if figure.failed == 1 else (f"{figure.failed} calls", "they")
        is_time = figure.of_time or figure.unit == "ms"
        unknown = f"how long {they} would have taken" if is_time else f"what {they} would have scored"
        return f"{calls} failed, and {unknown} is not known"
    return f"{shown(worst, figure.unit)} if the {figure.failed} that failed count as wrong"


_MOST_UNSCORED = 0.01  # share of answers that a metric could not score; as --min-coverage has it
_MORE = "More samples make the interval narrower; or judge the value (on: value)."


def _keeps(rule: Rule, value: float) -> bool:
    limit = rule.limit or 0.0
    return value >= limit if rule.kind == "min" else value <= limit


def not_measured(rule: Rule, run: GatedRun, figure: Figure | None) -> RuleResult:
    """A rule about something that the run does not have."""
    if figure is None:
        why = f"{run.evaluation_id} has no figure {rule.name!r:.100}"
        return RuleResult(rule, Outcome.MISSING, why, run.near(rule.name))
    why = f"{figure.name} was not measured in {run.evaluation_id}"
    if figure.failed:
        why += f": all {figure.failed} failed"
    if figure.unmeasured:
        return RuleResult(rule, Outcome.MISSING, why, score_again(figure.name, run))
    return RuleResult(rule, Outcome.MISSING, why, "Score a run that has what it needs.")


def failures_verdict(rule: Rule, run: GatedRun, judged: Iterable[str]) -> RuleResult:
    """Were enough calls and scores measured for the other rules to mean something?"""
    figures = [figure for name in judged if (figure := run.find(name)) is not None]
    # If the rules name no metric (only calls or resources), all of them are checked.
    metrics = [one for one in figures if one.scored is not None] or [
        one for one in run.figures().values() if one.scored is not None
    ]
    parts = [
        (
            one.failed,
            one.failed + (one.scored or 0),
            f"scores of {one.name}",
            score_again(one.name, run) if one.unmeasured else call_again(run),
        )
        for one in metrics
    ]
    if run.tally is not None:
        # First, because max() keeps the first of equal shares, and failed calls explain failed scores.
        parts.insert(0, (run.tally.failed, run.tally.total, "calls", call_again(run)))
    parts = [part for part in parts if part[1]]
    if not parts:
        why = "nothing was measured, so the share of failures is unknown"
        return RuleResult(rule, Outcome.MISSING, why, "Judge a run with samples.")
    failed, total, what, again = max(parts, key=lambda part: part[0] / part[1])
    share, limit = failed / total, rule.limit or 0.0
    why = f"{failed} of {total} {what} failed ({share:.1%}); {limit:.3g} of them may"
    if share <= limit:
        return RuleResult(rule, Outcome.PASSED, why, value=share)
    # Missing, not failed: too many failures say that the run cannot be judged, not that it is worse.
    return RuleResult(rule, Outcome.MISSING, why, again, value=share)


# The rules of a gate about shares of the baseline: how much of a figure, or of what is counted, is lost.

_RESOURCES = "Find out what takes more than it did, on the same machine; or raise the limit."
_COUNTS = "Find out what is no longer measured: {} lists what failed and what was skipped."


@dataclass(frozen=True)
class Change:
    """A figure in two runs, with the 95% interval of the difference where samples are paired."""

    before: float
    now: float
    higher_is_better: bool
    unit: str = ""
    interval: Limits | None = None

    @classmethod
    def of(cls, metric: MetricComparison) -> Change:
        better = metric.higher_is_better
        return cls(metric.baseline, metric.candidate, better, metric.unit, metric.effect.interval)

    def lost(self, change: float) -> float:
        """The share of the old value that a change loses: less of what is better, more of what is worse."""
        lost = -change if self.higher_is_better else change
        return lost / abs(self.before) + 0.0 if self.before else 0.0  # no loss is 0, not -0

    @property
    def loss(self) -> float:
        return self.lost(self.now - self.before)

    def __str__(self) -> str:
        return f"{shown(self.before, self.unit)} before, {shown(self.now, self.unit)} now"


def regressions_hint(baseline: GatedRun, candidate: GatedRun) -> str:
    """How to see the samples that lost."""
    words = f"compare {baseline.named} {candidate.named} --regressions 10"
    return f"See the regressions: {command_for(words, candidate, baseline)}"


def loss_verdict(rule: Rule, baseline: GatedRun, candidate: GatedRun, change: Change | None) -> RuleResult:
    """Is more lost than may be? `change` is that of a metric that is paired; other figures are looked up."""
    paired = change is not None
    if change is None:
        old, new = baseline.find(rule.name), candidate.find(rule.name)
        if new is None or not math.isfinite(new.value):
            return not_measured(rule, candidate, new)
        if old is None or not math.isfinite(old.value):
            return not_measured(rule, baseline, old)
        change = Change(old.value, new.value, old.higher_is_better, old.unit)
    if change.before == 0 and change.now != 0:
        why = f"{change}: of nothing no share can be lost"
        return _lost(rule, Outcome.INCONCLUSIVE, why, "Give a limit with --min or --max.", change, None)
    limit, held = rule.limit or 0.0, change.loss
    if rule.on == "bound" and change.now != change.before:
        if change.interval is not None:
            held = change.lost(change.interval[0] if change.higher_is_better else change.interval[1])
        elif held <= limit:  # a loss above the limit needs no interval
            why = f"{change}, with no interval to hold it by"
            return _lost(rule, Outcome.INCONCLUSIVE, why, "Judge the value (on: value).", change, None)
    fails = held > limit
    word = f"{abs(held):.1%} {'worse' if held > 0 else 'better'}" if held else "no loss"
    ends = " at the worse end of the interval" if held != change.loss else ""
    why = f"{word}{ends}: {change}; a loss of {limit:.1%} is allowed"
    if not fails and (hidden := _hidden_loss(candidate.find(rule.name), change, limit, paired=paired)):
        return _lost(rule, Outcome.INCONCLUSIVE, f"{why}, but {hidden}", call_again(candidate), change, held)
    if not fails:
        return _lost(rule, Outcome.PASSED, why, "", change, held)
    fix = regressions_hint(baseline, candidate) if paired else _RESOURCES
    return _lost(rule, Outcome.FAILED, why, fix, change, held)


def _hidden_loss(figure: Figure | None, change: Change, limit: float, *, paired: bool) -> str:
    """Say that failed calls may hide a larger loss; "" if not. Pairs count them, except those of times."""
    if figure is None or (paired and not figure.of_time):
        return ""
    worst = figure.worst(lowest=change.higher_is_better)
    if worst is None or replace(change, now=worst).loss <= limit:
        return ""
    return _with_failures(figure, worst)


def _lost(rule: Rule, outcome: Outcome, why: str, fix: str, change: Change, held: float | None) -> RuleResult:
    return RuleResult(
        rule,
        outcome,
        why,
        fix,
        value=change.now,
        baseline=change.before,
        change=change.now - change.before,
        change_interval=change.interval,
        unit=change.unit,
        loss=None if held is None else change.loss,
    )


def count_drop(rule: Rule, baseline: GatedRun, candidate: GatedRun) -> RuleResult:
    """Are there fewer samples, answers or scores of a metric than the baseline has?"""
    drops = [(1 - now / before, what, before, now) for what, before, now in _counts(baseline, candidate)]
    if not drops:
        why = "there is nothing to count in both runs"
        return RuleResult(rule, Outcome.MISSING, why, "Judge runs with the same metrics.")
    drop, what, before, now = max(drops, key=lambda one: one[0])
    limit = rule.limit or 0.0
    outcome, fix = Outcome.PASSED, ""
    why = f"{what}: {before} before, {now} now; a loss of {limit:.1%} is allowed"
    if drop > limit:
        # Why samples have no score of a metric: a system that declines more has fewer scores.
        name = what.removeprefix("scores of ")
        had, has = (
            {one.sample_id: one for result in side.run if result.name == name for one in result.scores}
            for side in (baseline, candidate)
        )
        reasons = Counter(
            "failed" if one.failed else one.reason
            for sample_id, one in has.items()
            if one.value is None and sample_id in had and had[sample_id].value is not None
        )
        most = "".join(f"; {count} have none now: {reason}" for reason, count in reasons.most_common(1))
        outcome, why = Outcome.FAILED, f"{drop:.1%} fewer {why}{most}"
        fix = _COUNTS.format(command_for(f"show {candidate.named}", candidate))
    change = float(now - before)
    return RuleResult(
        rule, outcome, why, fix, value=float(now), baseline=float(before), change=change, loss=drop
    )


def _counts(baseline: GatedRun, candidate: GatedRun) -> list[tuple[str, int, int]]:
    """(what, before, now) of everything that both runs count, and that the baseline has any of."""
    counts: list[tuple[str, int, int]] = []
    if baseline.tally is not None and candidate.tally is not None:
        before, now = baseline.tally, candidate.tally
        counts.append(("samples", before.total, now.total))
        # Besides samples: a run can ask all of them and still lose answers to failed calls.
        counts.append(("answers", before.total - before.failed, now.total - now.failed))
    theirs = candidate.figures()
    for figure in baseline.figures().values():
        other: Figure | None = theirs.get(figure.name)
        if figure.scored is not None and other is not None:
            # The system has not lost what the metric failed to score: the rules about the metric see that.
            now_scored = (other.scored or 0) + other.unmeasured
            counts.append((f"scores of {figure.name}", figure.scored + figure.unmeasured, now_scored))
    return [count for count in counts if count[1]]
