"""JSON Lines: one record a line, and the dataset format of one sample a line.

Before the samples there may be a line `{"dataset": {...}}` that describes the whole, and lines
`{"document": {...}}` with the corpus; a sample then names its documents by id.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from ..core.dataset import DescribedDataset, EvaluationDataset, InMemoryDataset
from ..core.fingerprint import plain
from ..core.seen import SeenIds
from ..core.types import Document, EvaluationSample
from ..errors import AueporaError, DataError
from .atomic import written
from .json_text import kind_of, parse_json, refuse_repeated_keys
from .names import stem
from .quick_records import may_repeat_a_key, quick_sample
from .records import document_record, read_document_record, read_sample, sample_record

MAX_LINE_BYTES = 8_000_000
# Text packs to a tenth, the same text again and again to two hundredths of that, zeros to a thousandth.
MAX_EXPANSION = 500
EXPANSION_UNCHECKED = 16_000_000
MAX_BLANK_LINES = 100_000  # in a row
_GZIP = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


@dataclass
class Head:
    """What stands before the samples of a file."""

    info: dict[str, Any] = field(default_factory=dict)
    documents: dict[str, Document] = field(default_factory=dict)

    def name(self, path: Path) -> str:
        """The dataset's id, or else what its file is called."""
        named = self.info.get("dataset_id")
        return named if isinstance(named, str) and named else stem(path)

    def take(self, record: dict[str, Any], where: str) -> bool:
        """Whether a record is not a sample but part of the head."""
        if "sample_id" in record or not ("dataset" in record or "document" in record):
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
    """Load a dataset with one sample a line; a bad line is an error that names it."""
    path, head = Path(path), Head()
    samples = list(read_samples(path, head=head))
    documents = list(head.documents.values())
    return DescribedDataset(
        head.name(path) if name is None else name, samples, info=head.info, documents=documents
    )


def read_samples(
    path: Path, *, head: Head | None = None, max_line_bytes: int = MAX_LINE_BYTES, all_differ: bool = False
) -> Iterator[EvaluationSample]:
    """The samples of a file with one a line, as they come; an id that comes again is an error.

    `all_differ`: it is known that none does, and need not be found out once more.
    """
    seen, begun = SeenIds(), False
    head = head or Head()
    for where, line in _placed_lines(path, max_line_bytes):
        sample = quick_sample(line, where, head.documents)
        if sample is None:
            record = parse_line(line, where)
            if not begun and head.take(record, where):
                continue
            sample = read_sample(record, where, head.documents)
        begun = True
        if not all_differ and not seen.add(sample.sample_id):
            _refuse_repeated(path, sample.sample_id, where, max_line_bytes)
        yield sample


def _refuse_repeated(path: Path, sample_id: str, where: str, max_line_bytes: int) -> None:
    """DataError if an id stands before this place too; ids are remembered by keys, which two may share."""
    for before, record in read_records(path, max_line_bytes=max_line_bytes):
        if before == where:
            return
        if record.get("sample_id") == sample_id:
            raise DataError(
                f"{where}: $.sample_id",
                f"{sample_id!r:.80} was used already, at {before}.",
                fix="Scores are matched by id: give each sample its own.",
            )


class JsonlDataset(EvaluationDataset):
    """A dataset that stays in its file: each walk reads it anew, and no more than a line is held."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size: int | None = None
        self._head: Head | None = None
        self._walked: tuple[int, int, int] | None = None  # the file's state in which all ids differed

    def __iter__(self) -> Iterator[EvaluationSample]:
        state = _state(self._path)
        yield from read_samples(self._path, all_differ=state is not None and state == self._walked)
        self._walked = state

    def _what_comes_first(self) -> Head:
        if self._head is None:
            self._head = Head()
            next(read_samples(self._path, head=self._head), None)
        return self._head

    @property
    def name(self) -> str:
        return self._what_comes_first().name(self._path)

    @property
    def info(self) -> dict[str, Any]:
        return self._what_comes_first().info

    @property
    def documents(self) -> Sequence[Document]:
        return list(self._what_comes_first().documents.values())

    def __len__(self) -> int:
        if self._size is None:
            self._size = sum(1 for _ in self)
        return self._size


def _state(path: Path) -> tuple[int, int, int] | None:
    """What changes when somebody writes to a file; None where nobody can tell."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None  # whoever reads the file says what is wrong with it
    return status.st_ino, status.st_size, status.st_mtime_ns


def save_jsonl_dataset(dataset: EvaluationDataset, path: str | Path, *, force: bool = False) -> None:
    """Write a dataset with one sample a line; `load_jsonl_dataset` reads it back unchanged."""
    save_records(_lines(dataset), Path(path), force=force)


def _lines(dataset: EvaluationDataset) -> Iterator[dict[str, Any]]:
    corpus = {doc.doc_id: doc for doc in dataset.documents}
    if dataset.info:
        yield {"dataset": dataset.info}
    yield from ({"document": document_record(doc)} for doc in corpus.values())
    yield from (sample_record(sample, corpus) for sample in dataset)


def save_records(records: Iterable[dict[str, Any]], path: Path, *, force: bool = False) -> None:
    """Write records as JSON Lines, through gzip if the name ends in .gz."""
    with written(path, force=force) as file:
        if path.suffix == ".gz":
            # No name and no time in the header: equal content gives equal bytes.
            with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
                for record in records:
                    packed.write(encode(record) + b"\n")
        else:
            for record in records:
                file.write(encode(record) + b"\n")


def encode(record: Any) -> bytes:
    """One record as JSON; what JSON cannot hold becomes what it can (`core.fingerprint.plain`)."""
    try:
        return msgspec.json.encode(record, enc_hook=plain)
    except UnicodeEncodeError as error:
        raise DataError(
            "a text", "holds half of a surrogate pair, which UTF-8 cannot write.", fix="Clean the text first."
        ) from error


def read_records(
    path: str | Path, *, max_line_bytes: int = MAX_LINE_BYTES
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield ("file.jsonl:17", record) for each line that is not blank.

    A byte order mark and CRLF line ends are accepted, and so is gzip, whatever the file is called.
    """
    for where, line in _placed_lines(Path(path), max_line_bytes):
        yield where, parse_line(line, where)


def _placed_lines(path: Path, limit: int) -> Iterator[tuple[str, bytes]]:
    """("file.jsonl:17", line) for each line that is not blank."""
    name = path.name
    for number, line in enumerate(read_lines(path, limit), start=1):
        if number == 1:
            line = line.removeprefix(BYTE_ORDER_MARK)
        if not line.isspace() and line:
            yield f"{name}:{number}", line


def parse_line(line: bytes, where: str) -> dict[str, Any]:
    """The record on a line; DataError if it is none, or one that could do harm."""
    record = parse_json(line, where, hint=_ONE_OBJECT)
    if not isinstance(record, dict):
        raise DataError(f"{where}: $", f"an object was expected, not {kind_of(record)}.", fix=_ONE_OBJECT)
    if may_repeat_a_key(line):
        refuse_repeated_keys(line, where)
    return record


_ONE_OBJECT = "Write one JSON object a line."


def read_lines(path: Path, limit: int = MAX_LINE_BYTES) -> Iterator[bytes]:
    """The lines of a file, unpacked if need be; a line beyond the limit is an error."""
    with opened(path) as file:
        number = blank = 0
        while True:
            try:
                line = file.readline(limit + 1)
            except (OSError, EOFError, zlib.error) as error:
                raise _damaged(f"{path.name}:{number + 1}", error) from error
            if not line:
                return
            number += 1
            blank = blank + 1 if len(line) < 3 else 0
            if blank > MAX_BLANK_LINES:
                what = f"there are more than {MAX_BLANK_LINES} blank lines before it."
                raise DataError(f"{path.name}:{number}", what, fix="Is it the right file? Remove them.")
            if len(line) > limit and not line.endswith(b"\n"):
                raise DataError(
                    f"{path.name}:{number}",
                    f"the line is longer than {limit / 1e6:g} MB.",
                    fix="Write one sample a line, or raise max_line_bytes if this is meant.",
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
                _refuse_packed_twice(unpacked, path.name)
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


def _refuse_packed_twice(unpacked: gzip.GzipFile, where: str) -> None:
    if unpacked.peek(2)[:2] == _GZIP:
        raise DataError(where, "it is packed twice, gzip in gzip.", fix="Unpack it once.")


def refuse_bomb(
    unpacked: int,
    packed: int,
    where: str,
    *,
    most: int = MAX_EXPANSION,
    fix: str = "Unpack it yourself if it is meant.",
) -> None:
    """DataError if so few bytes unpack to so many that somebody meant to fill the memory."""
    if unpacked > max(EXPANSION_UNCHECKED, most * packed):
        raise DataError(
            where,
            f"{packed} bytes unpack to more than {unpacked // 1_000_000} MB: this is no data.",
            fix=fix,
        )


def is_packed(path: Path) -> bool:
    """Whether a file is gzip, whatever its name."""
    with _opened(path) as file:
        return file.peek(2)[:2] == _GZIP


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
        return path.open("rb")
    except FileNotFoundError:
        raise DataError(str(path), "there is no such file.", fix="Check the name.") from None
    except OSError as error:
        raise DataError(
            f"{path!s:.80}",
            f"cannot be opened: {error.strerror or error}.",
            fix="Check the name and its rights.",
        ) from error
