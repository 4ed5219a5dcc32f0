"""Checks of the documents, and of what the samples name as gold."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.types import Document
from .quality_issue import QualityIssue
from .quality_view import DatasetView


def check_document_references(view: DatasetView) -> Iterator[QualityIssue]:
    """Gold documents that the corpus lacks; nothing where the dataset carries no corpus."""
    if not view.has_corpus:
        return
    known = view.by_id
    for place, sample in enumerate(view.samples):
        for doc in sample.relevant_docs or ():
            if doc.doc_id not in known:
                yield QualityIssue(
                    "error",
                    "document_references",
                    f"references missing document: {doc.doc_id!r:.80} is not in the corpus.",
                    where=view.where(place),
                    sample_id=sample.sample_id,
                    fix="Add the document, or correct the id: no system can retrieve it.",
                )


def check_documents(view: DatasetView) -> Iterator[QualityIssue]:
    """One text under two ids, one id with two texts, one id twice in the corpus, a document without text."""
    yield from _repeated_ids(view)
    texts: dict[str, str] = {}
    clashing: dict[str, None] = {}
    first: dict[str, Document] = {}
    for doc in view.documents():
        if first.get(doc.doc_id) is doc:
            continue  # the corpus's own, named by a sample
        first.setdefault(doc.doc_id, doc)
        flat = " ".join(doc.text.split())
        if flat and texts.setdefault(doc.doc_id, flat) != flat:
            clashing[doc.doc_id] = None
    for doc_id in clashing:
        yield QualityIssue(
            "warning",
            "document_texts",
            f"document {doc_id!r:.80} has different texts in different places.",
            where="documents",
            fix="Documents are matched by id: give each text its own.",
        )
    owners: dict[str, list[str]] = {}
    for doc_id, flat in texts.items():
        owners.setdefault(flat, []).append(doc_id)
    for ids in owners.values():
        if len(ids) > 1:
            yield QualityIssue(
                "warning",
                "duplicate_documents",
                f"documents {_listed(ids)} have the same text.",
                where="documents",
                fix="A system that finds the other copy counts as wrong: keep one, or make both gold.",
            )


def _repeated_ids(view: DatasetView) -> Iterator[QualityIssue]:
    seen: set[str] = set()
    repeated: dict[str, None] = {}
    empty: list[str] = []
    for doc in view.corpus:
        if doc.doc_id in seen:
            repeated[doc.doc_id] = None
        seen.add(doc.doc_id)
        if not doc.text.strip():
            empty.append(doc.doc_id)
    for doc_id in repeated:
        yield QualityIssue(
            "error",
            "document_ids",
            f"duplicate document id: {doc_id!r:.80} occurs more than once in the corpus.",
            where="documents",
            fix="Give each document its own.",
        )
    if empty:
        yield QualityIssue(
            "warning",
            "empty_documents",
            f"{len(empty)} of {len(view.corpus)} documents have no text: {_listed(empty)}.",
            where="documents",
            fix="Add the text: support and faithfulness cannot be measured without it.",
        )


def _listed(ids: list[str], limit: int = 5) -> str:
    shown = ", ".join(f"{doc_id!r:.80}" for doc_id in ids[:limit])
    return shown if len(ids) <= limit else f"{shown} and {len(ids) - limit} more"
