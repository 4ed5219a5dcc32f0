"""The journal of a run: every finished output is on the disk before it counts.

`<id>.run/header.json` says what is run on what, `<id>.run/journal.jsonl` has a line for each output, in the
order of arrival. The journal is the only record of the outputs: what a stored run shows is read from it.
"""

from __future__ import annotations

import os
import secrets
import threading
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ..core.types import SystemOutputs
from ..errors import DataError, StorageError
from ..io.atomic import write_bytes
from ..io.json_text import parse_json
from ..io.put_in_place import sync_folder
from ..io.records import prediction_record
from .journal_lines import journal_line
from .journal_places import JournalPlaces
from .lock import RunLock
from .same_run import changed_program, refuse_other

VERSION = 1
JOURNAL, HEADER = "journal.jsonl", "header.json"
_MOST_WAITING = 2_048  # outputs that are not on the disk yet; who brings more waits
_BATCH = 512
_MOMENT = 0.004  # seconds
_HEADER_BYTES = 10_000_000


class DamagedJournalWarning(UserWarning):
    """A journal has lines that cannot be used; their samples are run again."""


class Journal:
    """The journal of a run that goes on: one thread writes, many outputs with one sync."""

    def __init__(self, folder: Path, lock: RunLock, header: dict[str, Any], places: JournalPlaces | None):
        self.folder, self.path, self.header = folder, folder / JOURNAL, header
        self._lock, self._key = lock, header["run_key"].encode()
        self.places = places
        self._number = 0 if places is None else places.last_number
        self._good = 0 if places is None else places.damage.good_bytes
        guard = threading.Lock()
        self._changed = threading.Condition(guard)  # told to those who hand in and wait
        self._work_there = threading.Condition(guard)  # told to the thread that writes
        self._hurry = 0  # how many wait for the disk
        self._waiting: list[bytes] = []
        self._taken = self.durable = 0  # outputs handed in, and outputs that are on the disk
        self._closing = False
        self._error: StorageError | None = None
        self._file = self._opened(new=places is None)
        self._thread = threading.Thread(target=self._work, name="auepora-journal", daemon=True)
        self._thread.start()

    @classmethod
    def create(cls, folder: Path, header: Mapping[str, Any], *, force: bool = False) -> Journal:
        """Begin a run; one that did not finish is not thrown away unless forced."""
        lock = RunLock(folder)
        try:
            if (folder / JOURNAL).exists() and not force:
                raise StorageError(
                    f"{folder} holds the outputs of a run that did not finish. Go on with it (--resume, "
                    "resume=True), choose another id, or throw them away (--force, force=True)."
                )
            try:
                (folder / JOURNAL).unlink(missing_ok=True)
            except OSError as error:
                raise StorageError(f"{folder / JOURNAL} cannot be removed: {error.strerror}.") from error
            whole = {"version": VERSION, "run_key": secrets.token_hex(8), **header}
            write_bytes(folder / HEADER, msgspec.json.format(msgspec.json.encode(whole)) + b"\n", force=True)
            journal = cls(folder, lock, whole, None)
            journal._note("start")
            return journal
        except BaseException:
            lock.release()
            raise

    @classmethod
    def resume(cls, folder: Path, header: Mapping[str, Any]) -> Journal:
        """Go on with a run; StorageError that names what differs if it was another one."""
        if not (folder / HEADER).exists():
            raise StorageError(f"{folder} has no run to go on with. To begin one, do not resume.")
        lock = RunLock(folder)
        try:
            before = read_header(folder)
            refuse_other(before, header, folder)
            if not (folder / JOURNAL).exists():  # killed before the first line, or somebody removed it
                words = f"{folder / JOURNAL} is missing: every sample is run."
                warnings.warn(words, DamagedJournalWarning, stacklevel=2)
                journal = cls(folder, lock, before, None)
                journal._note("start")
                return journal
            places = JournalPlaces(folder / JOURNAL, before["run_key"].encode())
            for sentence in places.damage.in_words(JOURNAL):
                warnings.warn(sentence, DamagedJournalWarning, stacklevel=2)
            journal = cls(folder, lock, before, places)
            journal._note("resume", **changed_program(before, header))
            return journal
        except BaseException:
            lock.release()
            raise

    def submit(self, sample_id: str, output: SystemOutputs) -> int:
        """Hand in an output. It is on the disk when `durable` has reached the number that this returns."""
        return self._put("output", {"output": prediction_record(sample_id, output)})

    def wait(self, number: int) -> None:
        """Return when the output of that number is on the disk; StorageError if it cannot be written."""
        with self._changed:
            self._hurry += 1
            self._work_there.notify()
            try:
                self._changed.wait_for(lambda: self.durable >= number or self._error is not None)
            finally:
                self._hurry -= 1
            if self.durable < number and self._error is not None:
                raise self._error

    def refuse_if_lost(self) -> None:
        """StorageError if what was written is not there any more: a score of the rest would be wrong."""
        try:
            self._look()
        except OSError as error:
            self._error = self._error or StorageError(self._lost(error))
            raise self._error from error

    def append(self, sample_id: str, output: SystemOutputs) -> None:
        """Write an output and return when it is on the disk."""
        self.wait(self.submit(sample_id, output))

    def close(self, ending: str = "") -> None:
        """Write what waits, with a last line that says how it ended, and let go of the run."""
        try:
            if ending and self._error is None:
                self._note("end", how=ending)
        finally:
            with self._changed:
                self._closing = True
                self._work_there.notify()
            self._thread.join()
            os.close(self._file)
            self._lock.release()

    def _note(self, kind: str, **facts: Any) -> None:
        self.wait(self._put(kind, facts))

    def _put(self, kind: str, facts: dict[str, Any]) -> int:
        with self._changed:
            self._changed.wait_for(lambda: len(self._waiting) < _MOST_WAITING or self._error is not None)
            if self._error is not None:
                raise self._error
            self._number += 1
            record = {"v": VERSION, "seq": self._number, "type": kind, **facts}
            self._waiting.append(journal_line(record, self._key))
            self._taken += 1
            if len(self._waiting) in (1, _BATCH):
                self._work_there.notify()
            return self._taken

    def _opened(self, *, new: bool) -> int:
        flags = os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0) | (os.O_CREAT | os.O_EXCL if new else 0)
        try:
            file = os.open(self.path, flags, 0o600)
            os.ftruncate(
                file, self._good
            )  # a torn end goes: the next line begins where the last good one ended
            os.lseek(file, self._good, os.SEEK_SET)
            if new:
                sync_folder(self.folder)  # a file is lost if its name is
        except OSError as error:
            raise StorageError(f"{self.path} cannot be written: {error.strerror or error}.") from error
        return file

    def _work(self) -> None:
        while True:
            with self._changed:
                self._work_there.wait_for(lambda: self._waiting or self._closing)
                # A sync costs the same for one line as for many: a moment later there are more.
                self._work_there.wait_for(self._is_enough, timeout=_MOMENT)
                lines, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
                self._changed.notify_all()
            if not lines:
                return
            try:
                self._write(b"".join(lines))
            except BaseException as error:  # noqa: BLE001 - whoever waits for this thread must be told
                self._give_up(error)
                return
            with self._changed:
                self.durable += len(lines)
                self._changed.notify_all()

    def _is_enough(self) -> bool:
        return len(self._waiting) >= _BATCH or self._hurry > 0 or self._closing

    def _look(self) -> None:
        """OSError if the journal is not the file any more that was written here, or not all of it."""
        ours, there = os.fstat(self._file), self.path.stat()  # FileNotFoundError: it was deleted under us
        if (ours.st_dev, ours.st_ino) != (there.st_dev, there.st_ino):
            raise FileNotFoundError(2, "it was replaced by another file")
        if ours.st_size < self._good:
            raise _CutOffError(5, f"somebody cut it off at byte {ours.st_size:,} of {self._good:,}")

    def _write(self, content: bytes) -> None:
        self._look()
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(self._file, rest) :]
        getattr(os, "fdatasync", os.fsync)(self._file)
        self._good += len(content)

    def _give_up(self, error: BaseException) -> None:
        """Take back the half that was written: what is acknowledged stays, and nothing else."""
        if not isinstance(error, _CutOffError):  # to make that one longer would fill it with zeros
            with suppress(OSError):  # a torn end is dropped when the run is resumed
                os.ftruncate(self._file, self._good)
        with self._changed:
            self._error = StorageError(self._lost(error))
            self._waiting.clear()
            self._changed.notify_all()

    def _lost(self, error: BaseException) -> str:
        why = getattr(error, "strerror", None) or str(error)
        if isinstance(error, FileNotFoundError):
            kept = f"The {self.durable:,} records that this session wrote are gone with it."
        elif isinstance(error, _CutOffError):
            kept = "What is left of it is kept; to resume asks again for the rest."
        else:
            kept = f"The {self.durable:,} records before are kept."
        return f"{self.path} cannot be written: {why}. {kept}"


class _CutOffError(OSError):
    """The journal is shorter than what was written to it."""


def read_header(folder: Path) -> dict[str, Any]:
    """What a run's header says; StorageError if it says nothing that can be used."""
    path = folder / HEADER
    try:
        if path.stat().st_size > _HEADER_BYTES:
            raise StorageError(f"{path} is too large to be a header.")
        header = parse_json(path.read_bytes(), path.name)
    except (OSError, DataError) as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"{path} cannot be read: {error}") from error
    if not isinstance(header, dict) or not isinstance(header.get("run_key"), str):
        raise StorageError(f"{path} is not the header of a run. Begin the run again (--force, force=True).")
    if header.get("version") != VERSION:
        raise StorageError(f"{path} is of version {header.get('version')!r:.20}; known here is {VERSION}.")
    return header


def stored_places(folder: Path) -> JournalPlaces | None:
    """The outputs in a run's journal; None for a run that has none, whose outputs are in outputs.jsonl."""
    if not (folder / JOURNAL).exists():
        return None
    return JournalPlaces(folder / JOURNAL, read_header(folder)["run_key"].encode())


def lacking(folder: Path, *, retry_failed: bool = False) -> int:
    """How many samples would be asked if a run were gone on with; none of one that is complete.

    Also of a finished run: an endpoint that was down for an hour leaves failures that may pass.
    """
    places = stored_places(folder)
    if places is None:
        return 0
    header = read_header(folder)
    samples = header.get("samples")
    again = places.failed[True] + (places.failed[False] if retry_failed else 0)
    if "stop_when" in header or not isinstance(samples, int):
        return again  # it may have stopped before the last sample, and rightly
    return again + max(0, samples - len(places))
