"""Benchmark records as columns, for formats that are tables; and records from columns, unchanged.

What a column cannot hold as it is (a whole number among fractions, a null, a field that we do not know)
stands in `further` too, an object a record, whose fields win when the record is put together again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .jsonl import encode

Record = dict[str, Any]
TEXTS = ("operation", "timestamp", "error_message")
NUMBERS = ("duration", "memory_usage", "memory_delta", "cpu_percent")
SUCCESS = "success"
COLUMNS = ("operation", "timestamp", *NUMBERS, SUCCESS, "error_message")


def as_columns(
    records: Sequence[Record], text: Callable[[str], str | None] = str
) -> tuple[dict[str, list[Any]], list[Record]]:
    """The columns (None where a record has nothing for one) and what they do not hold, an object a record.

    `text` makes a text such that the format can hold it.
    """
    columns: dict[str, list[Any]] = {
        name: [_cell(record, name, text) for record in records] for name in COLUMNS
    }
    further = []
    for place, record in enumerate(records):
        held = {name: column[place] for name, column in columns.items()}
        further.append({name: value for name, value in record.items() if not _is_same(held.get(name), value)})
    return columns, further


def as_records(columns: dict[str, Sequence[Any]], further: Sequence[Record]) -> list[Record]:
    """The records of the columns."""
    return [
        {name: column[place] for name, column in columns.items() if column[place] is not None} | more
        for place, more in enumerate(further)
    ]


LIST, ONE, NAMED = "list", "record", "named baselines"


def with_the_rest(rest: Any, records: list[Record]) -> Any:
    """The document of a table: its records, in what the file says of the whole."""
    shape = rest[0] if isinstance(rest, list) and len(rest) == 2 else ""
    rest = rest[1] if shape else rest
    if shape == ONE and len(records) == 1:
        return records[0]
    if shape == LIST or not isinstance(rest, dict):
        return records
    if rest.keys() == {"baselines"} and shape != NAMED:
        return rest["baselines"]  # a file of baselines and nothing else
    return rest | {"records": records} if "records" in rest else rest


def without_records(data: Record, shape: str = "") -> Any:
    """What a file says of the whole; that there are records, but not which. And the shape it had as JSON."""
    rest = data | {"records": []} if "records" in data else data
    return [shape, rest] if shape else rest


def _cell(record: Record, name: str, text: Callable[[str], str | None]) -> Any:
    value = record.get(name)
    if value is None:
        return None
    if name in NUMBERS:
        return float(value)
    if name == SUCCESS:
        return value
    # A timestamp may be a number of seconds; the column shows it as a text.
    return text(value if isinstance(value, str) else encode(value).decode())


def _is_same(held: Any, value: Any) -> bool:
    """Also of the same type: 1 and 1.0 are not the same text in JSON."""
    return value is not None and type(held) is type(value) and held == value
