"""auepora dataset convert: every kind of file in every format, and errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.io.csv import read_rows
from auepora_eval.io.documents import read_document
from auepora_eval.io.loader import load_dataset
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import a_dataset, a_sample, an_output

SEED = Path(__file__).parents[1] / "golden" / "seed_003"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for path in SEED.glob("*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def converted(*words: str) -> None:
    assert main(["dataset", "convert", *words]) == 0


@pytest.mark.parametrize(
    ("source", "steps"),
    [
        pytest.param(
            "personal_rag.eval.json", ["a.jsonl", "b.parquet", "c.yaml", "d.eval.json"], id="dataset"
        ),
        pytest.param(
            "personal_rag.eval.json", ["a.eval.json.gz", "b.ndjson", "c.eval.yml", "d.json"], id="packed"
        ),
        pytest.param(
            "citation_annotation.gt.json", ["a.gt.yaml", "b.gt.json.gz", "c.json"], id="ground truth"
        ),
        pytest.param("comprehensive.results.json", ["a.results.yaml", "b.results.json"], id="results"),
    ],
)
def test_round_trip(work: Path, source: str, steps: list[str]) -> None:
    before = source
    for step in steps:
        converted(before, step)
        before = step
    assert read_document(work / before) == read_document(work / source)


def test_fields_lost_in_csv_are_noted(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    converted("personal_rag.eval.json", "a.csv")
    shown = capsys.readouterr()
    assert shown.err == "note: a.csv: CSV has no place for its 1 documents and its description; left out.\n"
    assert shown.out.startswith("a.csv: 1 sample, ")
    converted("comprehensive.results.json", "a.results.csv")
    assert "note: a.results.csv: CSV has no place for the head of the run" in capsys.readouterr().err


def test_rows_of_a_large_run_are_copied(work: Path) -> None:
    samples = [a_sample(str(number), relevant="a", reference="x") for number in range(5)]

    class System:
        name = "s"

        def run(self, sample: Any, top_k: int) -> Any:
            return an_output("a", "x")

    evaluator = AueporaEvaluator(System(), EvaluationPlan(parse_metrics("recall@5,token_f1")))
    run = evaluator.run(a_dataset(*samples), evaluation_id="big")
    storage = EvaluationResultsStorage(work)
    storage.save_run(run, most_rows=2)
    assert read_document(work / "big.results.json")["query_results"] == []
    rows = storage.load_results("big")["query_results"]
    converted("big.results.json", "rows.results.csv")
    assert [cells["query_id"] for _, cells in read_rows(work / "rows.results.csv")] == list("01234")
    converted("big.results.json", "whole.results.yaml")
    whole = read_document(work / "whole.results.yaml")
    assert (len(rows), whole["query_results"], "run_file" in whole) == (5, rows, False)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("citation_annotation.gt.json a.eval.json", "ground truth annotations cannot become a dataset"),
        (
            "citation_annotation.gt.json a.jsonl",
            "ground truth annotations cannot be written to a file of this name",
        ),
        ("personal_rag.eval.json out/manifest.json", "a dataset cannot become the manifest of a dataset"),
        ("personal_rag.eval.json a.json --to results", "a dataset cannot become the results of a run"),
        ("comprehensive.results.json a.parquet", "End it in one of .json, .yaml, .yml, .csv."),
        ("personal_rag.eval.json personal_rag.eval.json --force", "is the file that is read"),
        ("personal_rag.eval.json a.xyz", "the name does not say which format to write"),
        ("personal_rag.eval.json a.jsonl --to jsnl", "there is no format 'jsnl'"),
        ("personal_rag.eval.json a.jsonl --from jsonl", "personal_rag.eval.json"),
        ("predictions.jsonl a.parquet", "this is a file of predictions, which has no other format"),
    ],
)
def test_rejected_arguments(work: Path, capsys: pytest.CaptureFixture[str], words: str, message: str) -> None:
    (work / "predictions.jsonl").write_text('{"sample_id":"1","answer":"x"}\n')
    before = sorted(work.iterdir())
    assert main(["dataset", "convert", *words.split()]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err
    assert shown.err.count("\n") == 1
    assert sorted(work.iterdir()) == before


def test_nothing_is_replaced_without_force(work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (work / "a.jsonl").write_text("mine")
    assert main(["dataset", "convert", "personal_rag.eval.json", "a.jsonl"]) == 4
    assert "exists already" in capsys.readouterr().err
    assert (work / "a.jsonl").read_text() == "mine"
    converted("personal_rag.eval.json", "a.jsonl", "--force")
    assert len(load_dataset(work / "a.jsonl")) == 1
