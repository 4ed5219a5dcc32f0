"""What the checker of schemas says: the place as a JSON path, what is wrong, what to do."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ...errors import did_you_mean, nearest_names
from ..json.text import kind_of

Steps = tuple[str | int, ...]
_LOOKED_AT = 50  # names that are compared when one is misspelt: a hostile object may have a million

# Keys that a JSON path shows without quotes.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,79}")
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
        return self.message if self.path == "$" else f"{self.path}: {self.message}"


def json_path(steps: Iterable[Any]) -> str:
    """The steps from the top of a document as a JSON path.

    >>> json_path(["queries", 3, "hit@1"])
    '$.queries[3]["hit@1"]'
    """
    path = "$"
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            path += f".{step}" if _PLAIN.fullmatch(str(step)) else f"[{json.dumps(str(step)[:80])}]"
    return path


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
    near = nearest_names(name, others)
    fix = f"Is it the one called {near[0]!r}? Rename that." if near else "Add it."
    return f"the field {name!r} is missing. {fix}"


def unknown_field(name: Any, known: Sequence[str]) -> str:
    """A field where no other fields are allowed."""
    fix = f"The fields are {', '.join(known)}." if known else "Remove it."
    fix = did_you_mean(name, known, fix)
    return f"there is no field {shown(str(name))}. {fix}"


def not_an_option(value: Any, options: Sequence[str]) -> str:
    """A text that is not one of the few that are allowed."""
    text = value[:80].strip().lower() if isinstance(value, str) else ""
    fix = did_you_mean(text, options, "Use one of them, or leave the field out.")
    return f"{shown(value)} is not one of {', '.join(repr(option) for option in options)}. {fix}"


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
        at_top = sum(len(finding.steps) == depth for finding in failures[place])
        below = len({finding.steps[depth] for finding in failures[place] if len(finding.steps) > depth})
        present = sum(name in value for name in fields[place]) if isinstance(value, dict) else 0
        return of_other_type[place], at_top + below - present, at_top, len(failures[place])

    best = min(range(len(failures)), key=distance)
    findings = []
    for finding in failures[best]:
        # A form of a form is named already, and the inner name says more.
        if finding.steps == steps and titles[best] and not finding.names_form:
            message = f"{finding.message} (Read as {titles[best]}.)"
            finding = finding._replace(message=message, names_form=True)
        findings.append(finding)
    return findings


def _listed(names: Sequence[str], word: str) -> str:
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), names[-1])))
