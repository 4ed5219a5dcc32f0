"""Small nouns for tests: a test names only what it is about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.core.types import (
    Document,
    EvaluationSample,
    Failure,
    Response,
    RetrievedDocument,
    SystemOutputs,
)


def a_document(doc_id: str, grade: float | None = None, text: str = "") -> Document:
    return Document(doc_id, text or f"text of {doc_id}", {} if grade is None else {"relevance": grade})


def a_sample(
    sample_id: str = "1",
    query: str = "a query",
    *,
    relevant: Iterable[str] | dict[str, float] | None = None,
    reference: str | None = None,
    alternatives: list[str] | None = None,
    cluster: str | None = None,
    **fields: Any,
) -> EvaluationSample:
    """relevant="ab" means the documents a and b; {"a": 2} grades them."""
    docs = None
    if relevant is not None:
        grades = relevant if isinstance(relevant, dict) else dict.fromkeys(relevant)
        docs = [a_document(doc_id, grade) for doc_id, grade in grades.items()]
    answer = None
    if reference is not None:
        answer = Response(reference, metadata={"alternatives": alternatives} if alternatives else {})
    metadata = {} if cluster is None else {"cluster": cluster}
    return EvaluationSample(
        sample_id, query, relevant_docs=docs, reference_answer=answer, metadata=metadata, **fields
    )


def an_output(retrieved: Iterable[str] = (), answer: str = "", **fields: Any) -> SystemOutputs:
    """retrieved="ab" means that a was found at rank 1 and b at rank 2."""
    hits = [RetrievedDocument(a_document(doc_id), 1 / rank, rank) for rank, doc_id in enumerate(retrieved, 1)]
    return SystemOutputs(hits, Response(answer), **fields)


def a_failure(kind: str = "RuntimeError", message: str = "no luck") -> SystemOutputs:
    return SystemOutputs([], Response(""), error=Failure(kind, message))


def a_dataset(*samples: EvaluationSample, name: str = "small") -> InMemoryDataset:
    return InMemoryDataset(name, list(samples))


def small_world() -> tuple[list[EvaluationSample], list[SystemOutputs]]:
    """Five samples that every metric can score, and a system that does well, badly and in between."""
    samples = [
        a_sample(
            "s1", "Where does the Annet moor?", relevant={"a": 2, "b": 1}, reference="at the north pier"
        ),
        a_sample("s2", "How many boats are there?", relevant="c", reference="three boats"),
        a_sample("s3", "Who keeps the light?", relevant="de", reference="Ansel Brae", cluster="light"),
        a_sample("s4", "Who keeps the lamp?", relevant="de", reference="Ansel Brae", cluster="light"),
        a_sample("s5", "When was it built?", relevant="f", reference="in 1911"),
    ]
    timings = {"end_to_end": 0.5, "retrieval": 0.2, "generation": 0.3}
    outputs = [
        an_output("abz", "The Annet moors at the north pier.", timings=timings),
        an_output("xyc", "three", timings={**timings, "end_to_end": 0.7}),
        an_output("dxe", "Ansel Brae", timings={**timings, "end_to_end": 0.1}),
        an_output("xyz", "nobody knows", timings={**timings, "end_to_end": 1.9}),
        an_output("", "", timings={**timings, "end_to_end": 0.4}),
    ]
    return samples, outputs
