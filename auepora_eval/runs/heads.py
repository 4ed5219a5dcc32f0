"""The heads of results files: what a list shows of a run, read without its rows."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from ..errors import DataError
from ..io.document_file import read_content
from ..io.json_text import parse_document
from ..io.jsonl import opened
from ..io.results_json import refuse_newer
from ..io.type_words import wrong_record

_PIECES = (1 << 16, 1 << 20)  # a head is some kilobytes; what has not ended after the second is read whole
_END = 16  # bytes at the end of a file; its head alone has more
_ROWS_BEGIN = b',\n  "query_results": ['


class _Summary(msgspec.Struct):
    total_queries: Any = None
    failed_queries: Any = None


class _Note(msgspec.Struct):
    evaluation_type: Any = None


class Head(msgspec.Struct):
    """What is read of a results file for a list; the rest is skipped unread."""

    schema_version: Any = None
    evaluation_id: Any = None
    timestamp: Any = None
    system_version: Any = None
    dataset_id: Any = None
    summary: _Summary | None = None
    note: _Note | None = msgspec.field(default=None, name="_metadata")

    def as_dict(self) -> dict[str, Any]:
        summary, note = self.summary or _Summary(), self.note or _Note()
        return {
            "evaluation_id": self.evaluation_id,
            "timestamp": self.timestamp,
            "system_version": self.system_version,
            "dataset_id": self.dataset_id,
            "total_queries": summary.total_queries,
            "failed_queries": summary.failed_queries,
            "evaluation_type": note.evaluation_type,
        }


_decode = msgspec.json.Decoder(Head).decode
_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def read_head(path: Path) -> dict[str, Any]:
    """The head of a results file. Ours have the rows at the end: reading stops where they begin."""
    with opened(path) as file:
        content = b""
        for size in _PIECES:
            content += file.read(size)
            end = content.find(_ROWS_BEGIN)
            if end < 0:
                continue
            try:
                # A JSON text has no bare line end inside a string; and if one brace completes the document,
                # the rows began at its top level.
                head = _decode(content[:end] + b"}")
            except _ERRORS:
                break
            if head.note is not None and _is_whole(file):
                return _checked(head, path)
            break  # somebody else's file, which may say more behind its rows; or one that was cut off
    content = read_content(path)
    try:
        return _checked(_decode(content), path)
    except msgspec.ValidationError as error:
        place, what, _ = wrong_record(error)
        raise DataError(
            f"{path.name}: {place}", f"not a results file: {what}", fix="Is it the right file?"
        ) from error
    except _ERRORS as error:
        parse_document(content, path.name)  # says what is wrong, as whoever reads the run will
        raise DataError(path.name, "not a results file.", fix="Is the file damaged?") from error


def _is_whole(file: BinaryIO) -> bool:
    """Whether a file of ours ends as it should: rows that were cut off do not."""
    if isinstance(file, gzip.GzipFile):
        return True  # its end costs as much as all of it
    file.seek(-_END, os.SEEK_END)
    return file.read().rstrip().endswith(b"]\n}")


def _checked(head: Head, path: Path) -> dict[str, Any]:
    refuse_newer({"schema_version": head.schema_version}, path.name)
    return head.as_dict()
