"""Parquet: the same samples in columns, for datasets that other tools read too.

One row per sample. Documents and the reference are nested columns; `labels`, `metadata` and `structured` have
no fixed shape, so they are JSON text. A dataset with a corpus has a row a document too, with nothing but the
column `document`; a sample's document without text and metadata is the one of the corpus. The description is
in the file's own metadata.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

from ..core.dataset import EvaluationDataset, InMemoryDataset, checked_samples
from ..errors import DataError, MissingDependencyError, install_command
from ..read.fields import UnreadFields
from ..read.records import Record, document_record, read_sample, sample_record
from ..read.text import parse_json
from .files import written
from .jsonl import Head, encode, opened

_FREE = ("labels", "metadata", "structured")  # of no fixed shape
# The key of the description in the metadata of a Parquet file.
_DESCRIPTION = b"auepora.dataset"


def load_parquet_dataset(path: str | Path, name: str | None = None) -> InMemoryDataset:
    """Load a dataset that `save_parquet_dataset` wrote, or any Parquet file with the columns of a sample."""
    path = Path(path)
    rows, described = parquet_rows(path)
    head, samples, unread = Head(), [], UnreadFields()
    head.take({"dataset": parse_json(described.get(_DESCRIPTION, b"{}"), path.name)}, path.name)
    for number, row in enumerate(rows, start=1):
        where = f"{path.name}: row {number}"
        record = _unpacked(row, f"{where}: $")
        if not head.take(record, where):
            samples.append(read_sample(record, where, head.documents, unread))
    unread.report(path.name)
    return InMemoryDataset(
        name or head.name(path),
        checked_samples(path.name, samples),
        info=head.info,
        documents=list(head.documents.values()),
    )


def parquet_rows(path: Path) -> tuple[list[Record], dict[bytes, bytes]]:
    """Return the rows of a file, and what it says of itself."""
    pyarrow, parquet = import_pyarrow()
    # `opened` is only for its errors. A thread of Arrow may hold a file of Python's longer than Python lives,
    # and that aborts the process, so Arrow opens the file itself and reads it in this thread.
    with opened(path):
        try:
            table = parquet.ParquetFile(str(path)).read(use_threads=False)
            return table.to_pylist(), table.schema.metadata or {}
        except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:
            raise not_parquet(path.name) from error


def not_parquet(name: str) -> DataError:
    """What to say of a file that the library cannot read, in words that its next version does not change."""
    what = "not a Parquet file, or one that is damaged or cut off."
    return DataError(name, what, fix="Get it again, or write it again.")


def save_parquet_dataset(dataset: EvaluationDataset, path: str | Path, *, force: bool = False) -> None:
    """Write a dataset; `load_parquet_dataset` reads it back unchanged."""
    pyarrow, parquet = import_pyarrow()
    document = pyarrow.struct([(n, pyarrow.string()) for n in ("doc_id", "text", "metadata")])
    schema = pyarrow.schema(
        [
            ("sample_id", pyarrow.string()),
            ("query", pyarrow.string()),
            ("relevant_docs", pyarrow.list_(document)),
            ("candidate_docs", pyarrow.list_(document)),
            (
                "reference_answer",
                pyarrow.struct([(n, pyarrow.string()) for n in ("text", "structured", "metadata")]),
            ),
            ("labels", pyarrow.string()),
            ("metadata", pyarrow.string()),
        ]
    )
    corpus = {doc.doc_id: doc for doc in dataset.documents}
    records = [_packed(sample_record(sample, corpus)) for sample in dataset]
    if corpus:
        schema = schema.append(pyarrow.field("document", document))
        rows = [{"document": _packed(document_record(doc))} for doc in corpus.values()]
        records = [*rows, *records]
    if dataset.info:
        schema = schema.with_metadata({_DESCRIPTION: encode(dataset.info)})
    try:
        table = pyarrow.Table.from_pylist(records, schema=schema)
    except UnicodeEncodeError:
        for record in records:
            encode(record)  # says what is wrong
        raise
    with written(Path(path), force=force) as file:
        parquet.write_table(table, file)


def _packed(value: Any) -> Any:
    """Free-form fields as JSON text, and a document of the corpus as its id alone."""
    if isinstance(value, dict):
        return {
            name: encode(part).decode() if name in _FREE and part is not None else _packed(part)
            for name, part in value.items()
        }
    if isinstance(value, list):
        return [{"doc_id": doc} if isinstance(doc, str) else _packed(doc) for doc in value]
    return value


def _unpacked(row: Record, where: str) -> Record:
    record: Record = {}
    for name, value in row.items():
        place = f"{where}.{name}"
        if name in _FREE and isinstance(value, str):
            record[name] = parse_json(value.encode(), place, hint="Write an object as JSON text.")
        elif isinstance(value, dict):
            record[name] = _unpacked(value, place)
        elif isinstance(value, list):
            record[name] = [_document(doc, f"{place}[{n}]") for n, doc in enumerate(value)]
        elif value is not None:
            record[name] = value
    return record


def _document(value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        return value
    doc = _unpacked(value, where)
    return doc["doc_id"] if doc.keys() == {"doc_id"} else doc


def import_pyarrow() -> tuple[ModuleType, ModuleType]:
    """Pyarrow and its module for Parquet; without it, the error names the extra."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingDependencyError(f"Parquet needs pyarrow: {install_command('parquet')}") from error
    return pyarrow, pyarrow.parquet
