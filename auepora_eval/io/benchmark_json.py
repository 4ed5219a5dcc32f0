"""`.benchmark.json`: how long operations took and what they used; Parquet and HDF5 likewise.

In memory there is one shape, a dict: `records` is a list with a measurement each, `baselines` tells by
operation what to expect, and whatever else a suite or a report has stands beside them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from .document_file import read_document, write_document
from .jsonl import encode, opened
from .refusal import refuse_errors

Benchmark = dict[str, Any]
TABLES = {".parquet": "parquet", ".h5": "hdf5", ".hdf5": "hdf5"}


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


def save_benchmark(data: Benchmark, path: str | Path, *, force: bool = False) -> None:
    """Write benchmark data in the format that the name says; `load_benchmark` reads it back unchanged."""
    path = Path(path)
    checked = _checked(msgspec.json.decode(encode(data)), path.name)
    kind = TABLES.get(path.suffix.lower())
    if kind == "parquet":
        from .benchmark_parquet import write_parquet

        write_parquet(checked, path, force=force)
    elif kind == "hdf5":
        from .benchmark_hdf5 import write_hdf5

        write_hdf5(checked, path, force=force)
    else:
        write_document(_as_written(checked), path, force=force)


def _start(path: Path) -> bytes:
    with opened(path) as file:
        return file.read(4)


def _checked(document: Any, where: str) -> Benchmark:
    """A document in the one shape; DataError if it is none of those that benchmarks have."""
    from .validation import DataFormatValidator

    document = _as_written(document)
    refuse_errors(DataFormatValidator().validate_benchmark(document), where)
    return _in_one_shape(document)


def _in_one_shape(document: Any) -> Benchmark:
    if isinstance(document, list):
        return {"records": document}
    if _are_baselines(document):
        return {"baselines": document}
    # A set of records may have an operation of its own, as a single record has.
    single = "operation" in document and not isinstance(document.get("records"), list)
    found: Benchmark = {"records": [document]} if single and "duration" in document else document
    return found


def _as_written(data: Any) -> Any:
    """Baselines alone are written as the file of baselines that other tools know."""
    if isinstance(data, dict) and data.keys() == {"baselines"} and _are_baselines(data["baselines"]):
        return data["baselines"]
    return data


def _are_baselines(document: Any) -> bool:
    return (
        isinstance(document, dict)
        and bool(document)
        and all(
            isinstance(entry, dict) and isinstance(entry.get("mean_duration"), int | float)
            for entry in document.values()
        )
    )
