"""Runs store the version of a built dataset, and comparisons show different versions."""

from __future__ import annotations

from pathlib import Path

import pytest

from auepora_eval.cli.main import main
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.raw_tasks import a_flat_task, write_tasks


def build_and_run(version: str, run_id: str, *answers: str) -> None:
    tasks = [a_flat_task(f"t{n}", answer=answer) for n, answer in enumerate(answers)]
    write_tasks(Path(f"{version}.jsonl"), tasks)
    places = [
        flag
        for name, file in (
            ("qa", "qa_pairs.jsonl"),
            ("summary", "summaries.jsonl"),
            ("manifest", "manifest.json"),
        )
        for flag in (f"--{name}-output", f"{version}/{file}")
    ]
    assert (
        main(["dataset", "build", "--offline-dataset", f"{version}.jsonl", "--version", version, *places])
        == 0
    )
    words = ["--system", "auepora_eval.demo.systems:bm25", "--metrics", "exact_match", "--id", run_id]
    assert main(["run", "--dataset", f"{version}/qa_pairs.jsonl", *words]) == 0


def test_run_stores_its_dataset_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    build_and_run("v1", "first", "one", "two")
    build_and_run("v2", "second", "one", "two")
    build_and_run("v3", "third", "one", "three")
    results = EvaluationResultsStorage().load_results("first")
    snapshot = results["metadata"]["dataset_snapshot"]
    assert snapshot["version"] == "v1"
    assert len(snapshot["manifest_sha256"]) == 64
    capsys.readouterr()
    assert main(["show", "second"]) == 0
    assert "version v2" in capsys.readouterr().out
    assert main(["compare", "first", "second"]) == 0
    assert "different snapshots of the dataset, v1 (manifest" in capsys.readouterr().err
    assert main(["compare", "first", "third"]) == 2
    assert "different data: qa_pairs v1 (" in capsys.readouterr().err
