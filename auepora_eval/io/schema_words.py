"""What the checker of schemas says: the place as a JSON path, what is wrong, what to do."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from .json_text import kind_of

Steps = tuple[str | int, ...]
_LOOKED_AT = 50  # names that are compared when one is misspelt: a hostile object may have a million

_A = {
    "object": "an object",
    "array": "an array",
    "string": "a string",
    "number": "a number",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "null",
}


class Finding(NamedTuple):
    """An error while it is looked for: its place is not written out yet."""

    steps: Steps
    message: str
    of_other_type: bool = False
    names_form: bool = False


class SchemaError(NamedTuple):
    """One thing that is wrong with a document."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def json_path(steps: Iterable[Any]) -> str:
    """The steps from the top of a document as a JSON path.

    >>> json_path(["queries", 3, "hit@1"])
    '$.queries[3]["hit@1"]'
    """
    return "$" + "".join(_step(step) for step in steps)


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,79}")


def _step(step: Any) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if _PLAIN.fullmatch(str(step)) else f"[{json.dumps(str(step)[:80])}]"


def is_type(value: Any, name: str) -> bool:
    """Whether a value is of a type of JSON Schema. NaN and the infinities are of none."""
    if isinstance(value, bool):
        return name == "boolean"
    if isinstance(value, str):
        return name == "string"
    if isinstance(value, int):
        return name in ("integer", "number")
    if isinstance(value, float):
        return (name == "number" and math.isfinite(value)) or (name == "integer" and value.is_integer())
    if isinstance(value, dict):
        return name == "object"
    if isinstance(value, list):
        return name == "array"
    return value is None and name == "null"


_TIME = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.[0-9]+)?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))"
)


def date_time(text: str) -> bool:
    """Whether a text is a date and time with its offset, as RFC 3339 has it: 2025-08-30T12:00:00Z."""
    from calendar import monthrange

    match = _TIME.fullmatch(text)
    if match is None:
        return False
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    away = int(match[8] or 0) * 60 + int(match[9] or 0)
    # The Gregorian calendar repeats after 400 years; `monthrange` knows no year 0.
    if not (1 <= month <= 12 and 1 <= day <= monthrange(year or 400, month)[1] and hour < 24 and minute < 60):
        return False
    if int(match[8] or 0) > 23 or int(match[9] or 0) > 59:
        return False
    if second == 60:  # a leap second ends a day of UTC, wherever that is 23:59
        utc = hour * 60 + minute - (away if match[7] == "+" else -away)
        return utc % 1440 == 1439
    return second < 60


def shown(value: Any) -> str:
    """A value for a message: short, on one line, whatever it is."""
    if isinstance(value, str):
        return repr(value[:40]) + ("..." if len(value) > 40 else "")
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**1023:
        return "a huge number"
    return repr(value) if isinstance(value, int | float) else kind_of(value)


def wrong_type(value: Any, types: Sequence[str]) -> str:
    """A value of another type than the schema has."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"{value} is not JSON. Write null, or leave the field out."
    expected = _listed([_A[name] for name in types], "or")
    got = shown(value) if isinstance(value, float) and "integer" in types else kind_of(value)
    return f"{expected} was expected, not {got}. {_type_fix(value, types)}"


def _type_fix(value: Any, types: Sequence[str]) -> str:
    if value is None:
        return "Write a value, or leave the field out."
    if "string" in types and not isinstance(value, bool | dict | list):
        return "Put it in quotes."
    if "boolean" not in types and isinstance(value, str) and {"number", "integer"} & set(types):
        return "Remove the quotes." if re.fullmatch(r"-?[0-9.]{1,40}", value) else "Write a number."
    if "array" in types and not isinstance(value, dict):
        return "Put it in [ ]."
    return "Change it."


def missing(name: str, value: dict[Any, Any], known: frozenset[str]) -> str:
    """A field that must be there and is not."""
    others = tuple(
        str(key)[:80] for key, _ in zip(value, range(_LOOKED_AT), strict=False) if key not in known
    )
    near = _near(name, others)
    fix = f"Is it the one called {near!r}? Rename that." if near else "Add it."
    return f"the field {name!r} is missing. {fix}"


def unknown_field(name: Any, known: Sequence[str]) -> str:
    """A field where no other fields are allowed."""
    near = _near(str(name)[:80], tuple(known)) if known else ""
    fix = f"The fields are {', '.join(known)}." if known else "Remove it."
    if near:
        fix = f"Did you mean {near!r}?"
    return f"there is no field {shown(str(name))}. {fix}"


def not_an_option(value: Any, options: Sequence[str]) -> str:
    """A text that is not one of the few that are allowed."""
    near = _near(value[:80].strip().lower(), tuple(options)) if isinstance(value, str) else ""
    fix = f"Did you mean {near!r}?" if near else "Use one of them, or leave the field out."
    return f"{shown(value)} is not one of {', '.join(repr(option) for option in options)}. {fix}"


@lru_cache(maxsize=256)  # the same slip comes again in every record of a file
def _near(name: str, options: tuple[str, ...]) -> str:
    return next(iter(difflib.get_close_matches(name, options, n=1)), "")


def out_of_range(value: Any, low: float | None, high: float | None) -> str:
    """A number that is too small or too large."""
    if high is None:
        return f"{shown(value)} is too small. Use {low} or more."
    if low is None:
        return f"{shown(value)} is too large. Use {high} or less."
    return f"{shown(value)} is not from {low} to {high}. Change it."


def wrong_size(size: int, bound: int, unit: str) -> str:
    """Too little or too much of something."""
    if not size:
        return "it is empty. Fill it in."
    return f"it has {size} {unit}, at {'least' if size < bound else 'most'} {bound} were expected. Change it."


def not_a_time(value: str) -> str:
    """A text that should be a date and time."""
    return f"{shown(value)} is not a date and time with its offset. Write it like 2025-08-30T12:00:00Z."


def ambiguous(steps: Steps, titles: Sequence[str]) -> Finding:
    """A value that has several forms at once, of which it must have one."""
    return Finding(steps, f"it is {_listed(titles, 'and')} at once. Write one for each.", names_form=True)


def nearest(
    value: Any,
    steps: Steps,
    failures: Sequence[Sequence[Finding]],
    titles: Sequence[str],
    fields: Sequence[frozenset[str]],
) -> list[Finding]:
    """The errors of the form that was most likely meant, where none fits.

    It is the one with most fields of its own there and fewest missing or wrong.
    """
    depth = len(steps)
    of_other_type = [failure[0].of_other_type and failure[0].steps == steps for failure in failures]
    if all(of_other_type):
        what = f"{_listed(titles, 'or')} was expected, not {kind_of(value)}. Change it."
        return [Finding(steps, what, of_other_type=True, names_form=True)]

    def distance(place: int) -> tuple[bool, int, int, int]:
        # A list of 200 broken parts is one broken field; a missing field is one as well.
        at_top = sum(len(found.steps) == depth for found in failures[place])
        below = len({found.steps[depth] for found in failures[place] if len(found.steps) > depth})
        there = sum(name in value for name in fields[place]) if isinstance(value, dict) else 0
        return of_other_type[place], at_top + below - there, at_top, len(failures[place])

    best = min(range(len(failures)), key=distance)
    return [_noted(found, titles[best]) if found.steps == steps else found for found in failures[best]]


def _noted(found: Finding, title: str) -> Finding:
    if not title or found.names_form:  # a form of a form: the inner one says more
        return found
    return found._replace(message=f"{found.message} (Read as {title}.)", names_form=True)


def _listed(names: Sequence[str], word: str) -> str:
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), names[-1])))
