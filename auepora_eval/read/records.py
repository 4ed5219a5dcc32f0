"""Samples, documents and outputs from plain records and back: the one place with their field names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar, cast

import msgspec
from msgspec import UNSET, UnsetType

from ..core.types import (
    LONGEST_TIME,
    Document,
    EvaluationSample,
    RankedIds,
    Response,
    RetrievedDocument,
    SystemOutputs,
    known_scores,
)
from ..errors import DataError, did_you_mean
from .fields import FieldReader, Reading, UnreadFields
from .outputs import as_failure, as_timings, document_of, made_output, ranked
from .text import is_deep, may_be_deep

Record = dict[str, Any]


_Kind = TypeVar("_Kind", bound=msgspec.Struct)
_Value = TypeVar("_Value")


class _Strict(msgspec.Struct, forbid_unknown_fields=True):
    """A record without other fields. Unknown fields are taken out, with a warning, before it is converted.

    The fields of predictions are in the order of the alphabet: what a struct is written as is canonical JSON.
    """


# A field that is not there is UNSET, one that is null is None: both mean the same.


class RawDocument(_Strict):
    doc_id: str
    text: str | UnsetType | None = UNSET
    metadata: Record | UnsetType | None = UNSET


class RawResponse(_Strict, kw_only=True):
    metadata: Record | UnsetType | None = UNSET
    structured: Record | UnsetType | None = UNSET
    text: str


class RawSample(_Strict):
    sample_id: str
    query: str
    relevant_docs: list[RawDocument | str] | UnsetType | None = UNSET
    candidate_docs: list[RawDocument | str] | UnsetType | None = UNSET
    reference_answer: RawResponse | str | UnsetType | None = UNSET
    labels: Record | UnsetType | None = UNSET
    metadata: Record | UnsetType | None = UNSET


class RawHit(_Strict):
    doc_id: str
    metadata: Record | UnsetType | None = UNSET
    rank: int | UnsetType | None = UNSET
    score: float | UnsetType | None = UNSET
    text: str | UnsetType | None = UNSET


class RawRanking(_Strict):
    """Retrieved documents that are only ids with scores, in the order of their ranks, as two columns."""

    doc_id: list[str]
    score: list[float | None]


class RawFailure(_Strict, kw_only=True):
    message: str | UnsetType = UNSET
    seconds: float | UnsetType | None = UNSET
    traceback: str | UnsetType = UNSET
    type: str


class RawPrediction(_Strict, kw_only=True):
    answer: str | UnsetType | None = UNSET
    citations: list[Any] | UnsetType | None = UNSET
    error: RawFailure | str | UnsetType | None = UNSET
    extra: Record | UnsetType | None = UNSET
    response: RawResponse | str | UnsetType | None = UNSET
    retrieved: list[RawHit | str] | RawRanking | UnsetType | None = UNSET
    sample_id: str
    timings: dict[str, float] | UnsetType | None = UNSET


# Tuples, not unions: a union is made again whenever it is used.
_LISTED = (list, RawRanking)
_ANSWERED = (str, RawResponse)
_FAILED = (str, RawFailure)
_DECODERS: dict[type[msgspec.Struct], msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(kind) for kind in (RawSample, RawPrediction)
}


def decoded(line: bytes, kind: type[_Kind]) -> _Kind | None:
    """Return a line as a struct; None if it is not such a record: `parse_line` says what is wrong."""
    try:
        struct: _Kind = _DECODERS[kind].decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return None if may_be_deep(line) and is_deep(msgspec.to_builtins(struct)) else struct


def read_sample(
    record: Record | RawSample,
    where: str,
    corpus: Mapping[str, Document] | None = None,
    unread: UnreadFields | None = None,
) -> EvaluationSample:
    """Return the sample of a record; null and missing are the same, so are a text and {"text": it}.

    A document that is only named by its id is looked up in the corpus. Fields that are not read are added to
    `unread`, or have a warning.
    """
    raw = _strict(record, RawSample)
    documents = corpus or {}
    if raw is None:
        sample, _ = _reading(cast("Record", record), RawSample, where, unread)
        for docs in filter(None, (sample.relevant_docs, sample.candidate_docs)):
            docs[:] = [doc if doc.text else documents.get(doc.doc_id, doc) for doc in docs]
    else:
        reference = raw.reference_answer
        sample = EvaluationSample(
            raw.sample_id,
            raw.query,
            _documents(raw.relevant_docs or None, documents),
            _documents(raw.candidate_docs or None, documents),
            _response(reference) if isinstance(reference, _ANSWERED) else None,
            raw.labels or {},
            raw.metadata or {},
        )
    _check_not_empty(sample.sample_id, where)
    if sample.reference_answer is not None:
        _check_alternatives(sample.reference_answer.metadata.get("alternatives"), where)
    return sample


def sample_record(sample: EvaluationSample, corpus: Mapping[str, Document] | None = None) -> Record:
    """A sample as a record, without the fields that it does not have; documents of the corpus by id."""
    documents = corpus or {}
    record: Record = {"sample_id": sample.sample_id, "query": sample.query}
    if sample.relevant_docs:
        record["relevant_docs"] = [_named_or_whole(doc, documents) for doc in sample.relevant_docs]
    if sample.candidate_docs:
        record["candidate_docs"] = [_named_or_whole(doc, documents) for doc in sample.candidate_docs]
    if sample.reference_answer is not None:
        record["reference_answer"] = _response_record(sample.reference_answer)
    if sample.labels:
        record["labels"] = sample.labels
    if sample.metadata:
        record["metadata"] = sample.metadata
    return record


def read_document_record(record: Any, where: str) -> Document:
    """Return the document of a record; what it has besides an id and a text is metadata."""
    if not isinstance(record, dict) or not isinstance(record.get("doc_id"), str | int):
        raise DataError(where, "a document needs an id.", fix='Write {"doc_id": ..., "text": ...}.')
    return document_of(record)


def _named_or_whole(doc: Document, corpus: Mapping[str, Document]) -> Record | str:
    in_corpus = corpus.get(doc.doc_id)
    is_same = in_corpus is doc or in_corpus == doc  # the first is quicker, and usual
    return doc.doc_id if is_same else document_record(doc)


def document_record(doc: Document) -> Record:
    """A document as a record."""
    return {"doc_id": doc.doc_id, "text": doc.text, "metadata": doc.metadata}


def _response_record(response: Response) -> Record:
    return {"text": response.text, "structured": response.structured, "metadata": response.metadata}


def read_prediction(
    record: Record | RawPrediction, where: str, unread: UnreadFields | None = None
) -> tuple[str, SystemOutputs]:
    """Return (sample_id, output) of a prediction; "answer": "..." and a list of ids are short forms."""
    raw = _strict(record, RawPrediction)
    if raw is None:
        sample, output = _reading(cast("Record", record), RawPrediction, where, unread)
        if output is None:
            raise _without_output(where)
        _check_not_empty(sample.sample_id, where)
        return sample.sample_id, output
    _check_not_empty(raw.sample_id, where)
    answer = _answer(raw, where)
    names_documents, failed = isinstance(raw.retrieved, _LISTED), isinstance(raw.error, _FAILED)
    if answer is None and not names_documents and not failed:
        raise _without_output(where)
    timings, extra = raw.timings or {}, raw.extra or {}
    # The sum: one that is not a number makes it none.
    if timings and not (min(timings.values()) >= 0 and sum(timings.values()) <= LONGEST_TIME):
        timings, implausible = as_timings(timings, f"{where}: $.timings")
        extra |= implausible
    error = msgspec.structs.asdict(raw.error) if isinstance(raw.error, RawFailure) else raw.error
    output = made_output(
        _hits(raw.retrieved, where) if isinstance(raw.retrieved, _LISTED) else None,
        None if answer is None else _response(answer),
        timings,
        extra,
        as_failure(error) if failed else None,
        raw.citations,
    )
    return raw.sample_id, output


def _without_output(where: str) -> DataError:
    what = "there is neither 'answer' (or 'response') nor 'retrieved'."
    return DataError(where, what, fix="Add what the system gave.")


def _answer(raw: RawPrediction, where: str) -> RawResponse | str | None:
    """Return the answer of a prediction; DataError if it has two that differ."""
    answer = raw.answer if isinstance(raw.answer, str) else None
    if not isinstance(raw.response, _ANSWERED):
        return answer
    if answer is not None and _response(raw.response).text != answer:
        what = "'answer' and 'response' differ, and only one of them would be scored."
        raise DataError(f"{where}: $.answer", what, fix="Keep one of them.")
    return raw.response


class _Hit(msgspec.Struct):
    """A retrieved document as it is written; its fields are sorted, as canonical JSON has them."""

    doc_id: str
    metadata: Record | UnsetType
    rank: int
    score: float | None
    text: str


def prediction_record(sample_id: str, output: SystemOutputs) -> Record:
    """An output as a line of predictions.jsonl."""
    record: Record = {
        "sample_id": sample_id,
        "retrieved": _hit_records(output.retrieved),
        "response": _response_record(output.response),
    }
    if output.timings:
        record["timings"] = output.timings
    if output.extra:
        record["extra"] = output.extra
    record["error"] = None if output.error is None else asdict(output.error)
    if output.error is not None and not output.error.traceback:
        del record["error"]["traceback"]
    return record


def _hit_records(hits: Sequence[RetrievedDocument]) -> Record | list[_Hit]:
    if isinstance(hits, RankedIds):
        return {"doc_id": hits.doc_ids, "score": hits.scores}
    return [
        _Hit(hit.doc.doc_id, hit.doc.metadata or UNSET, hit.rank, score, hit.doc.text)
        for hit, score in zip(hits, known_scores(hits), strict=True)
    ]


def _strict(record: Record | _Kind, kind: type[_Kind]) -> _Kind | None:
    """Return a record in the one form that we write; None if it has another, which takes longer to read."""
    if isinstance(record, kind):
        return record
    try:
        return msgspec.convert(record, kind)
    except msgspec.ValidationError:
        return None


def _reading(record: Record, kind: type[msgspec.Struct], where: str, unread: UnreadFields | None) -> Reading:
    """Return what a record of ours says in another form, such as with ids that are numbers."""
    if record and record.keys().isdisjoint(kind.__struct_fields__):
        raise _not_a_record(record, kind.__struct_fields__, where)
    found = UnreadFields() if unread is None else unread
    reader = FieldReader(record, where, for_outputs=kind is RawPrediction, unread=found)
    for field in ("sample_id",) if kind is RawPrediction else ("sample_id", "query"):
        if record.get(reader.fields.get(field, field)) is None:
            raise DataError(where, f"the field {field!r} is missing.", fix="Add it.")
    try:
        return reader.read(record, where)
    finally:
        if unread is None:
            found.report(where)


def _not_a_record(record: Record, fields: Sequence[str], where: str) -> DataError:
    """Return the error for an object without any field of a record: its records may be a list in it."""
    keys = ", ".join(repr(str(key)[:40]) for key in list(record)[:5])
    what = f"the object has the keys {keys} and no field of a record ({', '.join(fields)})."
    for key, value in record.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            fix = f"{str(key)[:40]!r} is a list of {len(value)} records: write this list alone to a file."
            return DataError(where, what, fix=fix)
    return DataError(where, what, fix="Write a record on each line.")


def _check_alternatives(alternatives: Any, where: str) -> None:
    if alternatives and not (
        isinstance(alternatives, list) and all(isinstance(text, str) for text in alternatives)
    ):
        raise DataError(
            f"{where}: $.reference_answer.metadata.alternatives",
            f"expected a list of texts but got {alternatives!r:.60}.",
            fix="Change it, or leave it out.",
        )


def _check_not_empty(sample_id: str, where: str) -> None:
    if not sample_id.strip():
        raise DataError(f"{where}: $.sample_id", "the id is empty.", fix="Give each sample an id of its own.")


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
    structured = raw.structured if isinstance(raw.structured, dict) else None
    return Response(raw.text, structured, raw.metadata or {})


def _hits(raw: list[RawHit | str] | RawRanking, where: str) -> Sequence[RetrievedDocument]:
    if isinstance(raw, RawRanking):
        return _ranking(raw, where)
    ids_only = _ids_only(raw)
    if ids_only is not None:
        return ids_only
    named = [RawHit(hit, {"text_missing": True}) if isinstance(hit, str) else hit for hit in raw]
    found = (
        (
            Document(hit.doc_id, hit.text or "", hit.metadata or {}),
            hit.score if isinstance(hit.score, float) else None,
            hit.rank if isinstance(hit.rank, int) else place,
        )
        for place, hit in enumerate(named, start=1)
    )
    # Where others have scores, that of a document without one may contradict them.
    has_scores = any(isinstance(hit.score, float) for hit in named)
    return ranked(found, f"{where}: $.retrieved", marked=has_scores)


def _ids_only(raw: list[RawHit | str]) -> RankedIds | None:
    """Return hits that are only ids with scores in the order of their ranks; None if one is not."""
    for place, hit in enumerate(raw, start=1):
        # Calls are stored with texts even if they are empty, and must be hashed as they are stored.
        if type(hit) is not RawHit or hit.text is not UNSET or hit.metadata or type(hit.score) is not float:
            return None
        if hit.rank != place and hit.rank not in (UNSET, None):
            return None
    hits = cast("list[Any]", raw)
    return RankedIds([hit.doc_id for hit in hits], [hit.score for hit in hits]) if hits else None


def _ranking(raw: RawRanking, where: str) -> Sequence[RetrievedDocument]:
    ids, scores = raw.doc_id, raw.score
    if len(ids) != len(scores):
        what = f"there are {len(ids)} ids and {len(scores)} scores."
        raise DataError(f"{where}: $.retrieved", what, fix="Write one score per id.")
    known = [score for score in scores if score is not None]
    if len(known) == len(ids):
        return RankedIds(ids, known)
    hits = zip(ids, scores, strict=True)
    return _hits([RawHit(doc_id, score=score) for doc_id, score in hits], where)


# The errors of msgspec: its message, the JSON path, and what to do.

_UNKNOWN = r"Object contains unknown field `(?P<name>[^`]*)`"


def converted(
    document: Any, kind: type[_Kind], where: str, *, hint: str = "Correct it.", fields: Sequence[str] = ()
) -> _Kind:
    """Return a configuration as a typed struct; DataError names the place, what is wrong and what to do.

    `hint` is what to do about a value that is not one of the few that are allowed. `fields` are suggested for
    an unknown one, beside those of the struct.
    """
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        path, what, fix = wrong_record(error, (*kind.__struct_fields__, *fields), hint)
        place = path.removeprefix("$").removeprefix(".")
        raise DataError(f"{where}: {place}" if place else where, what, fix=fix) from error


def as_struct(
    value: Any, kind: type[_Value], where: str, *, fix: str = "", fields: Sequence[str] = ()
) -> _Value:
    """Return data as a struct; DataError names the place, with the JSON path, what is wrong and what to do.

    `fields` are suggested for an unknown one.
    """
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        path, what, hint = wrong_record(error, fields)
        place = f"{where}{path.removeprefix('$')}" if ": $" in where else f"{where}: {path}"
        raise DataError(place, what, fix=fix or hint) from error


def wrong_record(
    error: msgspec.ValidationError, fields: Sequence[str] = (), hint: str = "Correct it."
) -> tuple[str, str, str]:
    """Return (JSON path, what is wrong, what to do) for a record that could not be converted.

    `fields` are suggested for an unknown one.

    >>> try:
    ...     msgspec.convert({"a": 5}, dict[str, str | None])
    ... except msgspec.ValidationError as error:
    ...     wrong_record(error)
    ('$[...]', "Expected 'str | null', got 'int'.", 'Correct it.')
    """
    message, _, path = str(error).partition(" - at `")
    unknown = re.fullmatch(_UNKNOWN, message)
    if unknown and fields:
        hint = did_you_mean(unknown["name"], fields, f"The fields are {', '.join(fields)}.")
    elif not message.startswith("Invalid enum value"):
        hint = "Correct it."
    message = " ".join(message.replace("`", "'").split())
    return path.rstrip("`") or "$", f"{message:.200}.", hint
