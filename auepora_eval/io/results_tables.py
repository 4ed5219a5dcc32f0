"""Results as other tools want them: the same document in YAML, and the rows as a CSV table.

A row a query: what was asked, found and answered, a column a metric, and what went wrong. There is no place
for the head of the run; it is left out, and a warning says so. An empty cell is a field that is not there;
what a cell cannot say (a null, an empty text, a field that we do not know) is JSON in the column `further`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import DataError
from .document_file import read_document, write_document
from .eval_csv import DroppedWarning, in_the_table, joined_ids, read_rows, split_ids, write_rows
from .json_text import kind_of, parse_json
from .jsonl import encode
from .refusal import refuse_errors
from .results_json import refuse_newer
from .schema import Checker, schema

Row = dict[str, Any]
Results = dict[str, Any]
_TEXTS = ("query_id", "query_text", "generated_answer", "cluster")
_IDS = ("retrieved_docs", "ground_truth_relevant")
_RETRIEVAL = ("retrieved_docs", "relevance_scores", "ground_truth_relevant")
_FIRST = ("query_id", "query_text", "latency_ms", *_RETRIEVAL, "generated_answer")
_JSON = ("latency_ms", "relevance_scores", "error", "citations", "statistics", "not_measured")
_LAST = ("error", "cluster", "citations", "statistics", "not_measured", "further")
_FIXED = frozenset((*_FIRST, *_LAST))
_IN_ORDER: tuple[str, ...] = ("query_id", "query_text", "cluster", "latency_ms", "retrieval_results")
_IN_ORDER += ("generated_answer", "citations", "individual_metrics", "statistics", "not_measured", "error")


def load_results(path: str | Path, *, lenient: bool = False) -> Results:
    """A results document from JSON or YAML; from CSV only `{"query_results": [...]}`.

    That document, the rows of a run without what the run was, is taken from JSON and YAML as well.
    """
    from .validation import DataFormatValidator

    path = Path(path)
    if is_csv(path):
        return load_results_csv(path)
    document: Results = read_document(path)
    if isinstance(document, dict):
        refuse_newer(document, path.name)
    checks = DataFormatValidator(lenient=lenient or are_rows(document))
    refuse_errors(checks.validate_evaluation_results(document), path.name)
    return document


def are_rows(document: Any) -> bool:
    """Whether a document is the rows of a run and nothing else, as a table becomes one."""
    return isinstance(document, dict) and document.keys() == {"query_results"}


def save_results(results: Results, path: str | Path, *, force: bool = False) -> None:
    """Write a results document as JSON or YAML, or its rows as CSV, by the name of the file."""
    path = Path(path)
    if is_csv(path):
        save_results_csv(results, path, force=force)
    else:
        write_document(results, path, force=force)


def is_csv(path: Path) -> bool:
    """Whether a file is CSV by its name."""
    return path.name.lower().removesuffix(".gz").endswith(".csv")


def save_results_csv(results: Results, path: str | Path, *, force: bool = False) -> None:
    """Write the rows of a results document as a table."""
    path = Path(path)
    rows: list[Row] = results.get("query_results") or []
    _refuse_wrong_rows(rows, path.name, range(2, len(rows) + 2))
    left_out = sorted(results.keys() - {"query_results"})
    if left_out:
        what = ", ".join(left_out[:5]) + (f" and {len(left_out) - 5} more" if len(left_out) > 5 else "")
        warnings.warn(
            f"{path.name}: CSV has no place for the head of the run ({what}); left out.",
            DroppedWarning,
            stacklevel=2,
        )
    metrics = dict.fromkeys(name for row in rows for name in row.get("individual_metrics") or ())
    columns = (*_FIRST, *(name for name in metrics if _is_column(name)), *_LAST)
    write_rows(path, columns, map(_cells, rows), force=force)


def load_results_csv(path: str | Path) -> Results:
    """The rows of a table that `save_results_csv` wrote."""
    path = Path(path)
    table = list(read_rows(path))
    rows = [_row(cells, f"{path.name}: row {number}") for number, cells in table]
    _refuse_wrong_rows(rows, path.name, [number for number, _ in table])
    return {"query_results": rows}


def _is_column(metric: str) -> bool:
    return metric not in _FIXED and metric == metric.strip() != ""


def _cells(row: Row) -> dict[str, str]:
    cells = {name: row[name] for name in _TEXTS if row.get(name) and isinstance(row[name], str)}
    cells |= {name: _text(row[name]) for name in _JSON if row.get(name) is not None}
    found = row.get("retrieval_results") or {}
    cells |= {name: _text(found[name]) for name in _RETRIEVAL if found.get(name) is not None}
    cells |= {name: joined_ids(found[name]) or "[]" for name in _IDS if found.get(name) is not None}
    scores = row.get("individual_metrics") or {}
    cells |= {name: _text(value) for name, value in scores.items() if value is not None and _is_column(name)}
    further = _difference(row, _row(cells, ""))
    return cells | ({"further": _text(further)} if further else {})


def _row(cells: dict[str, str], where: str) -> Row:
    """The row that cells tell of, without what they leave out."""
    there = {name: cell for name, cell in cells.items() if cell != ""}
    row: Row = {name: there[name] for name in _FIRST if name in there and name in _TEXTS}
    if "latency_ms" in there:
        row["latency_ms"] = _number(there["latency_ms"], f"{where}: latency_ms")
    found = {name: _ids_or_numbers(there[name], name, where) for name in _RETRIEVAL if name in there}
    scores = {name: _number(cell, f"{where}: {name}") for name, cell in there.items() if name not in _FIXED}
    if found:
        row["retrieval_results"] = found
    if scores:
        row["individual_metrics"] = scores
    for name in _LAST:
        if name in there and name != "further":
            row[name] = there[name] if name in _TEXTS else _parsed(there[name], f"{where}: {name}")
    row = _merged(row, there.get("further", "{}"), f"{where}: further")
    return {name: row[name] for name in _IN_ORDER if name in row} | row


def _difference(row: Row, shown: Row) -> Row:
    """What must be set in `shown` to get the row; of the parts of a part only those that differ."""
    further: Row = {}
    for name, value in row.items():
        if name in shown and isinstance(value, dict) and isinstance(shown[name], dict):
            parts = {key: part for key, part in value.items() if key not in shown[name]}
            further |= {name: parts} if parts else {}
        elif name not in shown:
            further[name] = value
    return further


def _merged(row: Row, further: str, where: str) -> Row:
    more = _parsed(further, where)
    if not isinstance(more, dict):
        raise DataError(where, f"an object was expected, not {kind_of(more)}.", fix="Write JSON, or nothing.")
    for name, value in more.items():
        both = isinstance(value, dict) and isinstance(row.get(name), dict)
        row[name] = {**row[name], **value} if both else value
    return row


def _ids_or_numbers(cell: str, name: str, where: str) -> Any:
    where = f"{where}: {name}"
    return split_ids(cell, where) if name in _IDS else _parsed(cell, where)


def _text(value: Any) -> str:
    return encode(value).decode()


def _parsed(cell: str, where: str) -> Any:
    return parse_json(cell.encode(), where, hint="Write JSON in the cell.")


def _number(cell: str, where: str) -> Any:
    try:
        return _parsed(cell, where)
    except DataError as error:
        raise DataError(
            where, f"{cell!r:.60} is not a number.", fix="Write one, or leave it empty."
        ) from error


def _refuse_wrong_rows(rows: Sequence[Row], where: str, numbers: Sequence[int]) -> None:
    from .format_checks import results_errors

    document = {"query_results": rows}
    errors = [*rows_checker().errors(document), *results_errors(document)]
    refuse_errors([in_the_table(str(error), "query_results", numbers) for error in errors], where)


@cache
def rows_checker() -> Checker:
    """The part of the schema that is about rows."""
    whole = schema("evaluation_results")
    rows = {"query_results": whole["properties"]["query_results"]}
    return Checker({"type": "object", "properties": rows, "$defs": whole["$defs"]}, "query_results")
