"""Results as other tools want them: the same document in YAML, and the rows as a CSV table.

One row per query: what was asked, retrieved and answered, one column per metric, and what went wrong. CSV has
no place for the head of the run and for fields without a column: they are left out with a warning. An empty
cell is a field that is absent or null.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...errors import DataError
from ...read.text import parse_json
from ..csv import DroppedWarning, in_the_table, joined_ids, read_rows, split_ids, write_rows
from ..documents import read_document, write_document
from ..jsonl import encode
from ..schema import DataFormatValidator, are_rows, check_no_errors, results_errors, rows_checker
from .document import Results, Row, check_version

_TEXTS = ("query_id", "query_text", "generated_answer", "cluster")
_IDS = ("retrieved_docs", "ground_truth_relevant")
_RETRIEVAL = ("retrieved_docs", "relevance_scores", "ground_truth_relevant")
_FIRST = ("query_id", "query_text", "latency_ms", *_RETRIEVAL, "generated_answer")
# Cells that hold JSON; all others are texts, ids or numbers.
_JSON = ("latency_ms", "relevance_scores", "error", "citations", "statistics", "not_measured")
_LAST = ("error", "cluster", "citations", "statistics", "not_measured")
_FIXED = frozenset((*_FIRST, *_LAST))
# The fields of a row, in the order of the results format.
_IN_ORDER: tuple[str, ...] = ("query_id", "query_text", "cluster", "latency_ms", "retrieval_results")
_IN_ORDER += ("generated_answer", "citations", "individual_metrics", "statistics", "not_measured", "error")


def load_results(path: str | Path) -> Results:
    """A results document from JSON or YAML; from CSV only `{"query_results": [...]}`.

    That document, the rows of a run without what the run was, is taken from JSON and YAML as well.
    """
    path = Path(path)
    if is_csv(path):
        return load_results_csv(path)
    document: Results = read_document(path)
    if isinstance(document, dict):
        check_version(document, path.name)
    checks = DataFormatValidator(lenient=are_rows(document))
    check_no_errors(checks.validate_evaluation_results(document), path.name)
    return document


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
    _check_rows(rows, path.name, range(2, len(rows) + 2))
    metrics = dict.fromkeys(name for row in rows for name in row.get("individual_metrics") or ())
    columns = [name for name in metrics if name not in _FIXED and name == name.strip() != ""]
    of_the_head = sorted(results.keys() - {"query_results"})
    fields = {name for row in rows for name in row} - set(_IN_ORDER)
    _warn_of_dropped(path.name, "the head of the run", of_the_head)
    _warn_of_dropped(path.name, "some fields", sorted(fields | (metrics.keys() - columns)))
    cells = (_cells(row, columns) for row in rows)
    write_rows(path, (*_FIRST, *columns, *_LAST), cells, force=force)


def _warn_of_dropped(name: str, part: str, dropped: Sequence[str]) -> None:
    if dropped:
        listed = ", ".join(dropped[:5]) + (f" and {len(dropped) - 5} more" if len(dropped) > 5 else "")
        message = f"{name}: CSV has no place for {part} ({listed}); left out."
        warnings.warn(message, DroppedWarning, stacklevel=3)


def load_results_csv(path: str | Path) -> Results:
    """The rows of a table that `save_results_csv` wrote."""
    path = Path(path)
    table = list(read_rows(path))
    rows = [_row(cells, f"{path.name}: row {number}") for number, cells in table]
    _check_rows(rows, path.name, [number for number, _ in table])
    return {"query_results": rows}


def _cells(row: Row, metrics: Sequence[str]) -> dict[str, str]:
    cells = {name: str(row[name]) for name in _TEXTS if row.get(name) is not None}
    cells |= {name: _text(row[name]) for name in _JSON if row.get(name) is not None}
    retrieval = row.get("retrieval_results") or {}
    cells |= {name: _text(retrieval[name]) for name in _RETRIEVAL if retrieval.get(name) is not None}
    cells |= {name: joined_ids(retrieval[name]) or "[]" for name in _IDS if retrieval.get(name) is not None}
    scores = row.get("individual_metrics") or {}
    return cells | {name: _text(scores[name]) for name in metrics if scores.get(name) is not None}


def _row(cells: Mapping[str, str], where: str) -> Row:
    """Return the row of a table's cells; every column that is not one of ours is a metric."""
    filled = {name: cell for name, cell in cells.items() if cell != ""}
    row: Row = {"retrieval_results": {}, "individual_metrics": {}}
    for name, cell in filled.items():
        place = f"{where}: {name}"
        if name in _TEXTS:
            row[name] = cell
        elif name in _RETRIEVAL:
            row["retrieval_results"][name] = (split_ids if name in _IDS else _parsed)(cell, place)
        elif name in _LAST:
            row[name] = _parsed(cell, place)
        elif name == "latency_ms":
            row[name] = _number(cell, place)
        else:
            row["individual_metrics"][name] = _number(cell, place)
    return {name: row[name] for name in _IN_ORDER if row.get(name) not in (None, {})}


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


def _check_rows(rows: Sequence[Row], where: str, numbers: Sequence[int]) -> None:
    document = {"query_results": rows}
    errors = [*rows_checker().errors(document), *results_errors(document)]
    check_no_errors([in_the_table(str(error), "query_results", numbers) for error in errors], where)
