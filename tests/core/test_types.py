"""Samples from strings and dicts, typed results, and the methods of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import auepora_eval as ae
from auepora_eval.core.dataset import InMemoryDataset, as_dataset
from auepora_eval.core.plan import EvaluationPlan, PartialCoverageWarning
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.types import (
    Coverage,
    Document,
    EvaluationRun,
    EvaluationSample,
    MetricResult,
    Response,
    TargetCategory,
)
from auepora_eval.errors import ArgumentError, StorageError
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.read.fields import ReadingNote
from auepora_eval.reporting.tables import results_to_dict, results_to_markdown
from auepora_eval.store.storage import EvaluationResultsStorage
from tests.builders import a_dataset, a_sample

T = TargetCategory


def sample(**fields: Any) -> EvaluationSample:
    return EvaluationSample("1", "q", **fields)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({"reference_answer": "22"}, Response("22"), id="string"),
        pytest.param({"reference_answer": {"text": "22"}}, Response("22"), id="dict"),
        pytest.param(
            {"reference_answer": {"text": "22", "metadata": {"alternatives": ["xxii"]}}},
            Response("22", metadata={"alternatives": ["xxii"]}),
            id="dict with metadata",
        ),
        pytest.param({"reference_answer": None}, None, id="none"),
    ],
)
def test_reference_answers_are_coerced(fields: dict[str, Any], expected: Response | None) -> None:
    assert sample(**fields).reference_answer == expected


@pytest.mark.parametrize("field", ["relevant_docs", "candidate_docs"])
def test_documents_are_coerced(field: str) -> None:
    given = [
        "a",
        {"doc_id": "b", "text": "B", "metadata": {"relevance": 2}},
        Document("c", "C"),
        {"doc_id": 4},
    ]
    expected = [
        Document("a", ""),
        Document("b", "B", {"relevance": 2}),
        Document("c", "C"),
        Document("4", ""),
    ]
    assert getattr(sample(**{field: given}), field) == expected
    assert getattr(sample(**{field: tuple(given)}), field) == expected


RECORDS: list[dict[str, Any]] = [
    {"sample_id": "1", "query": "one", "relevant_docs": ["a"], "reference_answer": "1"},
    {"sample_id": 2, "query": "two", "relevant_docs": None, "labels": {"kind": "x"}},
]


def test_datasets_are_coerced() -> None:
    dataset = a_dataset(a_sample())
    assert as_dataset(dataset) is dataset
    from_records = as_dataset(RECORDS)
    assert isinstance(from_records, InMemoryDataset)
    assert list(from_records) == [
        EvaluationSample(
            "1", "one", [Document("a", "", {"text_missing": True})], reference_answer=Response("1")
        ),
        EvaluationSample("2", "two", labels={"kind": "x"}),
    ]
    assert list(as_dataset(iter([a_sample("3")]))) == [a_sample("3")]


def test_an_unknown_field_is_a_warning() -> None:
    with pytest.warns(ReadingNote, match="not read, but kept in metadata: 'lables'"):
        as_dataset([{"sample_id": "1", "query": "q", "lables": {}}])


DETAILS = {
    "num_total": 10,
    "num_samples": 7,
    "num_skipped": 1,
    "num_failed": 2,
    "confidence_interval": [0.1, 0.9],
    "bounds_if_failed": [0.2, None],
    "bounds": [0.0, 1.0],
    "higher_is_better": False,
    "unit": "s",
    "signature": {"metric": "x"},
    "not_measured": "no output names documents",
}


def test_results_are_typed() -> None:
    result = MetricResult("x", T.DIVERSITY, 0.5, DETAILS)
    assert result.interval == (0.1, 0.9)
    assert result.coverage == Coverage(total=10, scored=7, skipped=1, failed=2)
    assert result.coverage.share == pytest.approx(0.8)
    assert result.if_failed == (0.2, None)
    assert result.bounds == (0.0, 1.0)
    assert (result.higher_is_better, result.unit, result.signature) == (False, "s", {"metric": "x"})
    assert result.not_measured == "no output names documents"


def answer(query: str) -> Any:
    if query == "three":
        raise RuntimeError("down")
    return ["a"], query


@pytest.fixture
def run() -> EvaluationRun:
    samples = [
        a_sample("1", "one", relevant="a", reference="one"),
        a_sample("2", "two", relevant="b"),
        a_sample("3", "three", relevant="a"),
    ]
    plan = EvaluationPlan(parse_metrics("recall@5,exact_match"))
    with pytest.warns(PartialCoverageWarning):
        return AueporaEvaluator(answer, plan).run(a_dataset(*samples), evaluation_id="mine")


def test_a_run_by_metric(run: EvaluationRun) -> None:
    assert run["recall@5"].value == 0.5
    assert run["recall@5"].coverage.failed == 1
    with pytest.raises(KeyError, match="no metric 'mrr' in run mine"):
        run["mrr"]


def test_records_have_one_dict_per_sample(run: EvaluationRun) -> None:
    assert run.to_records() == [
        {
            "sample_id": "1",
            "query": "one",
            "answer": "one",
            "error": None,
            "recall@5": 1.0,
            "exact_match": 1.0,
        },
        {
            "sample_id": "2",
            "query": "two",
            "answer": "two",
            "error": None,
            "recall@5": 0.0,
            "exact_match": None,
        },
        {
            "sample_id": "3",
            "query": "three",
            "answer": "",
            "error": "RuntimeError: down",
            "recall@5": None,
            "exact_match": None,
        },
    ]


def test_a_run_is_saved_and_loaded(run: EvaluationRun, tmp_path: Path) -> None:
    path = run.save(tmp_path / "results")
    assert path == tmp_path / "results" / "mine.results.json"
    loaded = EvaluationResultsStorage(tmp_path / "results").load_run("mine")
    assert str(loaded) == str(run)
    assert loaded.to_records() == run.to_records()
    with pytest.raises(StorageError, match="exists already"):
        run.save(tmp_path / "results")
    assert run.save(tmp_path / "results", force=True) == path


def test_a_run_without_its_samples_is_not_saved(run: EvaluationRun, tmp_path: Path) -> None:
    run.save(tmp_path)
    scores = EvaluationResultsStorage(tmp_path).load_run("mine", texts=False)
    assert [record["recall@5"] for record in scores.to_records()] == [1.0, 0.0, None]
    with pytest.raises(StorageError, match="not its samples and outputs"):
        scores.save(tmp_path / "elsewhere")


def test_a_run_can_be_given_where_results_are_expected(run: EvaluationRun) -> None:
    assert results_to_markdown(run) == results_to_markdown(run.results)
    assert results_to_markdown(run["recall@5"]).count("\n") == 2  # type: ignore[arg-type]
    assert results_to_dict(run) == {
        "RETRIEVAL_RELEVANCE": {"recall@5": 0.5},
        "GENERATION_CORRECTNESS": {"exact_match": 1.0},
    }
    with pytest.raises(ArgumentError, match="results must be a run or a list of MetricResults, not str"):
        results_to_markdown("mine")  # type: ignore[arg-type]


class AccessedText(str):
    """A string as LangChain returns it: of a class of its own."""

    __slots__ = ()


def test_text_of_a_class_of_its_own_is_stored_as_text(tmp_path: Path) -> None:
    samples = [{"sample_id": "1", "query": "How many?", "reference_answer": "22 cars"}]
    run = ae.evaluate(lambda query: AccessedText("22 cars"), samples, metrics="contains_answer")
    assert ae.load_run(run.save(tmp_path / "mine.results.json")).outputs[0].response.text == "22 cars"
