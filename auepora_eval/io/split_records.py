"""The records of the splits, field by field in the order in which they are written."""

from __future__ import annotations

import re
from typing import Any, NoReturn

import msgspec

from ..errors import DataError
from .type_words import wrong_record

QA, SUMMARIES, CITATIONS = "qa", "summaries", "citations"
SPLIT_NAMES = (QA, SUMMARIES, CITATIONS)


class QaRecord(msgspec.Struct):
    """A question with its reference answer; statements to be cited (`citations`) have this form too."""

    task_id: str
    task_type: str
    question: str
    reference_answer: str
    rag_prompt: str
    contexts: list[str]
    sources: list[str]
    retrieved: list[dict[str, Any]]
    citations: list[dict[str, Any]]
    answer_citations: list[dict[str, Any]] = []
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
    retrieved: list[dict[str, Any]]
    citations: list[dict[str, Any]]
    metadata: dict[str, Any] = {}


SplitRecord = QaRecord | SummaryRecord


def is_split_record(record: dict[str, Any]) -> bool:
    """Whether a record is one of a split: it has what the builder writes."""
    return "task_id" in record and (
        {"question", "reference_answer"} <= record.keys()
        or {"instruction", "reference_summary"} <= record.keys()
    )


def is_raw_record(record: dict[str, Any]) -> bool:
    """Whether a record is one that a generator wrote, which the builder would turn into one of a split."""
    if "task_id" not in record or is_split_record(record):
        return False
    asks = bool({"instruction", "question", "prompt"} & record.keys())
    answers = bool({"expected_response", "answer", "response"} & record.keys())
    return isinstance(record.get("rag"), dict) or (asks and answers)


def read_split_record(record: dict[str, Any], where: str, task_type: str | None = None) -> SplitRecord:
    """A record of a split, with every field there and of its type; DataError says which is not.

    With `task_type` it must be of that type, as all records of one split are.
    """
    written = record.get("task_type")
    given = written if isinstance(written, str) and written else task_type
    kind: type[SplitRecord] = SummaryRecord if given == SUMMARIES else QaRecord
    if task_type is not None and isinstance(written, str) and written not in ("", task_type):
        what = f"{written!r:.40} stands among records of the type {task_type!r:.40}."
        raise DataError(f"{where}: $.task_type", what, fix="A split holds one type: build it anew.")
    try:
        read = msgspec.convert(record, kind)
    except msgspec.ValidationError as error:
        path, what, _ = wrong_record(error)
        raise DataError(f"{where}: {path}", what, fix="Build the split anew.") from error
    if len(read.contexts) != len(read.sources):
        what = f"there are {len(read.contexts)} contexts but {len(read.sources)} sources."
        raise DataError(f"{where}: $.sources", what, fix="Give each context its source.")
    for field in ("task_id", "task_type", *asked_and_expected(kind)):
        if not getattr(read, field).strip():
            _refuse_empty(where, field)
    return read


def asked_and_expected(kind: type[SplitRecord]) -> tuple[str, str]:
    """The names of the two fields that the splits call differently: what is asked, what is expected."""
    if kind is SummaryRecord:
        return "instruction", "reference_summary"
    return "question", "reference_answer"


def _refuse_empty(where: str, field: str) -> NoReturn:
    raise DataError(f"{where}: $.{field}", "the text is empty.", fix="Fill it in, or leave the record out.")


_MARKER = re.compile(r"\[([0-9]{1,6}(?:\s*,\s*[0-9]{1,6})*)\]")


def cited_numbers(text: str) -> list[int]:
    """The contexts that a text cites, each once, in the order of their first mention.

    >>> cited_numbers("It is so [2], as others found [1, 3][2].")
    [2, 1, 3]
    """
    found = ",".join(_MARKER.findall(text)) if "[" in text else ""
    return list(dict.fromkeys(map(int, found.split(",")))) if found else []
