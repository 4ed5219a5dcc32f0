"""Frames of pandas, polars and Hugging Face, and Excel files, by the packages themselves."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

import auepora_eval as ae
from auepora_eval.cli.main import main
from auepora_eval.errors import DataError

pytestmark = pytest.mark.filterwarnings("ignore::auepora_eval.read.fields.ReadingNote")

NOON = dt.datetime.fromisoformat("2024-01-01 12:00")
ROWS = [
    {"id": 1, "question": "How many?", "ground_truth": "22", "answer": "22", "contexts": ["22 cars.", "x"]},
    {"id": 2, "question": "When?", "ground_truth": "noon", "answer": "at one", "contexts": []},
]
FORMS = [
    "pandas",
    "pandas nullable",
    "polars",
    "polars lazy",
    "datasets",
    "datasets stream",
    "datasets pandas",
]


def as_form(form: str, rows: list[dict[str, Any]]) -> Any:
    package, _, variant = form.partition(" ")
    module = pytest.importorskip(package, reason=f"{package} is not installed")
    if package == "datasets":
        dataset = module.Dataset.from_list(rows)
        if variant == "stream":
            return dataset.to_iterable_dataset()
        return dataset.with_format(variant) if variant else dataset
    frame = module.DataFrame(rows)
    if variant == "nullable":
        return frame.convert_dtypes()
    return frame.lazy() if variant == "lazy" else frame


@pytest.mark.parametrize("form", FORMS)
def test_a_frame_is_scored_and_evaluated(form: str) -> None:
    run = ae.score(as_form(form, ROWS), metrics="exact_match,grounding_overlap")
    assert [score.value for score in run["exact_match"].scores] == [1, 0]
    assert [hit.doc.text for hit in run.outputs[0].retrieved] == ["22 cars.", "x"]
    evaluated = ae.evaluate(lambda query: "noon", as_form(form, ROWS), metrics="exact_match")
    assert [score.value for score in evaluated["exact_match"].scores] == [0, 1]


@pytest.mark.parametrize("form", FORMS)
def test_a_frame_with_other_columns(form: str) -> None:
    rows = [{"nr": 7, "topic": "How many?", "gold": "22"}]
    columns = {"sample_id": "nr", "query": "topic", "reference_answer": "gold"}
    (sample,) = ae.load_dataset(as_form(form, rows), columns=columns)
    assert (sample.sample_id, sample.query) == ("7", "How many?")
    answers = as_form(form, [{"sample_id": "7", "answer": "22"}])
    assert ae.score([sample], answers, metrics="exact_match")["exact_match"].value == 1


@pytest.mark.parametrize("form", FORMS)
def test_a_frame_of_rankings(form: str) -> None:
    qrels = as_form(form, [{"query_id": "q1", "doc_id": "d1", "relevance": 1}])
    hits = [("d1", 1.5), ("d2", 2.5)]
    run = as_form(form, [{"query_id": "q1", "doc_id": doc, "score": score} for doc, score in hits])
    assert ae.score_rankings(qrels, run, metrics="mrr")["mrr"].value == 0.5


def test_whole_numbers_of_pandas_beside_an_empty_cell() -> None:
    # pandas stores 22 as 22.0 if another row of the column is or was empty.
    pandas = pytest.importorskip("pandas")
    rows = [{"id": 1, "question": "How many?", "ground_truth": 22, "answer": "22", "at": NOON}]
    frame = pandas.DataFrame([*rows, {"id": None, "question": "When?", "answer": "noon"}])
    samples = list(ae.load_dataset(frame))
    assert samples[0].sample_id == "1"
    assert ae.score(frame.head(1), metrics="exact_match")["exact_match"].value == 1
    with pytest.warns(UserWarning, match="1 of 2 samples have reference_answer"):
        assert ae.score(frame, metrics="exact_match")["exact_match"].value == 1
    assert samples[1].metadata == {}
    shares = ae.load_dataset(pandas.DataFrame({"question": ["a", "b"], "ground_truth": [22.0, 0.5]}))
    assert [one.reference_answer and one.reference_answer.text for one in shares] == ["22.0", "0.5"]


# Excel.


def a_book(path: Path, *rows: list[Any]) -> Path:
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_excel_with_blank_rows(tmp_path: Path) -> None:
    path = a_book(
        tmp_path / "q.xlsx",
        [None, None],
        [" id ", "question", None, "ground_truth", "answer", "at"],
        [None],
        [1, "How many?", None, 22, 22.0, NOON],
    )
    (sample,) = ae.load_dataset(path)
    assert (sample.sample_id, sample.metadata["at"]) == ("1", NOON)
    assert ae.score(path, metrics="exact_match")["exact_match"].value == 1


def test_excel_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    a_book(tmp_path / "q.xlsx", ["nr", "topic", "gold"], [1, "How many?", 22])
    a_book(tmp_path / "a.xlsx", ["sample_id", "answer"], [1, 22])
    columns = ["--columns", "sample_id=nr,query=topic,reference_answer=gold"]
    assert main(["dataset", "convert", "q.xlsx", "q.jsonl", *columns]) == 0
    rest = ["--outputs", "a.xlsx", "--metrics", "exact_match", "--id", "a"]
    assert main(["score", "--dataset", "q.jsonl", *rest]) == 0
    assert ae.load_run("data/evaluation/results/a")["exact_match"].value == 1


def test_excel_file_that_unpacks_to_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = a_book(tmp_path / "q.xlsx", ["id", "question"], [1, "How many?"])
    monkeypatch.setattr("auepora_eval.io.tables.MOST_BYTES", 1000)
    with pytest.raises(DataError, match="unpacks to more than"):
        ae.load_dataset(path)
