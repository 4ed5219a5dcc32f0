"""The source of a build: read by lines without copying them, and hashed beside the work."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from ..errors import DataError
from ..io.json_text import may_be_huge
from ..io.jsonl import BYTE_ORDER_MARK, MAX_LINE_BYTES, opened
from .build_files import PORTION

OnProgress = Callable[[int], None]  # bytes of the source that were read since the last call
_BRACE = ord("{")
_BLOCK = 256_000  # what is read at once: small enough to stay in a core's own cache


@dataclass(frozen=True)
class TooLong:
    """A line that is too long to be read: where it is in the (unpacked) source."""

    offset: int
    length: int


Line = memoryview | TooLong


def is_blank(line: Line) -> bool:
    """Whether there is nothing on a line."""
    # Most lines begin with a brace: the others are few enough to be copied.
    return not isinstance(line, TooLong) and (not line or line[0] != _BRACE) and not bytes(line).strip()


class Source(AbstractContextManager["Source"]):
    """A file that is read by lines, and hashed beside it, portion by portion: what was read is in memory."""

    def __init__(self, path: Path, beside: Executor) -> None:
        self.path, self._beside = path, beside
        self._state = _state(path)
        self._file = path.open("rb", buffering=0)
        self._digest, self._portion = hashlib.sha256(), memoryview(bytearray(PORTION))
        self._hashed: deque[Future[int]] = deque()
        self.may_hold_huge = True  # a number that no float can hold, in the lines that were given last

    @property
    def size(self) -> int:
        """The size of the file, packed if it is."""
        return self._state[0]

    def lines(
        self,
        *,
        on_progress: OnProgress | None = None,
        max_line_bytes: int = MAX_LINE_BYTES,
        block: int = _BLOCK,
    ) -> Iterator[tuple[int, list[Line]]]:
        """(number of the first, lines) block by block; a `TooLong` stands for a line too long to be read.

        The lines are views of a room that the next block is read into: copy what is to be kept. The last
        line of the file may lack its end. Gzip is unpacked.
        """
        number, room, to_hash = 1, _Room(max_line_bytes, block), 0
        with opened(self.path) as file:
            while size := file.readinto(room.free):  # type: ignore[attr-defined]  # both kinds of file have it
                self.may_hold_huge = room.take(size)
                yield number, room.lines
                number += len(room.lines)
                to_hash += size
                if to_hash >= PORTION:
                    to_hash -= PORTION
                    self._hash_on()
                if on_progress is not None:
                    on_progress(size)
        if rest := room.rest():
            self.may_hold_huge = True
            yield number, rest

    def sha256(self) -> str:
        """The hash of the file as it is on the disk; DataError if it is not what it was at the start."""
        while not self._hashed or self._hashed[-1].result():
            self._hash_on()
        if _state(self.path) != self._state:
            raise DataError(
                str(self.path),
                "the file changed while it was read.",
                fix="Build when nothing writes to it any more.",
            )
        return self._digest.hexdigest()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Close the file."""
        self._file.close()

    def _hash_on(self) -> None:
        """Have the next portion hashed; an error of an earlier one is raised."""
        while self._hashed and self._hashed[0].done():
            self._hashed.popleft().result()
        self._hashed.append(self._beside.submit(self._hash_portion))

    def _hash_portion(self) -> int:
        size = self._file.readinto(self._portion) or 0
        self._digest.update(self._portion[:size])
        return size


def _state(path: Path) -> tuple[int, int, int]:
    now = path.stat()
    return now.st_size, now.st_mtime_ns, now.st_ino


class _Room:
    """Memory that blocks are read into, one after the other; what was left of a line goes to its front."""

    def __init__(self, max_line_bytes: int, block: int) -> None:
        self.max_line_bytes, self._block = max_line_bytes, block
        self.lines: list[Line] = []
        self._bytes = bytearray(2 * block)
        self._view = memoryview(self._bytes)
        self._start = self._end = 0  # of what is not given yet
        self._offset = 0  # of the room's front in the source
        self._too_long = -1  # where a line began in the source that is too long, or -1

    @property
    def free(self) -> memoryview:
        """Where to read the next block to; what is left of the last one is moved out of its way."""
        start, held = self._start, self._end - self._start
        self._offset += start
        if held > self.max_line_bytes or self._too_long >= 0:
            self._too_long = self._offset if self._too_long < 0 else self._too_long
            self._offset += held
            held = 0
        elif held > len(self._bytes) // 2:
            self._bytes = self._bytes[start : self._end] + bytearray(2 * held)
            self._view = memoryview(self._bytes)
        else:
            self._bytes[:held] = self._bytes[start : self._end]
        self._start, self._end = 0, held
        return self._view[held : held + self._block]

    def take(self, size: int) -> bool:
        """Find the lines that are whole now; whether a number that no float can hold may be in them."""
        room, view, start, held = self._bytes, self._view, 0, self._end
        end = self._end = held + size
        stop = room.find(b"\n", held, end)
        lines: list[memoryview] = []
        while stop >= 0:
            lines.append(view[start:stop])
            start = stop + 1
            stop = room.find(b"\n", start, end)
        self._start = start
        plain = end <= self.max_line_bytes and self._offset > 0 and self._too_long < 0
        self.lines = list(lines) if plain else self._judged(lines)
        return may_be_huge(room, end)

    def rest(self) -> list[Line]:
        """The last line, if it has no end."""
        if self._start == self._end and self._too_long < 0:
            return []
        self.lines = self._judged([self._view[self._start : self._end]])
        return self.lines

    def _judged(self, lines: list[memoryview]) -> list[Line]:
        """The lines with those marked that are too long, and without the mark a file may begin with."""
        judged: list[Line] = []
        offset = self._offset
        for line in lines:
            if self._too_long >= 0:
                judged.append(TooLong(self._too_long, offset + len(line) - self._too_long))
                self._too_long = -1
            elif len(line) > self.max_line_bytes:
                judged.append(TooLong(offset, len(line)))
            else:
                marked = offset == 0 and bytes(line[:3]) == BYTE_ORDER_MARK
                judged.append(line[3:] if marked else line)
            offset += len(line) + 1
        return judged
