"""JSON Lines: one record per line, and the dataset format of one sample per line.

Before the samples there may be a line `{"dataset": {...}}` that describes the whole, and lines
`{"document": {...}}` with the corpus; a sample then names its documents by id.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from ..core.dataset import EvaluationDataset, InMemoryDataset, canonical_json, plain
from ..core.types import Document, EvaluationSample
from ..errors import AueporaError, DataError
from ..read.fields import UnreadFields
from ..read.records import (
    RawSample,
    decoded,
    document_record,
    read_document_record,
    read_sample,
    sample_record,
)
from ..read.text import kind_of, parse_line
from .files import stem, written

# A line is held in memory several times while it is read.
MAX_LINE_BYTES = 8_000_000
_GZIP = b"\x1f\x8b"
_READ_AHEAD = 1 << 17  # bytes: with the usual 8 kB most time goes into putting long lines together
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass
class Head:
    """The records before the samples of a file: the description, and the documents of the corpus."""

    info: dict[str, Any] = field(default_factory=dict)
    documents: dict[str, Document] = field(default_factory=dict)
    is_over: bool = False  # a sample was read: what follows are samples

    def name(self, path: Path) -> str:
        """The dataset's id, or else what its file is called."""
        dataset_id = self.info.get("dataset_id")
        return dataset_id if isinstance(dataset_id, str) and dataset_id else stem(path)

    def take(self, record: dict[str, Any], where: str) -> bool:
        """Read a record that is part of the head; return False if it is a sample."""
        if self.is_over or "sample_id" in record or not ("dataset" in record or "document" in record):
            self.is_over = True
            return False
        if "dataset" in record:
            if not isinstance(record["dataset"], dict):
                what = f"an object was expected, not {kind_of(record['dataset'])}."
                raise DataError(f"{where}: $.dataset", what, fix="Describe the dataset, or leave it out.")
            self.info = record["dataset"]
            return True
        doc = read_document_record(record.get("document"), f"{where}: $.document")
        if doc.doc_id in self.documents:
            raise DataError(
                f"{where}: $.document", f"{doc.doc_id!r:.80} was used already.", fix="Keep one of them."
            )
        self.documents[doc.doc_id] = doc
        return True


def load_jsonl_dataset(path: str | Path, name: str | None = None) -> InMemoryDataset:
    """Load a dataset with one sample per line; a bad line is an error that names it."""
    path, head = Path(path), Head()
    samples = list(read_samples(path, head=head))
    documents = list(head.documents.values())
    return InMemoryDataset(
        head.name(path) if name is None else name, samples, info=head.info, documents=documents
    )


def read_samples(
    path: Path, *, head: Head | None = None, max_line_bytes: int = MAX_LINE_BYTES
) -> Iterator[EvaluationSample]:
    """The samples of a file with one a line, as they come; an id that comes again is an error."""
    ids: set[str] = set()
    head, unread = head or Head(), UnreadFields()
    for where, line in placed_lines(path, max_line_bytes):
        record = decoded(line, RawSample) or parse_line(line, where)
        if isinstance(record, dict) and head.take(record, where):
            continue
        head.is_over = True
        sample = read_sample(record, where, head.documents, unread)
        if sample.sample_id in ids:
            # Only ids are kept in memory, so the earlier line is found by another pass.
            records = read_records(path, max_line_bytes=max_line_bytes)
            before = next(place for place, other in records if other.get("sample_id") == sample.sample_id)
            what = f"{sample.sample_id!r:.80} was used already, at {before}."
            fix = "Scores are matched by id: give each sample its own."
            raise DataError(f"{where}: $.sample_id", what, fix=fix)
        ids.add(sample.sample_id)
        yield sample
    unread.report(path.name)


_SMALL_BYTES = 2_000_000  # of a file whose samples may stay in memory, where they take ten times as much


class JsonlDataset(EvaluationDataset):
    """A dataset that stays in its file: each walk reads it again, and keeps only the ids in memory.

    A small file is read once: a run walks three times.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._size: int | None = None
        self._samples: list[EvaluationSample] | None = None

    def __iter__(self) -> Iterator[EvaluationSample]:
        if self._samples is None and self._is_small():
            self._samples = list(read_samples(self.path))
        return read_samples(self.path) if self._samples is None else iter(self._samples)

    def _is_small(self) -> bool:
        try:
            return self.path.suffix != ".gz" and self.path.stat().st_size <= _SMALL_BYTES
        except OSError:
            return False  # reading it says what is wrong

    @cached_property
    def _head(self) -> Head:
        head = Head()
        next(read_samples(self.path, head=head), None)
        return head

    @property
    def name(self) -> str:
        return self._head.name(self.path)

    @property
    def info(self) -> dict[str, Any]:
        return self._head.info

    @property
    def documents(self) -> Sequence[Document]:
        return list(self._head.documents.values())

    def __len__(self) -> int:
        if self._size is None:
            self._size = sum(1 for _ in self)
        return self._size


def save_jsonl_dataset(dataset: EvaluationDataset, path: str | Path, *, force: bool = False) -> None:
    """Write a dataset with one sample per line; `load_jsonl_dataset` reads it back unchanged."""
    save_records(_lines(dataset), Path(path), force=force)


def _lines(dataset: EvaluationDataset) -> Iterator[dict[str, Any]]:
    corpus = {doc.doc_id: doc for doc in dataset.documents}
    if dataset.info:
        yield {"dataset": dataset.info}
    yield from ({"document": document_record(doc)} for doc in corpus.values())
    yield from (sample_record(sample, corpus) for sample in dataset)


def save_records(records: Iterable[dict[str, Any]], path: Path, *, force: bool = False) -> None:
    """Write records as JSON Lines, through gzip if the name ends in .gz."""
    with written(path, force=force) as file, ExitStack() as stack:
        target: BinaryIO | gzip.GzipFile = file
        if path.suffix == ".gz":
            # No name and no time in the header: equal content gives equal bytes.
            target = stack.enter_context(gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0))
        for record in records:
            target.write(encode(record) + b"\n")


_ENCODER = msgspec.json.Encoder(enc_hook=plain)
_CANONICAL = msgspec.json.Encoder(enc_hook=plain, order="deterministic")  # as core.dataset.canonical_json


def encode(record: Any) -> bytes:
    """One record as JSON; what JSON cannot hold becomes what it can (`core.dataset.plain`)."""
    try:
        return _ENCODER.encode(record)
    except UnicodeEncodeError as error:
        raise _half_pair() from error


def encoded_lines(records: Sequence[Any], *, canonical: bool = False) -> bytes:
    """Records as JSON, one on each line; in its canonical form if it is to be hashed."""
    try:
        return (_CANONICAL if canonical else _ENCODER).encode_lines(records)
    except UnicodeEncodeError as error:
        raise _half_pair() from error
    except TypeError:
        for record in records:
            canonical_json(record)  # its error says which one cannot be written
        raise


def _half_pair() -> DataError:
    what = "holds half of a surrogate pair, which UTF-8 cannot write."
    return DataError("a text", what, fix="Clean the text first.")


def read_records(
    path: str | Path, *, max_line_bytes: int = MAX_LINE_BYTES
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield ("file.jsonl:17", record) for each line that is not blank.

    A byte order mark and CRLF line ends are accepted, and so is gzip, whatever the file is called.
    """
    for where, line in placed_lines(Path(path), max_line_bytes):
        yield where, parse_line(line, where)


def placed_lines(path: Path, limit: int = MAX_LINE_BYTES) -> Iterator[tuple[str, bytes]]:
    """Yield ("file.jsonl:17", line) for each line that is not blank, without a byte order mark."""
    name = path.name
    for number, line in enumerate(read_lines(path, limit), start=1):
        if number == 1:
            line = line.removeprefix(BYTE_ORDER_MARK)
        if not line.isspace() and line:
            yield f"{name}:{number}", line


def record_errors(path: Path, read: Callable[[dict[str, Any], str], object]) -> Iterator[DataError | None]:
    """Yield the error of each record, None if it can be read: a bad line does not hide the next."""
    for where, line in placed_lines(path):
        try:
            read(parse_line(line, where), where)
        except DataError as error:
            yield error
        else:
            yield None


def read_lines(path: Path, limit: int = MAX_LINE_BYTES) -> Iterator[bytes]:
    """The lines of a file, unpacked if need be; a line beyond the limit is an error."""
    with opened(path) as file:
        number = 0
        while True:
            try:
                # One byte more than allowed: a line that is too long is noticed without reading all of it.
                line = file.readline(limit + 1)
            except (OSError, EOFError, zlib.error) as error:
                raise _damaged(f"{path.name}:{number + 1}", error) from error
            if not line:
                return
            number += 1
            if len(line) > limit and not line.endswith(b"\n"):
                raise DataError(
                    f"{path.name}:{number}",
                    f"the line is longer than {limit / 1e6:g} MB.",
                    fix="Write one sample per line, or raise max_line_bytes if this is meant.",
                )
            yield line


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file to read bytes from, unpacked if it is gzip; DataError where it cannot be opened or read."""
    file = _opened(path)
    try:
        with file:
            if file.peek(2)[:2] != _GZIP:
                yield file
                return
            with gzip.GzipFile(fileobj=file, mode="rb") as unpacked:
                yield unpacked  # type: ignore[misc]  # it reads like one
    except AueporaError:
        raise
    except (OSError, EOFError, zlib.error) as error:
        raise _damaged(path.name, error) from error


def _damaged(where: str, error: Exception) -> DataError:
    packed = isinstance(error, gzip.BadGzipFile | EOFError | zlib.error)
    reason = "its gzip data are damaged" if packed else getattr(error, "strerror", None) or error
    fix = "Is it damaged or cut off? Get it again."
    return DataError(where, f"the file cannot be read on: {reason}.", fix=fix)


def _opened(path: Path) -> BufferedReader:
    if "\0" in str(path):
        raise DataError(f"{str(path)!r:.80}", "there is no such file.", fix="Check the name.")
    try:
        if path.is_dir():
            raise DataError(str(path), "is a folder.", fix="Name a file in it.")
        if path.is_fifo():  # the format is found by a look at the start, which a pipe shows only once
            raise DataError(str(path), "is a pipe.", fix="Write it to a file first.")
        if path.exists() and not path.is_file() and str(path.resolve()) != os.devnull:
            raise DataError(str(path), "is a device, not a file.", fix="Name a file.")
        return BufferedReader(path.open("rb", buffering=0), _READ_AHEAD)
    except FileNotFoundError:
        raise DataError(str(path), "there is no such file.", fix="Check the name.") from None
    except OSError as error:
        raise DataError(
            f"{path!s:.80}",
            f"cannot be opened: {error.strerror or error}.",
            fix="Check the name and its rights.",
        ) from error
