"""Citations inside an answer: [1], [1,2], [1][2], [1-3], [file:page:start-end] and what may stand behind it.

[2]  [1,3]  [1-3]  [1][2]                    the documents that were retrieved at these ranks, from 1
[ferries.pdf:3:120-180]                      characters 120 up to, not including, 180 of a file
[ferries.pdf:120-180]                        the same without a page
[ferries.pdf:3:120-180,300-340]              two spans of it
[ferries.pdf:3:120-180 | excerpt: "..."]     with the words that are said to stand there
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import ScoringError

MOST_MARKS = 1_000  # of one answer: what is beyond is no answer with citations
_WIDEST_RANGE = 50

# Possessive, and never over an opening bracket: linear, whatever an answer is made of.
_MARK = re.compile(
    r"\[\s*+(?:"
    r"(?P<numbers>\d{1,3}+(?:\s*+[,;–-]\s*+\d{1,3}+)*+)"
    r"|(?P<file>[^\[\]\n|]{1,1000}+)(?:\|\s*+excerpt:(?P<excerpt>[^\[\]]{0,5000}+))?+"
    r")\s*+\]"
)
_PLACE = re.compile(r"(?P<file>.*?\S)\s*:\s*(?:(?P<page>\d{1,6})\s*:\s*)?(?P<spans>\d[\d\s,–-]*)", re.DOTALL)
_SPAN = re.compile(r"\s*(\d{1,12})\s*[–-]\s*(\d{1,12})\s*")
_PART = re.compile(r"(\d{1,3})(?:\s*[–-]\s*(\d{1,3}))?")
_QUOTES = " \t\n\"'“”‘’„«»"


@dataclass(frozen=True, slots=True)
class Mark:
    """One thing that a mark cites; [1,2] are two of them at one place of the answer.

    Either `number` is set, or `file_name`. `span` is half-open, and as it was written: it may be none.
    """

    at: tuple[int, int]
    number: int | None = None
    file_name: str = ""
    page: int | None = None
    span: tuple[int, int] | None = None
    excerpt: str = ""


def marks(answer: str) -> list[Mark]:
    """What an answer cites by marks, in order; brackets that are no citations are left alone.

    >>> [mark.number for mark in marks("It moors at the pier [1,3] or not [4-5]. See [sic].")]
    [1, 3, 4, 5]
    """
    found: list[Mark] = []
    if "[" not in answer:
        return found
    for match in _MARK.finditer(answer):
        found.extend(_numbered(match) if match["numbers"] else _placed(match))
        if len(found) > MOST_MARKS:
            raise ScoringError(f"the answer has more than {MOST_MARKS} citations")
    return found


def _numbered(match: re.Match[str]) -> Iterator[Mark]:
    at = match.span()
    for first, last in _PART.findall(match["numbers"]):
        # [3-1] is no range, and [1-900] cites nothing in particular: both ends stand for themselves.
        ends = (int(first), int(last or first))
        is_range = 0 <= ends[1] - ends[0] <= _WIDEST_RANGE
        for number in range(ends[0], ends[1] + 1) if is_range else ends:
            yield Mark(at, number=number)


def _placed(match: re.Match[str]) -> Iterator[Mark]:
    place = _PLACE.fullmatch(match["file"].strip())
    if place is None:
        return
    excerpt = (match["excerpt"] or "").strip(_QUOTES)
    page = None if place["page"] is None else int(place["page"])
    spans = [_SPAN.fullmatch(part) for part in place["spans"].split(",")]
    if None in spans:
        return
    for span in filter(None, spans):
        yield Mark(match.span(), None, place["file"], page, (int(span[1]), int(span[2])), excerpt)
