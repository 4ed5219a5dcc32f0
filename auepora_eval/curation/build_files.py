"""The files of a build: read, written and hashed beside the work, on a second core."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from ..errors import DataError, StorageError
from ..io.json_text import may_be_huge
from ..io.jsonl import BYTE_ORDER_MARK, MAX_LINE_BYTES, opened
from ..io.together import begin_to_store

OnProgress = Callable[[int], None]  # bytes of the source that were read since the last call
_BLOCK = 256_000  # what is read at once: small enough to stay in a core's own cache
# A thread that waits for another one's turn in Python waits for milliseconds: so few and large portions.
_WRITE_PORTION, _HASH_PORTION = 1_000_000, 8_000_000
_MAX_WAITING = 8


@dataclass(frozen=True)
class TooLong:
    """A line that is too long to be read: where it is in the (unpacked) source."""

    offset: int
    length: int


class Sink:
    """A file that grows by lines; its size and sha256 are known at the end."""

    def __init__(self, file: BinaryIO, path: Path, writing: Executor, hashing: Executor) -> None:
        self.count = 0
        self._path = path
        self.size = 0
        self._file, self._writing, self._hashing = file, writing, hashing
        self._hash = GrowingHash(Path(file.name))
        self._lines: list[bytes] = []
        self._held = 0
        self._written: deque[Future[None]] = deque()
        self._hashed: list[Future[None]] = []

    def add(self, line: bytes) -> None:
        """One more line, given without its end."""
        self.count += 1
        self._lines.append(line)
        self._held += len(line) + 1
        if self._held >= _WRITE_PORTION:
            self._hand_over()

    def sha256(self) -> str:
        """Write what is left, and tell the hash of all."""
        self._hand_over()
        for portion in self._written:
            portion.result()
        with _named(self._path):
            self._file.flush()
        for portion in [*self._hashed, self._hashing.submit(self._hash.go_on, self.size)]:
            portion.result()
        if self._hash.size != self.size:
            raise StorageError(f"{self._path} is not what was written to it. Is the disk all right?")
        return self._hash.hexdigest()

    def _hand_over(self) -> None:
        self._lines.append(b"")
        self._written.append(self._writing.submit(self._write, b"\n".join(self._lines), self.size))
        self.size += self._held
        self._lines, self._held = [], 0
        if len(self._written) > _MAX_WAITING:
            self._written.popleft().result()

    def _write(self, portion: bytes, start: int) -> None:
        with _named(self._path):
            self._file.write(portion)
        end = start + len(portion)
        if start // _HASH_PORTION < end // _HASH_PORTION:
            with _named(self._path):
                self._file.flush()
            self._hashed.append(self._hashing.submit(self._follow, end))

    def _follow(self, end: int) -> None:
        start = self._hash.size
        self._hash.go_on(end)
        begin_to_store(self._file.fileno(), start, end - start)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """An error of the system says which file it is about; by itself that of a write does not."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


class GrowingHash:
    """The sha256 of a file while it is being written: read again in another thread, from where it stopped."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._digest = hashlib.sha256()
        self.size = 0
        self._turn = Lock()  # two portions may be asked for at once; they are hashed one after the other

    def go_on(self, end: int | None = None) -> None:
        """Hash as far as is written."""
        portion = memoryview(bytearray(_HASH_PORTION))
        with self._turn, self._path.open("rb", buffering=0) as file:
            file.seek(self.size)
            while end is None or self.size < end:
                room = portion if end is None else portion[: end - self.size]
                size = file.readinto(room)
                if not size:
                    return
                self._digest.update(room[:size])
                self.size += size

    def hexdigest(self) -> str:
        """The hash of what was hashed so far."""
        return self._digest.hexdigest()


class Source:
    """A file that is read by lines, and hashed meanwhile."""

    def __init__(self, path: Path, hashing: Executor) -> None:
        self.path = path
        self._state = _state(path)
        self._hash = GrowingHash(path)
        self._hashed = hashing.submit(self._hash.go_on)
        self.may_hold_huge = True  # a number that no float can hold, in the lines that were given last

    @property
    def size(self) -> int:
        """The size of the file, packed if it is."""
        return self._state[0]

    def lines(
        self, *, on_progress: OnProgress | None = None, max_line_bytes: int = MAX_LINE_BYTES
    ) -> Iterator[tuple[int, list[bytes | TooLong]]]:
        """(number of the first, lines) block by block; a `TooLong` stands for a line too long to be read.

        The last line of the file may lack its end. Gzip is unpacked.
        """
        number, rest, read, begun = 1, b"", 0, -1  # where a line began that is too long, or -1
        for block in self._blocks():
            pieces = block.split(b"\n")
            end = read + len(pieces[0])
            read += len(block)
            self.may_hold_huge = may_be_huge(block)
            if rest:
                pieces[0] = rest + pieces[0]
                self.may_hold_huge |= may_be_huge(pieces[0])
            elif number == 1:
                pieces[0] = pieces[0].removeprefix(BYTE_ORDER_MARK)
            rest = pieces.pop()
            lines: list[bytes | TooLong] = list(pieces)
            if begun >= 0 and lines:
                lines[0], begun = TooLong(begun, end - begun), -1
            if len(rest) > max_line_bytes:
                begun, rest = read - len(rest) if begun < 0 else begun, b""
            yield number, lines
            number += len(lines)
            if on_progress is not None:
                on_progress(len(block))
        if rest or begun >= 0:
            self.may_hold_huge = may_be_huge(rest)
            yield number, [rest if begun < 0 else TooLong(begun, read - begun)]

    def _blocks(self) -> Iterator[bytes]:
        with opened(self.path) as file:
            while block := file.read(_BLOCK):
                yield block

    def sha256(self) -> str:
        """The hash of the file as it is on the disk; DataError if it is not what it was at the start."""
        self._hashed.result()
        if _state(self.path) != self._state:
            raise DataError(
                str(self.path),
                "the file changed while it was read.",
                fix="Build when nothing writes to it any more.",
            )
        return self._hash.hexdigest()


def _state(path: Path) -> tuple[int, int, int]:
    now = path.stat()
    return now.st_size, now.st_mtime_ns, now.st_ino
