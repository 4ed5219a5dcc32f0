"""Files as people have them: arrays, tables and lines with odd names, ids and encodings, as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import auepora_eval as ae
from auepora_eval.errors import DataError

pytestmark = pytest.mark.filterwarnings("ignore::auepora_eval.core.fields.ReadingNote")

OWN = {"sample_id": "1", "query": "How many?", "reference_answer": "22", "relevant_docs": [{"doc_id": "d"}]}


def written(path: Path, content: Any, *, indent: int | None = None) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=indent), "utf-8")
    return path


@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_of_our_own_samples(tmp_path: Path, indent: int | None) -> None:
    lines = written(tmp_path / "a.jsonl", json.dumps(OWN))
    array = written(tmp_path / "a.json", [OWN], indent=indent)
    assert list(ae.load_dataset(array)) == list(ae.load_dataset(lines))


@pytest.mark.parametrize("indent", [None, 2])
def test_an_array_of_our_own_predictions_keeps_scores_and_ranks(tmp_path: Path, indent: int | None) -> None:
    hits = [{"doc_id": "x", "score": 0.25, "rank": 2}, {"doc_id": "d", "score": 0.5, "rank": 1}]
    prediction = {"sample_id": "1", "answer": "22", "retrieved": hits}
    values = [
        ae.score([OWN], str(path), metrics="mrr,exact_match").to_records()
        for path in (
            written(tmp_path / "a.jsonl", json.dumps(prediction)),
            written(tmp_path / "a.json", [prediction], indent=indent),
            written(tmp_path / "b.json", [{**prediction, "sample_id": 1}]),
        )
    ]
    assert values[0][0]["mrr"] == 1.0
    assert values[1:] == [values[0], values[0]]


@pytest.mark.parametrize(
    "record",
    [
        pytest.param({"question": "How many?", "ground_truth": "22", "trace_id": "t"}, id="id of a trace"),
        pytest.param({"question": "How many?", "answer": "22", "annotations": []}, id="annotations"),
        pytest.param({"question": "How many?", "answer": "22", "samples": ["x"]}, id="samples"),
        pytest.param({"question": "How many?", "answer": "22", "operation": "sum"}, id="operation"),
        pytest.param({"sample_id": "1", "query": "How many?", "ground_truth": "22"}, id="our id"),
    ],
)
def test_other_columns_do_not_hide_the_question(tmp_path: Path, record: dict[str, Any]) -> None:
    for path in (
        written(tmp_path / "a.jsonl", json.dumps(record) + "\n"),
        written(tmp_path / "a.json", [record]),
        written(tmp_path / "b.json", [record], indent=2),
    ):
        (sample,) = ae.load_dataset(path)
        assert sample.query == "How many?"
        assert sample.reference_answer is not None
        assert sample.reference_answer.text == "22"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", '{"id": 1, "answer": "22"}\n'),
        ("a.json", '[{"id": 1, "answer": "22"}]'),
        ("a.csv", "id;answer\n1;22\n"),
        ("b.jsonl", '{"sample_id": "1", "actual_output": "22"}\n'),
    ],
)
def test_answers_with_any_name_of_the_id(tmp_path: Path, name: str, content: str) -> None:
    run = ae.score([OWN], str(written(tmp_path / name, content)), metrics="exact_match")
    assert run["exact_match"].value == 1.0


def test_numbers_as_ids_of_answers() -> None:
    assert (
        ae.score([OWN], [{"sample_id": 1, "answer": "22"}], metrics="exact_match")["exact_match"].value == 1.0
    )


def test_the_columns_of_a_json_file(tmp_path: Path) -> None:
    """What pandas' to_json writes by default."""
    columns = {"question": {"0": "How many?", "1": "When?"}, "ground_truth": {"0": "22", "1": "noon"}}
    dataset = ae.load_dataset(written(tmp_path / "a.json", columns))
    assert [sample.query for sample in dataset] == ["How many?", "When?"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "[[1, 2]]", "an object was expected, not an array"),
        ("a.xlsx", "hello", "cannot be read as Excel"),
        ("a.csv", "question,ground_truth\nq,a\n,b\n", "row 3: there is no text under 'question'. Write the"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, content: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        ae.load_dataset(written(tmp_path / name, content))


def test_an_empty_array_is_an_empty_dataset(tmp_path: Path) -> None:
    assert list(ae.load_dataset(written(tmp_path / "a.json", "[]"))) == []


def test_our_csv_with_a_column_of_another_tool(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", "query_id,query_text,ground_truth\n1,How many?,22\n")
    (sample,) = ae.load_dataset(path)
    assert sample.reference_answer is not None
    assert sample.reference_answer.text == "22"
