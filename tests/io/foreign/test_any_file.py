"""Files as people have them: arrays, tables and lines with odd names, ids and encodings, as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import auepora_eval as ae
from auepora_eval.cli.main import main
from auepora_eval.errors import DataError

pytestmark = pytest.mark.filterwarnings("ignore::auepora_eval.read.fields.ReadingNote")

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


def test_answers_by_id_in_json(tmp_path: Path) -> None:
    """The form of SQuAD's predictions."""
    answers = written(tmp_path / "a.json", {"1": "22"}, indent=2)
    assert ae.score([OWN], str(answers), metrics="exact_match")["exact_match"].value == 1.0
    many = written(tmp_path / "b.json", {str(n): "22" for n in range(9_000)}, indent=2)
    samples = [{**OWN, "sample_id": str(n)} for n in range(9_000)]
    assert ae.score(samples, str(many), metrics="exact_match")["exact_match"].value == 1.0
    with pytest.raises(DataError, match="answers by sample id, not a dataset"):
        ae.load_dataset(answers)


@pytest.mark.parametrize("scores", [{"a": 0.5, "d": 0.25}, {"a": 2, "d": 1}])
def test_rankings_in_json(tmp_path: Path, scores: dict[str, float]) -> None:
    """The form of pytrec_eval, of BEIR's results and of ranx."""
    run = written(tmp_path / "run.json", {"0": {}, "1": scores})
    qrels = written(tmp_path / "qrels.json", {"1": {"d": 1, "e": 0}, "2": {"d": 2}}, indent=2)
    assert ae.score(str(qrels), str(run), metrics="mrr")["mrr"].value == 0.25
    assert ae.score_rankings(qrels, run, metrics="mrr")["mrr"].value == 0.25


def test_answers_by_question_for_samples_with_ids(tmp_path: Path) -> None:
    answers = written(tmp_path / "a.csv", "question,answer\nHow many?,22\n")
    with pytest.raises(DataError, match="The file has no ids: add a column sample_id"):
        ae.score([OWN], str(answers), metrics="exact_match")


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv"])
def test_samples_of_ours_with_their_answers(tmp_path: Path, name: str) -> None:
    record = {"sample_id": "1", "query": "How many?", "reference_answer": "22", "answer": "22"}
    table = "\n".join(map(",".join, (record, record.values())))
    contents = {"a.jsonl": json.dumps(record), "a.json": [record], "a.csv": table}
    path = str(written(tmp_path / name, contents[name]))
    assert ae.score(path, metrics="exact_match")["exact_match"].value == 1.0
    assert ae.score([OWN], path, metrics="exact_match")["exact_match"].value == 1.0


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "nr,reply\n1,22\n"),
        ("b.csv", "id,reply\n1,22\n"),
        ("c.csv", "nr,topic,reply\n1,How many?,22\n"),
    ],
)
def test_columns_of_two_files(tmp_path: Path, name: str, content: str) -> None:
    """Each file has the columns that concern it."""
    questions = written(tmp_path / "q.csv", "nr;topic;gold\n1;How many?;22\n")
    answers = written(tmp_path / name, content)
    columns = {"sample_id": "nr", "query": "topic", "reference_answer": "gold", "answer": "reply"}
    run = ae.score(questions, answers, metrics="exact_match", columns=columns)
    assert run["exact_match"].value == 1.0
    flag = ",".join(map("=".join, columns.items()))
    words = ["score", "--dataset", str(questions), "--outputs", str(answers), "--columns", flag]
    assert main([*words, "--metrics", "exact_match", "--out", str(tmp_path / "runs")]) == 0


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_samples_of_ours_keep_everything_of_their_outputs(tmp_path: Path, name: str) -> None:
    hits = [{"doc_id": "x", "score": 0.25, "rank": 2}, {"doc_id": "d", "score": 0.5, "rank": 1}]
    output = {"response": {"text": "22"}, "retrieved": hits, "timings": {"end_to_end": 0.5}}
    record = {**OWN, **output}
    path = written(tmp_path / name, record if name == "a.jsonl" else [record])
    metrics = "exact_match,mrr,mean_latency[end_to_end]"
    for run in (ae.score(path, metrics=metrics), ae.score([OWN], path, metrics=metrics)):
        assert [result.value for result in run.results] == [1.0, 1.0, 0.5]
