"""JSON Lines: one record a line, and the dataset format of one sample a line."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from ..core.dataset import EvaluationDataset, InMemoryDataset
from ..core.fingerprint import plain
from ..core.types import EvaluationSample
from ..errors import DataError
from .atomic import written
from .records import read_sample, sample_record

MAX_LINE_BYTES = 8_000_000


def load_jsonl_dataset(path: str | Path, name: str | None = None) -> InMemoryDataset:
    """Load a dataset with one sample a line; a bad line is an error that names it."""
    path = Path(path)
    places: dict[str, str] = {}
    samples: list[EvaluationSample] = []
    for where, record in read_records(path):
        sample = read_sample(record, where)
        if sample.sample_id in places:
            raise DataError(
                f"{where}: $.sample_id",
                f"{sample.sample_id!r} was used already, at {places[sample.sample_id]}.",
                fix="Scores are matched by id: give each sample its own.",
            )
        places[sample.sample_id] = where
        samples.append(sample)
    return InMemoryDataset(name=_stem(path) if name is None else name, samples=samples)


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
    decode = msgspec.json.Decoder().decode
    for number, line in enumerate(_lines(path, max_line_bytes), start=1):
        where = f"{path.name}:{number}"
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line.strip():
            continue
        try:
            record = decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DataError(where, *_why_not_json(line, error)) from error
        if not isinstance(record, dict):
            raise DataError(f"{where}: $", f"an object was expected, not {_kind(record)}.{_ONE_OBJECT}")
        yield where, record


_ONE_OBJECT = " Write one JSON object a line."


def _lines(path: Path, limit: int) -> Iterator[bytes]:
    with opened(path) as file:
        number = 0
        while True:
            try:
                line = file.readline(limit + 1)
            except (OSError, EOFError, zlib.error) as error:
                raise DataError(
                    f"{path.name}:{number + 1}", f"the file cannot be read on: {error}."
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


def opened(path: Path) -> BinaryIO:
    """A file to read bytes from, unpacked if it is gzip; DataError where it cannot be opened."""
    try:
        if path.is_dir():
            raise DataError(str(path), "is a folder.", fix="Name a file in it.")
        file = path.open("rb")
    except FileNotFoundError:
        raise DataError(str(path), "there is no such file.", fix="Check the name.") from None
    except OSError as error:
        raise DataError(str(path), f"cannot be opened: {error.strerror or error}.") from error
    if file.peek(2)[:2] == b"\x1f\x8b":
        return gzip.GzipFile(fileobj=file, mode="rb")  # type: ignore[return-value]
    return file


def _why_not_json(line: bytes, error: Exception) -> tuple[str]:
    """What is wrong with a line, in words, and what to do; the parser's words where we know no better."""
    stripped = line.rstrip()
    try:
        text = stripped.decode("utf-8")
    except UnicodeDecodeError as bad:
        return (f"byte {bad.start + 1} is not UTF-8 ({bad.reason}). Save the file as UTF-8.",)
    if isinstance(error, RecursionError):
        return ("the JSON is nested too deeply. Flatten the record.",)
    message = str(error)
    if any(word in text for word in ("NaN", "Infinity")):
        return (f"not JSON: {message}. NaN and Infinity are not JSON numbers; write null.",)
    if "truncated" in message:
        return (
            "the JSON ends in the middle of a record. Was the file cut off? Remove or complete the line.",
        )
    return (f"not JSON: {message}.{_ONE_OBJECT}",)


def _kind(value: Any) -> str:
    names = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return "null" if value is None else names.get(type(value), type(value).__name__)


def _stem(path: Path) -> str:
    name = path.name.removesuffix(".gz")
    return name.rsplit(".", 1)[0] if "." in name else name
