"""What a gate says as JUnit XML, which every CI system shows: a test case a rule."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from ..runs.gate_verdict import FAILED, INCONCLUSIVE, PASS, GateReport, Verdict
from .gate_tables import asked, problem_words, title, verdict_word

# What XML 1.0 has no way to write, not even escaped; a run may be named with any of it.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LONGEST = 2_000
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="auepora gate"'


def gate_to_junit(report: GateReport) -> str:
    """One suite: a rule that fails is a failure, one that cannot be judged an error, the rest has passed."""
    effects = [report.effect(one) for one in report.verdicts]
    counts = (
        f'tests="{len(effects)}" failures="{effects.count(FAILED)}" '
        f'errors="{effects.count(INCONCLUSIVE)}" skipped="0"'
    )
    cases = "\n".join(_case(one, report) for one in report.verdicts)
    return (
        f"{_HEAD} {counts}>\n"
        f'<testsuite name="{_text(title(report))}" {counts}>\n'
        f"{cases}\n"
        "</testsuite>\n</testsuites>\n"
    )


def is_junit_of_a_gate(path: Path) -> bool:
    """Whether a file is what this writes, and not something else that happens to have the name."""
    try:
        with path.open("rb") as file:
            return file.read(len(_HEAD)) == _HEAD.encode()
    except OSError:  # whoever writes it will say what is wrong with it
        return False


def _case(one: Verdict, report: GateReport) -> str:
    name, about = _text(one.rule.title), _text(report.candidate_id)
    head = f'<testcase classname="auepora.gate.{about}" name="{name}">'
    said = f"{one.why} (asked: {asked(one.rule, one.unit)})" if one.outcome == PASS else problem_words(one)
    inside = f"<system-out>{_text(f'{verdict_word(one)}: {said}')}</system-out>"
    effect = report.effect(one)
    if effect in (FAILED, INCONCLUSIVE):
        tag = "failure" if effect == FAILED else "error"
        message, kind = _text(one.why), _text(verdict_word(one))
        inside = f'<{tag} message="{message}" type="{kind}">{_text(problem_words(one))}</{tag}>'
    return f"{head}{inside}</testcase>"


def _text(text: str) -> str:
    """Text for an attribute or between tags, on one line."""
    return escape(" ".join(_NO_XML.sub("\ufffd", text[:_LONGEST]).split()), quote=True)
