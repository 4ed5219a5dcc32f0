"""Spans from the files in which tracing tools hand them out.

- OTLP JSON: a document, or one a line, as OpenTelemetry's collector writes it.
- One span a line (or a JSON list of them, or a Parquet file), as Phoenix and OpenTelemetry's SDK write them:
  `context.trace_id` or `{"context": {"trace_id": ...}}`, attributes nested or as columns
  (`attributes.input.value`).

Attributes come out flat, whatever form they had: `retrieval.documents.0.document.id`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..errors import DataError
from .document_file import read_content
from .json_text import parse_document
from .jsonl import BYTE_ORDER_MARK, opened, read_records
from .otlp import Span, is_otlp, otlp_spans
from .parquet import parquet_rows

_MAX_LINE = 64_000_000  # a collector writes a batch of spans a line
_MOST_ATTRIBUTES = 20_000  # of one span
_DEEPEST = 12
_FIX = "Export spans as OTLP JSON, or one a line as Phoenix does."
_NOT_READ = ("embedding.", "llm.tools", "llm.invocation_parameters", "exception.stacktrace")


@dataclass
class SpanDump:
    """The spans of a file, and what in it was none."""

    path: Path
    left_out: Counter[str] = field(default_factory=Counter)

    def __iter__(self) -> Iterator[Span]:
        for where, record in _records(self.path):
            if is_otlp(record):
                for place, span in otlp_spans(record):
                    yield from self._read(f"{where}: {place}", span)
            else:
                yield from self._read(where, record)

    def _read(self, where: str, record: Mapping[str, Any]) -> Iterator[Span]:
        span = _span(record)
        if span is None:
            self.left_out["no trace id or span id"] += 1
        else:
            if len(span.attributes) >= _MOST_ATTRIBUTES:
                what = f"a span has over {_MOST_ATTRIBUTES:,} attributes."
                raise DataError(where, what, fix="Is it the right file?")
            yield span


def refuse_spans(path: Path) -> None:
    """DataError that says what to do, if a file begins as a dump of spans does."""
    try:
        _, record = next(_records(path), ("", {}))
    except DataError:
        return  # whoever reads it says what is wrong
    if is_otlp(record) or ("sample_id" not in record and _ids(record) is not None):
        fix = "Make predictions of them first: auepora import-traces SPANS --outputs FILE --samples FILE."
        raise DataError(path.name, "these are spans, not predictions.", fix=fix)


def _records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    with opened(path) as file:
        start = file.read(4096).removeprefix(BYTE_ORDER_MARK).lstrip()
    if start[:4] == b"PAR1":
        for number, row in enumerate(parquet_rows(path)[0], start=1):
            yield f"{path.name}: row {number}", row
    elif start[:1] == b"[" or start.rstrip() == b"{" or start[:2] in (b"{\n", b"{\r"):
        yield from _whole(path)
    else:
        yield from read_records(path, max_line_bytes=_MAX_LINE)


def _whole(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """A file that is one document: OTLP, or a list of spans."""
    document = parse_document(read_content(path), path.name)
    records = document if isinstance(document, list) else [document]
    for number, record in enumerate(records):
        if not isinstance(record, dict):
            raise DataError(f"{path.name}: $[{number}]", "this is no span.", fix=_FIX)
        yield f"{path.name}: $[{number}]" if isinstance(document, list) else path.name, record


def _ids(record: Mapping[str, Any]) -> tuple[str, str] | None:
    context = record.get("context")
    places = (context if isinstance(context, dict) else {}, record)
    found = []
    for names in (("trace_id", "traceId", "context.trace_id"), ("span_id", "spanId", "context.span_id")):
        values = (place.get(name) for place in places for name in names)
        found.append(next((_text_id(value) for value in values if value), None))
    return (found[0], found[1]) if found[0] and found[1] else None


def _text_id(value: Any) -> str | None:
    return value.removeprefix("0x")[:128] if isinstance(value, str) else None


def _span(record: Mapping[str, Any]) -> Span | None:
    ids = _ids(record)
    if ids is None:
        return None
    parent = record.get("parent_id") or record.get("parentSpanId") or record.get("parent_span_id")
    attributes: dict[str, Any] = {}
    given = record.get("attributes")
    if isinstance(given, dict):
        _flatten(given, "", attributes, 0)
    for name, value in record.items():  # columns of a table
        if name.startswith("attributes."):
            _flatten({name.removeprefix("attributes."): value}, "", attributes, 0)
    kind = record.get("span_kind")  # Phoenix has it as a field of its own
    if isinstance(kind, str) and "openinference.span.kind" not in attributes:
        attributes["openinference.span.kind"] = kind
    called = record.get("name")
    return Span(
        *ids,
        name=called if isinstance(called, str) else "",
        start_ns=_time(record, "start_time", "startTimeUnixNano"),
        end_ns=_time(record, "end_time", "endTimeUnixNano"),
        parent_id=_text_id(parent),
        attributes=attributes,
        error=_error(record),
    )


def _flatten(value: Any, name: str, into: dict[str, Any], depth: int) -> None:
    """Names joined by dots: {"a": [{"b": 1}]} and {"a.0.b": 1} are the same."""
    if value is None or name.startswith(_NOT_READ) or len(into) >= _MOST_ATTRIBUTES or depth > _DEEPEST:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            _flatten(inner, f"{name}.{key}" if name else str(key), into, depth + 1)
    elif isinstance(value, list) and any(isinstance(inner, dict | list) for inner in value):
        for place, inner in enumerate(value):
            _flatten(inner, f"{name}.{place}", into, depth + 1)
    else:
        into[name] = value


def _time(record: Mapping[str, Any], *names: str) -> int | None:
    value = next((record[name] for name in names if record.get(name)), None)
    if isinstance(value, datetime):  # of a Parquet file
        value = value.replace(tzinfo=value.tzinfo or UTC)
        return int(value.timestamp() * 1e6) * 1000
    if isinstance(value, str) and not value.isdigit():
        try:
            parsed = datetime.fromisoformat(value)
        except ValueError:
            return None
        return int(parsed.replace(tzinfo=parsed.tzinfo or UTC).timestamp() * 1e6) * 1000
    try:
        number = int(value)  # type: ignore[arg-type]  # whatever it is, the errors are caught
    except (TypeError, ValueError, OverflowError):
        return None
    return _nanoseconds(number)


def _nanoseconds(number: int) -> int | None:
    """Seconds, milliseconds, microseconds or nanoseconds since 1970: a time of our days is one of these."""
    for factor in (1, 1_000, 1_000_000, 1_000_000_000):
        if 10**17 <= number * factor < 10**19:
            return number * factor
    return None


def _error(record: Mapping[str, Any]) -> str | None:
    status = record.get("status")
    status = status if isinstance(status, dict) else {}
    code = record.get("status_code") or status.get("status_code") or status.get("code")
    if code not in ("ERROR", "STATUS_CODE_ERROR", 2):
        return None
    said = record.get("status_message") or status.get("message") or status.get("description")
    return said[:2000] if isinstance(said, str) else ""
