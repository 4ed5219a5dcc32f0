"""The bundled data: Skerravane Tideworks, a utility that does not exist."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from ..core.dataset import InMemoryDataset
from ..core.types import Document, EvaluationSample
from ..io.jsonl import load_jsonl_dataset, read_records
from ..io.label_set import load_label_set

DATA = Path(__file__).parent / "data"
QUESTIONS = DATA / "questions.jsonl"


def demo_dataset() -> InMemoryDataset:
    """Return the questions with their gold documents, reference answers and labels."""
    return load_jsonl_dataset(QUESTIONS, name="skerravane")


def demo_labels() -> InMemoryDataset:
    """Return answers to some of the questions, right and deliberately wrong, each with its label."""
    return load_label_set(DATA / "answers.labels.json")


def demo_claims() -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the same answers as claims with their evidence and label, to audit a judge."""
    for sample in demo_labels():
        output = sample.metadata["stored_output"]
        label = sample.labels["ground_truth_label"]
        yield sample.sample_id, {"evidence": output["passages"], "claim": output["answer"], "label": label}


def is_for_tuning(sample: EvaluationSample) -> bool:
    """Return whether a question may be read to improve the systems; the figures are of the others.

    A question and its variants are in the same half, by the number of the question: even ones are for tuning.
    """
    return int(str(sample.metadata["cluster"]).lstrip("q")) % 2 == 0


@cache
def demo_corpus() -> tuple[Document, ...]:
    """Return the documents that the demo systems search."""
    return tuple(
        Document(record["doc_id"], record["text"], record["metadata"])
        for _, record in read_records(DATA / "corpus.jsonl")
    )
