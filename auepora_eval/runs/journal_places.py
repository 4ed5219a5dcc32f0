"""Where the outputs of a journal are: 16 bytes a sample, so that a million fit easily."""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ..core.policy import PASSING
from ..core.types import EvaluationSample, SystemOutputs
from ..errors import DataError, StorageError
from ..io.predictions import missing_output
from ..io.records import read_prediction
from .journal_lines import Damage, good_records, opened_journal, record_of

# A failure that may not happen again: resuming tries these once more. Others would fail as before.
RETRYABLE = frozenset(
    """TimeoutError ConnectionError ConnectionResetError ConnectionRefusedError ConnectionAbortedError
    BrokenPipeError WorkerLostError MissingPrediction""".split()
)


def may_pass(output: Mapping[str, Any]) -> bool:
    """Whether a failure is of a kind that another call may mend, by its last attempt or else by its type."""
    attempts = (output.get("extra") or {}).get("attempts")
    if isinstance(attempts, list) and attempts and isinstance(attempts[-1], dict):
        return attempts[-1].get("kind") in PASSING or output["error"].get("type") in RETRYABLE
    return output["error"].get("type") in RETRYABLE


def key_of(sample_id: str) -> int:
    """64 bits of an id. Two ids of one key are told apart when the record is read."""
    return int.from_bytes(blake2b(sample_id.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big")


class JournalPlaces:
    """The last good output of each sample in a journal, found by its id."""

    def __init__(self, path: Path, run_key: bytes) -> None:
        self.path, self._run_key = path, run_key
        self.damage = Damage()
        self.last_number = 0  # the highest sequence number
        self.longest = 0  # documents retrieved for a sample, at the most
        self.failed = {True: 0, False: 0}  # outputs with an error, by whether it may pass
        self._keys, self._offsets, self._states = array("Q"), array("q"), array("b")
        self._scan()

    def __len__(self) -> int:
        return len(self._keys)

    def _scan(self) -> None:
        import numpy as np

        numbers = array("q")
        with opened_journal(self.path) as file:
            for offset, record in good_records(file, self._run_key, self.damage):
                number = record.get("seq", 0)
                self.last_number = max(self.last_number, number)
                if record.get("type") != "output":
                    continue
                output = record["output"]
                state = 0 if output.get("error") is None else 1 + may_pass(output)
                self.longest = max(self.longest, len(output["retrieved"]))
                self._keys.append(key_of(output["sample_id"]))
                self._offsets.append(offset)
                self._states.append(state)
                numbers.append(number)
        keys, order = np.frombuffer(self._keys, np.uint64), np.frombuffer(numbers, np.int64)
        # By key, and within one by sequence number: a sample that was run again counts by its last output,
        # whatever order the lines are in.
        places = np.lexsort((order, keys))
        last = np.ones(len(places), bool)
        last[:-1] = keys[places][1:] != keys[places][:-1]
        chosen = places[last]
        self._sorted = keys[chosen]
        self._at = np.frombuffer(self._offsets, np.int64)[chosen]
        self._state = np.frombuffer(self._states, np.int8)[chosen]
        self._keys = array("Q", self._sorted.tobytes())
        self._offsets, self._states = array("q"), array("b")
        self.failed = {True: int((self._state == 2).sum()), False: int((self._state == 1).sum())}

    def _place(self, sample_id: str) -> int:
        from bisect import bisect_left

        key = key_of(sample_id)
        place = bisect_left(self._keys, key)
        return place if place < len(self._keys) and self._keys[place] == key else -1

    def __contains__(self, sample_id: str) -> bool:
        return self._place(sample_id) >= 0

    def refuse_strangers(self, known: Container[str]) -> None:
        """DataError if there are outputs of samples that the data do not have."""
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
        with opened_journal(self.path) as file:
            for sample_id in sample_ids:
                place = self._place(sample_id)
                if place < 0:
                    yield self.path.name, None
                    continue
                offset = int(self._at[place])
                file.seek(offset)
                record = record_of(file.readline(), self._run_key)
                if record is None or record["output"]["sample_id"] != sample_id:
                    raise StorageError(
                        f"{self.path} changed while it was read, at byte {offset}. Resume the run to mend it."
                    )
                yield f"{self.path.name}: byte {offset}", record["output"]

    def outputs(self, sample_ids: Iterable[str]) -> Iterator[SystemOutputs]:
        """An output for each sample, in order; a sample without one has failed."""
        for where, record in self.records(sample_ids):
            yield missing_output() if record is None else read_prediction(record, where)[1]

    def pairs(self, samples: Iterable[EvaluationSample]) -> Iterator[tuple[EvaluationSample, SystemOutputs]]:
        """Each sample with its output."""
        waiting: list[EvaluationSample] = []

        def ids() -> Iterator[str]:
            for sample in samples:
                waiting.append(sample)
                yield sample.sample_id

        for output in self.outputs(ids()):
            yield waiting.pop(), output
