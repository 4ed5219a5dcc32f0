"""Evaluation data as gzip bytes and back; what unpacks to too much is an error, not a crash."""

from __future__ import annotations

import gzip
import json
import zlib
from io import BytesIO
from typing import Any

from ..core.fingerprint import plain
from ..errors import DataError
from .document_file import packed
from .json_text import FLATTEN, TOO_DEEP, kind_of, parse_document
from .jsonl import encode, refuse_bomb

_WHERE = "evaluation data"
_PACKED = "compressed data"
_STEP = 1 << 20
_MOST = 1_000_000_000


class DataCompressor:
    """Packs a document as gzip of compact JSON; equal documents give equal bytes."""

    @staticmethod
    def compress_evaluation_data(data: dict[str, Any], compression_level: int = 6) -> bytes:
        """The document as gzip; level 0 only stores it, 9 is smallest and slowest. NaN becomes null."""
        if isinstance(compression_level, bool) or compression_level not in range(10):
            raise DataError(
                "compression_level", f"{compression_level!r:.40} is not a level.", fix="Use 0 to 9."
            )
        _refuse_others(data, _WHERE)
        try:
            return packed(encode(data), compression_level)
        except RecursionError as error:
            raise DataError(_WHERE, TOO_DEEP, fix=FLATTEN) from error

    @staticmethod
    def decompress_evaluation_data(compressed_data: bytes, *, max_bytes: int | None = None) -> dict[str, Any]:
        """The document of `compress_evaluation_data`; DataError if it unpacks to more than `max_bytes`.

        Without it to more than 1 GB, or to so many times the size that somebody meant to fill the memory.
        """
        document = parse_document(_unpacked(compressed_data, max_bytes), _PACKED)
        _refuse_others(document, _PACKED)
        result: dict[str, Any] = document
        return result

    @staticmethod
    def estimate_compression_ratio(original_data: dict[str, Any]) -> float:
        """How many times smaller the gzip is than the JSON that `json.dumps` writes.

        That JSON has spaces and \\u escapes, which the packed one has not: it is the saving against a file
        written the plain way, a little above what gzip alone saves.
        """
        compressed = len(DataCompressor.compress_evaluation_data(original_data))
        return len(json.dumps(original_data, default=plain)) / compressed


def _unpacked(compressed: bytes, max_bytes: int | None) -> bytes:
    content, most = bytearray(), _MOST if max_bytes is None else max_bytes
    try:
        with gzip.GzipFile(fileobj=BytesIO(compressed), mode="rb") as file:
            # In steps: one read of a gigabyte would claim the gigabyte before it is known to be there.
            while step := file.read(_STEP):
                content += step
                if max_bytes is None:
                    refuse_bomb(len(content), len(compressed), _PACKED, fix="Give max_bytes if it is meant.")
                if len(content) > most:
                    raise DataError(
                        _PACKED,
                        f"they unpack to more than {most / 1e6:g} MB.",
                        fix="Raise max_bytes if this is meant.",
                    )
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(_PACKED, "cannot be unpacked.", fix="Are they gzip, and complete?") from error
    return bytes(content)


def _refuse_others(document: Any, where: str) -> None:
    if not isinstance(document, dict):
        raise DataError(
            where,
            f"an object was expected, not {kind_of(document)}.",
            fix='Put a list in an object, such as {"annotations": [...]}.',
        )
