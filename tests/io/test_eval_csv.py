"""CSV: a table for people with spreadsheets, that comes back as it went."""

from __future__ import annotations

import csv
import re
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.core.types import Document, EvaluationSample, Response
from auepora_eval.io.csv import DroppedWarning, load_eval_csv, neutral, restored, save_eval_csv

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1", "'=1", "'quoted'", "'tis"]


def is_formula(cell: str) -> bool:
    """Whether a spreadsheet would take a cell for one; a negative number is only a number."""
    return cell.startswith(tuple("=+-@\t\r\n")) and not re.fullmatch(r"-[0-9]+(\.[0-9]+)?(e-?[0-9]+)?", cell)


@given(st.text() | st.sampled_from(FORMULAS))
def test_a_cell_comes_back_as_it_was(cell: str) -> None:
    assert restored(neutral(cell)) == cell
    assert not is_formula(neutral(cell))


def test_no_cell_of_a_file_is_a_formula(tmp_path: Path) -> None:
    samples = [
        EvaluationSample(f"={n}", text, reference_answer=Response(text)) for n, text in enumerate(FORMULAS)
    ]
    path = tmp_path / "d.csv"
    save_eval_csv(InMemoryDataset("d", samples), path)
    with path.open(newline="", encoding="utf-8") as file:
        assert not [cell for row in csv.reader(file) for cell in row if is_formula(cell)]
    assert list(load_eval_csv(path)) == samples


def test_what_a_table_has_no_place_for_is_said(tmp_path: Path) -> None:
    doc = Document("d", "text")
    dataset = InMemoryDataset(
        "d", [EvaluationSample("1", "q", relevant_docs=[doc])], info={"dataset_id": "d"}, documents=[doc]
    )
    with pytest.warns(DroppedWarning, match="no place for its 1 documents and its description"):
        save_eval_csv(dataset, tmp_path / "d.csv")
    (sample,) = load_eval_csv(tmp_path / "d.csv")
    assert sample.relevant_docs == [Document("d", "", {"text_missing": True})]


def test_a_table_written_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_bytes(
        b"\xef\xbb\xbfquery_id,query_text,relevant_documents,ground_truth_answer,team\r\n"
        b'1,"Who, and why?",a; b,Ansel,blue\r\n'
        b"\r\n"
        b"2,When?,,,\r\n"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first, second = load_eval_csv(path)
    assert [doc.doc_id for doc in first.relevant_docs or ()] == ["a", "b"]
    assert (first.query, first.metadata["eval_json"]) == ("Who, and why?", {"team": "blue"})
    assert (second.relevant_docs, second.reference_answer) == (None, None)
    save_eval_csv(load_eval_csv(path), tmp_path / "again.csv")
    assert list(load_eval_csv(tmp_path / "again.csv")) == [first, second]
