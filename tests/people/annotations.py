"""Build annotations with few arguments, for the tests of agreement and adjudication."""

from __future__ import annotations

from typing import Any

from auepora_eval.people.annotators import Annotators, annotators_of

Span = tuple[int, int] | tuple[str, int, int]


def marked(name: str, query_id: str, *spans: Span, **fields: Any) -> dict[str, Any]:
    """marked("ada", "q1", (0, 9)) is a span of the file f; ("g", 0, 9) is one of g."""
    citations = []
    for span in spans:
        file_name, start, end = span if len(span) == 3 else ("f", *span)
        citations.append({"file_name": file_name, "start_char": start, "end_char": end, **fields})
    own = {"annotation_id": f"{name}-{query_id}", "query_id": query_id, "annotator_id": name}
    return {**own, "citations": citations}


def judged(
    name: str, query_id: str, scores: dict[str, float] | None = None, *, answer: str = "a", **fields: Any
) -> dict[str, Any]:
    """judged("ada", "q1", {"clarity": 1}, aspect_ratings={...}) is a judgement of the answer "a"."""
    own = {"annotation_id": f"{name}-{query_id}-{answer}", "query_id": query_id, "annotator_id": name}
    return {**own, "answer_text": answer, "quality_scores": scores or {}, **fields}


def people(*annotations: dict[str, Any]) -> Annotators:
    return annotators_of([("all.gt.json", list(annotations))])
