"""Names, questions and answers in Markdown are only text."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.comparison.compare import compare_runs
from auepora_eval.comparison.ranking import rank_runs
from auepora_eval.comparison.regressions import LostSample, Text
from auepora_eval.core.display import markdown_text, visible_text
from auepora_eval.core.table import Table
from auepora_eval.pages.markdown import MOST_BYTES, report_markdown
from tests.comparison.test_margins_and_repeats import scored
from tests.decide.test_gate_reports import HOSTILE
from tests.reporting.markdown_reading import cells, read


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("![x](//evil)", "![x\\](//evil)"),
        ("costs $5 &commat; `x`", "costs \\$5 \\&commat; \\`x\\`"),
        ("a | b\n# c", "a \\| b # c"),
        ("# said", "\\# said"),
        ("> said", "\\> said"),
        ("- item", "\\- item"),
        ("1. item", "1\\. item"),
        ("-0.05 is a number", "-0.05 is a number"),
        (
            "recall@5, token_f1: 0.9* <0.001 [+0.020, +0.120]",
            "recall@5, token_f1: 0.9\\* &lt;0.001 [+0.020, +0.120]",
        ),
        ("a\x1b\u202eb\x85c", "ab c"),
        ("_a_ b__c", "\\_a\\_ b\\_\\_c"),
    ],
)
def test_markup_is_escaped(text: str, safe: str) -> None:
    assert markdown_text(text) == safe
    assert read(markdown_text(text)) == [" ".join(visible_text(text).split())]


@settings(max_examples=200, deadline=None)
@given(text=st.text(st.sampled_from("@#&;:/.`|\\<>[]()*_~$!-+= 0a1fGH") | st.characters(), max_size=40))
def test_any_text_is_shown_unchanged(text: str) -> None:
    shown = " ".join(visible_text(text).split())
    assert read(markdown_text(text)) == [shown] * bool(shown)
    table = Table([text, "b"], [[text, "c"]]).to_markdown()
    assert cells(table) == [2, 2]
    assert read(table) == [shown, "b", shown, "c"]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_comparison_says_no_more_than_names(text: str) -> None:
    _check(text)


@settings(max_examples=10, deadline=None)
@given(text=st.text(max_size=40))
def test_any_names_in_a_comparison(text: str) -> None:
    _check(text)


def _check(text: str) -> None:
    runs = [scored([1.0] * 9 + [0.0], f"{text}{n}") for n in range(3)]
    comparison = compare_runs(*runs[:2], resamples=100)
    comparison = replace(comparison, notes=[text], mismatches=[text], not_compared={text: text})
    said = Text(text, text, (text, "d"), ("d",))
    lost = [
        LostSample(text, "", text, 1.0, 0.0, said, said),
        LostSample(text, "", text, 1.0, 0.0, said, Text(text, text, (text,)), of_documents=True),
    ]
    comments = (
        report_markdown(runs[:2], comparison, lost=lost),
        report_markdown(runs, ranking=rank_runs(runs, resamples=100), lost=lost, shown=text),
        report_markdown(runs[:1]),
    )
    for page in comments:
        read(page)
        headings = [line for line in page.splitlines() if line.startswith("#")]
        assert all(line.startswith("### ") for line in headings)


def test_comment_begins_with_the_verdict_and_folds_the_rest() -> None:
    runs = [scored([0.0] * 30, "old"), scored([1.0] * 30, "new")]
    page = report_markdown(runs, compare_runs(*runs, resamples=500))
    lines = page.splitlines()
    assert lines[0] == "### new compared with old: 1 better"
    assert lines.index("<details><summary>How large the differences are</summary>") > page.count("\n| ")
    folded = re.findall(r"<details><summary>(.*)</summary>", page)
    assert folded == [
        "How large the differences are",
        "All values of the baseline",
        "All values of the candidate",
    ]
    assert page.count("</details>") == len(folded)


def test_comment_is_never_longer_than_github_takes() -> None:
    long = "ß@name " * 3_000
    runs = [scored([1.0] * 9 + [0.0], f"{long}{n}") for n in range(2)]
    comparison = replace(compare_runs(*runs, resamples=100), notes=[long])
    lost = [LostSample("recall@5", "", long, 1.0, 0.0, Text(long, long), Text(long, long))] * 40
    page = report_markdown(runs, comparison, lost=lost)
    assert len(page.encode()) <= MOST_BYTES
    assert page.startswith("### ")
    assert "1 further part does not fit into a comment." in page
    assert "All values of the candidate" in page
    read(page)
