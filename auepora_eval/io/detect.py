"""Find out what a file holds: by its first bytes, its name, and its first records."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from ..errors import DataError
from ..read.names import ID, has_answer, has_own_names, has_query
from ..read.tools import tool_of
from .beir import is_beir
from .documents import is_yaml, read_content
from .jsonl import BYTE_ORDER_MARK, MAX_LINE_BYTES, opened
from .trec import json_rankings_kind, trec_kind

_START = 65_536  # bytes of a file that are looked at, and the first line as a whole
# The id of a trace may also be a column of a table, which has no spans.
_TRACES = re.compile(rb'"(?:span_id|spans)"\s*:')
_LIST_OF_OBJECTS = re.compile(rb"\[\s*[{\]]")
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
    "answers": "a file of answers by sample id",
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
    if path.suffix.lower() == ".xlsx":
        return "records"
    if start[:2] == b"PK":
        return "inspect"
    if start[:4] == b"\xd0\xcf\x11\xe0":
        return "records"  # Excel before 2007, or with a password: its reader says what to do
    if by_name is not None:
        return "beir-file" if start.startswith(b"query-id\tcorpus-id") else by_name
    if path.suffix.lower() == ".parquet" and not start.lstrip().startswith(b"{"):
        return "parquet"  # its reader says what is wrong with it
    if is_yaml(path):
        from ..read.plain_yaml import parse_yaml

        document = parse_yaml(read_content(path), path.name)
        kind = _kind_of_record(document) if isinstance(document, dict) else None
        return kind or tool_of(start, is_yaml=True) or "config"
    by_id = _kind_by_id(start) if path.suffix.lower() == ".json" else None
    return by_id or trec_kind(start) or _kind_of_json(start)


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
    start = start.lstrip()
    if _LIST_OF_OBJECTS.match(start):
        return _kind_of_list(start)
    lines = start.split(b"\n")[:_LINES]
    records = [record for line in lines if (record := record_on(line)) is not None]
    is_ours = any("sample_id" in record for record in records) or b'"annotation_id"' in start
    foreign = None if is_ours else _foreign_kind(start)
    if foreign is not None:
        return foreign
    kinds = (_kind_of_record(record) for record in records)
    kind = next((kind for kind in kinds if kind is not None), None)
    if kind is not None:
        return kind
    first = lines[0]
    if record_on(first) is not None:  # an object of its own on a line: not one document
        return "records" if any(has_query(record) or has_answer(record) for record in records) else "jsonl"
    for key, kind in _KEYS_OF_DOCUMENTS:
        if b'"%s"' % key.encode() in start:
            return kind
    return "jsonl" if first.strip() != b"{" else "eval_json"


def _kind_by_id(start: bytes) -> str | None:
    """Return the kind of one object by ids: answers of samples, or numbers of documents of queries."""
    # A long file in lines is looked at up to the end of an entry, or of one in the first level.
    entries = start[: start.rfind(b"\n")].rstrip().removesuffix(b",")
    documents = (record_on(text) for text in (start, entries + b"}", entries + b"}}"))
    document = next((one for one in documents if one is not None), None)
    if not document or _kind_of_record(document) is not None or has_query(document):
        return None
    values = document.values()
    are_answers = all(isinstance(v, str) or (isinstance(v, dict) and has_answer([ID, *v])) for v in values)
    return "answers" if are_answers else json_rankings_kind(document)


def _foreign_kind(start: bytes) -> str | None:
    are_spans = b'"trace_id"' in start and _TRACES.search(start)
    return tool_of(start) or ("traces" if are_spans or b'"resourceSpans"' in start else None)


def _kind_of_list(start: bytes) -> str:
    """Return the kind of a JSON array by its first record: samples of ours in an array are records too."""
    try:
        first, _ = json.JSONDecoder().raw_decode(start.decode("utf-8", "replace")[1:].lstrip())
    except (ValueError, RecursionError):
        first = None  # it is longer than what is looked at, or damaged
    kind = _kind_of_record(first) if isinstance(first, dict) else None
    if kind in ("jsonl", "predictions"):
        return "records"
    return _foreign_kind(start) or kind or "records"


def record_on(line: bytes) -> Mapping[str, object] | None:
    """Return the object on a line; None if there is none."""
    try:
        record = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


# The first of these keys decides; a document may mention the later ones.
_KEYS_OF_DOCUMENTS = (
    ("sample_id", "jsonl"),
    ("queries", "eval_json"),  # its samples may have the id of a task in their metadata
    ("task_id", "splits"),
    ("annotation_id", "ground_truth"),
    ("annotations", "ground_truth"),
    ("evaluation_id", "results"),
    ("query_results", "results"),
    ("source_offline_dataset", "manifest"),
    ("ground_truth_label", "labels"),
    ("annotation_guidelines", "labels"),
    ("operation", "benchmark"),
    ("mean_duration", "benchmark"),
)


# Keys that no other tool has; words such as "annotations" may be columns of a table with questions.
_OWN_KEYS = {
    "annotation_id",
    "evaluation_id",
    "query_results",
    "source_offline_dataset",
    "ground_truth_label",
    "mean_duration",
}


def _kind_of_record(record: Mapping[str, object]) -> str | None:
    if "sample_id" in record:
        if not has_own_names(record):
            return "records"
        is_answered = not {"retrieved", "response", "answer", "error"}.isdisjoint(record)
        if is_answered:
            return "records" if "query" in record else "predictions"
        return "jsonl"
    from ..read.tasks import is_raw_record, is_split_record

    if is_split_record(record) or is_raw_record(record):
        return "splits"
    if _OWN_KEYS.isdisjoint(record) and (has_answer(record) or has_query(record)):
        return "records" if has_answer(record) else None  # answers by another name of the id
    if isinstance(record.get("samples"), list):
        return "labels"
    if {"_id", "text"} <= record.keys():
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
    if kind == "answers":
        fix = "Name the questions; the answers go to --outputs."
    if kind == "trec-run":
        fix = "Name the qrels; the run goes to --outputs."
    if kind == "manifest":
        fix = "Name one of its splits, or choose one with --dataset-type qa|summaries|citations."
    return DataError(path.name, what, fix=fix)
