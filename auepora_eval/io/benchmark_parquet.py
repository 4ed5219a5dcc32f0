"""Benchmark data as Parquet: a row a record, the rest as JSON text in the file's own metadata."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from ..errors import DataError
from .atomic import written
from .benchmark_columns import NUMBERS, SUCCESS, as_columns, with_the_rest, without_records
from .json_text import kind_of, parse_json
from .jsonl import encode
from .parquet import import_pyarrow, parquet_rows

REST = b"auepora.benchmark"


def write_parquet(data: dict[str, Any], path: Path, *, shape: str = "", force: bool = False) -> None:
    """Write benchmark data in its one shape; `shape` tells the one that it had as JSON."""
    pyarrow, parquet = import_pyarrow()
    columns, further = as_columns(data.get("records", []))
    columns["metadata"] = [_text(more.pop("metadata", None)) for more in further]
    columns["further"] = [_text(more or None) for more in further]
    types = dict.fromkeys(NUMBERS, pyarrow.float64()) | {SUCCESS: pyarrow.bool_()}
    schema = pyarrow.schema([(name, types.get(name, pyarrow.string())) for name in columns])
    schema = schema.with_metadata({REST: encode(without_records(data, shape))})
    with written(path, force=force) as file:
        parquet.write_table(pyarrow.table(columns, schema=schema), file)


def read_parquet(path: Path) -> Any:
    """The document of a file that `write_parquet` wrote, or of any with the columns of a record."""
    rows, described = parquet_rows(path)
    # Dates and decimals of other tools' tables become what JSON has for them.
    rows = msgspec.json.decode(encode(rows))
    records = [_record(row, f"{path.name}: row {number}") for number, row in enumerate(rows, start=1)]
    return with_the_rest(parse_json(described.get(REST, b"null"), path.name), records)


def _record(row: dict[str, Any], where: str) -> dict[str, Any]:
    record = {name: value for name, value in row.items() if value is not None and name != "further"}
    if isinstance(record.get("metadata"), str):
        record["metadata"] = _parsed(record["metadata"], f"{where}: metadata")
    if row.get("further") is not None:
        record |= _parsed(row["further"], f"{where}: further")
    return record


def _text(value: Any) -> str | None:
    return None if value is None else encode(value).decode()


def _parsed(value: Any, where: str) -> dict[str, Any]:
    parsed = parse_json(value.encode(), where) if isinstance(value, str) else value
    if not isinstance(parsed, dict):
        raise DataError(where, f"an object was expected, not {kind_of(parsed)}.", fix="Write JSON text.")
    return parsed
