"""The bundled data: Skerravane Tideworks, a utility that does not exist."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from ..core.dataset import InMemoryDataset
from ..core.types import Document
from ..io.annotations import load_label_set
from ..io.jsonl import load_jsonl_dataset, read_records

DATA = Path(__file__).parent / "data"
QUESTIONS = DATA / "questions.jsonl"


def demo_dataset() -> InMemoryDataset:
    """The questions with their gold documents, reference answers and labels."""
    return load_jsonl_dataset(QUESTIONS, name="skerravane")


def demo_labels() -> InMemoryDataset:
    """Answers to some of the questions, right and wrong on purpose, each with its label."""
    return load_label_set(DATA / "answers.labels.json")


def demo_claims() -> Iterator[tuple[str, dict[str, Any]]]:
    """The same answers as claims with their evidence and label, to hold a judge against."""
    for sample in demo_labels():
        told = sample.metadata["stored_output"]
        label = sample.labels["ground_truth_label"]
        yield sample.sample_id, {"evidence": told["passages"], "claim": told["answer"], "label": label}


@cache
def demo_corpus() -> tuple[Document, ...]:
    """The documents that the demo systems search."""
    return tuple(
        Document(record["doc_id"], record["text"], record["metadata"])
        for _, record in read_records(DATA / "corpus.jsonl")
    )
