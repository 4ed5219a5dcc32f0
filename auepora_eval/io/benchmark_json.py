"""`.benchmark.json`: how long operations took and what they used; Parquet and HDF5 likewise.

In memory there is one shape, a dict: `records` is a list with a measurement each, `baselines` tells by
operation what to expect, and whatever else a suite or a report has stands beside them. What was read
remembers the shape that its file had, and is written in it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from .benchmark_columns import LIST, NAMED, ONE
from .document_file import read_document, write_document
from .jsonl import encode, opened
from .refusal import refuse_errors

TABLES = {".parquet": "parquet", ".h5": "hdf5", ".hdf5": "hdf5"}


class Benchmark(dict[str, Any]):
    """Benchmark data in the one shape; `shape` is what their file was if not that: a list, a record."""

    shape: str = ""


def load_benchmark(path: str | Path) -> Benchmark:
    """Benchmark data from JSON, YAML, Parquet or HDF5; the content tells which.

    A file that is one record or a list of them is read as `{"records": [...]}`, a file of baselines as
    `{"baselines": {...}}`.
    """
    path = Path(path)
    start, table = _start(path), TABLES.get(path.suffix.lower())
    if start == b"PAR1" or (table == "parquet" and start.lstrip()[:1] not in (b"{", b"[")):
        from .benchmark_parquet import read_parquet

        document: Any = read_parquet(path)
    elif start == b"\x89HDF" or (table == "hdf5" and start.lstrip()[:1] not in (b"{", b"[")):
        from .benchmark_hdf5 import read_hdf5

        document = read_hdf5(path)
    else:
        document = read_document(path)
    return _checked(document, path.name)


def save_benchmark(data: dict[str, Any], path: str | Path, *, force: bool = False) -> None:
    """Write benchmark data in the format that the name says; `load_benchmark` reads it back unchanged."""
    path = Path(path)
    checked = _checked(msgspec.json.decode(encode(data)), path.name)
    shape = _fitting(getattr(data, "shape", ""), checked)
    kind = TABLES.get(path.suffix.lower())
    if kind == "parquet":
        from .benchmark_parquet import write_parquet

        write_parquet(checked, path, shape=shape, force=force)
    elif kind == "hdf5":
        from .benchmark_hdf5 import write_hdf5

        write_hdf5(checked, path, shape=shape, force=force)
    else:
        write_document(_as_written(checked, shape), path, force=force)


def _start(path: Path) -> bytes:
    with opened(path) as file:
        return file.read(4)


def _checked(document: Any, where: str) -> Benchmark:
    """A document in the one shape; DataError if it is none of those that benchmarks have."""
    from .validation import DataFormatValidator

    refuse_errors(DataFormatValidator().validate_benchmark(document), where)
    return _in_one_shape(document)


def _in_one_shape(document: Any) -> Benchmark:
    shape = ""
    if isinstance(document, list):
        document, shape = {"records": document}, LIST
    elif _are_named_baselines(document):
        shape = NAMED
    elif _are_baselines(document):
        document = {"baselines": document}
    # A set of records may have an operation of its own, as a single record has.
    elif "operation" in document and "duration" in document and not isinstance(document.get("records"), list):
        document, shape = {"records": [document]}, ONE
    found = Benchmark(document)
    found.shape = shape
    return found


def _fitting(shape: str, data: dict[str, Any]) -> str:
    """The shape that data had, if they still can: something may have been added."""
    if shape == NAMED:
        return shape if data.keys() == {"baselines"} else ""
    if shape not in (LIST, ONE) or data.keys() != {"records"}:
        return ""
    return shape if shape == LIST or len(data["records"]) == 1 else LIST


def _as_written(data: dict[str, Any], shape: str) -> Any:
    """Baselines alone are written as the file of baselines that other tools know."""
    if shape in (LIST, ONE):
        return data["records"] if shape == LIST else data["records"][0]
    return data["baselines"] if _are_named_baselines(data) and shape != NAMED else data


def _are_named_baselines(document: Any) -> bool:
    return (
        isinstance(document, dict)
        and document.keys() == {"baselines"}
        and _are_baselines(document["baselines"])
    )


def _are_baselines(document: Any) -> bool:
    return (
        isinstance(document, dict)
        and bool(document)
        and all(
            isinstance(entry, dict) and isinstance(entry.get("mean_duration"), int | float)
            for entry in document.values()
        )
    )
