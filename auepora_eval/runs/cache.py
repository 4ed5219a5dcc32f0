"""Answers kept from one run to the next: the same system, sample and top_k need not be asked again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

from ..core.call_records import CACHED, is_from_cache
from ..core.fingerprint import canonical_json
from ..core.types import EvaluationSample, SystemOutputs
from ..errors import StorageError
from ..io.records import prediction_record, read_prediction
from .journal_lines import Damage, good_records, journal_line, opened_journal, record_of

_KEY = b"auepora.cache/1"
_SUFFIX = ".cache.jsonl"


class OutputCache:
    """A folder of outputs. Only answers are kept: a failure is never handed out again.

    `identity` is whatever tells one system from another: its name, its version, the text of its program.
    Each run writes a file of its own, so that several may use the folder at once; a damaged line is skipped.
    """

    def __init__(self, folder: str | Path, identity: Sequence[Any], top_k: int) -> None:
        self._folder = Path(folder)
        self._system = canonical_json([*identity, top_k])
        self._places: dict[bytes, tuple[Path, int]] = {}
        self._file: BinaryIO | None = None
        self.used = 0
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"{self._folder} cannot be a cache: {error.strerror or error}.") from error
        for path in sorted(self._folder.glob(f"*{_SUFFIX}")):
            with opened_journal(path) as file:
                for offset, record in good_records(file, _KEY, Damage()):
                    self._places[bytes.fromhex(record["key"])] = (path, offset)

    def __enter__(self) -> OutputCache:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._file is not None:
            try:
                self._file.close()
            except OSError as error:
                if kind is None:  # else that error is the one to tell
                    raise self._unwritable(error) from error

    def get(self, sample: EvaluationSample) -> SystemOutputs | None:
        """What the system answered to this sample before; None if it was not asked."""
        path, offset = self._places.get(self._key(sample), (None, 0))
        if path is None:
            return None
        with opened_journal(path) as file:
            file.seek(offset)
            record = record_of(file.readline(), _KEY)
        if record is None:
            return None
        self.used += 1
        output = read_prediction(record["output"] | {"sample_id": sample.sample_id}, path.name)[1]
        output.extra[CACHED] = True
        return output

    def add(self, sample: EvaluationSample, output: SystemOutputs) -> None:
        """Keep an answer; a failure is not kept."""
        if output.error is not None or is_from_cache(output):
            return
        record = {"key": self._key(sample).hex(), "output": prediction_record(sample.sample_id, output)}
        try:
            if self._file is None:
                name = f"{os.getpid()}-{os.urandom(6).hex()}{_SUFFIX}"
                self._file = (self._folder / name).open("xb")
            self._file.write(journal_line(record, _KEY))
            self._file.flush()  # it is in the journal by now: a kill must not lose it here
        except OSError as error:
            raise self._unwritable(error) from error

    def add_all(self, pairs: Iterable[tuple[EvaluationSample, SystemOutputs]]) -> None:
        """Keep those of the answers that are not there yet."""
        for sample, output in pairs:
            if self._key(sample) not in self._places:
                self.add(sample, output)

    def _unwritable(self, error: OSError) -> StorageError:
        return StorageError(f"{self._folder} cannot be written: {error.strerror or error}.")

    def _key(self, sample: EvaluationSample) -> bytes:
        return blake2b(self._system + b"\n" + canonical_json(sample), digest_size=16).digest()
