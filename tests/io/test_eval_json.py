"""`.eval.json` and our nouns: each field has its place, and nothing is lost on the way there and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.core.types import Document, EvaluationSample, Response
from auepora_eval.io.eval_json import dataset_from_record, load_eval_json, record_from_dataset, save_eval_json
from tests.builders import a_sample

SEED = Path(__file__).parents[1] / "golden" / "seed_003"


def a_record(query: dict[str, Any] | None = None, document: dict[str, Any] | None = None) -> dict[str, Any]:
    first = {"query_id": "q", "query_text": "Who?", "relevant_documents": ["d"], **(query or {})}
    record: dict[str, Any] = {"dataset_id": "data", "name": "Data", "version": "1.0.0", "queries": [first]}
    if document is not None:
        record["documents"] = [{"document_id": "d", "content": "Ansel Brae did.", **document}]
    return record


def test_each_field_of_the_seeds_example_has_its_place() -> None:
    dataset = load_eval_json(SEED / "personal_rag.eval.json")
    (sample,) = dataset
    assert (dataset.name, dataset.info["version"], dataset.info["metadata"]["size"]) == (
        "personal_rag_eval_v1.0.0",
        "1.0.0",
        500,
    )
    assert (sample.sample_id, sample.labels) == (
        "query_001",
        {"query_type": "factual", "difficulty": "medium"},
    )
    assert sample.reference_answer is not None
    assert sample.reference_answer.text.startswith("The new project management tool")
    assert sample.metadata["citations"][0]["start_char"] == 1250
    assert sample.metadata["num_relevant_docs"] == 2
    known, unknown = sample.relevant_docs or []
    assert known is dataset.documents[0]
    assert (known.doc_id, known.metadata["title"]) == ("doc_001", "Project Management Tool Overview")
    assert (known.metadata["file_path"], known.metadata["word_count"]) == ("docs/project_tool.pdf", 1250)
    assert unknown == Document("doc_002", "", {"text_missing": True})


@pytest.mark.parametrize("name", ["personal_rag.eval.json", "sample_eval_v1.0.0.eval.json"])
@pytest.mark.parametrize("ending", [".eval.json", ".eval.yaml", ".eval.json.gz"])
def test_the_seeds_examples_survive(tmp_path: Path, name: str, ending: str) -> None:
    original = json.loads((SEED / name).read_text())
    save_eval_json(load_eval_json(SEED / name), tmp_path / f"d{ending}")
    assert record_from_dataset(load_eval_json(tmp_path / f"d{ending}")) == original


@pytest.mark.parametrize(
    ("query", "document"),
    [
        pytest.param({"citations": []}, None, id="citations that are empty"),
        pytest.param({"ground_truth_answer": ""}, None, id="an answer that is empty"),
        pytest.param({"asked_by": "Ada"}, None, id="a field that nobody knows"),
        pytest.param({"citations": [], "metadata": {"citations": 3}}, None, id="citations twice"),
        pytest.param({"metadata": {"auepora": "ours?"}}, None, id="a key of ours that is not ours"),
        pytest.param({"relevant_documents": ["d", "d", "e"]}, {}, id="a document twice"),
        pytest.param({}, {"metadata": {"title": "U"}, "title": "T"}, id="a title twice"),
        pytest.param({}, {"pages": 3}, id="a document's field that nobody knows"),
    ],
)
def test_what_a_sample_has_no_place_for_is_kept(
    query: dict[str, Any], document: dict[str, Any] | None
) -> None:
    record = a_record(query, document)
    assert record_from_dataset(dataset_from_record(record, "d")) == record


def test_what_the_format_has_no_place_for_is_kept() -> None:
    graded = Document("d", "Ansel Brae did.", {"relevance": 2})
    samples = [
        EvaluationSample(
            "1",
            "Who?",
            relevant_docs=[graded],
            candidate_docs=[Document("d", "Ansel Brae did."), Document("e", "Nobody.")],
            reference_answer=Response("Ansel", {"name": "Ansel"}, {"alternatives": ["Brae"]}),
            labels={"scenario": "base", "difficulty": "easy", "query_type": "odd"},
            metadata={"citations": "none", "cluster": "c"},
        ),
        a_sample("2", relevant="d"),
    ]
    record = record_from_dataset(InMemoryDataset("data", samples))
    assert record["queries"][0]["difficulty"] == "easy"
    assert "query_type" not in record["queries"][0]  # the format knows no "odd"
    assert [entry["document_id"] for entry in record["documents"]] == ["d", "e"]
    assert list(dataset_from_record(record, "d")) == samples
