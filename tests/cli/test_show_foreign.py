"""auepora show on a results file of another tool."""

from __future__ import annotations

from pathlib import Path

import pytest

from auepora_eval.cli.main import main

SEED = Path(__file__).parents[1] / "golden" / "seed_003" / "comprehensive.results.json"


def test_summary_and_metrics_of_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(SEED)]) == 0
    shown = capsys.readouterr()
    rows = [line.split() for line in shown.out.splitlines()]
    assert ["total_queries", "500"] in rows
    assert ["hit@1", "0.7200", "[0.6800,", "0.7600]"] in rows
    assert ["span_accuracy.perfect_matches", "380"] in rows
    assert "the file is of another tool" in shown.err


@pytest.mark.parametrize("words", [("--worst", "mrr"), ("--sample", "1")])
def test_foreign_run_has_no_samples(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(SEED), *words]) == 4
    assert "no samples and outputs" in capsys.readouterr().err


@pytest.mark.parametrize(
    "content", ['{"summary": {"a": [1]}, "x_metrics": 5}', '{"x_metrics": {"m": {"value": "high"}}}', "{}"]
)
def test_strange_files(content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.results.json"
    path.write_text(content, encoding="utf-8")
    assert main(["show", str(path)]) == (0 if "high" in content else 2)
    assert "Traceback" not in capsys.readouterr().err
