"""What a gate says to people and machines; whatever a run is named, it says no more than that."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.core.verdict import Outcome
from auepora_eval.decide.gate import GateReport
from auepora_eval.decide.gate_report import (
    RuleResult,
    gate_table,
    gate_to_junit,
    gate_to_markdown,
)
from auepora_eval.decide.rules import Rule
from tests.reporting.markdown_reading import cells, read

HOSTILE = [
    "::error::x",
    "a\n::stop-commands::t",
    "a%0A::set-output name=x::y",
    "a | b\n\n# Title",
    "<img src=x onerror=alert(1)>",
    "![x](http://evil)",
    "`code` **bold** @admin #12 www.evil.com",
    "a\x00\x1b[31m\x0b\ufffe\ud800",
    "]]></testcase><testcase name='y'/>",
    "##[add-path]/tmp",
]


def hostile_report(text: str) -> GateReport:
    verdicts = [
        RuleResult(Rule("min", text, 0.5), outcome, f"{text} was seen", f"do {text}", value=0.25)
        for outcome in Outcome
    ]
    return GateReport(text, text, text, text, 0.05, "stop", verdicts, [text], [text])


@pytest.mark.parametrize("text", HOSTILE)
def test_names_are_only_names(text: str) -> None:
    _check(text)


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=60))
def test_any_name_is_only_a_name(text: str) -> None:
    _check(text)


def _check(text: str) -> None:
    report = hostile_report(text)
    suite = ElementTree.fromstring(gate_to_junit(report))  # noqa: S314 - our own
    assert [case[0].tag for case in suite] == ["system-out", "failure", "error", "error"]
    page = gate_to_markdown(report)
    assert cells(page) == [len(gate_table(report).headings)] * 5
    read(page)
    assert sum(line.startswith("#") for line in page.splitlines()) == 1
