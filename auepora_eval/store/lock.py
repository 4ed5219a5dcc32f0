"""The lock of a run: one process writes to it, and the lock ends with that process."""

from __future__ import annotations

import os
import platform
import re
from contextlib import suppress
from pathlib import Path

from ..errors import StorageError
from ..io.files import is_alive

try:
    import fcntl
except ImportError:  # Windows: there two processes may write to one run
    fcntl = None  # type: ignore[assignment]

_NOTE_BYTES = 200


class RunLock:
    """The right to write to a run, held until `release` or the end of the process.

    The operating system's lock decides. The note in the file only says who has it.
    """

    def __init__(self, database: Path) -> None:
        self.path = _lock_path(database)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._locked(database)
            self._process = os.getpid()
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, f"process {self._process} on {platform.node()}".encode(), 0)
        except StorageError:
            raise
        except OSError as error:
            raise StorageError(f"{self.path} cannot be written: {error.strerror or error}.") from error

    def _locked(self, database: Path) -> int:
        while True:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
            if not _is_free(file, alone=True):
                who, is_dead = _who(file), _is_dead(file)
                os.close(file)
                if is_dead:  # its process was killed, and one that it forked still has the lock
                    self.path.unlink(missing_ok=True)
                    continue
                fix = "Wait for it, stop it, or choose another id."
                raise StorageError(f"{database} is being written by {who}. {fix}")
            # The holder before us may have removed the file between our open and our lock.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file), self.path.stat()):
                    return file
            os.close(file)

    def __enter__(self) -> RunLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        """Unlock the run and remove the file."""
        # A fork of this process does not unlock the run.
        if self._file >= 0 and os.getpid() == self._process:
            self.path.unlink(missing_ok=True)
            os.close(self._file)
            self._file = -1


def writer_of(database: Path) -> str:
    """Return which process writes to a run; empty if none does."""
    try:
        file = os.open(_lock_path(database), os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return ""
    try:
        return "" if _is_free(file, alone=False) or _is_dead(file) else _who(file)
    finally:
        os.close(file)


def _lock_path(database: Path) -> Path:
    return database.with_name(f".{database.name}.lock")


def _is_free(file: int, *, alone: bool) -> bool:
    """Take a lock, exclusive or shared; return whether it was free."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _who(file: int) -> str:
    return os.pread(file, _NOTE_BYTES, 0).decode("utf-8", "replace") or "another process"


def _is_dead(file: int) -> bool:
    """Return whether the process that took a lock is known to be dead."""
    match = re.fullmatch(r"process (\d{1,9}) on (.*)", _who(file))
    return match is not None and match[2] == platform.node() and not is_alive(int(match[1]))
