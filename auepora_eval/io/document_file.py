"""A file that is one document, JSON or YAML: read whole, within limits, and written whole."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import msgspec

from ..errors import DataError
from .atomic import write_bytes
from .json_text import parse_document
from .jsonl import BYTE_ORDER_MARK, encode, opened, refuse_bomb
from .yaml_text import parse_yaml, yaml_text

MAX_DOCUMENT_BYTES = 2_000_000_000
YAML_SUFFIXES = (".yaml", ".yml")
_STEP = 1 << 24


def read_document(path: str | Path, *, max_bytes: int = MAX_DOCUMENT_BYTES) -> Any:
    """The document of a file; gzip is unpacked, but no further than `max_bytes`."""
    path = Path(path)
    content = read_content(path, max_bytes)
    if not is_yaml(path):
        return parse_document(content, path.name)
    document = parse_yaml(content, path.name)
    if document is None and all(line.lstrip()[:1] in (b"", b"#") for line in content.splitlines()):
        raise DataError(path.name, "there is nothing in it.", fix="Write one YAML document.")
    return document


def read_content(path: Path, max_bytes: int = MAX_DOCUMENT_BYTES) -> bytes:
    """The bytes of a file, unpacked; a file that unpacks to more than the limit is an error, not a crash."""
    with opened(path) as file:
        if not isinstance(file, gzip.GzipFile):
            content = file.read(max_bytes + 1)
        else:
            pieces = bytearray()
            # In steps: one read of it all would have unpacked a bomb before anybody looks.
            while len(pieces) <= max_bytes and (piece := file.read(_STEP)):
                pieces += piece
                refuse_bomb(len(pieces), file.fileobj.tell(), path.name)
            content = bytes(pieces)
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
