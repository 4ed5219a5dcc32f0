"""A file that is one document, JSON or YAML: read whole, within limits, and written whole."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec

from ..core.dataset import plain
from ..errors import DataError
from ..read.text import FLATTEN, MAX_DEPTH, TOO_DEEP, kind_of, parse_document, walk
from .files import write_bytes
from .jsonl import BYTE_ORDER_MARK, encode, opened

# A document is parsed in memory, where it takes two to three times its size.
MAX_DOCUMENT_BYTES = 2_000_000_000
MAX_UNPACKED_BYTES = 300_000_000
YAML_SUFFIXES = (".yaml", ".yml")


def read_document(path: str | Path, *, max_bytes: int = MAX_DOCUMENT_BYTES) -> Any:
    """The document of a file; gzip is unpacked, but no further than `max_bytes`."""
    path = Path(path)
    content = read_content(path, max_bytes)
    if not is_yaml(path):
        return parse_document(content, path.name)
    from ..read.plain_yaml import parse_yaml  # with PyYAML: few documents are YAML

    document = parse_yaml(content, path.name)
    if document is None and all(line.lstrip()[:1] in (b"", b"#") for line in content.splitlines()):
        raise DataError(path.name, "there is nothing in it.", fix="Write one YAML document.")
    return document


def read_content(path: Path, max_bytes: int = MAX_DOCUMENT_BYTES) -> bytes:
    """The bytes of a file, unpacked; a file that unpacks to more than the limit is an error, not a crash."""
    with opened(path) as file:
        # A few bytes of gzip may unpack to any number of them.
        max_bytes = min(max_bytes, MAX_UNPACKED_BYTES) if isinstance(file, gzip.GzipFile) else max_bytes
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise DataError(
            path.name,
            f"the file holds more than {max_bytes / 1e6:g} MB.",
            fix="Is it the right file? Large datasets are better kept as .jsonl or .parquet.",
        )
    return content.removeprefix(BYTE_ORDER_MARK)


def write_document(document: Any, path: str | Path, *, force: bool = False) -> None:
    """Write a document as indented JSON, or as YAML if the name says so."""
    path = Path(path)
    content = encode(document)
    if is_yaml(path):
        from ..read.plain_yaml import yaml_text

        content = yaml_text(msgspec.json.decode(content)).encode("utf-8")
    else:
        content = msgspec.json.format(content, indent=2) + b"\n"
    write_bytes(path, packed(content) if path.suffix == ".gz" else content, force=force)


def packed(content: bytes, level: int = 6) -> bytes:
    """Content as gzip, with no name and no time in it: equal content gives equal bytes."""
    return gzip.compress(content, compresslevel=level, mtime=0)


def is_yaml(path: Path) -> bool:
    """Whether a file is YAML by its name."""
    return path.name.lower().removesuffix(".gz").endswith(YAML_SUFFIXES)


# Values that JSON returns as they were: texts, numbers, true, false, null, lists, and objects of them.

_PLAIN = (str, int, float, type(None), list, tuple)
_LARGEST = 2**1023  # the largest whole number that the readers accept


def check_storable(document: Any, where: str) -> None:
    """DataError for the first value that would be read back as something else.

    A tuple becomes a list, an array of numpy a list of numbers; NaN and the infinities, which JSON lacks, are
    read back as null: not measured.
    """
    for path, depth, value in walk(document):
        place = f"{where}: {path:.80}"
        if depth > MAX_DEPTH:
            raise DataError(place, TOO_DEEP, fix=FLATTEN)
        if isinstance(value, dict):
            for key in value:
                if not isinstance(key, str):
                    what = f"the key {key!r:.60} is not a text: it would be read back as one."
                    raise DataError(place, what, fix="Write it in quotes.")
        elif isinstance(value, int) and abs(value) > _LARGEST:
            raise DataError(place, "the number is too large.", fix="Write it as a text.")
        elif not isinstance(value, _PLAIN) and not hasattr(value, "dtype"):
            what = f"{type(value).__name__} would be read back as something else."
            raise DataError(place, what, fix="Write it as a text, a number, a list or an object.")


# Evaluation data as gzip bytes and back; what unpacks to too much is an error, not a crash.

_WHERE = "evaluation data"
_PACKED = "compressed data"


class DataCompressor:
    """Packs a document as gzip of compact JSON; equal documents give equal bytes."""

    @staticmethod
    def compress_evaluation_data(data: Mapping[str, object], compression_level: int = 6) -> bytes:
        """Return the document as gzip; level 0 only stores it, 9 is the smallest. NaN becomes null."""
        if isinstance(compression_level, bool) or compression_level not in range(10):
            raise DataError(
                "compression_level", f"{compression_level!r:.40} is not a level.", fix="Use 0 to 9."
            )
        _check_object(data, _WHERE)
        try:
            return packed(encode(data), compression_level)
        except RecursionError as error:
            raise DataError(_WHERE, TOO_DEEP, fix=FLATTEN) from error

    @staticmethod
    def decompress_evaluation_data(compressed_data: bytes) -> dict[str, Any]:
        """Return the document of `compress_evaluation_data`; DataError if it is too large."""
        try:
            with gzip.GzipFile(fileobj=BytesIO(compressed_data), mode="rb") as file:
                content = file.read(MAX_UNPACKED_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(_PACKED, "cannot be unpacked.", fix="Are they gzip, and complete?") from error
        if len(content) > MAX_UNPACKED_BYTES:
            raise DataError(_PACKED, f"they unpack to more than {MAX_UNPACKED_BYTES / 1e6:g} MB.")
        document: dict[str, Any] = parse_document(content, _PACKED)
        _check_object(document, _PACKED)
        return document

    @staticmethod
    def estimate_compression_ratio(original_data: Mapping[str, object]) -> float:
        """Return how many times smaller the gzip is than the JSON that `json.dumps` writes.

        That JSON has spaces and \\u escapes, which the packed one does not have.
        """
        compressed = len(DataCompressor.compress_evaluation_data(original_data))
        return len(json.dumps(original_data, default=plain)) / compressed


def _check_object(document: object, where: str) -> None:
    if not isinstance(document, dict):
        raise DataError(
            where,
            f"an object was expected, not {kind_of(document)}.",
            fix='Put a list in an object, such as {"annotations": [...]}.',
        )
