"""JSON Lines: one record a line, and the dataset format of one sample a line."""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from ..core.dataset import EvaluationDataset, InMemoryDataset
from ..core.fingerprint import plain
from ..core.types import EvaluationSample
from ..errors import AueporaError, DataError
from .atomic import written
from .records import read_sample, sample_record

MAX_LINE_BYTES = 8_000_000
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_decode = msgspec.json.Decoder().decode
MAX_DEPTH = 100  # what is read must also be copied and written, by code that recurses


def load_jsonl_dataset(path: str | Path, name: str | None = None) -> InMemoryDataset:
    """Load a dataset with one sample a line; a bad line is an error that names it."""
    path = Path(path)
    return InMemoryDataset(name=_stem(path) if name is None else name, samples=list(read_samples(path)))


def read_samples(path: Path, *, max_line_bytes: int = MAX_LINE_BYTES) -> Iterator[EvaluationSample]:
    """The samples of a file with one a line, as they come; an id that comes again is an error."""
    places: dict[str, str] = {}
    for where, record in read_records(path, max_line_bytes=max_line_bytes):
        sample = read_sample(record, where)
        if sample.sample_id in places:
            raise DataError(
                f"{where}: $.sample_id",
                f"{sample.sample_id!r:.80} was used already, at {places[sample.sample_id]}.",
                fix="Scores are matched by id: give each sample its own.",
            )
        places[sample.sample_id] = where
        yield sample


class JsonlDataset(EvaluationDataset):
    """A dataset that stays in its file: each walk reads it anew, and no more than a line is held."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._size: int | None = None

    def __iter__(self) -> Iterator[EvaluationSample]:
        return read_samples(self._path)

    @property
    def name(self) -> str:
        return _stem(self._path)

    def __len__(self) -> int:
        if self._size is None:
            self._size = sum(1 for _ in self)
        return self._size


def save_jsonl_dataset(dataset: EvaluationDataset, path: str | Path, *, force: bool = False) -> None:
    """Write a dataset with one sample a line; `load_jsonl_dataset` reads it back unchanged."""
    save_records((sample_record(sample) for sample in dataset), Path(path), force=force)


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
    path = Path(path)
    for number, line in enumerate(read_lines(path, max_line_bytes), start=1):
        if number == 1:
            line = line.removeprefix(BYTE_ORDER_MARK)
        if line.strip():
            where = f"{path.name}:{number}"
            yield where, parse_line(line, where)


def parse_line(line: bytes, where: str) -> dict[str, Any]:
    """The record on a line; DataError if it is none, or one that could do harm."""
    try:
        record = _decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _not_json(where, line, error) from error
    if not isinstance(record, dict):
        raise DataError(f"{where}: $", f"an object was expected, not {_kind(record)}.{_ONE_OBJECT}")
    refuse_extremes(record, line, where)
    return record


_ONE_OBJECT = " Write one JSON object a line."
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_THREE_DIGITS = re.compile(rb"[0-9]{3}")


def _is_suspect(line: bytes) -> bool:
    """Whether a line may be nested too deeply or hold too large a number; seldom, so the look is quick."""
    # 309 digits in a row, the least that a float cannot hold, are digits at three hundreds in a row.
    if len(line) > 309 and _THREE_DIGITS.search(line[::100]):
        return True
    if line.count(b"{") + line.count(b"[") <= MAX_DEPTH:
        return False
    brackets = line.translate(None, _NO_BRACKETS)
    for _ in range(8):  # each round takes away the innermost pairs
        brackets = brackets.replace(b"{}", b"").replace(b"[]", b"")
    return len(brackets) > MAX_DEPTH


def refuse_extremes(record: Any, line: bytes, where: str) -> None:
    """DataError if what a line says is nested too deeply, or holds a number that no float can hold."""
    if not _is_suspect(line):
        return
    for path, depth, value in _walk(record):
        if depth > MAX_DEPTH:
            raise DataError(
                f"{where}: {path:.80}", "the JSON is nested too deeply.", fix="Flatten the record."
            )
        if isinstance(value, int) and abs(value) > 2**1023:
            raise DataError(f"{where}: {path:.80}", "the number is too large.", fix="Write it as a string.")


def _walk(document: Any) -> Iterator[tuple[str, int, Any]]:
    """(JSON path, depth, value) of everything in a document, without recursion."""
    rest: list[tuple[str, int, Any]] = [("$", 0, document)]
    while rest:
        path, depth, value = rest.pop()
        yield path, depth, value
        if isinstance(value, dict):
            rest.extend((f"{path}.{key}", depth + 1, part) for key, part in value.items())
        elif isinstance(value, list):
            rest.extend((f"{path}[{place}]", depth + 1, part) for place, part in enumerate(value))


def read_lines(path: Path, limit: int = MAX_LINE_BYTES) -> Iterator[bytes]:
    """The lines of a file, unpacked if need be; a line beyond the limit is an error."""
    with opened(path) as file:
        number = 0
        while True:
            try:
                line = file.readline(limit + 1)
            except (OSError, EOFError, zlib.error) as error:
                raise DataError(
                    f"{path.name}:{number + 1}", f"the file cannot be read on: {error}.", fix=_DAMAGED
                ) from error
            if not line:
                return
            number += 1
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
            if file.peek(2)[:2] != b"\x1f\x8b":
                yield file
                return
            with gzip.GzipFile(fileobj=file, mode="rb") as unpacked:
                yield unpacked  # type: ignore[misc]  # it reads like one
    except AueporaError:
        raise
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(path.name, f"the file cannot be read on: {error}.", fix=_DAMAGED) from error


_DAMAGED = "Is it damaged or cut off? Get it again."


def is_packed(path: Path) -> bool:
    """Whether a file is gzip, whatever its name."""
    with _opened(path) as file:
        return file.peek(2)[:2] == b"\x1f\x8b"


def _opened(path: Path) -> BufferedReader:
    if "\0" in str(path):
        raise DataError(f"{str(path)!r:.80}", "there is no such file.", fix="Check the name.")
    try:
        if path.is_dir():
            raise DataError(str(path), "is a folder.", fix="Name a file in it.")
        if path.is_fifo():  # the format is found by a look at the start, which a pipe shows only once
            raise DataError(str(path), "is a pipe.", fix="Write it to a file first.")
        return path.open("rb")
    except FileNotFoundError:
        raise DataError(str(path), "there is no such file.", fix="Check the name.") from None
    except OSError as error:
        raise DataError(
            f"{path!s:.80}",
            f"cannot be opened: {error.strerror or error}.",
            fix="Check the name and its rights.",
        ) from error


def _not_json(where: str, line: bytes, error: Exception) -> DataError:
    """What is wrong with a line, in words, and what to do; the parser's words where we know no better."""
    try:
        text = line.rstrip().decode("utf-8")
    except UnicodeDecodeError as bad:
        what = f"byte {bad.start + 1} is not UTF-8 ({bad.reason})."
        return DataError(where, what, fix="Save the file as UTF-8.")
    message = str(error)
    if isinstance(error, RecursionError):
        return DataError(where, "the JSON is nested too deeply.", fix="Flatten the record.")
    if _HALF_PAIR.search(text) and ("surrogate" in message or "truncated" in message):
        return DataError(where, "a text holds half of a surrogate pair (\\ud800).", fix="Clean the text.")
    if "out of range" in message or "invalid character" in message:
        path = _path_of_no_number(text)
        if path:
            what = "NaN, Infinity and numbers beyond 1e308 are not JSON."
            return DataError(f"{where}: {path:.80}", what, fix="Write null.")
    if "out of range" in message:
        return DataError(where, "a number is too large.", fix="Write it as a string.")
    if "truncated" in message:
        return DataError(
            where,
            "the JSON ends in the middle of a record.",
            fix="Was the file cut off? Remove or complete the line.",
        )
    return DataError(where, f"not JSON: {message}.{_ONE_OBJECT}")


_HALF_PAIR = re.compile(r"\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F]")


def _path_of_no_number(text: str) -> str:
    """The JSON path of a NaN or an infinity, if the line would be JSON but for that."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    return next(
        (path for path, _, value in _walk(document) if isinstance(value, float) and not math.isfinite(value)),
        "",
    )


def _kind(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return "null" if value is None else names.get(type(value), type(value).__name__)


def _stem(path: Path) -> str:
    name = path.name.removesuffix(".gz")
    return name.rsplit(".", 1)[0] if "." in name else name
