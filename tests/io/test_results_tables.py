"""Results as YAML and as a table: what is kept, what is left out, and that it is said."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.io.csv import DroppedWarning
from auepora_eval.io.documents import read_document
from auepora_eval.io.results.tables import load_results, load_results_csv, save_results, save_results_csv
from auepora_eval.io.validate import file_errors

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


@pytest.mark.parametrize("name", ["r.results.csv", "r.csv.gz"])
@settings(max_examples=60, deadline=None)
@given(rows=ROWS)
def test_rows_survive_csv(name: str, rows: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        save_results_csv({"query_results": rows}, path)
        assert load_results_csv(path) == {"query_results": rows}


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
    assert load_results(path) == {"query_results": SEED["query_results"]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save_results(load_results(path), tmp_path / "again.results.csv")
    assert (tmp_path / "again.results.csv").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("name", ["r.results.json", "r.results.yaml"])
def test_rows_go_both_ways(tmp_path: Path, name: str) -> None:
    rows = {"query_results": SEED["query_results"]}
    save_results(rows, tmp_path / name)
    assert file_errors(tmp_path / name, lenient=True) == []
    assert len(file_errors(tmp_path / name)) == 5  # the fields of a run that are missing
    assert load_results(tmp_path / name) == rows
    save_results(load_results(tmp_path / name), tmp_path / "r.results.csv")
    assert load_results(tmp_path / "r.results.csv") == rows
