"""Benchmark data as HDF5: the document as JSON text in `/document`, and a copy of its columns in `/records`.

The columns are for other tools and are never read here. A value that a record does not have is NaN among
numbers, -1 in `success` and empty among texts.
"""

from __future__ import annotations

import io
import math
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ...errors import DataError, MissingDependencyError
from ..files.atomic import write_bytes
from ..json.documents import read_content
from ..json.text import parse_json
from ..jsonl import check_expanded_size, encode
from .columns import NUMBERS, SUCCESS, TEXTS, Benchmark, number_column, records_of, text_column

MAX_BYTES = 500_000_000  # of the file, and of the document in memory
MAX_TEXT_BYTES = 1000  # of a cell, which has a fixed length; the document has the whole text
_MISSING = -1
_BUILT_IN_FILTERS = {1, 2, 3}  # deflate, shuffle, fletcher32; any other may be a library to load
_MAX_EXPANSION = 2000  # equal bytes pack well: zeros to a thousandth
_DOCUMENT = "document"
_WRITE_AGAIN = "Write it again, or as JSON or Parquet."


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
            return parse_json(_document_bytes(h5py, file, path.name), f"{path.name}: /{_DOCUMENT}")
    except DataError:
        raise
    except (OSError, RuntimeError, LookupError, ValueError, TypeError, OverflowError, MemoryError) as error:
        what = "not an HDF5 file of ours, or one that is damaged or cut off."
        raise DataError(path.name, what, fix="Get it again, or write it again.") from error


def _document_bytes(h5py: ModuleType, file: Any, name: str) -> bytes:
    """Return the bytes of the document. Nothing in the file is trusted: each check is made before reading."""
    where = f"{name}: /{_DOCUMENT}"
    link = file.get(_DOCUMENT, getlink=True)
    if not isinstance(link, h5py.HardLink):
        raise DataError(where, "is missing, or is a link to another place.", fix=_WRITE_AGAIN)
    stored = file[_DOCUMENT]
    if not isinstance(stored, h5py.Dataset) or stored.dtype != np.dtype("u1") or len(stored.shape) != 1:
        raise DataError(where, "is not a list of bytes.", fix=_WRITE_AGAIN)
    layout = stored.id.get_create_plist()
    if layout.get_layout() == h5py.h5d.VIRTUAL or layout.get_external_count():
        raise DataError(where, "its data are in another file.", fix=_WRITE_AGAIN)
    filters = {layout.get_filter(place)[0] for place in range(layout.get_nfilters())}
    if not filters <= _BUILT_IN_FILTERS:
        raise DataError(where, "it is packed by a filter that is not supported.", fix="Use gzip, or none.")
    # A chunk is unpacked whole, even if the document is shorter.
    size = max(stored.shape[0], math.prod(stored.chunks or (0,)))
    if size > MAX_BYTES:
        raise DataError(where, f"it claims {size} bytes.", fix="Is it damaged?")
    check_expanded_size(size, stored.file.id.get_filesize(), where, most=_MAX_EXPANSION)
    return bytes(stored[()].tobytes())


def _write(parent: Any, name: str, cells: Any) -> None:
    packing = {"compression": "gzip", "shuffle": True} if cells.size else {}
    parent.create_dataset(name, data=cells, **packing)


def _h5py() -> ModuleType:
    try:
        import h5py
    except ImportError as error:
        raise MissingDependencyError("HDF5 needs h5py: pip install 'auepora-eval[hdf5]'") from error
    module: ModuleType = h5py
    return module
