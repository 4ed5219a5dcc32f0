"""`.eval.json`: a dataset as one document with a description, queries and their corpus; YAML likewise.

Both ways lose nothing. What the format has and a sample has no place for stays under the sample's
`metadata["eval_json"]`; what a sample has and the format has no place for, under the query's
`metadata["auepora"]`.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec

from ..core.dataset import EvaluationDataset, InMemoryDataset
from ..core.types import Document, EvaluationSample, Response
from ..errors import DataError
from ..read.records import check_has_fields, wrong_record
from .documents import read_document, write_document
from .schema import DataFormatValidator, check_no_errors

# Metadata with what a record had beyond it: read into our nouns, and put back where it was.
#
# A field that our nouns have no place for stays under `metadata["eval_json"]`. Some fields of a record are
# metadata for us (a title, citations); what the record's own metadata have under such a name stays there too.

Record = dict[str, Any]
# Fields that are metadata for us, and which values they may have.
Lifted = Mapping[str, Callable[[Any], bool]]
OF_THE_FORMAT = "eval_json"
OF_THE_SAMPLE = "auepora"


def read_extras(record: Record, fields: Collection[str], lifted: Lifted, reserved: Collection[str]) -> Record:
    """Return the metadata of a noun from a record with these fields; reserved names are kept out of sight."""
    written = record.get("metadata") or {}
    own = {name: record[name] for name in lifted if name in record}
    hidden = {name: value for name, value in written.items() if name in reserved or name in own}
    kept = {name: value for name, value in record.items() if name not in fields}
    if hidden:
        kept["metadata"] = hidden
    metadata = {name: value for name, value in written.items() if name not in hidden} | own
    return metadata | ({OF_THE_FORMAT: kept} if kept else {})


def write_extras(metadata: Record, fields: Collection[str], lifted: Lifted, where: str) -> Record:
    """Return the fields of a record that are in the metadata of a noun: lifted ones, and the rest."""
    metadata = dict(metadata)
    kept = metadata.pop(OF_THE_FORMAT, None)
    if (kept is not None and not _is_ours(kept, fields)) or OF_THE_SAMPLE in metadata:
        raise reserved_name(where)
    record: Record = {
        name: metadata.pop(name)
        for name, is_right in lifted.items()
        if name in metadata and is_right(metadata[name])
    }
    record |= kept or {}
    metadata = {**record.pop("metadata", {}), **metadata}
    return record | ({"metadata": metadata} if metadata else {})


def reserved_name(where: str) -> DataError:
    """What to say where somebody else uses the names that we keep for ourselves."""
    what = f"its metadata have {OF_THE_FORMAT!r} or {OF_THE_SAMPLE!r}, which this format keeps for itself."
    return DataError(where, what, fix="Rename them.")


def _is_ours(kept: Any, fields: Collection[str]) -> bool:
    if not isinstance(kept, dict) or not kept or (kept.keys() & set(fields)) - {"metadata"}:
        return False
    return isinstance(kept.get("metadata", {}), dict)


def fits(value: Any, kind: Any) -> bool:
    """Whether a value has a type."""
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


# `.eval.json`: a dataset as one document with a description, queries and their corpus; YAML likewise.

QUERY_TYPES = ("factual", "analytical", "comparative", "temporal")
DIFFICULTIES = ("easy", "medium", "hard")
# Fields of a query that are labels of a sample, with the values that the format allows.
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
    check_is_dataset(record, where)
    check_no_errors(DataFormatValidator().validate_evaluation_dataset(record), where)
    documents = [_document(entry) for entry in record.get("documents") or ()]
    by_id = {doc.doc_id: doc for doc in documents}
    samples = [
        _sample(query, by_id, f"{where}: $.queries[{place}]") for place, query in enumerate(record["queries"])
    ]
    info = {key: value for key, value in record.items() if key not in ("queries", "documents")}
    return InMemoryDataset(record["dataset_id"], samples, info=info, documents=documents)


def check_is_dataset(record: Any, where: str) -> None:
    """Raise DataError if a document is another kind of object, instead of naming each field that it lacks."""
    if isinstance(record, dict):
        check_has_fields(record, ("dataset_id", "queries"), where, "a dataset")


def record_from_dataset(dataset: EvaluationDataset) -> Record:
    """A dataset as the document that is written."""
    record: Record = {
        "dataset_id": dataset.name,
        "name": dataset.name,
        "version": "1.0.0",
        **dataset.info,
        "queries": [],
    }
    samples = list(dataset)
    corpus = _corpus(dataset.documents, samples)
    record["queries"] = [_query(sample, corpus) for sample in samples]
    if corpus:
        record["documents"] = [_document_record(doc) for doc in corpus.values()]
    return record


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
    metadata: Record = {}


class _Reference(msgspec.Struct, forbid_unknown_fields=True):
    structured: Record | None
    metadata: Record


class _Own(msgspec.Struct, forbid_unknown_fields=True):
    """What we leave under `metadata["auepora"]` of a query."""

    labels: Record = {}
    reference: _Reference | None = None
    relevant_docs: list[_Named] = []
    candidate_docs: list[_Named] = []


def _own(query: Record, where: str) -> Record:
    """Return what we left in a query; DataError if somebody edited it to something else."""
    written = (query.get("metadata") or {}).get(OF_THE_SAMPLE)
    if not isinstance(written, dict) or written.keys().isdisjoint(_Own.__struct_fields__):
        return {}  # somebody else's
    place = f"{where}.metadata.{OF_THE_SAMPLE}"
    try:
        msgspec.convert(written, _Own)
    except msgspec.ValidationError as error:
        path, what, fix = wrong_record(error, _Own.__struct_fields__)
        raise DataError(f"{place}{path.removeprefix('$')}", what, fix=fix) from error
    alternatives = ((written.get("reference") or {}).get("metadata") or {}).get("alternatives")
    if alternatives and not fits(alternatives, list[str]):
        what = f"expected a list of texts but got {alternatives!r:.60}."
        raise DataError(f"{place}.reference.metadata.alternatives", what, fix="Correct it.")
    return written


def _sample(query: Record, corpus: Mapping[str, Document], where: str) -> EvaluationSample:
    own = _own(query, where)
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
    entries: list[Record] = own.get("relevant_docs") or []
    if [entry["doc_id"] for entry in entries] == ids:
        return entries
    by_id = {entry["doc_id"]: entry for entry in entries}
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
    relevant = _named(sample.relevant_docs or (), corpus)
    if any(len(entry) > 1 for entry in relevant):  # more than the id, which the query has already
        own["relevant_docs"] = relevant
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


def _named(docs: Sequence[Document], corpus: Mapping[str, Document]) -> list[Record]:
    """Documents by their id, and by what differs from the corpus: a grade, another text."""
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


def _document(entry: Record) -> Document:
    metadata = read_extras(entry, _DOCUMENT_FIELDS, _NAMES, (OF_THE_FORMAT, OF_THE_SAMPLE))
    return Document(entry["document_id"], entry["content"], metadata)


def _document_record(doc: Document) -> Record:
    extras = write_extras(doc.metadata, _DOCUMENT_FIELDS, _NAMES, f"document {doc.doc_id!r:.80}")
    title = {"title": extras.pop("title")} if "title" in extras else {}
    return {"document_id": doc.doc_id, **title, "content": doc.text, **extras}


def _are_citations(value: Any) -> bool:
    """Return whether the format can hold a sample's citations."""
    return fits(value, list[_Citation]) and all(each["start_char"] < each["end_char"] for each in value)


_CITATIONS: Lifted = {"citations": _are_citations}
_NAMES: Lifted = dict.fromkeys(("title", "file_path"), lambda value: isinstance(value, str))
