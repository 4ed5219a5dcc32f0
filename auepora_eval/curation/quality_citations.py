"""Checks of citations: their spans, the documents that they name, and whether those are the gold ones."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.document_names import DocumentName, DocumentNames, base_name, stem_of
from ..core.types import Document
from .quality_issue import QualityIssue
from .quality_view import DatasetView

_ELLIPSIS = re.compile(r"\s*(?:\.{3,}|…)\s*")


class CitedFiles:
    """The documents by the file names that citations use."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents
        self._names = DocumentNames(
            DocumentName(doc.doc_id, _text(doc.metadata.get("file_path")), _text(doc.metadata.get("title")))
            for doc in documents
        )

    def find(self, file_name: str) -> Document | None:
        """The document that a file name means, or None."""
        place = self._names.place_of(file_name)
        return None if place is None else self._documents[place]


def check_citation_validity(view: DatasetView) -> Iterator[QualityIssue]:
    """Spans that are none, lie outside their document, or do not hold the text that they quote."""
    files = CitedFiles(view.corpus)
    for place, sample in enumerate(view.samples):
        for number, citation in enumerate(view.citations(place)):
            where = view.where(place, f"citations[{number}]")
            for severity, message, fix in _faults(citation, files, has_corpus=view.has_corpus):
                yield QualityIssue(
                    severity, "citation_validity", message, where=where, sample_id=sample.sample_id, fix=fix
                )


def check_ground_truth_consistency(view: DatasetView) -> Iterator[QualityIssue]:
    """Documents that are cited but not relevant, and documents that are relevant but not cited."""
    corpus_files = CitedFiles(view.corpus)
    for place, sample in enumerate(view.samples):
        citations = view.citations(place)
        if not citations:
            continue
        gold = {doc.doc_id: None for doc in sample.relevant_docs or ()}
        files = corpus_files if view.has_corpus else CitedFiles(sample.relevant_docs or ())
        cited: dict[str, None] = {}
        for citation in citations:
            name = citation.get("file_name")
            if not isinstance(name, str) or not name:
                continue
            document = files.find(name)
            if document is not None:
                cited[document.doc_id] = None
            elif not view.has_corpus:  # the convention of file names: the stem is the document's id
                cited[stem_of(base_name(name))] = None
        for doc_id in cited:
            if doc_id not in gold:
                yield QualityIssue(
                    "warning" if view.has_corpus else "note",
                    "ground_truth_consistency",
                    f"document {doc_id!r:.80} is cited but not relevant.",
                    where=view.where(place, "citations"),
                    sample_id=sample.sample_id,
                    fix="Add it to the relevant documents, or drop the citation.",
                )
        for doc_id in gold:
            if doc_id not in cited:
                yield QualityIssue(
                    "note",
                    "ground_truth_consistency",
                    f"document {doc_id!r:.80} is relevant but not cited.",
                    where=view.where(place),
                    sample_id=sample.sample_id,
                    fix="Cite it if the answer needs it.",
                )


def _faults(
    citation: Mapping[str, Any], files: CitedFiles, *, has_corpus: bool
) -> Iterator[tuple[str, str, str]]:
    start: Any = citation.get("start_char")
    end: Any = citation.get("end_char")
    confidence = citation.get("confidence_score")
    if confidence is not None and not _is_share(confidence):
        yield "error", f"the confidence_score {confidence!r:.40} is not from 0 to 1.", "Change it."
    span = None
    if not _is_whole(start) or not _is_whole(end):
        yield "error", "the citation has no span: start_char or end_char is not a whole number.", "Add both."
    elif start < 0 or end < 0:
        yield "error", f"negative citation positions: {start} to {end}.", "Count characters from 0."
    elif start >= end:
        fix = "Swap start_char and end_char, or drop the citation." if start > end else "Drop the citation."
        yield "error", f"invalid citation span: start >= end ({start} >= {end}).", fix
    else:
        span = (start, end)
    name = citation.get("file_name")
    if not isinstance(name, str) or not name.strip():
        yield "error", "the citation names no file.", "Add file_name."
        return
    if not has_corpus:
        return
    document = files.find(name)
    if document is None:
        yield (
            "error",
            f"the file {name!r:.80} is none of the dataset's documents.",
            "Name it as a document's file_path, document_id or title, or add the document.",
        )
    elif span is not None and document.text:
        yield from _faults_in_text(citation, span, document)


def _faults_in_text(
    citation: Mapping[str, Any], span: tuple[int, int], document: Document
) -> Iterator[tuple[str, str, str]]:
    start, end = span
    if end > len(document.text):
        yield (
            "error",
            f"the span {start} to {end} goes beyond document {document.doc_id!r:.80}, "
            f"which has {len(document.text)} characters.",
            "Correct the span, or give the document's whole text.",
        )
        return
    context = citation.get("context_text")
    if not isinstance(context, str) or not (pieces := _pieces(context)):
        return
    spanned = _flat(document.text[start:end])
    if any(piece in spanned or spanned in piece for piece in pieces):
        return
    found = document.text.find(context.strip().strip("….").strip())
    elsewhere = f"it stands at {found}" if found >= 0 else "it is not in the document in these words"
    yield (
        "warning",
        f"the context_text is not at {start} to {end} of document {document.doc_id!r:.80}; {elsewhere}.",
        "Correct the span or the text.",
    )


def _pieces(context: str) -> list[str]:
    """What stands between the dots of an excerpt."""
    return [flat for piece in _ELLIPSIS.split(context) if (flat := _flat(piece))]


def _flat(text: str) -> str:
    return " ".join(text.casefold().split())


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
