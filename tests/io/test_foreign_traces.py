"""Traces of MLflow and of OpenInference: metadata of documents, conversations, tools, ids in the metadata."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.quality.imported_traces import import_traces

SHARED = Path(__file__).parents[3] / "shared" / "data" / "interop"


def span(number: int, kind: str, parent: int | None = None, **attributes: Any) -> dict[str, Any]:
    return {
        "context": {"trace_id": "t1", "span_id": f"s{number}"},
        "parent_id": None if parent is None else f"s{parent}",
        "name": kind.lower(),
        "attributes": {"openinference.span.kind": kind, **attributes},
    }


SPANS = [
    span(1, "CHAIN", None, **{"input.value": "How many?", "output.value": "22", "session.id": "conv-1"}),
    span(
        2,
        "RETRIEVER",
        1,
        **{
            "retrieval.documents.0.document.content": "It carries 22 cars.",
            "retrieval.documents.0.document.metadata": '{"source": "ferry.md", "start_index": 4}',
        },
    ),
    span(3, "TOOL", 1, **{"tool.name": "search", "tool.parameters": '{"q": "cars"}'}),
]


def imported(path: Path, **options: Any) -> Any:
    (pair,) = import_traces(path, **options).pairs
    return pair


def test_openinference_keeps_metadata_conversation_and_tools(tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    path.write_text("\n".join(map(json.dumps, SPANS)))
    sample, output = imported(path)
    assert sample.metadata == {"conversation_id": "conv-1", "cluster": "conv-1"}
    assert output.extra["tool_calls"] == [{"name": "search", "arguments": {"q": "cars"}}]
    (hit,) = output.retrieved
    assert hit.doc.doc_id.startswith("text-")
    assert (hit.doc.metadata["source"], hit.doc.metadata["start_index"]) == ("ferry.md", 4)
    _, output = imported(path, doc_id="metadata.source")
    assert output.retrieved[0].doc.doc_id == "ferry.md"


def mlflow_span(name: str, kind: str, parent: str | None, inputs: Any, outputs: Any) -> dict[str, Any]:
    attributes = {"mlflow.spanType": kind, "mlflow.spanInputs": inputs, "mlflow.spanOutputs": outputs}
    return {
        "trace_id": "AAE=",
        "span_id": name,
        "parent_span_id": parent,
        "name": name,
        "start_time_unix_nano": 1_794_843_736_000_000_000,
        "end_time_unix_nano": 1_794_843_737_000_000_000,
        "status": {"code": "STATUS_CODE_OK", "message": ""},
        "attributes": {key: json.dumps(value) for key, value in attributes.items()},
    }


def test_mlflow_trace(tmp_path: Path) -> None:
    docs = [{"page_content": "It carries 22 cars.", "metadata": {"doc_uri": "ferry"}, "id": "f1"}]
    chat = mlflow_span("chat", "CHAT_MODEL", "rag", {"messages": []}, {"choices": []})
    chat["attributes"]["mlflow.chat.tokenUsage"] = '{"input_tokens": 5, "output_tokens": 2}'
    trace = {
        "info": {"trace_id": "tr-1", "trace_metadata": {"mlflow.trace.session": "conv-1"}},
        "data": {
            "spans": [
                mlflow_span("rag", "CHAIN", None, {"question": "How many?"}, "22"),
                mlflow_span("retrieve", "RETRIEVER", "rag", {"query": "How many?"}, docs),
                chat,
            ]
        },
    }
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(trace))
    sample, output = imported(path)
    assert (sample.sample_id, sample.query, sample.metadata["cluster"]) == ("tr-1", "How many?", "conv-1")
    assert output.response.text == "22"
    assert [(hit.doc.doc_id, hit.doc.metadata["doc_uri"]) for hit in output.retrieved] == [("f1", "ferry")]
    assert (output.extra["input_tokens"], output.extra["output_tokens"]) == (5, 2)
    assert output.timings["end_to_end"] == 1.0


@pytest.mark.skipif(not SHARED.is_dir(), reason="the sample files of other tools are not here")
@pytest.mark.parametrize(
    ("name", "count", "doc_id"),
    [
        ("mlflow/trace_written_by_mlflow.json", 1, "ferry"),
        ("mlflow/made_trace.json", 1, "ferry"),
        ("openinference/oi_console.json", 2, "ferry-annet"),
        ("openinference/langchain_console_spans.json", 4, "billing.md"),
    ],
)
def test_sample_files(tmp_path: Path, name: str, count: int, doc_id: str) -> None:
    path = "metadata.doc_uri" if "mlflow" in name else "metadata.source"
    pairs = import_traces(SHARED / name, doc_id=path).pairs
    assert len(pairs) == count
    assert pairs[0][1].retrieved[0].doc.doc_id == doc_id
