"""Check the content of a dataset: duplicates, references, citations, labels.

`io.schema` checks its format.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..core.dataset import EvaluationDataset
from ..core.types import Document, gold_documents
from ..errors import DataError
from ..read.text import kind_of
from ..text.document_names import DocumentNames, base_name, stem_of
from .samples import (
    check_answer_in_question,
    check_declared_size,
    check_empty_queries,
    check_label_values,
    check_prompts,
    check_query_uniqueness,
    check_reference_support,
    check_repeated_questions,
)
from .view import SEVERITIES, DatasetView, QualityIssue, view_of

Dataset = Mapping[str, Any] | EvaluationDataset
Check = Callable[[Any], Sequence[str]]


class DataQualityChecker:
    """Runs quality checks on a dataset: a `.eval.json` document as a dict, or an EvaluationDataset.

    `checks` may be added to or taken from. A check takes the dataset and returns texts, or QualityIssues;
    one that raises is a finding, "Check failed: NAME: ...", and the others still run.
    """

    def __init__(self) -> None:
        # The four checks of seed 003 come first; a user may take any of them out.
        self.checks: list[Check] = [
            self._check_query_uniqueness,
            self._check_document_references,
            self._check_citation_validity,
            self._check_ground_truth_consistency,
            self._check_content,
        ]

    def run_quality_checks(self, dataset: Dataset) -> list[str]:
        """Return the findings of all checks, worst first, as texts with place, message and fix."""
        return [str(issue) for issue in self.issues(dataset)]

    def issues(self, dataset: Dataset) -> list[QualityIssue]:
        """Return the findings with severity, check, sample id, place, message and fix."""
        if not isinstance(dataset, Mapping | EvaluationDataset):
            what = f"a .eval.json document or an EvaluationDataset was expected, not {kind_of(dataset)}."
            raise DataError("dataset", what, fix="Read it with load_dataset, or put a list in one.")
        findings = [issue for check in self.checks for issue in _findings(check, dataset)]
        return sorted(findings, key=lambda issue: SEVERITIES.index(issue.severity))

    def _check_query_uniqueness(self, dataset: Dataset) -> list[QualityIssue]:
        return list(check_query_uniqueness(view_of(dataset)))

    def _check_document_references(self, dataset: Dataset) -> list[QualityIssue]:
        return list(check_document_references(view_of(dataset)))

    def _check_citation_validity(self, dataset: Dataset) -> list[QualityIssue]:
        return list(check_citation_validity(view_of(dataset)))

    def _check_ground_truth_consistency(self, dataset: Dataset) -> list[QualityIssue]:
        return list(check_ground_truth_consistency(view_of(dataset)))

    def _check_content(self, dataset: Dataset) -> list[QualityIssue]:
        view = view_of(dataset)
        return [
            *check_empty_queries(view),
            *check_prompts(view),
            *check_documents(view),
            *check_answer_in_question(view),
            *check_reference_support(view),
            *check_repeated_questions(view),
            *check_label_values(view),
            *check_declared_size(view),
        ]


def _findings(check: Check, dataset: Dataset) -> Iterator[QualityIssue]:
    """Yield what a check finds; the text of a user's own check counts as a warning."""
    name = str(getattr(check, "__name__", "check"))
    try:
        for text in check(dataset):
            if isinstance(text, QualityIssue):
                yield text
            else:
                yield QualityIssue("warning", name.strip("_"), text, where="dataset")
    except Exception as error:  # noqa: BLE001 - a user's own function may raise anything
        what = f"Check failed: {name}: {error}"
        yield QualityIssue("error", name.strip("_"), what, where="dataset")


# Checks of citations: their spans, the documents that they name, and whether those are the gold ones.

# Dots that stand for text which an excerpt leaves out.
_ELLIPSIS = re.compile(r"\.{3,}|…")
Fault = tuple[str, str, str]  # severity, message, fix


def _names(documents: Sequence[Document]) -> DocumentNames[Document]:
    """Return the documents by the file names that citations use."""
    names: DocumentNames[Document] = DocumentNames()
    for doc in documents:
        names.add(doc, doc.doc_id, _text(doc.metadata.get("file_path")), _text(doc.metadata.get("title")))
    return names


def check_citation_validity(view: DatasetView) -> Iterator[QualityIssue]:
    """Yield spans that are invalid, lie outside their document, or do not hold the text that they quote."""
    files = _names(view.corpus) if view.corpus else None
    for place in range(len(view.samples)):
        for number, citation in enumerate(view.citations(place)):
            part = f"citations[{number}]"
            for severity, message, fix in _faults(citation, files):
                yield view.issue(severity, "citation_validity", message, place=place, part=part, fix=fix)


def check_ground_truth_consistency(view: DatasetView) -> Iterator[QualityIssue]:
    """Yield documents that are cited but not relevant, and documents that are relevant but not cited."""
    check = "ground_truth_consistency"
    files = _names(view.corpus)
    for place, sample in enumerate(view.samples):
        names = [_text(citation.get("file_name")) for citation in view.citations(place)]
        if not names or (sample.relevant_docs is None and not view.corpus):
            continue
        gold = dict.fromkeys(doc.doc_id for doc in gold_documents(sample))
        own_files = files if view.corpus else _names(sample.relevant_docs or ())
        found = {name: own_files.find(name) for name in names if name}
        cited = {doc.doc_id for doc in found.values() if doc is not None}
        if not view.corpus:  # the stem of a file name is taken for the id, which is a guess
            cited |= {stem_of(base_name(name)) for name, doc in found.items() if doc is None}
        for doc_id in sorted(cited - gold.keys()):
            severity = "warning" if view.corpus else "note"
            message = f"document {doc_id!r:.80} is cited but not relevant."
            fix = "Add it to the relevant documents, or drop the citation."
            yield view.issue(severity, check, message, place=place, part="citations", fix=fix)
        for doc_id in (each for each in gold if each not in cited):
            message = f"document {doc_id!r:.80} is relevant but not cited."
            yield view.issue("note", check, message, place=place, fix="Cite it if the answer needs it.")


def _faults(citation: Mapping[str, Any], files: DocumentNames[Document] | None) -> Iterator[Fault]:
    start: Any = citation.get("start_char")
    end: Any = citation.get("end_char")
    confidence = citation.get("confidence_score")
    if confidence is not None and not (_is_number(confidence) and 0 <= confidence <= 1):
        yield "error", f"the confidence_score {confidence!r:.40} is not from 0 to 1.", "Change it."
    span = None
    if start is None and end is None:
        pass  # the whole document is cited
    elif not _is_whole(start) or not _is_whole(end):
        yield "error", "the citation has no span: start_char or end_char is not a whole number.", "Add both."
    elif start < 0 or end < 0:
        yield "error", f"negative citation positions: {start} to {end}.", "Count characters from 0."
    elif start >= end:
        yield "error", f"invalid citation span: start >= end ({start} >= {end}).", "Correct or drop it."
    else:
        span = (start, end)
    name = _text(citation.get("file_name"))
    if not name.strip():
        yield "error", "the citation names no file.", "Add file_name."
    elif files is not None:
        document = files.find(name)
        if document is None:
            fix = "Name it as a document's file_path, document_id or title, or add the document."
            yield "error", f"the file {name!r:.80} is none of the dataset's documents.", fix
        elif span is not None and document.text:
            yield from _faults_in_text(_text(citation.get("context_text")), span, document)


def _faults_in_text(context: str, span: tuple[int, int], document: Document) -> Iterator[Fault]:
    start, end = span
    named, size = f"document {document.doc_id!r:.80}", len(document.text)
    if end > size:
        what = f"the span {start} to {end} goes beyond {named}, which has {size} characters."
        yield "error", what, "Correct the span, or give the document's whole text."
        return
    spanned = _flat(document.text[start:end])
    pieces = [flat for piece in _ELLIPSIS.split(context) if (flat := _flat(piece))]
    if pieces and not any(piece in spanned or spanned in piece for piece in pieces):
        place = document.text.find(context.strip().strip("….").strip())
        elsewhere = f"it is at {place}" if place >= 0 else "it is not in the document in these words"
        what = f"the context_text is not at {start} to {end} of {named}; {elsewhere}."
        yield "warning", what, "Correct the span or the text."


def _flat(text: str) -> str:
    return " ".join(text.casefold().split())


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# Checks of the documents, and of what the samples name as gold.


def check_document_references(view: DatasetView) -> Iterator[QualityIssue]:
    """Yield gold documents that the corpus lacks; nothing where the dataset carries no corpus."""
    corpus_ids = {doc.doc_id for doc in view.corpus}
    for place, sample in enumerate(view.samples if view.corpus else ()):
        for doc in sample.relevant_docs or ():
            if doc.doc_id not in corpus_ids:
                message = f"references missing document: {doc.doc_id!r:.80} is not in the corpus."
                fix = "Add the document, or correct the id: no system can retrieve it."
                yield view.issue("error", "document_references", message, place=place, fix=fix)


def check_documents(view: DatasetView) -> Iterator[QualityIssue]:
    """Yield an id twice in the corpus, documents without text, an id with two texts, a text with two ids."""

    def found(severity: str, check: str, message: str, fix: str) -> QualityIssue:
        return QualityIssue(severity, check, message, where="documents", fix=fix)

    for doc_id, count in Counter(doc.doc_id for doc in view.corpus).items():
        if count > 1:
            what = f"duplicate document id: {doc_id!r:.80} occurs more than once in the corpus."
            yield found("error", "document_ids", what, "Give each document its own.")
    empty = [doc.doc_id for doc in view.corpus if not doc.text.strip()]
    if empty:
        what = f"{len(empty)} of {len(view.corpus)} documents have no text: {_listed(empty)}."
        fix = "Add the text: support and faithfulness cannot be measured without it."
        yield found("warning", "empty_documents", what, fix)
    texts: dict[str, dict[str, None]] = {}
    owners: dict[str, dict[str, None]] = {}  # dicts in place of sets: they keep the order
    for doc in view.documents():
        flat = " ".join(doc.text.split())
        if flat:
            texts.setdefault(doc.doc_id, {})[flat] = None
            owners.setdefault(flat, {})[doc.doc_id] = None
    for doc_id in (each for each, own in texts.items() if len(own) > 1):
        what = f"document {doc_id!r:.80} has different texts in different places."
        yield found("warning", "document_texts", what, "Documents are matched by id: give each text its own.")
    for ids in (each for each in owners.values() if len(each) > 1):
        what = f"documents {_listed(list(ids))} have the same text."
        fix = "A system that finds the other copy counts as wrong: keep one, or make both gold."
        yield found("warning", "duplicate_documents", what, fix)


def _listed(ids: list[str], limit: int = 5) -> str:
    listed = ", ".join(f"{doc_id!r:.80}" for doc_id in ids[:limit])
    return listed if len(ids) <= limit else f"{listed} and {len(ids) - limit} more"
