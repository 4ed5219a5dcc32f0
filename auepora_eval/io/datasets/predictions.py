"""predictions.jsonl: what a system answered, one sample per line; scored without the system."""

from __future__ import annotations

import gzip
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from ...core.types import EvaluationSample, Failure, Response, SystemOutputs
from ...errors import DataError
from ..json.records import read_prediction
from ..jsonl import BYTE_ORDER_MARK, MAX_LINE_BYTES, opened, parse_line, read_lines, read_records

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
        self.longest = 0  # documents retrieved for a sample, at the most
        # Two numbers per prediction; an output may take kilobytes.
        self._places: dict[str, tuple[int, int]] = {}  # the line of each prediction, and its first byte
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

    def check_known_samples(self, known: Container[str]) -> None:
        """DataError if there are predictions for samples that the data do not have."""
        ids = self._places if self._loaded is None else self._loaded
        strangers = [sample_id for sample_id in ids if sample_id not in known]
        if strangers:
            raise _strangers(self.path.name, strangers)

    def outputs(self, sample_ids: Iterable[str]) -> Iterator[SystemOutputs]:
        """An output for each sample, in order; a sample without a prediction has failed."""
        if self._loaded is not None:
            yield from (self._loaded.get(sample_id) or missing_output() for sample_id in sample_ids)
            return
        with opened(self.path) as file:
            for sample_id in sample_ids:
                yield self._read(sample_id, file) or missing_output()

    def _read(self, sample_id: str, file: BinaryIO) -> SystemOutputs | None:
        """Return the output of a sample, or None if the file has none."""
        if sample_id not in self._places:
            return None
        number, start = self._places[sample_id]
        if file.tell() != start:
            file.seek(start)
        line = file.readline().removeprefix(BYTE_ORDER_MARK)
        where = f"{self.path.name}:{number}"
        stored_id, output = read_prediction(parse_line(line, where), where)
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
            where = f"{self.path.name}:{number}"
            try:
                head = decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                read_prediction(parse_line(line, where), where)  # its error says what is wrong
                raise
            if head.sample_id in self._places:
                raise _used_already(where, head.sample_id)
            self._places[head.sample_id] = (number, place)
            self.longest = max(self.longest, len(head.retrieved or ()))


class _Head(msgspec.Struct):
    sample_id: str
    retrieved: list[msgspec.Raw] | None = None


def matched_outputs(
    samples: Sequence[EvaluationSample], outputs: dict[str, SystemOutputs], where: str
) -> list[SystemOutputs]:
    """An output for each sample, in order; a sample without a prediction counts as failed, not as absent."""
    known = {sample.sample_id for sample in samples}
    strangers = [sample_id for sample_id in outputs if sample_id not in known]
    if strangers:
        raise _strangers(where, strangers)
    return [outputs.get(sample.sample_id) or missing_output() for sample in samples]


def missing_output() -> SystemOutputs:
    """What stands for a prediction that is not there."""
    failure = Failure(MISSING_PREDICTION, "the predictions have no line for this sample")
    return SystemOutputs([], Response(""), error=failure)


def _strangers(where: str, strangers: Sequence[str]) -> DataError:
    return DataError(
        where,
        f"{len(strangers)} predictions are for samples that the data lack, first {strangers[0]!r:.60}.",
        fix="Is this the right dataset?",
    )


def _used_already(where: str, sample_id: str) -> DataError:
    what = f"{sample_id!r:.80} was used already."
    return DataError(f"{where}: $.sample_id", what, fix="Keep one prediction per sample.")
