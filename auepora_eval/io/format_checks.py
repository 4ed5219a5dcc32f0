"""What a schema cannot say of our formats: ids are unique, spans lie in their documents, totals add up.

Values of a wrong type are left to the schema; every check survives any JSON value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeGuard

from ..core.document_names import DocumentName, DocumentNames
from .schema_words import SchemaError, Steps, json_path, shown

Rows = Iterable[tuple[Steps, dict[Any, Any]]]  # made while they are walked through: files can be large
_SCORES = ("confidence_score", "relevance_score", "annotation_confidence")
_COUNTS = ("total", "successful", "failed")


def dataset_errors(data: Any) -> Iterator[SchemaError]:
    """Of an evaluation dataset: ids that come twice, spans that cannot be."""
    yield from _repeated(_rows(data, "queries"), "query_id", "Give each query its own id.")
    yield from _repeated(_rows(data, "documents"), "document_id", "Give each document its own id.")
    length_of = _lengths(data)
    for steps, query in _rows(data, "queries"):
        yield from _span_errors(_rows(query, "citations", steps), length_of)
    yield from _span_errors(_rows(data, "citations"), length_of)


def ground_truth_errors(data: Any) -> Iterator[SchemaError]:
    """Of annotations: ids that come twice, spans that cannot be."""
    is_set = isinstance(data, dict) and "annotations" in data
    annotations = list(_rows(data, "annotations") if is_set else _one_or_many(data))
    yield from _repeated(annotations, "annotation_id", "Give each annotation its own id.")
    for steps, annotation in annotations:
        yield from _span_errors(_rows(annotation, "citations", steps), _no_length)


def results_errors(data: Any) -> Iterator[SchemaError]:
    """Of results: ids that come twice, counts that do not add up.

    What the system cited is recorded as it was; a wrong span is the system's, not the file's.
    """
    yield from _repeated(_rows(data, "query_results"), "query_id", "Keep one row a query.")
    summary = data.get("summary") if isinstance(data, dict) else None
    if isinstance(summary, dict):
        total, successful, failed = (summary.get(f"{name}_queries") for name in _COUNTS)
        if not (_is_whole(total) and _is_whole(successful) and _is_whole(failed)):
            return
        if total != successful + failed:
            sum_of = f"{shown(successful)} successful and {shown(failed)} failed"
            what = f"total_queries is {shown(total)}, but {sum_of} make {shown(successful + failed)}."
            yield SchemaError("$.summary", f"{what} Correct the counts.")


def config_errors(data: Any) -> Iterator[SchemaError]:
    """Of a configuration: the traffic of an experiment goes to its variants, all of it."""
    block = data.get("ab_testing") if isinstance(data, dict) else None
    if not isinstance(block, dict):
        return
    for steps, experiment in [(("ab_testing",), block), *_rows(block, "experiments", ("ab_testing",))]:
        variants = list(_rows(experiment, "variants", steps))
        yield from _repeated(variants, "variant_id", "Give each variant its own id.")
        shares = experiment.get("traffic_allocation")
        if not isinstance(shares, dict) or "variants" not in experiment:
            continue
        path = json_path((*steps, "traffic_allocation"))
        if {str(row.get("variant_id")) for _, row in variants} != {str(name) for name in shares}:
            yield SchemaError(path, "it does not name the variants. Give each variant_id its share.")
        values = [share for share in shares.values() if _is_number(share) and 0 <= share <= 1]
        if len(values) == len(shares) and abs(math.fsum(values) - 1) > 0.01:
            yield SchemaError(path, f"the shares sum to {math.fsum(values):g}, not 1. Change them.")


def prediction_errors(data: Any) -> Iterator[SchemaError]:
    """Of a prediction or a list of them: a blank or repeated id, nothing given, two of the same rank."""
    yield from _repeated(_one_or_many(data), "sample_id", "Keep one prediction a sample.")
    for steps, row in _one_or_many(data):
        sample_id = row.get("sample_id")
        if isinstance(sample_id, str) and not sample_id.strip():
            yield SchemaError(json_path((*steps, "sample_id")), "the id is empty. Name the sample.")
        if all(row.get(name) is None for name in ("answer", "response", "retrieved", "error")):
            what = "there is neither 'answer' (or 'response') nor 'retrieved'. Add what the system gave."
            yield SchemaError(json_path(steps), what)
        yield from _rank_errors((*steps, "retrieved"), row.get("retrieved"))


def _rank_errors(steps: Steps, retrieved: Any) -> Iterator[SchemaError]:
    hits = retrieved if isinstance(retrieved, list) else []
    told = [hit.get("rank") if isinstance(hit, dict) else None for hit in hits]
    for place, rank in enumerate(told):
        if isinstance(rank, float):  # to JSON Schema 3.0 is a whole number, to us it is not a rank
            yield _at((*steps, place), "rank", f"{shown(rank)} is not a rank. Use 1..n.")
    ranks = [place if rank is None else rank for place, rank in enumerate(told, start=1)]
    ranks = [rank for rank in ranks if _is_whole(rank)]
    if len(set(ranks)) < len(ranks):
        yield SchemaError(json_path(steps), "two documents have the same rank. Use 1..n.")


def _rows(data: Any, key: str, steps: Steps = ()) -> Rows:
    """The objects in a list of a document, each with its place."""
    rows = data.get(key) if isinstance(data, dict) else None
    return _objects((*steps, key), rows) if isinstance(rows, list) else ()


def _one_or_many(data: Any) -> Rows:
    if isinstance(data, list):
        return _objects((), data)
    return [((), data)] if isinstance(data, dict) else []


def _objects(steps: Steps, values: Iterable[Any]) -> Rows:
    return (((*steps, place), value) for place, value in enumerate(values) if isinstance(value, dict))


def _repeated(rows: Rows, field: str, fix: str) -> Iterator[SchemaError]:
    first: dict[Any, int | str] = {}
    for steps, row in rows:
        identifier = row.get(field)
        if not (isinstance(identifier, str) or _is_whole(identifier)):
            continue
        if identifier in first:
            place = json_path((*steps[:-1], first[identifier]))
            yield _at(steps, field, f"{shown(identifier)} was used already, at {place}. {fix}")
        elif steps:
            first[identifier] = steps[-1]


def _no_length(citation: dict[Any, Any]) -> None:
    """Where there is no corpus, no span is too long."""


def _lengths(data: Any) -> Callable[[dict[Any, Any]], tuple[str, int] | None]:
    """How long the document is that a citation names: (its id, characters), None if we cannot know."""
    documents = [row for _, row in _rows(data, "documents") if isinstance(row.get("content"), str)]
    shortest = min((len(row["content"]) for row in documents), default=0)
    names: list[DocumentNames] = []

    def length_of(citation: dict[Any, Any]) -> tuple[str, int] | None:
        if not documents or citation["end_char"] <= shortest:
            return None  # whichever document it is, the span may be in it
        if not names:
            names.append(_names_of(documents))
        place = names[0].place_of(_text(citation.get("file_name")))
        if place is None:
            return None
        return _text(documents[place].get("document_id")), len(documents[place]["content"])

    return length_of


def _names_of(documents: Iterable[dict[Any, Any]]) -> DocumentNames:
    return DocumentNames(
        DocumentName(_text(row.get("document_id")), _text(row.get("file_path")), _text(row.get("title")))
        for row in documents
    )


def _span_errors(
    citations: Rows, length_of: Callable[[dict[Any, Any]], tuple[str, int] | None]
) -> Iterator[SchemaError]:
    for steps, citation in citations:
        start, end = citation.get("start_char"), citation.get("end_char")
        if _is_number(start) and start < 0:
            yield _at(steps, "start_char", f"{shown(start)} is negative. Count characters from 0.")
        if _is_number(end) and end < 0:
            yield _at(steps, "end_char", f"{shown(end)} is negative. Count characters from 0.")
        if _is_number(start) and _is_number(end) and start >= end:
            yield SchemaError(
                json_path(steps),
                f"the span ends at {shown(end)}, not after its start at {shown(start)}. "
                "Swap start_char and end_char, or drop the citation.",
            )
        elif _is_number(end) and (known := length_of(citation)) and end > known[1]:
            name, length = known
            what = f"the span ends at {shown(end)}, but the document {shown(name)} has {length} characters."
            yield _at(steps, "end_char", f"{what} Correct the span, or the document.")
        for name in _SCORES:
            value = citation.get(name)
            if isinstance(value, int | float) and not isinstance(value, bool) and not 0 <= value <= 1:
                yield _at(steps, name, f"{shown(value)} is not from 0 to 1. Change it.")


def _at(steps: Steps, field: str, message: str) -> SchemaError:
    return SchemaError(json_path((*steps, field)), message)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _is_whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> TypeGuard[float]:
    return _is_whole(value) or (isinstance(value, float) and math.isfinite(value))
