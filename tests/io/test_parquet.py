"""Parquet datasets: columns of other tools, and damage."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.core.types import Document, EvaluationSample, Response
from auepora_eval.errors import AueporaError, DataError, StorageError
from auepora_eval.io.loader import detected_format, load_dataset
from auepora_eval.io.parquet import load_parquet_dataset, save_parquet_dataset
from auepora_eval.io.records import UnknownFieldWarning

SAMPLE = EvaluationSample(
    "1", "q", [Document("a", "t", {"relevance": 2})], None, Response("r", {"n": 1}), {"l": 1}, {"m": [1]}
)


def a_file(tmp_path: Path, **columns: Any) -> Path:
    path = tmp_path / "data.parquet"
    pyarrow.parquet.write_table(pyarrow.table(columns), path)
    return path


def test_the_format_is_found_by_content(tmp_path: Path) -> None:
    save_parquet_dataset(InMemoryDataset("d", [SAMPLE]), tmp_path / "data.jsonl")
    assert detected_format(tmp_path / "data.jsonl") == "parquet"
    assert list(load_dataset(tmp_path / "data.jsonl")) == [SAMPLE]


def test_columns_of_other_tools(tmp_path: Path) -> None:
    path = a_file(tmp_path, sample_id=["1"], query=["q"], relevant_docs=[["a"]], reference_answer=["r"])
    [sample] = load_parquet_dataset(path)
    assert sample.relevant_docs == [Document("a", "", {"text_missing": True})]
    assert sample.reference_answer == Response("r")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        pytest.param({"sample_id": ["1"]}, "row 1: .*the field 'query' is missing", id="a missing column"),
        pytest.param(
            {"sample_id": [1], "query": ["q"]},
            r"row 1: \$\.sample_id: a string was expected",
            id="number ids",
        ),
        pytest.param(
            {"sample_id": ["1", None], "query": ["q", "q"]}, "row 2: .*'sample_id' is missing", id="null id"
        ),
        pytest.param(
            {"sample_id": ["1", "1"], "query": ["q", "q"]}, "sample 2: .* occurs twice", id="same id"
        ),
        pytest.param(
            {"sample_id": ["1"], "query": ["q"], "metadata": ["{"]},
            r"\$\.metadata: the JSON ends",
            id="not JSON",
        ),
        pytest.param(
            {"sample_id": ["1"], "query": ["q"], "metadata": ["[1]"]},
            r"\$\.metadata: an object or null was expected",
            id="a list",
        ),
        pytest.param(
            {"sample_id": ["1"], "query": ["q"], "relevant_docs": [[1, 2]]},
            r"\$\.relevant_docs\[0\]: a string or an object was expected",
            id="numbers as documents",
        ),
    ],
)
def test_wrong_columns(tmp_path: Path, columns: dict[str, Any], message: str) -> None:
    with pytest.raises(DataError, match=message):
        load_parquet_dataset(a_file(tmp_path, **columns))


def test_a_deep_json_text_is_refused(tmp_path: Path) -> None:
    path = a_file(tmp_path, sample_id=["1"], query=["q"], metadata=['{"a":' * 5000 + "1" + "}" * 5000])
    with pytest.raises(DataError, match=r"\$\.metadata"):
        load_parquet_dataset(path)


def test_an_unknown_column_warns(tmp_path: Path) -> None:
    with pytest.warns(UnknownFieldWarning, match="Did you mean 'relevant_docs'"):
        load_parquet_dataset(a_file(tmp_path, sample_id=["1"], query=["q"], relevant_doc=["a"]))


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"PAR1", id="only the mark"),
        pytest.param(b"PAR1" + b"x" * 100, id="no end"),
        pytest.param(b"PAR1" + b"x" * 100 + b"PAR1", id="garbage between the marks"),
        pytest.param(b'{"sample_id":"1","query":"q"}', id="JSON"),
        pytest.param(b"\x1f\x8bxx", id="begins like gzip"),
        pytest.param(gzip.compress(b"PAR1" + b"x" * 100)[:-9], id="gzip cut off"),
    ],
)
def test_damage(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "data.parquet"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"^data\.parquet: ") as caught:
        load_dataset(path, "parquet")
    assert "\n" not in str(caught.value)


def test_a_file_that_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    save_parquet_dataset(InMemoryDataset("d", [SAMPLE]), path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="not a Parquet file"):
        load_dataset(path)


@settings(max_examples=150, deadline=None)
@given(place=st.floats(0, 1, exclude_max=True), change=st.integers(1, 255))
@pytest.mark.filterwarnings("ignore::auepora_eval.io.records.UnknownFieldWarning")
def test_a_changed_byte_is_read_or_refused(place: float, change: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.parquet"
        save_parquet_dataset(InMemoryDataset("d", [SAMPLE]), path)
        content = bytearray(path.read_bytes())
        content[int(place * len(content))] ^= change
        path.write_bytes(content)
        message = "data.parquet"
        try:
            load_parquet_dataset(path)
        except AueporaError as error:
            message = str(error)
    assert message.startswith("data.parquet")


def test_an_existing_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    path.write_bytes(b"old")
    with pytest.raises(StorageError, match="exists already"):
        save_parquet_dataset(InMemoryDataset("d", [SAMPLE]), path)
    assert path.read_bytes() == b"old"
