"""One writer a run: a lock that dies with its process."""

from __future__ import annotations

import os
import platform
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from ..errors import StorageError

_SMALL = 4_096  # a note is some hundred bytes; whatever else lies there is not read whole
_WAITS = (0.0, 0.01, 0.02, 0.04, 0.08)  # seconds: who only asks for the writer has the lock for a moment


class LostLockError(StorageError):
    """The lock of a run was taken from under the process that writes it."""


class RunLock:
    """The right to write to a run's folder, held until `release` or the end of the process.

    The operating system's lock decides; the note in the file only tells others who holds it. Where a file
    system has no locks, the note decides: a process that is dead on this machine holds nothing.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "lock"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
        except OSError as error:
            raise StorageError(f"{self.path} cannot be written: {error.strerror or error}.") from error
        try:
            if not self._taken():
                raise StorageError(_in_use(folder, _note(self._file)))
            self._write_note()
            self._is = _identity(os.fstat(self._file))
            self._name = str(self.path)  # looked at often
        except BaseException:
            os.close(self._file)
            raise

    def release(self) -> None:
        """Let others write. The file stays: removing it could take it from under somebody who waits."""
        if self._file >= 0:
            os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = -1

    def refuse_if_lost(self) -> None:
        """LostLockError if the file is gone or another's: then a second process may write to the run."""
        try:
            there = os.stat(self._name)  # noqa: PTH116 - at every write of a run: a Path takes longer
        except OSError:
            raise LostLockError(_taken_away(self.path, "somebody removed it")) from None
        if _identity(there) != self._is:
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

    def _write_note(self) -> None:
        note = {
            "pid": os.getpid(),
            "process_started": _started(os.getpid()),
            "host": platform.node(),
            "since": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        try:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, msgspec.json.encode(note), 0)
        except OSError as error:
            raise StorageError(f"{self.path} cannot be written: {error.strerror or error}.") from error


def _identity(facts: os.stat_result) -> tuple[int, int]:
    return facts.st_dev, facts.st_ino


def _taken_away(path: Path, what: str) -> str:
    return (
        f"{path} is not this process's any more: {what}. It stops, so that two do not write to one run. "
        "What it wrote before is kept; when nobody else writes to the run, --resume (resume=True) goes on."
    )


def writer_of(folder: Path) -> str:
    """Who writes to a run's folder; nothing if nobody does.

    The lock itself is asked, in a way that takes nothing from who holds it; whoever comes for it in that
    moment tries again.
    """
    try:
        file = os.open(folder / "lock", os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return ""
    try:
        is_free = _locked(file, alone=False)
        if is_free:
            _unlock(file)
            return ""
        note = _note(file)
        return _who(note) if is_free is False or _is_alive(note) else ""
    finally:
        os.close(file)


def _locked(file: int, *, alone: bool) -> bool | None:
    """Whether the operating system gave a lock, for one `alone` or to look; None where it has none."""
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    try:
        fcntl.flock(file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return None
    return True


def _unlock(file: int) -> None:
    import fcntl

    fcntl.flock(file, fcntl.LOCK_UN)


def _holder(path: Path) -> str:
    note = _note_at(path)
    return "somebody else" if note is None else _who(note)


def _note_at(path: Path) -> dict[str, Any] | None:
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return None
    try:
        return _note(file)
    finally:
        os.close(file)


def _note(file: int) -> dict[str, Any]:
    try:
        note = msgspec.json.decode(os.pread(file, _SMALL, 0))
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return note if isinstance(note, dict) else {}


def _in_use(folder: Path, note: dict[str, Any]) -> str:
    who = _who(note)
    age = ""
    try:
        since = datetime.strptime(str(note.get("since")), "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        age = f", for {max(0, int((datetime.now(UTC) - since).total_seconds()))} s"
    except ValueError:
        pass  # the holder has not written its note yet
    return f"{folder} is being written by {who}{age}. Wait for it, stop it, or choose another id."


def _who(note: dict[str, Any]) -> str:
    if "pid" not in note:  # not written yet
        return "another process"
    return f"process {note['pid']!s:.20} on {note.get('host', '?')!s:.80}"


def _is_alive(note: dict[str, Any]) -> bool:
    """Whether the holder may still run; on another machine nobody can tell, so it does."""
    pid = note.get("pid")
    if not isinstance(pid, int) or pid == os.getpid():
        return False
    if note.get("host") != platform.node():
        return True
    # The number of a dead process may have been given to another one, which started at another time.
    started = _started(pid)
    return started is not None and started == note.get("process_started")


def _started(pid: int) -> float | None:
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:  # dead, and nobody has asked for its exit code yet
            return None
        return float(process.create_time())
    except (psutil.Error, ValueError, OverflowError):
        return None
