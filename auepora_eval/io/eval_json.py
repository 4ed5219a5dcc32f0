"""`.eval.json`: a dataset as one document with a description, queries and their corpus; YAML likewise.

Both ways lose nothing. What the format has and a sample has no place for stays under the sample's
`metadata["eval_json"]`; what a sample has and the format has no place for, under the query's
`metadata["auepora"]`.
"""

from __future__ import annotations

import gc
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec

from ..core.dataset import EvaluationDataset, InMemoryDataset
from ..core.types import Document, EvaluationSample, Response
from ..errors import DataError
from ..read.records import as_struct
from .documents import read_document, write_document
from .schema import DataFormatValidator, check_no_errors

Record = dict[str, Any]
OF_THE_FORMAT = "eval_json"
OF_THE_SAMPLE = "auepora"
QUERY_TYPES = ("factual", "analytical", "comparative", "temporal")
DIFFICULTIES = ("easy", "medium", "hard")
# Fields of a query that are labels of a sample, with the values that the format allows.
_LABELS = {"query_type": QUERY_TYPES, "difficulty": DIFFICULTIES}
_QUERY_FIELDS = {"query_id", "query_text", "relevant_documents", "ground_truth_answer", *_LABELS}
_DOCUMENT_FIELDS = {"document_id", "content"}


class _Citation(msgspec.Struct):
    """A span such as the format can hold."""

    file_name: str
    start_char: Annotated[int, msgspec.Meta(ge=0)]
    end_char: int
    page_number: int = 0
    confidence_score: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    context_text: str = ""


# Fields that are metadata for us, and the types that the format allows for them.
_OF_QUERY = {"citations": list[_Citation]}
_OF_DOCUMENT = {"title": str, "file_path": str}
Lifted = Mapping[str, Any]


def load_eval_json(path: str | Path) -> InMemoryDataset:
    """Load a dataset from `.eval.json` or `.eval.yaml`."""
    path = Path(path)
    with _collector_paused():
        return dataset_from_record(read_document(path), path.name)


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
    check_no_errors(DataFormatValidator().validate_evaluation_dataset(record), Path(path).name)
    write_document(record, path, force=force)


def dataset_from_record(record: Any, where: str) -> InMemoryDataset:
    """Return the dataset of a document that is in memory; DataError lists every error."""
    check_no_errors(DataFormatValidator().validate_evaluation_dataset(record), where)
    documents = [
        Document(entry["document_id"], entry["content"], _metadata(entry, _DOCUMENT_FIELDS, _OF_DOCUMENT))
        for entry in record.get("documents") or ()
    ]
    by_id = {doc.doc_id: doc for doc in documents}
    samples = [
        _sample(query, by_id, f"{where}: $.queries[{place}]") for place, query in enumerate(record["queries"])
    ]
    info = {key: value for key, value in record.items() if key not in ("queries", "documents")}
    return InMemoryDataset(record["dataset_id"], samples, info=info, documents=documents)


def record_from_dataset(dataset: EvaluationDataset) -> Record:
    """Return a dataset as the document that is written."""
    samples = list(dataset)
    corpus = {doc.doc_id: doc for doc in dataset.documents}
    for sample in samples:
        for doc in (*(sample.relevant_docs or ()), *(sample.candidate_docs or ())):
            if not doc.metadata.get("text_missing"):
                corpus.setdefault(doc.doc_id, doc)
    described = {"dataset_id": dataset.name, "name": dataset.name, "version": "1.0.0", **dataset.info}
    record: Record = {**described, "queries": [_query(sample, corpus) for sample in samples]}
    if corpus:
        record["documents"] = [_document_record(doc) for doc in corpus.values()]
    return record


# Metadata: read with what a record has beyond it, and put back where it was.


def _metadata(record: Record, fields: Collection[str], lifted: Lifted) -> Record:
    """Return the metadata of a sample or a document from a record with these fields."""
    written = record.get("metadata") or {}
    own = {name: record[name] for name in lifted if name in record}
    # The record's metadata may have these names too: what they hold stays apart.
    hidden = {name: written[name] for name in written if name in own or name == OF_THE_FORMAT}
    if OF_THE_SAMPLE in written and not _is_own(written[OF_THE_SAMPLE]):
        hidden[OF_THE_SAMPLE] = written[OF_THE_SAMPLE]
    kept = {
        name: value
        for name, value in record.items()
        if name not in fields and name not in lifted and name != "metadata"
    }
    if hidden:
        kept["metadata"] = hidden
    shown = {name: value for name, value in written.items() if name not in hidden}
    return shown | own | ({OF_THE_FORMAT: kept} if kept else {})


def _fields_of(metadata: Record, fields: Collection[str], lifted: Lifted, where: str) -> Record:
    """Return the fields of a record that are in the metadata of a sample or a document."""
    metadata = dict(metadata)
    kept = metadata.pop(OF_THE_FORMAT, {})
    if not isinstance(kept, dict) or not kept.keys().isdisjoint(fields) or OF_THE_SAMPLE in metadata:
        what = (
            f"its metadata have {OF_THE_FORMAT!r} or {OF_THE_SAMPLE!r}, which this format keeps for itself."
        )
        raise DataError(where, what, fix="Rename them.")
    own = {name: metadata.pop(name) for name, kind in lifted.items() if _fits(metadata.get(name), kind)}
    hidden = kept.get("metadata", {})
    metadata = {**hidden, **metadata} if isinstance(hidden, dict) else metadata
    return {**own, **kept, "metadata": metadata}


def _fits(value: Any, kind: Any) -> bool:
    """Return whether a value has a type; spans must also end after their start."""
    try:
        converted = msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return not isinstance(converted, list) or all(one.start_char < one.end_char for one in converted)


# Samples and queries.


class _Named(msgspec.Struct, forbid_unknown_fields=True):
    doc_id: str
    text: str = ""
    metadata: Record = {}


class _ReferenceMetadata(msgspec.Struct):
    alternatives: list[str] | None = None


class _Reference(msgspec.Struct, forbid_unknown_fields=True):
    structured: Record | None
    metadata: _ReferenceMetadata


class _Own(msgspec.Struct, forbid_unknown_fields=True):
    """What we leave under `metadata["auepora"]` of a query."""

    labels: Record = {}
    reference: _Reference | None = None
    relevant_docs: list[_Named] = []
    candidate_docs: list[_Named] = []


def _is_own(value: Any) -> bool:
    """Return whether we wrote it, and not somebody else under the same name."""
    return isinstance(value, dict) and not value.keys().isdisjoint(_Own.__struct_fields__)


def _sample(query: Record, corpus: Mapping[str, Document], where: str) -> EvaluationSample:
    metadata = _metadata(query, _QUERY_FIELDS, _OF_QUERY)
    own = metadata.pop(OF_THE_SAMPLE, {})
    as_struct(own, _Own, f"{where}.metadata.{OF_THE_SAMPLE}", fields=_Own.__struct_fields__)
    answer = query.get("ground_truth_answer")
    ids, entries = query["relevant_documents"], own.get("relevant_docs", [])
    if [entry["doc_id"] for entry in entries] != ids:
        # The ids of the query count, should somebody have edited them.
        by_id = {entry["doc_id"]: entry for entry in entries}
        entries = [by_id.get(doc_id, {"doc_id": doc_id}) for doc_id in ids]
    labels = {name: query[name] for name in _LABELS if query.get(name) is not None}
    return EvaluationSample(
        sample_id=query["query_id"],
        query=query["query_text"],
        relevant_docs=_found(entries, corpus),
        candidate_docs=_found(own.get("candidate_docs", ()), corpus),
        reference_answer=None if answer is None else Response(answer, **(own.get("reference") or {})),
        labels=own.get("labels", {}) | labels,
        metadata=metadata,
    )


def _query(sample: EvaluationSample, corpus: Mapping[str, Document]) -> Record:
    labels = {name: sample.labels[name] for name in _LABELS if sample.labels.get(name) in _LABELS[name]}
    query: Record = {"query_id": sample.sample_id, "query_text": sample.query, **labels}
    query["relevant_documents"] = [doc.doc_id for doc in sample.relevant_docs or ()]
    own: Record = {"labels": {k: v for k, v in sample.labels.items() if k not in labels}}
    if sample.reference_answer is not None:
        answer = sample.reference_answer
        query["ground_truth_answer"] = answer.text
        if answer.structured is not None or answer.metadata:
            own["reference"] = {"structured": answer.structured, "metadata": answer.metadata}
    relevant = _named(sample.relevant_docs or (), corpus)
    if any(len(entry) > 1 for entry in relevant):  # more than the id, which the query has already
        own["relevant_docs"] = relevant
    own["candidate_docs"] = _named(sample.candidate_docs or (), corpus)
    own = {name: value for name, value in own.items() if value}
    where = f"sample {sample.sample_id!r:.80}"
    query |= _fields_of(sample.metadata, _QUERY_FIELDS, _OF_QUERY, where)
    if own:
        query["metadata"][OF_THE_SAMPLE] = own
    if not query["metadata"]:
        del query["metadata"]
    return query


def _document_record(doc: Document) -> Record:
    where = f"document {doc.doc_id!r:.80}"
    fields = _fields_of(doc.metadata, _DOCUMENT_FIELDS, _OF_DOCUMENT, where)
    if not fields["metadata"]:
        del fields["metadata"]
    title = {"title": fields["title"]} if "title" in fields else {}
    return {"document_id": doc.doc_id, **title, "content": doc.text, **fields}


def _named(docs: Sequence[Document], corpus: Mapping[str, Document]) -> list[Record]:
    """Return documents by their id, and by what differs from the corpus: a grade, another text."""
    entries = []
    for doc in docs:
        entry: Record = {"doc_id": doc.doc_id}
        in_corpus = corpus.get(doc.doc_id) or _missing(doc.doc_id)
        if doc.text != in_corpus.text:
            entry["text"] = doc.text
        if doc.metadata != in_corpus.metadata:
            entry["metadata"] = doc.metadata
        entries.append(entry)
    return entries


def _found(entries: Iterable[Record], corpus: Mapping[str, Document]) -> list[Document] | None:
    docs = []
    for entry in entries:
        in_corpus = corpus.get(entry["doc_id"]) or _missing(entry["doc_id"])
        if len(entry) == 1:
            docs.append(in_corpus)
        else:
            text, metadata = entry.get("text", in_corpus.text), entry.get("metadata", in_corpus.metadata)
            docs.append(Document(in_corpus.doc_id, text, dict(metadata)))
    return docs or None


def _missing(doc_id: str) -> Document:
    return Document(doc_id, "", {"text_missing": True})
