"""Files that are wrong on purpose or by accident: one line with the place, and little memory."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.errors import DataError
from auepora_eval.io import tables
from auepora_eval.io.eval_json import load_eval_json
from auepora_eval.io.loader import load_dataset
from auepora_eval.io.trec import load_qrels
from auepora_eval.io.validate import file_errors


def test_an_archive_that_lies_about_its_size_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.eval"
    name = "samples/1_epoch_1.json"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, b" " * 5_000_000)
    # The directory at the end says 100 bytes.
    content = path.read_bytes()
    size = (5_000_000).to_bytes(4, "little")
    place = content.rindex(size)
    path.write_bytes(content[:place] + (100).to_bytes(4, "little") + content[place + 4 :])
    monkeypatch.setattr(tables, "MOST_BYTES", 50)
    with pytest.raises(DataError, match=r"log.eval: "):
        load_dataset(path)


def test_two_malformed_lines_that_even_out_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "q.qrels"
    path.write_text("1 0 5 7 1\n2 0 1\n")
    with pytest.raises(DataError, match=r"q.qrels:1: there are 5 columns"):
        load_qrels(path)


@pytest.mark.parametrize(
    ("own", "place"),
    [
        ({"reference": {"structured": None, "metadata": {"alternatives": "xyz"}}}, "alternatives"),
        ({"reference": {"structured": None, "metadata": {"alternatives": -1}}}, "alternatives"),
        ({"labels": "<script>"}, "labels"),
    ],
)
def test_our_part_of_eval_json_is_checked_as_json_lines_are(
    tmp_path: Path, own: dict[str, Any], place: str
) -> None:
    query = {
        "query_id": "1",
        "query_text": "q",
        "relevant_documents": [],
        "ground_truth_answer": "a",
        "metadata": {"auepora": own},
    }
    path = tmp_path / "d.eval.json"
    path.write_text(
        json.dumps({"dataset_id": "d", "name": "d", "version": "1.0.0", "queries": [query]}), encoding="utf-8"
    )
    with pytest.raises(DataError, match=rf"\$\.queries\[0\]\.metadata\.auepora.*{place}"):
        load_eval_json(path)
    assert len(file_errors(path)) == 1


@pytest.mark.filterwarnings("ignore::auepora_eval.read.fields.ReadingNote")
def test_a_leading_apostrophe_of_others_stays(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    path.write_text("id,question,answer\n1,'-5' is what?,''quoted''\n", encoding="utf-8")
    [sample] = load_dataset(path)
    assert sample.query == "'-5' is what?"


def test_a_set_is_not_a_ranking() -> None:
    from auepora_eval.read.outputs import to_output

    with pytest.raises((TypeError, ValueError), match="a set has no order"):
        to_output({"answer": "x", "retrieved": {"a", "b"}})


def test_a_score_that_no_float_holds_is_named(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    hit = {"doc_id": "d", "score": 10**400}
    row = {"sample_id": "1", "query": "q", "reference_answer": "a", "answer": "a", "retrieved": [hit]}
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(DataError, match=r"answers.jsonl:1: retrieved: int too large"):
        load_dataset(path)
