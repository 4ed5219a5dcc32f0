"""`.benchmark.json`: how long operations took and what they used; Parquet and HDF5 likewise.

In memory there is one form, a dict: `records` is a list of measurements, `baselines` has the expected values
by operation, and whatever else a suite or a report has is beside them.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

import msgspec

from ..json.documents import read_document, write_document
from ..jsonl import encode, opened
from ..schema.validate import DataFormatValidator, check_no_errors
from .columns import Benchmark, read_parquet, write_parquet

_HDF5_SUFFIXES = (".h5", ".hdf5")


def load_benchmark(path: str | Path) -> Benchmark:
    """Return benchmark data from JSON, YAML, Parquet or HDF5; the content decides which.

    A file that is one record or a list of them is read as `{"records": [...]}`, a file of baselines as
    `{"baselines": {...}}`.
    """
    path = Path(path)
    with opened(path) as file:
        start = file.read(4)
    is_text = start.lstrip()[:1] in (b"{", b"[")
    suffix = path.suffix.lower()
    if start == b"PAR1" or (suffix == ".parquet" and not is_text):
        return _checked(read_parquet(path), path.name)
    if start == b"\x89HDF" or (suffix in _HDF5_SUFFIXES and not is_text):
        from .hdf5 import read_hdf5

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
        from .hdf5 import write_hdf5

        write_hdf5(checked, path, force=force)
    else:
        # Baselines alone are written as the file of baselines that other tools know.
        alone = checked.keys() == {"baselines"} and _are_baselines(checked["baselines"])
        write_document(checked["baselines"] if alone else checked, path, force=force)


def _checked(document: object, where: str) -> Benchmark:
    """Return a document in the one form; DataError if it has none of the forms of benchmark data."""
    check_no_errors(DataFormatValidator().validate_benchmark(document), where)
    if isinstance(document, list):
        return {"records": document}
    data = cast("Benchmark", document)  # the schema allows nothing else
    if _are_baselines(data):
        return {"baselines": data}
    # A set of records may have an operation of its own, as a single record has.
    is_record = "operation" in data and "duration" in data
    return {"records": [data]} if is_record and not isinstance(data.get("records"), list) else data


def _are_baselines(document: object) -> bool:
    """Whether every value is an entry of a baseline; a document `{"baselines": ...}` is not."""
    if not isinstance(document, dict) or not document:
        return False
    return all(
        isinstance(entry, dict) and isinstance(entry.get("mean_duration"), int | float)
        for entry in document.values()
    )
