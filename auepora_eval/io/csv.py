"""CSV: the queries of a dataset as a table that a spreadsheet opens.

A row a query, with the columns of `.eval.json`; lists and objects are JSON text, ids are joined by ';'.
There is no place for the corpus and the description: they are left out, and a warning says so. An empty
cell is a field that is not there; what a cell cannot say is JSON in the column `further`.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..core.dataset import EvaluationDataset, InMemoryDataset
from ..errors import DataError, warn_user
from ..read.text import check_same_text, kind_of, parse_json
from .documents import packed, read_content
from .eval_json import Record, dataset_from_record, record_from_dataset
from .files import stem, write_bytes
from .jsonl import encode
from .schema import ErrorsError

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
FURTHER = "further"
# Characters; the default of 131,072 is less than a long document has.
_MAX_CELL = 8_000_000
# A spreadsheet takes a cell that starts with one of these for a formula, or swallows the first of them.
_ACTIVE = tuple("=+-@\t\r\n'＝＋－＠")
# A number may start with a sign without being a formula.
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")


class DroppedWarning(UserWarning):
    """The format has no place for a part of the data; that part was left out."""


def load_eval_csv(path: str | Path) -> InMemoryDataset:
    """Load a dataset from a CSV file with the columns of `.eval.json`."""
    path = Path(path)
    rows = list(read_rows(path))
    queries = [_query(row, f"{path.name}: row {number}") for number, row in rows]
    record = {"dataset_id": stem(path), "name": stem(path), "version": "1.0.0", "queries": queries}
    try:
        samples = list(dataset_from_record(record, path.name))
    except ErrorsError as error:
        numbers = [number for number, _ in rows]
        errors = [in_the_table(each, "queries", numbers) for each in error.errors]
        raise ErrorsError(error.where, errors) from error
    for sample in samples:
        for doc in (*(sample.relevant_docs or ()), *(sample.candidate_docs or ())):
            if not doc.text:  # it was in the corpus, which is not here
                doc.metadata.setdefault("text_missing", True)
    return InMemoryDataset(stem(path), samples)


def in_the_table(error: str, rows: str, numbers: Sequence[int]) -> str:
    """An error with the number that its row has in the table; people count from 1, the heading too."""
    return re.sub(rf"\$\.{rows}\[([0-9]+)\]", lambda match: f"row {numbers[int(match[1])]}", error)


def save_eval_csv(dataset: EvaluationDataset, path: str | Path, *, force: bool = False) -> None:
    """Write the queries of a dataset."""
    path = Path(path)
    record = record_from_dataset(dataset)
    lost = [f"its {len(record['documents'])} documents"] if record.get("documents") else []
    lost += ["its description"] if dataset.info else []
    if lost:
        warn_user(f"{path.name}: CSV has no place for {' and '.join(lost)}; left out.", DroppedWarning)
    rows = [_row(query) for query in record["queries"]]
    more = {name for row in rows for name in row} - {*COLUMNS, FURTHER}
    last = (FURTHER,) if any(FURTHER in row for row in rows) else ()
    write_rows(path, (*COLUMNS, *sorted(more), *last), rows, force=force)


def _row(query: Record) -> dict[str, str]:
    """The cells of a query; what a cell cannot say (an empty text, another type) is in the last one."""
    row: dict[str, str] = {"relevant_documents": joined_ids(query["relevant_documents"])}
    further: Record = {}
    for name, value in query.items():
        if name in _JSON_COLUMNS:
            row[name] = encode(value).decode()
        elif isinstance(value, str) and value and name == name.strip() not in ("", FURTHER):
            row[name] = value
        elif name not in ("relevant_documents", "query_text"):
            further[name] = value
    return row | ({FURTHER: encode(further).decode()} if further else {})


def _query(row: dict[str, str], where: str) -> Record:
    query: Record = {name: text for name, text in row.items() if text != ""}
    for name in (*_JSON_COLUMNS, FURTHER):
        if name in query:
            query[name] = parse_json(query[name].encode(), f"{where}: {name}", hint="Write JSON in the cell.")
    ids = query.get("relevant_documents", "")
    query["relevant_documents"] = split_ids(ids, f"{where}: relevant_documents")
    query.setdefault("query_text", "")
    further = query.pop(FURTHER, {})
    if not isinstance(further, dict):
        what = f"an object was expected, not {kind_of(further)}."
        raise DataError(f"{where}: {FURTHER}", what, fix="Write JSON, or nothing.")
    return query | further


def joined_ids(ids: Sequence[str]) -> str:
    """Ids in one cell: a;b;c, or a JSON array where an id could be mistaken."""
    plain = all(text and not set(text) & set(';["') and text == text.strip() for text in ids)
    return ";".join(ids) if plain else encode(ids).decode()


def split_ids(cell: str, where: str) -> Any:
    """What `joined_ids` joined."""
    if cell.startswith("["):
        return parse_json(cell.encode(), where, hint="Write ids with ; between them.")
    return [text.strip() for text in cell.split(";") if text.strip()]


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


def read_rows(
    path: Path, delimiter: str = ",", *, is_ours: bool = True
) -> Iterator[tuple[int, dict[str, str]]]:
    """(number of the row, its cells by column) of a table; the heading is row 1.

    In a table of ours, an apostrophe that `neutral` put in front is taken away; others keep theirs.
    """
    content = read_content(path)
    check_same_text(content, path.name)
    text = content.decode("utf-8")
    if not text.strip():
        raise DataError(path.name, "there is nothing in it.", fix="Begin with a row of column names.")
    # The limit is one of the whole process: put it back.
    before = csv.field_size_limit(_MAX_CELL)
    try:
        table = csv.reader(io.StringIO(text, newline=""), strict=True, delimiter=delimiter)
        yield from _rows(table, path.name, restored if is_ours else str)
    except csv.Error as error:
        where = f"{path.name}:{table.line_num}"
        raise DataError(
            where, f"not CSV: {error}.", fix='Write "" for a quote in a text, and close them all.'
        ) from error
    finally:
        csv.field_size_limit(before)


def check_columns(columns: Sequence[str], where: str) -> None:
    """Raise DataError for a heading with the same name twice: one of the columns would be lost."""
    repeated = [column for column, count in Counter(columns).items() if count > 1]
    if repeated:
        what = f"the column {sorted(repeated)[0]!r:.60} occurs twice."
        raise DataError(where, what, fix="Keep one of them.")


def _rows(
    table: Iterable[list[str]], name: str, read: Callable[[str], str]
) -> Iterator[tuple[int, dict[str, str]]]:
    columns: list[str] = []
    for number, cells in enumerate(table, start=1):
        if number == 1:
            columns = [read(cell).strip() for cell in cells]
            check_columns(columns, f"{name}: row 1")
        elif any(cells):
            if len(cells) > len(columns):
                what = f"there are {len(cells)} cells in {len(columns)} columns."
                raise DataError(f"{name}: row {number}", what, fix="Put texts with commas in quotes.")
            yield number, dict(zip(columns, map(read, cells), strict=False))


def neutral(cell: str) -> str:
    """A cell that a spreadsheet shows and does not execute; a number is not a formula, whatever its sign."""
    return f"'{cell}" if cell.startswith(_ACTIVE) and not _NUMBER.fullmatch(cell) else cell


def restored(cell: str) -> str:
    """The cell as it was before `neutral`."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(_ACTIVE) else cell
