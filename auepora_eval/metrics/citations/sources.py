"""Read citations, from marks in an answer or from records, and find the text that each one leads to.

| [2]  [^2]  [1,3]  [1-3]  [1][2]              the documents that were retrieved at these ranks, from 1
| [ferries.pdf:3:120-180]                      characters 120 up to, not including, 180 of a file
| [ferries.pdf:120-180]                        the same without a page
| [ferries.pdf:3:120-180,300-340]              two spans of it
| [ferries.pdf:3:120-180 | excerpt: "..."]     with the words that are quoted from it

A citation is a record {"file_name", "page_number", "start_char", "end_char"} (an object with these attributes
will do, and so does the name of a document alone), or a mark in the answer. Files are found among the
documents by path, base name, stem, id and title, in that order. Spans are half-open, in characters of the
document; a retrieved chunk says where it is from by `metadata["source"]`, `["start"]` and `["end"]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import Any, NamedTuple, TypeGuard

import numpy as np

from ...core.matching import ENDS, STARTS, Span, chunk_span, located
from ...core.types import Document
from ...errors import BadOutputError
from ...read.names import DOCUMENT_ID
from ...text.document_names import DocumentNames

UNRESOLVED = "unresolved"  # no document has that name
AMBIGUOUS = "ambiguous"  # several documents have that name
OUT_OF_RANGE = "out of range"  # no document at that rank, or no such characters in the document
FABRICATED = "fabricated"  # the words that are quoted are not in the document


MOST_MARKS = 1_000  # of one answer; a text with more is not an answer with citations
_WIDEST_RANGE = 50

# Possessive, and never over an opening bracket: linear, whatever an answer is made of.
_MARK = re.compile(
    r"\[\s*+(?:"
    r"\^?+(?P<numbers>\d{1,3}+(?:\s*+[,;–-]\s*+\d{1,3}+)*+)"
    r"|(?P<file>[^\[\]\n|]{1,1000}+)(?:\|\s*+excerpt:(?P<excerpt>[^\[\]]{0,5000}+))?+"
    r")\s*+\]"
)
_PLACE = re.compile(r"(?P<file>.*?\S)\s*:\s*(?:(?P<page>\d{1,6})\s*:\s*)?(?P<spans>\d[\d\s,–-]*)", re.DOTALL)
_SPAN = re.compile(r"\s*(\d{1,12})\s*[–-]\s*(\d{1,12})\s*")
_PART = re.compile(r"(\d{1,3})(?:\s*[–-]\s*(\d{1,3}))?")
_QUOTES = " \t\n\"'“”‘’„«»"


class Citation(NamedTuple):
    """A place that is cited: [1,2] are two at one place of the answer.

    Either `number` is set, or `file_name`. `span` is half-open, and as it was written: it may be empty.
    Without it, the whole document is cited. `at` is the mark in the answer, if the citation is one.
    """

    file_name: str = ""
    page: int | None = None
    span: tuple[int, int] | None = None
    number: int | None = None
    excerpt: str = ""
    at: tuple[int, int] | None = None


class Found(NamedTuple):
    """Where a citation leads: the document and the cited text; `trouble` says what is wrong with it."""

    document: Document | None
    text: str
    trouble: str = ""


class Place(NamedTuple):
    """A cited place in a form that can be compared: file, page and span, each as far as known.

    The whole of a document or of a chunk is cited where a citation has no span of its own.
    """

    file: str
    page: int | None
    span: tuple[int, int] | None
    is_all: bool = False


def marks(answer: str) -> list[Citation]:
    """Return what an answer cites by marks, in order; brackets that are not citations are left alone.

    >>> [mark.number for mark in marks("It moors at the pier [1,3] or not [4-5]. See [sic].")]
    [1, 3, 4, 5]
    """
    cited: list[Citation] = []
    if "[" not in answer:
        return cited
    for match in _MARK.finditer(answer):
        cited.extend(_numbered(match) if match["numbers"] else _placed(match))
        if len(cited) > MOST_MARKS:
            raise BadOutputError(f"the answer has more than {MOST_MARKS} citations")
    return cited


def _numbered(match: re.Match[str]) -> Iterator[Citation]:
    at = match.span()
    for first, last in _PART.findall(match["numbers"]):
        # [3-1] is not a range, and [1-900] cites nothing in particular: both ends are taken as single marks.
        ends = (int(first), int(last or first))
        is_range = 0 <= ends[1] - ends[0] <= _WIDEST_RANGE
        for number in range(ends[0], ends[1] + 1) if is_range else ends:
            yield Citation(number=number, at=at)


def _placed(match: re.Match[str]) -> Iterator[Citation]:
    place = _PLACE.fullmatch(match["file"].strip())
    if place is None:
        return
    excerpt = (match["excerpt"] or "").strip(_QUOTES)
    page = None if place["page"] is None else int(place["page"])
    spans = [_SPAN.fullmatch(part) for part in place["spans"].split(",")]
    if all(spans):
        for span in filter(None, spans):
            yield Citation(place["file"], page, (int(span[1]), int(span[2])), None, excerpt, match.span())


def citations_of(records: Any, what: str) -> list[Citation]:
    """Return the citations in a list of records; BadOutputError for anything else."""
    if isinstance(records, str | bytes | Mapping) or not isinstance(records, Sequence):
        raise BadOutputError(f"{what} must be a list, not {records!r:.80}")
    if len(records) > MOST_MARKS:
        raise BadOutputError(f"{what} has more than {MOST_MARKS} citations")
    return [_citation(record, what, number) for number, record in enumerate(records)]


class Sources:
    """The documents that may be cited: by name, and those of a ranking by number.

    A file has the name that the dataset gives it, and a chunk the place that any of its copies says.
    """

    def __init__(self, documents: Iterable[Document], ranked: Sequence[Document] = ()) -> None:
        self.ranked = ranked
        self._given = list(documents)
        self._documents = [*ranked, *self._given]

    @cached_property
    def texts(self) -> list[str]:
        """Return the texts of all documents that have one, each once."""
        return [text for text in dict.fromkeys(doc.text for doc in self._documents) if text.strip()]

    @property
    def are_without_texts(self) -> bool:
        """Whether there are documents but no text of any: nothing can be checked against them."""
        return bool(self._documents) and not self.texts

    @cached_property
    def _chunks(self) -> dict[str, _Chunk]:
        """Return what is known of each document, by its id; a retrieved one may be one of the dataset."""
        places = located([*self._given, *self.ranked])
        chunks = {doc_id: _Chunk(doc_id, *place) for doc_id, place in places.items()}
        given = {doc.doc_id for doc in self._given}
        strangers = [doc for doc in self.ranked if doc.doc_id not in given]
        if given and strangers:
            names = _names(self._given, chunks)
            copies = {text: doc.doc_id for doc in self._given if (text := doc.text.strip())}
            for doc in strangers:
                _, source, span = chunks[doc.doc_id]
                known, copy = names.find(source), copies.get(doc.text.strip())
                if copy is not None and known in (None, chunks[copy].source):
                    chunks[doc.doc_id] = chunks[copy]
                elif known is not None:
                    chunks[doc.doc_id] = _Chunk(known if doc.doc_id == source else doc.doc_id, known, span)
        return chunks

    @cached_property
    def _by_source(self) -> dict[str, list[Document]]:
        """Return the documents of each source: one, or the chunks that it was cut into."""
        pieces: dict[str, list[Document]] = {}
        for doc in self._documents:
            pieces.setdefault(self._chunks[doc.doc_id].source, []).append(doc)
        return pieces

    @cached_property
    def _names(self) -> DocumentNames[str]:
        return _names([*self._given, *self.ranked], self._chunks)

    def source(self, doc: Document) -> str:
        """Return the document that one of these, or a part of it, is."""
        return self._chunks[doc.doc_id].source

    def find(self, citation: Citation) -> Found:
        """Return the document and the text that a citation leads to."""
        if citation.number is not None:
            if not 1 <= citation.number <= len(self.ranked):
                return Found(None, "", OUT_OF_RANGE)
            doc = self.ranked[citation.number - 1]
            return Found(doc, doc.text)
        name = citation.file_name
        source = self._names.find(name)
        if source is None:
            return Found(None, "", AMBIGUOUS if self._names.is_ambiguous(name) else UNRESOLVED)
        pieces = self._by_source[source]
        return _found_in([doc for doc in pieces if doc.doc_id == name] or pieces, citation)

    def places(self, gold: Sequence[Citation], cited: Sequence[Citation]) -> tuple[list[Place], list[Place]]:
        """Return citations as places, where one file has one name; repeats are left out.

        Who cites a document without a span cites all of it. Gold without a span is found by any span.
        """
        names = {citation.file_name for citation in (*gold, *cited) if citation.number is None}
        files = {name: source for name in names if (source := self._names.find(name)) is not None}
        unresolved = sorted(names - set(files))
        if len(unresolved) > 1:
            # No document has these names, but docs/guide.pdf and guide.pdf are likely the same file.
            with_folder = [name for name in unresolved if "/" in name or "\\" in name]
            candidates: DocumentNames[str] = DocumentNames()
            for name in with_folder:
                candidates.add(name, name, name)
            files |= {name: candidates.find(name) or name for name in unresolved if name not in with_folder}
        # A chunk that is gold and whose place is not known can only be cited as itself.
        chunks = [self._chunks.get(citation.file_name) for citation in gold]
        apart = {chunk.doc_id for chunk in chunks if chunk and not chunk.span}
        golden = [self._place(one, files, apart)[0]._replace(is_all=one.span is None) for one in gold]
        places = (self._place(citation, files, apart) for citation in cited)
        # A chunk that does not say where it is from is only a part of the document.
        whole = (p if p.span or is_part else p._replace(span=self._extent(p.file)) for p, is_part in places)
        return list(dict.fromkeys(golden)), list(dict.fromkeys(whole))

    def _extent(self, source: str) -> Span | None:
        """Return the span of a whole document; None if its length is not known."""
        pieces = self._by_source.get(source, ())
        ends = [len(doc.text) for doc in self._documents if doc.doc_id == source]
        ends += [chunk.span[1] for doc in pieces if (chunk := self._chunks[doc.doc_id]).span]
        return (0, max(ends)) if any(ends) else None

    def _place(self, citation: Citation, files: Mapping[str, str], apart: Set[str]) -> tuple[Place, bool]:
        """Return what is cited, and whether that is a part of its file."""
        number = citation.number
        if number is None:
            chunk = self._chunks.get(citation.file_name)
        elif 1 <= number <= len(self.ranked):
            chunk = self._chunks[self.ranked[number - 1].doc_id]
        else:
            return Place(f"[{number}]", None, None), False
        if chunk is None:
            name = citation.file_name
            return Place(files.get(name, name), citation.page, citation.span), False
        file = chunk.doc_id if chunk.doc_id in apart else chunk.source
        return Place(file, citation.page, citation.span or chunk.span), chunk.doc_id != file


class _Chunk(NamedTuple):
    """What is known of a document: its id in the dataset, what it is a part of, and where in that it is."""

    doc_id: str
    source: str
    span: Span | None


def _names(documents: Sequence[Document], chunks: Mapping[str, _Chunk]) -> DocumentNames[str]:
    """Return the source that a file name means, by the path, the title and the ids of its documents."""
    pieces: dict[str, list[Document]] = {}
    for doc in documents:
        pieces.setdefault(chunks[doc.doc_id].source, []).append(doc)
    names: DocumentNames[str] = DocumentNames()
    for source, parts in pieces.items():
        path = _first_text(parts, "file_path") or (source if "/" in source or "\\" in source else "")
        names.add(source, source, path, _first_text(parts, "title"))
        for doc in parts:
            names.add(source, doc.doc_id)
    return names


def _found_in(pieces: Sequence[Document], citation: Citation) -> Found:
    # Prefer a piece with text: the same source may be listed without it.
    with_text = [doc for doc in pieces if doc.text] or list(pieces)
    if citation.span is None:
        return _quoting(with_text[0], with_text[0].text, citation)
    start, end = citation.span
    for doc in with_text:
        first, last = chunk_span(doc) or (0, len(doc.text))
        if first <= start < end <= last:
            return _quoting(doc, doc.text[start - first : end - first], citation)
    # A document without its text, or of which only chunks are present, cannot be checked.
    unknown = not with_text[0].text or (0 <= start < end and any(map(chunk_span, with_text)))
    return Found(with_text[0], "", "" if unknown else OUT_OF_RANGE)


def _quoting(doc: Document, text: str, citation: Citation) -> Found:
    if citation.excerpt and doc.text:
        # An ellipsis in a quotation leaves words out: each piece must occur.
        pieces = [_flat(piece) for piece in citation.excerpt.replace("…", "...").split("...")]
        whole = _flat(doc.text)
        if not all(piece in whole for piece in pieces):
            return Found(doc, text, FABRICATED)
    return Found(doc, text)


def _flat(text: str) -> str:
    return " ".join(text.casefold().split())


def _first_text(documents: Iterable[Document], key: str) -> str:
    values = (doc.metadata.get(key) for doc in documents)
    return next((value for value in values if isinstance(value, str) and value), "")


# What names the document that is cited: seeds 003 and 000, then the names of any document.
_CITED = ("file_name", "filename", "source_path", *DOCUMENT_ID, "source", "document")


def _citation(record: Any, where: str, number: int) -> Citation:
    if isinstance(record, str) and record:
        return Citation(record)

    def first(*keys: str) -> Any:
        values = (
            record.get(key) if isinstance(record, Mapping) else getattr(record, key, None) for key in keys
        )
        return next((value for value in values if value is not None), None)

    name = first(*_CITED)
    page, start, end = first("page_number", "page"), first(*STARTS), first(*ENDS)
    has_span = _is_whole(start) and _is_whole(end)
    is_usable = (page is None or _is_whole(page)) and (has_span or (start is None and end is None))
    if isinstance(name, bool) or not isinstance(name, str | int) or not is_usable:
        raise BadOutputError(
            f"{where}[{number}] needs a file_name, and page_number, start_char and end_char that are whole "
            f"numbers or left out, unlike {record!r:.120}"
        )
    excerpt = first("excerpt", "text")
    span = (start, end) if has_span else None
    return Citation(str(name), page, span, None, excerpt if isinstance(excerpt, str) else "")


def _is_whole(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


# How well cited places agree with the gold ones: one to one, file by file, in characters.
#
# Spans are half-open: 10 to 20 are ten characters. Two places can match only in one file, and on one page
# where both name one. A boundary that misses the gold one by no more than the tolerance counts as right
# ("snaps"); spans that share no character are different places, however near. Gold without a partner counts
# 0.

TOLERANCE = 10
GOOD = 0.8
OVERLAP = 0.5


class Match(NamedTuple):
    """A gold place and the cited one that was assigned to it, by their numbers, and how well they agree."""

    gold: int
    cited: int
    exact: float
    tolerant: float


def jaccard(one: Span, other: Span) -> float:
    """Characters in both spans / characters in either.

    >>> jaccard((100, 200), (150, 250))
    0.3333333333333333
    """
    shared = min(one[1], other[1]) - max(one[0], other[0])
    if shared <= 0:
        return 0.0
    return shared / (one[1] - one[0] + other[1] - other[0] - shared)


def tolerant_jaccard(gold: Span, cited: Span, tolerance: int = TOLERANCE) -> float:
    """Return the same, after each cited boundary within the tolerance was moved to the gold one.

    >>> tolerant_jaccard((100, 200), (95, 208))
    1.0
    """
    if min(gold[1], cited[1]) <= max(gold[0], cited[0]):
        return 0.0
    start = gold[0] if abs(cited[0] - gold[0]) <= tolerance else cited[0]
    end = gold[1] if abs(cited[1] - gold[1]) <= tolerance else cited[1]
    return jaccard(gold, (start, end))


def overlapping(gold: Sequence[Place], cited: Sequence[Place], tolerance: int = TOLERANCE) -> list[Match]:
    """Return every pair that has characters in common."""
    pairs = []
    for left, right in _same_page(gold, cited):
        one, other = gold[left].span, cited[right].span
        if one is not None and other is not None and (exact := jaccard(one, other)) > 0:
            pairs.append(Match(left, right, exact, tolerant_jaccard(one, other, tolerance)))
    return pairs


def assigned(pairs: Sequence[Match]) -> list[Match]:
    """Return the one-to-one choice with the largest sum of tolerant Jaccards, then of exact ones."""
    if not pairs:
        return []
    of_gold, of_cited, exact, tolerant = zip(*pairs, strict=True)
    if len(set(of_gold)) == len(set(of_cited)) == len(pairs):
        return list(pairs)  # nobody competes for anything
    from scipy.optimize import linear_sum_assignment

    by_places = {(pair.gold, pair.cited): pair for pair in pairs}
    worth = np.zeros((max(of_gold) + 1, max(of_cited) + 1))
    # Exact agreement only breaks ties: no sum of these differences reaches a real one.
    worth[of_gold, of_cited] = np.array(tolerant) + 1e-9 * np.array(exact)
    rows, columns = linear_sum_assignment(worth, maximize=True)
    chosen = zip(rows.tolist(), columns.tolist(), strict=True)
    return [by_places[places] for places in chosen if places in by_places]


def found(gold: Sequence[Place], cited: Sequence[Place], overlap: float = OVERLAP) -> tuple[int, int]:
    """Return how many of each list have a partner in the other: same file and page, and enough overlap.

    Gold without a span is the whole file or chunk: what is mostly in it agrees. The other way round nothing
    agrees, or a vague citation would be worth more than one whose span is too long.
    """
    agreeing = [(pair.gold, pair.cited) for pair in overlapping(gold, cited) if pair.tolerant >= overlap]
    agreeing += [
        (left, right)
        for left, right in _same_page(gold, cited)
        if gold[left].is_all and _share_within(gold[left].span, cited[right].span) >= overlap
    ]
    return len({left for left, _ in agreeing}), len({right for _, right in agreeing})


def _share_within(whole: Span | None, part: Span | None) -> float:
    """Return the share of the characters of a part that are in the whole; all are if that has no limits."""
    if whole is None or part is None or part[0] >= part[1]:
        return float(whole is None)
    return max(0, min(whole[1], part[1]) - max(whole[0], part[0])) / (part[1] - part[0])


def _same_page(gold: Sequence[Place], cited: Sequence[Place]) -> Iterator[tuple[int, int]]:
    by_file: dict[str, list[int]] = {}
    for number, place in enumerate(cited):
        by_file.setdefault(place.file, []).append(number)
    for left, (file, page, *_) in enumerate(gold):
        for right in by_file.get(file, ()):
            if page is None or cited[right].page in (None, page):
                yield left, right
