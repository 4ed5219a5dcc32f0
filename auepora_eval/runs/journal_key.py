"""The key of a journal whose header is gone, found by its own lines: the answers in it can still be scored.

The checksum of a line begins with that of the run's key. Reckoned backwards through the text of a line it
gives that beginning; lines of one run give the same, and others do not.
"""

from __future__ import annotations

import zlib
from collections import Counter
from pathlib import Path

from .journal_lines import opened_journal

_LINES = 64  # that are looked at; two that agree are enough
_LONGEST = 100_000  # bytes of a line that is still reckoned through
_ALL = 0xFFFFFFFF
_TABLE = [zlib.crc32(bytes([byte]), _ALL) ^ _ALL for byte in range(256)]
_BY_HIGH_BYTE = {word >> 24: place for place, word in enumerate(_TABLE)}


def key_of_lines(path: Path) -> bytes | None:
    """Bytes that do for the key of a journal; None if no two of its first lines agree on one."""
    found: Counter[int] = Counter()
    with opened_journal(path) as file:
        for _ in range(_LINES):
            line = file.readline(_LONGEST)
            if not line:
                break
            try:
                told = int(line[:8], 16)
            except ValueError:
                continue
            if line[8:9] == b" " and line.endswith(b"\n"):
                found[_before(told, line[9:-1])] += 1
    [(checksum, lines)] = found.most_common(1) or [(0, 0)]
    return _with_checksum(checksum) if lines > 1 else None


def _before(checksum: int, text: bytes) -> int:
    """The checksum from which a text leads to this one."""
    state = checksum ^ _ALL
    for byte in reversed(text):
        place = _BY_HIGH_BYTE[state >> 24]
        state = (((state ^ _TABLE[place]) << 8) & _ALL) | (place ^ byte)
    return state ^ _ALL


def _with_checksum(checksum: int) -> bytes:
    """Four bytes that have this checksum."""
    # Four bytes change a checksum as four zeros do, but for what they are themselves.
    return _before(checksum, bytes(4)).to_bytes(4, "little")
