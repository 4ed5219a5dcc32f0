"""Seed 003's usage examples (its sections 6.1 and 6.2), as its reader would type them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.io.json.documents import DataCompressor
from auepora_eval.io.loader import EvaluationDatasetLoader
from auepora_eval.io.schema.validate import DataFormatValidator
from auepora_eval.metrics.citations.evaluator import CitationEvaluator
from auepora_eval.quality.checks import DataQualityChecker
from auepora_eval.runs.store.storage import EvaluationResultsStorage

SEED = Path(__file__).parents[1] / "golden" / "seed_003"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def create_sample_evaluation_dataset() -> str:
    dataset = json.loads((SEED / "sample_eval_v1.0.0.eval.json").read_text())
    output_path = Path("data/evaluation/datasets/sample_eval_v1.0.0.eval.json")
    output_path.parent.mkdir(parents=True, exist_ok=True)
    with output_path.open("w", encoding="utf-8") as f:
        json.dump(dataset, f, indent=2, ensure_ascii=False)
    return str(output_path)


def create_ground_truth() -> None:
    path = Path("data/evaluation/ground_truth/sample_eval_v1.0.0.gt.json")
    path.parent.mkdir(parents=True)
    path.write_bytes((SEED / "citation_annotation.gt.json").read_bytes())


def run_evaluation_example() -> None:
    loader = EvaluationDatasetLoader()
    dataset = loader.load_dataset("sample_eval_v1.0.0")

    print(f"Loaded dataset with {len(dataset['queries'])} queries")

    ground_truth = loader.load_ground_truth("sample_eval_v1.0.0")
    assert ground_truth["annotation_id"] == "citation_gt_001"

    evaluator = CitationEvaluator({})

    for query in dataset["queries"]:
        simulated_answer = query["ground_truth_answer"]
        simulated_citations = query["citations"]

        results = evaluator.evaluate_answer_citations(
            simulated_answer,
            simulated_citations,
            {doc["document_id"]: doc["content"] for doc in dataset["documents"]},
            query,
        )

        overall = results["overall_scores"]["overall_citation_accuracy"]
        print(f"Query {query['query_id']}: Citation accuracy = {overall:.3f}")

    results_storage = EvaluationResultsStorage()
    results_path = results_storage.save_results(
        {
            "evaluation_id": "sample_eval_001",
            "timestamp": "2025-08-30T12:00:00Z",
            "dataset_id": "sample_eval_v1.0.0",
            "results": [],
        }
    )

    print(f"Results saved to: {results_path}")


def test_usage_example_runs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    create_sample_evaluation_dataset()
    create_ground_truth()
    run_evaluation_example()
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "Loaded dataset with 1 queries"
    # The span is the gold one, 0.30; the file that it cites is none of the documents, and the answer says
    # more than their one sentence.
    assert printed[1] == "Query sample_query_001: Citation accuracy = 0.300"
    assert printed[2] == "Results saved to: data/evaluation/results/sample_eval_001.results.json"
    stored = EvaluationResultsStorage().load_results("sample_eval_001")
    assert (stored["dataset_id"], stored["results"]) == ("sample_eval_v1.0.0", [])
    assert stored["_metadata"]["evaluation_type"] == "standard"


def test_layout_of_the_seed_with_folders_created_on_write(here: Path) -> None:
    EvaluationDatasetLoader()
    EvaluationResultsStorage()
    assert not any(here.iterdir())
    EvaluationResultsStorage().save_results({"evaluation_id": "x"})
    files = [path.relative_to(here).as_posix() for path in here.rglob("*") if path.is_file()]
    assert files == ["data/evaluation/results/x.results.json"]


def test_results_are_listed_and_compared_as_in_the_seed(here: Path) -> None:
    example: dict[str, Any] = json.loads((SEED / "comprehensive.results.json").read_text())
    before = json.dumps(example)
    storage = EvaluationResultsStorage()
    storage.save_results(example, "standard")
    storage.save_results({**example, "evaluation_id": "other"}, evaluation_type="ab_test")
    assert json.dumps(example) == before  # the input is left as it was
    with pytest.raises(OSError, match="exists already"):
        storage.save_results(example)
    assert {head["evaluation_id"] for head in storage.list_results()} == {example["evaluation_id"], "other"}
    assert [head["evaluation_id"] for head in storage.list_results("ab_test")] == ["other"]
    compared = storage.compare_results([example["evaluation_id"], "other"])
    assert compared["evaluations"] == [example["evaluation_id"], "other"]
    assert compared["metrics_comparison"]["hit@1"] == {example["evaluation_id"]: 0.72, "other": 0.72}
    assert compared["performance_comparison"]["latency_stats"]["other"]["p95"] == 2100
    with pytest.raises(FileNotFoundError):
        storage.load_results("nothing")


def test_the_other_classes(here: Path) -> None:
    document = json.loads(Path(create_sample_evaluation_dataset()).read_text())
    assert DataFormatValidator().validate_evaluation_dataset(document) == []
    packed = DataCompressor.compress_evaluation_data(document)
    assert DataCompressor.decompress_evaluation_data(packed) == document
    assert DataCompressor.estimate_compression_ratio(document) > 1
    issues = DataQualityChecker().run_quality_checks(document)
    assert any("ml_guide.pdf" in issue for issue in issues)  # it resolves to no document
    assert any("size is declared as 2" in issue for issue in issues)
