"""Raw tasks as people write them: null in a list, one text where a list belongs, a number for a text."""

from __future__ import annotations

from typing import Any

_TEXTS = (
    "task_id",
    "task_type",
    "instruction",
    "question",
    "prompt",
    "expected_response",
    "answer",
    "response",
    "reference_answer",
    "reference_summary",
    "rag_prompt",
)
_LISTS = ("contexts", "sources", "retrieved", "citations", "answer_citations")


def tidied(record: dict[str, Any]) -> dict[str, Any]:
    """The record with what is missing left out, single values in lists, and numbers as texts."""
    tidy: dict[str, Any] = {}
    for name, value in record.items():
        if value is None:
            continue
        if name in _TEXTS:
            value = _text(value)
        elif name in _LISTS:
            value = _list(value)
        elif name == "rag" and isinstance(value, dict):
            value = tidied(value)
        tidy[name] = value
    return tidy


def _text(value: Any) -> Any:
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        return value["text"]  # a reference may come as {"text": ...}
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return value


def _list(value: Any) -> list[Any]:
    entries = value if isinstance(value, list) else [value]
    return [entry for entry in entries if entry is not None]
