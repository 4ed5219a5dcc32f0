"""A text as headings, list items and sentences, each with its place: what the question makers read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..metrics.sentences import sentence_spans

_MARKDOWN_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.+?)\s*#*\s*")
_WIKI_HEADING = re.compile(r"\s*((?:= ?){1,6})\s*([^=].*?)\s*((?:= ?){1,6})\s*")
_UNDERLINE = re.compile(r"(={3,}|-{3,})\s*")
_ITEM = re.compile(r"\s*(?:[-*+•]|\(?\d{1,2}[.)])\s+(\S.*)")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_LONGEST = 1_500
_LONG_WORD = re.compile(r"\S{90}")
_SHORT_LINE, _LONG_LINE = 50, 400  # a paragraph's last line; a paragraph on a line of its own


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the text: text[start:end], under which headings it stands, and in which paragraph."""

    start: int
    end: int
    paragraph: int
    topic: str = ""  # the heading of the highest level above it
    section: str = ""  # the nearest heading above it
    is_item: bool = False


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading line and its level, 1 the highest."""

    start: int
    end: int
    title: str
    level: int


@dataclass(frozen=True)
class Outline:
    """What a text is made of, in order."""

    headings: list[Heading]
    sentences: list[Sentence]


def outline(text: str) -> Outline:
    """The headings and sentences of a text; tables, code and bare labels are left out."""
    headings: list[Heading] = []
    sentences: list[Sentence] = []
    above: dict[int, str] = {}
    for number, (kind, start, end, level) in enumerate(_blocks(text)):
        if kind == "heading":
            title = tidy(_heading_text(text[start:end]))
            headings.append(Heading(start, end, title, level))
            above = {depth: name for depth, name in above.items() if depth < level} | {level: title}
            continue
        topic, section = (above[min(above)], above[max(above)]) if above else ("", "")
        for span in sentence_spans(text, start, end, lines=False):
            for first, last in _stripped(text, *span):
                sentences.append(Sentence(first, last, number, topic, section, kind == "item"))
    return Outline(headings, sentences)


def _blocks(text: str) -> Iterator[tuple[str, int, int, int]]:
    """(heading | item | prose, start, end, level) for each block that reads as language."""
    begin: int | None = None
    end = 0
    fenced = False
    lines = list(_lines(text))
    for place, (start, stop) in enumerate(lines):
        line = text[start:stop]
        below = text[slice(*lines[place + 1])] if place + 1 < len(lines) else ""
        kind, level = _kind(line, below)
        if kind == "fence":
            fenced = not fenced
        if fenced:
            kind = "skipped"
        if begin is not None and kind != "prose":
            yield "prose", begin, end, 0
            begin = None
        if kind in ("heading", "item"):
            match = _ITEM.fullmatch(line) if kind == "item" else None
            yield kind, start + (match.start(1) if match else 0), stop, level
        elif kind == "prose":
            begin, end = (start if begin is None else begin), stop
            ends = len(line.strip()) < _SHORT_LINE and not re.search(r"[,;:\w-]\s*$", line)
            if ends or len(line) > _LONG_LINE:
                yield "prose", begin, end, 0
                begin = None
    if begin is not None:
        yield "prose", begin, end, 0


def _lines(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in re.finditer(r"[\n\f]", text):
        yield start, match.start()
        start = match.end()
    yield start, len(text)


def _kind(line: str, below: str) -> tuple[str, int]:
    """What a line is, and the level if it is a heading."""
    plain = line.strip()
    if not plain or _UNDERLINE.fullmatch(plain):
        return "blank", 0
    if _FENCE.match(line):
        return "fence", 0
    if line.lstrip().startswith("#") and len(line) < 300:
        match = _MARKDOWN_HEADING.fullmatch(line)
        if match:
            return "heading", len(match[1])
    if plain.startswith("=") and len(line) < 300:
        match = _WIKI_HEADING.fullmatch(line)
        if match and match[1].count("=") == match[3].count("="):
            return "heading", match[1].count("=")
    if len(plain) < 100 and _UNDERLINE.fullmatch(below):
        return "heading", 1 if below.startswith("=") else 2
    if plain.count("|") >= 1:
        return "skipped", 0
    if _ITEM.fullmatch(line):
        return "item", 0
    # A short line without an end, and a new sentence below it: a label that is not marked as a heading.
    is_label = len(plain) < _SHORT_LINE and plain[-1].isalnum() and len(below) > 2 * _SHORT_LINE
    return ("skipped" if is_label and below.lstrip()[:1].isupper() else "prose"), 0


def _heading_text(line: str) -> str:
    match = _MARKDOWN_HEADING.fullmatch(line) or _WIKI_HEADING.fullmatch(line)
    return match[2] if match else line.strip()


def _stripped(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    piece = text[start:end]
    first = start + len(piece) - len(piece.lstrip())
    last = start + len(piece.rstrip())
    # Nobody writes longer ones: what is beyond is data, on which patterns for sentences would take hours.
    if 0 < last - first <= _LONGEST and not _LONG_WORD.search(text, first, last):
        yield first, last


_TIDY = (
    (re.compile(r" @([-,.])@ "), r"\1"),
    (re.compile(r"\s+([,.;:?!%)\]])"), r"\1"),
    (re.compile(r"(?<=\d) ?: (?=\d\d\b)"), ":"),
    (re.compile(r"(?<=\d) – (?=\d)"), "–"),
    (re.compile(r"([(\[$])\s+"), r"\1"),
    (re.compile(r" ('(?:s|t|re|ve|ll|d|m)\b)"), r"\1"),
    (re.compile(r"(?<=\w) (n't)\b"), r"\1"),
    (re.compile(r'(?<!\S)" ([^"]*?) "(?!\w)'), r'"\1"'),
)


def tidy(text: str) -> str:
    """On one line, and without the spaces that a tokeniser put before marks.

    >>> tidy("a role @-@ playing game , the first")
    'a role-playing game, the first'
    """
    flat = " ".join(text.split())
    for pattern, replacement in _TIDY:
        flat = pattern.sub(replacement, flat)
    return flat
