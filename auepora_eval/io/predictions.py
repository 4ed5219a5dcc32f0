"""predictions.jsonl: what a system answered, one sample a line; scored without the system."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ..core.types import EvaluationSample, Failure, Response, SystemOutputs
from ..errors import DataError
from .jsonl import MAX_LINE_BYTES, read_records, save_records
from .records import prediction_record, read_prediction


def load_predictions(path: str | Path, *, max_line_bytes: int = MAX_LINE_BYTES) -> dict[str, SystemOutputs]:
    """Outputs by sample id."""
    outputs: dict[str, SystemOutputs] = {}
    for where, record in read_records(path, max_line_bytes=max_line_bytes):
        sample_id, output = read_prediction(record, where)
        if sample_id in outputs:
            raise DataError(
                f"{where}: $.sample_id",
                f"{sample_id!r:.80} was used already.",
                fix="Keep one prediction a sample.",
            )
        outputs[sample_id] = output
    return outputs


def save_predictions(
    samples: Iterable[EvaluationSample], outputs: Iterable[SystemOutputs], path: Path, *, force: bool = False
) -> None:
    """Write outputs; `load_predictions` reads them back."""
    pairs = zip(samples, outputs, strict=True)
    save_records((prediction_record(sample.sample_id, output) for sample, output in pairs), path, force=force)


def matched_outputs(
    samples: Sequence[EvaluationSample], outputs: dict[str, SystemOutputs], where: str
) -> list[SystemOutputs]:
    """An output for each sample, in order; a sample without a prediction counts as failed, not as absent."""
    known = {sample.sample_id for sample in samples}
    strangers = [sample_id for sample_id in outputs if sample_id not in known]
    if strangers:
        raise DataError(
            where,
            f"{len(strangers)} predictions are for samples that the data lack, first {strangers[0]!r:.60}.",
            fix="Is this the right dataset?",
        )
    missing = Failure("MissingPrediction", "the predictions have no line for this sample")
    return [outputs.get(s.sample_id) or SystemOutputs([], Response(""), error=missing) for s in samples]
