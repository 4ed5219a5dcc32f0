"""The lock of a run: one process writes, and the lock ends with it.

It is a lock of the process (`lockf`), which no fork inherits: a helper that outlives a killed run holds
nothing. Such a lock has two traps. Within one process it refuses nobody, so the locks that this process
holds are listed here. And it is lost when the process closes any copy of the file: no function here opens a
file that this process has locked.
"""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from ...errors import StorageError

Note = Mapping[str, object]  # pid, host, since
_SMALL = 4_096  # a note has a hundred bytes; a larger file is not read whole
_WAITS = (0.0, 0.01, 0.02, 0.04, 0.08)  # seconds: `writer_of` has the lock for a moment


class LostLockError(StorageError):
    """The lock of a run was removed or replaced while its process wrote to the run."""


# The notes of the locks that this process holds, by the identity of their files.
_held: dict[tuple[int, int], Note] = {}
_guard = threading.Lock()  # of `_held`, and of opening files that may be in it


class RunLock:
    """The right to write to a run's folder, held until `release` or the end of the process.

    The operating system's lock decides. The note in the file only says who has it. Where a file system has no
    locks, the note decides: a process that is dead on this machine has no lock.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "lock"
        with _guard:
            if (note := _note_of_held(self.path)) is not None:
                raise StorageError(_in_use(folder, note))
            try:
                folder.mkdir(parents=True, exist_ok=True)
                self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
            except OSError as error:
                raise StorageError(f"{self.path} cannot be written: {error.strerror or error}.") from error
            try:
                if not self._taken():
                    raise StorageError(_in_use(folder, _note(self._file)))
                self._is = _identity(os.fstat(self._file))
                _held[self._is] = self._write_note()
                # Checked at every write. Absolute: a system may change the current folder.
                self._name = str(self.path.absolute())
            except BaseException:
                os.close(self._file)
                raise

    def release(self) -> None:
        """Unlock the run. The file stays: another process may be waiting for it."""
        if self._file >= 0:
            os.ftruncate(self._file, 0)
            _held.pop(self._is, None)
            os.close(self._file)
            self._file = -1

    def check_not_lost(self) -> None:
        """Raise LostLockError if the file was removed or replaced: a second process may write to the run."""
        try:
            current = os.stat(self._name)  # noqa: PTH116 - at every write of a run: a Path takes longer
        except OSError:
            raise LostLockError(_taken_away(self.path, "somebody removed it")) from None
        if _identity(current) != self._is:
            raise LostLockError(_taken_away(self.path, f"{_holder(self.path)} has it now"))

    def __enter__(self) -> RunLock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _taken(self) -> bool:
        for seconds in _WAITS:
            time.sleep(seconds)
            is_free = _locked(self._file, alone=True)
            if is_free is None:
                return not _is_alive(_note(self._file))
            if is_free:
                return True
        return False

    def _write_note(self) -> Note:
        note = {
            "pid": os.getpid(),
            "host": platform.node(),
            "since": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        try:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, msgspec.json.encode(note), 0)
        except OSError as error:
            raise StorageError(f"{self.path} cannot be written: {error.strerror or error}.") from error
        return note


def _note_of_held(path: Path) -> Note | None:
    """Return the note of a lock that this process holds; None if it does not hold that of this file."""
    try:
        return _held.get(_identity(path.lstat()))
    except OSError:
        return None


def _identity(facts: os.stat_result) -> tuple[int, int]:
    return facts.st_dev, facts.st_ino


def _taken_away(path: Path, what: str) -> str:
    return (
        f"{path} is not this process's any more: {what}. It stops, so that two do not write to one run. "
        "What it wrote before is kept. Resume the run (--resume, resume=True) when no other process writes."
    )


def writer_of(folder: Path) -> str:
    """Return which process writes to a run's folder; empty if none does.

    A shared lock is tried, which the holder does not notice; a process that wants it in that moment retries.
    """
    path = folder / "lock"
    with _guard:
        if (note := _note_of_held(path)) is not None:
            return _who(note)
        try:
            file = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        except OSError:
            return ""
        try:
            is_free = _locked(file, alone=False)
            if is_free:
                return ""  # closing the file unlocks it
            note = _note(file)
            return _who(note) if is_free is False or _is_alive(note) else ""
        finally:
            os.close(file)


def _locked(file: int, *, alone: bool) -> bool | None:
    """Return whether the system gave a lock, exclusive or shared; None where it has no locks."""
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    try:
        fcntl.lockf(file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # POSIX allows either
        return False
    except OSError:  # a file system without locks
        return None
    return True


def _holder(path: Path) -> str:
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return "somebody else"
    try:
        return _who(_note(file))
    finally:
        os.close(file)


def _note(file: int) -> Note:
    try:
        note = msgspec.json.decode(os.pread(file, _SMALL, 0))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return note if isinstance(note, dict) else {}


def _in_use(folder: Path, note: Note) -> str:
    age = ""
    try:
        since = datetime.strptime(str(note.get("since")), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        age = f", for {max(0, int((datetime.now(UTC) - since).total_seconds()))} s"
    except ValueError:
        pass  # the holder has not written its note yet
    return f"{folder} is being written by {_who(note)}{age}. Wait for it, stop it, or choose another id."


def _who(note: Note) -> str:
    if "pid" not in note:  # not written yet
        return "another process"
    return f"process {note['pid']!s:.20} on {note.get('host', '?')!s:.80}"


def _is_alive(note: Note) -> bool:
    """Return whether the holder may still run; on another machine that is unknown, so it may."""
    pid = note.get("pid")
    if not isinstance(pid, int) or pid == os.getpid():
        return False
    if note.get("host") != platform.node():
        return True
    import psutil

    return psutil.pid_exists(pid)
