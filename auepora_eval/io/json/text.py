"""JSON text to plain data: what is wrong with it, in words; and nothing that could do harm."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from ...errors import DataError

MAX_DEPTH = 100  # what is read must also be copied and written, by code that recurses
TOO_DEEP = "the JSON is nested too deeply."
FLATTEN = "Flatten the record."
_decode, _encode = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode


def parse_document(content: bytes, where: str) -> Any:
    """Return the value of a file that is one JSON document; DataError as `parse_json` raises it."""
    return parse_json(content, where, hint="Write one JSON document.")


def parse_json(content: bytes, where: str, *, hint: str = "") -> Any:
    """Return the value of a JSON text; DataError if it is not JSON, or could do harm.

    A key that an object has twice is an error: parsers keep one of the two, and not all of them the same one.
    """
    try:
        value = _decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _not_json(where, content, error, hint) from error
    if may_do_harm(content):
        _check_depth_and_size(value, where)
    if may_repeat_a_key(content, value):
        _check_unique_keys(content, where)
    return value


def may_repeat_a_key(content: bytes, value: Any) -> bool:
    """Return whether an object of a JSON text may have a key twice, by the value that was decoded from it.

    Each key has a colon. Written again, the value lacks those of the keys that the parser dropped. Colons in
    texts are the same in both, unless they are escaped. A struct must write exactly the fields that were
    given: by `msgspec.UNSET`, or by `omit_defaults`.
    """
    return lacks_a_colon(content, _encode(value))


def lacks_a_colon(content: bytes, written: bytes) -> bool:
    """Return whether JSON that was read and written again may have lost a key (`may_repeat_a_key`)."""
    # The search for a single character is the fastest by far. Without a hit of \u003, one search is enough.
    is_escaped = (
        b"\\" in content and b"\\u003" in content and (b"\\u003a" in content or b"\\u003A" in content)
    )
    return is_escaped or _colon_count(content) != _colon_count(written)


def may_do_harm(content: bytes) -> bool:
    """Return whether JSON is nested too deeply, or may have a number that is too large."""
    return may_be_deep(content) or may_be_huge(content)


def may_be_deep(content: bytes, siblings: int = 0) -> bool:
    """Return whether JSON is nested too deeply.

    `siblings` is the number of objects that are known not to be nested in each other.
    """
    many = content.count(b"{") + content.count(b"[") - siblings > MAX_DEPTH
    return many and _depth(_decode(content)) > MAX_DEPTH


def _check_depth_and_size(value: Any, where: str) -> None:
    for path, depth, part in walk(value):
        if depth > MAX_DEPTH:
            raise DataError(f"{where}: {path:.80}", TOO_DEEP, fix=FLATTEN)
        if isinstance(part, int) and abs(part) > 2**1023:
            raise DataError(f"{where}: {path:.80}", "the number is too large.", fix="Write it as a string.")


_LARGE = 1_000_000  # bytes


def _colon_count(content: bytes) -> int:
    if len(content) > _LARGE:
        return content.count(b":")
    # More than twice as fast, but it copies the text.
    return len(content) - len(content.replace(b":", b""))


def _check_unique_keys(content: bytes, where: str) -> None:
    """DataError if an object of a JSON text has a key twice."""
    document = json.loads(content, object_pairs_hook=_Pairs)
    for path, _, part in walk(document):
        if isinstance(part, _Pairs) and part.repeated is not None:
            raise DataError(
                f"{where}: {path:.80}",
                f"the key {part.repeated!r:.60} occurs twice.",
                fix="Keep one of them.",
            )


class _Pairs(dict[str, Any]):
    """An object that remembers a key that occurs twice."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(pairs)
        counts = Counter(key for key, _ in pairs)
        self.repeated = next((key for key, count in counts.items() if count > 1), None)


def _depth(value: Any) -> int:
    """Return the number of levels of a value."""
    depth, level = 0, [value]
    while level:
        depth += 1
        containers = [part for part in level if type(part) in _CONTAINERS]
        level = [part for each in containers for part in (each.values() if type(each) is dict else each)]
    return depth


_CONTAINERS = (dict, list)


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


_TWO_DIGITS = re.compile(rb"[0-9](?=[0-9])")


def may_be_huge(content: bytes) -> bool:
    """Return whether a text may hold a number that no float can hold. It seldom does: the look is quick."""
    # 309 digits in a row, the least that a float cannot hold, are digits at two places in a row of every
    # 150th, and everything between these.
    if len(content) < 309:
        return False
    seen = content[::150]
    return any(
        content[150 * match.start() : 150 * match.start() + 151].isdigit()
        for match in _TWO_DIGITS.finditer(seen)
    )


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
    """What is wrong with a text, in words, and what to do; the parser's words where we know no better."""
    check_same_text(content, where)
    text = content.rstrip().decode("utf-8")
    if not text:
        return DataError(where, "there is nothing in it.", fix=hint)
    message = str(error)
    if isinstance(error, RecursionError):
        return DataError(where, TOO_DEEP, fix=FLATTEN)
    if _HALF_PAIR.search(text) and ("surrogate" in message or "truncated" in message):
        return DataError(where, "a text holds half of a surrogate pair (\\ud800).", fix="Clean the text.")
    if "out of range" in message or "invalid character" in message:
        path = _path_of_no_number(text)
        if path:
            what = "NaN, Infinity and numbers beyond 1e308 are not JSON."
            return DataError(f"{where}: {path:.80}", what, fix="Write null.")
    if "out of range" in message:
        return DataError(where, "a number is too large.", fix="Write it as a string.")
    if "truncated" in message:
        return DataError(where, "the JSON ends in the middle.", fix="Was it cut off? Complete or remove it.")
    return _syntax_error(where, content, message, hint)


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


def _syntax_error(where: str, content: bytes, message: str, hint: str) -> DataError:
    """Return the parser's error with the line, if there are several, and the character that it stopped at."""
    message = message.removeprefix("JSON is malformed: ").replace(
        "trailing characters", "more follows behind the document"
    )
    words, _, rest = message.partition(" (byte ")
    if rest:
        place = int(rest.rstrip(")"))
        if b"\n" in content.rstrip():
            line = content.count(b"\n", 0, place) + 1
            where = f"{where}:{line}"
        if content[place:].startswith((b"//", b"/*", b"#")):
            return DataError(where, "JSON has no comments.", fix="Remove what starts with // or #.")
        character = f" {content[place : place + 4].decode('utf-8', 'replace')[:1]!r}"
        message = f"{words}{character if words.endswith('character') else ''} (byte {place + 1})"
    return DataError(where, f"not JSON: {message}.", fix=hint)


# \ud800 without \udc00 behind it, or the other way round: UTF-8 cannot hold it.
_HALF_PAIR = re.compile(r"\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F]")


def _path_of_no_number(text: str) -> str:
    """The JSON path of a NaN or an infinity, if the text would be JSON but for that."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    return next(
        (path for path, _, value in walk(document) if isinstance(value, float) and not math.isfinite(value)),
        "",
    )
