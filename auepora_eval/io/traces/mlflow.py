"""Traces of MLflow as spans with the attributes of OpenInference.

One trace is `{"info": {"trace_id", "trace_metadata"}, "data": {"spans": [...]}}`. Every attribute is JSON:
`mlflow.spanType`, `mlflow.spanInputs`, `mlflow.spanOutputs`, `mlflow.chat.tokenUsage`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...errors import DataError
from ..json.text import parse_json

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
