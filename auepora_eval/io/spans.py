"""Spans, and the files in which tracing tools hand them out.

- OTLP JSON: a document, or one per line, as OpenTelemetry's collector writes it. One document is
  `{"resourceSpans": [{"resource", "scopeSpans": [{"scope", "spans": [...]}]}]}`. Attributes are lists of
  `{"key", "value": {"stringValue": ...}}`, whole numbers are texts, times count nanoseconds since 1970.
- One span per line (or a JSON list, or a Parquet file), as Phoenix and OpenTelemetry's SDK write them:
  `context.trace_id` or `{"context": {"trace_id": ...}}`, attributes nested or as columns
  (`attributes.input.value`).
- Traces of MLflow.

Attributes come out flat, whatever form they had: `retrieval.documents.0.document.id`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..read.text import parse_document, parse_json, parse_line
from .documents import read_content, read_document
from .jsonl import BYTE_ORDER_MARK, encode, opened, placed_lines
from .parquet import parquet_rows

Attributes = dict[str, Any]  # by their flat names; values are texts, numbers, booleans and lists of them
Record = Mapping[str, Any]  # an object of a file, as its tool wrote it
# The numbers that OTLP has for kinds of spans, and for the status of a failed one.
INTERNAL, CLIENT = 1, 3
_ERROR = 2
_MAX_NESTED = 20  # levels of an attribute's value


@dataclass
class SpanEvent:
    """Something that happened at one moment of a span."""

    name: str
    time_ns: int
    attributes: Attributes = field(default_factory=dict)


@dataclass
class Span:
    """A piece of work: when it began and ended, within which other one, and what is known of it."""

    trace_id: str  # 32 hexadecimal digits
    span_id: str  # 16
    name: str
    start_ns: int | None = None
    end_ns: int | None = None
    parent_id: str | None = None
    kind: int = INTERNAL
    attributes: Attributes = field(default_factory=dict)
    events: list[SpanEvent] = field(default_factory=list)
    error: str | None = None  # what went wrong; None if nothing is said to have

    @property
    def seconds(self) -> float | None:
        """How long it took; None where that is not known."""
        if self.start_ns is None or self.end_ns is None or self.end_ns < self.start_ns:
            return None
        return (self.end_ns - self.start_ns) / 1e9


def otlp_document(
    spans: Iterable[Span], resource: Mapping[str, object], scope: str, version: str
) -> dict[str, object]:
    """Return spans as a document of OTLP."""
    scoped = {"scope": {"name": scope, "version": version}, "spans": [_span_record(span) for span in spans]}
    return {"resourceSpans": [{"resource": {"attributes": _pairs(resource)}, "scopeSpans": [scoped]}]}


def _span_record(span: Span) -> dict[str, object]:
    record: dict[str, object] = {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": str(span.start_ns or 0),
        "endTimeUnixNano": str(span.end_ns or 0),
        "attributes": _pairs(span.attributes),
    }
    if span.parent_id:
        record["parentSpanId"] = span.parent_id
    if span.events:
        record["events"] = [
            {"timeUnixNano": str(event.time_ns), "name": event.name, "attributes": _pairs(event.attributes)}
            for event in span.events
        ]
    if span.error is not None:
        record["status"] = {"code": _ERROR, "message": span.error}
    return record


def _pairs(attributes: Mapping[str, object]) -> list[dict[str, object]]:
    return [{"key": key, "value": _wrapped(value)} for key, value in attributes.items() if value is not None]


def _wrapped(value: object) -> dict[str, object]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value} if math.isfinite(value) else {"stringValue": str(value)}
    if isinstance(value, list | tuple):
        return {"arrayValue": {"values": [_wrapped(each) for each in value]}}
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": _pairs(value)}}
    return {"stringValue": str(value)}


def otlp_spans(document: Record) -> Iterator[tuple[str, Record]]:
    """Yield (place, span) of a document, with plain `attributes`; what is not an object is skipped."""
    for n, resource in _objects(document.get("resourceSpans")):
        for m, scoped in _objects(resource.get("scopeSpans")):
            for k, span in _objects(scoped.get("spans")):
                place = f"$.resourceSpans[{n}].scopeSpans[{m}].spans[{k}]"
                events = [_unwrapped_span(event) for _, event in _objects(span.get("events"))]
                yield place, {**_unwrapped_span(span), "events": events}


def _unwrapped_span(record: Record) -> Record:
    """Return a span or an event with plain attributes."""
    return {**record, "attributes": _unwrapped_pairs(record.get("attributes"))}


def _objects(value: object) -> Iterator[tuple[int, Record]]:
    if isinstance(value, list):
        yield from ((place, each) for place, each in enumerate(value) if isinstance(each, dict))


def _unwrapped_pairs(pairs: object, depth: int = 0) -> Record:
    if isinstance(pairs, dict):  # some tools write attributes as plain objects
        return pairs
    return {
        pair["key"]: _unwrapped(pair.get("value"), depth)
        for _, pair in _objects(pairs)
        if isinstance(pair.get("key"), str)
    }


def _unwrapped(value: Any, depth: int) -> Any:
    if not isinstance(value, dict) or depth > _MAX_NESTED:
        return None
    kind, inner = next(iter(value.items()), ("", None))
    if kind == "intValue":
        try:
            return int(str(inner)[:40])
        except ValueError:
            return None
    if kind == "arrayValue":
        values = inner.get("values") if isinstance(inner, dict) else None
        return [_unwrapped(each, depth + 1) for each in values] if isinstance(values, list) else []
    if kind == "kvlistValue":
        return _unwrapped_pairs(inner.get("values") if isinstance(inner, dict) else None, depth + 1)
    return inner if kind in ("stringValue", "boolValue", "doubleValue") else None


# Spans from files.

_MAX_LINE = 64_000_000  # a collector writes a batch of spans a line
_MAX_ATTRIBUTES = 20_000  # of one span
_MAX_EVENTS = 1_000  # of one span
_MAX_DEPTH = 12
_FIX = "Export spans as OTLP JSON, or one a line as Phoenix does."
# Documents of their own, in whichever form: kept as one text.
_VALUES = (
    *("input.value", "output.value", "gen_ai.input.messages", "gen_ai.output.messages"),
    "gen_ai.retrieval.documents",
)
# Large attributes that no metric reads.
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
            for place, each in _spans_in(record):
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

    def _read(self, where: str, record: Record) -> Span | None:
        span = _span(record)
        if span is None:
            self._leave_out(where, "no trace id or span id")
        elif len(span.attributes) >= _MAX_ATTRIBUTES:
            reason = f"over {_MAX_ATTRIBUTES:,} attributes"
            self._leave_out(where, reason)
            raise DataError(where, f"a span has {reason}.", fix="Is it the right file?")
        return span

    def _leave_out(self, where: str, reason: str) -> None:
        self.left_out[reason] += 1
        self.first.setdefault(reason, where)


def _spans_in(record: Record) -> Iterable[tuple[str, Record]]:
    """Return (place, span) of a document: OTLP and MLflow have several spans in one."""
    if isinstance(record.get("resourceSpans"), list):
        return otlp_spans(record)
    return mlflow_spans(record) if is_mlflow(record) else [("", record)]


def _records(path: Path) -> Iterator[tuple[str, Record | DataError]]:
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


def _lines(path: Path) -> Iterator[tuple[str, Record | DataError]]:
    for where, line in placed_lines(path, _MAX_LINE):
        try:
            yield where, parse_line(line, where)
        except DataError as error:
            yield where, error


def _whole(path: Path) -> Iterator[tuple[str, Record | DataError]]:
    """Yield the records of a file that is one document, OTLP or a list of spans, or several in a row."""
    try:
        document = read_document(path)
    except DataError:
        # The console exporter of OpenTelemetry writes indented objects one after the other.
        if len(parts := _in_a_row(read_content(path))) < 2:
            raise
        document = [parse_document(part, f"{path.name}: span {n}") for n, part in enumerate(parts, start=1)]
    records = document if isinstance(document, list) else [document]
    for number, record in enumerate(records):
        where = f"{path.name}: $[{number}]" if isinstance(document, list) else path.name
        yield where, record if isinstance(record, dict) else DataError(where, "this is not a span.", fix=_FIX)


def _in_a_row(content: bytes) -> list[bytes]:
    """Return the objects of a text in which each starts and ends with a brace on a line of its own."""
    return re.findall(rb"^\{\r?$.*?^\}\r?$", content, re.MULTILINE | re.DOTALL)


def _ids(record: Record) -> tuple[str, str] | None:
    context = record.get("context")
    # Phoenix has the ids under "context", OTLP at the top, tables in columns.
    places = (context if isinstance(context, dict) else {}, record)
    ids = []
    for names in (("trace_id", "traceId", "context.trace_id"), ("span_id", "spanId", "context.span_id")):
        values = (place.get(name) for place in places for name in names)
        ids.append(next((_text_id(value) for value in values if value), None))
    return (ids[0], ids[1]) if ids[0] and ids[1] else None


def _text_id(value: Any) -> str | None:
    return value.removeprefix("0x")[:128] if isinstance(value, str) else None


def _span(record: Record) -> Span | None:
    ids = _ids(record)
    if ids is None:
        return None
    parent = record.get("parent_id") or record.get("parentSpanId") or record.get("parent_span_id")
    attributes: Attributes = {}
    _flatten(record.get("attributes"), "", attributes, 0)
    for name, value in record.items():  # columns of a table
        if name.startswith("attributes."):
            _flatten(value, name.removeprefix("attributes."), attributes, 0)
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


def _events(events: Any) -> Iterator[SpanEvent]:
    for record in events[:_MAX_EVENTS] if isinstance(events, list) else ():
        if isinstance(record, dict) and isinstance(record.get("name"), str):
            attributes: Attributes = {}
            _flatten(record.get("attributes"), "", attributes, 0)
            yield SpanEvent(record["name"], _time(record, "timestamp", "timeUnixNano") or 0, attributes)


def _flatten(value: Any, name: str, into: Attributes, depth: int) -> None:
    """Names joined by dots: {"a": [{"b": 1}]} and {"a.0.b": 1} are the same."""
    if value is None or name.startswith(_NOT_READ) or len(into) >= _MAX_ATTRIBUTES or depth > _MAX_DEPTH:
        return
    if name in _VALUES and isinstance(value, dict | list):
        into[name] = encode(value).decode()  # as most tools write it: the text of a document
    elif isinstance(value, dict):
        for key, inner in value.items():
            _flatten(inner, f"{name}.{key}" if name else str(key), into, depth + 1)
    elif not name:
        return  # attributes that are not an object
    elif isinstance(value, list) and any(isinstance(inner, dict | list) for inner in value):
        for place, inner in enumerate(value):
            _flatten(inner, f"{name}.{place}", into, depth + 1)
    else:
        into[name] = value


def _time(record: Record, *names: str) -> int | None:
    """Return a time in nanoseconds since 1970; None if the record has none that can be read."""
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
    # Nanoseconds, microseconds, milliseconds or seconds since 1970: a time of our days is in one of them.
    scaled = (number * factor for factor in (1, 1_000, 1_000_000, 1_000_000_000))
    return next((time for time in scaled if 10**17 <= time < 10**19), None)


def _error(record: Record) -> str | None:
    status = record.get("status")
    status = status if isinstance(status, dict) else {}
    code = record.get("status_code") or status.get("status_code") or status.get("code")
    if code not in ("ERROR", "STATUS_CODE_ERROR", 2):
        return None
    message = record.get("status_message") or status.get("message") or status.get("description")
    return message[:2000] if isinstance(message, str) else ""


# Traces of MLflow as spans with the attributes of OpenInference.

_KINDS = {"CHAT_MODEL": "LLM"}  # the others have the same names
_SESSION = "mlflow.trace.session"


def is_mlflow(record: Mapping[str, Any]) -> bool:
    """Return whether a document is a trace of MLflow."""
    data = record.get("data")
    spans = data.get("spans") if isinstance(data, dict) else None
    return isinstance(record.get("info"), dict) and isinstance(spans, list)


def mlflow_spans(document: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (place, record) for each span of a trace."""
    info = document["info"]
    about = info.get("trace_metadata")
    session = about.get(_SESSION) if isinstance(about, dict) else None
    feedback = list(_feedback(info.get("assessments")))
    for number, span in enumerate(document["data"]["spans"]):
        if not isinstance(span, dict):
            continue
        attributes = span.get("attributes")
        known = _attributes(attributes if isinstance(attributes, dict) else {}, str(span.get("name") or ""))
        yield (
            f"$.data.spans[{number}]",
            {
                "trace_id": info.get("trace_id") or span.get("trace_id"),
                "span_id": span.get("span_id"),
                "parent_id": span.get("parent_span_id"),
                "name": span.get("name"),
                "startTimeUnixNano": span.get("start_time_unix_nano"),
                "endTimeUnixNano": span.get("end_time_unix_nano"),
                "status": span.get("status"),
                "events": feedback if number == 0 else [],
                "attributes": known if session is None else {**known, "session.id": session},
            },
        )


def _feedback(assessments: Any) -> Iterator[dict[str, Any]]:
    """Yield the feedback of people on a trace as events of evaluations; that of judges is left out."""
    for one in assessments if isinstance(assessments, list) else ():
        said, source = (one.get(name) if isinstance(one, dict) else None for name in ("feedback", "source"))
        value = said.get("value") if isinstance(said, dict) else None
        is_human = not isinstance(source, dict) or source.get("source_type") == "HUMAN"
        if is_human and isinstance(value, bool | int | float):
            attributes = {
                "gen_ai.evaluation.name": f"feedback {one.get('assessment_name')}",
                "gen_ai.evaluation.score.value": float(value),
            }
            yield {"name": "gen_ai.evaluation.result", "attributes": attributes}


def _attributes(own: Mapping[str, Any], name: str) -> dict[str, Any]:
    kind = _parsed(own.get("mlflow.spanType"))
    kind = _KINDS.get(kind, kind) if isinstance(kind, str) else ""
    attributes: dict[str, Any] = {"openinference.span.kind": kind}
    for side, attribute in (("input", "mlflow.spanInputs"), ("output", "mlflow.spanOutputs")):
        value = _parsed(own.get(attribute))
        # JSON text stays JSON: the text in it is found as in any other tool's attributes.
        is_text = isinstance(value, str)
        attributes[f"{side}.value"] = value if is_text else own.get(attribute)
        attributes[f"{side}.mime_type"] = "text/plain" if is_text else "application/json"
        if side == "output" and kind == "RETRIEVER":
            attributes |= _documents(value)
        if side == "input" and kind == "TOOL":
            attributes |= {"tool.name": name, "tool.parameters": own.get(attribute)}
    usage = _parsed(own.get("mlflow.chat.tokenUsage"))
    if isinstance(usage, dict):
        attributes["llm.token_count.prompt"] = usage.get("input_tokens")
        attributes["llm.token_count.completion"] = usage.get("output_tokens")
    return {key: value for key, value in attributes.items() if value not in (None, "")}


def _documents(value: Any) -> dict[str, Any]:
    attributes: dict[str, Any] = {}
    for place, doc in enumerate(value if isinstance(value, list) else []):
        if isinstance(doc, dict):
            base = f"retrieval.documents.{place}.document"
            attributes[f"{base}.id"] = doc.get("id")
            attributes[f"{base}.content"] = doc.get("page_content")
            attributes[f"{base}.metadata"] = doc.get("metadata")
    return attributes


def _parsed(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    try:
        return parse_json(text.encode("utf-8", "surrogatepass"), "attribute")
    except DataError:
        return text
