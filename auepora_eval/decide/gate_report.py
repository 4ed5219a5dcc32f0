"""What a gate found: as a table, in words, as Markdown for a pull request, and as JSON."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.etree import ElementTree

from ..core.display import html_text, interval_text, markdown_text, value_text
from ..core.table import Table
from ..core.verdict import Outcome
from .rules import Rule

Limits = tuple[float, float]

# What the rules find, and what it comes to for the gate.

# Decision 15: 3 asks a pipeline to retry, 1 to reject the change.
EXIT_CODES = {Outcome.PASSED: 0, Outcome.FAILED: 1, Outcome.INCONCLUSIVE: 3}


@dataclass(frozen=True)
class RuleResult:
    """What one rule says of a run, why, and what to do about it.

    `outcome` is missing if too little was measured. A rule that needs a baseline has `baseline`, and `change`
    for the candidate less the baseline; `gain` for the same, upwards for the better; `detectable` is the
    smallest loss that the test detects with 80% power. `failed` counts the samples that failed.
    """

    rule: Rule
    outcome: Outcome
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
    detectable: float | None = None
    gain: float | None = None
    failed: int = 0


@dataclass(frozen=True, repr=False)
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

    def effect(self, verdict: RuleResult) -> Outcome:
        """What one verdict makes of the gate: doubt stops it, unless the rules let it pass."""
        if verdict.outcome is Outcome.PASSED:
            return Outcome.PASSED
        if verdict.outcome is Outcome.FAILED or self.if_inconclusive == "fail":
            return Outcome.FAILED
        # What was not measured at all stops the gate whatever is said of doubt.
        may_pass = verdict.outcome is Outcome.INCONCLUSIVE and self.if_inconclusive == "pass"
        return Outcome.PASSED if may_pass else Outcome.INCONCLUSIVE

    @property
    def outcome(self) -> Outcome:
        """passed, failed or inconclusive."""
        effects = {self.effect(one) for one in self.verdicts}
        grave = (Outcome.FAILED, Outcome.INCONCLUSIVE)
        return next((outcome for outcome in grave if outcome in effects), Outcome.PASSED)

    def __str__(self) -> str:
        return gate_text(self)

    def __repr__(self) -> str:
        return f"<GateReport {title(self)}>"

    def _repr_html_(self) -> str:
        words = [title(self), *map(problem_words, self.problems)]
        return "".join(f"<p>{html_text(text)}</p>" for text in words) + gate_table(self).to_html()

    @property
    def exit_code(self) -> int:
        """0 passed, 1 failed, 3 inconclusive."""
        return EXIT_CODES[self.outcome]

    @property
    def problems(self) -> list[RuleResult]:
        """The verdicts that did not pass, the gravest first."""
        problems = [one for one in self.verdicts if one.outcome is not Outcome.PASSED]
        return sorted(problems, key=lambda one: one.outcome is not Outcome.FAILED)


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


# The report as a table and in words.

_HEADINGS = ("Rule", "Value", "95% interval", "Required", "Verdict")
_TEXT_WIDTH = 400  # characters; the message of a failed test is not wrapped
_WORDS = {
    Outcome.PASSED: "pass",
    Outcome.FAILED: "FAIL",
    Outcome.INCONCLUSIVE: "inconclusive",
    Outcome.MISSING: "not measured",
}
_TITLES = {Outcome.PASSED: "passed", Outcome.FAILED: "FAILED"}
_LONGEST = 300  # characters of a name in a cell


def gate_table(report: GateReport) -> Table:
    """Return what each rule found; rules that did not pass come first."""
    rows = [
        (
            one.rule.title[:_LONGEST],
            _found(one),
            _interval(one),
            asked(one.rule, one.unit),
            verdict_word(one),
        )
        for one in (*report.problems, *_passed(report))
    ]
    return Table(_HEADINGS, rows, numeric=(1, 2), spare=(2,))


def asked(rule: Rule, unit: str = "") -> str:
    """The limit of a rule: "≥ 0.8", "bound ≥ 0.8", "> -0.02"."""
    if rule.limit is None:
        return "no significant loss"
    bound = "bound " if rule.on == "bound" and rule.kind in ("min", "max", "max_loss") else ""
    number = f"{rule.limit:g}{f' {unit}' if unit else ''}"
    return {
        "min": f"{bound}≥ {number}",
        "max": f"{bound}≤ {number}",
        "margin": f"loss < {number}",
        "max_loss": f"{bound}loss ≤ {rule.limit:.3g}",
        "max_count_drop": f"loss ≤ {rule.limit:.3g}",
        "max_failed": f"≤ {rule.limit:.3g}",
    }[rule.kind]


def verdict_word(verdict: RuleResult) -> str:
    """ "pass", "FAIL", "inconclusive", "not measured" or, of failures, "too many"."""
    if verdict.outcome is Outcome.MISSING and verdict.value is not None:
        return "too many"
    return _WORDS[verdict.outcome]


def title(report: GateReport) -> str:
    """One line: what was judged, and how it went."""
    against = f" against {report.baseline_id}" if report.baseline_id is not None else ""
    word = _TITLES.get(report.outcome, "inconclusive")
    counts = Counter(map(verdict_word, report.verdicts)).most_common()
    counted = ", ".join(f"{count} {each}" for each, count in counts)
    return f"gate {word}: {report.candidate_id}{against} ({counted})"


def problem_words(verdict: RuleResult) -> str:
    """Return a rule that did not pass, in a sentence or two."""
    return f"{verdict.rule.title[:_LONGEST]}: {verdict.why}. {verdict.fix}".rstrip()


def pass_words(report: GateReport) -> list[str]:
    """Return why rules pass in spite of failures or of a loss, and how large a loss could have been seen."""
    passed = _passed(report)
    words, sizes = [], []
    for one in passed:
        limits = one.change_interval
        # Without its reason, a loss whose interval leaves out 0 looks like a contradiction.
        looks_lost = (one.gain or 0.0) < 0 and (limits is None or limits[0] * limits[1] > 0)
        if one.failed if one.gain is None else looks_lost:
            words.append(f"{one.rule.title[:_LONGEST]}: {one.why}.")
        elif one.detectable is not None and not one.why.startswith("better"):
            text = value_text(one.detectable, one.unit)
            sizes.append((one.detectable, text, one.rule.name[:_LONGEST]))
    if any(one.failed and one.gain is not None for one in passed):
        words.append("Failed samples count as the worst.")
    if sizes:
        # The smallest loss that the samples show, from the metric that shows the least to the other end.
        (_, least, finest), (_, most, coarsest) = min(sizes), max(sizes)
        ends = f"{least} ({finest}) to {most} ({coarsest})" if least != most else least
        words.append(
            "The rules that pass found no significant loss. With 80% power they detect losses of "
            f"{ends} or more."
        )
    return words


def gate_text(report: GateReport) -> str:
    """Return all of it as plain text: a title, a table, and what is wrong."""
    table = gate_table(report).to_terminal(_TEXT_WIDTH)
    wrong = [f"- {problem_words(one)}" for one in report.problems]
    notes = [f"note: {text}." for text in (*report.mismatches, *report.notes)]
    return "\n".join([title(report), "", table, *([""] if wrong or notes else []), *wrong, *notes])


def gate_to_markdown(report: GateReport) -> str:
    """A comment for a pull request: nothing in it can mention, link, or leave its cell."""
    parts = [f"### {markdown_text(title(report))}", gate_table(report).to_markdown()]
    if report.problems:
        parts.append("\n".join(f"- {markdown_text(problem_words(one))}" for one in report.problems))
    passed = [f"- {markdown_text(f'{one.rule.title[:_LONGEST]}: {one.why}.')}" for one in _passed(report)]
    if passed:
        count = f"{len(passed)} rules pass" if len(passed) > 1 else "1 rule passes"
        reasons = "\n".join(passed)
        parts.append(f"<details><summary>Why {count}</summary>\n\n{reasons}\n\n</details>")
    parts += [f"Note: {markdown_text(text)}." for text in (*report.mismatches, *report.notes)]
    return "\n\n".join(parts)


def gate_to_dict(report: GateReport) -> dict[str, Any]:
    """A report as JSON has it."""
    return {
        "outcome": report.outcome,
        "exit_code": report.exit_code,
        "candidate": {"evaluation_id": report.candidate_id, "system": report.candidate_system},
        "baseline": None
        if report.baseline_id is None
        else {"evaluation_id": report.baseline_id, "system": report.baseline_system},
        "alpha": report.alpha,
        "if_inconclusive": report.if_inconclusive,
        "verdicts": [verdict_to_dict(one, report) for one in report.verdicts],
        "notes": list(report.notes),
        "mismatches": list(report.mismatches),
    }


def verdict_to_dict(one: RuleResult, report: GateReport) -> dict[str, object]:
    """What one rule found as JSON has it."""
    return {
        "rule": one.rule.kind,
        "name": one.rule.name or None,
        "limit": one.rule.limit,
        "on": one.rule.on,
        "outcome": one.outcome,
        "effect": report.effect(one),
        "value": one.value,
        "confidence_interval": one.interval,
        "baseline": one.baseline,
        "change": one.change,
        "change_interval": one.change_interval,
        "loss": one.loss,
        "p_value": one.p_value,
        "detectable": one.detectable,
        "failed": one.failed,
        "unit": one.unit,
        "why": one.why,
        "fix": one.fix,
    }


def _passed(report: GateReport) -> list[RuleResult]:
    return [one for one in report.verdicts if one.outcome == Outcome.PASSED]


def _found(one: RuleResult) -> str:
    kind = one.rule.kind
    if kind in ("margin", "no_regression"):
        return value_text(one.change, one.unit, signed=True)
    if kind in ("max_loss", "max_count_drop"):
        return value_text(one.loss)
    if one.unit not in ("", "s"):
        return shown(one.value, one.unit)
    return value_text(one.value, one.unit)


def _interval(one: RuleResult) -> str:
    if one.rule.kind in ("margin", "no_regression"):
        return interval_text(one.change_interval, one.unit, signed=True)
    return interval_text(one.interval, one.unit)


# What XML 1.0 has no way to write, not even escaped: a run may be named with any of it.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def gate_to_junit(report: GateReport) -> bytes:
    """Return JUnit XML, which every CI system shows: a test case per rule.

    A failed rule is a failure, an inconclusive or missing result is an error.
    """
    effects = [report.effect(one) for one in report.verdicts]
    counts = {"tests": len(effects), "failures": effects.count(Outcome.FAILED)}
    counts["errors"] = effects.count(Outcome.INCONCLUSIVE)
    suite = ElementTree.Element("testsuite", {name: str(count) for name, count in counts.items()})
    suite.set("name", _NO_XML.sub("", title(report)))
    for one, effect in zip(report.verdicts, effects, strict=True):
        case = ElementTree.SubElement(suite, "testcase", classname="auepora.gate")
        case.set("name", _NO_XML.sub("", one.rule.title))
        tag = {Outcome.FAILED: "failure", Outcome.INCONCLUSIVE: "error"}.get(effect, "system-out")
        said = ElementTree.SubElement(case, tag)
        said.text = _NO_XML.sub("", f"{verdict_word(one)}: {problem_words(one)}")
    document: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return document
