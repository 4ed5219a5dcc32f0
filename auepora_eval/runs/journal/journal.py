"""The journal of a run: every finished output is on the disk before it counts.

`<id>.run/header.json` describes the run, `<id>.run/journal.jsonl` has a line for each output, in the order of
arrival. The journal is the only record of the outputs: a stored run reads them from it.
"""

from __future__ import annotations

import math
import os
import secrets
import threading
import warnings
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, BinaryIO, NamedTuple, Protocol

import msgspec

from ...calls.policy import CALLS, PASSING, CallPolicy, Limits
from ...core.dataset import canonical_json
from ...core.systems.call import attempts_of, failed_attempts, is_from_cache
from ...core.systems.resources import usage_of
from ...core.types import EvaluationSample, SystemOutputs
from ...errors import DataError, StorageError
from ...io.files import sync_folder, write_bytes
from ...io.outputs import missing_output
from ...read.records import prediction_record, read_prediction
from ...read.text import parse_json
from .identity import check_same_identity, program_was_changed
from .lock import LostLockError, RunLock

VERSION = 1
JOURNAL, HEADER = "journal.jsonl", "header.json"
_MOST_WAITING = 2_048  # outputs that are not on the disk yet; callers that submit more block
_BATCH = 512
_MOMENT = 0.004  # seconds that a sync waits for further lines
_HEADER_BYTES = 10_000_000
_REPLACES = "replaces"  # the key in a note: the outputs_sha256 of the results that the session replaces

_TWO_PROGRAMS = (
    "after the run was started: this run has answers of both versions. The results have the sha256 of both "
    "(configuration.programs_sha256)."
)

Header = dict[str, Any]  # what `header.json` has


class DamagedJournalWarning(UserWarning):
    """A journal is missing, or has lines that cannot be used. Their samples are run again."""


class Earlier(Protocol):
    """What a file of lines has already."""

    last_number: int
    damage: Damage


class Lines:
    """A file of lines in a locked folder: one thread writes, many lines with one sync.

    `earlier` is what the file has already: None for a new file.
    """

    def __init__(self, path: Path, lock: RunLock, key: bytes, earlier: Earlier | None) -> None:
        self.folder, self.path = path.parent, path
        self._lock, self._key = lock, key
        self._number = 0 if earlier is None else earlier.last_number
        self._good = 0 if earlier is None else earlier.damage.good_bytes  # bytes that are on the disk
        self._size = self._good  # bytes that are in the file
        guard = threading.Lock()
        self._changed = threading.Condition(guard)  # for callers that submit and wait
        self._has_work = threading.Condition(guard)  # for the thread that writes
        self._hurry = 0  # callers that wait for the disk
        self._waiting: list[bytes] = []
        # Lines that were submitted, that are in the file, and that are on the disk.
        self._taken = self._written = self.durable = 0
        self._closing = False
        self._checked_at = float("-inf")  # when the file was last seen to be ours
        self._error: StorageError | None = None
        self._file = self._opened(new=earlier is None)
        # Checked with every write. Absolute: a system may change the current folder.
        self._name = str(self.path.absolute())
        self._thread = threading.Thread(target=self._work, name="auepora-journal", daemon=True)
        self._thread.start()

    def wait(self, number: int) -> None:
        """Block until the output of that number is on the disk; StorageError if it cannot be written."""
        with self._changed:
            self._hurry += 1
            self._has_work.notify()
            try:
                self._changed.wait_for(lambda: self.durable >= number or self._error is not None)
            finally:
                self._hurry -= 1
            if self.durable < number and self._error is not None:
                raise self._error

    def check_not_lost(self) -> None:
        """Raise StorageError if outputs were lost after they were written: the scores would be wrong."""
        self.wait(self._taken)
        try:
            self._check_file()
        except OSError as error:
            self._error = self._error or self._lost(error)
            raise self._error from error

    def close(self, ending: str = "") -> None:
        """Write the waiting lines and one about how the session ended, and unlock the run."""
        try:
            if ending and self._error is None:
                self._note("end", how=ending)
        finally:
            with self._changed:
                self._closing = True
                self._has_work.notify()
            self._thread.join()
            if self._file >= 0:
                os.close(self._file)
            self._file = -1
            self._lock.release()

    def _note(self, kind: str, **facts: Any) -> None:
        self.wait(self.put(kind, facts))

    def put(self, kind: str, facts: Mapping[str, object], *, at_once: bool = False) -> int:
        """Submit a line. It is on the disk when `durable` has reached the number that this returns.

        With `at_once` it is in the file when this returns: a kill of the process cannot lose it.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._unsynced < _MOST_WAITING or self._error is not None)
            if self._error is not None:
                raise self._error
            self._number += 1
            record = {"v": VERSION, "seq": self._number, "type": kind, **facts}
            self._waiting.append(journal_line(record, self._key))
            self._taken += 1
            if at_once:
                self._write_waiting(at_once=True)
            if self._unsynced in (1, _BATCH):
                self._has_work.notify()
            return self._taken

    def _opened(self, *, new: bool) -> int:
        # Append mode: whatever else happens to the file, no line overwrites another.
        flags = os.O_WRONLY | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
        flags |= os.O_CREAT | os.O_EXCL if new else 0
        try:
            file = os.open(self.path, flags, 0o600)
            os.ftruncate(file, self._good)  # without a torn end: the next line starts after the last good one
            if new:
                sync_folder(self.folder)  # a file is lost if its name is
        except OSError as error:
            raise StorageError(f"{self.path} cannot be written: {error.strerror or error}.") from error
        return file

    def _work(self) -> None:
        while True:
            with self._changed:
                self._has_work.wait_for(lambda: self._unsynced or self._closing)
                # A sync costs the same for one line as for many: a moment later there are more.
                self._has_work.wait_for(
                    lambda: self._unsynced >= _BATCH or self._hurry > 0 or self._closing, timeout=_MOMENT
                )
                if self._error is not None or not self._unsynced:
                    return
                self._write_waiting()
                count, size = self._written, self._size
            try:
                getattr(os, "fdatasync", os.fsync)(self._file)
            except BaseException as error:  # noqa: BLE001 - callers that wait for this thread get it
                with self._changed:
                    self._give_up(error)
            with self._changed:
                if self._error is not None:
                    return
                self.durable, self._good = count, size
                self._changed.notify_all()

    @property
    def _unsynced(self) -> int:
        return self._taken - self.durable

    def _check_file(self) -> None:
        """Raise OSError if the lock is lost, or the journal is not the file that this process wrote."""
        self._lock.check_not_lost()
        # FileNotFoundError: it was deleted
        ours, current = os.fstat(self._file), os.stat(self._name)  # noqa: PTH116 - a Path takes longer
        if (ours.st_dev, ours.st_ino) != (current.st_dev, current.st_ino):
            raise FileNotFoundError(2, "it was replaced by another file")
        if ours.st_size < self._size:
            raise _ChangedError(5, f"somebody cut it off at byte {ours.st_size:,} of {self._size:,}")
        if ours.st_size > self._size:
            raise _ChangedError(5, f"somebody else wrote to it, behind byte {self._size:,}")

    def _write_waiting(self, *, at_once: bool = False) -> None:
        """Write the waiting lines to the file; whoever waits for them gets the error. The lock is held."""
        content = b"".join(self._waiting)
        try:
            # Checked before every sync: no line counts as stored in a file that is not ours. A check lets
            # other threads run, so a thousand lines that are written at once share one.
            if (now := perf_counter()) - self._checked_at > _MOMENT or not at_once:
                self._check_file()
                self._checked_at = now
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except BaseException as error:  # noqa: BLE001 - every caller gets it
            self._give_up(error)
            return
        self._waiting.clear()
        self._size += len(content)
        self._written = self._taken

    def _give_up(self, error: BaseException) -> None:
        """Remove lines that are not acknowledged, which may be half-written. The lock is held."""
        # Not if the file is shorter, which would fill it with zeros, or if another process has written to it.
        if not isinstance(error, _ChangedError | LostLockError):
            with suppress(OSError):  # a torn end is dropped when the run is resumed
                os.ftruncate(self._file, self._good)
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
            kept = "Its good lines are kept. Resuming calls the other samples again."
        else:
            kept = "What was written before is kept."
        return StorageError(f"{self.path} cannot be written: {why}. {kept}")


class _ChangedError(OSError):
    """The journal is shorter, or longer, than what was written to it."""


class Journal(Lines):
    """The journal of a run in progress."""

    def __init__(self, folder: Path, lock: RunLock, header: Header, places: JournalPlaces | None):
        super().__init__(folder / JOURNAL, lock, header["run_key"].encode(), places)
        self.header, self.places = header, places
        self._damaged = set() if places is None else {offset for _, offset in places.damage.lines}

    @classmethod
    def create(cls, folder: Path, header: Mapping[str, Any], *, force: bool = False) -> Journal:
        """Start a run. The outputs of one that did not finish are discarded only by force."""
        lock = RunLock(folder)
        try:
            if not force and _may_have_outputs(folder):
                raise StorageError(
                    f"{folder} has the outputs of a run that did not finish. Resume it (--resume, "
                    "resume=True), choose another id, or discard them (--force, force=True)."
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
    def resume(cls, folder: Path, header: Mapping[str, Any], *, replaces: str | None = None) -> Journal:
        """Resume a run; raise StorageError that names what differs if it is another one.

        `replaces` is the outputs_sha256 of the results that the run has, if it is finished. They are replaced
        when the new outputs are scored.
        """
        if not (folder / HEADER).exists():
            raise StorageError(f"{folder} has no run to resume. To start one, do not resume.")
        lock = RunLock(folder)
        try:
            before = read_header(folder)
            check_same_identity(before, header, folder)
            if not (folder / JOURNAL).exists():  # killed before the first line, or removed
                message = f"{folder / JOURNAL} is missing: every sample is run."
                warnings.warn(message, DamagedJournalWarning, stacklevel=2)
                journal = cls(folder, lock, before, None)
                journal._note("start")
                return journal
            places = JournalPlaces(folder / JOURNAL, before["run_key"].encode())
            for sentence in places.damage.in_words(JOURNAL):
                warnings.warn(sentence, DamagedJournalWarning, stacklevel=2)
            journal = cls(folder, lock, before, places)
            replaced = {} if replaces is None else {_REPLACES: replaces}
            changed = {}
            if program_was_changed(before, header, _TWO_PROGRAMS):
                changed["program_sha256"] = header["program_sha256"]
            journal._note("resume", **changed, **replaced)
            return journal
        except BaseException:
            lock.release()
            raise

    def submit(self, sample_id: str, output: SystemOutputs) -> int:
        """Submit an output. It is on the disk when `durable` has reached the number that this returns."""
        return self.put("output", {"output": prediction_record(sample_id, output)})

    def known(self, sample: EvaluationSample) -> SystemOutputs | None:
        """Return None: the record yields only samples without an output."""
        return None

    def store(self, sample: EvaluationSample, output: SystemOutputs) -> None:
        """Write an output, which a kill cannot lose any more."""
        self.put("output", {"output": prediction_record(sample.sample_id, output)}, at_once=True)

    def usages(self) -> Iterator[dict[str, float]]:
        """Yield what each stored call used, also of an output that a later one replaced."""
        return stored_usages(self.path.parent)

    def undamaged_places(self) -> JournalPlaces:
        """Return the places of all outputs; StorageError if lines were damaged during the run."""
        places = JournalPlaces(self.path, self._key)
        damage = places.damage
        lines = [(number, offset) for number, offset in damage.lines if offset not in self._damaged]
        if lines or damage.torn_bytes:
            what = f"its last {damage.torn_bytes} bytes are"
            if lines:
                more = f" and {len(lines) - 1} more are" if len(lines) > 1 else " is"
                what = f"line {lines[0][0]} (byte {lines[0][1]}){more}"
            raise StorageError(
                f"{self.path} was damaged during the run: {what} not what was written. Nothing is stored. "
                "Resume the run (--resume, resume=True) to call these samples again."
            )
        return places


def replace_plan(folder: Path, facts: Mapping[str, Any]) -> None:
    """Give a run that has only outputs other metrics. Its outputs stay: they do not depend on the metrics."""
    lock = RunLock(folder)
    try:
        plan = {name: facts[name] for name in ("metrics", "configuration")}
        _write_header(folder, {**read_header(folder), **plan})
    finally:
        lock.release()


def _write_header(folder: Path, header: Mapping[str, Any]) -> None:
    write_bytes(
        folder / HEADER, msgspec.json.format(msgspec.json.encode(header)) + b"\n", force=True, private=True
    )


def read_header(folder: Path) -> Header:
    """Return the header of a run; StorageError if it cannot be used."""
    path = folder / HEADER
    try:
        if path.stat().st_size > _HEADER_BYTES:
            raise StorageError(f"{path} is too large to be a header.")
        header = parse_json(path.read_bytes(), path.name)
    except StorageError:
        raise
    except (OSError, DataError) as error:
        raise StorageError(f"{path} cannot be read: {error}") from error
    if not isinstance(header, dict) or not isinstance(header.get("run_key"), str):
        raise StorageError(f"{path} is not the header of a run. Start the run again (--force, force=True).")
    if header.get("version") != VERSION:
        raise StorageError(f"{path} has version {header.get('version')!r:.20}, this program reads {VERSION}.")
    return header


def stored_places(folder: Path, made: Callable[[str], bool] | None = None) -> JournalPlaces | None:
    """Return the outputs in the journal of a run; None if it has no journal but outputs.jsonl.

    `made`: only those that certain results were made of (see JournalPlaces).
    """
    if not (folder / JOURNAL).exists():
        return None
    return JournalPlaces(folder / JOURNAL, run_key(folder), made)


def _may_have_outputs(folder: Path) -> bool:
    """Return whether a journal has outputs, or lines that cannot be read any more."""
    try:
        places = stored_places(folder)
    except StorageError:
        return True
    return places is not None and bool(len(places) or places.damage.lines or places.damage.torn_bytes)


def run_key(folder: Path) -> bytes:
    """Return the key of a run's journal, which is in its header."""
    return str(read_header(folder)["run_key"]).encode()


# The lines of a journal: each has a checksum and a record, so that damaged lines are detected.

MAX_LINE_BYTES = 1_000_000_000
_decode = msgspec.json.Decoder().decode


def journal_line(record: Mapping[str, object], run_key: bytes) -> bytes:
    """Return the line of a record. The key of the run is in the checksum, so other runs do not match."""
    text = canonical_json(record)
    return b"%08x %s\n" % (zlib.crc32(text, zlib.crc32(run_key)), text)


def record_of(line: bytes, run_key: bytes) -> dict[str, Any] | None:
    """Return the record of a line; None if it is not, byte for byte, what was written."""
    text = text_of(line, run_key)
    if text is None:
        return None
    try:
        record = _decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def text_of(line: bytes, run_key: bytes) -> bytes | None:
    """Return the JSON of a line; None if it is not, byte for byte, what was written."""
    text = line[9:-1]
    intact = line[-1:] == b"\n" and line[:9] == b"%08x " % zlib.crc32(text, zlib.crc32(run_key))
    return text if intact else None


@dataclass
class Damage:
    """The damage of a journal: lines in the middle (number and offset), and bytes at the end."""

    lines: list[tuple[int, int]] = field(default_factory=list)
    good_bytes: int = 0  # where the last good line ends
    torn_bytes: int = 0

    def in_words(self, name: str) -> list[str]:
        """Return a sentence for each kind of damage."""
        sentences = []
        if self.lines:
            number, offset = self.lines[0]
            are = "1 line is" if len(self.lines) == 1 else f"{len(self.lines)} lines are"
            sentences.append(
                f"{name}: {are} damaged, first line {number} at byte {offset}; "
                "their content is not used, and their samples are run again."
            )
        if self.torn_bytes:
            sentences.append(
                f"{name}: the last {self.torn_bytes} bytes are not whole records and are dropped; "
                "their samples are run again."
            )
        return sentences


def good_records(file: BinaryIO, run_key: bytes, damage: Damage) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (offset, record) of each good line. After the last one, `damage` describes the others."""
    offset, bad = 0, []
    number = 0
    while line := file.readline(MAX_LINE_BYTES):
        number += 1
        record = record_of(line, run_key)
        if record is None:
            bad.append((number, offset))
        else:
            # Bad lines before a good one are damage; those that nothing good follows are the torn end.
            damage.lines += bad
            bad = []
            yield offset, record
            damage.good_bytes = offset + len(line)
        offset += len(line)
    damage.torn_bytes = offset - damage.good_bytes


def opened_journal(path: Path) -> BinaryIO:
    """Open a journal for reading; StorageError if that is not possible."""
    try:
        return path.open("rb")
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror or error}.") from error


class KeptLines:
    """What a file of lines has so far: `take` gets every good line, damaged ones are reported.

    `last_number` and `damage` are what a writer needs to continue the file.
    """

    def __init__(self, path: Path, key: bytes) -> None:
        self.path, self.damage, self.last_number = path, Damage(), 0
        if not path.exists():
            return
        with opened_journal(path) as file:
            for _, record in good_records(file, key, self.damage):
                self.last_number = max(self.last_number, record.get("seq", 0))
                self.take(record)
        if self.damage.lines:
            what = f"{path.name}: {len(self.damage.lines)} lines are damaged and are left out."
            warnings.warn(what, DamagedJournalWarning, stacklevel=3)

    def take(self, record: Mapping[str, Any]) -> None:
        """Apply one line."""
        raise NotImplementedError


# Failures that may not happen again, by the type of the exception: resuming a run retries them.
RETRYABLE = frozenset(
    """TimeoutError ConnectionError ConnectionResetError ConnectionRefusedError ConnectionAbortedError
    BrokenPipeError WorkerLostError MissingPrediction""".split()
)


def may_pass(output: Mapping[str, Any]) -> bool:
    """Return whether a retry may fix a failure, by its last attempt or else by its type."""
    attempts = failed_attempts(output.get("extra") or {})
    if attempts and (attempts[-1]["kind"] in PASSING or attempts[-1].get("named") is True):
        return True
    return output["error"].get("type") in RETRYABLE


class _Entry(NamedTuple):
    """An output in the journal: its sequence number, its first byte, and what is known without its texts."""

    number: int
    offset: int
    sample_id: str
    failure: bool | None  # None: it is an answer; else whether a retry may fix it
    retrieved: int


class JournalPlaces:
    """The last good output of each sample in a journal, found by its id.

    A finished run that was resumed has outputs that its results were not made of: each session that adds
    outputs to a finished run notes the outputs_sha256 of the results before it. With `made` only the outputs
    before the first note for which it is true count: those are the outputs of the stored results.
    """

    def __init__(self, path: Path, run_key: bytes, made: Callable[[str], bool] | None = None) -> None:
        self.path, self._run_key = path, run_key
        self.outdated: set[str] = set()  # hashes of results that newer outputs follow
        self.programs: set[str] = set()  # sha256 of changed programs, by the notes
        self.damage = Damage()
        self.last_number = 0  # the highest sequence number
        self.longest = 0
        # By sample: the first byte of its output. A sample that was called again has its last output.
        self.offsets: dict[str, int] = {}
        self._failures: dict[str, bool] = {}  # whether a retry may fix a failure
        self._take_all(made)
        retryable = sum(self._failures.values())
        self.failed = {True: retryable, False: len(self._failures) - retryable}  # by whether it may pass

    def __len__(self) -> int:
        return len(self.offsets)

    def __contains__(self, sample_id: str) -> bool:
        return sample_id in self.offsets

    def _take_all(self, made: Callable[[str], bool] | None) -> None:
        # One by one: the entries of a million samples take 200 MB.
        for entry in self._entries(made):
            if not self._is_ordered:
                break
            self._take(entry)
        if self._is_ordered:
            return
        # Somebody merged journals by hand.
        self.damage, self.longest = Damage(), 0
        self.offsets.clear()
        self._failures.clear()
        for entry in sorted(self._entries(made), key=lambda entry: entry.number):
            if entry.number < self._end:
                self._take(entry)

    def _entries(self, made: Callable[[str], bool] | None) -> Iterator[_Entry]:
        """Yield the outputs in the order of the file, without those that do not count if it is ordered."""
        noted: set[str] = set()
        self._end: float = math.inf  # the number of the first line that does not count
        self._is_ordered, last = True, 0  # whether lines are in the order of their numbers
        with opened_journal(self.path) as file:
            for offset, record in good_records(file, self._run_key, self.damage):
                number = record.get("seq", 0)
                self._is_ordered &= number > last
                last = number
                self.last_number = max(self.last_number, number)
                if record.get("type") == "output":
                    self.outdated |= noted
                    if number < self._end:
                        yield _entry(number, offset, record["output"])
                    continue
                if isinstance(program := record.get("program_sha256"), str):
                    self.programs.add(program)
                if isinstance(replaced := record.get(_REPLACES), str):
                    noted.add(replaced)
                    if made is not None and number < self._end and made(replaced):
                        self._end = number

    def _take(self, entry: _Entry) -> None:
        self.longest = max(self.longest, entry.retrieved)
        self.offsets[entry.sample_id] = entry.offset
        if entry.failure is not None:
            self._failures[entry.sample_id] = entry.failure
        elif self._failures:
            self._failures.pop(entry.sample_id, None)

    def check_known_samples(self, known: Container[str]) -> None:
        """Raise DataError if there are outputs of samples that the dataset does not have."""
        for sample_id in self.offsets:
            if sample_id not in known:
                what = f"it has an output for {sample_id!r:.60}, which the dataset lacks."
                raise DataError(self.path.name, what, fix="Is this the right dataset?")

    def is_done(self, sample_id: str, *, retry_failed: bool = False) -> bool:
        """Return whether a sample is not called again: it has an answer, or would fail again."""
        if sample_id not in self.offsets:
            return False
        failure = self._failures.get(sample_id)
        return failure is None or not (failure or retry_failed)

    def records(self, sample_ids: Iterable[str]) -> Iterator[tuple[str, dict[str, Any] | None]]:
        """Yield (place, prediction record) for each sample, in order; None for one without an output."""
        for sample_id, offset, line in self._lines(sample_ids):
            yield self._where(offset), None if line is None else self._record(line, sample_id, offset)

    def outputs(self, sample_ids: Iterable[str]) -> Iterator[SystemOutputs]:
        """Yield an output for each sample, in order; a sample without one has failed."""
        for sample_id, offset, line in self._lines(sample_ids):
            if line is None:
                yield missing_output()
                continue
            record = self._record(line, sample_id, offset)
            yield read_prediction(record, self._where(offset))[1]

    def _lines(self, sample_ids: Iterable[str]) -> Iterator[tuple[str, int, bytes | None]]:
        """Yield (id, first byte, line) for each sample, in order."""
        with opened_journal(self.path) as file:
            end = 0  # of the line that was read last: a seek to it would discard what the file has buffered
            for sample_id in sample_ids:
                offset = self.offsets.get(sample_id, -1)
                if offset < 0:
                    yield sample_id, -1, None
                    continue
                if offset != end:
                    file.seek(offset)
                line = file.readline()
                end = offset + len(line)
                yield sample_id, offset, line

    def _where(self, offset: int) -> str:
        return self.path.name if offset < 0 else f"{self.path.name}: byte {offset}"

    def _record(self, line: bytes, sample_id: str, offset: int) -> dict[str, Any]:
        record = record_of(line, self._run_key)
        if record is None or record["output"]["sample_id"] != sample_id:
            raise StorageError(
                f"{self.path} changed while it was read, at byte {offset}. Resume the run to repair it."
            )
        output: dict[str, Any] = record["output"]
        return output

    def pairs(self, samples: Iterable[EvaluationSample]) -> Iterator[tuple[EvaluationSample, SystemOutputs]]:
        """Yield each sample with its output."""
        waiting: list[EvaluationSample] = []

        def ids() -> Iterator[str]:
            for sample in samples:
                waiting.append(sample)
                yield sample.sample_id

        for output in self.outputs(ids()):
            yield waiting.pop(), output


def _entry(number: int, offset: int, output: Mapping[str, Any]) -> _Entry:
    failure = None if output.get("error") is None else may_pass(output)
    return _Entry(number, offset, output["sample_id"], failure, len(output["retrieved"]))


def stored_usages(folder: Path) -> Iterator[dict[str, float]]:
    """Yield what each stored call of a run used. Answers from a cache cost nothing."""
    key = run_key(folder)
    with opened_journal(folder / JOURNAL) as file:
        for offset, record in good_records(file, key, Damage()):
            if record.get("type") == "output":
                output = read_prediction(record["output"], f"{JOURNAL}: byte {offset}")[1]
                if not is_from_cache(output):
                    yield {**usage_of(output), CALLS: attempts_of(output)}


def spent_before(folder: Path, policy: CallPolicy) -> dict[str, float]:
    """Return what earlier sessions of a run spent of each budget that the policy has."""
    budgets = [name for name in ("max_calls", "max_tokens", "max_cost") if getattr(policy, name) is not None]
    if not budgets or not (folder / JOURNAL).exists():
        return {}
    spent = Limits(policy, stored_usages(folder)).spent.used(policy)
    return {name: spent[name] for name in budgets if any(spent.values())}
