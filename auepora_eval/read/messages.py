"""Conversations: who said what, in whichever JSON tools write one down.

| {"messages": [{"role": "user", "content": "How many?"}]}         OpenAI
| [{"type": "human", "content": "How many?"}]                      ragas, LangChain
| [{"speaker": "user", "text": "How many?"}]                       MTRAG
| [["human", "How many?"], ["ai", "Three."]]
| [["How many?", "Three."]]                                        Gradio, chains
| [{"question": "How many?", "answer": "Three."}]
| {"choices": [{"message": {"role": "assistant", "content": "Three."}}]}

Contents are texts, or lists of parts (`{"type": "text", "text": ...}`). The earlier turns of a sample are in
its metadata, under `HISTORY`, as OpenAI writes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from ..core.types import EvaluationSample
from .names import ANSWER_PARTS, QUERY_PARAMETERS

HISTORY = "history"  # in the metadata of a sample
ASKING = ("user", "human")
# "": the text of a completion API, which names no role.
ANSWERING = ("assistant", "ai", "model", "agent", "")
_OTHERS = ("system", "developer", "tool", "function")
_ROLES = {*ASKING, *ANSWERING, *_OTHERS} - {""}
_MAX_DEPTH = 8
_MAX_MESSAGES = 10_000  # of one document
# Where documents have their messages.
_WITHIN = ("messages", "choices", "generations", "message", "kwargs")
Turn = dict[str, str]


class Conversation(NamedTuple):
    """The last question, the turns before it, and the answer after it, if there is one."""

    history: list[Turn]
    question: str | None
    answer: str | None


def conversation_in(value: Any) -> Conversation:
    """Return the conversation of a list of messages; without a question if nobody asks in it."""
    turns = turns_in(value)
    asked = [place for place, turn in enumerate(turns) if turn["role"] == "user"]
    if not asked:
        return Conversation([], None, None)
    answers = [turn["content"] for turn in turns[asked[-1] + 1 :] if turn["role"] == "assistant"]
    return Conversation(turns[: asked[-1]], turns[asked[-1]]["content"], answers[-1] if answers else None)


def turns_in(value: Any) -> list[Turn]:
    """Return the messages of a document as turns; a pair, or an object with both texts, is two of them."""
    found = list(islice(_messages_in(value), _MAX_MESSAGES))
    if not found and isinstance(value, list):
        are_texts = len(value) % 2 == 0 and all(isinstance(text, str) for text in value)
        exchanges = list(zip(value[::2], value[1::2], strict=True)) if are_texts else value
        found = [turn for exchange in exchanges[:_MAX_MESSAGES] for turn in _exchange(exchange)]
    return [_turn(role, text) for role, text in found]


def _exchange(value: Any) -> list[tuple[str, str]]:
    """Return what was asked and answered: ["How many?", "Three."], {"question": ..., "answer": ...}."""
    if isinstance(value, dict):
        inner = [
            each for each in value.values() if isinstance(each, dict)
        ]  # {"inputs": {...}, "outputs": ...}
        parts = {name: text for each in (*inner, value) for name, text in each.items()}
        asked, said = (
            next((parts[name] for name in names if isinstance(parts.get(name), str)), "")
            for names in ((*QUERY_PARAMETERS, *ASKING), (*ANSWER_PARTS, *ANSWERING))
        )
    elif isinstance(value, list | tuple) and len(value) == 2:
        asked, said = value
    else:
        return []
    turns = ((role, content_text(text)) for role, text in (("user", asked), ("assistant", said)))
    return [turn for turn in turns if turn[1]]


def history_of(sample: EvaluationSample) -> list[Turn]:
    """Return the earlier turns of a sample; none if it is not part of a conversation."""
    history = sample.metadata.get(HISTORY)
    return turns_in(history) if isinstance(history, list) else []


def messages_of(sample: EvaluationSample) -> list[Turn]:
    """Return a sample as messages: its earlier turns and its question."""
    return [*history_of(sample), {"role": "user", "content": sample.query}]


def _turn(role: str, text: str) -> Turn:
    name = "user" if role in ASKING else "assistant" if role in ANSWERING else role
    return {"role": name, "content": text}


def text_in(value: Any, keys: Sequence[str], roles: Sequence[str], depth: int = 0) -> str | None:
    """Return the text of a document: under one of the keys, or the last message of one of these roles."""
    if isinstance(value, str):
        return value if value.strip() else None
    if depth > _MAX_DEPTH or not isinstance(value, dict | list):
        return None
    if isinstance(value, dict) and not _role(value):
        for key in keys:
            if (text := text_in(value.get(key), keys, roles, depth + 1)) is not None:
                return text
    messages = islice(_messages_in(value), _MAX_MESSAGES)
    texts = [text for role, text in messages if role in roles]
    return texts[-1] if texts else None


def _messages_in(value: Any, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Yield (role, text) of each message in a document, in its order."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        if len(value) == 2 and isinstance(value[0], str) and value[0].lower() in _ROLES:
            if text := content_text(value[1]):
                yield value[0].lower(), text
            return
        for each in value:
            yield from _messages_in(each, depth + 1)
    elif isinstance(value, dict):
        role = _role(value)
        content = next((value[name] for name in ("content", "parts", "text") if name in value), None)
        if role and (text := content_text(content)):
            yield role, text
            return
        inner = next((value[name] for name in _WITHIN if isinstance(value.get(name), dict | list)), None)
        if inner is not None:
            yield from _messages_in(_with_role(inner, role), depth + 1)
        elif isinstance(value.get("text"), str) and value["text"].strip() and depth:
            yield "", value["text"]


def _role(message: Mapping[str, Any]) -> str:
    """Return who says it: by its role or type, or by the name of its class, as LangChain writes them."""
    for name in ("role", "type", "speaker"):
        role = message.get(name)
        if isinstance(role, str) and role.lower() in _ROLES:
            return role.lower()
    path = message.get("id")
    name = path[-1] if isinstance(path, list) and path else ""
    role = name.lower().partition("message")[0] if isinstance(name, str) and "Message" in name else ""
    return role if role in _ROLES else ""


def _with_role(inner: Any, role: str) -> Any:
    """Return the inner message with the role of the one around it, unless it has its own."""
    return {**inner, "role": role} if role and isinstance(inner, dict) and not _role(inner) else inner


def content_text(content: Any) -> str:
    """Return the text of a message's content: a text, or parts of which some are texts."""
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
