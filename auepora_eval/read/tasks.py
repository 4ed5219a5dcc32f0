"""A task in its two forms: raw, as a generator writes it, and as the record of a split that it becomes.

Raw tasks have one of two shapes: nested, with `rag: {prompt, contexts, sources, citations, retrieved}`, or
flat, with these fields at the top. A task that cannot become a record is a `TaskError` with a reason.
Fields that no split has are kept in the metadata.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NoReturn

import msgspec

from ..errors import AueporaError, DataError
from .records import as_struct, wrong_record
from .text import parse_line

# The record of a split. The fields have the order in which they are written.

QA, SUMMARIES, CITATIONS = "qa", "summaries", "citations"
SPLIT_NAMES = (QA, SUMMARIES, CITATIONS)
Entry = dict[str, object]  # a retrieved chunk or a citation, with whatever fields the generator wrote


class QaRecord(msgspec.Struct):
    """A question with its reference answer; statements to be cited (`citations`) have this form too."""

    task_id: str
    task_type: str
    question: str
    reference_answer: str
    rag_prompt: str
    contexts: list[str]
    sources: list[str]
    retrieved: list[Entry]
    citations: list[Entry]
    answer_citations: list[Entry] = []
    metadata: dict[str, Any] = {}


class SummaryRecord(msgspec.Struct):
    """An instruction to summarise, with its reference summary."""

    task_id: str
    task_type: str
    instruction: str
    reference_summary: str
    rag_prompt: str
    contexts: list[str]
    sources: list[str]
    retrieved: list[Entry]
    citations: list[Entry]
    metadata: dict[str, Any] = {}


SplitRecord = QaRecord | SummaryRecord


def is_split_record(record: Mapping[str, object]) -> bool:
    """Return whether a record has the fields that the builder writes."""
    return "task_id" in record and (
        {"question", "reference_answer"} <= record.keys()
        or {"instruction", "reference_summary"} <= record.keys()
    )


def is_raw_record(record: Mapping[str, object]) -> bool:
    """Return whether a record has the fields that a generator writes."""
    if "task_id" not in record or is_split_record(record):
        return False
    asks = bool({"instruction", "question", "prompt"} & record.keys())
    answers = bool({"expected_response", "answer", "response"} & record.keys())
    return isinstance(record.get("rag"), dict) or (asks and answers)


def read_split_record(record: Mapping[str, object], where: str, task_type: str | None = None) -> SplitRecord:
    """Return the record of a split; DataError names the first field that is missing or wrong.

    With `task_type` the record must have that type, as all records of one split do.
    """
    written = record.get("task_type")
    kind: type[SplitRecord] = SummaryRecord if (written or task_type) == SUMMARIES else QaRecord
    if task_type is not None and isinstance(written, str) and written not in ("", task_type):
        what = f"{written!r:.40} is among records of the type {task_type!r:.40}."
        raise DataError(f"{where}: $.task_type", what, fix="A split holds one type: build it again.")
    read = as_struct(record, kind, where, fix="Build the split again.")
    if len(read.contexts) != len(read.sources):
        what = f"there are {len(read.contexts)} contexts but {len(read.sources)} sources."
        raise DataError(f"{where}: $.sources", what, fix="Give each context its source.")
    for field in ("task_id", "task_type", *question_and_reference(kind)):
        if not getattr(read, field).strip():
            fix = "Fill it in, or leave the record out."
            raise DataError(f"{where}: $.{field}", "the text is empty.", fix=fix)
    return read


def question_and_reference(kind: type[SplitRecord]) -> tuple[str, str]:
    """Return the names of the two fields that each kind of record calls differently."""
    if kind is SummaryRecord:
        return "instruction", "reference_summary"
    return "question", "reference_answer"


# At most six digits: a longer number is not the number of a context.
_MARKER = re.compile(r"\[([0-9]{1,6}(?:\s*,\s*[0-9]{1,6})*)\]")


def cited_numbers(text: str) -> list[int]:
    """Return the numbers of the contexts that a text cites, each once, in the order of their first mention.

    >>> cited_numbers("It is so [2], as others found [1, 3][2].")
    [2, 1, 3]
    """
    numbers = ",".join(_MARKER.findall(text)) if "[" in text else ""
    return list(dict.fromkeys(map(int, numbers.split(",")))) if numbers else []


# The raw task.

UNKNOWN_TYPE = "unknown"
# Reasons and notes under which tasks are counted in the manifest.
MARKERS_OF_NOTHING = "markers_of_nothing"
EMPTY_PROMPT, NO_CONTEXTS, FIELDS_DIFFER = "empty_prompt", "no_contexts", "fields_differ"
MISMATCH = "contexts_sources_mismatch"


class TaskError(AueporaError, ValueError):
    """A task that cannot become a record: the reason, by which such tasks are counted, and the message."""

    def __init__(self, reason: str, what: str) -> None:
        self.reason, self.what = reason, what
        super().__init__(what)


class _Rag(msgspec.Struct, forbid_unknown_fields=True):
    prompt: str | None = None
    contexts: list[str] | None = None
    sources: list[str] | None = None
    scores: Any = None
    retrieved: list[Entry] | None = None
    citations: list[Entry] | None = None


class Task(msgspec.Struct, forbid_unknown_fields=True):
    """A line of `offline_dataset.jsonl`. Other fields are kept in the metadata."""

    task_id: str | int | None = None
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
    rag_prompt: str | None = None
    contexts: list[str] | None = None
    sources: list[str] | None = None
    retrieved: list[Entry] | None = None
    citations: list[Entry] | None = None
    answer_citations: list[Entry] | None = None
    metadata: dict[str, Any] | None = None

    @property
    def kind(self) -> str:
        """The task's type; `unknown` if it has none."""
        if self.task_type in SPLIT_NAMES:
            return self.task_type
        return (self.task_type or "").strip() or UNKNOWN_TYPE


_NO_RAG = _Rag()
_decode = msgspec.json.Decoder(Task).decode


def read_task(line: bytes, where: str) -> Task:
    """Return the task on a line; TaskError if the line is not a task."""
    # What follows finds out what is wrong.
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _decode(line)
    try:
        record = parse_line(line, where)
    except DataError as error:
        what = str(error).removeprefix(where).removeprefix(": ")
        raise TaskError("invalid_json", what) from error
    return _task(record)


def _task(record: Mapping[str, object]) -> Task:
    """Return the task of a record; fields that a task does not have are kept in its metadata."""
    try:
        return msgspec.convert(_with_rest_in_metadata(record), Task)
    except msgspec.ValidationError as error:
        path, what, fix = wrong_record(error)
        raise TaskError("invalid_field", f"{path}: {what} {fix}") from error


def read_raw_record(record: Mapping[str, object], where: str, *, complete: bool = False) -> SplitRecord:
    """Return the record of a split that a raw task becomes; DataError if it cannot become one.

    Fields that contradict each other are noted in its metadata; with `complete` they are an error.
    """
    try:
        task = _task(record)
        built = split_record(task)
    except TaskError as error:
        raise DataError(where, error.what) from error
    differing = differing_fields(task)
    if differing and not complete:
        built.metadata[FIELDS_DIFFER] = differing
    elif differing:
        unused, used = differing[0]
        raise DataError(f"{where}: $.{unused}", f"{differs(unused, used)}.", fix="Keep one of them.")
    return read_split_record(msgspec.to_builtins(built), where)


def differing_fields(task: Task) -> list[tuple[str, str]]:
    """Return (unused, used) of fields that should be the same and have other content.

    Citations are left out: those at the top level are of the answer, those under `rag` of the contexts.
    """
    rag = task.rag or _NO_RAG
    pairs = (
        ("question", "instruction", task.question, task.instruction),
        ("answer", "expected_response", task.answer, task.expected_response),
        ("reference_answer", "expected_response", task.reference_answer, task.expected_response),
        ("rag_prompt", "rag.prompt", task.rag_prompt, rag.prompt),
        ("contexts", "rag.contexts", task.contexts, rag.contexts),
        ("sources", "rag.sources", task.sources, rag.sources),
        ("retrieved", "rag.retrieved", task.retrieved, rag.retrieved),
    )
    return [(unused, used) for unused, used, one, other in pairs if one and other and one != other]


def differs(unused: str, used: str) -> str:
    """Return the sentence about two fields that should be the same."""
    return f"{unused!r} differs from {used!r}, which is used"


def missing_parts(prompt: str, contexts: Sequence[object]) -> list[str]:
    """Return what a system that is given the prompt would lack: EMPTY_PROMPT, NO_CONTEXTS, or nothing."""
    return [name for name, part in ((EMPTY_PROMPT, prompt.strip()), (NO_CONTEXTS, contexts)) if not part]


def check_complete(record: SplitRecord, where: str) -> None:
    """DataError if a record has no prompt for a system that takes one, or shows it no contexts."""
    missing = missing_parts(record.rag_prompt, record.contexts)
    if EMPTY_PROMPT in missing:
        fix = "Write the prompt that the model is given, with its contexts."
        raise DataError(f"{where}: $.rag_prompt", "the prompt is empty.", fix=fix)
    if NO_CONTEXTS in missing:
        fix = "Write the contexts that the model is shown, or leave the record out."
        raise DataError(f"{where}: $.contexts", "there are no contexts.", fix=fix)


def split_record(task: Task, notes: Counter[str] | None = None) -> SplitRecord:
    """Return the record of a split that a task becomes; TaskError if the task lacks something.

    What is unusual about it, but no reason to leave it out, is counted in `notes`.
    """
    rag = task.rag or _NO_RAG
    task_id, kind = "" if task.task_id is None else str(task.task_id), task.kind
    if not task_id.strip():
        raise TaskError("missing_task_id", "$.task_id: there is none. Give each task an id of its own.")
    question, reference = _texts(task, is_summary=kind == SUMMARIES)
    retrieved = (task.retrieved if rag.retrieved is None else rag.retrieved) or []
    citations = (task.citations if rag.citations is None else rag.citations) or []
    contexts = task.contexts if rag.contexts is None else rag.contexts
    cited = cited_numbers(reference)
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
    if notes is not None:
        _note(task, prompt, numbered, notes)
    metadata = task.metadata or {}
    if rag.scores and rag.scores != [chunk.get("score") for chunk in retrieved]:
        metadata.setdefault("rag_scores", rag.scores)
    common = (task_id, kind, question, reference, prompt, numbered, sources, retrieved, citations)
    if kind == SUMMARIES:
        return SummaryRecord(*common, metadata)
    own = _answer_citations(task, cited, citations or retrieved, sources, notes)
    return QaRecord(*common, own, metadata)


def _note(task: Task, prompt: str, contexts: Sequence[str], notes: Counter[str]) -> None:
    """Count what is unusual about a task."""
    notes.update(missing_parts(prompt, contexts))
    if differing_fields(task):
        notes[FIELDS_DIFFER] += 1


def _texts(task: Task, *, is_summary: bool) -> tuple[str, str]:
    """Return what a task asks and the reference; TaskError if one of them is missing."""
    # The first name of each is ours; the others are those of known generators, in order of preference.
    if is_summary:
        question = _first(task.instruction, task.prompt, task.question)
        reference = _first(task.expected_response, task.response, task.answer, task.reference_summary)
        fields = "'instruction'", "'expected_response' or 'response'"
    else:
        question = _first(task.instruction, task.question)
        reference = _first(task.expected_response, task.answer, task.reference_answer, task.response)
        fields = "'instruction' or 'question'", "'expected_response' or 'answer'"
    return question or _missing("question", fields[0]), reference or _missing("reference", fields[1])


def _first(*texts: str | None) -> str | None:
    """Return the first text that is not blank."""
    for text in texts:
        if text and not text.isspace():
            return text
    return None


def _missing(part: str, field: str) -> NoReturn:
    raise TaskError(f"missing_{part}", f"there is no {field}, or it is empty. Fill it in.")


_OWN_NUMBER = re.compile(r"\[([0-9]{1,6})\]")


def _numbered(contexts: Sequence[str], cited: Sequence[int]) -> list[str]:
    """Return the contexts, each starting with its number; TaskError if the answer cites other numbers."""
    own = [int(match[1]) for text in contexts if (match := _OWN_NUMBER.match(text))]
    places = list(range(1, len(contexts) + 1))
    if own != places and len(own) == len(contexts) == len(set(own)) and not set(own).isdisjoint(cited):
        listed = ", ".join(f"[{number}]" for number in own[:5])
        raise TaskError(
            "contexts_misnumbered",
            f"$.contexts: they are numbered {listed}, and the answer cites them so. Number them from [1] on.",
        )
    return [_with_number(place, text) for place, text in enumerate(contexts, start=1)]


def _with_number(place: int, text: str) -> str:
    return text if text.startswith(f"[{place}]") else f"[{place}] {text}"


def _from_retrieved(retrieved: Sequence[Entry]) -> list[str]:
    texts = [chunk.get("rendered_context") or chunk.get("text") for chunk in retrieved]
    numbered = [_with_number(n, text) for n, text in enumerate(texts, start=1) if isinstance(text, str)]
    return numbered if len(numbered) == len(texts) else []


def _sources_of(retrieved: Sequence[Entry], count: int) -> list[str]:
    """Return the source of each context, from the chunk that was retrieved for it."""
    paths = [
        path if chunk.get("page") is None else f"{path}#page={chunk.get('page')}"
        for chunk in retrieved
        if isinstance(path := chunk.get("source_path"), str)
    ]
    return paths if len(paths) == len(retrieved) == count else []


def _answer_citations(
    task: Task,
    cited: Sequence[int],
    citations: Sequence[Entry],
    sources: Sequence[str],
    notes: Counter[str] | None,
) -> list[Entry]:
    """Return the citations of the reference: as curated, or else what its markers [n] point to."""
    if task.answer_citations:
        return task.answer_citations
    if task.citations and task.rag is not None and task.rag.citations is not None:
        return task.citations
    if not cited:
        return []
    by_number: dict[int, Entry] = {}
    for entry in citations:
        ordinal = entry.get("ordinal")
        if type(ordinal) is int:
            by_number.setdefault(ordinal, entry)
    targets: list[Entry]
    if not citations:
        targets = [
            {"ordinal": number, "source_path": sources[number - 1]}
            for number in cited
            if 0 < number <= len(sources)
        ]
    elif by_number:
        targets = [by_number[number] for number in cited if number in by_number]
    else:  # places count only where no entry has a number
        targets = [citations[number - 1] for number in cited if 0 < number <= len(citations)]
    if notes is not None and len(targets) < len(cited):
        notes[MARKERS_OF_NOTHING] += len(cited) - len(targets)
    return targets


_KNOWN, _KNOWN_OF_RAG = frozenset(Task.__struct_fields__), frozenset(_Rag.__struct_fields__)


def _with_rest_in_metadata(record: Mapping[str, object]) -> dict[str, object]:
    """Return the known fields; the others are in the metadata, under NAME_ if NAME is taken."""
    kept = {name: value for name, value in record.items() if name in _KNOWN}
    rest = {name: value for name, value in record.items() if name not in _KNOWN}
    rag, metadata = record.get("rag"), record.get("metadata") or {}
    if isinstance(rag, dict) and not rag.keys() <= _KNOWN_OF_RAG:
        kept["rag"] = {name: value for name, value in rag.items() if name in _KNOWN_OF_RAG}
        rest["rag"] = {name: value for name, value in rag.items() if name not in _KNOWN_OF_RAG}
    if rest and isinstance(metadata, dict):
        metadata = dict(metadata)
        for name, value in rest.items():
            while metadata.setdefault(name, value) != value:
                name += "_"
        kept["metadata"] = metadata
    return kept
