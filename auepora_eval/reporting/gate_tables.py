"""What a gate says, as a table, in words, as Markdown for a pull request, and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ..runs.gate_rules import Rule
from ..runs.gate_verdict import (
    FAIL,
    FAILED,
    MISSING,
    PASS,
    PASSED,
    UNCLEAR,
    GateReport,
    Verdict,
    shown,
)
from .markdown_text import safe_table, safe_text
from .number_texts import interval_text, listed, value_text

HEADINGS = ("Rule", "Found", "95% interval", "Asked", "Verdict")
_WORDS = {PASS: "pass", FAIL: "FAIL", UNCLEAR: "cannot tell", MISSING: "not measured"}
_MISSED = {"max_failed": "too many", "min_samples": "too few"}  # what was measured, and is not enough
_TITLES = {PASSED: "passed", FAILED: "FAILED"}
_LONGEST = 300  # characters of a name in a cell


def gate_rows(report: GateReport) -> list[tuple[str, ...]]:
    """The cells of each rule, in the order of HEADINGS; what is no pass comes first."""
    return [
        (
            one.rule.title[:_LONGEST],
            _found(one),
            _interval(one),
            asked(one.rule, one.unit),
            verdict_word(one),
        )
        for one in (*report.problems, *_passed(report))
    ]


def asked(rule: Rule, unit: str = "") -> str:
    """The limit of a rule: "≥ 0.8", "bound ≥ 0.8", "> -0.02"."""
    if rule.limit is None:
        return "no sure loss"
    bound = "bound " if rule.on == "bound" and rule.kind in ("min", "max", "max_loss") else ""
    number = f"{rule.limit:g}{f' {unit}' if unit else ''}"
    return {
        "min": f"{bound}≥ {number}",
        "max": f"{bound}≤ {number}",
        "margin": f"loss < {number}",
        "max_loss": f"{bound}loss ≤ {rule.limit:.3g}",
        "max_count_drop": f"loss ≤ {rule.limit:.3g}",
        "max_failed": f"≤ {rule.limit:.3g}",
        "min_samples": f"≥ {rule.limit:g}",
    }[rule.kind]


def verdict_word(verdict: Verdict) -> str:
    """ "pass", "FAIL", "cannot tell", "not measured"; of a rule that stops nothing, its severity too."""
    word = _WORDS[verdict.outcome]
    if verdict.outcome == MISSING and verdict.value is not None:
        word = _MISSED.get(verdict.rule.kind, word)
    if verdict.outcome == PASS or verdict.severity == "error":
        return word
    return f"{word.lower()} ({verdict.severity})"


def title(report: GateReport) -> str:
    """One line: what was judged, and how it went."""
    against = f" against {report.baseline_id}" if report.baseline_id is not None else ""
    word = _TITLES.get(report.outcome, "cannot be judged")
    return f"gate {word}: {report.candidate_id}{against} ({_counted(report.verdicts)})"


def problem_words(verdict: Verdict) -> str:
    """A verdict that is no pass, in a sentence or two."""
    return f"{verdict.rule.title[:_LONGEST]}: {verdict.why}. {verdict.fix}".rstrip()


def pass_words(report: GateReport) -> list[str]:
    """What a reader of the table may ask about a pass: why, with such an interval, or so many failures?

    And how large a loss could have been seen, where none is sure.
    """
    passed = _passed(report)
    told = [one for one in passed if _needs_words(one)]
    words = [f"{one.rule.title[:_LONGEST]}: {one.why}." for one in told]
    failed: dict[int, list[str]] = {}
    for one in passed:
        if one.failed and one not in told:
            failed.setdefault(one.failed, []).append(one.rule.name[:_LONGEST])
    words += [
        f"{count} sample{'s' * (count > 1)} failed, and count{'s' * (count == 1)} as the worst, in "
        f"{listed(list(dict.fromkeys(names)))}."
        for count, names in failed.items()
    ]
    return [*words, *_seen_at_all([one for one in passed if one not in told])]


def _needs_words(one: Verdict) -> bool:
    if one.gain is None:
        return one.failed > 0
    limits = one.change_interval
    leaves_out_zero = limits is None or limits[0] * limits[1] > 0
    return leaves_out_zero and one.gain < 0


def _seen_at_all(passed: Sequence[Verdict]) -> list[str]:
    """The smallest loss that the samples show, from the metric that shows the least to the other end."""
    sizes = [
        (one.detectable, value_text(one.detectable, one.unit), one.rule.name[:_LONGEST])
        for one in passed
        if one.detectable is not None and not one.why.startswith("better")
    ]
    if not sizes:
        return []
    (_, least, finest), (_, most, coarsest) = min(sizes), max(sizes)
    ends = [f"{least} ({finest})", f"{most} ({coarsest})"] if least != most else [least]
    return [
        f"No sure loss is not no loss: so many samples show one of {' to '.join(ends)} four times in five."
    ]


def gate_text(report: GateReport) -> str:
    """All of it as plain text: a title, a table, and what is wrong."""
    rows = [HEADINGS, *gate_rows(report)]
    flat = [[" ".join(cell.split()) for cell in row] for row in rows]
    widths = [max(len(row[place]) for row in flat) for place in range(len(HEADINGS))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in flat
    ]
    wrong = [f"- {problem_words(one)}" for one in report.problems]
    notes = [f"note: {text}." for text in (*report.mismatches, *report.notes)]
    return "\n".join([title(report), "", *lines, *([""] if wrong or notes else []), *wrong, *notes])


def gate_to_markdown(report: GateReport) -> str:
    """A comment for a pull request: nothing in it can mention, link, or leave its cell."""
    parts = [f"### {safe_text(title(report))}", safe_table(HEADINGS, gate_rows(report))]
    if report.problems:
        parts.append("\n".join(f"- {safe_text(problem_words(one))}" for one in report.problems))
    passed = [f"- {safe_text(f'{one.rule.title[:_LONGEST]}: {one.why}.')}" for one in _passed(report)]
    if passed:
        count = f"{len(passed)} rules pass" if len(passed) > 1 else "1 rule passes"
        reasons = "\n".join(passed)
        parts.append(f"<details><summary>Why {count}</summary>\n\n{reasons}\n\n</details>")
    parts += [f"Note: {safe_text(text)}." for text in (*report.mismatches, *report.notes)]
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
        "if_unclear": report.if_unclear,
        "verdicts": [_verdict_dict(one, report) for one in report.verdicts],
        "notes": list(report.notes),
        "mismatches": list(report.mismatches),
    }


def _verdict_dict(one: Verdict, report: GateReport) -> dict[str, Any]:
    return {
        "rule": one.rule.kind,
        "name": one.rule.name or None,
        "limit": one.rule.limit,
        "on": one.rule.on,
        "severity": one.severity,
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


def _passed(report: GateReport) -> list[Verdict]:
    return [one for one in report.verdicts if one.outcome == PASS]


def _counted(verdicts: Sequence[Verdict]) -> str:
    counts = Counter(verdict_word(one) for one in verdicts)
    return ", ".join(f"{count} {word}" for word, count in counts.most_common())


def _found(one: Verdict) -> str:
    kind = one.rule.kind
    if kind in ("margin", "no_regression"):
        return value_text(one.change, one.unit, signed=True)
    if kind in ("max_loss", "max_count_drop"):
        return value_text(one.loss)
    if kind == "min_samples":
        return "n/a" if one.value is None else f"{one.value:g}"
    if one.unit not in ("", "s"):
        return shown(one.value, one.unit)
    return value_text(one.value, one.unit)


def _interval(one: Verdict) -> str:
    if one.rule.kind in ("margin", "no_regression"):
        return interval_text(one.change_interval, one.unit, signed=True)
    return interval_text(one.interval, one.unit)
