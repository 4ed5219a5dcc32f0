"""Answers and documents of other tools, read by their shape. No other package is imported.

A system may return text, a message, a pair, a dict or an object. Whatever was read under
another name than ours is listed in `extra["read_as"]`, and a run reports it once.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import islice
from numbers import Integral, Real
from operator import itemgetter
from typing import Any

from ..core.types import (
    ANSWER_MISSING,
    DOCUMENTS_MISSING,
    Document,
    Failure,
    Response,
    RetrievedDocument,
    SystemOutputs,
    as_document,
    as_response,
    is_time,
    split_timings,
    unscored,
)
from ..errors import ArgumentError, DataError, wrong_type
from .names import (
    ANSWER_PARTS,
    DOCUMENT_ID,
    DOCUMENT_LISTS,
    DOCUMENT_TEXT,
    INPUT_TOKENS,
    MESSAGE_PARTS,
    OUTPUT_TOKENS,
    PASSAGE_LISTS,
    QUERY_PARAMETERS,
)

READ_AS = "read_as"  # in `extra`: what was read under another name, such as "'result' as the answer"
_OWN_NAMES = ("answer", "response", "retrieved", "timings", "extra", "citations")
_ANSWER_FORMS = "a string, a Response, or a dict or an object with an answer"
_HIT_FORMS = (
    "an id, an (id, text) or (id, score) pair, a dict with 'doc_id' or 'text', a Document, or a document of "
    "LangChain, LlamaIndex or Haystack"
)
# A text may be nested: a reply has choices, a choice has a message, a message has parts, a part has a text.
_MAX_DEPTH = 5
# An id of this length with a space in it may be a title; longer, or with the end of a sentence, it is a text.
_LONGEST_TITLE, _SHORTEST_SENTENCE = 120, 40
_OWN_PARTS = {"doc_id", "text", "score", "rank", "metadata"}  # of a retrieved document
_MOST_YIELDED = 100_000  # documents of a generator, which may have no end


def to_output(raw: Any) -> SystemOutputs:
    """Return SystemOutputs from the forms that a system may return (see `as_system`)."""
    if isinstance(raw, SystemOutputs):
        if isinstance(raw.retrieved, Sequence):
            return raw
        return replace(raw, retrieved=as_hits(raw.retrieved))
    readings: list[str] = []
    output = _read(raw, readings)
    if readings:
        output.extra[READ_AS] = list(dict.fromkeys(readings))
    return output


def _all_yielded(documents: Iterable[Any]) -> list[Any]:
    """Return the documents of a generator; ArgumentError beyond a number that means it has no end."""
    items = list(islice(documents, _MOST_YIELDED + 1))
    if len(items) > _MOST_YIELDED:
        raise ArgumentError(
            f"retrieved has more than {_MOST_YIELDED:,} documents. Does its generator end? Stop at top_k."
        )
    return items


def made_output(
    hits: Sequence[RetrievedDocument] | None,
    answer: Response | None,
    timings: dict[str, float],
    extra: dict[str, Any],
    error: Failure | None = None,
    citations: object = None,
) -> SystemOutputs:
    """Return an output. Without documents or an answer it is marked: neither is an empty list or text."""
    if error is None and hits is None:
        extra[DOCUMENTS_MISSING] = True
    if error is None and answer is None:
        extra[ANSWER_MISSING] = True
    answer = Response("") if answer is None else answer
    if isinstance(citations, list):
        answer = Response(answer.text, answer.structured, {"citations": citations, **answer.metadata})
    return SystemOutputs([] if hits is None else hits, answer, timings, extra, error)


def as_failure(error: Any) -> Failure:
    """Return why a call failed, from a text, or from an object with a type, a message and more."""
    said = error if isinstance(error, Mapping) else {"message": str(error)}
    kind, seconds = said.get("type"), said.get("seconds")
    return Failure(
        "error" if kind is None else str(kind),
        str(said.get("message") or ""),
        seconds if isinstance(seconds, float) and is_time(seconds) else None,
        str(said.get("traceback") or ""),
    )


def as_timings(reported: Mapping[str, Any], where: str) -> tuple[dict[str, float], dict[str, dict[str, str]]]:
    """Return the timings that can be durations, and a note of the others; DataError for other values."""
    for step, seconds in reported.items():
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < math.inf:
            what = f"{seconds!r:.40} is not a time in seconds."
            raise DataError(f"{where}.{step}", what, fix="Leave it out.")
    return split_timings(reported)


def _read(raw: Any, readings: list[str]) -> SystemOutputs:
    if isinstance(raw, str | Response):
        return made_output(None, as_response(raw), {}, {})
    if isinstance(raw, tuple) and len(raw) == 2:
        documents, answer = raw
        if isinstance(documents, str | Response) and isinstance(answer, list | tuple):
            documents, answer = answer, documents
            readings.append("a pair as (answer, documents)")
        return SystemOutputs(as_hits(documents, readings), as_answer(answer))
    if isinstance(raw, list):
        readings.append("a list as the retrieved documents")
        return made_output(as_hits(raw, readings), None, {}, {})
    if callable(getattr(raw, "keys", None)) and hasattr(raw, "__getitem__"):  # a dict, a Prediction of DSPy
        return _from_fields(raw, {name: raw[name] for name in raw.keys()}, readings, is_dict=True)  # noqa: SIM118
    names = (*ANSWER_PARTS, *MESSAGE_PARTS, *DOCUMENT_LISTS)
    fields = {name: value for name in names if (value := getattr(raw, name, None)) is not None}
    return _from_fields(raw, fields, readings, is_dict=False)


def _from_fields(raw: Any, fields: Mapping[str, Any], readings: list[str], *, is_dict: bool) -> SystemOutputs:
    """Return an output from its named parts: the keys of a dict, or the known attributes of an object."""
    answer_name, answer = _answer_in(fields)
    documents_name = next((name for name in DOCUMENT_LISTS if fields.get(name) is not None), None)
    if answer is None:
        _check_is_retrieval_only(raw, fields, documents_name, is_dict=is_dict)
    for name, what in ((answer_name, "the answer"), (documents_name, "retrieved")):
        if name is not None and name not in _OWN_NAMES:
            readings.append(f"{name!r} as {what}" if is_dict else f"{type(raw).__name__}.{name} as {what}")
    extra: dict[str, Any] = {**_token_counts(raw), **dict(fields.get("extra") or {})}
    if is_dict:
        used = {*_OWN_NAMES, answer_name, documents_name}
        extra |= {str(name): value for name, value in fields.items() if name not in used}
    hits = None
    if documents_name is not None:
        hits = _hits_of_field(documents_name, fields[documents_name], readings)
    elif lists := [repr(name) for name, value in extra.items() if value and isinstance(value, list)]:
        # They may be the documents: without them, nothing about retrieval is measured.
        readings.append(f"no documents, and kept {', '.join(lists[:5])} in `extra`")
    timings = dict(fields.get("timings") or {})
    return made_output(hits, answer, timings, extra, citations=fields.get("citations"))


def _answer_in(fields: Mapping[str, Any]) -> tuple[str | None, Response | None]:
    """Return the name and the text of the answer, or None and None."""
    answer, response = fields.get("answer"), fields.get("response")
    if answer is not None and response is not None and as_answer(answer).text != as_answer(response).text:
        raise ArgumentError("'answer' and 'response' of a dict differ: return one of them")
    for name in ("response", *ANSWER_PARTS, *MESSAGE_PARTS):
        answer = _response_of(_last_message(name, fields.get(name)))
        if answer is not None:
            return name, answer
    return None, None


def _check_is_retrieval_only(
    raw: Any, fields: Mapping[str, Any], documents_name: str | None, *, is_dict: bool
) -> None:
    """Raise ArgumentError unless an output without an answer has documents, and no name that may be one."""
    if not is_dict:
        if documents_name is None:
            said = wrong_type("answer", _ANSWER_FORMS, raw)
            raise ArgumentError(f"{said}. The answer may be called {', '.join(ANSWER_PARTS)}")
        return
    known = {documents_name, "timings", "extra", "citations", *QUERY_PARAMETERS} - {*ANSWER_PARTS}
    unknown = [str(name) for name in fields if name not in known]
    if documents_name is None or unknown:
        # If unknown keys were ignored, a misnamed answer would be scored as an empty one.
        raise ArgumentError(
            f"a dict must have 'answer' and 'retrieved', not {unknown[:5]}. The answer may also be called "
            f"{', '.join(ANSWER_PARTS[1:])}, the documents {', '.join(DOCUMENT_LISTS[1:])}"
        )


def as_answer(value: Any) -> Response:
    """Return a Response from a string, a message or a reply of another tool."""
    answer = _response_of(value)
    return as_response(value) if answer is None else answer


def _response_of(value: Any) -> Response | None:
    if isinstance(value, Response | str) or (
        isinstance(value, Mapping) and isinstance(value.get("text"), str)
    ):
        return as_response(value)
    text = _text_in(value)
    return None if text is None else Response(text)


def _text_in(value: Any, depth: int = _MAX_DEPTH) -> str | None:
    """Return the text of a message, a reply or a list of parts; None if there is none."""
    if isinstance(value, str) or value is None or depth == 0:
        return value if isinstance(value, str) else None
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        texts = [text for part in value if (text := _text_in(part, depth - 1)) is not None]
        if value and all(str(_part(part, "type")).endswith("text") for part in value):
            return "".join(texts)  # the parts of one message
        return texts[0] if texts else None
    for name in (*ANSWER_PARTS, *MESSAGE_PARTS):
        part = _last_message(name, _part(value, name))
        if (text := _text_in(part, depth - 1)) is not None:
            return text
    return None


def _last_message(name: str, value: Any) -> Any:
    # The last message of a conversation is the answer; of several choices the first is.
    return value[-1:] if name == "messages" and isinstance(value, list) else value


def _token_counts(raw: Any) -> dict[str, int]:
    """Return the tokens that a reply of a model counts, under our names."""
    usage = _part(raw, "usage", "usage_metadata")
    counts = {names[0]: _part(usage, *names) for names in (INPUT_TOKENS, OUTPUT_TOKENS)}
    return {name: count for name, count in counts.items() if type(count) is int and count >= 0}


def _part(thing: Any, *names: str) -> Any:
    """Return the first of these keys or attributes that has a value; None if there is none."""
    for name in names:
        value = thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)
        if value is not None:
            return value
    return None


# Documents.


def ranked(
    found: Iterable[tuple[Document, float | None, int]], where: str, *, marked: bool
) -> list[RetrievedDocument]:
    """Return (document, score, rank) as hits, in the order of their ranks; DataError if two are the same.

    Ranks may start at any number: the score of a document without one falls along the list. If it is
    `marked`, it is not taken for a score of the system.
    """
    ordered = sorted(found, key=itemgetter(2))
    ranks = [rank for _, _, rank in ordered]
    if len(set(ranks)) < len(ranks):
        what = f"two documents have the same rank: {ranks[:10]}."
        raise DataError(where, what, fix="Number them 1, 2, 3, ...")
    hits = []
    for place, (doc, score, rank) in enumerate(ordered, start=1):
        if score is None:
            hit = unscored(doc, place).doc if marked else doc
            hits.append(RetrievedDocument(hit, 1 / place, rank))
        else:
            hits.append(RetrievedDocument(doc, score, rank))
    return hits


def text_id(text: str) -> str:
    """Return the id of a text that came without one; equal texts have equal ids.

    >>> text_id("The light is white.")
    'text-0621cbc8f2b5fcd1'
    """
    return f"text-{blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=8).hexdigest()}"


def as_hits(
    raw: Any, readings: list[str] | None = None, are_texts: Callable[[Sequence[str]], bool] | None = None
) -> list[RetrievedDocument]:
    """Return retrieved documents from a list of ids, texts, pairs, dicts or documents of other tools."""
    if isinstance(raw, str | bytes | dict) or not hasattr(raw, "__iter__"):
        raise wrong_type("retrieved", "a list of documents", raw)
    if isinstance(raw, set | frozenset):
        raise wrong_type("retrieved", "a list of documents, the best first, as a set has no order", raw)
    items = list(raw) if hasattr(raw, "__len__") else _all_yielded(raw)
    if items and all(isinstance(item, str) for item in items) and (are_texts or look_like_texts)(items):
        if readings is not None:
            readings.append("a list of strings as texts, with ids made from them")
        return [unscored(Document(text_id(text), text), rank) for rank, text in enumerate(items, start=1)]
    return [_as_hit(item, rank) for rank, item in enumerate(items, start=1)]


def _hits_of_field(name: str, value: Any, readings: list[str]) -> list[RetrievedDocument]:
    if isinstance(value, str):  # many chains join their documents into one text before the prompt is filled
        return [unscored(Document(text_id(value), value), 1)]
    return as_hits(value, readings, _has_words if name in PASSAGE_LISTS else None)


def _has_words(strings: Sequence[str]) -> bool:
    """Return whether a string is more than the one word of an id."""
    return any(map(_may_be_text, strings))


def _may_be_text(text: str) -> bool:
    """Return whether a string has several words, or is in a script that may be written without spaces."""
    return len(text.split(maxsplit=1)) > 1 or any(unicodedata.category(letter) == "Lo" for letter in text)


def look_like_texts(strings: Sequence[str]) -> bool:
    """Return whether strings are texts rather than ids.

    >>> look_like_texts(["billing.md#0"]), look_like_texts(["Invoices are sent on the first day of a month."])
    (False, True)
    """
    return all(map(_may_be_text, strings)) and any(map(_is_long_text, strings))


def _is_long_text(text: str) -> bool:
    is_sentence = len(text) > _SHORTEST_SENTENCE and text.rstrip().endswith((".", "!", "?"))
    return (
        is_sentence
        or text.rstrip().endswith(("。", "！", "？"))
        or "\n" in text.strip()
        or len(text) > _LONGEST_TITLE
    )


def _as_hit(raw: Any, rank: int) -> RetrievedDocument:
    if isinstance(raw, RetrievedDocument):
        return raw
    if isinstance(raw, list):
        raw = tuple(raw)  # as JSON writes a pair
    if isinstance(raw, tuple) and len(raw) == 2 and isinstance(raw[1], str):
        # Without a score of the system, 1/rank keeps the order of the list.
        return RetrievedDocument(Document(str(raw[0]), raw[1]), 1 / rank, rank)
    if isinstance(raw, tuple) and len(raw) == 2 and isinstance(raw[1], Real):
        has_text = _part(raw[0], *DOCUMENT_TEXT) is not None
        doc = document_of(raw[0]) if has_text else Document(str(raw[0]), "")
        return RetrievedDocument(doc, float(raw[1]), rank)
    if isinstance(raw, dict) and "doc_id" in raw:
        score = raw.get("score")
        own_rank = rank if raw.get("rank") is None else raw["rank"]
        if not isinstance(own_rank, int | float) or int(own_rank) != own_rank:
            raise wrong_type("rank", "a whole number", own_rank)
        # Some tools count ranks from 0.
        score = 1 / max(own_rank, 1) if score is None else float(score)
        doc = as_document(raw) if raw.keys() <= _OWN_PARTS else document_of(raw)  # the first is quicker
        return RetrievedDocument(doc, score, int(own_rank))
    if isinstance(raw, Integral) and not isinstance(raw, bool):
        raw = str(raw)  # the number of a row in an index
    if isinstance(raw, Document | str):
        return RetrievedDocument(as_document(raw), 1 / rank, rank)
    doc, score = document_of(raw), _part(raw, "score")
    return RetrievedDocument(doc, float(score), rank) if isinstance(score, Real) else unscored(doc, rank)


def document_of(raw: Any) -> Document:
    """Return a document of another tool, with its metadata and its place in the source."""
    if isinstance(raw, Document):
        return raw
    inner = _part(raw, "node", "document", "kwargs")  # some put the score around the document
    node = raw if inner is None or isinstance(inner, str) else inner
    text = _part(node, *DOCUMENT_TEXT)
    metadata = _part(node, "metadata", "meta")
    metadata = {str(name): value for name, value in metadata.items()} if isinstance(metadata, Mapping) else {}
    # Ids of indexes are often new at each indexing: one that the user has put into the metadata is not.
    names = [node.get("doc_id") if isinstance(node, Mapping) else None, metadata.get("doc_id")]
    doc_id = next(filter(None, names), None) or _part(node, *DOCUMENT_ID)
    has_text = isinstance(text, str) and not isinstance(doc_id, list | dict)
    if not has_text and not isinstance(doc_id, str | int):
        raise wrong_type("a retrieved document", _HIT_FORMS, raw)
    text = text if isinstance(text, str) else ""
    places = {
        "source": _part(node, "ref_doc_id") or metadata.get("source_id"),
        "start": _part(node, "start_char_idx"),
        "end": _part(node, "end_char_idx"),
    }
    metadata = {name: value for name, value in places.items() if value is not None} | metadata
    if isinstance(node, dict):  # a chunk as its own index writes it: what else it says of itself
        known = {*DOCUMENT_TEXT, *DOCUMENT_ID, "metadata", "meta", "score", "rank"}
        metadata = {str(name): value for name, value in node.items() if name not in known} | metadata
    return Document(text_id(text) if doc_id is None else str(doc_id), text, metadata)
