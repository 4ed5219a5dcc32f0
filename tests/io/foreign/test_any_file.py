"""Files as people have them: arrays, tables and lines with odd names, ids and encodings, as they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import auepora_eval as ae
from auepora_eval.cli.main import main
from auepora_eval.errors import DataError
from auepora_eval.read.fields import ReadingNote

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


def test_rankings_in_json_with_a_text_for_a_number(tmp_path: Path) -> None:
    run = written(tmp_path / "run.json", {"1": {"a": 0.5}, "2": {"a": "high"}})
    with pytest.raises(DataError, match="'2': 'a': 'high' is not a number"):
        ae.score_rankings({"1": {"a": 1}}, run, metrics="mrr")


def test_answers_by_question_for_samples_with_ids(tmp_path: Path) -> None:
    answers = written(tmp_path / "a.csv", "question,answer\nHow many?,22\n")
    with pytest.raises(DataError, match="The file has no ids: add a column sample_id"):
        ae.score([OWN], str(answers), metrics="exact_match")


def test_a_part_of_a_beir_dataset(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a part of a BEIR dataset, not a dataset. Name its folder"):
        ae.load_dataset(written(tmp_path / "test.tsv", "query-id\tcorpus-id\tscore\n1\td\t1\n"))


def test_promptfoo_results_with_long_prompts(tmp_path: Path) -> None:
    result = {"promptIdx": 0, "testIdx": 0, "vars": {"question": "How many?"}, "response": {"output": "22"}}
    head = {"version": 3, "prompts": [{"raw": "Answer. " * 10_000}]}
    path = written(tmp_path / "output.json", {"evalId": "e", "results": {**head, "results": [result]}})
    assert [sample.query for sample in ae.load_dataset(path)] == ["How many?"]


def test_a_question_with_an_image(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "How many?"}, {"type": "image", "image": "data:"}]
    sample = {"id": 1, "epoch": 1, "input": [{"role": "user", "content": parts}], "target": "22"}
    log = {"status": "success", "eval": {}, "plan": {}, "samples": [sample]}
    assert [one.query for one in ae.load_dataset(written(tmp_path / "log.json", log))] == ["How many?"]


def test_metrics_of_answers_for_a_run_without_answers(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("1 Q0 d 1 2.5 t\n", encoding="utf-8")
    run = ae.score([OWN], str(tmp_path / "a.run"), metrics="exact_match,mrr")
    assert run["exact_match"].not_measured == "the system returns documents without answers"
    assert run["mrr"].coverage.scored == 1


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


def test_columns_of_the_questions_and_predictions_of_ours(tmp_path: Path) -> None:
    questions = written(tmp_path / "q.csv", "nr;topic;gold\n1;How many?;22\n")
    answers = written(
        tmp_path / "a.jsonl", {"sample_id": "1", "answer": "22", "timings": {"end_to_end": 0.5}}
    )
    columns = {"sample_id": "nr", "query": "topic", "reference_answer": "gold"}
    run = ae.score(questions, answers, metrics="exact_match,mean_latency[end_to_end]", columns=columns)
    assert [result.value for result in run.results] == [1.0, 0.5]


def test_a_column_that_the_answers_lack(tmp_path: Path) -> None:
    answers = written(tmp_path / "a.csv", "id,reply\n1,22\n")
    with pytest.raises(DataError, match=r"a\.csv: there is no column 'repl'. Did you mean reply?"):
        ae.score([OWN], answers, metrics="exact_match", columns={"answer": "repl"})


@pytest.mark.parametrize("name", ["a.jsonl", "a.json"])
def test_samples_of_ours_keep_everything_of_their_outputs(tmp_path: Path, name: str) -> None:
    hits = [{"doc_id": "x", "score": 0.25, "rank": 2}, {"doc_id": "d", "score": 0.5, "rank": 1}]
    output = {"response": {"text": "22"}, "retrieved": hits, "timings": {"end_to_end": 0.5}}
    record = {**OWN, **output}
    path = written(tmp_path / name, record if name == "a.jsonl" else [record])
    metrics = "exact_match,mrr,mean_latency[end_to_end]"
    for run in (ae.score(path, metrics=metrics), ae.score([OWN], path, metrics=metrics)):
        assert [result.value for result in run.results] == [1.0, 1.0, 0.5]


@pytest.mark.parametrize("question", ["'-5' is what?", "''quoted''", "'=' means what?"])
def test_a_table_of_others_keeps_its_apostrophes(tmp_path: Path, question: str) -> None:
    path = written(tmp_path / "a.csv", f'question,ground_truth\n"{question}",x\n')
    with pytest.warns(ReadingNote):
        assert [sample.query for sample in ae.load_dataset(path)] == [question]
