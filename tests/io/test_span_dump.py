"""Dumps of spans: the same trace in every form that tools write, and what is no trace."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.errors import DataError
from auepora_eval.io.spans import Span, SpanDump

NESTED = {
    "name": "search",
    "context": {"trace_id": "0xab", "span_id": "0x2"},
    "parent_id": "0x1",
    "start_time": "2026-11-01T10:00:00.250000+00:00",
    "end_time": "2026-11-01T10:00:00.500000Z",
    "status_code": "OK",
    "attributes": {
        "openinference": {"span": {"kind": "RETRIEVER"}},
        "input": {"value": "how many?"},
        "retrieval": {"documents": [{"document": {"id": "d1", "content": "three", "score": 0.5}}]},
        "embedding": {"embeddings": [{"embedding.vector": [0.1] * 3}]},
    },
}
FLAT = {
    "name": "search",
    "span_kind": "RETRIEVER",
    "context.trace_id": "ab",
    "context.span_id": "2",
    "parent_id": "1",
    "start_time": 1793527200250,  # as pandas writes times to JSON
    "end_time": 1793527200500,
    "attributes.input.value": "how many?",
    "attributes.retrieval.documents": [
        {"document.id": "d1", "document.content": "three", "document.score": 0.5}
    ],
    "attributes.output.value": None,
}
DOTTED = {
    "traceId": "ab",
    "spanId": "2",
    "parentSpanId": "1",
    "name": "search",
    "startTimeUnixNano": "1793527200250000000",
    "endTimeUnixNano": "1793527200500000000",
    "attributes": [
        {"key": "openinference.span.kind", "value": {"stringValue": "RETRIEVER"}},
        {"key": "input.value", "value": {"stringValue": "how many?"}},
        {"key": "retrieval.documents.0.document.id", "value": {"stringValue": "d1"}},
        {"key": "retrieval.documents.0.document.content", "value": {"stringValue": "three"}},
        {"key": "retrieval.documents.0.document.score", "value": {"doubleValue": 0.5}},
    ],
}


def otlp(span: dict[str, Any]) -> dict[str, Any]:
    return {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}


OTLP = otlp(DOTTED)


def spans_of(path: Path) -> list[Span]:
    return list(SpanDump(path))


@pytest.mark.parametrize(
    ("content", "name"),
    [
        pytest.param(json.dumps(NESTED), "s.jsonl", id="one span a line, nested"),
        pytest.param(json.dumps(FLAT), "s.jsonl", id="one span a line, columns"),
        pytest.param(json.dumps(OTLP), "s.jsonl", id="OTLP, one document a line"),
        pytest.param(json.dumps(OTLP, indent=2), "s.json", id="OTLP, a document"),
        pytest.param(json.dumps([NESTED], indent=2), "s.json", id="a list of spans"),
        pytest.param("\ufeff" + json.dumps(FLAT) + "\r\n", "s.jsonl", id="as Windows writes it"),
    ],
)
def test_every_form_gives_the_same_span(tmp_path: Path, content: str, name: str) -> None:
    path = tmp_path / name
    for packed in (False, True):
        raw = content.encode()
        path.write_bytes(gzip.compress(raw) if packed else raw)
        (span,) = spans_of(path)
        assert (span.trace_id, span.span_id, span.parent_id, span.name) == ("ab", "2", "1", "search")
        assert (span.start_ns, span.seconds) == (1793527200_250000000, 0.25)
        assert span.attributes == {
            "openinference.span.kind": "RETRIEVER",
            "input.value": "how many?",
            "retrieval.documents.0.document.id": "d1",
            "retrieval.documents.0.document.content": "three",
            "retrieval.documents.0.document.score": 0.5,
        }
        assert span.error is None


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"status_code": "ERROR", "status_message": "boom"}, "boom"),
        ({"status": {"code": 2, "message": "boom"}}, "boom"),
        ({"status": {"status_code": "ERROR", "description": "boom"}}, "boom"),
        ({"status": {"code": "STATUS_CODE_ERROR"}}, ""),
        ({"status": {"code": 1}}, None),
        ({"status_code": "UNSET"}, None),
    ],
)
def test_errors_of_spans(tmp_path: Path, fields: dict[str, Any], error: str | None) -> None:
    (tmp_path / "s.jsonl").write_text(
        json.dumps({"trace_id": "a", "span_id": "b", **fields}), encoding="utf-8"
    )
    assert spans_of(tmp_path / "s.jsonl")[0].error == error


def test_a_bad_line_is_left_out_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    cut = json.dumps(FLAT)[:-20]
    path.write_text("\n".join(["oops", json.dumps(FLAT), "", cut]), encoding="utf-8")
    dump = SpanDump(path)
    assert len(list(dump)) == 1
    assert dump.left_out == {"no JSON object": 2}
    assert dump.first == {"no JSON object": "s.jsonl:1"}
    path.write_text(json.dumps([FLAT, 7, FLAT]), encoding="utf-8")
    dump = SpanDump(path)
    assert len(list(dump)) == 2
    assert dump.left_out == {"no JSON object": 1}


@pytest.mark.parametrize(
    "record",
    [
        {
            "context": {"trace_id": "a", "span_id": "b"},
            "events": [{"name": "e", "attributes": {"a": {"b": "c"}}}],
        },
        otlp(
            {
                "traceId": "a",
                "spanId": "b",
                "events": [{"name": "e", "attributes": [{"key": "a.b", "value": {"stringValue": "c"}}]}],
            }
        ),
    ],
    ids=["one span a line", "OTLP"],
)
def test_events_are_read(tmp_path: Path, record: dict[str, Any]) -> None:
    (tmp_path / "s.jsonl").write_text(json.dumps(record), encoding="utf-8")
    (span,) = spans_of(tmp_path / "s.jsonl")
    assert [(event.name, event.attributes) for event in span.events] == [("e", {"a.b": "c"})]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        pytest.param("not json", "s.jsonl:1", id="no JSON"),
        pytest.param("[1, 2]", "this is not a span", id="a list of numbers"),
        pytest.param('["' + "a" * 10 + '"', "s.jsonl", id="cut off"),
        pytest.param('{"attributes":' + "[" * 5000 + "]" * 5000 + "}", "nested too deeply", id="deep"),
    ],
)
def test_hostile_files_are_refused_in_words(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "s.jsonl").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=words):
        spans_of(tmp_path / "s.jsonl")
