"""`<id>.queries.parquet`: the per-query part of a large run, in columns.

The columns are the fields of `query_results`: `individual_metrics`, `statistics` and `not_measured` are
structs with a field for each metric, `citations` is JSON text. pandas, DuckDB and Polars read it as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ...core.scores import Note, Scores, as_columns, cluster_of, clusters_or_none
from ...core.scoring import Tally
from ...core.types import (
    EvaluationSample,
    SampleScore,
    SystemOutputs,
    gold_documents,
    known_scores,
    retrieved_ids,
)
from ...errors import DataError
from ...read.text import parse_json
from ..files import file_sha256
from ..jsonl import encode, opened
from ..parquet import import_pyarrow, not_parquet
from .document import EDITED, Row, citations, latency_ms, tally_of

QUERIES_SUFFIX = ".queries.parquet"
# Rows in memory while a run is written; smaller groups compress worse.
ROWS_IN_A_GROUP = 20_000
# The columns without which a file is not one of ours.
_NEEDED = {"query_id", "cluster", "latency_ms", "error", "citations"}
_MOST_BYTES = 2**31 - 1  # of the texts of an Arrow array
_BY_METRIC = ("individual_metrics", "statistics", "not_measured")


class QueriesWriter:
    """Writes rows as they come, in groups: no more than one group is in memory."""

    def __init__(self, file: BinaryIO, metrics: Sequence[str]) -> None:
        self._pyarrow, parquet = import_pyarrow()
        self.metrics = tuple(metrics)
        self.rows = 0
        self._file = file
        self._schema = _schema(self._pyarrow, self.metrics)
        self._writer = parquet.ParquetWriter(self._pyarrow.PythonFile(self._file, mode="w"), self._schema)
        self._waiting: list[Any] = []
        self._waiting_rows = 0

    def add_rows(self, rows: Sequence[Row]) -> None:
        """Write rows as the JSON has them."""
        packed = [{**row, "citations": _text(row.get("citations"))} for row in rows]
        if packed:
            self._add(self._pyarrow.Table.from_pylist(packed, schema=self._schema))

    def add(
        self,
        samples: Sequence[EvaluationSample],
        outputs: Sequence[SystemOutputs],
        scores: Mapping[str, Sequence[SampleScore]],
    ) -> None:
        """Write samples with their outputs and scores."""
        by_metric = [_score_columns(self._pyarrow, as_columns(scores[name])) for name in self.metrics]
        texts = self._text_columns(samples, outputs)
        arrays = [texts[field.name] for field in self._schema if field.name not in _BY_METRIC]
        for place, name in enumerate(_BY_METRIC if self.metrics else ()):
            fields = list(self._schema.field(name).type)
            arrays.append(
                self._pyarrow.StructArray.from_arrays(
                    [columns[place] for columns in by_metric], fields=fields
                )
            )
        self._add(self._pyarrow.Table.from_arrays(arrays, schema=self._schema))

    def finish(self) -> str:
        """Write the rest and the footer; return the sha256 of the file."""
        self._write()
        self._writer.close()
        self._file.flush()
        return file_sha256(Path(self._file.name))

    def close(self) -> None:
        """Close a file that will not be finished; one that is finished stays as it is."""
        with suppress(OSError):  # the error that ended the run is raised, not this one
            self._writer.close()

    def _text_columns(
        self, samples: Sequence[EvaluationSample], outputs: Sequence[SystemOutputs]
    ) -> dict[str, Any]:
        """The columns that do not depend on metrics."""
        cited = [_text(citations(output)) if output.response.metadata else None for output in outputs]
        failed = [
            output.error and {"type": output.error.type, "message": output.error.message}
            for output in outputs
        ]
        columns: dict[str, list[Any]] = {
            "query_id": [sample.sample_id for sample in samples],
            "query_text": [sample.query for sample in samples],
            "cluster": [cluster_of(sample) for sample in samples],
            "latency_ms": [latency_ms(output) for output in outputs],
            "generated_answer": [None if output.error else output.response.text for output in outputs],
            "citations": cited,
            "error": failed,
        }
        arrays = {
            name: _array(self._pyarrow, column, self._schema.field(name).type)
            for name, column in columns.items()
        }
        # A column for each field: Arrow takes twice as long for a list of dicts.
        retrieved: dict[str, list[Any]] = {
            "retrieved_docs": [retrieved_ids(output.retrieved) for output in outputs],
            "relevance_scores": [known_scores(output.retrieved) for output in outputs],
            "ground_truth_relevant": [[doc.doc_id for doc in gold_documents(each)] for each in samples],
        }
        fields = list(self._schema.field("retrieval_results").type)
        lists = [_array(self._pyarrow, retrieved[field.name], field.type) for field in fields]
        arrays["retrieval_results"] = self._pyarrow.StructArray.from_arrays(lists, fields=fields)
        return arrays

    def _add(self, table: Any) -> None:
        self.rows += table.num_rows
        self._waiting.append(table)
        self._waiting_rows += table.num_rows
        if self._waiting_rows >= ROWS_IN_A_GROUP:
            self._write()

    def _write(self) -> None:
        if self._waiting:
            table = self._pyarrow.concat_tables(self._waiting)
            self._writer.write_table(table, row_group_size=ROWS_IN_A_GROUP)
        self._waiting, self._waiting_rows = [], 0


class ParquetRows:
    """Rows that are in a Parquet file beside the results file."""

    def __init__(self, path: Path, *, sha256: str | None = None) -> None:
        self.path = path
        self._pyarrow, self._parquet = import_pyarrow()
        if sha256 is not None and file_sha256(path) != sha256:
            what = "is not the file that the results were stored with: its sha256 is another."
            fix = "If the run was killed while its results were replaced, resume it (--resume)."
            raise DataError(path.name, what, fix=fix)

    @cached_property
    def ids(self) -> list[str]:
        ids: list[str] = self._columns("query_id").column(0).to_pylist()
        return ids

    def scores(self, name: str) -> Scores:
        if name not in self.metrics:
            return Scores([], [])
        # Null becomes NaN. Not by Arrow's `to_numpy`, which imports pandas if it is installed: 40 MB.
        column = self._of_metric("individual_metrics", name)
        values = np.array(column.to_pylist(), dtype=np.float64)
        parts = self._of_metric("statistics", name)
        unmeasured = np.flatnonzero(np.isnan(values))
        unmeasured_notes: list[Any] = []
        if len(unmeasured):
            notes = self._of_metric("not_measured", name)
            unmeasured_notes = notes.take(self._pyarrow.array(unmeasured)).to_pylist()
        scores = Scores(
            self.ids,
            values,
            # Without a look at the lists, and so without the 30 MB of Arrow's functions.
            parts=None if parts.null_count == len(parts) else _parts(parts),
            notes={
                place: Note((note or {}).get("reason") or "", bool((note or {}).get("failed")))
                for place, note in zip(unmeasured.tolist(), unmeasured_notes, strict=True)
            },
        )
        scores.clusters = self._clusters
        return scores

    @cached_property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that the rows have scores of."""
        if "individual_metrics" not in self._by_metric.column_names:
            return ()
        return tuple(field.name for field in self._by_metric.schema.field("individual_metrics").type)

    def rows(self) -> Iterator[Row]:
        with opened(self.path) as file:
            reader = self._opened(file)
            for batch in reader.iter_batches():
                for row in batch.to_pylist():
                    yield _unpacked(row)

    def tally(self) -> Tally:
        table = self._columns("latency_ms", "error")
        errors = (error and (error["type"], error["message"]) for error in table.column("error").to_pylist())
        return tally_of(zip(table.column("latency_ms").to_pylist(), errors, strict=True))

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def _by_metric(self) -> Any:
        return self._columns(*_BY_METRIC)

    @cached_property
    def _clusters(self) -> Any:
        column = self._columns("cluster").column(0)
        return None if column.null_count == len(column) else clusters_or_none(self.ids, column.to_pylist())

    def _of_metric(self, name: str, metric: str) -> Any:
        column = self._by_metric.column(name)
        place = column.type.get_field_index(metric)
        kind = column.type.field(place).type
        # By number: a metric's name may hold dots, which mean something else in a path.
        chunks = [chunk.flatten()[place] for chunk in column.chunks]
        return self._pyarrow.concat_arrays(chunks) if chunks else self._pyarrow.nulls(0, kind)

    def _columns(self, *names: str) -> Any:
        with opened(self.path) as file:
            reader = self._opened(file)
            present = [name for name in names if name in reader.schema_arrow.names]
            try:
                return reader.read(columns=present)
            except (self._pyarrow.ArrowException, OSError, ValueError) as error:
                raise not_parquet(self.path.name) from error

    def _opened(self, file: BinaryIO) -> Any:
        try:
            reader = self._parquet.ParquetFile(self._pyarrow.PythonFile(file, mode="r"))
        except (self._pyarrow.ArrowException, OSError, ValueError) as error:
            raise not_parquet(self.path.name) from error
        if _NEEDED - set(reader.schema_arrow.names):
            raise DataError(self.path.name, "does not hold the rows of a run.", fix=EDITED)
        return reader


def _schema(pyarrow: Any, metrics: Sequence[str]) -> Any:
    text, number = pyarrow.string(), pyarrow.float64()
    fields = [
        ("query_id", text),
        ("query_text", text),
        ("cluster", text),
        ("latency_ms", number),
        (
            "retrieval_results",
            pyarrow.struct(
                [
                    ("retrieved_docs", pyarrow.list_(text)),
                    ("relevance_scores", pyarrow.list_(number)),
                    ("ground_truth_relevant", pyarrow.list_(text)),
                ]
            ),
        ),
        ("generated_answer", text),
        ("citations", text),
        ("error", pyarrow.struct([("type", text), ("message", text)])),
    ]
    if metrics:  # Parquet knows no struct without fields
        for name, kind in zip(_BY_METRIC, (number, pyarrow.list_(number), _note(pyarrow)), strict=True):
            fields.append((name, pyarrow.struct([(metric, kind) for metric in metrics])))
    return pyarrow.schema(fields)


def _score_columns(pyarrow: Any, scores: Scores) -> tuple[Any, Any, Any]:
    """A metric's values, statistics and notes as Arrow arrays."""
    reasons: list[Row | None] = [None] * len(scores)
    for place, (reason, failed) in scores.notes.items():
        reasons[place] = {"reason": reason, "failed": failed}
    statistics: list[list[float] | None] = [None] * len(scores)
    if scores.parts is not None:
        rows = zip(np.isnan(scores.values), scores.parts.tolist(), strict=True)
        statistics = [None if is_unmeasured else row for is_unmeasured, row in rows]
    return (
        _array(pyarrow, scores.values, pyarrow.float64()),
        _array(pyarrow, statistics, pyarrow.list_(pyarrow.float64())),
        _array(pyarrow, reasons, _note(pyarrow)),
    )


def _note(pyarrow: Any) -> Any:
    return pyarrow.struct([("reason", pyarrow.string()), ("failed", pyarrow.bool_())])


def _array(pyarrow: Any, values: Any, kind: Any) -> Any:
    """Return an Arrow array of numbers, texts, truth values, or lists or objects of these; NaN becomes null.

    `pyarrow.array` returns the same, but imports pandas if that is installed: 0.3 s and 50 MB.
    """
    if kind.equals(pyarrow.float64()):
        numbers = np.asarray(values, dtype=np.float64)  # None becomes NaN
        unknown = np.isnan(numbers)
        known = pyarrow.py_buffer(_bits(~unknown)) if unknown.any() else None
        return pyarrow.Array.from_buffers(kind, len(numbers), [known, pyarrow.py_buffer(numbers)])
    nulls = values.count(None)
    if nulls == len(values):
        return pyarrow.nulls(nulls, kind)
    content: list[Any] = []
    children: list[Any] = []
    if kind.equals(pyarrow.string()):
        texts = [text or "" for text in values] if nulls else values
        data = "".join(texts).encode()
        # By one search for separators: a look at each text would take most of the time.
        ends = np.flatnonzero(np.frombuffer("\0".join([*texts, ""]).encode(), np.uint8) == 0)
        if len(ends) != len(texts) or len(data) > _MOST_BYTES:
            return pyarrow.array(values, kind)  # a text has the separator, or the array several chunks
        content = [_offsets(ends - np.arange(len(texts))), data]
    elif pyarrow.types.is_list(kind):
        lists = [each or () for each in values]
        content = [_offsets(np.cumsum(list(map(len, lists))))]
        children = [_array(pyarrow, list(chain.from_iterable(lists)), kind.value_type)]
    elif pyarrow.types.is_struct(kind):
        columns = ([each and each[field.name] for each in values] for field in kind)
        children = [_array(pyarrow, column, field.type) for column, field in zip(columns, kind, strict=True)]
    else:
        content = [_bits([bool(value) for value in values])]
    known = _bits([value is not None for value in values]) if nulls else None
    buffers = [part if part is None else pyarrow.py_buffer(part) for part in (known, *content)]
    return pyarrow.Array.from_buffers(kind, len(values), buffers, children=children)


def _bits(flags: Any) -> Any:
    return np.packbits(flags, bitorder="little")


def _offsets(ends: Any) -> Any:
    return np.append(0, ends).astype(np.int32)


def _parts(lists: Any) -> Any:
    """Lists as the rows of an array, short ones filled up with zeros; None where all are empty."""
    lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    width = int(lengths.max()) if len(lengths) else 0
    if not width:
        return None
    parts = np.zeros((len(lengths), width))
    parts[np.arange(width) < lengths[:, np.newaxis]] = lists.flatten().to_numpy(zero_copy_only=False)
    return parts


def _unpacked(row: Row) -> Row:
    """A row as the JSON has it: without what is not there."""
    if row["cluster"] is None:
        del row["cluster"]
    if row["error"] is None:
        del row["error"]
    cited = row.pop("citations")
    if cited is not None:
        row["citations"] = parse_json(cited.encode(), "citations")
    row.setdefault("individual_metrics", {})
    for name in ("statistics", "not_measured"):
        measured = {
            metric: value for metric, value in (row.pop(name, None) or {}).items() if value is not None
        }
        if measured:
            row[name] = measured
    return row


def _text(cited: list[Any] | None) -> str | None:
    return None if cited is None else encode(cited).decode()
