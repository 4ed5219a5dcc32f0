"""May this run go out? A run judged by rules, alone or against a baseline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..core.types import EvaluationRun
from ..errors import PlanError
from .gate_absolute import coverage_verdict, limit_verdict
from .gate_figures import GatedRun
from .gate_relative import each_named, paired_runs, relative_verdicts
from .gate_rules import ABSOLUTE, ALL, COUNT_DROP, COVERAGE, GateRules, Rule, rules_of
from .gate_verdict import GateReport, Verdict
from .mismatch import stopping_notes
from .paired_tests import RESAMPLES

__all__ = ["GateReport", "Verdict", "gate_run"]


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

    With a baseline and no rule that uses it, no metric may be surely worse; nor may more than a tenth of what
    the baseline counts be gone. PlanError if there is no rule, or no baseline for a rule that needs it, and
    if the baseline is the run itself.
    """
    given = rules if isinstance(rules, GateRules) else rules_of(rules or {})
    ours, base = GatedRun.of(candidate), None if baseline is None else GatedRun.of(baseline)
    if base is not None and ours.is_the_same_as(base):
        raise PlanError(f"{ours.evaluation_id} is its own baseline. Name another run to hold it against.")
    chosen = _complete(given, base)
    verdicts = [limit_verdict(rule, ours) for rule in chosen.of(*ABSOLUTE)]
    stopped = _stopped(ours.run) if chosen.of(*ABSOLUTE) else []
    notes: list[str] = []
    mismatches: list[str] = []
    named: list[Rule] = []
    if base is not None:
        named, notes = each_named(chosen.relative, base)
        paired = paired_runs(named, ours, base, seed=seed, resamples=resamples, allow_mismatch=allow_mismatch)
        looked = stopping_notes(base.run, ours.run)
        mismatches, notes = paired.mismatches, [*notes, *paired.notes, *looked]
        verdicts += relative_verdicts(named, paired, chosen.alpha)
    judged = [rule.name for rule in (*chosen.of(*ABSOLUTE), *named)]
    verdicts += [coverage_verdict(rule, ours, judged) for rule in chosen.of(*COVERAGE)]
    return GateReport(
        ours.evaluation_id,
        ours.run.system_name,
        None if base is None else base.evaluation_id,
        None if base is None else base.run.system_name,
        chosen.alpha,
        chosen.if_unclear,
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
            raise PlanError(f"the rule '{title:.100}' needs a baseline. Name the run to hold it against.")
        if not rules.rules:
            raise PlanError("there is no rule. Give one, such as min recall@5=0.8, or name a baseline.")
        return rules
    added = []
    if not rules.of("margin", "no_regression", "max_loss"):
        added.append(Rule("no_regression", ALL))
    if not rules.of("max_count_drop"):
        added.append(Rule("max_count_drop", limit=COUNT_DROP))
    return replace(rules, rules=(*rules.rules, *added))
