"""The lines of a journal: a checksum and a record each; what is damaged is found and told, never believed."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from ..core.fingerprint import canonical_json
from ..errors import StorageError

MAX_LINE_BYTES = 1_000_000_000
_decode = msgspec.json.Decoder().decode


def journal_line(record: dict[str, Any], run_key: bytes) -> bytes:
    """A record as its line. The run's key is in the checksum: another run's lines do not pass for ours."""
    text = canonical_json(record)
    return b"%08x %s\n" % (zlib.crc32(text, zlib.crc32(run_key)), text)


def record_of(line: bytes, run_key: bytes) -> dict[str, Any] | None:
    """The record of a line; None if it is not, byte for byte, what was written."""
    text = text_of(line, run_key)
    if text is None:
        return None
    try:
        record = _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def text_of(line: bytes, run_key: bytes) -> bytes | None:
    """The JSON of a line; None if it is not, byte for byte, what was written."""
    text = line[9:-1]
    intact = line[-1:] == b"\n" and line[:9] == b"%08x " % zlib.crc32(text, zlib.crc32(run_key))
    return text if intact else None


@dataclass
class Damage:
    """What is wrong with a journal: lines in the middle (number and offset), and bytes at the end."""

    lines: list[tuple[int, int]] = field(default_factory=list)
    good_bytes: int = 0  # where the last good line ends
    torn_bytes: int = 0
    torn_lines: int = 0

    def in_words(self, name: str) -> list[str]:
        """A sentence for each kind of damage; nothing if there is none."""
        found = []
        if self.lines:
            number, offset = self.lines[0]
            are = "1 line is" if len(self.lines) == 1 else f"{len(self.lines)} lines are"
            found.append(
                f"{name}: {are} damaged, first line {number} at byte {offset}; "
                "what was in it is not used, and its samples are run again."
            )
        if self.torn_lines > 1:
            found.append(
                f"{name}: the last {self.torn_lines} lines ({self.torn_bytes} bytes) are damaged "
                "and dropped; their samples are run again."
            )
        elif self.torn_bytes:
            found.append(
                f"{name}: the last {self.torn_bytes} bytes are not a whole record and are dropped; "
                "the sample is run again."
            )
        return found


def good_records(file: BinaryIO, run_key: bytes, damage: Damage) -> Iterator[tuple[int, dict[str, Any]]]:
    """(offset, record) of each good line; `damage` says what the others were when the walk has ended."""
    offset, bad = 0, []
    number = 0
    while line := file.readline(MAX_LINE_BYTES):
        number += 1
        record = record_of(line, run_key)
        if record is None:
            bad.append((number, offset))
        else:
            # Bad lines before a good one are damage; those that nothing good follows are the torn end.
            damage.lines += bad
            bad = []
            yield offset, record
            damage.good_bytes = offset + len(line)
        offset += len(line)
    damage.torn_bytes, damage.torn_lines = offset - damage.good_bytes, len(bad)


def opened_journal(path: Path) -> BinaryIO:
    """A journal to read; StorageError if it cannot be."""
    try:
        return path.open("rb")
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}.") from error
