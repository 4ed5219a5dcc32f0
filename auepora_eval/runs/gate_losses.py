"""The rules of a gate about shares of the baseline: how much of a figure, or of what is counted, is lost."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .gate_absolute import not_measured
from .gate_figures import Figure, GatedRun, Limits
from .gate_rules import Rule, size_of
from .gate_verdict import FAIL, MISSING, PASS, UNCLEAR, Verdict, shown

_RESOURCES = "Find out what takes more than it did, on the same machine; or raise the limit."
_COUNTS = "Find out what is no longer measured: auepora show {}{} tells what failed and what was skipped."


@dataclass(frozen=True)
class Change:
    """A figure in two runs, with the 95% interval of the difference where samples are paired."""

    before: float
    now: float
    higher_is_better: bool
    unit: str = ""
    interval: Limits | None = None

    @property
    def loss(self) -> float:
        """The share of the old value that is lost: less of what is better, more of what is worse."""
        return self._share(self.now - self.before)

    @property
    def worst_loss(self) -> float | None:
        """The same at the worse end of the interval."""
        if self.interval is None:
            return None
        return self._share(self.interval[0] if self.higher_is_better else self.interval[1])

    def _share(self, change: float) -> float:
        lost = -change if self.higher_is_better else change
        return lost / abs(self.before) + 0.0 if self.before else 0.0  # no loss is 0, not -0

    def __str__(self) -> str:
        return f"{shown(self.before, self.unit)} before, {shown(self.now, self.unit)} now"


def losers_hint(baseline: GatedRun, candidate: GatedRun) -> str:
    """How to see the samples that lost."""
    return f"See what lost: auepora compare {baseline.named} {candidate.named} --losers 10{candidate.flags}"


def loss_verdict(rule: Rule, baseline: GatedRun, candidate: GatedRun, change: Change | None) -> Verdict:
    """Is more lost than may be? `change` is that of a metric that is paired; other figures are looked up."""
    paired = change is not None
    if change is None:
        old, new = baseline.find(rule.name), candidate.find(rule.name)
        for run, figure in ((candidate, new), (baseline, old)):
            if figure is None or not math.isfinite(figure.value):
                return not_measured(rule, run, figure)
        assert old is not None  # noqa: S101 - for the reader of types: the loop has seen to it
        assert new is not None  # noqa: S101
        change = Change(old.value, new.value, old.higher_is_better, old.unit)
    if change.before == 0 and change.now != 0:
        why = f"{change}: of nothing no share can be lost"
        return _lost(rule, UNCLEAR, why, "Give a limit with --min or --max.", change, None)
    held = change.worst_loss if rule.on == "bound" and change.now != change.before else change.loss
    if held is None and change.loss > (rule.limit or 0.0):
        held = change.loss  # no interval is needed to see that
    if held is None:
        why = f"{change}, with no interval to hold it by"
        return _lost(rule, UNCLEAR, why, "Judge the value (on: value).", change, None)
    limit = rule.limit or 0.0
    fails = held > limit
    size = size_of(held) if fails else ""
    word = f"{abs(held):.1%} {'worse' if held > 0 else 'better'}" if held else "no loss"
    ends = " at the worse end of the interval" if held != change.loss else ""
    why = f"{word}{ends}{f' ({size})' if size else ''}: {change}; a loss of {limit:.1%} is allowed"
    fix = (losers_hint(baseline, candidate) if paired else _RESOURCES) if fails else ""
    return _lost(rule, FAIL if fails else PASS, why, fix, change, held)


def _lost(rule: Rule, outcome: str, why: str, fix: str, change: Change, held: float | None) -> Verdict:
    return Verdict(
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
        severity=rule.severity_of(held),
    )


def count_drop(rule: Rule, baseline: GatedRun, candidate: GatedRun) -> Verdict:
    """Are there fewer samples, answers or scores of a metric than the baseline has?"""
    drops = [(1 - now / before, what, before, now) for what, before, now in _counts(baseline, candidate)]
    if not drops:
        why = "there is nothing to count in both runs"
        return Verdict(
            rule, MISSING, why, "Judge runs with the same metrics.", severity=rule.severity_of(None)
        )
    drop, what, before, now = max(drops, key=lambda one: one[0])
    limit, size = rule.limit or 0.0, size_of(drop)
    why = f"{what}: {before} before, {now} now; a loss of {limit:.1%} is allowed"
    if drop > limit:
        why = f"{drop:.1%} fewer{f' ({size})' if size else ''} {why}"
    return Verdict(
        rule,
        FAIL if drop > limit else PASS,
        why,
        _COUNTS.format(candidate.named, candidate.flags) if drop > limit else "",
        value=float(now),
        baseline=float(before),
        change=float(now - before),
        loss=drop,
        severity=rule.severity_of(drop),
    )


def _counts(baseline: GatedRun, candidate: GatedRun) -> list[tuple[str, int, int]]:
    """(what, before, now) of everything that both runs count, and that the baseline has any of."""
    counts = []
    if baseline.tally is not None and candidate.tally is not None:
        before, now = baseline.tally, candidate.tally
        counts.append(("samples", before.total, now.total))
        counts.append(("answers", before.total - before.failed, now.total - now.failed))
    theirs = candidate.figures()
    for figure in baseline.figures().values():
        other: Figure | None = theirs.get(figure.name)
        if figure.scored is not None and other is not None:
            counts.append((f"scores of {figure.name}", figure.scored, other.scored or 0))
    return [count for count in counts if count[1]]
