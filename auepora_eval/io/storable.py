"""What JSON gives back as it was given: texts, numbers, true, false, null, lists, and objects of them."""

from __future__ import annotations

from typing import Any

from ..errors import DataError
from .json_text import FLATTEN, MAX_DEPTH, TOO_DEEP

_PLAIN = (str, float, bool, type(None))
_LARGEST = 2**1023  # what the readers take
_FIX = "Write it as a text, a number, a list or an object."


def refuse_unstorable(document: Any, where: str) -> None:
    """DataError for the first value that would be read back as something else.

    A tuple is a list and an array of numpy one of numbers; NaN and the infinities, which JSON lacks, are read
    back as null: not measured.
    """
    if not _is_plain(document):
        _refuse(document, where, "$", 0)


def _is_plain(document: Any) -> bool:
    """The same question for the many documents that are right, without a path for every value."""
    level, depth = [document], 0
    while level:
        below: list[Any] = []
        for value in level:
            kind = type(value)
            if kind is dict:
                if not all(type(key) is str for key in value):
                    return False
                below.extend(value.values())
            elif kind is list or kind is tuple:
                below.extend(value)
            elif kind not in _PLAIN and not (kind is int and abs(value) <= _LARGEST):
                return False
        level, depth = below, depth + 1
        if depth > MAX_DEPTH:
            return False
    return True


def _refuse(value: Any, where: str, path: str, depth: int) -> None:
    place = f"{where}: {path:.80}"
    if depth > MAX_DEPTH:
        raise DataError(place, TOO_DEEP, fix=FLATTEN)
    if hasattr(value, "tolist") and hasattr(value, "dtype"):
        value = value.tolist()
    if isinstance(value, dict):
        for key, part in value.items():
            if not isinstance(key, str):
                what = f"the key {key!r:.60} is no text: it would be read back as one."
                raise DataError(place, what, fix="Write it in quotes.")
            _refuse(part, where, f"{path}.{key}", depth + 1)
    elif isinstance(value, list | tuple):
        for number, part in enumerate(value):
            _refuse(part, where, f"{path}[{number}]", depth + 1)
    elif isinstance(value, int) and abs(value) > _LARGEST:
        raise DataError(place, "the number is too large.", fix="Write it as a text.")
    elif not isinstance(value, (*_PLAIN, int)):
        raise DataError(place, f"{type(value).__name__} would be read back as something else.", fix=_FIX)
