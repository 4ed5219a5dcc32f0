"""Logs of Inspect in an archive: `.eval` files are ZIP, with entries packed by DEFLATE or, lately, ZSTD."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import DataError, MissingDependencyError, install_command
from ..json.text import parse_json

if TYPE_CHECKING:
    from zipfile import ZipFile, ZipInfo

_ZSTD = 93  # the method of an entry in the directory of a ZIP file
_SAMPLE = re.compile(r"samples/.+_epoch_[0-9]+\.json")
MOST_BYTES = 500_000_000  # of all entries, unpacked


def read_eval_log(path: Path) -> dict[str, Any]:
    """Return the samples of a log, in the order of their ids, as the JSON form of a log has them."""
    from zipfile import BadZipFile, ZipFile

    try:
        with ZipFile(path) as archive:
            entries = [entry for entry in archive.infolist() if _SAMPLE.fullmatch(entry.filename)]
            check_unpacked_size(entries, path.name)
            samples = [
                parse_json(_content(archive, entry, path.name), f"{path.name}: {entry.filename}")
                for entry in sorted(entries, key=lambda entry: _order(entry.filename))
            ]
    except (BadZipFile, zlib.error, OSError, EOFError, NotImplementedError) as error:
        raise DataError(path.name, f"not a log of Inspect: {error!s:.100}.", fix="Get it again.") from error
    if not samples:
        raise DataError(path.name, "there are no samples in it.", fix="Is it a log of Inspect?")
    return {"samples": samples}


def check_unpacked_size(entries: Iterable[ZipInfo], where: str) -> None:
    """Raise DataError for an archive that is small as a file and fills the memory when it is read."""
    if sum(entry.file_size for entry in entries) > MOST_BYTES:
        raise DataError(where, f"it unpacks to more than {MOST_BYTES / 1e6:g} MB.")


def _order(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts 2 before 10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"([0-9]+)", name)]


def _content(archive: ZipFile, entry: ZipInfo, where: str) -> bytes:
    if entry.compress_type != _ZSTD:
        return archive.read(entry)
    # The standard library reads ZSTD entries from Python 3.14 on: here the packed bytes are cut out.
    file: Any = archive.fp
    file.seek(entry.header_offset + 26)
    sizes = file.read(4)
    name_size, extra_size = (int.from_bytes(sizes[start : start + 2], "little") for start in (0, 2))
    file.seek(entry.header_offset + 30 + name_size + extra_size)
    return _unpacked(file.read(entry.compress_size), entry.file_size, where)


def _unpacked(packed: bytes, size: int, where: str) -> bytes:
    try:
        zstandard: Any = import_module("zstandard")
    except ImportError as error:
        raise MissingDependencyError(
            f"{where} is packed by ZSTD, which needs zstandard: {install_command('inspect')}. Or "
            "convert it: inspect log convert --to json"
        ) from error
    try:
        unpacked = zstandard.ZstdDecompressor().decompress(packed, max_output_size=size)
    except zstandard.ZstdError as error:
        raise DataError(where, f"an entry is damaged: {error}.", fix="Get it again.") from error
    if len(unpacked) != size:
        raise DataError(where, "an entry has another size than the archive says.", fix="Get it again.")
    return bytes(unpacked)
