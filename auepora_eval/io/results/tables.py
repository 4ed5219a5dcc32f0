"""Results as other tools want them: the same document in YAML, and the rows as a CSV table.

One row per query: what was asked, retrieved and answered, one column per metric, and what went wrong. CSV has
no place for the head of the run and for fields without a column: they are left out with a warning. An empty
cell is a field that is absent or null. A table is not read back as results, which have a head.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...errors import DataError, warn_user
from ..csv import DroppedWarning, joined_ids, write_rows
from ..documents import read_document, write_document
from ..jsonl import encode
from ..schema import DataFormatValidator, check_no_errors
from .document import Results, Row, check_version

_TEXTS = ("query_id", "query_text", "generated_answer", "cluster")
_IDS = ("retrieved_docs", "ground_truth_relevant")
_RETRIEVAL = ("retrieved_docs", "relevance_scores", "ground_truth_relevant")
_FIRST = ("query_id", "query_text", "latency_ms", *_RETRIEVAL, "generated_answer")
_LAST = ("error", "cluster", "citations", "statistics", "not_measured")
# Cells that hold JSON; all others are texts, ids or numbers.
_JSON = ("latency_ms", "error", "citations", "statistics", "not_measured")
_FIXED = frozenset((*_FIRST, *_LAST, "retrieval_results", "individual_metrics"))


def load_results(path: str | Path) -> Results:
    """Return a results document from JSON or YAML."""
    path = Path(path)
    if is_csv(path):
        what = "a table has the rows of a run, and not what the run was."
        raise DataError(path.name, what, fix="Name the .results.json; the answers go to score --outputs.")
    document: Results = read_document(path)
    if isinstance(document, dict):
        check_version(document, path.name)
    check_no_errors(DataFormatValidator().validate_evaluation_results(document), path.name)
    return document


def save_results(results: Results, path: str | Path, *, force: bool = False) -> None:
    """Write a results document as JSON or YAML, or its rows as CSV, by the name of the file."""
    path = Path(path)
    if is_csv(path):
        _save_rows(results, path, force=force)
    else:
        write_document(results, path, force=force)


def is_csv(path: Path) -> bool:
    """Return whether a file is CSV by its name."""
    return path.name.lower().removesuffix(".gz").endswith(".csv")


def _save_rows(results: Results, path: Path, *, force: bool) -> None:
    rows: list[Row] = results.get("query_results") or []
    metrics = dict.fromkeys(name for row in rows for name in row.get("individual_metrics") or ())
    columns = [name for name in metrics if name not in _FIXED and name == name.strip() != ""]
    fields = {name for row in rows for name in row} - _FIXED
    _warn_of_dropped(path.name, "the head of the run", sorted(results.keys() - {"query_results"}))
    _warn_of_dropped(path.name, "some fields", sorted(fields | (metrics.keys() - columns)))
    cells = (_cells(row, columns) for row in rows)
    write_rows(path, (*_FIRST, *columns, *_LAST), cells, force=force)


def _warn_of_dropped(name: str, part: str, dropped: Sequence[str]) -> None:
    if dropped:
        listed = ", ".join(dropped[:5]) + (f" and {len(dropped) - 5} more" if len(dropped) > 5 else "")
        message = f"{name}: CSV has no place for {part} ({listed}); left out."
        warn_user(message, DroppedWarning)


def _cells(row: Row, metrics: Sequence[str]) -> dict[str, str]:
    retrieval, scores = row.get("retrieval_results") or {}, row.get("individual_metrics") or {}
    cells = {name: str(row[name]) for name in _TEXTS if row.get(name) is not None}
    cells |= {name: _text(row[name]) for name in _JSON if row.get(name) is not None}
    cells |= {name: _text(retrieval[name]) for name in _RETRIEVAL if retrieval.get(name) is not None}
    cells |= {name: joined_ids(retrieval[name]) or "[]" for name in _IDS if retrieval.get(name) is not None}
    return cells | {name: _text(scores[name]) for name in metrics if scores.get(name) is not None}


def _text(value: Any) -> str:
    return encode(value).decode()
