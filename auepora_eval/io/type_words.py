"""What msgspec says of a record that is not of its type, in the words of our schemas."""

from __future__ import annotations

import re

import msgspec

_A = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "an array",
    "null": "null",
}
_GOT = {**_A, "int": "a number", "bool": "a boolean"}
_EXPECTED = re.compile(r"Expected `(?P<types>[^`]+)`, got `(?P<got>[^`]+)`")
_MISSING = re.compile(r"Object missing required field `(?P<name>[^`]+)`")


def wrong_record(error: msgspec.ValidationError) -> tuple[str, str, str]:
    """(JSON path, what is wrong, what to do) of a record that could not be converted.

    >>> try:
    ...     msgspec.convert({"a": 5}, dict[str, str | None])
    ... except msgspec.ValidationError as error:
    ...     wrong_record(error)
    ('$[...]', 'a string or null was expected, not a number.', 'Put it in quotes.')
    """
    message, _, path = str(error).partition(" - at `")
    return path.rstrip("`") or "$", *_in_words(message)


def _in_words(message: str) -> tuple[str, str]:
    missing = _MISSING.fullmatch(message)
    if missing is not None:
        return f"the field {missing['name']!r} is missing.", "Add it."
    wrong = _EXPECTED.fullmatch(message)
    if wrong is None:
        return f"{message[:1].lower()}{message[1:]}.".replace("`", "'"), "Change it."
    types = sorted(wrong["types"].split(" | "), key=lambda name: name == "null")
    names = [_A.get(name, name) for name in types]
    expected = " or ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    fraction = wrong["got"] == "float" and "int" in types and "float" not in types
    got = "a fraction" if fraction else _GOT.get(wrong["got"], wrong["got"])
    return f"{expected} was expected, not {got}.", _remedy(types, wrong["got"])


def _remedy(types: list[str], got: str) -> str:
    if "str" in types and got in ("int", "float"):
        return "Put it in quotes."
    return "Change it, or write null." if "null" in types else "Change it."
