"""Everything that is wrong with a file, of any kind that we know."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..read.fields import UnreadFields
from ..read.records import read_prediction, read_sample
from .builds import SplitReader, manifest_errors, manifest_of
from .csv import read_rows
from .detect import kind_of_file
from .documents import read_document
from .eval_json import dataset_from_record
from .files import stem
from .jsonl import Head, record_errors
from .label_set import label_set_errors, read_label_document
from .loader import FORMATS, version_error
from .results.document import check_version
from .schema import DataFormatValidator, ErrorsError, config_form_errors

# Kinds of files that are one document with a schema.
_DOCUMENTS: dict[str, Callable[[DataFormatValidator, Any], list[str]]] = {
    "eval_json": DataFormatValidator.validate_evaluation_dataset,
    "ground_truth": DataFormatValidator.validate_ground_truth,
    "results": DataFormatValidator.validate_evaluation_results,
    "benchmark": DataFormatValidator.validate_benchmark,
    "config": lambda checks, document: config_form_errors(document),
}


def file_errors(path: Path, kind: str | None = None) -> list[str]:
    """The errors of a file, each with its place."""
    return list(_errors(path, kind or kind_of_file(path)))


def _errors(path: Path, kind: str) -> Iterator[str]:
    try:
        is_table = path.name.lower().removesuffix(".gz").endswith((".csv", ".parquet", ".h5", ".hdf5"))
        if kind in _DOCUMENTS and not is_table:
            document = read_document(path)
            yield from _document_errors(document, path, kind)
        elif kind == "labels":
            yield from (f"{path.name}: {error}" for error in label_set_errors(read_label_document(path)))
        elif kind in ("jsonl", "predictions", "splits"):
            yield from _line_errors(path, kind)
        elif kind == "manifest":
            yield from manifest_errors(path)
        else:
            _load(path, kind)
    except ErrorsError as error:
        yield from (f"{error.where}: {each}" for each in error.errors)
    except DataError as error:
        yield str(error)


def _document_errors(document: Any, path: Path, kind: str) -> Iterator[str]:
    if kind == "results" and isinstance(document, dict):
        check_version(document, path.name)
    errors = _DOCUMENTS[kind](DataFormatValidator(), document)
    yield from (f"{path.name}: {error}" for error in errors)
    if kind == "eval_json" and not errors:
        dataset_from_record(document, path.name)  # reading checks what a schema cannot say
        if wrong := version_error(document, path):
            yield f"{path.name}: {wrong}"
    if kind == "results" and not errors:
        yield from _rows_errors(document.get("run_file"), path)


def _rows_errors(run_file: Any, path: Path) -> Iterator[str]:
    """Whether the database with the rows of a large run is beside its results."""
    beside = path.with_name(f"{stem(path)}.run.db")
    if isinstance(run_file, dict) and not beside.is_file():
        yield f"{path.name}: $.run_file: there is no {beside.name} beside it. Put the rows of the run there."


def _load(path: Path, kind: str) -> Any:
    """Reading is checking, where a format's reader names the first thing that is wrong."""
    if kind == "benchmark":
        from .benchmark import load_benchmark

        return load_benchmark(path)
    if kind == "results":
        return list(read_rows(path))
    return FORMATS.get(kind).load(path)


def _line_errors(path: Path, kind: str) -> Iterator[str]:
    """Yield the errors of each record by itself."""
    places: dict[str, str] = {}
    unread = UnreadFields()
    read_id = _id_reader(kind, unread)

    def read(record: dict[str, Any], where: str) -> None:
        sample_id = read_id(record, where)
        if sample_id in places:
            what = f"{sample_id!r:.80} was used already, at {places[sample_id]}."
            raise DataError(f"{where}: $.sample_id", what, fix="Give each its own.")
        if sample_id is not None:
            places[sample_id] = where

    errors = [error for error in record_errors(path, read) if error is not None]
    unread.report(path.name)
    yield from map(str, errors)
    if not places and not errors and manifest_of(path) is None:  # a build may have an empty split
        yield f"{path.name}: there are no samples in it. Write one JSON object per line."


def _id_reader(kind: str, unread: UnreadFields) -> Callable[[dict[str, Any], str], str | None]:
    """Return a function that reads a record and returns the id of its sample; None for the head."""
    if kind == "predictions":
        return lambda record, where: read_prediction(record, where, unread)[0]
    if kind == "splits":
        splits = SplitReader(complete=True)
        return lambda record, where: splits.read(record, where).task_id
    head = Head()

    def read(record: dict[str, Any], where: str) -> str | None:
        if head.take(record, where):
            return None
        return read_sample(record, where, head.documents, unread).sample_id

    return read
