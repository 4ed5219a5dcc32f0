"""The stored document: all parts of the results format, old versions, lists, and runs side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.errors import DataError
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import a_dataset, a_sample, an_output, plan


@pytest.fixture
def document(tmp_path: Path) -> dict[str, Any]:
    cited = [{"file_name": "a.pdf", "page_number": 3, "start_char": 0, "end_char": 9}]

    def system(query: str) -> Any:
        output = an_output("ab", "at the pier", extra={"input_tokens": 90, "output_tokens": 10})
        output.response.metadata["citations"] = cited
        return output

    plan = EvaluationPlan(parse_metrics("recall@5,token_f1,mean_latency,lexical_diversity@2"))
    evaluator = AueporaEvaluator(
        system,
        plan,
        seed=3,
        configuration={"timeout": 30, "executor": "serial"},
        price_input=0.01,
        price_output=0.02,
    )
    samples = [
        a_sample(str(n), relevant="a", reference="at the pier", cluster=f"c{n // 2}") for n in range(3)
    ]
    storage = EvaluationResultsStorage(tmp_path)
    path = storage.save_run(evaluator.run(a_dataset(*samples), evaluation_id="run"))
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_every_part_of_the_format_is_there(document: dict[str, Any]) -> None:
    assert list(document)[-1] == "query_results"  # so that a list need not read them
    assert document["schema_version"] == "1.1"
    assert document["retrieval_metrics"]["recall@5"]["value"] == 1.0
    assert len(document["retrieval_metrics"]["recall@5"]["confidence_interval"]) == 2
    assert document["citation_metrics"] == {}
    assert list(document["answer_quality_metrics"]) == ["token_f1"]
    performance = document["performance_metrics"]
    assert set(performance["latency_stats"]) == {"mean", "p50", "p95", "p99", "min", "max"}
    assert set(performance["resource_usage"]["memory_mb"]) == {"mean", "peak", "std"}
    assert performance["api_usage"] == {
        "total_tokens": 300,
        "total_requests": 3,
        "estimated_cost_usd": pytest.approx(0.27 * 0.01 + 0.03 * 0.02),
        "input_tokens": 270,
        "output_tokens": 30,
        "queries_reporting": 3,
    }
    assert document["statistical_analysis"]["significance_tests"] == {}
    assert document["statistical_analysis"]["confidence_intervals"]["confidence_level"] == 0.95
    metadata = document["metadata"]
    assert metadata["evaluation_parameters"] == {
        "random_seed": 3,
        "executor": "serial",
        "concurrency": 1,
        "timeout_seconds": 30,
    }
    assert metadata["quality_assurance"]["data_validation"] == "passed"
    assert metadata["quality_assurance"]["samples_checked"] == 3
    for name in ("dataset_sha256", "plan_sha256", "outputs_sha256"):
        assert len(metadata[name]) == 64
    row = document["query_results"][0]
    assert row["citations"][0]["page_number"] == 3
    assert row["cluster"] == "c0"
    assert set(row["individual_metrics"]) == set(document["configuration"]["metrics"])


def test_it_is_valid_by_its_own_schema(document: dict[str, Any]) -> None:
    from auepora_eval.io.schema import DataFormatValidator

    assert DataFormatValidator().validate_evaluation_results(document) == []


def test_prices_come_from_a_plan(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "d.jsonl").write_text('{"sample_id": "1", "query": "q", "relevant_docs": ["a"]}')
    line = {"sample_id": "1", "retrieved": ["a"], "extra": {"input_tokens": 1000, "output_tokens": 500}}
    (tmp_path / "o.jsonl").write_text(json.dumps(line))
    words = ["score", "--dataset", str(tmp_path / "d.jsonl"), "--outputs", str(tmp_path / "o.jsonl")]
    words += ["--out", str(tmp_path / "runs"), "--json", "--metrics", "recall@1"]
    assert main([*words, *plan(tmp_path, price_input=2.0, price_output=4)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["performance_metrics"]["api_usage"]["estimated_cost_usd"] == 4.0
    assert document["configuration"]["price_input"] == 2.0
    assert "resource_usage" not in document["performance_metrics"]  # the system was not called
    assert main([*words, *plan(tmp_path, price_input=-2)]) == 2
    assert "price_input: -2 is less than the minimum of 0." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("version", "says"),
    [
        ("1.2", "'1.2' is not the version that is known here, 1.1. If the file is newer"),
        ("new", "'new' is not the version"),
        (1.1, "1.1 is not the version"),
    ],
)
def test_a_newer_file_is_refused_and_listed_as_such(tmp_path: Path, version: Any, says: str) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    storage.save_results({"evaluation_id": "new", "schema_version": version, "query_results": []})
    for load in (storage.load_results, storage.load_run, storage.load_summary):
        with pytest.raises(DataError) as caught:
            load("new")
        assert says in str(caught.value)
    assert says in storage.list_results()[0]["error"]


def test_a_list_has_the_heads_of_our_files_and_of_others(tmp_path: Path) -> None:
    storage = EvaluationResultsStorage(tmp_path)
    rows = [{"query_id": str(n)} for n in range(5000)]
    storage.save_results({"evaluation_id": "ours", "query_results": rows, "summary": {"total_queries": 5000}})
    tail = {"timestamp": "2025-01-01", "_metadata": {"evaluation_type": "nightly"}, "tags": ["a"]}
    theirs = {"evaluation_id": "theirs", "query_results": rows, **tail}
    (tmp_path / "theirs.results.json").write_text(json.dumps(theirs, indent=2))
    nested = {"x": {"y": 1}, "evaluation_id": "nested", "query_results": [], **tail}
    text = json.dumps(nested).replace('{"y": 1}', '{"y": 1,\n  "query_results": []}')
    (tmp_path / "nested.results.json").write_text(text)
    heads = {head["evaluation_id"]: head for head in storage.list_results()}
    assert heads["ours"]["total_queries"] == 5000
    assert heads["theirs"]["evaluation_type"] == heads["nested"]["evaluation_type"] == "nightly"
    assert [head["evaluation_id"] for head in storage.list_results("nightly")] == ["nested", "theirs"]
