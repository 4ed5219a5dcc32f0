"""Spans as OpenTelemetry's ConsoleSpanExporter prints them: indented documents one after the other."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.errors import DataError
from auepora_eval.io.traces.spans import SpanDump
from auepora_eval.io.traces.traces import TraceReader


def a_span(number: int, **attributes: Any) -> dict[str, Any]:
    context = {"trace_id": f"0x{number + 1:032x}", "span_id": f"0x{number + 1:016x}", "trace_state": "[]"}
    told = {"openinference.span.kind": "CHAIN", "input.value": f"}}\n{{ {number}?", "output.value": "yes"}
    return {"name": "chain", "context": context, "parent_id": None, "attributes": told | attributes}


def printed(*spans: dict[str, Any], indent: int = 4) -> bytes:
    return "".join(json.dumps(span, indent=indent) + "\n" for span in spans).encode()


def questions(path: Path) -> list[str]:
    return [trace.sample.query for trace in TraceReader().add(SpanDump(path))]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_all_of_them_are_read(tmp_path: Path, count: int, packed: bool) -> None:
    content = printed(*(a_span(n) for n in range(count)))
    path = tmp_path / "console.json"
    path.write_bytes(gzip.compress(content) if packed else content)
    assert questions(path) == [f"}}\n{{ {n}?" for n in range(count)]


def test_what_the_sdk_itself_prints(tmp_path: Path) -> None:
    trace = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    out = io.StringIO()
    provider = trace.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(export.ConsoleSpanExporter(out=out)))
    for name in ("Who?", "Why?"):
        with provider.get_tracer("x").start_as_current_span("chain") as span:
            span.set_attribute("input.value", name)
            span.set_attribute("output.value", "yes")
    provider.shutdown()
    (tmp_path / "c.json").write_text(out.getvalue(), encoding="utf-8")
    assert questions(tmp_path / "c.json") == ["Who?", "Why?"]


def test_the_last_one_may_be_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "console.json"
    path.write_bytes(printed(a_span(0), a_span(1), a_span(2))[:-40])
    dump = SpanDump(path)
    assert len(list(dump)) == 2
    lines = printed(a_span(0)).count(b"\n")
    assert dump.first == {"no JSON object": f"console.json:{2 * lines + 1}"}


def test_one_document_that_is_damaged_is_refused_as_before(tmp_path: Path) -> None:
    path = tmp_path / "console.json"
    path.write_bytes(printed(a_span(0))[:-40])
    with pytest.raises(DataError, match="the JSON ends in the middle"):
        list(SpanDump(path))


@pytest.mark.parametrize(
    "value",
    [
        {"question": "Who?"},
        {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who?"}]},
        [["human", "Who?"]],
    ],
)
def test_a_value_may_be_an_object_rather_than_its_text(tmp_path: Path, value: Any) -> None:
    spans = [a_span(0, **{"input.value": value}), a_span(1, **{"input.value": json.dumps(value)})]
    nested = a_span(2)
    nested["attributes"] = {"input": {"value": value}, "output": {"value": {"answer": "yes"}}}
    path = tmp_path / "spans.jsonl"
    path.write_text("".join(json.dumps(span) + "\n" for span in [*spans, nested]), encoding="utf-8")
    traces = list(TraceReader().add(SpanDump(path)))
    assert [trace.sample.query for trace in traces] == ["Who?"] * 3
    assert [trace.output.response.text for trace in traces] == ["yes"] * 3
