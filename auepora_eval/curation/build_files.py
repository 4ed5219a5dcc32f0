"""The files of a build: written and hashed beside the work, on a second core."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ..errors import StorageError
from ..io.together import begin_to_store

# A thread that waits for another one's turn in Python waits for milliseconds: so few and large portions.
PORTION = 4_000_000
_MAX_WAITING = 4
_END = ord("\n")


class Sink:
    """A file that grows by lines; its size and sha256 are known at the end.

    Lines are copied into a few rooms that are used again and again: fresh memory costs more than the copy.
    """

    def __init__(self, file: BinaryIO, path: Path, writing: Executor) -> None:
        self.count = self.size = 0
        self._room, self._used = memoryview(bytearray(PORTION)), 0
        self._rooms = [memoryview(bytearray(PORTION)) for _ in range(_MAX_WAITING)]
        self._file, self._path, self._writing = file, path, writing
        self._digest = hashlib.sha256()
        self._written: deque[Future[memoryview]] = deque()

    def add(self, line: bytes | bytearray) -> None:
        """One more line, given without its end; it is copied."""
        self.count += 1
        end = self._used + len(line)
        if end >= len(self._room):
            self._hand_over()
            end = len(line)
            if end >= len(self._room):
                self._room = memoryview(bytearray(end + 1))
        self._room[self._used : end] = line
        self._room[end] = _END
        self._used = end + 1

    def sha256(self) -> str:
        """Write what is left, and tell the hash of all."""
        self._hand_over()
        for portion in self._written:
            portion.result()
        with _named(self._path):
            self._file.flush()
            size = os.fstat(self._file.fileno()).st_size
        if size != self.size:
            raise StorageError(f"{self._path} is not what was written to it. Is the disk all right?")
        return self._digest.hexdigest()

    def _hand_over(self) -> None:
        self._written.append(self._writing.submit(self._write, self._room, self._used, self.size))
        self.size += self._used
        self._used = 0
        if self._rooms and not self._written[0].done():
            self._room = self._rooms.pop()
        else:  # the fewer rooms are used, the more of them is in the cache
            self._room = self._written.popleft().result()

    def _write(self, room: memoryview, size: int, start: int) -> memoryview:
        """Write a room; it is free then."""
        portion = room[:size]
        self._digest.update(portion)
        with _named(self._path):
            self._file.write(portion)
            self._file.flush()
        begin_to_store(self._file.fileno(), start, size)
        return room


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """An error of the system says which file it is about; by itself that of a write does not."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
