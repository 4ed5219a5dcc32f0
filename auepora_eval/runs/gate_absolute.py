"""The rules of a gate that need no baseline: limits of a figure, and how much was measured."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Sequence

from ..core.metrics_base import SampleMetric
from ..metrics.parse import parse_metric
from .gate_figures import Figure, GatedRun
from .gate_rules import Rule
from .gate_verdict import FAIL, MISSING, PASS, UNCLEAR, Verdict, shown


def limit_verdict(rule: Rule, run: GatedRun) -> Verdict:
    """Does a figure, or the worse end of its interval, keep its limit?"""
    figure = run.find(rule.name)
    severity = rule.severity_of(None)
    if figure is None or not math.isfinite(figure.value):
        return not_measured(rule, run, figure)
    held, what = figure.value, "the value"
    if rule.on == "bound":
        if figure.interval is None:
            why = f"{figure.name} is {shown(figure.value, figure.unit)}, with no interval to hold it by"
            fix = "Measure more samples, or judge the value (on: value)."
            return Verdict(rule, UNCLEAR, why, fix, value=figure.value, unit=figure.unit, severity=severity)
        held = figure.interval[0] if rule.kind == "min" else figure.interval[1]
        what = f"the {'lower' if rule.kind == 'min' else 'upper'} bound"
    outcome, why, fix = _held(rule, figure, held, what, run.evaluation_id)
    return Verdict(
        rule,
        outcome,
        why,
        fix,
        value=figure.value,
        interval=figure.interval,
        unit=figure.unit,
        severity=severity,
        failed=figure.failed,
    )


def _held(rule: Rule, figure: Figure, held: float, what: str, run_id: str) -> tuple[str, str, str]:
    """(outcome, why, what to do) of a figure that was measured."""
    limit = rule.limit or 0.0
    unit, asked = figure.unit, "at least" if rule.kind == "min" else "at most"
    told = f"{what} of {figure.name} is {shown(held, unit)}, {asked} {shown(limit, unit)} is asked"
    if not _keeps(rule, held):
        if held != figure.value and _keeps(rule, figure.value):
            return FAIL, f"{told}; the value, {shown(figure.value, unit)}, would do", _MORE
        if figure.scored is None:
            return FAIL, told, "Find out what takes so much; or raise the limit."
        name = shlex.quote(run_id[:200])
        return FAIL, told, f"Look at the samples behind it: auepora show {name} --worst {figure.name}"
    if not figure.failed:
        return PASS, told, ""
    if figure.if_failed is None:
        return PASS, f"{told} ({figure.failed} failed calls are not in it)", ""
    worst = figure.if_failed[0 if rule.kind == "min" else 1]
    if worst is None or not math.isfinite(worst):  # seconds know no worst
        return PASS, f"{told} ({figure.failed} failed calls are not in it)", ""
    if _keeps(rule, worst):
        count = "wrong answers of ordinary length" if _is_weighed(figure.name) else "the worst"
        return PASS, f"{told}, also if the {figure.failed} that failed count as {count}", ""
    had = "been wrong answers of ordinary length" if _is_weighed(figure.name) else "scored worst"
    why = f"{told}, but {shown(worst, unit)} if the {figure.failed} that failed had {had}"
    return UNCLEAR, why, "Run the failed samples again (auepora run --resume), then judge again."


_MORE = "More samples make the interval narrower; or judge the value (on: value)."


def _is_weighed(name: str) -> bool:
    """Whether a long wrong answer costs more than a short one, so that there is no worst."""
    try:
        metric = parse_metric(name)
    except ValueError:  # a metric of the user's that is not registered
        return False
    return type(metric).counted_if_failed is not SampleMetric.counted_if_failed


def _keeps(rule: Rule, value: float) -> bool:
    limit = rule.limit or 0.0
    return value >= limit if rule.kind == "min" else value <= limit


def not_measured(rule: Rule, run: GatedRun, figure: Figure | None) -> Verdict:
    """A rule about something that the run does not have."""
    severity = rule.severity_of(None)
    if figure is None:
        why = f"{run.evaluation_id} has no figure {rule.name!r:.100}"
        return Verdict(rule, MISSING, why, run.near(rule.name), severity=severity)
    why = f"{figure.name} was not measured in {run.evaluation_id}"
    if figure.failed:
        why += f": all {figure.failed} failed"
    return Verdict(rule, MISSING, why, "Score a run that has what it needs.", severity=severity)


def coverage_verdict(rule: Rule, run: GatedRun, judged: Iterable[str]) -> Verdict:
    """Was enough measured for the other rules to mean something?"""
    figures = [figure for name in judged if (figure := run.find(name)) is not None]
    metrics = list(dict.fromkeys(figure for figure in figures if figure.scored is not None))
    if not metrics:
        metrics = [figure for figure in run.figures().values() if figure.scored is not None]
    return _failures(rule, run, metrics) if rule.kind == "max_failed" else _scored(rule, metrics)


def _failures(rule: Rule, run: GatedRun, metrics: Sequence[Figure]) -> Verdict:
    limit, severity = rule.limit or 0.0, rule.severity_of(None)
    parts = [
        (figure.failed, figure.failed + (figure.scored or 0), f"scores of {figure.name}")
        for figure in metrics
    ]
    if run.tally is not None:
        parts.insert(0, (run.tally.failed, run.tally.total, "calls"))
    parts = [part for part in parts if part[1]]
    if not parts:
        why = "nothing was measured, so what failed cannot be told"
        return Verdict(rule, MISSING, why, "Judge a run with samples.", severity=severity)
    failed, total, what = max(parts, key=lambda part: part[0] / part[1])
    share = failed / total
    why = f"{failed} of {total} {what} failed ({share:.1%}); {limit:.3g} of them may"
    if share <= limit:
        return Verdict(rule, PASS, why, value=share, severity=severity)
    fix = "Run the failed samples again (auepora run --resume), then judge again."
    return Verdict(rule, MISSING, why, fix, value=share, severity=severity)


def _scored(rule: Rule, metrics: Sequence[Figure]) -> Verdict:
    limit, severity = rule.limit or 0.0, rule.severity_of(None)
    fewest = min(metrics, key=lambda figure: figure.scored or 0, default=None)
    if fewest is None:
        why = "no metric was measured"
        return Verdict(rule, MISSING, why, "Judge a run with metrics.", severity=severity)
    why = f"{fewest.name} stands on {fewest.scored} samples; at least {limit:g} are asked"
    enough = (fewest.scored or 0) >= limit
    fix = "" if enough else "Measure more samples: auepora power says how many it takes."
    value = float(fewest.scored or 0)
    return Verdict(rule, PASS if enough else MISSING, why, fix, value=value, severity=severity)
