"""CSV: the queries of a dataset as a table that a spreadsheet opens.

A row a query, with the columns of `.eval.json`; lists and objects are JSON text, ids are joined by ';'.
There is no place for the corpus and the description: they are left out, and a warning says so. An empty
cell is a field that is not there.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..core.dataset import EvaluationDataset, InMemoryDataset
from ..errors import DataError
from .atomic import write_bytes
from .document_file import packed, read_content
from .eval_json import Record, dataset_from_record, record_from_dataset
from .json_text import parse_json
from .jsonl import encode
from .names import stem

COLUMNS = (
    "query_id",
    "query_text",
    "query_type",
    "difficulty",
    "relevant_documents",
    "ground_truth_answer",
    "citations",
    "metadata",
)
_JSON_COLUMNS = ("citations", "metadata")
_MAX_CELL = 8_000_000
# A spreadsheet takes a cell that starts with one of these for a formula, or swallows the first of them.
_ACTIVE = tuple("=+-@\t\r\n'＝＋－＠")


class DroppedWarning(UserWarning):
    """The format has no place for a part of the data; that part was left out."""


def load_eval_csv(path: str | Path) -> InMemoryDataset:
    """Load a dataset from a CSV file with the columns of `.eval.json`."""
    path = Path(path)
    queries = [_query(row, f"{path.name}: row {number}") for number, row in read_rows(path)]
    record = {"dataset_id": stem(path), "name": stem(path), "version": "1.0.0", "queries": queries}
    try:
        return InMemoryDataset(stem(path), list(dataset_from_record(record, path.name)))
    except DataError as error:
        # The first line is the heading, and people count from 1.
        what = re.sub(r"\$\.queries\[([0-9]+)\]", lambda m: f"row {int(m[1]) + 2}", error.what)
        raise DataError(error.where, what, fix=error.fix) from error


def save_eval_csv(dataset: EvaluationDataset, path: str | Path, *, force: bool = False) -> None:
    """Write the queries of a dataset."""
    path = Path(path)
    record = record_from_dataset(dataset)
    lost = [f"its {len(record['documents'])} documents"] if record.get("documents") else []
    lost += ["its description"] if dataset.info else []
    if lost:
        warnings.warn(
            f"{path.name}: CSV has no place for {' and '.join(lost)}; left out.", DroppedWarning, stacklevel=2
        )
    queries = record["queries"]
    further = sorted({key for query in queries for key in query if key not in COLUMNS})
    write_rows(path, (*COLUMNS, *further), (_row(query) for query in queries), force=force)


def _row(query: Record) -> Record:
    ids = query["relevant_documents"]
    plain = all(doc_id and not set(doc_id) & set(';[" ') for doc_id in ids)
    joined = ";".join(ids) if plain else encode(ids).decode()
    return {key: _cell(value) for key, value in {**query, "relevant_documents": joined}.items()}


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else encode(value).decode()


def _query(row: dict[str, str], where: str) -> Record:
    query: Record = {name: text for name, text in row.items() if text != ""}
    for name in _JSON_COLUMNS:
        if name in query:
            query[name] = parse_json(query[name].encode(), f"{where}: {name}", hint="Write JSON in the cell.")
    ids = query.get("relevant_documents", "")
    if ids.startswith("["):
        query["relevant_documents"] = parse_json(ids.encode(), f"{where}: relevant_documents")
    else:
        query["relevant_documents"] = [doc_id.strip() for doc_id in ids.split(";") if doc_id.strip()]
    query.setdefault("query_text", "")
    return query


def write_rows(
    path: Path, columns: Iterable[str], rows: Iterable[dict[str, str]], *, force: bool = False
) -> None:
    """Write a table; cells that a spreadsheet would execute are given a leading apostrophe."""
    text = io.StringIO(newline="")
    columns = list(columns)
    table = csv.writer(text, lineterminator="\r\n")
    table.writerow(neutral(column) for column in columns)
    for row in rows:
        table.writerow(neutral(row.get(column, "")) for column in columns)
    try:
        content = text.getvalue().encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError("a text", "holds half of a surrogate pair.", fix="Clean the text first.") from error
    write_bytes(path, packed(content) if path.suffix == ".gz" else content, force=force)


def read_rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """(number of the row, its cells by column) of a table; the heading is row 1."""
    content = read_content(path)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        what = f"byte {error.start + 1} is not UTF-8 ({error.reason})."
        raise DataError(path.name, what, fix="Save the file as UTF-8.") from error
    before = csv.field_size_limit(_MAX_CELL)
    try:
        table = csv.reader(io.StringIO(text, newline=""), strict=True)
        yield from _rows(table, path.name)
    except csv.Error as error:
        raise DataError(path.name, f"not CSV: {error}.", fix="Are all quotes closed?") from error
    finally:
        csv.field_size_limit(before)


def _rows(table: Iterable[list[str]], name: str) -> Iterator[tuple[int, dict[str, str]]]:
    columns: list[str] = []
    for number, cells in enumerate(table, start=1):
        if number == 1:
            columns = [restored(cell).strip() for cell in cells]
            repeated = {column for column in columns if columns.count(column) > 1}
            if repeated:
                raise DataError(f"{name}: row 1", f"the column {sorted(repeated)[0]!r:.60} occurs twice.")
        elif any(cells):
            if len(cells) > len(columns):
                what = f"there are {len(cells)} cells in {len(columns)} columns."
                raise DataError(f"{name}: row {number}", what, fix="Put texts with commas in quotes.")
            yield number, dict(zip(columns, map(restored, cells), strict=False))


def neutral(cell: str) -> str:
    """A cell that a spreadsheet shows and does not execute."""
    return f"'{cell}" if cell.startswith(_ACTIVE) else cell


def restored(cell: str) -> str:
    """The cell as it was before `neutral`."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_ACTIVE) else cell
