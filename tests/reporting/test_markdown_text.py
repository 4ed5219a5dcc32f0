"""Names, questions and answers in Markdown are only text."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.reporting.comparison_tables import comparison_report
from auepora_eval.reporting.markdown_text import safe_table, safe_text
from auepora_eval.reporting.ranking_tables import ranking_report
from auepora_eval.reporting.tables import comparison_to_markdown
from auepora_eval.runs.compare import compare_runs
from auepora_eval.runs.losers import LostSample
from auepora_eval.runs.ranking import rank_runs
from tests.reporting.test_gate_reports import HOSTILE
from tests.runs.test_compare_more import scored


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("ask @octocat about #1", "ask @ octocat about # 1"),
        ("see http://evil.example or www.evil.example", "see http: //evil.example or www .evil.example"),
        ("![x](//evil)", "!\\[x\\](//evil)"),
        ("a | b\n# c", "a \\| b # c"),
        ("# title", "\\# title"),
        ("> said", "\\> said"),
        ("- item", "\\- item"),
        ("1. item", "1\\. item"),
        ("-0.05 is a number", "-0.05 is a number"),
        ("<b>`x`*_~", "&lt;b>\\`x\\`\\*\\_\\~"),
    ],
)
def test_what_would_act_does_not(text: str, safe: str) -> None:
    assert safe_text(text) == safe


def test_a_table_keeps_its_cells() -> None:
    assert safe_table(["a|b"], [["@me\n| x"]]).splitlines() == ["| a\\|b |", "|-----|", "| @ me \\| x |"]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_comparison_says_no_more_than_names(text: str) -> None:
    _check(text)


@settings(max_examples=30, deadline=None)
@given(text=st.text(max_size=40))
def test_whatever_they_are(text: str) -> None:
    _check(text)


def _check(text: str) -> None:
    runs = [scored([1.0] * 9 + [0.0], f"{text}{n}") for n in range(3)]
    comparison = compare_runs(*runs[:2], resamples=100)
    comparison = replace(comparison, notes=[text], mismatches=[text], not_compared={text: text})
    lost = [
        LostSample(text, "", text, text, text, text, 1.0, 0.0),
        LostSample(text, "", text, text, text, text, 1.0, 0.0, True, (text, "d"), (text,), ("d",)),
    ]
    ranked = ranking_report(rank_runs(runs, resamples=100), text, (), lost)
    for page in (comparison_report(comparison, lost), comparison_to_markdown(comparison), ranked):
        assert not re.search(r"(?<!\w)@\w", page)
        assert "://" not in page
        assert "<" not in page
        assert not re.search(r"(?<!\\)(?:\\\\)*[\[\]`*]", page)
        headings = [line for line in page.splitlines() if line.startswith("#")]
        assert all(line.startswith("### ") for line in headings)
        for table in re.findall(r"(?:^\|.*\n?)+", page, re.MULTILINE):
            bars = {len(re.findall(r"(?<!\\)(?:\\\\)*\|", line)) for line in table.splitlines()}
            assert len(bars) == 1
