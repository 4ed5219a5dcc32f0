"""Benchmark data as HDF5: a dataset a column under `/records`, the rest as JSON text in `/rest`.

A cell that a record has nothing for is NaN among numbers, -1 in `success`, empty among texts. Reading trusts
nothing in the file. Links to elsewhere, data in other files, filters that are plugins, types other than
numbers and plain texts, and sizes that are only claimed are all refused before a byte of data is read.
"""

from __future__ import annotations

import io
import math
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import DataError, MissingDependencyError
from .atomic import write_bytes
from .benchmark_columns import (
    NUMBERS,
    SUCCESS,
    TEXTS,
    as_columns,
    as_records,
    with_the_rest,
    without_records,
)
from .document_file import read_content
from .json_text import parse_json
from .jsonl import encode, refuse_bomb

MAX_BYTES = 500_000_000  # of the file, and of a column as it is in memory
MAX_ROWS = 2_000_000
MAX_TEXT_BYTES = 1000  # of a cell; a longer text is whole in `further`
_NOT_GIVEN = -1
_BUILT_IN_FILTERS = (1, 2, 3)  # deflate, shuffle, fletcher32; any other may be a library to load
_MAX_EXPANSION = 2000  # equal cells pack well: a column of zeros to a thousandth
_WRITE_ANEW = "Write it anew, or as JSON or Parquet."


def write_hdf5(data: dict[str, Any], path: Path, *, shape: str = "", force: bool = False) -> None:
    """Write benchmark data in its one shape; `shape` tells the one that it had as JSON."""
    import numpy as np

    h5py = _h5py()
    columns, further = as_columns(data.get("records", []), _short)
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        group = file.create_group("records")
        for name in TEXTS:
            cells = [(cell or "").encode() for cell in columns[name]]
            width = max((len(cell) for cell in cells), default=0) or 1
            _write(group, name, np.array(cells, dtype=h5py.string_dtype("utf-8", width)))
        for name in NUMBERS:
            numbers = [math.nan if cell is None else cell for cell in columns[name]]
            _write(group, name, np.array(numbers, dtype="<f8"))
        success = [_NOT_GIVEN if cell is None else int(cell) for cell in columns[SUCCESS]]
        _write(group, SUCCESS, np.array(success, dtype="i1"))
        _write(group, "further", np.frombuffer(encode(further), dtype="u1"))
        _write(file, "rest", np.frombuffer(encode(without_records(data, shape)), dtype="u1"))
    write_bytes(path, content.getvalue(), force=force)


def read_hdf5(path: Path) -> Any:
    """The document of a file that `write_hdf5` wrote."""
    h5py = _h5py()
    content = read_content(path, MAX_BYTES)
    try:
        # From memory: there is no folder from which a name in the file could lead to another file.
        with h5py.File(io.BytesIO(content), "r") as file:
            return _document(h5py, file, path.name)
    except DataError:
        raise
    except (OSError, RuntimeError, LookupError, ValueError, TypeError, OverflowError, MemoryError) as error:
        what = "not an HDF5 file of ours, or one that is damaged or cut off."
        raise DataError(path.name, what, fix="Get it again, or write it anew.") from error


def _document(h5py: ModuleType, file: Any, name: str) -> Any:
    group = _linked(h5py, file, "records", name)
    if not isinstance(group, h5py.Group):
        raise DataError(f"{name}: /records", "is not a group.", fix=_WRITE_ANEW)
    columns: dict[str, Any] = {}
    for column in TEXTS:
        cells = _column(h5py, group, column, "S", name)
        columns[column] = [cell.decode("utf-8") or None for cell in cells.tolist()]
    for column in NUMBERS:
        numbers = _column(h5py, group, column, "fiu", name).astype("f8").tolist()
        columns[column] = [None if math.isnan(number) else number for number in numbers]
    flags = _column(h5py, group, SUCCESS, "iu", name).tolist()
    columns[SUCCESS] = [None if flag == _NOT_GIVEN else bool(flag) for flag in flags]
    further = parse_json(
        _column(h5py, group, "further", "u", name).astype("u1").tobytes(), f"{name}: further"
    )
    lengths = {len(column) for column in columns.values()}
    if not isinstance(further, list) or not all(isinstance(more, dict) for more in further):
        raise DataError(f"{name}: /records/further", "is not a list of objects.", fix=_WRITE_ANEW)
    if lengths != {len(further)}:
        raise DataError(f"{name}: /records", "its columns have different lengths.", fix=_WRITE_ANEW)
    rest = parse_json(_column(h5py, file, "rest", "u", name).astype("u1").tobytes(), f"{name}: rest")
    return with_the_rest(rest, as_records(columns, further))


def _column(h5py: ModuleType, parent: Any, column: str, kinds: str, name: str) -> Any:
    """A column's cells, once it is clear that reading them is harmless."""
    where = f"{name}: /{column}"
    found = _linked(h5py, parent, column, name)
    if not isinstance(found, h5py.Dataset):
        raise DataError(where, "is not a dataset.", fix=_WRITE_ANEW)
    layout = found.id.get_create_plist()
    if layout.get_layout() == h5py.h5d.VIRTUAL or layout.get_external_count():
        raise DataError(where, "its data are in another file.", fix=_WRITE_ANEW)
    filters = {layout.get_filter(place)[0] for place in range(layout.get_nfilters())}
    if not filters <= set(_BUILT_IN_FILTERS):
        raise DataError(where, "it is packed by a filter that is not read.", fix="Use gzip, or none.")
    kind = found.id.get_type()
    if kind.get_class() not in (h5py.h5t.INTEGER, h5py.h5t.FLOAT, h5py.h5t.STRING) or (
        kind.get_class() == h5py.h5t.STRING and kind.is_variable_str()
    ):
        raise DataError(where, "it holds neither numbers nor texts of a fixed length.", fix=_WRITE_ANEW)
    if found.dtype.kind not in kinds or len(found.shape or ()) != 1:
        raise DataError(where, f"its type is {found.dtype} of {found.shape}.", fix=_WRITE_ANEW)
    size = kind.get_size() * max(found.shape[0], math.prod(found.chunks or (0,)))
    # JSON text has a byte a row; a row of any other column becomes several objects.
    rows = found.shape[0] if column not in ("further", "rest") else 0
    if size > MAX_BYTES or rows > MAX_ROWS:
        raise DataError(where, f"it claims {found.shape[0]} rows, {size} bytes.", fix="Is it damaged?")
    refuse_bomb(size, found.file.id.get_filesize(), where, most=_MAX_EXPANSION)
    return found[()]


def _linked(h5py: ModuleType, parent: Any, name: str, file_name: str) -> Any:
    """What a group has under a name; a link that leads elsewhere is not followed."""
    link = parent.get(name, getlink=True)
    if link is None:
        raise DataError(file_name, f"there is no {name!r} in it.", fix=_WRITE_ANEW)
    if not isinstance(link, h5py.HardLink):
        raise DataError(f"{file_name}: /{name}", "is a link to elsewhere.", fix=_WRITE_ANEW)
    return parent[name]


def _write(parent: Any, name: str, cells: Any) -> None:
    packing = {"compression": "gzip", "shuffle": True} if cells.size else {}
    parent.create_dataset(name, data=cells, **packing)


def _short(text: str) -> str | None:
    """A text such that a cell can hold it: not empty, without NUL, not too long."""
    return text.replace("\0", " ").encode()[:MAX_TEXT_BYTES].decode("utf-8", "ignore") or None


def _h5py() -> ModuleType:
    try:
        import h5py
    except ImportError as error:
        raise MissingDependencyError("HDF5 needs h5py: pip install 'auepora-eval[hdf5]'") from error
    module: ModuleType = h5py
    return module
