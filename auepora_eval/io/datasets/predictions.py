"""predictions.jsonl: what a system answered, one sample per line; scored without the system."""

from __future__ import annotations

import gzip
from collections import deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from ...core.fields import is_query_id
from ...core.types import EvaluationSample, Failure, Response, SystemOutputs
from ...errors import DataError
from ..json.documents import read_document
from ..json.records import RawPrediction, check_has_fields, decoded, read_prediction
from ..jsonl import BYTE_ORDER_MARK, MAX_LINE_BYTES, opened, parse_line, read_lines, read_records

_READ_AHEAD = 1 << 17  # bytes
_LARGEST_FILE = 1 << 44  # bytes
MISSING_PREDICTION = "MissingPrediction"  # the kind of failure of a sample that a file has no line for


def load_predictions(path: str | Path, *, max_line_bytes: int = MAX_LINE_BYTES) -> dict[str, SystemOutputs]:
    """Outputs by sample id."""
    outputs: dict[str, SystemOutputs] = {}
    for where, record in read_records(path, max_line_bytes=max_line_bytes):
        sample_id, output = read_prediction(record, where)
        if sample_id in outputs:
            raise _used_already(where, sample_id)
        outputs[sample_id] = output
    return outputs


class PredictionFile:
    """Predictions that are looked up in their file: only the place of each is kept in memory.

    A compressed file cannot be read from the middle, so its predictions are kept in memory.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._name = self.path.name
        # With a list, the canonical JSON of each output that is yielded is added to it, empty where there is
        # none: a caller that stores outputs need not write them again.
        self.lines: list[bytes] | None = None
        self.longest = 0  # documents retrieved for a sample, at the most
        # The line of each prediction and its first byte, in one number: a pair takes 90 bytes more.
        self._places: dict[str, int] = {}
        self._loaded: dict[str, SystemOutputs] | None = None
        with opened(self.path) as file:
            is_packed = isinstance(file, gzip.GzipFile)
        if is_packed:
            self._loaded = load_predictions(self.path)
            self.longest = max((len(output.retrieved) for output in self._loaded.values()), default=0)
        else:
            self._survey()

    def __contains__(self, sample_id: str) -> bool:
        return sample_id in (self._places if self._loaded is None else self._loaded)

    def __len__(self) -> int:
        return len(self._places if self._loaded is None else self._loaded)

    def check_known_samples(self, known: Container[str]) -> None:
        """DataError if there are predictions for samples that the data do not have."""
        check_known_samples(self._places if self._loaded is None else self._loaded, known, self.path.name)

    def outputs(self, sample_ids: Iterable[str]) -> Iterator[SystemOutputs]:
        """An output for each sample, in order; a sample without a prediction has failed."""
        if self._loaded is not None:
            yield from (self._loaded.get(sample_id) or missing_output() for sample_id in sample_ids)
            return
        with opened(self.path) as file:
            ahead = _ReadAhead(file)
            for sample_id in sample_ids:
                number, start = divmod(self._places.get(sample_id, 0), _LARGEST_FILE)
                line, struct, canonical = ahead.line_at(start) if number else (b"", None, b"")
                if self.lines is not None:
                    self.lines.append(canonical)
                yield self._output(struct or line, sample_id, number) if number else missing_output()

    def _output(self, record: RawPrediction | bytes, sample_id: str, number: int) -> SystemOutputs:
        where = f"{self._name}:{number}"
        if isinstance(record, bytes):
            stored_id, output = read_prediction(
                parse_line(record.removeprefix(BYTE_ORDER_MARK), where), where
            )
        else:
            stored_id, output = read_prediction(record, where)
        if stored_id != sample_id:
            raise DataError(where, "the file changed while it was read.", fix="Score it again.")
        return output

    def _survey(self) -> None:
        """Note the place of each prediction, and how many documents were retrieved at the most."""
        start = 0
        decode = msgspec.json.Decoder(_Head).decode
        for number, line in enumerate(read_lines(self.path), start=1):
            place, start = start, start + len(line)
            line = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
            if not line.strip():
                continue
            try:
                head = decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                if line.strip() == b"{":
                    _check_is_not_one_document(self.path)
                where = f"{self._name}:{number}"
                read_prediction(parse_line(line, where), where)  # its error says what is wrong
                raise
            if head.sample_id in self._places:
                raise _used_already(f"{self._name}:{number}", head.sample_id)
            self._places[head.sample_id] = number * _LARGEST_FILE + place
            hits = head.retrieved.doc_id if isinstance(head.retrieved, _Ranked) else head.retrieved
            if hits and len(hits) > self.longest:
                self.longest = len(hits)


def _check_is_not_one_document(path: Path) -> None:
    """Raise DataError if a file is one JSON object over several lines."""
    try:
        document = read_document(path)
    except DataError:
        return
    if isinstance(document, dict):
        check_has_fields(document, RawPrediction.__struct_fields__, path.name, "a prediction")


def check_known_samples(sample_ids: Iterable[str], known: Container[str], where: str) -> None:
    """DataError if there are predictions for samples that the data do not have."""
    strangers = [sample_id for sample_id in sample_ids if sample_id not in known]
    if strangers:
        raise _strangers(where, strangers)


_Line = tuple[bytes, RawPrediction | None, bytes]  # as it is, as a struct, as canonical JSON


class _ReadAhead:
    """The lines of a file by their first byte: several are read at once while they are wanted in order."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._lines: deque[_Line] = deque()  # from _start on
        self._start = self._size = 0

    def line_at(self, start: int) -> _Line:
        """Return the line that starts at this byte. That no line is too long is known by now."""
        while self._lines and self._start < start:  # not wanted, or blank
            self._start += len(self._lines.popleft()[0])
        if not self._lines or self._start != start:
            self._size = min(4 * self._size, _READ_AHEAD) if self._start == start else 0
            self._file.seek(start)
            lines = self._file.readlines(self._size + 1)
            self._lines = deque(zip(lines, *decoded(lines, RawPrediction), strict=True))
            self._start, self._size = start, sum(map(len, lines))
        line = self._lines.popleft()
        self._start += len(line[0])
        return line


class _Ranked(msgspec.Struct):
    doc_id: list[msgspec.Raw]


class _Head(msgspec.Struct):
    sample_id: str
    retrieved: list[msgspec.Raw] | _Ranked | None = None


def matched_outputs(
    samples: Sequence[EvaluationSample], outputs: Mapping[str, SystemOutputs], where: str
) -> list[SystemOutputs]:
    """An output for each sample, in order; a sample without a prediction counts as failed, not as absent."""
    check_known_samples(outputs, {sample.sample_id for sample in samples}, where)
    return [outputs.get(sample.sample_id) or missing_output() for sample in samples]


def missing_output() -> SystemOutputs:
    """What stands for a prediction that is not there."""
    failure = Failure(MISSING_PREDICTION, "the predictions have no line for this sample")
    return SystemOutputs([], Response(""), error=failure)


def _strangers(where: str, strangers: Sequence[str]) -> DataError:
    what = f"{len(strangers)} predictions are for samples that the data lack, first {strangers[0]!r:.60}."
    fix = "Is this the right dataset?"
    if is_query_id(strangers[0]):
        fix = "The file has no ids: add a column sample_id with the ids of the dataset."
    return DataError(where, what, fix=fix)


def _used_already(where: str, sample_id: str) -> DataError:
    what = f"{sample_id!r:.80} was used already."
    return DataError(f"{where}: $.sample_id", what, fix="Keep one prediction per sample.")
