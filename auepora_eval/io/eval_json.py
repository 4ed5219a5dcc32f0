"""`.eval.json`: a dataset as one document with a description, queries and their corpus; YAML likewise.

Both ways lose nothing. What the format has and a sample has no place for stays under the sample's
`metadata["eval_json"]`; what a sample has and the format has no place for, under the query's
`metadata["auepora"]`.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec

from ..core.dataset import DescribedDataset, EvaluationDataset
from ..core.types import Document, EvaluationSample, Response
from .document_file import read_document, write_document
from .eval_extras import OF_THE_FORMAT, OF_THE_SAMPLE, Record, fits, read_extras, reserved_name, write_extras
from .refusal import refuse_errors
from .validation import DataFormatValidator

QUERY_TYPES = ("factual", "analytical", "comparative", "temporal")
DIFFICULTIES = ("easy", "medium", "hard")
_LABELS = {"query_type": QUERY_TYPES, "difficulty": DIFFICULTIES}
_QUERY_FIELDS = {
    "query_id",
    "query_text",
    "relevant_documents",
    "ground_truth_answer",
    "citations",
    "metadata",
    *_LABELS,
}
_DOCUMENT_FIELDS = {"document_id", "title", "content", "file_path", "metadata"}
_NO_DOCUMENTS: Record = {"documents": []}


def load_eval_json(path: str | Path, *, lenient: bool = False) -> DescribedDataset:
    """Load a dataset from `.eval.json` or `.eval.yaml`; `lenient` asks for no more than ids and texts."""
    path = Path(path)
    with _collector_paused():
        return dataset_from_record(read_document(path), path.name, lenient=lenient)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Nothing that is read is garbage: looking for it took a quarter of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def save_eval_json(dataset: EvaluationDataset, path: str | Path, *, force: bool = False) -> None:
    """Write a dataset; `load_eval_json` reads it back unchanged."""
    record = record_from_dataset(dataset)
    _refuse_errors(record, Path(path).name, lenient=False)
    write_document(record, path, force=force)


def dataset_from_record(record: Any, where: str, *, lenient: bool = False) -> DescribedDataset:
    """A dataset from a document that is in memory; DataError tells of all that is wrong with it."""
    _refuse_errors(record, where, lenient=lenient)
    documents = [_document(entry) for entry in record.get("documents") or ()]
    by_id = {doc.doc_id: doc for doc in documents}
    samples = [_sample(query, by_id) for query in record["queries"]]
    info = {key: value for key, value in record.items() if key not in ("queries", "documents")}
    if "documents" in record and not documents:
        info[OF_THE_FORMAT] = {"documents": []}
    return DescribedDataset(record["dataset_id"], samples, info=info, documents=documents)


def record_from_dataset(dataset: EvaluationDataset) -> Record:
    """A dataset as the document that is written."""
    info = dict(dataset.info)
    kept: Record = info.pop(OF_THE_FORMAT) if info.get(OF_THE_FORMAT) == _NO_DOCUMENTS else {}
    record: Record = {
        "dataset_id": dataset.name,
        "name": dataset.name,
        "version": "1.0.0",
        **info,
        "queries": [],
    }
    samples = list(dataset)
    corpus = _corpus(dataset.documents, samples)
    record["queries"] = [_query(sample, corpus) for sample in samples]
    if corpus:
        record["documents"] = [_document_record(doc) for doc in corpus.values()]
    return record | ({} if corpus else kept)


def _refuse_errors(record: Any, where: str, *, lenient: bool) -> None:
    checked = _relaxed(record) if lenient else record
    refuse_errors(DataFormatValidator().validate_evaluation_dataset(checked), where)


def _relaxed(record: Any) -> Any:
    """The same without what a lenient reader does not ask for: a name, a version, known types of queries.

    The lenient schema leaves all other types alone; to make samples of them they must be right.
    """
    if not isinstance(record, dict):
        return record
    relaxed = {"name": "", "version": "", **record}
    if isinstance(record.get("queries"), list):
        relaxed["queries"] = [
            {key: value for key, value in query.items() if key not in _LABELS}
            if isinstance(query, dict)
            else query
            for query in record["queries"]
        ]
    return relaxed


class _Citation(msgspec.Struct):
    """A span such as the format can hold."""

    file_name: str
    start_char: Annotated[int, msgspec.Meta(ge=0)]
    end_char: int
    page_number: int = 0
    confidence_score: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    context_text: str = ""


class _Named(msgspec.Struct, forbid_unknown_fields=True):
    doc_id: str
    text: str = ""
    metadata: dict[str, Any] = {}


class _Reference(msgspec.Struct, forbid_unknown_fields=True):
    structured: dict[str, Any] | None
    metadata: dict[str, Any]


class _Own(msgspec.Struct, forbid_unknown_fields=True):
    """What we leave under `metadata["auepora"]` of a query."""

    labels: dict[str, Any] = {}
    reference: _Reference | None = None
    relevant_docs: list[_Named] = []
    candidate_docs: list[_Named] = []


def _sample(query: Record, corpus: Mapping[str, Document]) -> EvaluationSample:
    given = (query.get("metadata") or {}).get(OF_THE_SAMPLE)
    own: Record = given if given and fits(given, _Own) else {}
    reserved = (OF_THE_FORMAT,) if own else (OF_THE_FORMAT, OF_THE_SAMPLE)
    metadata = read_extras(query, _QUERY_FIELDS, _CITATIONS, reserved)
    if own:
        del metadata[OF_THE_SAMPLE]
    answer = query.get("ground_truth_answer")
    labels = {name: query[name] for name in _LABELS if query.get(name) is not None}
    return EvaluationSample(
        sample_id=query["query_id"],
        query=query["query_text"],
        relevant_docs=_found(_relevant(query["relevant_documents"], own), corpus),
        candidate_docs=_found(own.get("candidate_docs") or (), corpus),
        reference_answer=None if answer is None else Response(answer, **(own.get("reference") or {})),
        labels=own.get("labels", {}) | labels,
        metadata=metadata,
    )


def _relevant(ids: Sequence[str], own: Record) -> list[Record]:
    """What is known of the relevant documents; the ids count, should somebody have edited them."""
    named: list[Record] = own.get("relevant_docs") or []
    if [entry["doc_id"] for entry in named] == ids:
        return named
    by_id = {entry["doc_id"]: entry for entry in named}
    return [by_id.get(doc_id, {"doc_id": doc_id}) for doc_id in ids]


def _query(sample: EvaluationSample, corpus: Mapping[str, Document]) -> Record:
    where = f"sample {sample.sample_id!r:.80}"
    labels = {name: sample.labels[name] for name in _LABELS if sample.labels.get(name) in _LABELS[name]}
    query: Record = {"query_id": sample.sample_id, "query_text": sample.query, **labels}
    query["relevant_documents"] = [doc.doc_id for doc in sample.relevant_docs or ()]
    own: Record = {"labels": {k: v for k, v in sample.labels.items() if k not in labels}}
    if sample.reference_answer is not None:
        answer = sample.reference_answer
        query["ground_truth_answer"] = answer.text
        if answer.structured is not None or answer.metadata:
            own["reference"] = {"structured": answer.structured, "metadata": answer.metadata}
    query |= write_extras(sample.metadata, _QUERY_FIELDS, _CITATIONS, where)
    if any(_is_other(doc, corpus) for doc in sample.relevant_docs or ()):
        own["relevant_docs"] = _named(sample.relevant_docs or (), corpus)
    own["candidate_docs"] = _named(sample.candidate_docs or (), corpus)
    own = {name: value for name, value in own.items() if value}
    if own:
        metadata = query.get("metadata", {})
        if OF_THE_SAMPLE in metadata:
            raise reserved_name(where)
        query["metadata"] = {**metadata, OF_THE_SAMPLE: own}
    return query


def _corpus(documents: Sequence[Document], samples: Iterable[EvaluationSample]) -> dict[str, Document]:
    """The documents by id: those of the dataset, then those that only its samples have."""
    corpus = {doc.doc_id: doc for doc in documents}
    for sample in samples:
        for doc in (*(sample.relevant_docs or ()), *(sample.candidate_docs or ())):
            if not doc.metadata.get("text_missing"):
                corpus.setdefault(doc.doc_id, doc)
    return corpus


def _is_other(doc: Document, corpus: Mapping[str, Document]) -> bool:
    """Whether a document differs from what its id says."""
    known = corpus.get(doc.doc_id)
    return doc != _missing(doc.doc_id) if known is None else known is not doc and known != doc


def _named(docs: Sequence[Document], corpus: Mapping[str, Document]) -> list[Record]:
    """Documents by their id, and by what differs from the corpus: a grade, another text."""
    named = []
    for doc in docs:
        entry: Record = {"doc_id": doc.doc_id}
        known = corpus.get(doc.doc_id) or _missing(doc.doc_id)
        if doc.text != known.text:
            entry["text"] = doc.text
        if doc.metadata != known.metadata:
            entry["metadata"] = doc.metadata
        named.append(entry)
    return named


def _found(entries: Iterable[Record], corpus: Mapping[str, Document]) -> list[Document] | None:
    docs = []
    for entry in entries:
        known = corpus.get(entry["doc_id"]) or _missing(entry["doc_id"])
        if len(entry) == 1:
            docs.append(known)
        else:
            text, metadata = entry.get("text", known.text), entry.get("metadata", known.metadata)
            docs.append(Document(known.doc_id, text, dict(metadata)))
    return docs or None


def _missing(doc_id: str) -> Document:
    return Document(doc_id, "", {"text_missing": True})


def _document(entry: Record) -> Document:
    metadata = read_extras(entry, _DOCUMENT_FIELDS, _NAMES, (OF_THE_FORMAT, OF_THE_SAMPLE))
    return Document(entry["document_id"], entry["content"], metadata)


def _document_record(doc: Document) -> Record:
    extras = write_extras(doc.metadata, _DOCUMENT_FIELDS, _NAMES, f"document {doc.doc_id!r:.80}")
    title = {"title": extras.pop("title")} if "title" in extras else {}
    return {"document_id": doc.doc_id, **title, "content": doc.text, **extras}


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _are_citations(value: Any) -> bool:
    """Whether a sample's citations are such as the format can hold."""
    return fits(value, list[_Citation]) and all(each["start_char"] < each["end_char"] for each in value)


_CITATIONS = {"citations": _are_citations}
_NAMES = {"title": _is_text, "file_path": _is_text}
