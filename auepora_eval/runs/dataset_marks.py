"""Marks on the way through a dataset: of two that differ they tell about where, in some kilobytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.fingerprint import Fingerprint

_MOST = 256
_DIGITS = 8


class DatasetMarks:
    """The beginning of the fingerprint after every so many samples; of a small dataset after each."""

    def __init__(self) -> None:
        self.every, self._marks = 1, list[str]()

    def add(self, count: int, fingerprint: Fingerprint) -> None:
        """Note the fingerprint of the first `count` samples."""
        if count % self.every:
            return
        self._marks.append(fingerprint.hexdigest()[:_DIGITS])
        if len(self._marks) > _MOST:
            self.every, self._marks = 2 * self.every, self._marks[1::2]

    def as_header(self) -> dict[str, Any]:
        """What a run's header keeps of it."""
        return {"every": self.every, "marks": "".join(self._marks)}


def where_they_differ(before: object, now: object) -> str:
    """Which sample is the first that differs, as far as the marks of two datasets tell; else nothing."""
    then, here = _read(before), _read(now)
    if then is None or here is None:
        return ""
    step = max(then[0], here[0])
    ours, theirs = (marks[step // every - 1 :: step // every] for every, marks in (then, here))
    same = 0
    for one, other in zip(ours, theirs, strict=False):
        if one != other:
            break
        same += 1
    first = same * step + 1
    if same < min(len(ours), len(theirs)):
        last = first + step - 1
        return (
            f"the first that differs is sample {first:,}"
            if step == 1
            else f"first within {first:,} to {last:,}"
        )
    return f"the first {same * step:,} are the same" if same else ""


def _read(told: object) -> tuple[int, list[str]] | None:
    if not isinstance(told, Mapping):
        return None
    every, marks = told.get("every"), told.get("marks")
    if not isinstance(every, int) or every < 1 or every & (every - 1) or not isinstance(marks, str):
        return None
    return every, [marks[place : place + _DIGITS] for place in range(0, len(marks), _DIGITS)]
