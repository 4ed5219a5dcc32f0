"""What a generator wrote, a task a line, to the lines of the splits.

Two shapes are read: the nested one, with `rag: {prompt, contexts, sources, citations, retrieved}`, and the
flat one, with these at the top. A task that cannot become a record is a `TaskError` that says why.

All of a line is read, into few and typed objects, so that nothing gets into a split that its reader would
refuse, such as a number that no float can hold. Fields that no split has are kept in the metadata.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Generic, NoReturn, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from ..errors import AueporaError, DataError
from .json_text import MAX_DEPTH, may_be_huge
from .jsonl import parse_line
from .raw_tidy import misaligned, tidied, with_the_rest_in_metadata
from .split_records import SPLIT_NAMES, SUMMARIES, QaRecord, SplitRecord, SummaryRecord, cited_numbers
from .type_words import wrong_record

UNKNOWN_TYPE = "unknown"
MARKERS_OF_NOTHING = "markers_of_nothing"
MISMATCH = "contexts_sources_mismatch"
_Entry = TypeVar("_Entry")


class TaskError(AueporaError, ValueError):
    """A task that cannot become a record: the reason, by which such tasks are counted, and the words."""

    def __init__(self, reason: str, what: str) -> None:
        self.reason, self.what = reason, what
        super().__init__(what)


_Plain = str | int | float | bool | UnsetType | None


class _Chunk(msgspec.Struct, gc=False, forbid_unknown_fields=True, omit_defaults=True):
    """A retrieved chunk or a citation of the usual fields; one with others is read as a dict, more slowly."""

    id: _Plain = UNSET
    text: _Plain = UNSET
    source_path: _Plain = UNSET
    page: _Plain = UNSET
    section_title: _Plain = UNSET
    token_start: _Plain = UNSET
    token_end: _Plain = UNSET
    score: _Plain = UNSET
    similarity_score: _Plain = UNSET
    reranker_score: _Plain = UNSET
    excerpt: _Plain = UNSET
    rendered_context: _Plain = UNSET
    ordinal: _Plain = UNSET
    document: _Plain = UNSET
    start: _Plain = UNSET
    end: _Plain = UNSET
    counterfactual_of: _Plain = UNSET

    def get(self, name: str) -> Any:
        """A field; None if it is not there."""
        value = getattr(self, name)
        return None if value is UNSET else value


_Entries = Sequence[_Chunk] | Sequence[dict[str, Any]]


_GETTERS = {name: attrgetter(name) for name in ("score", "ordinal")}


def _values(entries: _Entries, name: str) -> list[Any]:
    """A field of each entry; None, or UNSET, where it is not there."""
    if entries and type(entries[0]) is _Chunk:
        return list(map(_GETTERS[name], entries))
    return [entry.get(name) for entry in entries]


class _Rag(msgspec.Struct, Generic[_Entry], gc=False, forbid_unknown_fields=True):
    prompt: str | None = None
    contexts: list[str] | None = None
    sources: list[str] | None = None
    scores: Any = None
    retrieved: list[_Entry] | None = None
    citations: list[_Entry] | None = None


class RawTask(msgspec.Struct, Generic[_Entry], gc=False, forbid_unknown_fields=True):
    """A line of `offline_dataset.jsonl`; one with other fields takes the slow way, on which they are kept."""

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
    rag: _Rag[_Entry] | None = None
    rag_prompt: str | None = None
    contexts: list[str] | None = None
    sources: list[str] | None = None
    retrieved: list[_Entry] | None = None
    citations: list[_Entry] | None = None
    answer_citations: list[_Entry] | None = None
    metadata: dict[str, Any] | None = None

    @property
    def kind(self) -> str:
        """The task's type; none is `unknown`."""
        if self.task_type in SPLIT_NAMES:
            return self.task_type
        return (self.task_type or "").strip() or UNKNOWN_TYPE


_decode = msgspec.json.Decoder(RawTask[_Chunk]).decode
_decode_others = msgspec.json.Decoder(RawTask[dict[str, Any]]).decode
_encode = msgspec.json.Encoder().encode
_encode_into = msgspec.json.Encoder().encode_into


Task = RawTask[_Chunk] | RawTask[dict[str, Any]]


def read_task(line: bytes | memoryview, where: str, *, may_hold_huge: bool = True) -> Task:
    """The task on a line; TaskError if the line is none, or one that could do harm.

    `may_hold_huge` is False where it is known already that no huge number can be in it (`may_be_huge`).
    """
    if not may_hold_huge:
        try:
            task = _decode(line)
            if not _nests(task):
                return task
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
    return _carefully_read(bytes(line), where)


def _carefully_read(line: bytes, where: str) -> Task:
    try:
        # replace() finds a byte several times faster than count() does.
        brackets = 2 * len(line) - len(line.replace(b"[", b"")) - len(line.replace(b"{", b""))
        if brackets > MAX_DEPTH or may_be_huge(line):
            parse_line(line, where)
        try:
            return _decode(line)
        except msgspec.ValidationError:
            return _decode_others(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _tidied_task(line, where)
    except DataError as error:
        raise _not_json(error, where) from error


def _nests(task: RawTask[_Chunk]) -> bool:
    """Whether lists or objects are within others where anything may stand: they may be too deep."""
    if task.metadata:
        for value in task.metadata.values():
            if type(value) not in _PLAIN and not (
                type(value) is list and _PLAIN.issuperset(map(type, value))
            ):
                return True
    scores = None if task.rag is None else task.rag.scores
    return scores is not None and not (type(scores) is list and _PLAIN.issuperset(map(type, scores)))


_PLAIN = frozenset({str, int, float, bool, type(None)})


_NO_RAG: _Rag[Any] = _Rag()


_KNOWN, _KNOWN_OF_RAG = frozenset(RawTask.__struct_fields__), frozenset(_Rag.__struct_fields__)


def _tidied_task(line: bytes, where: str) -> Task:
    """The slow way: read the line whole, put right what can be, and say what cannot."""
    try:
        record = parse_line(line, where)
    except DataError as error:
        raise _not_json(error, where) from error
    wrong = misaligned(record)
    if wrong is not None:
        raise TaskError(MISMATCH, wrong)
    try:
        return _decode_others(_encode(with_the_rest_in_metadata(tidied(record), _KNOWN, _KNOWN_OF_RAG)))
    except msgspec.ValidationError as error:
        path, what, fix = wrong_record(error)
        raise TaskError("invalid_field", f"{path}: {what} {fix}") from error


def _not_json(error: DataError, where: str) -> TaskError:
    path = error.where.removeprefix(where).removeprefix(": ")
    words = (f"{path}:" if path else "", error.what, error.fix)
    return TaskError("invalid_json", " ".join(word for word in words if word))


def split_record(task: Task, notes: Counter[str] | None = None) -> SplitRecord:
    """The record of a split that a task becomes; TaskError if it lacks something.

    What is odd about it, and yet no reason to leave it out, is counted in `notes`.
    """
    rag: _Rag[Any] = task.rag or _NO_RAG
    task_id, kind = task.task_id, task.kind
    if not task_id or task_id.isspace():
        raise TaskError("missing_task_id", "$.task_id: there is none. Give each task an id of its own.")
    asked, expected = _summary_texts(task) if kind == SUMMARIES else _qa_texts(task)
    retrieved: _Entries = (task.retrieved if rag.retrieved is None else rag.retrieved) or []
    citations: _Entries = (task.citations if rag.citations is None else rag.citations) or []
    contexts = task.contexts if rag.contexts is None else rag.contexts
    cited = cited_numbers(expected)
    numbered = _from_retrieved(retrieved) if contexts is None else _numbered(contexts, cited)
    sources = task.sources if rag.sources is None else rag.sources
    if sources is None:
        sources = _sources_of(retrieved, len(numbered))
    if len(sources) != len(numbered):
        raise TaskError(
            MISMATCH,
            f"there are {len(numbered)} contexts but {len(sources)} sources. Give each context its source.",
        )
    prompt = (task.rag_prompt if rag.prompt is None else rag.prompt) or ""
    # The encoder writes what it gets, whatever the field's type.
    chunks: Any = retrieved
    cites: Any = citations
    metadata = _metadata(task, rag, retrieved)
    if kind == SUMMARIES:
        return SummaryRecord(
            task_id, kind, asked, expected, prompt, numbered, sources, chunks, cites, metadata
        )
    found: Any = _answer_citations(task, cited, citations or retrieved, sources, notes)
    return QaRecord(task_id, kind, asked, expected, prompt, numbered, sources, chunks, cites, found, metadata)


def _metadata(task: Task, rag: _Rag[Any], retrieved: _Entries) -> dict[str, Any]:
    """The task's metadata, and the scores of what was retrieved where that does not hold them itself."""
    metadata = task.metadata or {}
    if rag.scores and rag.scores != _values(retrieved, "score"):
        metadata.setdefault("rag_scores", rag.scores)
    return metadata


def record_line(record: SplitRecord) -> bytes:
    """A record as a line of its split, without the line's end."""
    return _encode(record)


def put_record_line(record: SplitRecord, room: bytearray) -> None:
    """The same into a room that is used again and again: to grow new memory takes half as long again."""
    _encode_into(record, room)


def _qa_texts(task: Task) -> tuple[str, str]:
    asked = _first(task.instruction, task.question)
    expected = _first(task.expected_response, task.answer, task.reference_answer, task.response)
    return (
        asked or _refuse_missing("question", "'instruction' or 'question'"),
        expected or _refuse_missing("reference", "'expected_response' or 'answer'"),
    )


def _summary_texts(task: Task) -> tuple[str, str]:
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


def _numbered(contexts: list[str], cited: Sequence[int]) -> list[str]:
    """The contexts, each beginning with its number."""
    for place, context in enumerate(contexts, start=1):
        if not context.startswith(_MARKS[place] if place < len(_MARKS) else f"[{place}]"):
            _refuse_other_numbers(contexts, cited)
            return [_with_number(place, text) for place, text in enumerate(contexts, start=1)]
    return contexts


_MARKS = [f"[{place}]" for place in range(100)]
_OWN_NUMBER = re.compile(r"\[([0-9]{1,6})\]")


def _refuse_other_numbers(texts: Sequence[str], cited: Sequence[int]) -> None:
    """TaskError if the contexts have other numbers than their places, and the answer goes by them."""
    own = [int(match[1]) for text in texts if (match := _OWN_NUMBER.match(text))]
    if len(own) == len(texts) == len(set(own)) and not set(own).isdisjoint(cited):
        shown = ", ".join(f"[{number}]" for number in own[:5])
        raise TaskError(
            "contexts_misnumbered",
            f"$.contexts: they are numbered {shown}, and the answer cites them so. Number them from [1] on.",
        )


def _with_number(place: int, text: str) -> str:
    return text if text.startswith(f"[{place}]") else f"[{place}] {text}"


def _from_retrieved(retrieved: _Entries) -> list[str]:
    texts = [chunk.get("rendered_context") or chunk.get("text") for chunk in retrieved]
    known = [text for text in texts if isinstance(text, str)]
    if len(known) < len(texts):
        return []
    return [_with_number(place, text) for place, text in enumerate(known, start=1)]


def _sources_of(retrieved: _Entries, count: int) -> list[str]:
    """The source of each context, from what was retrieved for it."""
    paths = [
        path if chunk.get("page") is None else f"{path}#page={chunk.get('page')}"
        for chunk in retrieved
        if isinstance(path := chunk.get("source_path"), str)
    ]
    return paths if len(paths) == len(retrieved) == count else []


def _answer_citations(
    task: Task,
    cited: Sequence[int],
    citations: _Entries,
    sources: Sequence[str],
    notes: Counter[str] | None,
) -> _Entries:
    """Where the reference answer comes from: as curated, or else what its markers [n] point to."""
    if task.answer_citations:
        return task.answer_citations
    if task.citations and task.rag is not None and task.rag.citations is not None:
        return task.citations
    if not cited:
        return []
    if not citations:
        places = len(sources)
        found: list[Any] = [
            {"ordinal": number, "source_path": sources[number - 1]}
            for number in cited
            if 0 < number <= places
        ]
    elif int in map(type, ordinals := _values(citations, "ordinal")):
        by_number: dict[int, Any] = {}
        for entry, ordinal in zip(citations, ordinals, strict=True):
            if type(ordinal) is int:
                by_number.setdefault(ordinal, entry)
        found = [by_number[number] for number in cited if number in by_number]
    else:  # only where no entry says its number do the places count
        places = len(citations)
        found = [citations[number - 1] for number in cited if 0 < number <= places]
    if notes is not None and len(found) < len(cited):
        notes[MARKERS_OF_NOTHING] += len(cited) - len(found)
    return found


def _refuse_missing(what: str, field: str) -> NoReturn:
    raise TaskError(f"missing_{what}", f"there is no {field}, or it is empty. Fill it in.")
