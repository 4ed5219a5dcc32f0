"""predictions.jsonl: short forms, refusals, and how outputs find their samples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from auepora_eval.core.types import (
    Document,
    Failure,
    Response,
    RetrievedDocument,
    SystemOutputs,
)
from auepora_eval.errors import DataError
from auepora_eval.io.outputs import ForeignPredictions, PredictionFile, load_predictions


def loaded(tmp_path: Path, *fields: str) -> dict[str, SystemOutputs]:
    path = tmp_path / "p.jsonl"
    path.write_text("".join(f'{{"sample_id":"1",{field}}}\n' for field in fields), encoding="utf-8")
    return load_predictions(path)


def bare(doc_id: str, rank: int) -> RetrievedDocument:
    return RetrievedDocument(Document(doc_id, "", {"text_missing": True}), 1 / rank, rank)


def only_said(text: str) -> SystemOutputs:
    """Of what was retrieved nothing is told, which is not the same as nothing found."""
    return SystemOutputs([], Response(text), extra={"documents_missing": True})


def only_retrieved(*hits: RetrievedDocument) -> SystemOutputs:
    """No answer was asked for, which is not the same as an empty one."""
    return SystemOutputs(list(hits), Response(""), extra={"answer_missing": True})


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        pytest.param('"answer":"x"', only_said("x"), id="answer"),
        pytest.param('"answer":""', only_said(""), id="an empty answer is an answer"),
        pytest.param('"response":{"text":"x"}', only_said("x"), id="response"),
        pytest.param('"retrieved":[]', only_retrieved(), id="nothing found"),
        pytest.param('"retrieved":["a","b"]', only_retrieved(bare("a", 1), bare("b", 2)), id="ids"),
        pytest.param(
            '"retrieved":[{"doc_id":"b","rank":2,"score":0.5},{"doc_id":"a","rank":1,"score":3}]',
            only_retrieved(
                RetrievedDocument(Document("a", ""), 3.0, 1), RetrievedDocument(Document("b", ""), 0.5, 2)
            ),
            id="sorted by rank",
        ),
        pytest.param(
            '"error":"boom"', SystemOutputs([], Response(""), error=Failure("error", "boom")), id="error"
        ),
        pytest.param(
            '"error":{"type":"E","message":"m"},"timings":{"end_to_end":1}',
            SystemOutputs([], Response(""), {"end_to_end": 1.0}, error=Failure("E", "m")),
            id="error in full",
        ),
    ],
)
def test_forms(tmp_path: Path, field: str, expected: SystemOutputs) -> None:
    assert loaded(tmp_path, field) == {"1": expected}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        pytest.param(
            ['"retrieved":{"doc_id":["a"],"score":[1.0],"rank":[1]}'],
            r":1: retrieved: rank must be a whole number",
            id="ranks as a column",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::auepora_eval.read.fields.ReadingNote")
def test_refusals(tmp_path: Path, fields: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        loaded(tmp_path, *fields)


def test_a_sample_without_a_prediction_counts_as_failed() -> None:
    given = SystemOutputs([], Response("x"))
    first, second = ForeignPredictions("p.jsonl", {"2": given}).outputs(["1", "2"])
    assert second is given
    assert first.error is not None
    assert first.error.type == "MissingPrediction"


def test_a_prediction_without_a_sample_is_an_error() -> None:
    with pytest.raises(DataError, match=r"1 predictions are for samples .*first '9'"):
        ForeignPredictions("p.jsonl", {"9": SystemOutputs([], Response(""))}).check_known_samples([])


@pytest.mark.parametrize("response", ["four", {"text": "four"}])
def test_an_answer_and_a_response_that_differ_are_an_error(tmp_path: Path, response: object) -> None:
    path = tmp_path / "p.jsonl"
    good = json.dumps({"sample_id": "1", "answer": "three", "response": {"text": "three"}})
    bad = json.dumps({"sample_id": "2", "answer": "three", "response": response})
    path.write_text(f"{good}\n{bad}\n")
    with pytest.raises(DataError, match=r"p.jsonl:2: \$\.answer: 'answer' and 'response' differ"):
        load_predictions(path)
    path.write_text(f"{good}\n")
    assert load_predictions(path)["1"].response.text == "three"


def test_lists_as_columns_are_found_in_their_file(tmp_path: Path) -> None:
    """As the predictions.jsonl of a run has them."""
    path = tmp_path / "predictions.jsonl"
    path.write_text('{"sample_id": "1", "retrieved": {"doc_id": ["a", "b"], "score": [2.0, 1.0]}}\n')
    predictions = PredictionFile(path)
    assert predictions.longest == 2
    assert [hit.doc.doc_id for output in predictions.outputs(["1"]) for hit in output.retrieved] == ["a", "b"]
