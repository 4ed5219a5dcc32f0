"""Find out what a file holds: by its first bytes, its name, and its first records."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from ..errors import DataError
from .builds.tasks import is_raw_record, is_split_record
from .json.documents import is_yaml, read_content
from .json.yaml import parse_yaml
from .jsonl import BYTE_ORDER_MARK, MAX_LINE_BYTES, opened

_START = 65_536  # bytes of a file that are looked at, and the first line as a whole
_LINES = 20  # records that are looked at: the first may be the one that is wrong
# In this order: .results.csv is not a dataset in CSV.
_ENDINGS = {
    "eval_json": (".eval.json", ".eval.yaml", ".eval.yml"),
    "ground_truth": (".gt.json", ".gt.yaml", ".gt.yml"),
    "results": (".results.json", ".results.yaml", ".results.yml", ".results.csv"),
    # Seed 003 calls its files latency_benchmarks.json, retrieval_quality_benchmarks.json, ...
    "benchmark": (
        *(f".benchmark.{ending}" for ending in ("json", "parquet", "h5", "hdf5", "yaml")),
        "_benchmarks.json",
    ),
    "config": (".config.json", ".config.yaml", ".config.yml"),
    "labels": (".labels.json", ".labels.yaml", ".labels.yml"),
    "csv": (".csv",),
    "manifest": ("manifest.json",),
}
IN_WORDS = {
    "ground_truth": "ground truth annotations",
    "results": "the results of a run",
    "benchmark": "benchmark data",
    "config": "a configuration",
    "predictions": "predictions of a system",
    "manifest": "the manifest of a dataset",
}


def kind_of_file(path: Path) -> str:
    """The name of a dataset format (jsonl, parquet, eval_json, csv, splits), or of another kind of file."""
    start = _start(path)
    by_name = kind_of_name(path)
    # Content before name: a Parquet file may be called anything.
    if start[:4] == b"PAR1":
        return "benchmark" if by_name == "benchmark" else "parquet"
    if start[:4] == b"\x89HDF":
        return "benchmark"
    if by_name is not None:
        return by_name
    if path.suffix.lower() == ".parquet" and not start.lstrip().startswith(b"{"):
        return "parquet"  # its reader says what is wrong with it
    if is_yaml(path):
        document = parse_yaml(read_content(path), path.name)
        return (_kind_of_record(document) if isinstance(document, dict) else None) or "config"
    return _kind_of_json(start)


def kind_of_name(path: Path) -> str | None:
    """The same by its name alone, if that says it."""
    name = path.name.lower().removesuffix(".gz")
    return next((kind for kind, endings in _ENDINGS.items() if name.endswith(endings)), None)


def _start(path: Path) -> bytes:
    """The first line, and some more of what can be read: the format's own reader says where it breaks off."""
    with opened(path) as file:
        start = file.readline(MAX_LINE_BYTES)
        with suppress(OSError, EOFError, zlib.error):
            start += file.read(max(0, _START - len(start)))
    return start.removeprefix(BYTE_ORDER_MARK)


def _kind_of_json(start: bytes) -> str:
    """Return the kind of the first record that shows it; without one, that of a document with such keys."""
    lines = start.lstrip().split(b"\n")[:_LINES]
    records = [record for line in lines if (record := _record(line)) is not None]
    kinds = (_kind_of_record(record) for record in records)
    kind = next((kind for kind in kinds if kind is not None), None)
    if kind is not None:
        return kind
    first = lines[0]
    if _record(first) is not None:  # an object of its own on a line: not one document
        return "jsonl"
    for key, kind in _KEYS_OF_DOCUMENTS:
        if b'"%s"' % key.encode() in start:
            return kind
    return "jsonl" if first.strip() not in (b"{", b"[") else "eval_json"


def _record(line: bytes) -> Mapping[str, object] | None:
    """Return the object on a line; None if there is none."""
    try:
        record = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


# The first of these keys decides; a document may mention the later ones.
_KEYS_OF_DOCUMENTS = (
    ("sample_id", "jsonl"),
    ("task_id", "splits"),
    ("queries", "eval_json"),
    ("annotation_id", "ground_truth"),
    ("annotations", "ground_truth"),
    ("evaluation_id", "results"),
    ("source_offline_dataset", "manifest"),
    ("ground_truth_label", "labels"),
    ("annotation_guidelines", "labels"),
    ("operation", "benchmark"),
    ("mean_duration", "benchmark"),
)


def _kind_of_record(record: Mapping[str, object]) -> str | None:
    if "sample_id" in record:
        answered = {"retrieved", "response", "answer", "error"} & record.keys()
        return "predictions" if answered and "query" not in record else "jsonl"
    if is_split_record(record) or is_raw_record(record):
        return "splits"
    if isinstance(record.get("samples"), list):
        return "labels"
    if any(isinstance(value, dict) and "mean_duration" in value for value in record.values()):
        return "benchmark"  # baselines, by operation
    return next((kind for key, kind in _KEYS_OF_DOCUMENTS if key in record), None)


def not_a_dataset(path: Path, kind: str) -> DataError:
    """What to say where a dataset was asked for and another kind of file was given."""
    what = f"this is {IN_WORDS.get(kind, kind)}, not a dataset."
    fix = "Name a .jsonl, .parquet, .eval.json, .yaml or .csv file."
    if kind == "manifest":
        fix = "Name one of its splits, or choose one with --dataset-type qa|summaries|citations."
    return DataError(path.name, what, fix=fix)
