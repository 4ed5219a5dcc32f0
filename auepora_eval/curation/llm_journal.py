"""`offline_tasks.jsonl`: every answer of a language model, on the disk before it is counted.

One line a call, in the shape that seed 000's project keeps (document, model, prompt, response, parsed, ...).
Each line also says what it was made with, so that a generation goes on only with the same model, prompts and
corpus.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import DataError, StorageError
from ..io.jsonl import MAX_LINE_BYTES, encode, parse_line

DONE = ("success", "skipped")  # an error is asked again, these are not
_KEPT = (
    "key",
    "status",
    "run_id",
    "prompt_sha256",
    "parsed",
    "rejects",
    "calls",
    "attempts",
    "tokens",
    "cost",
    "model",
    "error",
)


class TaskJournal:
    """A journal that is open for writing, by us alone.

    `finished` are the answers that it held when it was opened, by the key of their call; `dropped_tail` tells
    that its last line was torn, `damaged` which others could not be read: their calls are made again.
    """

    def __init__(
        self, path: Path, made_with: dict[str, Any], *, resume: bool = False, force: bool = False
    ) -> None:
        self.path = path
        self._made_with = made_with
        self.finished: dict[str, dict[str, Any]] = {}
        self.dropped_tail = False
        self.damaged: list[int] = []
        if path.exists() and not resume and not force:
            raise StorageError(
                f"{path} exists already. Use --resume to go on with it, or --force to start over."
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = _opened(path)
        except OSError as error:
            if isinstance(error, StorageError):
                raise
            raise StorageError(f"{path} cannot be written: {error.strerror or error}.") from error
        try:
            if not resume:
                self._file.truncate(0)
            self._end = self._read()
            self._file.truncate(self._end)
            self._file.seek(self._end)
        except BaseException:
            self._file.close()
            raise

    def append(self, record: dict[str, Any]) -> dict[str, Any]:
        """Write an answer; when this returns (what is worth keeping at hand) it is on the disk."""
        line = encode({**record, "made_with": self._made_with}) + b"\n"
        if len(line) > MAX_LINE_BYTES:
            raise StorageError(f"{self.path}: an answer of {len(line) / 1e6:.1f} MB is too long for a line.")
        try:
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            with suppress(OSError):  # what was written before stays readable
                os.ftruncate(self._file.fileno(), self._end)
            raise StorageError(
                f"{self.path} cannot be written on: {error.strerror or error}. What it holds is kept; "
                "make room and use --resume."
            ) from error
        self._end += len(line)
        return _at_hand(record)

    def close(self) -> None:
        """Let go of the file."""
        with suppress(OSError):  # what could not be written was said by append
            self._file.close()

    def __enter__(self) -> TaskJournal:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _read(self) -> int:
        """Take in what is there; the offset behind the last whole line."""
        end = 0
        self._file.seek(0)
        for number, line in enumerate(iter(lambda: self._file.readline(MAX_LINE_BYTES + 1), b""), start=1):
            if not line.endswith(b"\n"):
                self.dropped_tail = True
                break
            end += len(line)
            if line.strip():
                self._take(number, line)
        return end

    def _take(self, number: int, line: bytes) -> None:
        where = f"{self.path.name}:{number}"
        try:
            record = parse_line(line, where)
        except DataError:
            self.damaged.append(number)
            return
        made_with = record.get("made_with")
        if not isinstance(made_with, dict) or not isinstance(record.get("key"), str):
            raise DataError(where, "is no line of a generation's journal.", fix="Name another file.")
        _refuse_other(where, made_with, self._made_with)
        if record.get("status") in DONE:
            self.finished[record["key"]] = _at_hand(record)


def _at_hand(record: dict[str, Any]) -> dict[str, Any]:
    """An answer without the texts that were sent and received."""
    return {name: record.get(name) for name in _KEPT}


def _refuse_other(where: str, before: dict[str, Any], now: dict[str, Any]) -> None:
    names = sorted(set(before) | set(now))
    differing = [name for name in names if before.get(name) != now.get(name)]
    if differing:
        told = "; ".join(
            f"{name} was {str(before.get(name))[:80]!r}, is {str(now.get(name))[:80]!r}" for name in differing
        )
        raise DataError(
            where, f"was made with something else: {told}.", fix="Use the same, or start over with --force."
        )


def _opened(path: Path) -> BinaryIO:
    """The file for reading and writing, locked: two generations in one journal would pay twice."""
    # No link is followed: the journal may be truncated, and must be the file that was named.
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        pass  # no such locks on this system
    except OSError:
        os.close(descriptor)
        raise StorageError(f"{path} is in use by another generation. Wait for it, or name another.") from None
    return os.fdopen(descriptor, "r+b")
