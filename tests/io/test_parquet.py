"""Parquet datasets: columns of other tools, and damage."""

from __future__ import annotations

import gzip
import random
import string
import tempfile
import tracemalloc
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
from auepora_eval.read.records import UnknownFieldWarning

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
        pytest.param({"sample_id": ["1"]}, "row 1: .*'query'", id="a missing column"),
        pytest.param(
            {"sample_id": [1], "query": ["q"]},
            r"row 1: \$\.sample_id: Expected",
            id="number ids",
        ),
        pytest.param({"sample_id": ["1", None], "query": ["q", "q"]}, "row 2: .*'sample_id'", id="null id"),
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
            r"\$\.metadata: Expected",
            id="a list",
        ),
        pytest.param(
            {"sample_id": ["1"], "query": ["q"], "relevant_docs": [[1, 2]]},
            r"\$\.relevant_docs\[0\]: Expected",
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
    with pytest.warns(UnknownFieldWarning, match="Did you mean relevant_docs"):
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
@pytest.mark.filterwarnings("ignore::auepora_eval.read.records.UnknownFieldWarning")
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


def a_long_text(seed: int, characters: int) -> str:
    return "".join(random.Random(seed).choices(string.ascii_letters + " ", k=characters))


@pytest.mark.parametrize(
    ("documents", "characters", "queries"),
    [
        pytest.param(1, 40_000, 6000, id="one document of all queries"),
        pytest.param(2, 1_000_000, 1200, id="documents larger than a dictionary of Parquet"),
    ],
)
def test_a_document_of_the_corpus_is_written_once(
    tmp_path: Path, documents: int, characters: int, queries: int
) -> None:
    corpus = [Document(f"d{n}", a_long_text(n, characters), {"page": n}) for n in range(documents)]
    samples = [EvaluationSample(f"q{n}", "?", list(corpus), [corpus[0]]) for n in range(queries)]
    path = tmp_path / "data.parquet"
    tracemalloc.start()
    save_parquet_dataset(InMemoryDataset("d", samples, documents=corpus), path)
    loaded = load_parquet_dataset(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    whole = documents * characters
    assert path.stat().st_size < 2 * whole + 100 * queries
    assert peak < 5 * whole + 10_000 * queries
    assert list(loaded) == samples
    assert list(loaded.documents) == corpus


def test_another_text_than_the_corpus_has_stays(tmp_path: Path) -> None:
    corpus = [Document("a", "text", {}), Document("b", "", {})]
    docs = [Document("a", "another", {}), Document("b", "", {"x": 1}), Document("c", "", {}), corpus[1]]
    dataset = InMemoryDataset("d", [EvaluationSample("1", "q", docs)], documents=corpus)
    save_parquet_dataset(dataset, tmp_path / "d.parquet")
    loaded = load_parquet_dataset(tmp_path / "d.parquet")
    assert list(loaded) == list(dataset)
    assert list(loaded.documents) == corpus


def test_a_file_with_the_corpus_in_every_row_is_read(tmp_path: Path) -> None:
    whole = {"doc_id": "a", "text": "t", "metadata": "{}"}
    rows = [{"document": whole}, {"sample_id": "1", "query": "q", "relevant_docs": [whole]}]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows, schema=_schema()), tmp_path / "d.parquet")
    loaded = load_parquet_dataset(tmp_path / "d.parquet")
    assert [sample.relevant_docs for sample in loaded] == [[Document("a", "t", {})]]
    assert list(loaded.documents) == [Document("a", "t", {})]


def _schema() -> Any:
    document = pyarrow.struct([(n, pyarrow.string()) for n in ("doc_id", "text", "metadata")])
    columns = [("sample_id", pyarrow.string()), ("query", pyarrow.string())]
    return pyarrow.schema([*columns, ("relevant_docs", pyarrow.list_(document)), ("document", document)])


def test_what_is_written_is_never_taken_for_a_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("auepora_eval.io.parquet._MAX_EXPANSION", 100)
    shared = [Document("a", a_long_text(0, 10_000), {})]
    dataset = InMemoryDataset("d", [EvaluationSample(f"q{n}", "?", shared) for n in range(3000)])
    save_parquet_dataset(dataset, tmp_path / "d.parquet")
    assert list(load_parquet_dataset(tmp_path / "d.parquet")) == list(dataset)


@pytest.mark.full
@pytest.mark.parametrize(("documents", "is_a_bomb"), [(6000, True), (4000, False)])
def test_how_often_the_same_is_believed(tmp_path: Path, documents: int, is_a_bomb: bool) -> None:
    text = a_long_text(0, 30_000)
    path = a_file(tmp_path, sample_id=["1"] * documents, query=[text] * documents)
    refused = "unpack to more than" if is_a_bomb else "occurs twice"
    with pytest.raises(DataError, match=refused):
        load_parquet_dataset(path)


def test_an_existing_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "data.parquet"
    path.write_bytes(b"old")
    with pytest.raises(StorageError, match="exists already"):
        save_parquet_dataset(InMemoryDataset("d", [SAMPLE]), path)
    assert path.read_bytes() == b"old"
