"""Types for msgspec, made from a schema: what fits the type fits the schema (not the other way round).

A valid array of 20,000 records is accepted by one call into C; a refusal only means that the walk decides.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Union

import msgspec

_HUGE = sys.float_info.max  # bounds that every number keeps, and NaN and the infinities do not
_KNOWN = frozenset(
    "type title description properties required additionalProperties items minItems maxItems enum minLength "
    "minimum maximum".split()
)


class NotTyped(Exception):  # noqa: N818 - an answer, not an error: it never leaves the room
    """The schema says something that these types cannot say."""


def type_for(node: Mapping[str, Any], definition: Callable[[str], Mapping[str, Any]]) -> Any:
    """A type of which every value is valid by the schema; NotTyped if there is none to be made."""
    if "$ref" in node:
        node = definition(node["$ref"])
    if not _KNOWN.issuperset(node) or "type" not in node:
        raise NotTyped
    named = node["type"]
    makers: dict[str, Callable[[], Any]] = {
        "string": lambda: _text(node),
        "integer": lambda: _number(int, node),
        "number": lambda: _number(float, node),
        "boolean": lambda: bool,
        "null": lambda: None,
        "array": lambda: _array(node, definition),
        "object": lambda: _object(node, definition),
    }
    kinds = tuple(makers[name]() for name in ([named] if isinstance(named, str) else named))
    return Union[kinds]  # noqa: UP007 - made at run time


def _text(node: Mapping[str, Any]) -> Any:
    if "enum" in node:
        return Literal[tuple(node["enum"])]
    return Annotated[str, msgspec.Meta(min_length=node["minLength"])] if "minLength" in node else str


def _number(kind: type, node: Mapping[str, Any]) -> Any:
    low, high = node.get("minimum"), node.get("maximum")
    if kind is float:
        low, high = (-_HUGE if low is None else low), (_HUGE if high is None else high)
    if isinstance(low, float) and kind is int:
        raise NotTyped
    return Annotated[kind, msgspec.Meta(ge=low, le=high)]


def _array(node: Mapping[str, Any], definition: Callable[[str], Mapping[str, Any]]) -> Any:
    items: Any = type_for(node["items"], definition) if "items" in node else Any
    size = msgspec.Meta(min_length=node.get("minItems"), max_length=node.get("maxItems"))
    return Annotated[list[items], size]


def _object(node: Mapping[str, Any], definition: Callable[[str], Mapping[str, Any]]) -> Any:
    fields, rule = node.get("properties", {}), node.get("additionalProperties", True)
    required = node.get("required", ())
    if not fields and not required:
        return dict[str, Any] if rule is True else dict[str, type_for(rule, definition)]  # type: ignore[misc]
    if not isinstance(rule, bool):
        raise NotTyped
    parts: list[Any] = [
        (name, type_for(fields[name], definition) if name in fields else Any) for name in required
    ]
    parts += [
        (name, Union[type_for(part, definition), msgspec.UnsetType], msgspec.UNSET)  # noqa: UP007
        for name, part in fields.items()
        if name not in required
    ]
    return msgspec.defstruct("Record", parts, gc=False, forbid_unknown_fields=not rule)
