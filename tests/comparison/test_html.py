"""The HTML report: several runs are ranked and compared pair by pair, as the command line shows them."""

from __future__ import annotations

import re
from dataclasses import replace
from html import escape
from pathlib import Path

import pytest

from auepora_eval.cli.main import main
from auepora_eval.comparison.compare import compare_runs
from auepora_eval.comparison.ranking import rank_runs
from auepora_eval.comparison.tables import pair_table, ranking_in_words, ranking_table
from auepora_eval.core.types import EvaluationRun
from auepora_eval.pages.report import report_html
from tests.comparison.test_compare_more import scored

EVIL = "<script>alert(1)</script>"


def three(names: tuple[str, str, str] = ("old", "mid", "new")) -> list[EvaluationRun]:
    values = ([0.0] * 20, [1.0] * 4 + [0.0] * 16, [1.0] * 20)
    runs = [scored(each, name) for each, name in zip(values, names, strict=True)]
    for place, run in enumerate(runs):
        run.evaluation_id = f"r{place}"
    return runs


def test_three_runs_have_ranks_and_pairs() -> None:
    runs = three()
    ranking = rank_runs(runs)
    page = report_html(runs, ranking=ranking)
    assert "<h1>old, mid and new</h1>" in page
    assert escape(ranking_in_words(ranking)) in page
    for row in ranking_table(ranking).rows:
        assert all(escape(cell) in page for cell in row)
    assert all(f">{heading}" in page for heading in pair_table(ranking).headings)
    assert "c - a" in page
    assert '<span class="verdict better">better</span>' in page
    # mid wins four samples of twenty, which may be chance: not a pair that differs.
    assert "b - a" not in [row[1] for row in pair_table(ranking).rows]
    assert '<span class="verdict inconclusive">' not in page
    order = [page.index(text) for text in ('id="ranking"', "<h3>Pairs", 'id="metrics"', 'id="samples"')]
    assert order == sorted(order)


def test_names_of_systems_are_escaped_in_a_ranking() -> None:
    runs = three((EVIL, f"{EVIL}2", "new"))
    page = report_html(runs, ranking=rank_runs(runs))
    assert page.count("<script") == 1  # our own
    assert f"a {escape(EVIL)}" in page


def test_a_name_like_a_part_of_the_template_is_a_name() -> None:
    runs = three(("{{body}}", "{{title}}", "new"))
    page = report_html(runs, ranking=rank_runs(runs, resamples=100))
    plain = report_html(three(), ranking=rank_runs(three(), resamples=100))
    assert "<title>{{body}}, {{title}} and new</title>" in page
    assert page.count("<h1>") == 1
    assert len(page) < 1.2 * len(plain)


def test_what_cannot_be_seen_is_not_in_the_page() -> None:
    """An escape sequence for a terminal, and a letter that turns the direction of what follows."""
    runs = three(("a\x1b[31m\x00red", "b\u202eevil\u2066", "می\u200cخواهم"))
    runs[0].samples[0] = replace(runs[0].samples[0], query="gnp\u202e.exe\x9b")
    page = report_html(runs[:1]) + report_html(runs, ranking=rank_runs(runs, resamples=100))
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)
    assert "a[31mred" in page
    assert "bevil" in page
    assert "می\u200cخواهم" in page  # a joiner is a letter of Persian


def test_a_system_may_be_called_as_a_part_of_the_page() -> None:
    first, second, _ = three(("{{body}}", "{{title}}", "new"))
    page = report_html([first, second], compare_runs(first, second))
    assert page.count("<h1>") == 1
    assert "<title>{{title}} against {{body}}</title>" in page


def test_runs_that_do_not_differ_have_no_pairs() -> None:
    runs = three()
    for run in runs[1:]:
        run.results = runs[0].results
    page = report_html(runs, ranking=rank_runs(runs))
    assert "No pair differs significantly on any metric." in page


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    common = ["--dataset", "demo", "--metrics", "recall@5,mean_latency", "--limit", "30"]
    for name in ("bm25", "bigram"):
        assert main(["run", "--system", f"auepora_eval.demo.systems:{name}", "--id", name, *common]) == 0
    assert main(["run", "--system", "auepora_eval.demo.systems:bm25", "--id", "again", *common]) == 0
    capsys.readouterr()
    assert main(["compare", "bm25", "bigram", "again", "--html", "page.html", "--markdown", "-"]) == 0
    page, printed = Path("page.html").read_text(encoding="utf-8"), capsys.readouterr().out
    assert '<h2 id="ranking">Ranking' in page
    assert printed.startswith("### 3 systems compared\n")
    assert "<summary>Pairs that differ significantly</summary>" in printed
