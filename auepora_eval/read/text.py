"""JSON text to plain data: what is wrong with it, in words; and nothing that could do harm."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

import msgspec

from ..errors import DataError

MAX_DEPTH = 100  # what is read must also be copied and written, by code that recurses
TOO_DEEP = "the JSON is nested too deeply."
FLATTEN = "Flatten the record."
_ONE_OBJECT = "Write one JSON object per line."  # the fix of every line that is not an object
_CONTAINERS = frozenset({dict, list})
_decode = msgspec.json.Decoder().decode


def parse_document(content: bytes, where: str) -> Any:
    """Return the value of a file that is one JSON document; DataError as `parse_json` raises it."""
    return parse_json(content, where, hint="Write one JSON document.")


def parse_settings(content: bytes, where: str) -> Any:
    """Return the value of a configuration file; DataError also for a repeated key."""

    def checked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        repeated = next((key for number, key in enumerate(keys) if key in keys[:number]), None)
        if repeated is not None:
            raise DataError(where, f"the key {repeated!r:.60} occurs twice.", fix="Keep one of them.")
        return dict(pairs)

    value = parse_document(content, where)
    json.loads(content, object_pairs_hook=checked)
    return value


def parse_json(content: bytes, where: str, *, hint: str = "") -> Any:
    """Return the value of a JSON text; DataError if it is not JSON, or is nested too deeply."""
    try:
        value = _decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _not_json(where, content, error, hint) from error
    if is_deep(value):
        path = next(path for path, depth, _ in walk(value) if depth > MAX_DEPTH)
        raise DataError(f"{where}: {path:.80}", TOO_DEEP, fix=FLATTEN)
    return value


def parsed(value: Any) -> Any:
    """The JSON that a text holds, None if it holds none; any other value as it is."""
    try:
        return parse_json(value.encode("utf-8", "replace"), "text") if isinstance(value, str) else value
    except DataError:
        return None


def parse_line(line: bytes, where: str) -> dict[str, Any]:
    """The record on a line; DataError if it is none, or one that could do harm."""
    # Without its end: a line that is cut off within a text has the same error wherever it stands.
    record = parse_json(line.rstrip(b"\r\n"), where, hint=_ONE_OBJECT)
    if not isinstance(record, dict):
        raise DataError(f"{where}: $", f"an object was expected, not {kind_of(record)}.", fix=_ONE_OBJECT)
    return record


def is_deep(value: Any) -> bool:
    """Return whether plain data are nested too deeply: one level after the other, without recursion."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        inner = chain.from_iterable(
            each.values() if type(each) is dict else each for each in level if type(each) in _CONTAINERS
        )
        level = [each for each in inner if type(each) in _CONTAINERS]
        if not level:
            return False
    return True


def may_be_deep(line: bytes) -> bool:
    """Return whether a text has enough brackets to be nested too deeply."""
    return line.count(b"{") + line.count(b"[") > MAX_DEPTH


def walk(document: Any) -> Iterator[tuple[str, int, Any]]:
    """Yield (JSON path, depth, value) of everything in a document, without recursion."""
    rest: list[tuple[str, int, Any]] = [("$", 0, document)]
    while rest:
        path, depth, value = rest.pop()
        yield path, depth, value
        if isinstance(value, dict):
            rest.extend((f"{path}.{key}", depth + 1, part) for key, part in value.items())
        elif isinstance(value, list | tuple):
            rest.extend((f"{path}[{place}]", depth + 1, part) for place, part in enumerate(value))


def kind_of(value: Any) -> str:
    """What a value is, in the words of JSON."""
    names = {
        dict: "an object",
        list: "an array",
        str: "a string",
        bool: "a boolean",
        int: "a number",
        float: "a number",
    }
    return "null" if value is None else names.get(type(value), type(value).__name__)


def _not_json(where: str, content: bytes, error: Exception, hint: str) -> DataError:
    """Return the parser's error with the line, if there are several, and what to do."""
    check_same_text(content, where)
    if not content.strip():
        return DataError(where, "there is nothing in it.", fix=hint)
    if isinstance(error, RecursionError):
        return DataError(where, TOO_DEEP, fix=FLATTEN)
    message = str(error).removeprefix("JSON is malformed: ")
    if place := re.search(r"\(byte (\d+)\)", message):
        start = int(place[1])
        if b"\n" in content.rstrip():
            where = f"{where}:{content.count(bytes([10]), 0, start) + 1}"
        if content[start:].startswith((b"NaN", b"Infinity", b"nfinity")):
            hint = "JSON has no NaN and no Infinity: write null."
    message = message.replace("`", "'")
    return DataError(where, f"not JSON: {message}.", fix=hint)


def check_same_text(content: bytes, where: str) -> None:
    """DataError if what should be JSON, YAML or CSV is not UTF-8, or a page of the web."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as bad:
        what = f"byte {bad.start + 1} is not UTF-8 ({bad.reason})."
        raise DataError(where, what, fix="Save the file as UTF-8.") from None
    start = content[:1000].lstrip()[:20].lower()
    if b"\0" in start:
        what = "there are NUL characters in it: the text is UTF-16, or no text at all."
        raise DataError(where, what, fix="Save the file as UTF-8.")
    if start.startswith((b"<!doctype", b"<html", b"<?xml")):
        what = "this is an HTML or XML page, not data."
        raise DataError(where, what, fix="Did a download fail? Get the file itself.")
