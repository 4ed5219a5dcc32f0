"""Read the structure of documents, cut them into passages, search these, and collect their vocabulary.

A passage is a sequence of whole sentences up to a number of tokens; the last ones are repeated in the next.
A token is a run of letters and digits or a single mark, so the cut does not depend on any model.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..text.bm25 import bm25_index
from ..text.sentences import sentence_spans
from ..text.tokens import words
from .corpus import SourceDocument
from .english import DETERMINERS, PERSON_NOUNS, PERSON_TITLES, is_plural

# Structure: headings, list items and sentences, each with its offsets.


# What may follow a title is bounded: a line of nothing but spaces must not take the square of its length.
_MARKDOWN_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.+?)\s{0,20}#{0,20}\s{0,20}")
# `= = Title = =`, as in WikiText.
_WIKI_HEADING = re.compile(r"\s{0,40}((?:= ?){1,6})\s{0,20}([^=].*?)\s{0,20}((?:= ?){1,6})\s{0,20}")
_UNDERLINE = re.compile(r"(={3,}|-{3,})\s*")
_ITEM = re.compile(r"\s{0,40}(?:[-*+•]|\(?\d{1,2}[.)])\s+(\S.*)")
_FENCE = re.compile(r"\s{0,40}(?:```|~~~)")
# Characters of a sentence.
_LONGEST = 1_500
_LONG_WORD = re.compile(r"\S{90}")
# Characters of the last line of a paragraph, and of a paragraph without line breaks.
_SHORT_LINE, _LONG_LINE = 50, 400


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, text[start:end], with the headings above it and the number of its paragraph."""

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
    """The headings and sentences of a text, in order."""

    headings: list[Heading]
    sentences: list[Sentence]


def outline(text: str) -> Outline:
    """Return the headings and sentences of a text, without tables, code and bare labels."""
    headings: list[Heading] = []
    sentences: list[Sentence] = []
    above: dict[int, str] = {}
    for number, (kind, start, end, level) in enumerate(_blocks(text)):
        if kind == "heading":
            line = text[start:end]
            match = _MARKDOWN_HEADING.fullmatch(line) or _WIKI_HEADING.fullmatch(line)
            title = tidy(match[2] if match else line)
            headings.append(Heading(start, end, title, level))
            above = {depth: name for depth, name in above.items() if depth < level} | {level: title}
            continue
        topic, section = (above[min(above)], above[max(above)]) if above else ("", "")
        for begin, stop in sentence_spans(text, start, end, lines=False):
            piece = text[begin:stop]
            first, last = begin + len(piece) - len(piece.lstrip()), begin + len(piece.rstrip())
            # Longer ones are data, not sentences, and the patterns for sentences would take hours on them.
            if 0 < last - first <= _LONGEST and not _LONG_WORD.search(piece):
                sentences.append(Sentence(first, last, number, topic, section, kind == "item"))
    return Outline(headings, sentences)


def _blocks(text: str) -> Iterator[tuple[str, int, int, int]]:
    """Yield (heading | item | prose, start, end, level) for each block of language."""
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
    """Return the kind of a line, and the level if it is a heading."""
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


_TIDY = (
    (re.compile(r" @([-,.])@ "), r"\1"),
    (re.compile(r" ([,.;:?!%)\]])"), r"\1"),
    (re.compile(r"(?<=\d) ?: (?=\d\d\b)"), ":"),
    (re.compile(r"(?<=\d) – (?=\d)"), "–"),
    (re.compile(r"([(\[$])\s+"), r"\1"),
    (re.compile(r" ('(?:s|t|re|ve|ll|d|m)\b)"), r"\1"),
    (re.compile(r"(?<=\w) (n't)\b"), r"\1"),
    (re.compile(r'(?<!\S)" ([^"]*?) "(?!\w)'), r'"\1"'),
)


def tidy(text: str) -> str:
    """Return the text on one line, without the spaces that a tokeniser put before marks.

    >>> tidy("a role @-@ playing game , the first")
    'a role-playing game, the first'
    """
    flat = " ".join(text.split())
    for pattern, replacement in _TIDY:
        flat = pattern.sub(replacement, flat)
    return flat


# Passages.


TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage: `text` is `document.text[start:end]`, and tokens are counted from the document's start."""

    id: str
    text: str
    document: str
    source_path: str
    start: int
    end: int
    token_start: int
    token_end: int
    page: int | None = None
    section: str = ""
    title: str = ""

    @property
    def source(self) -> str:
        """Return the file with the page, as a reader cites it."""
        return self.source_path if self.page is None else f"{self.source_path}#page={self.page}"


@dataclass(frozen=True)
class CutDocument:
    """A document with its outline and its passages, as a task maker gets it."""

    source: SourceDocument
    outline: Outline
    chunks: list[Chunk]

    def chunks_with(self, start: int, end: int) -> list[Chunk]:
        """Return the passages that contain a whole span."""
        return [chunk for chunk in self.chunks if chunk.start <= start and end <= chunk.end]


def cut(document: SourceDocument, *, tokens: int = 256, overlap: int = 32) -> CutDocument:
    """Cut a document into chunks of at most `tokens` tokens, up to `overlap` of them shared with the next."""
    if not 0 <= overlap < tokens:
        raise ValueError(f"overlap must be at least 0 and less than tokens ({tokens}), not {overlap}")
    layout = outline(document.text)
    places = [match.span() for match in TOKEN.finditer(document.text)]
    starts = [first for first, _ in places]
    pieces = _pieces(layout, places, starts, tokens)
    titles = ["", *(heading.title for heading in layout.headings)]
    heading_starts = [heading.start for heading in layout.headings]
    chunks: list[Chunk] = []
    for first, last in _packed(pieces, heading_starts, starts, tokens, overlap):
        start, end = places[first][0], places[last - 1][1]
        chunks.append(
            Chunk(
                f"{document.name}#{len(chunks)}",
                document.text[start:end],
                document.name,
                document.source_path,
                start,
                end,
                first,
                last,
                document.page_at(start),
                titles[bisect_right(heading_starts, start)],
                document.title,
            )
        )
    return CutDocument(document, layout, chunks)


Piece = tuple[int, int]  # tokens from, to


def _pieces(layout: Outline, places: Sequence[Piece], starts: Sequence[int], limit: int) -> list[Piece]:
    """Return sentences and the text between them as token ranges, none longer than a passage."""
    edges = {0, len(places)}
    spans = [(sentence.start, sentence.end) for sentence in layout.sentences]
    spans += [(heading.start, heading.end) for heading in layout.headings]
    for begin, end in spans:
        edges.update((bisect_left(starts, begin), bisect_left(starts, end)))
    ordered = sorted(edges)
    return [
        (first, min(first + limit, end))
        for begin, end in pairwise(ordered)
        for first in range(begin, end, limit)
    ]


def _packed(
    pieces: Sequence[Piece], heading_starts: Sequence[int], starts: Sequence[int], limit: int, overlap: int
) -> list[Piece]:
    """Join pieces to passages. A heading starts a new one unless the current one is still small."""
    at_heading = {bisect_left(starts, place) for place in heading_starts}
    packed: list[Piece] = []
    current: list[Piece] = []
    for piece in pieces:
        new_section = piece[0] in at_heading
        size = piece[1] - current[0][0] if current else 0
        if current and (size > limit or (new_section and current[-1][1] - current[0][0] >= limit // 4)):
            packed.append((current[0][0], current[-1][1]))
            # The last pieces are repeated, but never all of them: a passage must have new text.
            space = min(overlap, limit - (piece[1] - piece[0]))
            ending = [each for each in current[1:] if current[-1][1] - each[0] <= space]
            current = [] if new_section else ending
        current.append(piece)
    if current:
        packed.append((current[0][0], current[-1][1]))
    return packed


# Search: distractors for the tasks, and the rank of the gold passage, by BM25.

# Passages per query: a gold passage below is reported as never found.
DEPTH = 100


class PassageSearch:
    """Rank passages by BM25 over stemmed words of title and text, ties in the order of the corpus."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.chunks = chunks
        self._index = bm25_index(
            [words(f"{chunk.title} {chunk.text}", stemmed=True) or [""] for chunk in chunks]
        )

    def ranked(self, query: str, limit: int = DEPTH) -> list[tuple[Chunk, float]]:
        """Return the best passages with their scores, without those that share no word with the query."""
        wanted = words(query, stemmed=True)
        if not wanted:
            return []
        scores: NDArray[np.float32] = self._index.get_scores(wanted)
        best = np.argsort(-scores, kind="stable")[:limit]
        return [(self.chunks[place], round(float(scores[place]), 4)) for place in best if scores[place] > 0]


# Vocabulary: which words of the corpus are names, and which names are people.

_WORD = re.compile(r"[^\W\d_][\w'’-]*")
NAME = re.compile(
    r"(?<![\w'’-])[A-Z][\w'’-]+(?: (?:[A-Z]\.? )?(?:(?:de|van|von|der|la|of the|of) )?[A-Z][\w'’-]+)+"
)
PERSON = re.compile(r"(?:(?:[A-Z][a-z]+\.? )?)[A-Z][a-zà-ÿ'’-]+(?: [A-Z]\.?)?(?: [A-Z][a-zà-ÿ'’-]+){1,2}")
# What follows a name shows whether it is a person: `is an engineer`, `was born`.
_COPULA = re.compile(r" (?:is|was|has been|became) ((?:[a-z'-]++ ?){1,6})")
_LIVES = re.compile(r" ,? ?(?:was born|married|joined|retired|died in|wrote|graduated|resigned)\b")
# RT, PAM: unambiguous within one text, ambiguous in a corpus.
_INITIALS = re.compile(r"[A-Z]{1,3}s?")
_CALENDAR = frozenset(
    """january february march april may june july august september october november december monday tuesday
    wednesday thursday friday saturday sunday christmas easter""".split()
)


@dataclass
class Vocabulary:
    """Counts of words inside sentences, capitalised and not, and the names of people."""

    small: Counter[str] = field(default_factory=Counter)
    capital: Counter[str] = field(default_factory=Counter)
    people: set[str] = field(default_factory=set)
    names: Counter[str] = field(default_factory=Counter)
    texts: list[str] = field(default_factory=list)

    def is_name(self, word: str) -> bool:
        """Return whether a word is capitalised because it is a name, not because it starts a sentence."""
        core = re.sub(r"['’]s?$", "", word.strip("\"'“”‘’.,;:!?()"))
        if core in ("I", "I'm", "A") or core.lower() in _CALENDAR:
            return False
        if re.search(r"\d", core) and re.search(r"[A-Z]", core):
            return True  # a code: KM-4S
        if re.fullmatch(r"(?:[A-Z]\.?){2,}s?", core):
            return True
        lowered = core.lower()
        return core[:1].isupper() and self.capital[lowered] > 2 * self.small[lowered]

    def lowered(self, text: str) -> str:
        """Return the start of a sentence as it would be written inside one, or "" if that is ambiguous."""
        first, space, rest = text.partition(" ")
        small = first[:1].lower() + first[1:]
        if small in DETERMINERS:
            return small + space + rest
        if rest[:1].isupper() and self.small[small] and not self.capital[small]:
            return ""  # "Current Harmonix", "Table Mountain"
        if first == "I" or self.is_name(first) or re.search(r"[A-Z]", first[1:]) or rest[:1].isupper():
            return text
        if not rest and not self.small[small] and not is_plural(small):
            return ""
        return small + space + rest

    def is_person(self, name: str) -> bool:
        """Return whether the corpus or the name itself shows that this is a person."""
        words = name.replace(".", "").split()
        if not 2 <= len(words) <= 4 or not all(word[:1].isupper() for word in words):
            return False
        return name in self.people or words[0].lower() in PERSON_TITLES

    def knows(self, name: str) -> bool:
        """Return whether the corpus contains a name, also inside a longer one."""
        return any(name in text for text in self.texts)

    def has_name(self, text: str) -> bool:
        """Return whether a text has a name or a code."""
        return any(self.is_name(word) for word in text.split() if not _INITIALS.fullmatch(word))


def vocabulary_of(documents: Iterable[CutDocument]) -> Vocabulary:
    """Return the vocabulary of a corpus."""
    vocabulary = Vocabulary()
    for document in documents:
        text = document.source.text
        vocabulary.texts.append(text)
        before = ""
        for sentence in document.outline.sentences:
            piece = text[sentence.start : sentence.end]
            _count(piece, vocabulary)
            if before and re.match(r"(?:He|She)\b", piece):
                match = PERSON.match(before)
                if match:
                    vocabulary.people.add(match.group())
            before = piece
    return vocabulary


def _count(piece: str, vocabulary: Vocabulary) -> None:
    for place, match in enumerate(_WORD.finditer(piece)):
        if place == 0:
            continue
        word = match.group()
        if word[0].isupper():
            vocabulary.capital[word.lower()] += 1
        else:
            vocabulary.small[word] += 1
    for match in NAME.finditer(piece):
        if match.start() > 0:
            vocabulary.names[match.group()] += 1
    for match in PERSON.finditer(piece):
        rest = piece[match.end() : match.end() + 80]
        said = _COPULA.match(rest)
        titled = match.group().split()[0].rstrip(".").lower() in PERSON_TITLES
        if titled or _LIVES.match(rest) or (said and PERSON_NOUNS & set(said[1].split(" of ")[0].split())):
            vocabulary.people.add(match.group())
