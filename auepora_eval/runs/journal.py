"""The journal of a run: every finished output is on the disk before it counts.

`<id>.run/header.json` says what is run on what, `<id>.run/journal.jsonl` has a line for each output, in the
order of arrival. The journal is the only record of the outputs: what a stored run shows is read from it.
"""

from __future__ import annotations

import os
import secrets
import threading
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from ..core.spent import Spent
from ..core.types import SystemOutputs
from ..errors import DataError, StorageError
from ..io.atomic import write_bytes
from ..io.json_text import parse_json
from ..io.put_in_place import sync_folder
from ..io.records import prediction_record
from .journal_key import key_of_lines
from .journal_lines import journal_line
from .journal_places import JournalPlaces
from .lock import LostLockError, RunLock
from .same_run import changed_program, refuse_other

VERSION = 1
JOURNAL, HEADER = "journal.jsonl", "header.json"
_MOST_WAITING = 2_048  # outputs that are not on the disk yet; who brings more waits
_BATCH = 512
_MOMENT = 0.004  # seconds
_HEADER_BYTES = 10_000_000


class DamagedJournalWarning(UserWarning):
    """A journal has lines that cannot be used; their samples are run again. Or its header was lost."""


class LostHeaderError(StorageError):
    """The header of a run is not there, or says nothing."""


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
        self._damaged = set() if places is None else {offset for _, offset in places.damage.lines}
        self._file = self._opened(new=places is None)
        self._names = str(self.path), str(folder / HEADER)  # looked at with every write
        self._header_is = _signature(self._names[1])
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
            _write_header(folder, whole)
            journal = cls(folder, lock, whole, None)
            journal._note("start")
            return journal
        except BaseException:
            lock.release()
            raise

    @classmethod
    def resume(cls, folder: Path, header: Mapping[str, Any], *, mends: str | None = None) -> Journal:
        """Go on with a run; StorageError that names what differs if it was another one.

        `mends` is the outputs_sha256 of the results that it has, if it is finished: until there are others,
        they are of the outputs before.
        """
        if not (folder / HEADER).exists():
            raise StorageError(f"{folder} has no run to go on with. To begin one, do not resume.")
        lock = RunLock(folder)
        try:
            before = read_header(folder)
            refuse_other(before, header, folder)
            if header.get("budgets"):  # given now: they count from here, also when this session is killed
                before["budgets"] = {**(before.get("budgets") or {}), **header["budgets"]}
                _write_header(folder, before)
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
            found = {} if mends is None else {"mends": mends}
            journal._note("resume", **changed_program(before, header), **found)
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
        self.wait(self._taken)
        try:
            self._look()
        except OSError as error:
            self._error = self._error or self._lost(error)
            raise self._error from error

    def unharmed_places(self) -> JournalPlaces:
        """Where the outputs are, all of them; StorageError if lines were damaged while the run went on."""
        places = stored_places(self.folder)
        if places is None:
            raise StorageError(f"{self.folder} has lost its journal.")
        damage = places.damage
        lines = [(number, offset) for number, offset in damage.lines if offset not in self._damaged]
        if lines or damage.torn_bytes:
            what = f"its last {damage.torn_bytes} bytes are"
            if lines:
                more = f" and {len(lines) - 1} more are" if len(lines) > 1 else " is"
                what = f"line {lines[0][0]} (byte {lines[0][1]}){more}"
            raise StorageError(
                f"{self.path} was damaged while the run went on: {what} not what was written. " + _NOT_STORED
            )
        return places

    def note_warm_up(self, spent: Spent) -> None:
        """Write what calls cost whose outputs are nowhere: the budget is the run's."""
        self._note("warm_up", **spent.sums())

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
        # Appending: whatever else happens to the file, no line is written over another.
        flags = os.O_WRONLY | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        flags |= os.O_CREAT | os.O_EXCL if new else 0
        try:
            file = os.open(self.path, flags, 0o600)
            os.ftruncate(
                file, self._good
            )  # a torn end goes: the next line begins where the last good one ended
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
        """OSError if the run is not ours any more, or the journal not the file that was written here."""
        self._lock.refuse_if_lost()
        # FileNotFoundError: it was deleted under us
        ours, there = os.fstat(self._file), os.stat(self._names[0])  # noqa: PTH116 - a Path takes longer
        if (ours.st_dev, ours.st_ino) != (there.st_dev, there.st_ino):
            raise FileNotFoundError(2, "it was replaced by another file")
        if ours.st_size < self._good:
            raise _ChangedError(5, f"somebody cut it off at byte {ours.st_size:,} of {self._good:,}")
        if ours.st_size > self._good:
            raise _ChangedError(5, f"somebody else wrote to it, behind byte {self._good:,}")
        if _signature(self._names[1]) != self._header_is:
            self._mend_header()

    def _mend_header(self) -> None:
        """Write the header again if it is not what it was: nobody could go on with the run without it."""
        try:
            is_same = read_header(self.folder) == self.header
        except StorageError:
            is_same = False
        if not is_same:
            _write_header(self.folder, self.header)
            words = (
                f"{self.folder / HEADER} was removed or changed while the run went on; it is written again."
            )
            with suppress(DamagedJournalWarning):  # also where warnings are errors the run goes on
                warnings.warn(words, DamagedJournalWarning, stacklevel=2)
        self._header_is = _signature(self._names[1])

    def _write(self, content: bytes) -> None:
        self._look()
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(self._file, rest) :]
        getattr(os, "fdatasync", os.fsync)(self._file)
        self._good += len(content)

    def _give_up(self, error: BaseException) -> None:
        """Take back the half that was written: what is acknowledged stays, and nothing else."""
        # One that was cut off would be filled with zeros; and what another process wrote is not ours to cut.
        if not isinstance(error, _ChangedError | LostLockError):
            with suppress(OSError):  # a torn end is dropped when the run is resumed
                os.ftruncate(self._file, self._good)
        with self._changed:
            self._error = self._lost(error)
            self._waiting.clear()
            self._changed.notify_all()

    def _lost(self, error: BaseException) -> StorageError:
        if isinstance(error, StorageError):
            return error
        why = getattr(error, "strerror", None) or str(error)
        if isinstance(error, FileNotFoundError):
            kept = "What this session wrote to it is gone with it."
        elif isinstance(error, _ChangedError):
            kept = "What is good in it is kept; to resume asks again for the rest."
        else:
            kept = "What was written before is kept."
        return StorageError(f"{self.path} cannot be written: {why}. {kept}")


class _ChangedError(OSError):
    """The journal is shorter, or longer, than what was written to it."""


_NOT_STORED = (
    "Nothing is stored: go on with the run (--resume, resume=True), it asks again for what was there."
)


def _signature(name: str) -> tuple[int, int, int] | None:
    try:
        facts = os.stat(name)  # noqa: PTH116 - a Path takes longer
    except OSError:
        return None
    return facts.st_ino, facts.st_size, facts.st_mtime_ns


def _write_header(folder: Path, header: Mapping[str, Any]) -> None:
    write_bytes(folder / HEADER, msgspec.json.format(msgspec.json.encode(header)) + b"\n", force=True)


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
        raise LostHeaderError(f"{path} cannot be read: {error}") from error
    if not isinstance(header, dict) or not isinstance(header.get("run_key"), str):
        raise LostHeaderError(
            f"{path} is not the header of a run. Begin the run again (--force, force=True)."
        )
    if header.get("version") != VERSION:
        raise StorageError(f"{path} is of version {header.get('version')!r:.20}; known here is {VERSION}.")
    return header


def stored_places(folder: Path, made: Callable[[str], bool] | None = None) -> JournalPlaces | None:
    """The outputs in a run's journal; None for a run that has none, whose outputs are in outputs.jsonl.

    `made`: only those that certain results were made of (see JournalPlaces).
    """
    if not (folder / JOURNAL).exists():
        return None
    return JournalPlaces(folder / JOURNAL, run_key(folder), made)


def run_key(folder: Path) -> bytes:
    """The key of a run's journal, by its header; if that is lost, by the lines themselves."""
    try:
        return str(read_header(folder)["run_key"]).encode()
    except LostHeaderError:
        key = key_of_lines(folder / JOURNAL)
        if key is None:
            raise
        return key


def lacking(folder: Path, *, retry_failed: bool = False, results: str | None = None) -> int:
    """How many samples would be asked if a run were gone on with; none of one that is complete.

    Also of a finished run: an endpoint that was down for an hour leaves failures that may pass. `results` is
    the outputs_sha256 of those that it has; if the journal has mended some since, that is one more to do.
    """
    places = stored_places(folder)
    if places is None:
        return 0
    header = read_header(folder)
    samples = header.get("samples")
    again = places.failed[True] + (places.failed[False] if retry_failed else 0) + (results in places.mended)
    if "stop_when" in header or not isinstance(samples, int):
        return again  # it may have stopped before the last sample, and rightly
    return again + max(0, samples - len(places))
