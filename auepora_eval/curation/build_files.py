"""The files of a build: written and hashed beside the work, on a second core."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import BinaryIO

from ..errors import StorageError
from ..io.together import begin_to_store

# A thread that waits for another one's turn in Python waits for milliseconds: so few and large portions.
_WRITE_PORTION, _HASH_PORTION = 1_000_000, 8_000_000
_MAX_WAITING = 8


class Sink:
    """A file that grows by lines; its size and sha256 are known at the end.

    A line is appended to `room`, with its end, and then counted by `ended`: to join lines costs as much as
    to make them.
    """

    def __init__(self, file: BinaryIO, path: Path, writing: Executor, hashing: Executor) -> None:
        self.count = 0
        self._path = path
        self.size = 0
        self._file, self._writing, self._hashing = file, writing, hashing
        self._hash = GrowingHash(Path(file.name))
        self.room = bytearray()
        self._written: deque[Future[None]] = deque()
        self._hashed: list[Future[None]] = []

    def ended(self) -> None:
        """One more line is in the room."""
        self.count += 1
        if len(self.room) >= _WRITE_PORTION:
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
        self._written.append(self._writing.submit(self._write, self.room, self.size))
        self.size += len(self.room)
        self.room = bytearray()
        if len(self._written) > _MAX_WAITING:
            self._written.popleft().result()

    def _write(self, portion: bytearray, start: int) -> None:
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
