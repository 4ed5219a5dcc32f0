"""Seed 003's usage examples (its sections 6.1 and 6.2), as its reader would type them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from auepora_eval.io.documents import DataCompressor
from auepora_eval.io.loader import EvaluationDatasetLoader
from auepora_eval.io.schema import DataFormatValidator
from auepora_eval.metrics.citations.evaluator import CitationEvaluator
from auepora_eval.quality.checks import DataQualityChecker
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import plan

pytestmark = pytest.mark.full

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


# A new user of the seed: a dataset, one annotator's ground truth, a system that cites, and its results.

GUIDE = "Key features include task tracking and team collaboration. Reports are weekly."
SYSTEM = """
from auepora_eval import Response

def cites(query):
    citation = {"file_name": "guide.txt", "start_char": 0, "end_char": 57}
    answer = "Key features include task tracking and team collaboration."
    return {"answer": Response(answer, metadata={"citations": [citation]}), "retrieved": [("guide", GUIDE)]}

GUIDE = "Key features include task tracking and team collaboration. Reports are weekly."
"""
SPAN_METRICS = "citation_span_exact,citation_span_accuracy,citation_span_perfect,citation_span_good"
CLAIM_METRICS = (
    "citation_completeness,citation_correctness,citation_factual_consistency,citation_hallucination_rate"
)


@pytest.fixture
def project(here: Path) -> Path:
    dataset = {
        "dataset_id": "tools",
        "name": "Tools",
        "version": "1.0.0",
        "queries": [
            {"query_id": "query_001", "query_text": "Key features?", "relevant_documents": ["guide"]},
            {"query_id": "query_002", "query_text": "Which reports?", "relevant_documents": ["guide"]},
        ],
        "documents": [{"document_id": "guide", "file_path": "guide.txt", "content": GUIDE}],
    }
    spans = {"query_001": (0, 57), "query_002": (59, 78)}
    annotations = [
        {
            "annotation_id": f"gt_{query}",
            "query_id": query,
            "annotator_id": "annotator_001",
            "citations": [{"file_name": "guide.txt", "start_char": start, "end_char": end}],
        }
        for query, (start, end) in spans.items()
    ]
    (here / "tools.eval.json").write_text(json.dumps(dataset), encoding="utf-8")
    (here / "tools.gt.json").write_text(json.dumps({"annotations": annotations}), encoding="utf-8")
    (here / "system.py").write_text(SYSTEM, encoding="utf-8")
    return here


def command(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> tuple[str, str]:
    capsys.readouterr()
    assert main(list(words)) == code
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    return printed.out, printed.err


def test_one_annotators_ground_truth_is_the_gold_of_a_run(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = ("--dataset", "tools.eval.json", "--metrics", f"{SPAN_METRICS},{CLAIM_METRICS}")
    run = ("run", *data, "--system", "system.py:cites")
    version: dict[str, object] = {"system_version": "personal-rag-v2.1.0"}
    _, err = command(capsys, *run, *plan(**version), "--id", "without", code=2)
    assert "metadata.citations" in err  # the dataset has no gold citations of its own
    command(capsys, *run, "--id", "first", *plan(**version, ground_truth="tools.gt.json"))
    stored = EvaluationResultsStorage().load_results("first")
    assert stored["system_version"] == "personal-rag-v2.1.0"
    assert stored["configuration"]["ground_truth"] == "tools.gt.json"
    assert stored["citation_metrics"]["span_accuracy"] == {
        "mean_exact_jaccard": 0.5,
        "mean_tolerance_jaccard": 0.5,
        "perfect_matches": 1,
        "good_matches": 1,
    }
    assert stored["citation_metrics"]["citation_completeness"]["total_claims"] == 2
    assert stored["citation_metrics"]["citation_correctness"]["correct_citations"] == 2
    quality = stored["answer_quality_metrics"]
    # The system cites the sentence that it quotes, for either question.
    assert quality["factual_consistency"] == {
        "value": 1.0,
        "mean_consistency": 1.0,
        "consistency_scores": [1.0, 1.0],
    }
    assert quality["hallucination_rate"] == {"value": 0.0, "total_claims": 2, "hallucinated_claims": 0}
    command(capsys, "show", "first", "--verify")
    out, _ = command(capsys, "dataset", "check", "data/evaluation/results/first.results.json")
    assert "valid (results)" in out
    out, _ = command(capsys, "show", "first")
    assert "cites on tools" in out  # the name of the system is kept beside its version
    again = ("score", *data, "--outputs", "data/evaluation/results/first.run.db")
    command(capsys, *again, "--id", "again", *plan(ground_truth="tools.gt.json", system_version="v3"))
    scored = EvaluationResultsStorage().load_results("again")
    assert scored["system_version"] == "v3"
    assert scored["citation_metrics"]["span_accuracy"] == stored["citation_metrics"]["span_accuracy"]


def test_our_results_line_up_with_those_of_the_seed(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = f"hit@1,hit@3,ndcg@5,mrr,{SPAN_METRICS},{CLAIM_METRICS}"
    words = ("--dataset", "tools.eval.json", *plan(ground_truth="tools.gt.json"), "--metrics", metrics)
    command(capsys, "run", *words, "--system", "system.py:cites", "--id", "ours")
    storage = EvaluationResultsStorage()
    example = json.loads((SEED / "comprehensive.results.json").read_text())
    storage.save_results(example)
    compared = storage.compare_results(["ours", example["evaluation_id"]])["metrics_comparison"]
    for name in (
        *("hit@1", "hit@3", "ndcg@5", "mrr", "span_accuracy.mean_exact_jaccard"),
        *("span_accuracy.mean_tolerance_jaccard", "span_accuracy.perfect_matches"),
        *("citation_completeness", "citation_correctness", "factual_consistency", "hallucination_rate"),
    ):
        assert set(compared[name]) == {"ours", example["evaluation_id"]}, name


def test_documents_graded_0_are_not_shown_as_gold(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graded = [{"doc_id": "good"}, {"doc_id": "bad", "metadata": {"relevance": 0}}]
    sample = {"sample_id": "1", "query": "Which?", "relevant_docs": graded, "reference_answer": "x"}
    (here / "d.jsonl").write_text(json.dumps(sample) + "\n", encoding="utf-8")
    (here / "s.py").write_text("def system(query):\n    return {'answer': 'x', 'retrieved': ['bad']}\n")
    flags = ("--dataset", "d.jsonl", "--metrics", "recall@5")
    command(capsys, "run", *flags, "--system", "s.py:system", "--id", "r")
    row = EvaluationResultsStorage().load_results("r")["query_results"][0]
    assert row["retrieval_results"]["ground_truth_relevant"] == ["good"]
    out, _ = command(capsys, "show", "r", "--sample", "1")
    assert "not retrieved: good" in out
    assert "*   1  bad" not in out
    out, _ = command(capsys, "dataset", "check", "d.jsonl", "--json")
    assert json.loads(out)["files"][0]["description"]["documents"]["gold"] == 1
    out, _ = command(capsys, "dataset", "check", "d.jsonl", "--sample", "1")
    assert "bad" not in out
    (here / "t.py").write_text("def system(query):\n    return {'answer': 'x', 'retrieved': ['good']}\n")
    command(capsys, "run", *flags, "--system", "t.py:system", "--id", "before")
    out, _ = command(capsys, "show", "before", "--worst", "recall@5")
    assert "missed" not in out
    out, _ = command(capsys, "compare", "before", "r", "--full")
    assert "Largest regressions on recall@5" in out
    assert "bad*" not in out  # a star marks gold
    command(capsys, "show", "r", "--html", "r.html")
    page = (here / "r.html").read_text(encoding="utf-8")
    assert "✕ gold, not retrieved" in page
    assert "✓ gold" not in page


def test_baselines_under_the_names_of_the_seed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    baseline = {"operation": "search", "mean_duration": 1.2, "std_duration": 0.1, "sample_count": 20}
    for name in ("performance/latency_benchmarks.json", "quality/citation_accuracy_benchmarks.json"):
        path = here / "data/evaluation/benchmarks" / name
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"search": baseline}), encoding="utf-8")
        out, _ = command(capsys, "dataset", "check", str(path))
        assert "valid (benchmark)" in out


def test_an_experiment_tests_as_compare_does(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiment = """
dataset: tools.eval.json
ab_testing:
  experiment_id: tools
  statistical_test: t_test
  primary_metric: bleu
  variants: [{variant_id: old, system: "system.py:cites"}, {variant_id: new, system: "system.py:cites"}]
"""
    (project / "tools.yaml").write_text(experiment, encoding="utf-8")
    dataset = json.loads((project / "tools.eval.json").read_text())
    for query in dataset["queries"]:
        query["ground_truth_answer"] = "Reports are weekly."
    (project / "tools.eval.json").write_text(json.dumps(dataset), encoding="utf-8")
    capsys.readouterr()
    main(["experiment", "tools.yaml"])
    assert "note: statistical_test: not used" in capsys.readouterr().err
