"""Predicted labels and scores in files: `{"id", "predicted_label"}` or `{"id", "score"}` a line.

A report with `detailed_results` (`sample_id`, `predicted_label`, `fhri`, `scenario_detected`) is read too,
and so is a list of such records. `sample_id` may stand for `id` everywhere.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ..core.label_terms import CONTRADICTION, LABELS, PREDICTED_LABEL, label_of
from ..core.types import Failure, Response, SystemOutputs
from ..errors import DataError
from .document_file import read_content
from .json_text import parse_document
from .jsonl import BYTE_ORDER_MARK, read_lines, read_records

Records = dict[str, dict[str, Any]]


def read_label_records(path: str | Path, known: Container[str] | None = None) -> Records:
    """The records of a file by the id of their sample; one for a sample that is not known is an error."""
    path = Path(path)
    found: Records = {}
    for where, record in _records(path):
        sample_id = record.get("id", record.get("sample_id"))
        if not isinstance(sample_id, str) or not sample_id:
            raise DataError(where, "the field 'id' is missing, or is not a text.", fix="Add it.")
        if sample_id in found:
            raise DataError(where, f"{sample_id!r:.80} was used already.", fix="Keep one record a sample.")
        if known is not None and sample_id not in known:
            what = f"the data have no sample {sample_id!r:.80}."
            raise DataError(where, what, fix="Is this the right dataset?")
        found[sample_id] = {**record, "where": where}
    return found


def read_predicted_labels(path: str | Path, known: Container[str] | None = None) -> dict[str, SystemOutputs]:
    """What a detector predicted, as outputs: the label in `extra`. A label of null is a failure."""
    return {sample_id: _prediction(record) for sample_id, record in read_label_records(path, known).items()}


class ScoredSample(NamedTuple):
    """A reliability score, None if there is none, and whether the detector saw a contradiction."""

    score: float | None
    contradiction: bool


def read_scores(path: str | Path, known: Container[str] | None = None) -> dict[str, ScoredSample]:
    """Reliability scores by the id of the sample: `score`, or `fhri`; the `predicted_label` may be there."""
    scores: dict[str, ScoredSample] = {}
    for sample_id, record in read_label_records(path, known).items():
        if "score" not in record and "fhri" not in record:
            raise DataError(
                record["where"], "the field 'score' is missing.", fix="Add it; null if there is none."
            )
        score = record.get("score", record.get("fhri"))
        if score is not None and (type(score) not in (int, float) or not 0 <= score <= 1):
            what = f"{score!r:.60} is not a score from 0 to 1."
            raise DataError(record["where"], what, fix="Write one, or null.")
        said = record.get(PREDICTED_LABEL)
        label = None if said is None else _label(said, record["where"])
        scores[sample_id] = ScoredSample(None if score is None else float(score), label == CONTRADICTION)
    return scores


def _prediction(record: dict[str, Any]) -> SystemOutputs:
    label = record.get(PREDICTED_LABEL)
    if PREDICTED_LABEL not in record:
        raise DataError(record["where"], f"the field {PREDICTED_LABEL!r} is missing.", fix="Add it.")
    if label is None:
        failure = Failure("NoPrediction", str(record.get("error") or "the predicted label is null")[:500])
        return SystemOutputs([], Response(""), error=failure)
    extra = {PREDICTED_LABEL: _label(label, record["where"])}
    if isinstance(record.get("scenario_detected"), str):
        extra["scenario_detected"] = record["scenario_detected"]
    return SystemOutputs([], Response(""), extra=extra)


def _label(said: Any, where: str) -> str:
    label = label_of(said)
    if label is None:
        raise DataError(
            where,
            f"the predicted label {said!r:.60} is not one of {', '.join(LABELS)}.",
            fix="Change it; null if there is none.",
        )
    return label


def _records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, record) of a file of lines or of one document."""
    if _is_lines(path):
        yield from read_records(path)
        return
    document = parse_document(read_content(path), path.name)
    listed = document.get("detailed_results") if isinstance(document, dict) else document
    if not isinstance(listed, list):
        raise DataError(
            path.name,
            "there are no predictions in it.",
            fix='Write {"id": ..., "predicted_label": ...} a line, or a report with detailed_results.',
        )
    for place, record in enumerate(listed):
        where = f"{path.name}: {'detailed_results' if isinstance(document, dict) else ''}[{place}]"
        if not isinstance(record, dict):
            raise DataError(where, "an object was expected.")
        yield where, record


def _is_lines(path: Path) -> bool:
    """One object a line: by the name, or where the first line is an object with an id."""
    if path.name.lower().removesuffix(".gz").endswith((".jsonl", ".ndjson")):
        return True
    first = next((line for line in read_lines(path) if line.strip()), b"").removeprefix(BYTE_ORDER_MARK)
    try:
        record = msgspec.json.decode(first)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(record, dict) and bool({"id", "sample_id"} & record.keys())
