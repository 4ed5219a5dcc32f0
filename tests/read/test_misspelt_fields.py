"""A field that metrics need, under a misspelt name: an error with its place and the fix."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.cli.main import main as auepora
from auepora_eval.core.dataset import as_dataset

SAMPLE = {"sample_id": "a", "query": "Who?", "reference_answer": "x", "relevant_docs": ["d1"]}
TABLE = {"question": "Who?", "ground_truth": "x", "reference_context_ids": ["d1"], "id": "a"}
OUTPUT = {"sample_id": "a", "answer": "x", "retrieved": ["d1"]}
FOREIGN = {"id": "a", "response": "x", "retrieved_contexts": ["The Annet carries 22 cars."]}


def renamed(record: dict[str, Any], old: str, new: str) -> dict[str, Any]:
    return {new if name == old else name: value for name, value in record.items()}


@pytest.mark.parametrize(
    ("sample", "output", "field", "name"),
    [
        (SAMPLE, renamed(OUTPUT, "retrieved", "retreived"), "retrieved", "retreived"),
        (SAMPLE, renamed(OUTPUT, "answer", "anwser"), "answer", "anwser"),
        (SAMPLE, renamed(FOREIGN, "response", "anwser"), "answer", "anwser"),
        (
            renamed(SAMPLE, "reference_answer", "referense_answer"),
            OUTPUT,
            "reference_answer",
            "referense_answer",
        ),
        (renamed(SAMPLE, "relevant_docs", "relevent_docs"), OUTPUT, "relevant_docs", "relevent_docs"),
        (renamed(TABLE, "ground_truth", "refrence_answer"), OUTPUT, "reference_answer", "refrence_answer"),
    ],
)
@pytest.mark.filterwarnings("ignore::auepora_eval.read.fields.ReadingNote")
def test_a_misspelt_field_stops_the_command_and_can_be_named(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    sample: dict[str, Any],
    output: dict[str, Any],
    field: str,
    name: str,
) -> None:
    data, outputs = tmp_path / "d.jsonl", tmp_path / "o.jsonl"
    data.write_text(json.dumps(sample))
    outputs.write_text(json.dumps(output))
    words = ["score", "--dataset", str(data), "--outputs", str(outputs), "--out", str(tmp_path / "out")]
    assert auepora(words) == 2
    message = capsys.readouterr().err
    assert repr(name) in message
    assert f"--columns {field}={name}" in message


@pytest.mark.filterwarnings("ignore::auepora_eval.read.fields.ReadingNote")
@pytest.mark.filterwarnings("ignore::auepora_eval.read.fields.ReadingNote")
@pytest.mark.parametrize("other", ["retrieved_at", "retrieval_ms", "reference_url", "citation"])
def test_another_field_with_a_similar_beginning_is_no_error(other: str) -> None:
    [sample] = as_dataset([{"id": "1", "question": "q", "ground_truth": "x", other: "y"}])
    assert sample.metadata[other] == "y"
