"""What a gate says: a verdict for each rule, and what they come to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from .gate_figures import Limits
from .gate_rules import Rule

PASS, FAIL, UNCLEAR, MISSING = "pass", "fail", "unclear", "missing"
PASSED, FAILED, INCONCLUSIVE = "passed", "failed", "inconclusive"
EXIT_CODES = {PASSED: 0, FAILED: 1, INCONCLUSIVE: 3}


@dataclass(frozen=True)
class Verdict:
    """What one rule says of a run, why, and what to do about it.

    `outcome` is pass, fail, unclear (the data cannot tell) or missing (it was not measured, or too little of
    it). A rule that needs a baseline has `baseline`, and `change` for the candidate less the baseline;
    `gain` for the same, upwards for the better; `detectable` is the smallest loss that a test on so many
    samples shows four times in five. `failed` counts the samples behind the figure that failed.
    """

    rule: Rule
    outcome: str
    why: str
    fix: str = ""
    value: float | None = None
    interval: Limits | None = None
    baseline: float | None = None
    change: float | None = None
    change_interval: Limits | None = None
    p_value: float | None = None
    unit: str = ""
    loss: float | None = None  # as a share of the baseline
    severity: str = "error"
    detectable: float | None = None
    gain: float | None = None
    failed: int = 0


@dataclass(frozen=True)
class GateReport:
    """A run judged by the rules of a gate."""

    candidate_id: str
    candidate_system: str
    baseline_id: str | None
    baseline_system: str | None
    alpha: float
    if_unclear: str
    verdicts: Sequence[Verdict]
    notes: Sequence[str] = ()
    mismatches: Sequence[str] = field(default_factory=list)

    def effect(self, verdict: Verdict) -> str:
        """What one verdict makes of the gate; only rules of severity "error" can stop it."""
        if verdict.outcome == PASS or verdict.severity != "error":
            return PASSED
        if verdict.outcome == FAIL or self.if_unclear == "fail":
            return FAILED
        # What was not measured at all stops the gate whatever is said of doubt.
        return PASSED if verdict.outcome == UNCLEAR and self.if_unclear == "pass" else INCONCLUSIVE

    @property
    def outcome(self) -> str:
        """passed, failed or inconclusive."""
        effects = {self.effect(one) for one in self.verdicts}
        return next((word for word in (FAILED, INCONCLUSIVE) if word in effects), PASSED)

    @property
    def exit_code(self) -> int:
        """0 passed, 1 failed, 3 inconclusive."""
        return EXIT_CODES[self.outcome]

    @property
    def problems(self) -> list[Verdict]:
        """The verdicts that are not "pass", the gravest first."""
        order = {"error": 0, "warning": 1, "info": 2}
        found = [one for one in self.verdicts if one.outcome != PASS]
        return sorted(found, key=lambda one: (order[one.severity], one.outcome != FAIL))


def shown(value: float | None, unit: str = "", *, signed: bool = False) -> str:
    """A number in a sentence."""
    if value is None or not math.isfinite(value):
        return "n/a"
    return f"{value:{'+' if signed else ''}.4g}{f' {unit}' if unit else ''}"


def shown_interval(interval: Limits | None, unit: str = "") -> str:
    """An interval in a sentence, in front of it a space; nothing where there is none."""
    if interval is None:
        return ""
    return f" [{interval[0]:+.3g}, {interval[1]:+.3g}]{' s' if unit == 's' else ''}"
