"""auepora run --resume ID: the header is enough for the same results."""

from __future__ import annotations

from pathlib import Path

import pytest

from auepora_eval.cli.main import main
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.stable import stable_bytes


def test_metrics_keep_their_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path)
    words = ["--dataset", "demo", "--system", "auepora_eval.demo.systems:bm25", "--limit", "12"]
    metrics = ["recall@5", "mrr", "map", "exact_match"]  # not that of the alphabet
    assert main(["run", *words, "--metrics", ",".join(metrics), "--id", "x", "--out", out]) == 0
    storage = EvaluationResultsStorage(out)
    before = storage.load_results("x")
    (tmp_path / "x.results.json").unlink()  # as if it had been killed before the last step
    assert main(["run", "--resume", "x", "--out", out]) == 0
    assert "resuming: 12 of 12" in capsys.readouterr().err
    after = storage.load_results("x")
    assert after["configuration"]["metrics"] == metrics
    assert stable_bytes(after) == stable_bytes(before)
