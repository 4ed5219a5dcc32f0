"""What a gate says to people and machines; whatever a run is named, it says no more than that."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.core.verdict import Outcome
from auepora_eval.decide.gate import GateReport, gate_run
from auepora_eval.decide.gate_report import (
    RuleResult,
    annotation_lines,
    gate_table,
    gate_to_junit,
    gate_to_markdown,
)
from auepora_eval.decide.rules import Rule
from tests.decide.gated import a_run
from tests.reporting.markdown_reading import cells, read

RULES = {
    "min": {"hit@5": 0.6, "mrr": 0.1, "recall@5": {"limit": 0.9, "severity": "warning"}},
    "margin": {"hit@5": 0.001},
    "no_regression": ["hit@5"],
    "max_failed": 0.01,
}
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


def a_report() -> GateReport:
    before = {"hit@5": [1.0] * 6 + [0.0] * 4, "recall@5": [0.5] * 10}
    now = {"hit@5": [1.0] * 5 + [0.0] * 4 + [1.0], "recall@5": [0.5] * 10}
    return gate_run(a_run("new", now), RULES, baseline=a_run("old", before))


def hostile_report(text: str) -> GateReport:
    verdicts = [
        RuleResult(Rule("min", text, 0.5), outcome, f"{text} was seen", f"do {text}", value=0.25)
        for outcome in Outcome
    ]
    return GateReport(text, text, text, text, 0.05, "stop", verdicts, [text], [text])


def test_junit_has_a_case_a_rule() -> None:
    suites = ElementTree.fromstring(gate_to_junit(a_report()))  # noqa: S314 - our own
    suite = suites[0]
    assert {name: suite.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "7",
        "failures": "0",
        "errors": "2",
    }
    kinds = {case.get("name"): case[0].tag for case in suite}
    assert kinds["min hit@5"] == "system-out"
    assert kinds["min mrr"] == kinds["margin hit@5"] == "error"
    assert kinds["min recall@5"] == "system-out"  # a warning stops nothing
    failing = gate_run(a_run("new", {"mrr": [0.5]}), {"min": {"mrr": 0.9}})
    assert ElementTree.fromstring(gate_to_junit(failing))[0][0][0].tag == "failure"  # noqa: S314


def test_annotations_have_the_level_of_what_they_stop() -> None:
    lines = annotation_lines(a_report())
    assert [line.split(" ")[0] for line in lines] == ["::error", "::error", "::warning"]
    assert lines[0].startswith("::error title=auepora gate%3A min mrr (not measured)::min mrr: new has")
    many = {"min": {f"recall@{k}": 0.9 for k in range(1, 30)}}
    assert len(annotation_lines(gate_run(a_run("new", {"mrr": [0.5]}), many))) == 10


@pytest.mark.parametrize("text", HOSTILE)
def test_names_are_only_names(text: str) -> None:
    _check(text)


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=60))
def test_any_name_is_only_a_name(text: str) -> None:
    _check(text)


def _check(text: str) -> None:
    report = hostile_report(text)
    cases = ElementTree.fromstring(gate_to_junit(report).encode("utf-8"))[0]  # noqa: S314 - our own
    assert [case[0].tag for case in cases] == ["system-out", "failure", "error", "error"]
    for line in annotation_lines(report):
        assert re.match(r"^::(error|warning) title=[^:,\n]*::", line)
        assert len(line.splitlines()) == 1
    page = gate_to_markdown(report)
    assert cells(page) == [len(gate_table(report).headings)] * 5
    read(page)
    assert sum(line.startswith("#") for line in page.splitlines()) == 1
