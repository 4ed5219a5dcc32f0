"""Write the samples, outputs and scores of a run, and at the end its results document."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from ..core.dataset import Fingerprint, as_stored, canonical_json
from ..core.matching import BY_ID, match_of
from ..core.plan import EvaluationPlan
from ..core.scores import Batch, Scores
from ..core.scoring import RunRecord, Tally
from ..core.types import EvaluationRun, SampleScore, SystemOutputs
from ..errors import DataError
from ..io.files import naming, remove_leftovers, written
from ..io.jsonl import encode, encoded_lines
from ..io.results.document import query_results, results_head
from ..read.records import prediction_record
from ..read.text import kind_of
from .columns import Facts, score_row
from .database import ANSWERED, FAILED, Database, remove_database, rows_sha256
from .lock import locked
from .state import ROWS_END, ROWS_START, RunState

ROWS_IN_THE_DOCUMENT = 10_000  # a run with more samples has its rows in its database only


class RunWriter:
    """Writes a run piece by piece. It is complete after `finish`, and unfinished until then.

    The run is locked by this process. `database` is that of the run, which has its outputs already, or a
    draft that takes its place.
    """

    def __init__(
        self,
        state: RunState,
        database: Database,
        *,
        match: str = BY_ID,
        most_rows: int = ROWS_IN_THE_DOCUMENT,
        force: bool = True,
    ) -> None:
        self._state, self._database, self._most_rows, self._force = state, database, most_rows, force
        self._is_draft = database.path != state.database
        # One transaction: until `finish`, readers see the run as it was before.
        database.begin()
        with database.transaction() as db:
            for table in ("sample", "text", "score"):  # of results that are replaced
                db.execute(f"DELETE FROM {table}")  # noqa: S608 - our own names
        self._rows: list[bytes] | None = []  # of the document
        self._facts = Facts(match)
        self._dataset, self._outputs = Fingerprint(), Fingerprint()
        self.tally = Tally()

    @property
    def dataset_sha256(self) -> str:
        """Return the fingerprint of the samples that were written so far."""
        return self._dataset.hexdigest()

    def add(self, batch: Batch, scores: Mapping[str, Sequence[SampleScore]]) -> None:
        """Write further samples with their outputs."""
        start = self.tally.total
        self.tally.add(batch.outputs)
        samples = encoded_lines(list(map(as_stored, batch.samples)), canonical=True)
        self._dataset.add_stored(batch.samples, samples)
        with self._database.transaction() as db:
            numbers = range(start, self.tally.total)
            answers = self._added_outputs(batch, start) if self._is_draft else self._known_outputs(batch)
            rows = zip(numbers, batch.sample_ids, answers, _texts(samples), strict=True)
            db.executemany("INSERT INTO sample VALUES (?, ?, ?, ?)", rows)
            words = zip(numbers, map(self._facts.add, batch.samples, batch.outputs), strict=True)
            db.executemany("INSERT INTO text VALUES (?, ?)", words)
        if self._rows is not None and self.tally.total > self._most_rows:
            self._rows = None
        if self._rows is not None:
            self._rows += map(encode, query_results(batch.samples, batch.outputs, scores))

    def _added_outputs(self, batch: Batch, start: int) -> Sequence[int]:
        """Store outputs as calls, and return the numbers of these."""
        records = list(map(prediction_record, batch.sample_ids, batch.outputs))
        lines = encoded_lines(records, canonical=True)
        self._outputs.add_lines(lines)
        # Row n + 1 of an empty table, so that the answer of a sample needs no look-up.
        numbers = range(start + 1, start + 1 + len(batch))
        outcomes = [ANSWERED if output.error is None else FAILED for output in batch.outputs]
        query = "INSERT INTO call (n, kind, sample, outcome, reply) VALUES (?, 'answer', ?, ?, ?)"
        with self._database.transaction() as db:
            db.executemany(query, zip(numbers, batch.sample_ids, outcomes, _texts(lines), strict=True))
        return numbers

    def _known_outputs(self, batch: Batch) -> Sequence[int]:
        """Return the numbers of the calls that outputs are stored as."""
        stored = self._database.answers(batch.sample_ids)
        calls = [stored[sample_id] for sample_id in batch.sample_ids]
        self._outputs.add_lines("".join(f"{reply}\n" for _, reply in calls).encode())
        return [number for number, _ in calls]

    def finish(self, run: EvaluationRun) -> Path:
        """Write the scores and the results document; return its path. The run is complete then."""
        outputs_sha256 = self._outputs.hexdigest()
        calls = self._database.select("SELECT coalesce(max(n), 0) FROM call")[0][0]
        scores_sha256 = {}
        with self._database.transaction() as db:
            for row in (score_row(result) for result in run.results if result.scores):  # one at a time
                db.execute("INSERT OR REPLACE INTO score VALUES (?, ?, ?, ?, ?, ?)", row)
                scores_sha256[row[0]] = rows_sha256([row])
        self._database.set_meta(
            **self._facts.as_meta(self._database),
            finished={"outputs_sha256": outputs_sha256, "calls": calls, "scores_sha256": scores_sha256},
            evaluation_id=run.evaluation_id,
        )
        head, path = results_head(run, self.tally, outputs_sha256), self._state.path
        if self._rows is None:
            head["run_file"] = {"name": self._state.database.name, "rows": self.tally.total}
        text = indented(with_metadata(head, "standard", path)).removesuffix(b"\n}\n")
        with written(path, force=self._force, private=True) as file:
            file.write(text + ROWS_START)
            file.write(b",\n".join(self._rows or ()))
            file.write(ROWS_END)
            # On the disk before the database has the results too: then only the name can be missing.
            file.flush()
            os.fsync(file.fileno())
            self._publish()
        return path

    def _publish(self) -> None:
        """Let readers of the database see the run."""
        self._database.commit()
        if self._is_draft:
            draft, state = self._database.path, self._state
            self._database.close()
            state.warn_of_loss()
            with naming(draft), draft.open("rb+") as file:
                os.fsync(file.fileno())
            state.remove_interventions()
            remove_database(state.database)
            draft.replace(state.database)


class WrittenRecord(RunRecord):
    """A run that is written to the disk while it is scored."""

    _writer: RunWriter

    @property
    def tally(self) -> Tally:
        """Return the outcome of the calls of the samples that were scored."""
        return self._writer.tally

    def add(self, batch: Batch, scores: Mapping[str, Scores]) -> None:
        """Write further samples and the rows of their scores."""
        self._writer.add(batch, scores)

    def fingerprint(self) -> str:
        """Return the fingerprint of the samples that the run has."""
        return self._writer.dataset_sha256

    def finish(self, run: EvaluationRun) -> None:
        """Write the results document."""
        self._writer.finish(run)


def plan_match(plan: EvaluationPlan) -> str:
    """Return by what the metrics of a plan compare documents."""
    matches = (getattr(metric, "match", BY_ID) for metric in plan.metrics)
    return next((match for match in matches if match != BY_ID), BY_ID)


def _texts(lines: bytes) -> list[str]:
    return lines.decode().split("\n")[:-1]


def add_whole(writer: RunWriter, run: EvaluationRun) -> Path:
    """Write a run that is in memory; return the path of its results document."""
    scores = {result.name: result.scores for result in run.results if result.scores}
    writer.add(Batch(run.samples, run.outputs), scores)
    return writer.finish(run)


def rewrite(state: RunState, database: Database, run: EvaluationRun) -> None:
    """Replace the results of a stored run; its samples and outputs are in memory, and stay as they are.

    The run must be locked by this process.
    """
    add_whole(RunWriter(state, database, match=match_of(run)), run)


@contextmanager
def drafted(
    state: RunState, *, force: bool = False, match: str = BY_ID, most_rows: int = ROWS_IN_THE_DOCUMENT
) -> Iterator[RunWriter]:
    """Yield the writer of a run whose outputs are known. Its files have their names only after `finish`.

    The run is locked meanwhile. One that exists is replaced only by force, and a warning says what is lost.
    """
    with locked(state.database):
        state.check_free(force=force)
        remove_leftovers(state.runs, (state.path.name, state.database.name))
        draft = Database.draft(state.database)
        try:
            yield RunWriter(state, draft, match=match, most_rows=most_rows, force=force)
        finally:
            draft.close()
            draft.path.unlink(missing_ok=True)


def with_metadata(results: Mapping[str, Any], evaluation_type: str, path: Path) -> dict[str, Any]:
    """Return the document with a note on how it was stored: when, where, as what. A caller's note stays."""
    own = results.get("_metadata") or {}
    if not isinstance(own, dict):
        what = f"an object was expected, not {kind_of(own)}."
        raise DataError("results: $._metadata", what, fix="Write an object, or leave it out.")
    if evaluation_type == "standard":
        evaluation_type = own.get("evaluation_type", evaluation_type)
    saved_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    note = {"saved_at": saved_at, "file_path": str(path), "evaluation_type": evaluation_type}
    return {**results, "_metadata": {**own, **note}}


def indented(document: Mapping[str, Any]) -> bytes:
    """Return a document as indented JSON."""
    return msgspec.json.format(encode(document), indent=2) + b"\n"


def call_reply(sample_id: str, output: SystemOutputs) -> str:
    """Return an output as it is stored."""
    return canonical_json(prediction_record(sample_id, output)).decode()
