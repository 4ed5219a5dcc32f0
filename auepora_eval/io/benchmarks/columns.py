"""Benchmark records as columns, and Parquet files of them.

The columns are for other tools. A column `record` has each record as JSON text, because a column cannot hold
everything as it is: a whole number among fractions, a null, a field that we do not know.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from ...errors import DataError
from ..files.atomic import written
from ..json.text import kind_of, parse_json
from ..jsonl import encode
from ..parquet import import_pyarrow, parquet_rows

Record = dict[str, object]
Benchmark = dict[str, object]  # `records`, `baselines`, or what a suite or a report has
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
