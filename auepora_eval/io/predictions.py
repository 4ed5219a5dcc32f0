"""predictions.jsonl: what a system answered, one sample a line; scored without the system."""

from __future__ import annotations

from array import array
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from ..core.seen import PlacesById, SeenIds, key_of
from ..core.types import EvaluationSample, Failure, Response, SystemOutputs
from ..errors import DataError
from .jsonl import (
    BYTE_ORDER_MARK,
    MAX_LINE_BYTES,
    is_packed,
    opened,
    parse_line,
    read_lines,
    read_records,
    save_records,
)
from .quick_records import quick_prediction
from .records import prediction_record, read_prediction

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


def save_predictions(
    samples: Iterable[EvaluationSample], outputs: Iterable[SystemOutputs], path: Path, *, force: bool = False
) -> None:
    """Write outputs; `load_predictions` reads them back."""
    pairs = zip(samples, outputs, strict=True)
    save_records((prediction_record(sample.sample_id, output) for sample, output in pairs), path, force=force)


class PredictionFile:
    """Predictions that are looked up in their file: some 20 bytes for each are kept in memory.

    A packed file cannot be entered in the middle; its predictions are kept whole.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.longest = 0  # documents retrieved for a sample, at the most
        self._places = PlacesById(array("q"))
        self._numbers = array("q")  # the line of each prediction
        self._starts = array("q")  # and its first byte
        self._loaded: dict[str, SystemOutputs] | None = None
        if is_packed(self.path):
            self._loaded = load_predictions(self.path)
            self.longest = max((len(output.retrieved) for output in self._loaded.values()), default=0)
        else:
            self._survey()

    def __contains__(self, sample_id: str) -> bool:
        if self._loaded is not None:
            return sample_id in self._loaded
        with opened(self.path) as file:
            return self._found(sample_id, file) is not None

    def refuse_strangers(self, known: Container[str]) -> None:
        """DataError if there are predictions for samples that the data do not have."""
        if isinstance(known, SeenIds) and self._loaded is None and known.has_all(self._places.keys):
            return
        strangers = [sample_id for sample_id in self._ids() if sample_id not in known]
        if strangers:
            raise _strangers(self.path.name, strangers)

    def outputs(self, sample_ids: Iterable[str]) -> Iterator[SystemOutputs]:
        """An output for each sample, in order; a sample without a prediction has failed."""
        if self._loaded is not None:
            yield from (self._loaded.get(sample_id) or missing_output() for sample_id in sample_ids)
            return
        with opened(self.path) as file:
            for sample_id in sample_ids:
                yield self._found(sample_id, file) or missing_output()

    def _found(self, sample_id: str, file: BinaryIO) -> SystemOutputs | None:
        """The output of a sample, if there is one. Two ids may have one key: the record decides."""
        for place in self._places.find(sample_id):
            if file.tell() != self._starts[place]:
                file.seek(self._starts[place])
            line = file.readline().removeprefix(BYTE_ORDER_MARK)
            where = f"{self.path.name}:{self._numbers[place]}"
            found, output = quick_prediction(line, where) or read_prediction(parse_line(line, where), where)
            if found == sample_id:
                return output
            if key_of(found) != key_of(sample_id):
                raise DataError(where, "the file changed while it was read.", fix="Score it again.")
        return None

    def _survey(self) -> None:
        keys, seen = array("q"), SeenIds()
        for number, start, head in self._heads():
            if not seen.add(head.sample_id) and head.sample_id in self._ids_before(number):
                raise _used_already(f"{self.path.name}:{number}", head.sample_id)
            keys.append(key_of(head.sample_id))
            self._numbers.append(number)
            self._starts.append(start)
            self.longest = max(self.longest, len(head.retrieved or ()))
        self._places = PlacesById(keys)

    def _heads(self) -> Iterator[tuple[int, int, _Head]]:
        """(line, first byte, head) of each prediction."""
        start = 0
        decode = msgspec.json.Decoder(_Head).decode
        for number, line in enumerate(read_lines(self.path), start=1):
            place, start = start, start + len(line)
            line = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
            if not line.strip():
                continue
            try:
                twice = line.count(b'"sample_id":') > 1
                head = self._carefully(line, number) if twice else decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                # The careful reader knows what is wrong, and says it.
                head = self._carefully(line, number)
            yield number, place, head

    def _ids(self) -> Iterator[str]:
        if self._loaded is not None:
            yield from self._loaded
            return
        yield from (head.sample_id for _, _, head in self._heads())

    def _ids_before(self, line: int) -> Iterator[str]:
        yield from (head.sample_id for number, _, head in self._heads() if number < line)

    def _carefully(self, line: bytes, number: int) -> _Head:
        where = f"{self.path.name}:{number}"
        sample_id, output = read_prediction(parse_line(line, where), where)
        return _Head(sample_id, [msgspec.Raw()] * len(output.retrieved))


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
    return DataError(f"{where}: $.sample_id", what, fix="Keep one prediction a sample.")
