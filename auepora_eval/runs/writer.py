"""A run on its way to the disk: samples, outputs and rows go by, the head comes last."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO

import msgspec

from ..core.batch import Batch
from ..core.fingerprint import Fingerprint
from ..core.scoring import Tally
from ..core.seen import SeenIds
from ..core.types import EvaluationRun, SampleScore
from ..errors import DataError, MissingDependencyError
from ..io.atomic import written
from ..io.json_text import kind_of
from ..io.jsonl import encode
from ..io.queries_parquet import QueriesWriter
from ..io.query_rows import query_results
from ..io.records import prediction_record, sample_record
from ..io.results_json import results_head
from .journal import HEADER, JOURNAL
from .replaced_parts import forget_parts, keep_parts, made_folder

RUN_FILES = ("samples.jsonl", "outputs.jsonl")
ROWS_IN_THE_JSON = 10_000  # a run of more samples has its rows in a Parquet file beside


class RunWriter:
    """Writes a run piece by piece; `finish` gives it its name."""

    def __init__(
        self,
        path: Path,
        samples: BinaryIO,
        outputs: BinaryIO | None,
        rows: IO[bytes],
        queries: Callable[[], tuple[str, BinaryIO]],
        *,
        force: bool,
        rows_in_the_json: int = ROWS_IN_THE_JSON,
        all_differ: bool = False,
        name_the_rest: Callable[[], None] | None = None,
    ) -> None:
        self._name_the_rest = name_the_rest
        self._path, self._samples, self._outputs, self._rows = path, samples, outputs, rows
        self._open_queries, self._force, self._limit = queries, force, rows_in_the_json
        self._queries: QueriesWriter | None = None
        self._queries_name = ""
        self._fingerprint = Fingerprint()
        self._ids = None if all_differ else SeenIds()
        self.tally = Tally()

    def add(self, batch: Batch, scores: Mapping[str, Sequence[SampleScore]]) -> None:
        """Write further samples with their outputs and scores."""
        self._refuse_repeated(batch)
        self.tally.add(batch.outputs)
        for sample, output in zip(batch.samples, batch.outputs, strict=True):
            record = prediction_record(sample.sample_id, output)
            self._fingerprint.add([record])
            self._samples.write(encode(sample_record(sample)) + b"\n")
            if self._outputs is not None:  # else they are in the run's journal
                self._outputs.write(encode(record) + b"\n")
        if self._queries is None and self.tally.total > self._limit:
            self._begin_queries(list(scores))
        if self._queries is not None:
            self._queries.add(batch.samples, batch.outputs, scores)
            return
        for row in query_results(batch.samples, batch.outputs, scores):
            self._rows.write((b",\n" if self._rows.tell() else b"") + encode(row))

    def finish(self, run: EvaluationRun) -> Path:
        """Write the results file: the head of the run, and the rows that went by."""
        head = results_head(run, self.tally, self._fingerprint.hexdigest())
        if self._queries is not None:
            digest = self._queries.finish()
            head["queries_file"] = {
                "name": self._queries_name,
                "sha256": digest,
                "rows": self._queries.rows,
            }
        text = indented(with_metadata(head, "standard", self._path)).removesuffix(b"\n}\n")
        self._rows.seek(0)
        if self._name_the_rest is not None:
            self._name_the_rest()
        with written(self._path, force=self._force) as file:
            file.write(text + b',\n  "query_results": [\n')
            if self._queries is None:
                shutil.copyfileobj(self._rows, file)
            file.write(b"\n  ]\n}\n")
        return self._path

    def close(self) -> None:
        """Let go of what is not finished."""
        if self._queries is not None:
            self._queries.close()

    def _refuse_repeated(self, batch: Batch) -> None:
        if self._ids is not None and not all(map(self._ids.add, batch.sample_ids())):
            raise DataError(
                self._path.name,
                "two samples of the run have the same sample_id.",
                fix="Scores are matched by id: give each sample its own.",
            )

    def _begin_queries(self, metrics: Sequence[str]) -> None:
        """From here on rows go to Parquet, with those that are in the temporary file already."""
        try:
            import pyarrow  # noqa: F401 - asked before a file is opened for it

            self._queries_name, file = self._open_queries()
            self._queries = QueriesWriter(file, metrics)
        except (ImportError, MissingDependencyError):
            warnings.warn(
                f"the run has over {self._limit:,} samples. With pip install 'auepora-eval[parquet]' their "
                "rows would go to a file of their own; they stay in the results file.",
                stacklevel=3,
            )
            self._limit = 2**63
            return
        self._rows.seek(0)
        waiting = [msgspec.json.decode(line.rstrip(b",\n")) for line in self._rows]
        self._queries.add_rows(waiting)
        self._rows.seek(0)
        self._rows.truncate()


@contextmanager
def run_writer(
    path: Path,
    folder: Path,
    queries: Path,
    *,
    replaced: str | None,
    force: bool,
    rows_in_the_json: int,
    with_outputs: bool,
    all_differ: bool,
) -> Iterator[RunWriter]:
    """A writer of a results file, of the run's folder, and of the rows beside if they are many.

    `replaced` is the hash of the outputs that the results are of which are there: their parts are kept until
    the new results have their name.
    """
    begun: list[Path] = []
    # Of two writers of one id the first to name its results file wins (`finish`); only then do the
    # other files get their names, so that they are never those of the loser. A run with a journal has
    # one writer, by its lock: its results file comes last, and whoever sees it sees a whole run.
    with made_folder(folder), TemporaryFile(dir=folder) as rows, ExitStack() as stack:

        def open_queries() -> tuple[str, BinaryIO]:
            begun.append(queries)
            return queries.name, stack.enter_context(written(queries, force=True))

        def name_the_rest() -> None:
            if replaced is not None:
                keep_parts(folder, (folder / RUN_FILES[0], queries), replaced)
            stack.close()

        names = RUN_FILES if with_outputs else RUN_FILES[:1]
        files = [stack.enter_context(written(folder / name, force=True)) for name in names]
        writer = RunWriter(
            path,
            files[0],
            files[1] if with_outputs else None,
            rows,
            open_queries,
            force=force,
            rows_in_the_json=rows_in_the_json,
            all_differ=all_differ,
            name_the_rest=None if with_outputs else name_the_rest,
        )
        try:
            yield writer
        finally:
            writer.close()
    if not begun:
        queries.unlink(missing_ok=True)  # of the run that was replaced
    # Of the run that was replaced too: outputs are in one place only.
    for name in (JOURNAL, HEADER) if with_outputs else RUN_FILES[1:]:
        (folder / name).unlink(missing_ok=True)
    forget_parts(folder)


def with_metadata(results: dict[str, Any], evaluation_type: str, path: Path) -> dict[str, Any]:
    """The document with a note on how it was stored: when, where, as what. A note of the caller's stays."""
    told = results.get("_metadata") or {}
    if not isinstance(told, dict):
        raise DataError("results: $._metadata", f"an object was expected, not {kind_of(told)}.", fix=_NOTE)
    if evaluation_type == "standard":
        evaluation_type = told.get("evaluation_type", evaluation_type)
    saved_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    note = {"saved_at": saved_at, "file_path": str(path), "evaluation_type": evaluation_type}
    return {**results, "_metadata": {**told, **note}}


_NOTE = "Write an object, or leave it out."


def indented(document: dict[str, Any]) -> bytes:
    """A document as JSON that people can read."""
    return msgspec.json.format(encode(document), indent=2) + b"\n"
