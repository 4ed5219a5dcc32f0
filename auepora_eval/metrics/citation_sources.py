"""What a citation names, and where that leads: to a document's text, or nowhere, and why.

A citation is a record {"file_name", "page_number", "start_char", "end_char"} (an object with these attributes
will do, and so does the name of a document alone), or a mark in the answer. Files are found among the
documents by path, base name, stem, id and title, in that order. Spans are half-open, in characters of the
document; a retrieved chunk says where it is from by `metadata["source"]`, `["start"]` and `["end"]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

from ..core.document_names import DocumentName, DocumentNames
from ..core.types import Document
from ..errors import ScoringError
from .citation_marks import MOST_MARKS, Mark

UNRESOLVED = "unresolved"  # no document has that name
AMBIGUOUS = "ambiguous"  # several documents have that name
OUT_OF_RANGE = "out of range"  # no document at that rank, or no such characters in the document
FABRICATED = "fabricated"  # the words that are quoted are not in the document


class Citation(NamedTuple):
    """A place that is cited. Without `span` it is the whole document; `at` is its mark in the answer."""

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
    """A cited place in a form that can be compared: file, page and span, each as far as known."""

    file: str
    page: int | None
    span: tuple[int, int] | None


def citations_of(records: Any, what: str) -> list[Citation]:
    """The citations in a list of records; ScoringError for what is none."""
    if isinstance(records, str | bytes | Mapping) or not isinstance(records, Sequence):
        raise ScoringError(f"{what} must be a list, not {records!r:.80}")
    if len(records) > MOST_MARKS:
        raise ScoringError(f"{what} has more than {MOST_MARKS} citations")
    return [_citation(record, what, number) for number, record in enumerate(records)]


def citations_of_marks(found: Iterable[Mark]) -> list[Citation]:
    """Marks as citations."""
    return [Citation(m.file_name, m.page, m.span, m.number, m.excerpt, m.at) for m in found]


class Sources:
    """The documents that may be cited: by name, and those of a ranking by number."""

    def __init__(self, documents: Iterable[Document], ranked: Sequence[Document] = ()) -> None:
        self.ranked = ranked
        self._documents = [*ranked, *documents]

    @cached_property
    def texts(self) -> list[str]:
        """The texts of all documents that have one, each once."""
        return [text for text in dict.fromkeys(doc.text for doc in self._documents) if text.strip()]

    @cached_property
    def _by_source(self) -> dict[str, list[Document]]:
        """The documents of each source: one, or the chunks that it was cut into."""
        pieces: dict[str, list[Document]] = {}
        for doc in self._documents:
            pieces.setdefault(source_of(doc), []).append(doc)
        return pieces

    @cached_property
    def _names(self) -> tuple[DocumentNames, list[str]]:
        names: dict[DocumentName, str] = {}
        for source, pieces in self._by_source.items():
            path = _first_text(pieces, "file_path") or (source if "/" in source or "\\" in source else "")
            names[DocumentName(source, path, _first_text(pieces, "title"))] = source
            for doc in pieces:
                if doc.doc_id != source:
                    names[DocumentName(doc.doc_id)] = source
        return DocumentNames(names), list(names.values())

    def source(self, file_name: str) -> str | None:
        """The source that a file name means, or None."""
        names, sources = self._names
        place = names.place_of(file_name)
        return None if place is None else sources[place]

    def find(self, citation: Citation) -> Found:
        """Where a citation leads."""
        if citation.number is not None:
            if not 1 <= citation.number <= len(self.ranked):
                return Found(None, "", OUT_OF_RANGE)
            doc = self.ranked[citation.number - 1]
            return Found(doc, doc.text)
        source = self.source(citation.file_name)
        if source is None:
            several = self._names[0].is_ambiguous(citation.file_name)
            return Found(None, "", AMBIGUOUS if several else UNRESOLVED)
        return _found_in(self._by_source[source], citation)

    def places(self, *lists: Sequence[Citation]) -> list[list[Place]]:
        """Lists of citations as places, where one file has one name; what comes again is left out."""
        names = {c.file_name for citations in lists for c in citations if c.number is None}
        resolved = {name: source for name in names if (source := self.source(name)) is not None}
        strangers = sorted(names - set(resolved))
        if len(strangers) > 1:
            # Nobody knows these files, but docs/guide.pdf and guide.pdf are likely the same one.
            with_folder = [name for name in strangers if "/" in name or "\\" in name]
            known = DocumentNames(DocumentName(name, name) for name in with_folder)
            for name in strangers:
                place = known.place_of(name) if name not in with_folder else None
                resolved[name] = name if place is None else with_folder[place]
        return [
            list(dict.fromkeys(self._place(citation, resolved) for citation in citations))
            for citations in lists
        ]

    def _place(self, citation: Citation, resolved: Mapping[str, str]) -> Place:
        if citation.number is None:
            name = citation.file_name
            return Place(resolved.get(name, name), citation.page, citation.span)
        if 1 <= citation.number <= len(self.ranked):
            doc = self.ranked[citation.number - 1]
            return Place(source_of(doc), None, _chunk_span(doc))
        return Place(f"[{citation.number}]", None, None)


def source_of(doc: Document) -> str:
    """What a document or a chunk of it is a piece of."""
    source = doc.metadata.get("source")
    return source if isinstance(source, str) and source else doc.doc_id


def _found_in(pieces: Sequence[Document], citation: Citation) -> Found:
    with_text = [doc for doc in pieces if doc.text] or list(pieces)
    if citation.span is None:
        return _quoting(with_text[0], with_text[0].text, citation)
    start, end = citation.span
    for doc in with_text:
        chunk = _chunk_span(doc)
        first, last = chunk or (0, len(doc.text))
        if first <= start < end <= last:
            return _quoting(doc, doc.text[start - first : end - first], citation)
    # Nothing can be said of a document whose text is not there, or of which only chunks are.
    unknown = not with_text[0].text or (0 <= start < end and any(_chunk_span(doc) for doc in with_text))
    return Found(with_text[0], "", "" if unknown else OUT_OF_RANGE)


def _quoting(doc: Document, text: str, citation: Citation) -> Found:
    if citation.excerpt and doc.text:
        pieces = [_flat(piece) for piece in citation.excerpt.replace("…", "...").split("...")]
        whole = _flat(doc.text)
        if not all(piece in whole for piece in pieces):
            return Found(doc, text, FABRICATED)
    return Found(doc, text)


def _flat(text: str) -> str:
    return " ".join(text.casefold().split())


def _chunk_span(doc: Document) -> tuple[int, int] | None:
    start, end = doc.metadata.get("start"), doc.metadata.get("end")
    if _is_whole(start) and _is_whole(end) and 0 <= start < end:  # type: ignore[operator]  # as checked
        return start, end  # type: ignore[return-value]
    return None


def _first_text(documents: Iterable[Document], key: str) -> str:
    for doc in documents:
        value = doc.metadata.get(key)
        if isinstance(value, str) and value:
            return value
    return ""


def _citation(record: Any, where: str, number: int) -> Citation:
    if isinstance(record, str) and record:
        return Citation(record)
    get = record.get if isinstance(record, dict | Mapping) else partial(_attribute, record)
    name = get("file_name") or _other(get, "source_path", "document_id", "doc_id")
    page, start, end = get("page_number"), get("start_char"), get("end_char")
    if page is None:
        page = get("page")
    if start is None and end is None:
        start, end = get("start"), get("end")
    excerpt = _other(get, "excerpt", "text")
    if type(name) is not str or not _are_whole(page, start, end):
        raise ScoringError(
            f"{where}[{number}] needs a file_name, and page_number, start_char and end_char that are whole "
            f"numbers or left out, unlike {record!r:.120}"
        )
    span = None if start is None or end is None else (start, end)
    return Citation(name, page, span, None, excerpt if isinstance(excerpt, str) else "")


def _other(get: Callable[[str], Any], *keys: str) -> Any:
    for key in keys:
        found = get(key)
        if found is not None:
            return found
    return None


def _attribute(record: Any, key: str) -> Any:
    return getattr(record, key, None)


def _are_whole(page: Any, start: Any, end: Any) -> bool:
    """Whether a page is a number or none, and a span two numbers or none."""
    if page is not None and not _is_whole(page):
        return False
    return (start is None and end is None) or (_is_whole(start) and _is_whole(end))


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
