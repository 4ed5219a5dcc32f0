"""The lock of a run: one process writes to it, and the lock ends with that process.

The operating system's lock decides. The note in the file only says who has it.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import StorageError
from ..io.files import is_alive, made_folders


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Hold the right to write to a run; StorageError if another process has it."""
    path, process = _lock_path(database), os.getpid()
    try:
        folders = made_folders(path)
        file = _taken(path, database)
        os.ftruncate(file, 0)
        os.pwrite(file, f"process {process} on {platform.node()}".encode(), 0)
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(f"{path} cannot be written: {error.strerror or error}.") from error
    try:
        yield
    finally:
        if os.getpid() == process:  # a fork of this process does not unlock the run
            path.unlink(missing_ok=True)
            os.close(file)
            with suppress(OSError):  # folders that were made for nothing
                for folder in folders:
                    folder.rmdir()


def _taken(path: Path, database: Path) -> int:
    """Return the file of the lock, which this process has from now on."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        holder = _holder(file, alone=True)
        if holder is None:
            # The holder before us may have removed the file between our open and our lock.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file), path.stat()):
                    return file
        os.close(file)
        if holder:
            raise StorageError(f"{database} is being written by {holder}. Wait for it, or stop it.")
        if holder == "":
            path.unlink(missing_ok=True)


def writer_of(database: Path) -> str:
    """Return which process writes to a run; empty if none does."""
    try:
        file = os.open(_lock_path(database), os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return ""
    try:
        return _holder(file, alone=False) or ""
    finally:
        os.close(file)


def _lock_path(database: Path) -> Path:
    return database.with_name(f".{database.name}.lock")


def _holder(file: int, *, alone: bool) -> str | None:
    """Take a lock, exclusive or shared. Return None if it was free, else the process that has it.

    Empty, if that process was killed: then one that it had forked still has the lock.
    """
    try:
        fcntl.flock(file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        note = os.pread(file, 200, 0).decode("utf-8", "replace")
    match = re.fullmatch(r"process (\d{1,9}) on (.*)", note)
    if match is not None and match[2] == platform.node() and not is_alive(int(match[1])):
        return ""
    return note or "another process"
