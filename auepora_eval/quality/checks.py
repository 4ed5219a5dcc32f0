"""Check the content of a dataset: duplicates, references, citations, labels.

`io.schema` checks its format.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ..core.dataset import EvaluationDataset
from ..core.types import Document, gold_documents
from ..errors import DataError
from ..read.text import kind_of
from ..text.document_names import DocumentName, DocumentNames, base_name, stem_of
from .samples import (
    MIN_SUPPORT,
    check_answer_in_question,
    check_declared,
    check_empty_queries,
    check_label_values,
    check_near_duplicates,
    check_prompts,
    check_query_uniqueness,
    check_reference_support,
)
from .view import SEVERITIES, DatasetView, QualityIssue, view_of

Dataset = Mapping[str, Any] | EvaluationDataset
Check = Callable[[Any], Sequence[str]]
ViewCheck = Callable[[DatasetView], Iterator[QualityIssue]]


def check_form(view: DatasetView) -> Iterator[QualityIssue]:
    """Parts of a document that were left out because of their form."""
    for where, what in view.left_out:
        fix = "`auepora dataset check` lists all that is malformed."
        yield QualityIssue("error", "form", what, where=where, fix=fix)


class DataQualityChecker:
    """Runs quality checks on a dataset: a `.eval.json` document as a dict, or an EvaluationDataset.

    `checks` may be added to or taken from. A check takes the dataset and returns texts, or QualityIssues;
    one that raises is a finding, "Check failed: NAME: ...", and the others still run.
    """

    def __init__(self, *, min_support: float = MIN_SUPPORT) -> None:
        # The four checks of seed 003 come first; a user may take any of them out.
        further: tuple[ViewCheck, ...] = (
            check_form,
            check_empty_queries,
            check_prompts,
            check_documents,
            check_answer_in_question,
            partial(check_reference_support, min_support=min_support),
            check_near_duplicates,
            check_label_values,
            check_declared,
        )
        self.checks: list[Check] = [
            self._check_query_uniqueness,
            self._check_document_references,
            self._check_citation_validity,
            self._check_ground_truth_consistency,
            *(_named(partial(self._run, check), check) for check in further),
        ]
        self._last_view: tuple[Dataset, DatasetView] | None = None

    def run_quality_checks(self, dataset: Dataset) -> list[str]:
        """Return the findings of all checks, worst first, as texts with place, message and fix."""
        return [str(issue) for issue in self.issues(dataset)]

    def issues(self, dataset: Dataset) -> list[QualityIssue]:
        """Return the findings with severity, check, sample id, place, message and fix."""
        if not isinstance(dataset, Mapping | EvaluationDataset):
            what = f"a .eval.json document or an EvaluationDataset was expected, not {kind_of(dataset)}."
            raise DataError("dataset", what, fix="Read it with load_dataset, or put a list in one.")
        self._last_view = (dataset, view_of(dataset))
        try:
            findings = [issue for check in self.checks for issue in _findings(check, dataset)]
        finally:
            self._last_view = None  # the dataset may change before the next call
        return sorted(findings, key=lambda issue: SEVERITIES.index(issue.severity))

    def _check_query_uniqueness(self, dataset: Dataset) -> list[QualityIssue]:
        return self._run(check_query_uniqueness, dataset)

    def _check_document_references(self, dataset: Dataset) -> list[QualityIssue]:
        return self._run(check_document_references, dataset)

    def _check_citation_validity(self, dataset: Dataset) -> list[QualityIssue]:
        return self._run(check_citation_validity, dataset)

    def _check_ground_truth_consistency(self, dataset: Dataset) -> list[QualityIssue]:
        return self._run(check_ground_truth_consistency, dataset)

    def _run(self, check: ViewCheck, dataset: Dataset) -> list[QualityIssue]:
        """Run a check on the view of a dataset; the checks of one call of `issues` share the view."""
        if self._last_view is not None and self._last_view[0] is dataset:
            return list(check(self._last_view[1]))
        return list(check(view_of(dataset)))


def _named(run: Check, check: ViewCheck) -> Check:
    """Return a check that has the name of the function in it."""
    run.__name__ = getattr(check, "__name__", "check_reference_support")
    return run


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
    """Spans that are invalid, lie outside their document, or do not hold the text that they quote."""
    files = CitedFiles(view.corpus)
    for place in range(len(view.samples)):
        for number, citation in enumerate(view.citations(place)):
            part = f"citations[{number}]"
            for severity, message, fix in _faults(citation, files, has_corpus=view.has_corpus):
                yield view.issue(severity, "citation_validity", message, place=place, part=part, fix=fix)


def check_ground_truth_consistency(view: DatasetView) -> Iterator[QualityIssue]:
    """Documents that are cited but not relevant, and documents that are relevant but not cited."""
    check = "ground_truth_consistency"
    files = CitedFiles(view.corpus)
    for place, sample in enumerate(view.samples):
        citations = view.citations(place)
        if not citations or (sample.relevant_docs is None and not view.has_corpus):
            continue
        gold = dict.fromkeys(doc.doc_id for doc in gold_documents(sample))
        if view.has_corpus:
            cited = _cited_ids(citations, files, by_name=False)
        else:
            cited = _cited_ids(citations, CitedFiles(sample.relevant_docs or ()), by_name=True)
        for doc_id in (each for each in cited if each not in gold):
            severity = "warning" if view.has_corpus else "note"
            message = f"document {doc_id!r:.80} is cited but not relevant."
            fix = "Add it to the relevant documents, or drop the citation."
            yield view.issue(severity, check, message, place=place, part="citations", fix=fix)
        for doc_id in (each for each in gold if each not in cited):
            message = f"document {doc_id!r:.80} is relevant but not cited."
            yield view.issue("note", check, message, place=place, fix="Cite it if the answer needs it.")


def _cited_ids(
    citations: Sequence[Mapping[str, object]], files: CitedFiles, *, by_name: bool
) -> dict[str, None]:
    """Return the ids of the cited documents; `by_name`: that of an unknown file is its name's stem."""
    ids: dict[str, None] = {}
    for citation in citations:
        name = _text(citation.get("file_name"))
        document = files.find(name) if name else None
        if document is not None:
            ids[document.doc_id] = None
        elif name and by_name:
            ids[stem_of(base_name(name))] = None
    return ids


def _faults(
    citation: Mapping[str, Any], files: CitedFiles, *, has_corpus: bool
) -> Iterator[tuple[str, str, str]]:
    start: Any = citation.get("start_char")
    end: Any = citation.get("end_char")
    confidence = citation.get("confidence_score")
    is_number = isinstance(confidence, int | float) and not isinstance(confidence, bool)
    if confidence is not None and not (is_number and 0 <= confidence <= 1):
        yield "error", f"the confidence_score {confidence!r:.40} is not from 0 to 1.", "Change it."
    span = None
    if start is None and end is None:
        pass  # the whole document is cited
    elif not _is_whole(start) or not _is_whole(end):
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
    place = document.text.find(context.strip().strip("….").strip())
    elsewhere = f"it is at {place}" if place >= 0 else "it is not in the document in these words"
    yield (
        "warning",
        f"the context_text is not at {start} to {end} of document {document.doc_id!r:.80}; {elsewhere}.",
        "Correct the span or the text.",
    )


def _pieces(context: str) -> list[str]:
    """Return the parts of an excerpt between its dots."""
    return [flat for piece in _ELLIPSIS.split(context) if (flat := _flat(piece))]


def _flat(text: str) -> str:
    return " ".join(text.casefold().split())


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# Checks of the documents, and of what the samples name as gold.


def check_document_references(view: DatasetView) -> Iterator[QualityIssue]:
    """Gold documents that the corpus lacks; nothing where the dataset carries no corpus."""
    if not view.has_corpus:
        return
    corpus_ids = {doc.doc_id for doc in view.corpus}
    for place, sample in enumerate(view.samples):
        for doc in sample.relevant_docs or ():
            if doc.doc_id not in corpus_ids:
                message = f"references missing document: {doc.doc_id!r:.80} is not in the corpus."
                fix = "Add the document, or correct the id: no system can retrieve it."
                yield view.issue("error", "document_references", message, place=place, fix=fix)


def check_documents(view: DatasetView) -> Iterator[QualityIssue]:
    """One text under two ids, one id with two texts, one id twice in the corpus, a document without text."""
    yield from _repeated_ids(view)
    texts: dict[str, str] = {}
    clashing: dict[str, None] = {}
    for doc in view.documents():
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
    counts = Counter(doc.doc_id for doc in view.corpus)
    empty = [doc.doc_id for doc in view.corpus if not doc.text.strip()]
    for doc_id in (each for each, count in counts.items() if count > 1):
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
    listed = ", ".join(f"{doc_id!r:.80}" for doc_id in ids[:limit])
    return listed if len(ids) <= limit else f"{listed} and {len(ids) - limit} more"
