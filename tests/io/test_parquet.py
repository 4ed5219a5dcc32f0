"""Parquet datasets: columns of other tools, and each document once."""

from __future__ import annotations

import random
import string
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.core.types import Document, EvaluationSample, Response
from auepora_eval.io.loader import detected_format, load_dataset
from auepora_eval.io.parquet import load_parquet_dataset, save_parquet_dataset

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
