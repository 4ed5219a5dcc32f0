"""Documents cut into passages: whole sentences up to a number of tokens, the last ones repeated in the next.

A token is a run of letters and digits or a single mark, so the cut depends on no model. A passage says where
it is from: characters and tokens of its document, its page, the heading it stands under.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from .corpus import SourceDocument
from .sentences import Outline, outline

TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage: `text` is `document.text[start:end]`; tokens are counted from the document's start."""

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


@dataclass(frozen=True)
class CutDocument:
    """A document with its outline and its chunks: what a task maker gets."""

    source: SourceDocument
    outline: Outline
    chunks: list[Chunk]

    def chunks_with(self, start: int, end: int) -> list[Chunk]:
        """The chunks that hold a whole span."""
        return [chunk for chunk in self.chunks if chunk.start <= start and end <= chunk.end]


def cut(document: SourceDocument, *, tokens: int = 256, overlap: int = 32) -> CutDocument:
    """Cut a document into chunks of at most `tokens` tokens, up to `overlap` of them shared with the next."""
    if not 0 <= overlap < tokens:
        raise ValueError(
            f"the overlap, {overlap}, must be from 0 to less than the tokens of a chunk, {tokens}"
        )
    found = outline(document.text)
    places = [match.span() for match in TOKEN.finditer(document.text)]
    starts = [first for first, _ in places]
    pieces = _pieces(document.text, found, places, starts, tokens)
    titles = ["", *(heading.title for heading in found.headings)]
    heading_starts = [heading.start for heading in found.headings]
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
    return CutDocument(document, found, chunks)


Piece = tuple[int, int]  # tokens from, to


def _pieces(
    text: str, found: Outline, places: Sequence[Piece], starts: Sequence[int], limit: int
) -> list[Piece]:
    """The text in sentences, what lies between them, and no piece longer than a chunk; in tokens."""
    edges = {0, len(places)}
    spans = [(sentence.start, sentence.end) for sentence in found.sentences]
    spans += [(heading.start, heading.end) for heading in found.headings]
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
    """Pieces put together to chunks; a heading begins a new one unless the one before is still small."""
    at_heading = {bisect_left(starts, place) for place in heading_starts}
    packed: list[Piece] = []
    held: list[Piece] = []
    for piece in pieces:
        new_section = piece[0] in at_heading
        size = piece[1] - held[0][0] if held else 0
        if held and (size > limit or (new_section and held[-1][1] - held[0][0] >= limit // 4)):
            packed.append((held[0][0], held[-1][1]))
            held = [] if new_section else _tail(held, overlap, limit - (piece[1] - piece[0]))
        held.append(piece)
    if held:
        packed.append((held[0][0], held[-1][1]))
    return packed


def _tail(held: Sequence[Piece], overlap: int, room: int) -> list[Piece]:
    """The last pieces that fit into the overlap; never all of them, so that a chunk is always new."""
    end = held[-1][1]
    first = bisect_right([end - begin for begin, _ in reversed(held)], min(overlap, room))
    return list(held[max(1, len(held) - first) :])
