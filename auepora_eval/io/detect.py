"""Find out what a file holds: by its first bytes, its name, and its first records."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from ..core.fields import has_foreign_documents, has_query
from ..errors import DataError
from .foreign.beir import is_beir
from .foreign.tools import tool_of
from .foreign.trec import trec_kind
from .json.documents import is_yaml, read_content
from .jsonl import BYTE_ORDER_MARK, MAX_LINE_BYTES, opened

_START = 65_536  # bytes of a file that are looked at, and the first line as a whole
_TRACES = re.compile(rb'"(?:resourceSpans|trace_id)"\s*:')
_LIST_OF_OBJECTS = re.compile(rb"\s*\[\s*\{")
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
    "csv": (".csv", ".tsv"),
    "manifest": ("manifest.json",),
}
IN_WORDS = {
    "ground_truth": "ground truth annotations",
    "results": "the results of a run",
    "benchmark": "benchmark data",
    "config": "a configuration",
    "predictions": "a file of predictions",
    "manifest": "the manifest of a dataset",
    "trec-run": "a TREC run",
    "beir-file": "a part of a BEIR dataset",
    "traces": "a file of traces",
}


def kind_of_file(path: Path) -> str:
    """The name of a dataset format (jsonl, parquet, eval_json, csv, splits), or of another kind of file."""
    if is_beir(path):
        return "beir"
    start = _start(path)
    by_name = kind_of_name(path)
    # Content before name: a Parquet file may be called anything.
    if start[:4] == b"PAR1":
        return "benchmark" if by_name == "benchmark" else "parquet"
    if start[:4] == b"\x89HDF":
        return "benchmark"
    if start[:2] == b"PK":
        return "records" if path.suffix.lower() == ".xlsx" else "inspect"
    if start[:4] == b"\xd0\xcf\x11\xe0":
        return "records"  # Excel before 2007, or with a password: its reader says what to do
    if by_name is not None:
        return by_name
    if path.suffix.lower() == ".parquet" and not start.lstrip().startswith(b"{"):
        return "parquet"  # its reader says what is wrong with it
    if is_yaml(path):
        from .json.yaml import parse_yaml

        document = parse_yaml(read_content(path), path.name)
        kind = _kind_of_record(document) if isinstance(document, dict) else None
        return kind or tool_of(start, is_yaml=True) or "config"
    return trec_kind(start) or _kind_of_json(start)


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
    is_ours = any("sample_id" in record for record in records) or b'"annotation_id"' in start
    if not is_ours and (tool := tool_of(start)) is not None:
        return tool
    if not is_ours and _TRACES.search(start):
        return "traces"
    kinds = (_kind_of_record(record) for record in records)
    kind = next((kind for kind in kinds if kind is not None), None)
    if kind is not None:
        return kind
    first = lines[0]
    if _record(first) is not None:  # an object of its own on a line: not one document
        return "records" if any(map(has_query, records)) else "jsonl"
    for key, kind in _KEYS_OF_DOCUMENTS:
        if b'"%s"' % key.encode() in start:
            return kind
    if _LIST_OF_OBJECTS.match(start):
        return "records"
    return "jsonl" if first.strip() != b"{" else "eval_json"


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
        if not answered or "query" in record:
            return "jsonl"
        return "records" if has_foreign_documents(record) else "predictions"
    from .builds.tasks import is_raw_record, is_split_record

    if is_split_record(record) or is_raw_record(record):
        return "splits"
    if isinstance(record.get("samples"), list):
        return "labels"
    if {"_id", "text"} <= record.keys() and not has_query(record):
        return "beir-file"
    if any(isinstance(value, dict) and "mean_duration" in value for value in record.values()):
        return "benchmark"  # baselines, by operation
    return next((kind for key, kind in _KEYS_OF_DOCUMENTS if key in record), None)


def not_a_dataset(path: Path, kind: str) -> DataError:
    """What to say where a dataset was asked for and another kind of file was given."""
    what = f"this is {IN_WORDS.get(kind, kind)}, not a dataset."
    fix = "Name a .jsonl, .parquet, .eval.json, .yaml or .csv file."
    if kind == "traces":
        fix = f"Convert it: auepora import-traces {path.name} --samples samples.jsonl --outputs outputs.jsonl"
    if kind == "beir-file":
        fix = "Name its folder, which has queries.jsonl and qrels."
    if kind == "trec-run":
        fix = "Name the qrels; the run goes to --outputs."
    if kind == "manifest":
        fix = "Name one of its splits, or choose one with --dataset-type qa|summaries|citations."
    return DataError(path.name, what, fix=fix)
