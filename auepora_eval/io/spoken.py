"""What was said in a conversation, in whichever JSON tools write one down.

    {"messages": [{"role": "user", "content": "How many?"}]}
    [["human", "How many?"], ["ai", "Three."]]
    {"choices": [{"message": {"role": "assistant", "content": "Three."}}]}

Contents are texts, or lists of parts (`{"type": "text", "text": ...}`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import DataError
from .json_text import parse_json

ASKING = ("user", "human")
ANSWERING = ("assistant", "ai", "model", "")
_OTHERS = ("system", "developer", "tool", "function")
_ROLES = {*ASKING, *ANSWERING, *_OTHERS} - {""}
_DEEPEST = 8
_MOST = 10_000  # messages
_WITHIN = ("messages", "choices", "generations", "message", "kwargs")


def parsed(text: str) -> Any:
    """The JSON that a text holds; None if it holds none."""
    try:
        return parse_json(text.encode("utf-8", "replace"), "attribute")
    except DataError:
        return None


def told(value: Any, keys: Sequence[str], roles: Sequence[str], depth: int = 0) -> str | None:
    """The text of a document: under one of the keys, or what one of these roles said last."""
    if isinstance(value, str):
        return value if value.strip() else None
    if depth > _DEEPEST or not isinstance(value, dict | list):
        return None
    if isinstance(value, dict) and not _role(value):
        for key in keys:
            if (text := told(value.get(key), keys, roles, depth + 1)) is not None:
                return text
    said = [text for role, text in conversation(value) if role in roles]
    return said[-1] if said else None


def conversation(value: Any) -> list[tuple[str, str]]:
    """(role, text) of every message in a document, in its order."""
    found: list[tuple[str, str]] = []
    for message in _said(value, 0):
        found.append(message)
        if len(found) >= _MOST:
            break
    return found


def _said(value: Any, depth: int) -> Iterator[tuple[str, str]]:
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        if len(value) == 2 and isinstance(value[0], str) and value[0].lower() in _ROLES:
            if text := content_text(value[1]):
                yield value[0].lower(), text
            return
        for each in value:
            yield from _said(each, depth + 1)
    elif isinstance(value, dict):
        role, text = _role(value), content_text(value.get("content", value.get("parts")))
        if role and text:
            yield role, text
            return
        inner = next((value[name] for name in _WITHIN if isinstance(value.get(name), dict | list)), None)
        if inner is not None:
            yield from _said(_with_role(inner, role), depth + 1)
        elif isinstance(value.get("text"), str) and value["text"].strip() and depth:
            yield "", value["text"]


def _role(message: Mapping[str, Any]) -> str:
    """Who says it: by its role or type, or by the name of its class, as LangChain writes them."""
    for name in ("role", "type"):
        role = message.get(name)
        if isinstance(role, str) and role.lower() in _ROLES:
            return role.lower()
    path = message.get("id")
    name = path[-1] if isinstance(path, list) and path else ""
    role = name.lower().partition("message")[0] if isinstance(name, str) and "Message" in name else ""
    return role if role in _ROLES else ""


def _with_role(inner: Any, role: str) -> Any:
    return {**inner, "role": role} if role and isinstance(inner, dict) and not _role(inner) else inner


def content_text(content: Any) -> str:
    """The text of a message's content: a text, or parts of which some are texts."""
    if isinstance(content, str):
        return content if content.strip() else ""
    if not isinstance(content, list):
        return ""
    texts = [part if isinstance(part, str) else _part(part) for part in content]
    return "\n".join(text for text in texts if text.strip())


def _part(part: Any) -> str:
    if not isinstance(part, dict) or part.get("type", "text") != "text":
        return ""
    text = part.get("text", part.get("content"))
    return text if isinstance(text, str) else ""
