"""Where the outputs of a journal are: 16 bytes a sample, so that a million fit easily."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..core.call_records import failed_attempts
from ..core.policy import PASSING
from ..core.seen import SeenIds, key_of
from ..core.types import EvaluationSample, SystemOutputs
from ..errors import DataError, StorageError
from ..io.predictions import missing_output
from ..io.quick_records import quick_journaled
from ..io.records import read_prediction
from .journal_lines import Damage, good_records, opened_journal, record_of, text_of

# A failure that may not happen again: resuming tries these once more. Others would fail as before.
RETRYABLE = frozenset(
    """TimeoutError ConnectionError ConnectionResetError ConnectionRefusedError ConnectionAbortedError
    BrokenPipeError WorkerLostError MissingPrediction""".split()
)


def may_pass(output: Mapping[str, Any]) -> bool:
    """Whether a failure is of a kind that another call may mend, by its last attempt or else by its type."""
    attempts = failed_attempts(output.get("extra") or {})
    if attempts and (attempts[-1]["kind"] in PASSING or attempts[-1].get("named") is True):
        return True
    return output["error"].get("type") in RETRYABLE


class JournalPlaces:
    """The last good output of each sample in a journal, found by its id.

    A finished run that was gone on with has outputs that its results are not made of: a session that mends
    notes the outputs_sha256 of the results that it found. With `made` only what came before the first note
    that it is true of counts: these are the outputs of the results that are there.
    """

    def __init__(self, path: Path, run_key: bytes, made: Callable[[str], bool] | None = None) -> None:
        self.path, self._run_key, self._made = path, run_key, made
        self.mended: set[str] = set()  # the notes that outputs follow: results of these are behind
        self.programs: set[str] = set()  # sha256 of programs other than the first one, by the notes
        self.damage = Damage()
        self.last_number = 0  # the highest sequence number
        self.longest = 0  # documents retrieved for a sample, at the most
        self.failed = {True: 0, False: 0}  # outputs with an error, by whether it may pass
        self._keys, self._at, self._state = array("q"), array("q"), array("b")
        if not self._scan():
            self._scan(in_any_order=True)

    def __len__(self) -> int:
        return len(self._keys)

    def _scan(self, *, in_any_order: bool = False) -> bool:
        """Find the outputs; False if lines are not in the order of their numbers: then these are needed."""
        self.damage, self.last_number, self.longest = Damage(), 0, 0
        noted: set[str] = set()
        end = sys.maxsize  # the number of the first line that does not count
        keys, offsets, states, numbers = array("q"), array("q"), array("b"), array("q")
        with opened_journal(self.path) as file:
            for offset, record in good_records(file, self._run_key, self.damage):
                number = record.get("seq", 0)
                if in_any_order:
                    self.last_number = max(self.last_number, number)
                elif number < self.last_number:
                    return False
                else:
                    self.last_number = number
                if record.get("type") != "output":
                    if isinstance(program := record.get("program_sha256"), str):
                        self.programs.add(program)
                    if isinstance(mends := record.get("mends"), str):
                        noted.add(mends)
                        if self._made is not None and number < end and self._made(mends):
                            end = number
                    continue
                if noted:
                    self.mended |= noted
                if number > end and not in_any_order:
                    continue
                output = record["output"]
                self.longest = max(self.longest, len(output["retrieved"]))
                keys.append(key_of(output["sample_id"]))
                offsets.append(offset)
                states.append(0 if output.get("error") is None else 1 + may_pass(output))
                if in_any_order:
                    numbers.append(number)
        if in_any_order and end < sys.maxsize:
            kept = [place for place, number in enumerate(numbers) if number < end]
            keys, offsets, states, numbers = (
                array(each.typecode, [each[place] for place in kept])
                for each in (keys, offsets, states, numbers)
            )
        self._keep(keys, offsets, states, numbers)
        return True

    def _keep(self, keys: array[int], offsets: array[int], states: array[int], numbers: array[int]) -> None:
        """Sort by key, and of each key keep the last: a sample that was run again counts by that output.

        `numbers` are empty where the order of the lines is that of their numbers.
        """
        import numpy as np

        given = np.frombuffer(keys, np.int64)
        places = (
            np.lexsort((np.frombuffer(numbers, np.int64), given))
            if numbers
            else np.argsort(given, kind="stable")
        )
        ordered = given[places]
        last = np.ones(len(places), bool)
        last[:-1] = ordered[1:] != ordered[:-1]
        if not last.all():  # else copies are spared: a million samples take some memory
            ordered, places = ordered[last], places[last]
        # Arrays of Python's own: looking up a single number in them is several times faster.
        self._keys = array("q", ordered.tobytes())
        del ordered, last
        self._at = array("q", np.frombuffer(offsets, np.int64)[places].tobytes())
        self._state = array("b", np.frombuffer(states, np.int8)[places].tobytes())
        self.failed = {True: self._state.count(2), False: self._state.count(1)}

    def _place(self, sample_id: str) -> int:
        key = key_of(sample_id)
        place = bisect_left(self._keys, key)
        return place if place < len(self._keys) and self._keys[place] == key else -1

    def __contains__(self, sample_id: str) -> bool:
        return self._place(sample_id) >= 0

    def refuse_strangers(self, known: Container[str]) -> None:
        """DataError if there are outputs of samples that the data do not have."""
        if isinstance(known, SeenIds) and known.has_all(self._keys):
            return
        with opened_journal(self.path) as file:
            for _, record in good_records(file, self._run_key, Damage()):
                if record.get("type") == "output" and record["output"]["sample_id"] not in known:
                    what = f"it has an output for {record['output']['sample_id']!r:.60}, which the data lack."
                    raise DataError(self.path.name, what, fix="Is this the right dataset?")

    def is_done(self, sample_id: str, *, retry_failed: bool = False) -> bool:
        """Whether a sample need not be run again: it has an answer, or a failure that would come again."""
        place = self._place(sample_id)
        return place >= 0 and self._state[place] <= (0 if retry_failed else 1)

    def records(self, sample_ids: Iterable[str]) -> Iterator[tuple[str, dict[str, Any] | None]]:
        """(place, prediction record) for each sample, in order; None for one that has no output."""
        for sample_id, offset, line in self._lines(sample_ids):
            yield self._where(offset), None if line is None else self._record(line, sample_id, offset)

    def outputs(self, sample_ids: Iterable[str]) -> Iterator[SystemOutputs]:
        """An output for each sample, in order; a sample without one has failed."""
        for sample_id, offset, line in self._lines(sample_ids):
            if line is None:
                yield missing_output()
                continue
            text, where = text_of(line, self._run_key), self._where(offset)
            found = None if text is None else quick_journaled(text, where)
            if found is not None and found[0] == sample_id:
                yield found[1]
            else:
                yield read_prediction(self._record(line, sample_id, offset), where)[1]

    def _lines(self, sample_ids: Iterable[str]) -> Iterator[tuple[str, int, bytes | None]]:
        """(id, first byte, line) for each sample, in order."""
        with opened_journal(self.path) as file:
            end = 0  # of the line that was read last
            for sample_id in sample_ids:
                place = self._place(sample_id)
                if place < 0:
                    yield sample_id, -1, None
                    continue
                offset = self._at[place]
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
                f"{self.path} changed while it was read, at byte {offset}. Resume the run to mend it."
            )
        output: dict[str, Any] = record["output"]
        return output

    def pairs(self, samples: Iterable[EvaluationSample]) -> Iterator[tuple[EvaluationSample, SystemOutputs]]:
        """Each sample with its output."""
        waiting: list[EvaluationSample] = []

        def ids() -> Iterator[str]:
            for sample in samples:
                waiting.append(sample)
                yield sample.sample_id

        for output in self.outputs(ids()):
            yield waiting.pop(), output
