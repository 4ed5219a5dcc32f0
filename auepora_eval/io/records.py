"""Plain records (dicts) to nouns and back: the one place that knows the field names."""

from __future__ import annotations

import difflib
import math
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import msgspec

from ..core.types import (
    DOCUMENTS_MISSING,
    Document,
    EvaluationSample,
    Failure,
    Response,
    RetrievedDocument,
    SystemOutputs,
    is_time,
    known_score,
    times_told,
)
from ..errors import DataError
from .type_words import wrong_record

Record = dict[str, Any]


class UnknownFieldWarning(UserWarning):
    """A record has a field that is not read; it may be misspelt."""


class RawDocument(msgspec.Struct):
    doc_id: str
    text: str | None = None
    metadata: dict[str, Any] | None = None


class RawResponse(msgspec.Struct):
    text: str | None = None
    structured: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None


class RawSample(msgspec.Struct):
    sample_id: str
    query: str
    relevant_docs: list[RawDocument | str] | None = None
    candidate_docs: list[RawDocument | str] | None = None
    reference_answer: RawResponse | str | None = None
    labels: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None


class RawHit(msgspec.Struct):
    doc_id: str
    text: str | None = None
    score: float | None = None
    rank: int | None = None
    metadata: dict[str, Any] | None = None


class RawFailure(msgspec.Struct):
    type: str
    message: str = ""
    seconds: float | None = None


class RawPrediction(msgspec.Struct):
    sample_id: str
    retrieved: list[RawHit | str] | None = None
    response: RawResponse | str | None = None
    answer: str | None = None
    timings: dict[str, float] | None = None
    extra: dict[str, Any] | None = None
    error: RawFailure | str | None = None


def read_sample(record: Record, where: str, corpus: Mapping[str, Document] | None = None) -> EvaluationSample:
    """An EvaluationSample from a record; null and missing are the same, so are a text and {"text": it}.

    A document that is only named by its id is looked up in the corpus.
    """
    return sample_of(_converted(record, RawSample, where), where, corpus)


def sample_of(raw: RawSample, where: str, corpus: Mapping[str, Document] | None = None) -> EvaluationSample:
    """The same from a record whose types were looked at already."""
    _refuse_empty(raw.sample_id, f"{where}: $.sample_id")
    reference = raw.reference_answer
    if isinstance(reference, RawResponse) and reference.text is None:
        raise DataError(
            f"{where}: $.reference_answer", "the field 'text' is missing.", fix="Add it, or write null."
        )
    if isinstance(reference, RawResponse):
        _check_alternatives((reference.metadata or {}).get("alternatives"), where)
    return EvaluationSample(
        sample_id=raw.sample_id,
        query=raw.query,
        relevant_docs=_documents(raw.relevant_docs, corpus or {}),
        candidate_docs=_documents(raw.candidate_docs, corpus or {}),
        reference_answer=None if reference is None else _response(reference),
        labels=raw.labels or {},
        metadata=raw.metadata or {},
    )


def sample_record(sample: EvaluationSample, corpus: Mapping[str, Document] | None = None) -> Record:
    """A sample as a record, without the fields that it does not have; documents of the corpus by id."""
    known = corpus or {}
    record: Record = {"sample_id": sample.sample_id, "query": sample.query}
    if sample.relevant_docs:
        record["relevant_docs"] = [_named_or_whole(doc, known) for doc in sample.relevant_docs]
    if sample.candidate_docs:
        record["candidate_docs"] = [_named_or_whole(doc, known) for doc in sample.candidate_docs]
    if sample.reference_answer is not None:
        record["reference_answer"] = _response_record(sample.reference_answer)
    if sample.labels:
        record["labels"] = sample.labels
    if sample.metadata:
        record["metadata"] = sample.metadata
    return record


def read_document_record(record: Any, where: str) -> Document:
    """A document from a record."""
    try:
        raw = msgspec.convert(record, RawDocument)
    except msgspec.ValidationError as error:
        path, what, fix = wrong_record(error)
        raise DataError(f"{where}{path.removeprefix('$')}", what, fix=fix) from error
    return Document(raw.doc_id, raw.text or "", raw.metadata or {})


def _named_or_whole(doc: Document, corpus: Mapping[str, Document]) -> Record | str:
    known = corpus.get(doc.doc_id)
    return doc.doc_id if known is not None and (known is doc or known == doc) else document_record(doc)


def document_record(doc: Document) -> Record:
    """A document as a record."""
    return {"doc_id": doc.doc_id, "text": doc.text, "metadata": doc.metadata}


def _response_record(response: Response) -> Record:
    return {"text": response.text, "structured": response.structured, "metadata": response.metadata}


def read_prediction(record: Record, where: str) -> tuple[str, SystemOutputs]:
    """(sample_id, output) from a prediction; "answer": "..." and a list of ids are accepted short forms."""
    return prediction_of(_converted(record, RawPrediction, where), where)


def prediction_of(raw: RawPrediction, where: str) -> tuple[str, SystemOutputs]:
    """The same from a record whose types were looked at already."""
    _refuse_empty(raw.sample_id, f"{where}: $.sample_id")
    answer = raw.response if raw.response is not None else raw.answer
    if answer is None and raw.retrieved is None and raw.error is None:
        raise DataError(
            f"{where}: $",
            "there is neither 'answer' (or 'response') nor 'retrieved'.",
            fix="Add what the system gave.",
        )
    for key, seconds in (raw.timings or {}).items():
        if not (math.isfinite(seconds) and seconds >= 0):
            raise DataError(
                f"{where}: $.timings.{key}", f"{seconds} is not a time in seconds.", fix="Leave it out."
            )
    error = RawFailure("error", raw.error) if isinstance(raw.error, str) else raw.error
    missing = {DOCUMENTS_MISSING: True} if raw.retrieved is None and error is None else {}
    times, odd = times_told(raw.timings or {})
    output = SystemOutputs(
        retrieved=_hits(raw.retrieved or [], where),
        response=_response(answer or ""),
        timings=times,
        extra={**(raw.extra or {}), **missing, **odd},
        error=None if error is None else Failure(error.type, error.message, _time(error.seconds)),
    )
    return raw.sample_id, output


def _time(seconds: float | None) -> float | None:
    return seconds if seconds is not None and is_time(seconds) else None


def prediction_record(sample_id: str, output: SystemOutputs) -> Record:
    """An output as a line of predictions.jsonl."""
    hits = [
        {
            "doc_id": hit.doc.doc_id,
            "text": hit.doc.text,
            "score": known_score(hit),
            "rank": hit.rank,
            **({"metadata": hit.doc.metadata} if hit.doc.metadata else {}),
        }
        for hit in output.retrieved
    ]
    record: Record = {
        "sample_id": sample_id,
        "retrieved": hits,
        "response": _response_record(output.response),
    }
    if output.timings:
        record["timings"] = output.timings
    if output.extra:
        record["extra"] = output.extra
    record["error"] = None if output.error is None else asdict(output.error)
    return record


_PARTS: dict[str, type[msgspec.Struct]] = {
    "relevant_docs": RawDocument,
    "candidate_docs": RawDocument,
    "reference_answer": RawResponse,
    "retrieved": RawHit,
    "response": RawResponse,
    "error": RawFailure,
}


def _converted(record: Record, kind: type[Any], where: str) -> Any:
    _warn_of_unknown(record, kind, where)
    try:
        return msgspec.convert(record, kind)
    except msgspec.ValidationError as error:
        path, what, fix = wrong_record(error)
        raise DataError(f"{where}: {path}", what, fix=fix) from error


def _warn_of_unknown(record: Record, kind: type[msgspec.Struct], where: str) -> None:
    """One warning a record, about its first field that is not read, at the top or in a part of it."""
    known = kind.__struct_fields__
    for key, value in record.items():
        if key not in known:
            return _warn_of_field(key, known, where)
        part = _PARTS.get(key)
        if part is None:
            continue
        names = part.__struct_fields__
        for each in value if isinstance(value, list) else (value,):
            for name in each if isinstance(each, dict) else ():
                if name not in names:
                    return _warn_of_field(name, names, f"{where}: $.{key}")
    return None


def _warn_of_field(name: str, known: tuple[str, ...], where: str) -> None:
    near = difflib.get_close_matches(name[:80], known, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else "Put what you want kept under 'metadata'."
    warnings.warn(f"{where}: the field {name!r:.80} is not read. {hint}", UnknownFieldWarning, stacklevel=6)


def _check_alternatives(alternatives: Any, where: str) -> None:
    if alternatives and not (
        isinstance(alternatives, list) and all(isinstance(text, str) for text in alternatives)
    ):
        raise DataError(
            f"{where}: $.reference_answer.metadata.alternatives",
            f"expected a list of texts but got {alternatives!r:.60}.",
            fix="Change it, or leave it out.",
        )


def _refuse_empty(sample_id: str, where: str) -> None:
    if not sample_id.strip():
        raise DataError(where, "the id is empty.", fix="Give each sample an id of its own.")


def _documents(raw: list[RawDocument | str] | None, corpus: Mapping[str, Document]) -> list[Document] | None:
    """Documents, or None for none; a bare id that the corpus lacks is a document without a text."""
    if not raw:
        return None
    return [
        corpus.get(doc) or Document(doc, "", {"text_missing": True})
        if isinstance(doc, str)
        else Document(doc.doc_id, doc.text or "", doc.metadata or {})
        for doc in raw
    ]


def _response(raw: RawResponse | str) -> Response:
    if isinstance(raw, str):
        return Response(raw)
    return Response(raw.text or "", raw.structured, raw.metadata or {})


def _hits(raw: list[RawHit | str], where: str) -> list[RetrievedDocument]:
    hits, in_order = [], True
    for place, hit in enumerate(raw, start=1):
        if isinstance(hit, str):
            hits.append(RetrievedDocument(Document(hit, "", {"text_missing": True}), 1 / place, place))
            continue
        doc = Document(hit.doc_id, hit.text or "", hit.metadata or {})
        score = 1 / place if hit.score is None else hit.score
        rank = place if hit.rank is None else hit.rank
        in_order = in_order and rank == place
        hits.append(RetrievedDocument(doc, score, rank))
    if in_order:  # 1, 2, 3, ..., as nearly always
        return hits
    ranks = [hit.rank for hit in hits]
    if len(set(ranks)) < len(ranks):
        raise DataError(
            f"{where}: $.retrieved", f"two documents have the same rank: {ranks[:10]}.", fix="Use 1..n."
        )
    return sorted(hits, key=lambda hit: hit.rank)
