"""Results as YAML and as a table: what is kept, what is left out, and that it is said."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.errors import DataError
from auepora_eval.io.csv import DroppedWarning, read_rows
from auepora_eval.io.documents import read_document
from auepora_eval.io.outputs import predictions_of
from auepora_eval.io.results.tables import load_results, save_results
from auepora_eval.read.fields import ReadingNote

SEED = read_document(Path(__file__).parents[1] / "golden" / "seed_003" / "comprehensive.results.json")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8) | st.sampled_from(
    ["=1+1", "-2", "+x", "'", "''-1", "@a", "null", "[", "a;b", " a ", "\r\n", "\0", "error"]
)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9)
ROWS = st.lists(
    st.fixed_dictionaries(
        {"query_id": TEXTS},
        optional={
            "query_text": TEXTS,
            "cluster": TEXTS,
            "latency_ms": NUMBERS,
            "retrieval_results": st.fixed_dictionaries(
                {"retrieved_docs": st.lists(TEXTS, max_size=3)},
                optional={
                    "relevance_scores": st.lists(st.none() | NUMBERS, max_size=3),
                    "ground_truth_relevant": st.lists(TEXTS, max_size=3),
                },
            ),
            "generated_answer": TEXTS,
            "citations": st.lists(st.integers(0, 9), min_size=1, max_size=2),
            "individual_metrics": st.dictionaries(
                st.sampled_from(["recall@5", "token_f1", "=1+1"]), NUMBERS, min_size=1
            ),
            "not_measured": st.just({"mrr": {"reason": "no gold", "failed": False}}),
            "statistics": st.dictionaries(TEXTS, st.lists(NUMBERS, max_size=2), min_size=1, max_size=2),
            "error": st.just({"type": "TimeoutError", "message": '-late,\n"really"'}),
        },
    ),
    max_size=4,
    unique_by=lambda row: str(row["query_id"]),
)


@settings(max_examples=60, deadline=None)
@given(rows=ROWS)
def test_every_row_is_in_the_table_and_nothing_is_executed(rows: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "r.results.csv"
        save_results({"query_results": rows}, path)
        table = [cells for _, cells in read_rows(path)]
    assert [cells["query_id"] for cells in table] == [row["query_id"] for row in rows]
    for cells, row in zip(table, rows, strict=True):
        for name, value in (row.get("individual_metrics") or {}).items():
            assert json.loads(cells[name]) == value
        assert cells["generated_answer"] == row.get("generated_answer", "")


@pytest.mark.parametrize("name", ["r.results.json", "r.results.yaml", "r.results.json.gz"])
def test_documents_survive_whole(tmp_path: Path, name: str) -> None:
    save_results(SEED, tmp_path / name)
    assert load_results(tmp_path / name) == SEED


def test_what_is_left_out_is_said(tmp_path: Path) -> None:
    path = tmp_path / "r.results.csv"
    with pytest.warns(
        DroppedWarning, match=r"r.results.csv: CSV has no place for the head .*and 7 more\); left out"
    ):
        save_results(SEED, path)
    with pytest.raises(DataError, match="the answers go to score --outputs"):
        load_results(path)


def test_the_answers_in_a_table_of_results_can_be_scored(tmp_path: Path) -> None:
    path = tmp_path / "r.results.csv"
    row = {"query_id": "1", "generated_answer": "22", "retrieval_results": {"retrieved_docs": ["a", "b"]}}
    save_results({"query_results": [row]}, path)
    with pytest.warns(ReadingNote):
        [output] = predictions_of(path).outputs(["1"])
    assert (output.response.text, [hit.doc.doc_id for hit in output.retrieved]) == ("22", ["a", "b"])
