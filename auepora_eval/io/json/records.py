"""Samples, documents and outputs from plain records and back: the one place with their field names."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any, TypeVar

import msgspec

from ...core.dataset import UnknownFieldWarning
from ...core.types import (
    DOCUMENTS_MISSING,
    Document,
    EvaluationSample,
    Failure,
    Response,
    RetrievedDocument,
    SystemOutputs,
    is_time,
    known_score,
    split_timings,
)
from ...errors import DataError, did_you_mean

Record = dict[str, Any]


_Kind = TypeVar("_Kind", bound=msgspec.Struct)


class _Strict(msgspec.Struct, forbid_unknown_fields=True):
    """A record without other fields. Unknown fields are taken out, with a warning, before it is converted."""


class RawDocument(_Strict):
    doc_id: str
    text: str | None = None
    metadata: Record | None = None


class RawResponse(_Strict):
    text: str | None = None
    structured: Record | None = None
    metadata: Record | None = None


class RawSample(_Strict):
    sample_id: str
    query: str
    relevant_docs: list[RawDocument | str] | None = None
    candidate_docs: list[RawDocument | str] | None = None
    reference_answer: RawResponse | str | None = None
    labels: Record | None = None
    metadata: Record | None = None


class RawHit(_Strict):
    doc_id: str
    text: str | None = None
    score: float | None = None
    rank: int | None = None
    metadata: Record | None = None


class RawFailure(_Strict):
    type: str
    message: str = ""
    seconds: float | None = None


class RawPrediction(_Strict):
    sample_id: str
    retrieved: list[RawHit | str] | None = None
    response: RawResponse | str | None = None
    answer: str | None = None
    timings: dict[str, float] | None = None
    extra: Record | None = None
    error: RawFailure | str | None = None


def read_sample(record: Record, where: str, corpus: Mapping[str, Document] | None = None) -> EvaluationSample:
    """Return the sample of a record; null and missing are the same, so are a text and {"text": it}.

    A document that is only named by its id is looked up in the corpus.
    """
    raw = _converted(record, RawSample, where)
    _check_not_empty(raw.sample_id, f"{where}: $.sample_id")
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
    """Return the document of a record; unknown fields are ignored."""
    if isinstance(record, dict):
        record = {name: record[name] for name in RawDocument.__struct_fields__ if name in record}
    try:
        raw = msgspec.convert(record, RawDocument)
    except msgspec.ValidationError as error:
        path, what, fix = wrong_record(error)
        raise DataError(f"{where}{path.removeprefix('$')}", what, fix=fix) from error
    return Document(raw.doc_id, raw.text or "", raw.metadata or {})


def _named_or_whole(doc: Document, corpus: Mapping[str, Document]) -> Record | str:
    in_corpus = corpus.get(doc.doc_id)
    is_same = in_corpus is doc or in_corpus == doc  # the first is quicker, and usual
    return doc.doc_id if is_same else document_record(doc)


def document_record(doc: Document) -> Record:
    """A document as a record."""
    return {"doc_id": doc.doc_id, "text": doc.text, "metadata": doc.metadata}


def _response_record(response: Response) -> Record:
    return {"text": response.text, "structured": response.structured, "metadata": response.metadata}


def read_prediction(record: Record, where: str) -> tuple[str, SystemOutputs]:
    """Return (sample_id, output) of a prediction; "answer": "..." and a list of ids are short forms."""
    raw = _converted(record, RawPrediction, where)
    _check_not_empty(raw.sample_id, f"{where}: $.sample_id")
    _check_one_answer(raw, where)
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
    times, implausible = split_timings(raw.timings or {})
    output = SystemOutputs(
        retrieved=_hits(raw.retrieved or [], where),
        response=_response(answer or ""),
        timings=times,
        extra={**(raw.extra or {}), **missing, **implausible},
        error=None if error is None else Failure(error.type, error.message, _time(error.seconds)),
    )
    return raw.sample_id, output


def _check_one_answer(raw: RawPrediction, where: str) -> None:
    if raw.answer is not None and raw.response is not None and _response(raw.response).text != raw.answer:
        what = "'answer' and 'response' differ, and only one of them would be scored."
        raise DataError(f"{where}: $.answer", what, fix="Keep one of them.")


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


# Fields that hold records of their own, one or a list.
_PARTS: dict[str, type[msgspec.Struct]] = {
    "relevant_docs": RawDocument,
    "candidate_docs": RawDocument,
    "reference_answer": RawResponse,
    "retrieved": RawHit,
    "response": RawResponse,
    "error": RawFailure,
}


def _converted(record: Record, kind: type[_Kind], where: str) -> _Kind:
    with suppress(msgspec.ValidationError):  # a record with an unknown field has a warning, and is read
        return msgspec.convert(record, kind)
    try:
        return msgspec.convert(_without_unknown_fields(record, kind, where), kind)
    except msgspec.ValidationError as error:
        path, what, fix = wrong_record(error)
        raise DataError(f"{where}: {path}", what, fix=fix) from error


def _without_unknown_fields(record: Record, kind: type[msgspec.Struct], where: str) -> Record:
    """Return the fields that are read, at the top and in parts; a record has one warning, for the first."""
    unknown: list[tuple[str, str, tuple[str, ...]]] = []

    def kept(part: Any, part_kind: type[msgspec.Struct], place: str) -> Any:
        if not isinstance(part, dict):
            return part
        fields = part_kind.__struct_fields__
        unknown.extend((place, name, fields) for name in part if name not in fields)
        return {name: value for name, value in part.items() if name in fields}

    kept_fields: Record = {}
    for name, value in kept(record, kind, where).items():
        part = _PARTS.get(name)
        place = f"{where}: $.{name}"
        if part is not None and isinstance(value, list):
            value = [kept(each, part, place) for each in value]
        elif part is not None:
            value = kept(value, part, place)
        kept_fields[name] = value
    if unknown:
        place, name, fields = unknown[0]
        hint = did_you_mean(name, fields, "Put what you want kept under 'metadata'.")
        warnings.warn(
            f"{place}: the field {name!r:.80} is not read. {hint}", UnknownFieldWarning, stacklevel=5
        )
    return kept_fields


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


# The errors of msgspec in the words of our schemas.

_A = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "an array",
    "null": "null",
}
# A value is named more loosely than the type that was expected.
_GOT = {**_A, "int": "a number", "bool": "a boolean"}
# The messages of msgspec.
_EXPECTED = re.compile(r"Expected `(?P<types>[^`]+)`, got `(?P<got>[^`]+)`")
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]+)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>[^`]*)`")


def wrong_record(error: msgspec.ValidationError, fields: Sequence[str] = ()) -> tuple[str, str, str]:
    """Return (JSON path, what is wrong, what to do) for a record that could not be converted.

    `fields` are suggested for an unknown one.

    >>> try:
    ...     msgspec.convert({"a": 5}, dict[str, str | None])
    ... except msgspec.ValidationError as error:
    ...     wrong_record(error)
    ('$[...]', 'a string or null was expected, not a number.', 'Put it in quotes.')
    """
    message, _, path = str(error).partition(" - at `")
    place = path.rstrip("`") or "$"
    if missing := _MISSING.fullmatch(message):
        return place, f"the field {missing['name']!r} is missing.", "Add it."
    if unknown := _UNKNOWN.fullmatch(message):
        fix = did_you_mean(unknown["name"], fields, f"The fields are {', '.join(fields)}.")
        return place, f"there is no field {unknown['name']!r:.60}.", fix
    wrong = _EXPECTED.fullmatch(message)
    if wrong is None:
        return place, f"{message[:1].lower()}{message[1:]}.".replace("`", "'"), "Change it."
    types, got = sorted(wrong["types"].split(" | "), key=lambda name: name == "null"), wrong["got"]
    names = [_A.get(name, name) for name in types]
    expected = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    is_fraction = got == "float" and "int" in types and "float" not in types
    what = f"{expected} was expected, not {'a fraction' if is_fraction else _GOT.get(got, got)}."
    if "str" in types and got in ("int", "float"):
        return place, what, "Put it in quotes."
    return place, what, "Change it, or write null." if "null" in types else "Change it."
