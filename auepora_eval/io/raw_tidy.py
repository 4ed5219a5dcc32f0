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
_SIDE_BY_SIDE = ("contexts", "sources", "retrieved", "citations")  # the second of each belong together
_LISTS = (*_SIDE_BY_SIDE, "answer_citations")


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


def misaligned(record: dict[str, Any]) -> str | None:
    """What to say of lists in which null stands at different places; None if it can be left out.

    Left out of contexts [null, "b"] and of sources ["a", null], "b" would get a source that is not its own.
    """
    rag = record.get("rag")
    of_rag = rag if isinstance(rag, dict) else {}
    first: tuple[str, list[int]] | None = None
    for name in _SIDE_BY_SIDE:
        entries = record.get(name) if of_rag.get(name) is None else of_rag[name]
        if not isinstance(entries, list):
            continue
        filled = [place for place, entry in enumerate(entries) if entry is not None]
        if first is None:
            first = name, filled
        elif any(one != other for one, other in zip(first[1], filled, strict=False)):
            return f"{first[0]} and {name} have null at different places. Leave out both, or neither."
    return None


def with_the_rest_in_metadata(
    record: dict[str, Any], known: frozenset[str], known_of_rag: frozenset[str]
) -> dict[str, Any]:
    """A record of known fields alone; the others are in its metadata, under a name_ if the name is taken."""
    kept = {name: value for name, value in record.items() if name in known}
    rest = {name: value for name, value in record.items() if name not in known}
    rag, metadata = record.get("rag"), record.get("metadata", {})
    if isinstance(rag, dict) and not rag.keys() <= known_of_rag:
        kept["rag"] = {name: value for name, value in rag.items() if name in known_of_rag}
        rest["rag"] = {name: value for name, value in rag.items() if name not in known_of_rag}
    if rest and isinstance(metadata, dict):
        metadata = dict(metadata)
        for name, value in rest.items():
            while metadata.setdefault(name, value) != value:
                name += "_"
        kept["metadata"] = metadata
    return kept
