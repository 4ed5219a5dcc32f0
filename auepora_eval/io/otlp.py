"""Spans, and OTLP: the JSON in which OpenTelemetry's collectors take and give them.

One document is `{"resourceSpans": [{"resource", "scopeSpans": [{"scope", "spans": [...]}]}]}`; a file has
one a line. Attributes are lists of `{"key", "value": {"stringValue": ...}}`, whole numbers are texts, times
count nanoseconds since 1970.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

INTERNAL, CLIENT = 1, 3
_ERROR = 2
_MOST_NESTED = 20


@dataclass
class SpanEvent:
    """Something that happened at one moment of a span."""

    name: str
    time_ns: int
    attributes: dict[str, Any] = field(default_factory=dict)


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
    attributes: dict[str, Any] = field(default_factory=dict)
    events: list[SpanEvent] = field(default_factory=list)
    error: str | None = None  # what went wrong; None if nothing is said to have

    @property
    def seconds(self) -> float | None:
        """How long it took; None where that is not known."""
        if self.start_ns is None or self.end_ns is None or self.end_ns < self.start_ns:
            return None
        return (self.end_ns - self.start_ns) / 1e9


def otlp_document(
    spans: Iterable[Span], resource: Mapping[str, Any], scope: str, version: str
) -> dict[str, Any]:
    """Spans as a document of OTLP."""
    scoped = {"scope": {"name": scope, "version": version}, "spans": [_span_record(span) for span in spans]}
    return {"resourceSpans": [{"resource": {"attributes": _pairs(resource)}, "scopeSpans": [scoped]}]}


def _span_record(span: Span) -> dict[str, Any]:
    record: dict[str, Any] = {
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


def _pairs(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _wrapped(value)} for key, value in attributes.items() if value is not None]


def _wrapped(value: Any) -> dict[str, Any]:
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


def is_otlp(record: Mapping[str, Any]) -> bool:
    """Whether a document is one of OTLP with spans."""
    return isinstance(record.get("resourceSpans"), list)


def otlp_spans(document: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, span) of a document, each span with plain `attributes`; what is no object is passed over."""
    for n, resource in _objects(document.get("resourceSpans")):
        # Documents of before 2022 have another name for the scope.
        for m, scoped in _objects(resource.get("scopeSpans") or resource.get("instrumentationLibrarySpans")):
            for k, span in _objects(scoped.get("spans")):
                place = f"$.resourceSpans[{n}].scopeSpans[{m}].spans[{k}]"
                events = [_unwrapped_span(event) for _, event in _objects(span.get("events"))]
                yield place, {**_unwrapped_span(span), "events": events}


def _unwrapped_span(record: dict[str, Any]) -> dict[str, Any]:
    """A span or an event with plain attributes."""
    return {**record, "attributes": _unwrapped_pairs(record.get("attributes"))}


def _objects(value: Any) -> Iterator[tuple[int, dict[str, Any]]]:
    if isinstance(value, list):
        yield from ((place, each) for place, each in enumerate(value) if isinstance(each, dict))


def _unwrapped_pairs(pairs: Any, depth: int = 0) -> dict[str, Any]:
    if isinstance(pairs, dict):  # some tools write attributes as plain objects
        return pairs
    return {
        pair["key"]: _unwrapped(pair.get("value"), depth)
        for _, pair in _objects(pairs)
        if isinstance(pair.get("key"), str)
    }


def _unwrapped(value: Any, depth: int) -> Any:
    if not isinstance(value, dict) or depth > _MOST_NESTED:
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
