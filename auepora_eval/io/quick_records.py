"""JSON text straight to nouns, for records that hold nothing unusual: several times as fast.

Whatever is unusual (an unknown field, a wrong type, a key that may be there twice, a number that may be too
large) is left to the careful way (`jsonl.parse_line` and `records`), which warns or says what is wrong. So
both ways give the same, and this one gives None where it would have to say more.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ..core.types import Document, EvaluationSample, SystemOutputs
from .json_text import may_be_extreme
from .records import (
    RawDocument,
    RawFailure,
    RawHit,
    RawPrediction,
    RawResponse,
    RawSample,
    prediction_of,
    sample_of,
)


class _Document(RawDocument, forbid_unknown_fields=True): ...


class _Response(RawResponse, forbid_unknown_fields=True): ...


class _Hit(RawHit, forbid_unknown_fields=True): ...


class _Failure(RawFailure, forbid_unknown_fields=True): ...


class _Sample(RawSample, forbid_unknown_fields=True):
    relevant_docs: list[_Document | str] | None = None  # type: ignore[assignment]  # read, never written
    candidate_docs: list[_Document | str] | None = None  # type: ignore[assignment]
    reference_answer: _Response | str | None = None


class _Prediction(RawPrediction, forbid_unknown_fields=True):
    retrieved: list[_Hit | str] | None = None  # type: ignore[assignment]
    response: _Response | str | None = None
    error: _Failure | str | None = None


class _JournalLine(msgspec.Struct):
    output: _Prediction


_sample = msgspec.json.Decoder(_Sample).decode
_prediction = msgspec.json.Decoder(_Prediction).decode
_journal_line = msgspec.json.Decoder(_JournalLine).decode
_UNUSUAL = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def may_repeat_a_key(line: bytes) -> bool:
    """Whether a record may have one of its own keys twice; a text may hold one too, so it is a suspicion.

    A look for any repeated key costs as much as parsing; these five are looked for on every line.
    """
    count = line.count
    return (
        count(b'"sample_id":') > 1
        or count(b'"query":') > 1
        or count(b'"relevant_docs":') > 1
        or count(b'"reference_answer":') > 1
        or count(b'"task_id":') > 1
    )


def quick_sample(line: bytes, where: str, corpus: Mapping[str, Document]) -> EvaluationSample | None:
    """The sample on a line of a dataset; None if it is for the careful way."""
    if may_repeat_a_key(line) or may_be_extreme(line):
        return None
    try:
        raw = _sample(line)
    except _UNUSUAL:
        return None
    return sample_of(raw, where, corpus)


def quick_prediction(line: bytes, where: str) -> tuple[str, SystemOutputs] | None:
    """(sample_id, output) on a line of predictions; None if it is for the careful way."""
    if may_be_extreme(line):
        return None
    try:
        raw = _prediction(line)
    except _UNUSUAL:
        return None
    return prediction_of(raw, where)


def quick_journaled(text: bytes, where: str) -> tuple[str, SystemOutputs] | None:
    """(sample_id, output) of a record of a run's journal, which we wrote ourselves; None as above."""
    try:
        raw = _journal_line(text)
    except _UNUSUAL:
        return None
    return prediction_of(raw.output, where)
