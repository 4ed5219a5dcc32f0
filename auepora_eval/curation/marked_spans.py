"""Spans that several people marked for one query: where they overlap, and what most of them marked.

Spans are half-open. Two of them can be the same passage only in the same file and, where every span of the
file tells its page, on the same page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import combinations
from statistics import fmean
from typing import NamedTuple

from ..io.ground_truth import Annotation
from ..metrics.spans import Interval, length, merged, shared_length

_HERE = ""  # one place at a time: the intervals need no name of their source


class MarkedPlace(NamedTuple):
    """A file, and the page where it is known."""

    file_name: str
    page: int | None = None

    def __str__(self) -> str:
        return self.file_name if self.page is None else f"{self.file_name} p. {self.page}"


Marks = dict[str, dict[MarkedPlace, list[Interval]]]  # by annotator and place: disjoint, in order


def marks_of(said: Mapping[str, Annotation], file_of: Callable[[str], str] = str) -> Marks:
    """What each annotator of a query marked; overlaps of their own spans count once."""
    place_of = place_finder(said, file_of)
    marks: Marks = {}
    for name, annotation in said.items():
        pieces: dict[MarkedPlace, list[Interval]] = {}
        for citation in annotation["citations"]:
            span = (citation["start_char"], citation["end_char"])
            pieces.setdefault(place_of(citation), []).append(span)
        marks[name] = {
            place: merged((_HERE, span) for span in spans).get(_HERE, []) for place, spans in pieces.items()
        }
    return marks


def place_finder(
    said: Mapping[str, Annotation], file_of: Callable[[str], str] = str
) -> Callable[[Annotation], MarkedPlace]:
    """Tells the place of a citation, with its page only if all spans in the file have one."""
    citations = [citation for annotation in said.values() for citation in annotation["citations"]]
    without_page = {file_of(each["file_name"]) for each in citations if each.get("page_number") is None}

    def place_of(citation: Annotation) -> MarkedPlace:
        file_name = file_of(citation["file_name"])
        return MarkedPlace(file_name, None if file_name in without_page else citation["page_number"])

    return place_of


def span_agreement(marks: Marks) -> dict[MarkedPlace | None, float]:
    """The mean character Jaccard of the pairs of annotators, for each place that one of a pair marked.

    Two people who both marked nothing agree that there is nothing: 1.0, at no place (None).
    """
    found: dict[MarkedPlace | None, list[float]] = {}
    for one, other in combinations(marks.values(), 2):
        if not one and not other:
            found.setdefault(None, []).append(1.0)
        for place in [*one, *(place for place in other if place not in one)]:
            found.setdefault(place, []).append(_jaccard(one.get(place, []), other.get(place, [])))
    return {place: fmean(values) for place, values in found.items()}


def marked_by(marks: Marks, least: int) -> Iterator[tuple[MarkedPlace, Interval]]:
    """The stretches of text that at least so many annotators marked, in order."""
    places = dict.fromkeys(place for marked in marks.values() for place in marked)
    for place in places:
        steps: dict[int, int] = {}
        for marked in marks.values():
            for start, end in marked.get(place, []):
                steps[start] = steps.get(start, 0) + 1
                steps[end] = steps.get(end, 0) - 1
        people, begun = 0, 0
        for position in sorted(steps):
            before, people = people, people + steps[position]
            if before < least <= people:
                begun = position
            elif people < least <= before:
                yield place, (begun, position)


def _jaccard(one: list[Interval], other: list[Interval]) -> float:
    first, second = {_HERE: one}, {_HERE: other}
    both = shared_length(first, second)
    return both / (length(first) + length(second) - both)
