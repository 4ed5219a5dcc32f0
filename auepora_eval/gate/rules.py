"""The rules of a gate: what a run must reach, what it may lose, how much of it must have been measured.

A file of rules is YAML or JSON; every key is a flag of `auepora gate`:

    min: {recall@5: 0.8, ndcg@10: {limit: 0.6, on: bound}}
    max: {latency_stats.p95: 2000}
    margin: {recall@5: 0.02}
    no_regression: [token_f1, mrr]
    max_loss: {memory_mb.peak: {limit: 0.2, severity: warning}}
    max_failed: 0.01
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..core.verdict import Verdict
from ..errors import DataError, did_you_mean
from ..io.json.documents import read_document

ALL = "*"  # the name of a rule for every metric that both runs have
ABSOLUTE, RELATIVE = ("min", "max"), ("margin", "no_regression", "max_loss", "max_count_drop")
COVERAGE = ("max_failed", "min_samples")
KINDS = (*ABSOLUTE, *RELATIVE, *COVERAGE)
_OF_THE_RUN = ("max_count_drop", *COVERAGE)  # rules that name no metric
_TAKE_ALL = ("margin", "no_regression")  # rules that can be for every metric

# Only an error fails the gate. The other three are words of monitoring systems for the same two.
SEVERITIES = {"info": "info", "warning": "warning", "error": "error"}
SEVERITIES |= {"medium": "warning", "high": "error", "critical": "error"}
BY_SIZE = "by_size"
_SIZES = (
    (0.5, "critical"),
    (0.25, "high"),
    (0.1, "medium"),
)  # of a relative loss; bench-record uses them too
LEAST_LOSS = _SIZES[-1][0]
IF_INCONCLUSIVE = ("stop", "pass", "fail")
SETTINGS = ("alpha", "on", "if_inconclusive")
COUNT_DROP = 0.1
Limits = tuple[float, float]
_MAX_BYTES = 1_000_000


@dataclass(frozen=True)
class Rule:
    """One demand on a run: its kind, the metric or figure it is about ("" for the run), and its limit."""

    kind: str
    name: str = ""
    limit: float | None = None
    on: str = "value"  # or "bound": the worse end of the 95% interval
    severity: str = "error"
    of_all: bool = False  # written out of a rule for all metrics: nobody named this one

    @property
    def title(self) -> str:
        """The rule by its kind and name: "min recall@5"."""
        return f"{self.kind} {self.name}".strip()

    def severity_of(self, loss: float | None) -> str:
        """info, warning or error; of a rule whose severity goes by size, from how much was lost."""
        if self.severity != BY_SIZE:
            return SEVERITIES[self.severity]
        size = size_of(loss)
        # A limit below 10% can be broken by a loss too small to have a size.
        return SEVERITIES[size] if size else "warning"


@dataclass(frozen=True)
class GateRules:
    """The rules of a gate; `alpha` is the chance of a false alarm over all its tests together."""

    rules: tuple[Rule, ...] = ()
    alpha: float = 0.05
    if_inconclusive: str = "stop"
    where: str = field(default="the rules", compare=False)

    def of(self, *kinds: str) -> list[Rule]:
        return [rule for rule in self.rules if rule.kind in kinds]

    @property
    def relative(self) -> list[Rule]:
        """The rules that need a baseline."""
        return self.of(*RELATIVE)

    def over(self, ground: GateRules) -> GateRules:
        """These rules on top of others: of two for the same thing, this one's holds."""
        own = {(rule.kind, rule.name) for rule in self.rules}
        kept = tuple(rule for rule in ground.rules if (rule.kind, rule.name) not in own)
        return GateRules((*kept, *self.rules), self.alpha, self.if_inconclusive, ground.where)


def size_of(loss: float | None) -> str:
    """How grave a relative loss is: medium above 10%, high above 25%, critical above 50%; else ""."""
    if loss is None or math.isnan(loss):
        return ""
    return next((word for share, word in _SIZES if loss > share), "")


def read_rules(path: str | Path) -> GateRules:
    """The rules of a file."""
    path = Path(path)
    return rules_of(read_document(path, max_bytes=_MAX_BYTES), path.name)


def rules_of(record: Any, where: str = "rules") -> GateRules:
    """The rules of a record, as a file has it; DataError for what is none."""
    _check_known(record, (*KINDS, *SETTINGS), where)
    on = _one_of(record.get("on", "value"), ("value", "bound"), f"{where}: on")
    alpha = _number(record.get("alpha", 0.05), f"{where}: alpha")
    if not 0 < alpha < 1:
        raise DataError(f"{where}: alpha", f"{alpha:g} is not between 0 and 1.", fix="Use 0.05.")
    if_inconclusive = _one_of(
        record.get("if_inconclusive", "stop"), IF_INCONCLUSIVE, f"{where}: if_inconclusive"
    )
    rules = [
        rule
        for kind in KINDS
        if record.get(kind) is not None
        for rule in _rules(kind, record[kind], on, f"{where}: {kind}")
    ]
    return GateRules(tuple(rules), alpha, if_inconclusive, where)


def _rules(kind: str, value: Any, on: str, where: str) -> list[Rule]:
    """What one key says: a limit for the run, a limit for each name, a list of names."""
    if kind in _OF_THE_RUN:
        return [_rule(kind, "", value, on, where)]
    if kind == "no_regression":
        return _no_regression(value, where)
    # With only these keys it is one limit with its settings, not limits by the names of metrics.
    if isinstance(value, Mapping) and set(value) - {"limit", "on", "severity"}:
        names: Mapping[str, Any] = {ALL if name == "all" else name: one for name, one in value.items()}
        for name in names:
            if name == ALL and kind not in _TAKE_ALL:
                raise DataError(where, "this rule needs the name of a metric.", fix="Name each metric.")
        return [_rule(kind, name, one, on, f"{where}.{name[:80]}") for name, one in names.items()]
    if kind in _TAKE_ALL:
        return [_rule(kind, ALL, value, on, where)]
    raise DataError(where, "expected a limit for each name.", fix=f"Write {kind}: {{recall@5: 0.8}}.")


def _no_regression(value: Any, where: str) -> list[Rule]:
    """true or "all" for every metric, a list of names, or names with a severity each."""
    if value is False:
        return []
    if value is True or value == "all":
        return [Rule("no_regression", ALL)]
    if isinstance(value, str):
        value = [name.strip() for name in value.split(",") if name.strip()]
    fix = "Write all, or [recall@5, mrr]."
    if isinstance(value, Mapping):
        found = []
        for name, about in value.items():
            _check_known(about or {}, ("severity",), f"{where}.{name[:80]}")
            severity = _severity((about or {}).get("severity", "error"), f"{where}.{name[:80]}", "")
            found.append(Rule("no_regression", ALL if name == "all" else name, severity=severity))
        return found
    if not isinstance(value, Sequence) or not all(isinstance(name, str) and name for name in value):
        raise DataError(where, "expected names of metrics.", fix=fix)
    return [Rule("no_regression", ALL if name == "all" else name) for name in dict.fromkeys(value)]


def _rule(kind: str, name: str, value: Any, on: str, where: str) -> Rule:
    severity = "error"
    if isinstance(value, Mapping):
        _check_known(value, ("limit", "on", "severity"), where)
        if "limit" not in value:
            raise DataError(where, "there is no limit.", fix="Add one, such as limit: 0.8.")
        on = _one_of(value.get("on", on), ("value", "bound"), f"{where}.on")
        severity = _severity(value.get("severity", severity), where, kind)
        value = value["limit"]
    return Rule(kind, name, _limit(kind, value, where), on, severity)


def _limit(kind: str, value: Any, where: str) -> float:
    number = _number(value, where)
    if kind in ("max_failed", "max_count_drop") and not 0 <= number < 1:
        raise DataError(where, f"{number:g} is not a share.", fix="Use a number from 0 to 1, such as 0.01.")
    if kind == "max_loss" and number < 0:
        raise DataError(where, f"{number:g} is not a share.", fix="Use 0.1 for a loss of a tenth.")
    if kind == "margin" and number <= 0:
        raise DataError(where, f"{number:g} is not a positive margin.", fix="Use a number such as 0.02.")
    if kind == "min_samples" and (number < 1 or number != int(number)):
        raise DataError(where, f"{number:g} is not a number of samples.", fix="Use one such as 100.")
    return number


def _severity(value: Any, where: str, kind: str) -> str:
    known = (*SEVERITIES, BY_SIZE) if kind in ("max_loss", "max_count_drop") else tuple(SEVERITIES)
    return _one_of(value, known, f"{where}.severity")


def _one_of(value: Any, known: Sequence[str], where: str) -> str:
    if not isinstance(value, str) or value not in known:
        raise DataError(where, f"{value!r:.60} is not known.", fix=f"Use {', '.join(known)}.")
    return value


def _number(value: Any, where: str) -> float:
    # A boolean is an int in Python: `true` would become a limit of 1. `not <` also rejects NaN.
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e300:
        raise DataError(where, f"{value!r:.60} is not a number.", fix="Write one, such as 0.8.")
    return float(value)


def _check_known(record: Any, known: Sequence[str], where: str) -> None:
    if not isinstance(record, Mapping):
        what = "expected 'key: value' lines."
        raise DataError(where, what, fix=f"The keys are {', '.join(known)}.")
    for name in record:
        if name not in known:
            hint = did_you_mean(name, known, f"The keys are {', '.join(known)}.")
            raise DataError(where, f"there is no {str(name)[:60]!r}.", fix=hint)


# What the rules find, and what it comes to for the gate.

PASS, FAIL, MISSING = "pass", "fail", "missing"
INCONCLUSIVE = str(Verdict.INCONCLUSIVE)
PASSED, FAILED = "passed", "failed"
# Decision 15: 3 asks a pipeline to retry, 1 to reject the change.
EXIT_CODES = {PASSED: 0, FAILED: 1, INCONCLUSIVE: 3}


@dataclass(frozen=True)
class RuleResult:
    """What one rule says of a run, why, and what to do about it.

    `outcome` is pass, fail, inconclusive or missing (it was not measured, or too little of
    it). A rule that needs a baseline has `baseline`, and `change` for the candidate less the baseline;
    `gain` for the same, upwards for the better; `detectable` is the smallest loss that the test
    detects with 80% power. `failed` counts the samples behind the figure that failed.
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
    if_inconclusive: str
    verdicts: Sequence[RuleResult]
    notes: Sequence[str] = ()
    mismatches: Sequence[str] = field(default_factory=list)

    def effect(self, verdict: RuleResult) -> str:
        """What one verdict makes of the gate; only rules of severity "error" can stop it."""
        if verdict.outcome == PASS or verdict.severity != "error":
            return PASSED
        if verdict.outcome == FAIL or self.if_inconclusive == "fail":
            return FAILED
        # What was not measured at all stops the gate whatever is said of doubt.
        return PASSED if verdict.outcome == INCONCLUSIVE and self.if_inconclusive == "pass" else INCONCLUSIVE

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
    def problems(self) -> list[RuleResult]:
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
