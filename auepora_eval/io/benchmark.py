"""`.benchmark.json`: how long operations took and what they used; Parquet and HDF5 likewise.

In memory there is one form, a dict: `records` is a list of measurements, and what a suite, a report or a file
of baselines has is beside them.
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import msgspec
import numpy as np

from ..errors import DataError, MissingDependencyError, install_command
from ..read.text import kind_of, parse_json
from .documents import read_content, read_document, write_document
from .files import write_bytes, written
from .jsonl import encode, opened
from .parquet import import_pyarrow, parquet_rows
from .schema import DataFormatValidator, check_no_errors

_HDF5_SUFFIXES = (".h5", ".hdf5")


def load_benchmark(path: str | Path) -> Benchmark:
    """Return benchmark data from JSON, YAML, Parquet or HDF5; the content decides which.

    A file that is one record or a list of them is read as `{"records": [...]}`.
    """
    path = Path(path)
    with opened(path) as file:
        start = file.read(4)
    is_text = start.lstrip()[:1] in (b"{", b"[")
    suffix = path.suffix.lower()
    if start == b"PAR1" or (suffix == ".parquet" and not is_text):
        return _checked(read_parquet(path), path.name)
    if start == b"\x89HDF" or (suffix in _HDF5_SUFFIXES and not is_text):
        return _checked(read_hdf5(path), path.name)
    return _checked(read_document(path), path.name)


def save_benchmark(data: Benchmark, path: str | Path, *, force: bool = False) -> None:
    """Write benchmark data in the format that the name says; `load_benchmark` reads it back unchanged."""
    path = Path(path)
    checked = _checked(msgspec.json.decode(encode(data)), path.name)
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        write_parquet(checked, path, force=force)
    elif suffix in _HDF5_SUFFIXES:
        write_hdf5(checked, path, force=force)
    else:
        write_document(checked, path, force=force)


def benchmark_of_run(head: Mapping[str, Any], where: str) -> Benchmark:
    """Return how long the calls of a run took and what they used, as a suite has it; times are in seconds."""
    measured, summary = head.get("performance_metrics") or {}, head["summary"]
    times = measured.get("latency_stats")  # in milliseconds
    if times is None:
        raise DataError(where, "no output has a time.", fix="Name a run that called a system.")
    names = {"mean": "average_time", "p50": "median_time", "p95": "p95_time", "p99": "p99_time"}
    return {
        "query_processing": {
            "total_queries": summary["total_queries"],
            "failed_queries": summary["failed_queries"],
            **{new: times[old] / 1000 for old, new in names.items()},
        },
        "resource_usage": measured.get("resource_usage") or {},
        "summary": {"evaluation_id": head["evaluation_id"], "benchmark_timestamp": head["timestamp"]},
    }


def _checked(document: object, where: str) -> Benchmark:
    """Return a document in the one form; DataError if it has none of the forms of benchmark data."""
    check_no_errors(DataFormatValidator().validate_benchmark(document), where)
    if isinstance(document, list):
        return {"records": document}
    data = cast("Benchmark", document)  # the schema allows nothing else
    # A set of records may have an operation of its own, as a single record has.
    is_record = "operation" in data and "duration" in data
    return {"records": [data]} if is_record and not isinstance(data.get("records"), list) else data


# Benchmark records as columns, and Parquet files of them.
#
# The columns are for other tools. A column `record` has each record as JSON text, because a column cannot
# hold everything as it is: a whole number among fractions, a null, a field that we do not know.

Record = dict[str, object]
Benchmark = dict[str, object]  # `records`, or what a suite, a report or a file of baselines has
TEXTS = ("operation", "timestamp", "error_message")
NUMBERS = ("duration", "memory_usage", "memory_delta", "cpu_percent")
SUCCESS = "success"
_RECORD = "record"
_REST = b"auepora.benchmark"  # the key under which the document without its records is kept


def text_column(records: Sequence[Record], name: str) -> list[str | None]:
    """Return a column of texts; a timestamp may be a number of seconds, and is written as one."""
    values = [record.get(name) for record in records]
    return [value if value is None or isinstance(value, str) else encode(value).decode() for value in values]


def number_column(records: Sequence[Record], name: str) -> list[float | None]:
    """Return a column of numbers, all of them floats."""
    values = [record.get(name) for record in records]
    return [float(value) if isinstance(value, int | float) else None for value in values]


def records_of(data: Benchmark) -> list[Record]:
    """Return the records of benchmark data, which may have none."""
    records = data.get("records")
    return records if isinstance(records, list) else []


def write_parquet(data: Benchmark, path: Path, *, force: bool = False) -> None:
    """Write one row per record, and the rest of the document as JSON text in the metadata of the file."""
    pyarrow, parquet = import_pyarrow()
    records = records_of(data)
    columns = {
        **{name: pyarrow.array(text_column(records, name), pyarrow.string()) for name in TEXTS},
        **{name: pyarrow.array(number_column(records, name), pyarrow.float64()) for name in NUMBERS},
        SUCCESS: pyarrow.array([record.get(SUCCESS) for record in records], pyarrow.bool_()),
        _RECORD: pyarrow.array([encode(record).decode() for record in records], pyarrow.string()),
    }
    # That there were records is kept, even if there are no rows.
    rest = data | {"records": []} if "records" in data else data
    table = pyarrow.table(columns).replace_schema_metadata({_REST: encode(rest)})
    with written(path, force=force) as file:
        parquet.write_table(table, file)


def read_parquet(path: Path) -> Benchmark:
    """Return the document of a file that `write_parquet` wrote, or of any with the columns of a record."""
    rows, described = parquet_rows(path)
    # Dates and decimals of other tools' tables become what JSON has for them.
    rows = msgspec.json.decode(encode(rows))
    records = [_record(row, f"{path.name}: row {number}") for number, row in enumerate(rows, start=1)]
    if _REST not in described:
        return {"records": records}
    rest = _object(parse_json(described[_REST], path.name), path.name)
    return rest | {"records": records} if "records" in rest else rest


def _record(row: Record, where: str) -> Record:
    text = row.get(_RECORD)
    if isinstance(text, str):
        return _object(parse_json(text.encode(), f"{where}: {_RECORD}"), f"{where}: {_RECORD}")
    return {name: value for name, value in row.items() if value is not None}


def _object(value: object, where: str) -> Record:
    if not isinstance(value, dict):
        raise DataError(where, f"an object was expected, not {kind_of(value)}.", fix="Write JSON text.")
    return value


# Benchmark data as HDF5: the document as JSON text in `/document`, and a copy of its columns in `/records`.
#
# The columns are never read here. A value that a record does not have is NaN among
# numbers, -1 in `success` and empty among texts.

MAX_BYTES = 100_000_000  # of the file, and of the document in memory
MAX_TEXT_BYTES = 1000  # of a cell, which has a fixed length; the document has the whole text
_MISSING = -1
_DOCUMENT = "document"


def write_hdf5(data: Benchmark, path: Path, *, force: bool = False) -> None:
    """Write the document, and its records as columns."""
    h5py = _h5py()
    records = records_of(data)
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        _write(file, _DOCUMENT, np.frombuffer(encode(data), dtype="u1"))
        group = file.create_group("records")
        for name in TEXTS:
            texts = [(text or "").encode()[:MAX_TEXT_BYTES] for text in text_column(records, name)]
            cells = [text.decode("utf-8", "ignore").encode() for text in texts]  # no half characters
            width = max((len(cell) for cell in cells), default=0) or 1
            _write(group, name, np.array(cells, dtype=h5py.string_dtype("utf-8", width)))
        for name in NUMBERS:
            numbers = [math.nan if cell is None else cell for cell in number_column(records, name)]
            _write(group, name, np.array(numbers, dtype="<f8"))
        success = [
            _MISSING if record.get(SUCCESS) is None else int(bool(record[SUCCESS])) for record in records
        ]
        _write(group, SUCCESS, np.array(success, dtype="i1"))
    write_bytes(path, content.getvalue(), force=force)


def read_hdf5(path: Path) -> object:
    """Return the document of a file that `write_hdf5` wrote."""
    h5py = _h5py()
    content = read_content(path, MAX_BYTES)
    try:
        # From memory: there is no folder from which a name in the file could lead to another file.
        with h5py.File(io.BytesIO(content), "r") as file:
            stored = file[_DOCUMENT]
            layout = stored.id.get_create_plist()
            is_elsewhere = layout.get_layout() == h5py.h5d.VIRTUAL or layout.get_external_count()
            if stored.dtype != np.dtype("u1") or stored.size > MAX_BYTES or is_elsewhere:
                raise ValueError("this is not a list of bytes in this file")
            document = stored[()].tobytes()
    except (
        OSError,
        RuntimeError,
        LookupError,
        ValueError,
        TypeError,
        AttributeError,
        OverflowError,
        MemoryError,
    ) as error:
        what = "not an HDF5 file of ours, or one that is damaged or cut off."
        raise DataError(path.name, what, fix="Get it again, or write it again.") from error
    return parse_json(document, f"{path.name}: /{_DOCUMENT}")


def _write(parent: Any, name: str, cells: Any) -> None:
    packing = {"compression": "gzip", "shuffle": True} if cells.size else {}
    parent.create_dataset(name, data=cells, **packing)


def _h5py() -> ModuleType:
    try:
        import h5py
    except ImportError as error:
        raise MissingDependencyError(f"HDF5 needs h5py: {install_command('hdf5')}") from error
    module: ModuleType = h5py
    return module
