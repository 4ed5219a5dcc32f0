"""What a generator wrote, a task a line, to the lines of the splits.

Two shapes are read: the nested one, with `rag: {prompt, contexts, sources, citations, retrieved}`, and the
flat one, with these at the top. A task that cannot become a record is a `TaskError` that says why.

Most of a line is passed on as the bytes that it is; it is looked into only as far as is needed to know
that it is JSON, UTF-8, not nested too deeply and of the right types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, cast

import msgspec
from msgspec import Raw

from ..errors import AueporaError, DataError
from .json_text import MAX_DEPTH
from .jsonl import parse_line
from .raw_tidy import tidied
from .split_records import SUMMARIES, QaRecord, SplitRecord, SummaryRecord, cited_numbers
from .type_words import wrong_record

UNKNOWN_TYPE = "unknown"
_ABSENT = Raw(b"")
_QUOTE, _BRACE = ord('"'), ord("{")


class TaskError(AueporaError, ValueError):
    """A task that cannot become a record: the reason, by which such tasks are counted, and the words."""

    def __init__(self, reason: str, what: str) -> None:
        self.reason, self.what = reason, what
        super().__init__(what)


class _Rag(msgspec.Struct, gc=False):
    prompt: Raw = _ABSENT
    contexts: list[Raw] | None = None
    sources: list[str] | None = None
    retrieved: list[Raw] | None = None
    citations: list[Raw] | None = None


class RawTask(msgspec.Struct, gc=False):
    """A line of `offline_dataset.jsonl`, read no further than is needed."""

    task_id: str | None = None
    task_type: str | None = None
    instruction: str | None = None
    question: str | None = None
    prompt: str | None = None
    expected_response: str | None = None
    answer: str | None = None
    response: str | None = None
    reference_answer: str | None = None
    reference_summary: str | None = None
    rag: _Rag | None = None
    rag_prompt: Raw = _ABSENT
    contexts: list[Raw] | None = None
    sources: list[str] | None = None
    retrieved: list[Raw] | None = None
    citations: list[Raw] | None = None
    answer_citations: list[Raw] | None = None
    metadata: dict[str, Any] | None = None

    @property
    def kind(self) -> str:
        """The task's type; none is `unknown`."""
        return (self.task_type or "").strip() or UNKNOWN_TYPE


_decode = msgspec.json.Decoder(RawTask).decode
_encode = msgspec.json.Encoder().encode
_any = msgspec.json.Decoder().decode


def read_task(line: bytes, where: str, *, careful: bool = False) -> RawTask:
    """The task on a line; TaskError if the line is none, or one that could do harm.

    A careful reader looks at every number too: the other passes on what no float can hold, such as 1e999.
    """
    try:
        if careful or _is_suspect(line):
            parse_line(line, where)
        task = _decode(line)
        if _has_odd_parts(task):
            return _tidied_task(line, where)
        return task
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _tidied_task(line, where)
    except DataError as error:
        raise _not_json(error, where) from error


def _is_suspect(line: bytes) -> bool:
    """Whether a line may be nested too deeply; UnicodeDecodeError if it is not UTF-8."""
    if not line.isascii():
        line.decode("utf-8")
    # replace() finds a byte several times faster than count() does.
    return 2 * len(line) - len(line.replace(b"[", b"")) - len(line.replace(b"{", b"")) > MAX_DEPTH


def _has_odd_parts(task: RawTask) -> bool:
    """Whether something else stands where objects or prompts belong, such as null."""
    rag = task.rag
    if rag is not None and _are_odd(rag.retrieved, rag.citations, rag.prompt):
        return True
    if _are_odd(task.retrieved, task.citations, task.rag_prompt):
        return True
    return task.answer_citations is not None and _are_odd(task.answer_citations, None, _ABSENT)


def _are_odd(retrieved: list[Raw] | None, citations: list[Raw] | None, prompt: Raw) -> bool:
    if retrieved is not None:
        for entry in retrieved:
            if memoryview(entry)[0] != _BRACE:
                return True
    if citations is not None:
        for entry in citations:
            if memoryview(entry)[0] != _BRACE:
                return True
    return prompt != _ABSENT and memoryview(prompt)[0] != _QUOTE


_NO_RAG = _Rag()


def _tidied_task(line: bytes, where: str) -> RawTask:
    """The slow way: read the line whole, put right what can be, and say what cannot."""
    try:
        record = tidied(parse_line(line, where))
    except DataError as error:
        raise _not_json(error, where) from error
    try:
        task = _decode(_encode(record))
    except msgspec.ValidationError as error:
        path, what, fix = wrong_record(error)
        raise TaskError("invalid_field", f"{path}: {what} {fix}") from error
    if _has_odd_parts(task):
        raise TaskError(
            "invalid_field", "prompts must be texts, citations and retrieved chunks objects. Change them."
        )
    return task


def _not_json(error: DataError, where: str) -> TaskError:
    path = error.where.removeprefix(where).removeprefix(": ")
    words = (f"{path}:" if path else "", error.what, error.fix)
    return TaskError("invalid_json", " ".join(word for word in words if word))


def split_record(task: RawTask) -> SplitRecord:
    """The record of a split that a task becomes; TaskError if it lacks something."""
    rag = task.rag or _NO_RAG
    task_id, kind = task.task_id, task.kind
    if not task_id or task_id.isspace():
        raise TaskError("missing_task_id", "$.task_id: there is none. Give each task an id of its own.")
    asked, expected = _summary_texts(task) if kind == SUMMARIES else _qa_texts(task)
    retrieved = (task.retrieved if rag.retrieved is None else rag.retrieved) or []
    citations = (task.citations if rag.citations is None else rag.citations) or []
    contexts = task.contexts if rag.contexts is None else rag.contexts
    numbered = _from_retrieved(retrieved) if contexts is None else _numbered(contexts)
    sources = task.sources if rag.sources is None else rag.sources
    if sources is None:
        sources = _sources_of(retrieved, len(numbered))
    if len(sources) != len(numbered):
        raise TaskError(
            "contexts_sources_mismatch",
            f"there are {len(numbered)} contexts but {len(sources)} sources. Give each context its source.",
        )
    prompt = rag.prompt if rag.prompt != _ABSENT else task.rag_prompt
    # The encoder writes raw bytes as they are, whatever the field's type.
    shared = cast("_Shared", (prompt if prompt != _ABSENT else "", numbered, sources, retrieved, citations))
    metadata = task.metadata or {}
    if kind == SUMMARIES:
        return SummaryRecord(task_id, kind, asked, expected, *shared, metadata)
    cited = _answer_citations(task, expected, citations or retrieved, sources)
    return QaRecord(task_id, kind, asked, expected, *shared, cast("_Objects", cited), metadata)


_Objects = list[dict[str, Any]]
_Shared = tuple[str, list[str], list[str], _Objects, _Objects]


def record_line(record: SplitRecord) -> bytes:
    """A record as a line of its split, without the line's end."""
    return _encode(record)


def _qa_texts(task: RawTask) -> tuple[str, str]:
    asked = _first(task.instruction, task.question)
    expected = _first(task.expected_response, task.answer, task.reference_answer, task.response)
    return (
        asked or _refuse_missing("question", "'instruction' or 'question'"),
        expected or _refuse_missing("reference", "'expected_response' or 'answer'"),
    )


def _summary_texts(task: RawTask) -> tuple[str, str]:
    asked = _first(task.instruction, task.prompt, task.question)
    expected = _first(task.expected_response, task.response, task.answer, task.reference_summary)
    return (
        asked or _refuse_missing("question", "'instruction'"),
        expected or _refuse_missing("reference", "'expected_response' or 'response'"),
    )


def _first(*texts: str | None) -> str | None:
    """The first text that says something."""
    for text in texts:
        if text and not text.isspace():
            return text
    return None


def _numbered(contexts: Sequence[Raw]) -> Sequence[Raw | str]:
    """The contexts, each beginning with its number."""
    if _is_numbered(contexts):
        return contexts
    texts = [_any(context) for context in contexts if context != _NULL]
    if not all(isinstance(text, str) for text in texts):
        raise TaskError("invalid_field", "$.contexts: expected a list of texts. Change it.")
    return [_with_number(place, text) for place, text in enumerate(texts, start=1)]


_NULL = Raw(b"null")


def _is_numbered(contexts: Sequence[Raw]) -> bool:
    for place, context in enumerate(contexts, start=1):
        if not bytes(context).startswith(_MARKS[place] if place < len(_MARKS) else b'"[%d]' % place):
            return False
    return True


_MARKS = [b'"[%d]' % place for place in range(100)]


def _with_number(place: int, text: str) -> str:
    return text if text.startswith(f"[{place}]") else f"[{place}] {text}"


class _Chunk(msgspec.Struct):
    """What contexts and sources can be made of, where the task has none of its own."""

    rendered_context: Any = None
    text: Any = None
    source_path: Any = None
    page: Any = None
    ordinal: Any = None


_chunk = msgspec.json.Decoder(_Chunk).decode


def _from_retrieved(retrieved: Sequence[Raw]) -> Sequence[str]:
    chunks = [_chunk(entry) for entry in retrieved]
    texts = [chunk.rendered_context or chunk.text for chunk in chunks]
    if not all(isinstance(text, str) for text in texts):
        return []
    return [_with_number(place, text) for place, text in enumerate(texts, start=1)]


def _sources_of(retrieved: Sequence[Raw], count: int) -> list[str]:
    """The source of each context, from what was retrieved for it."""
    if len(retrieved) != count:
        return []
    chunks = [_chunk(entry) for entry in retrieved]
    if not all(isinstance(chunk.source_path, str) for chunk in chunks):
        return []
    return [
        chunk.source_path if chunk.page is None else f"{chunk.source_path}#page={chunk.page}"
        for chunk in chunks
    ]


def _answer_citations(
    task: RawTask, answer: str, citations: Sequence[Raw], sources: Sequence[str]
) -> Sequence[Raw | dict[str, Any]]:
    """Where the reference answer comes from: as curated, or else what its markers [n] point to."""
    if task.answer_citations:
        return task.answer_citations
    if task.citations and task.rag is not None and task.rag.citations is not None:
        return task.citations
    numbers = cited_numbers(answer)
    if not numbers:
        return []
    by_number: dict[int, Raw | dict[str, Any]] = dict(enumerate(citations, start=1))
    if citations and b'"ordinal"' in bytes(citations[0]):
        numbered = [(_chunk(entry).ordinal, entry) for entry in citations]
        by_number.update({number: entry for number, entry in numbered if type(number) is int})
    if not by_number:
        by_number = {
            place: {"ordinal": place, "source_path": source} for place, source in enumerate(sources, 1)
        }
    return [by_number[number] for number in numbers if number in by_number]


def _refuse_missing(what: str, field: str) -> NoReturn:
    raise TaskError(f"missing_{what}", f"there is no {field}, or it is empty. Fill it in.")
