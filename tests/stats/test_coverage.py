"""The published simulation of intervals, tests and margins, in its quick form."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import interval_coverage as coverage

pytestmark = pytest.mark.full


def test_intervals_hold_the_truth_as_often_as_they_promise(capsys: pytest.CaptureFixture[str]) -> None:
    assert coverage.main(["--quick"]) == 0
    out = capsys.readouterr().out
    for title in ("Values", "Changes", "Share of significant tests", "Clusters", "Other aggregates"):
        assert f"#### {title}" in out


def test_a_rule_that_does_not_hold_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Imaginary units beside the scores, not at the ends of the scale: too narrow for rare events."""
    monkeypatch.setattr(coverage, "value_ends", lambda units, bounds: (units.value, units.value))
    study = coverage.Study(200, 200, 0, (5, 20))
    coverage.values(study)
    assert any("0/1, rate 0.02, n = 20" in one for one in study.below)


def test_the_docs_have_the_cells_that_it_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """Each cell has a random stream of its own, so a part of the sizes is enough."""
    coverage.values(coverage.Study(2_000, 1_000, 0, (5, 10, 20)))
    printed = capsys.readouterr().out
    page = (Path(__file__).parents[2] / "docs" / "explanation" / "statistics.md").read_text(encoding="utf-8")
    table = page.partition("#### Values")[2].partition("####")[0]
    rows = [line for line in table.splitlines() if line.startswith("| ")][2:]
    assert len(rows) > 8
    assert [row for row in rows if " | ".join(row.split(" | ")[:4]) not in printed] == []
