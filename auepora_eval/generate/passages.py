"""Cut documents into passages of whole sentences, and search the passages.

A passage has up to a number of tokens; its last sentences are repeated in the next. A token is a run of
letters and digits or a single mark, so the cut does not depend on any model.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..builder.corpus import SourceDocument
from ..text.bm25 import bm25_scorer
from ..text.sentences import sentence_spans
from ..text.tokens import words

Span = tuple[int, int]
TOKEN = re.compile(r"\w+|[^\w\s]")
_LONGEST = 1_500  # characters of a sentence: longer ones are data
# Headings and blocks of code. A block that is not closed ends with the text.
_MARKDOWN = re.compile(
    r"^ {0,3}(?:#{1,6}[ \t]+(?P<title>\S[^\n]{0,200}?)[ \t#]{0,20}$"
    r"|(?P<fence>```|~~~).*?(?:^ {0,3}(?P=fence)|\Z))",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage: `text` is `document.text[start:end]`, and tokens are counted from the document's start.

    The names of the fields are those in the records.
    """

    id: str
    text: str
    document: str
    source_path: str
    start: int
    end: int
    token_start: int
    token_end: int
    page: int | None = None
    section_title: str = ""
    title: str = ""
    edited_from: str = ""  # the id of the passage of which this is a copy with a changed fact

    @property
    def source(self) -> str:
        """Return the file with the page, as a reader cites it."""
        return self.source_path if self.page is None else f"{self.source_path}#page={self.page}"


@dataclass(frozen=True)
class CutDocument:
    """A document with the spans of its sentences (without headings and code) and its passages."""

    source: SourceDocument
    sentences: list[Span]
    chunks: list[Chunk]

    def chunks_with(self, start: int, end: int) -> list[Chunk]:
        """Return the passages that contain a whole span."""
        return [chunk for chunk in self.chunks if chunk.start <= start and end <= chunk.end]


def cut(document: SourceDocument, *, tokens: int = 256, overlap: int = 32) -> CutDocument:
    """Cut a document into chunks of at most `tokens` tokens, up to `overlap` of them shared with the next."""
    if not 0 <= overlap < tokens:
        raise ValueError(f"overlap must be at least 0 and less than tokens ({tokens}), not {overlap}")
    text = document.text
    marks = list(_MARKDOWN.finditer(text))
    headings = [(mark.start(), mark["title"]) for mark in marks if mark["title"]]
    edges = [0, *(place for mark in marks for place in mark.span()), len(text)]
    prose = zip(edges[::2], edges[1::2], strict=True)
    spans = [span for start, end in prose for span in sentence_spans(text, start, end)]
    sentences = [(start, end) for start, end in spans if end - start <= _LONGEST]
    places = [match.span() for match in TOKEN.finditer(text)]
    starts = [first for first, _ in places]
    section_starts = [place for place, _ in headings]
    titles = ["", *(title for _, title in headings)]
    chunks: list[Chunk] = []
    edges += [place for span in spans for place in span]
    pieces = _pieces({bisect_left(starts, edge) for edge in edges}, tokens)
    for first, last in _packed(pieces, {bisect_left(starts, s) for s in section_starts}, tokens, overlap):
        start, end = places[first][0], places[last - 1][1]
        chunks.append(
            Chunk(
                f"{document.name}#{len(chunks)}",
                text[start:end],
                document.name,
                document.source_path,
                start,
                end,
                first,
                last,
                document.page_at(start),
                titles[bisect_right(section_starts, start)],
                document.title,
            )
        )
    return CutDocument(document, sentences, chunks)


def _pieces(edges: Iterable[int], limit: int) -> list[Span]:
    """Return the token ranges between edges, longer ones in parts of `limit`."""
    pairs = pairwise(sorted(edges))
    return [(first, min(first + limit, end)) for begin, end in pairs for first in range(begin, end, limit)]


def _packed(pieces: Sequence[Span], sections: set[int], limit: int, overlap: int) -> list[Span]:
    """Join pieces to passages. A section starts a new one unless the current one is still small."""
    packed: list[Span] = []
    current: list[Span] = []
    for piece in pieces:
        is_section = piece[0] in sections
        size = piece[1] - current[0][0] if current else 0
        if current and (size > limit or (is_section and current[-1][1] - current[0][0] >= limit // 4)):
            packed.append((current[0][0], current[-1][1]))
            # The last pieces are repeated, but never all of them: a passage must have new text.
            space = min(overlap, limit - (piece[1] - piece[0]))
            ending = [each for each in current[1:] if current[-1][1] - each[0] <= space]
            current = [] if is_section else ending
        current.append(piece)
    return [*packed, (current[0][0], current[-1][1])] if current else packed


Hit = tuple[Chunk, float | None]  # a passage of a context, and its score if it was searched for
CONTEXT_PASSAGES = 4  # of a task
# Passages per query: a gold passage below is reported as never found.
DEPTH = 100


class PassageSearch:
    """Rank passages by BM25 over stemmed words of title and text, ties in the order of the corpus."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.chunks = chunks
        self._scores = bm25_scorer([words(f"{chunk.title} {chunk.text}", stemmed=True) for chunk in chunks])

    def ranked(self, query: str, limit: int = DEPTH) -> list[Hit]:
        """Return the best passages with their scores, without those that share no word with the query."""
        scores = self._scores(words(query, stemmed=True))
        best = np.argsort(-scores, kind="stable")[:limit]
        return [(self.chunks[place], round(float(scores[place]), 4)) for place in best if scores[place] > 0]
