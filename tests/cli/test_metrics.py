"""auepora metrics: one line per metric, by target and by dataset; one metric in full."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auepora_eval.cli.main import main
from auepora_eval.core.metrics_base import METRICS

Capture = pytest.CaptureFixture[str]


def lines(capsys: Capture, *words: str) -> list[str]:
    assert main(["metrics", *words]) == 0
    return capsys.readouterr().out.splitlines()


def test_every_metric_has_one_line(capsys: Capture) -> None:
    printed = [
        line.split()[0].partition("@")[0].partition("[")[0] for line in lines(capsys) if line[:2] == "  "
    ]
    assert sorted(printed) == sorted(name for name in METRICS if METRICS.get(name).listed)
    assert {"recall", "rougeL_answer", "citation_span_accuracy", "mean_latency"} <= set(printed)
    assert "self_bleu" not in printed
    assert main(["metrics", "self_bleu"]) == 0
    assert "How alike" in capsys.readouterr().out


def test_the_metrics_that_a_dataset_supports(tmp_path: Path, capsys: Capture) -> None:
    data = tmp_path / "d.jsonl"
    data.write_text(
        json.dumps({"sample_id": "1", "query": "q", "reference_answer": "a"}) + "\n", encoding="utf-8"
    )
    printed = "\n".join(lines(capsys, "--dataset", str(data)))
    assert "token_f1" in printed
    assert "mean_latency" in printed
    assert "recall@k" not in printed


def test_a_metric_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.chdir(tmp_path)
    code = (
        "from auepora_eval import metric\n"
        "@metric('listed', target='tone')\n"
        "def listed(sample, output):\n    '''A metric that is listed.'''\n    return 1.0\n"
    )
    (tmp_path / "listed_metrics.py").write_text(code, encoding="utf-8")
    try:
        assert "A metric that is listed." in lines(capsys, "listed_metrics.py:listed")
        assert "tone" in lines(capsys, "--target", "tone")
    finally:
        METRICS._things.pop("listed", None)
