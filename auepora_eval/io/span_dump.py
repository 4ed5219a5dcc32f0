"""Spans from the files in which tracing tools hand them out.

- OTLP JSON: a document, or one a line, as OpenTelemetry's collector writes it.
- One span a line (or a JSON list of them, or a Parquet file), as Phoenix and OpenTelemetry's SDK write them:
  `context.trace_id` or `{"context": {"trace_id": ...}}`, attributes nested or as columns
  (`attributes.input.value`).
- Indented spans one after the other, as the SDK's ConsoleSpanExporter prints them.

Attributes come out flat, whatever form they had: `retrieval.documents.0.document.id`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..errors import DataError
from .document_file import read_content
from .json_text import parse_document
from .jsonl import BYTE_ORDER_MARK, encode, opened, parse_line, read_lines
from .otlp import Span, SpanEvent, is_otlp, otlp_spans
from .parquet import parquet_rows

_MAX_LINE = 64_000_000  # a collector writes a batch of spans a line
_MOST_ATTRIBUTES = 20_000  # of one span
_MOST_EVENTS = 1_000  # of one span
_DEEPEST = 12
_FIX = "Export spans as OTLP JSON, or one a line as Phoenix does."
# Between two indented objects: a brace at the beginning of a line is inside no text.
_NEXT = re.compile(rb"(?m)^\}[ \t\r]*\n\s*(?=\{)")
_VALUES = ("input.value", "output.value")
_NOT_READ = ("embedding.", "llm.tools", "llm.invocation_parameters", "exception.stacktrace")


@dataclass
class SpanDump:
    """The spans of a file, and what in it was none: how much, for which reason, and where the first was.

    A file in which nothing can be read is a DataError that says why its first line cannot.
    """

    path: Path
    left_out: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Span]:
        refusals: list[DataError] = []
        could_be_read = False
        for where, record in _records(self.path):
            if isinstance(record, DataError):
                self._leave_out(where, "no JSON object")
                refusals = refusals or [record]
                continue
            for place, each in otlp_spans(record) if is_otlp(record) else [("", record)]:
                try:
                    span = self._read(f"{where}: {place}" if place else where, each)
                except DataError as refusal:
                    refusals = refusals or [refusal]
                    continue
                could_be_read = True
                if span is not None:
                    yield span
        if refusals and not could_be_read:
            raise refusals[0]

    def _read(self, where: str, record: Mapping[str, Any]) -> Span | None:
        span = _span(record)
        if span is None:
            self._leave_out(where, "no trace id or span id")
        elif len(span.attributes) >= _MOST_ATTRIBUTES:
            reason = f"over {_MOST_ATTRIBUTES:,} attributes"
            self._leave_out(where, reason)
            raise DataError(where, f"a span has {reason}.", fix="Is it the right file?")
        return span

    def _leave_out(self, where: str, reason: str) -> None:
        self.left_out[reason] += 1
        self.first.setdefault(reason, where)


def refuse_spans(path: Path) -> None:
    """DataError that says what to do, if a file begins as a dump of spans does."""
    try:
        _, record = next(_records(path), ("", {}))
    except DataError:
        return  # whoever reads it says what is wrong
    if isinstance(record, DataError):
        return
    if is_otlp(record) or ("sample_id" not in record and _ids(record) is not None):
        fix = "Make predictions of them first: auepora import-traces SPANS --outputs FILE --samples FILE."
        raise DataError(path.name, "these are spans, not predictions.", fix=fix)


def _records(path: Path) -> Iterator[tuple[str, dict[str, Any] | DataError]]:
    """(place, record) of a file; where there is none, what is wrong."""
    with opened(path) as file:
        start = file.read(4096).removeprefix(BYTE_ORDER_MARK).lstrip()
    if start[:4] == b"PAR1":
        for number, row in enumerate(parquet_rows(path)[0], start=1):
            yield f"{path.name}: row {number}", row
    elif start[:1] == b"[" or start.rstrip() == b"{" or start[:2] in (b"{\n", b"{\r"):
        yield from _whole(path)
    else:
        yield from _lines(path)


def _lines(path: Path) -> Iterator[tuple[str, dict[str, Any] | DataError]]:
    for number, line in enumerate(read_lines(path, _MAX_LINE), start=1):
        content = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
        where = f"{path.name}:{number}"
        if content.strip():
            try:
                record = parse_line(content, where)
            except DataError as error:
                yield where, error
            else:
                yield where, record


def _whole(path: Path) -> Iterator[tuple[str, dict[str, Any] | DataError]]:
    """A file that is one document, OTLP or a list of spans; or several, indented, one after the other."""
    content = read_content(path)
    if _NEXT.search(content):
        yield from _one_after_the_other(content, path.name)
        return
    document = parse_document(content, path.name)
    records = document if isinstance(document, list) else [document]
    for number, record in enumerate(records):
        where = f"{path.name}: $[{number}]" if isinstance(document, list) else path.name
        yield where, record if isinstance(record, dict) else DataError(where, "this is no span.", fix=_FIX)


def _one_after_the_other(content: bytes, name: str) -> Iterator[tuple[str, dict[str, Any] | DataError]]:
    line, start = 1, 0
    ends = [match.end() for match in _NEXT.finditer(content)]
    for end in [*ends, len(content)]:
        where, piece = f"{name}:{line}", content[start:end]
        try:
            yield where, parse_document(piece, where)
        except DataError as error:
            yield where, error
        line, start = line + piece.count(b"\n"), end


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
        events=list(_events(record.get("events"))),
        error=_error(record),
    )


def _events(given: Any) -> Iterator[SpanEvent]:
    for record in given[:_MOST_EVENTS] if isinstance(given, list) else ():
        if isinstance(record, dict) and isinstance(record.get("name"), str):
            attributes: dict[str, Any] = {}
            if isinstance(record.get("attributes"), dict):
                _flatten(record["attributes"], "", attributes, 0)
            yield SpanEvent(record["name"], _time(record, "timestamp", "timeUnixNano") or 0, attributes)


def _flatten(value: Any, name: str, into: dict[str, Any], depth: int) -> None:
    """Names joined by dots: {"a": [{"b": 1}]} and {"a.0.b": 1} are the same."""
    if value is None or name.startswith(_NOT_READ) or len(into) >= _MOST_ATTRIBUTES or depth > _DEEPEST:
        return
    if name in _VALUES and isinstance(value, dict | list):
        into[name] = encode(value).decode()  # as most tools write it: the text of a document
    elif isinstance(value, dict):
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
