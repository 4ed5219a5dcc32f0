"""The state of a stored run: new, unfinished or complete, and the files that it consists of."""

from __future__ import annotations

import os
import shlex
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO

import msgspec

from ...core.dataset import Fingerprint, as_stored
from ...core.scores import Batch
from ...core.scoring import Tally
from ...core.settings import DEFAULT_OUT
from ...core.types import EvaluationRun, SampleScore
from ...errors import AueporaError, DataError, NotFoundError, StorageError, did_you_mean, install_command
from ...io.documents import read_content
from ...io.files import file_name, remove_leftovers, written
from ...io.jsonl import encode, encoded_lines
from ...io.results.document import check_version, query_results, results_head
from ...io.results.rows_parquet import QUERIES_SUFFIX, QueriesWriter
from ...read.records import prediction_record
from ...read.text import kind_of, parse_document
from ..journal.journal import HEADER, JOURNAL, read_header, stored_places
from ..journal.lock import writer_of

SUFFIX = ".results.json"
RUN_FILES = ("samples.jsonl", "outputs.jsonl")
ROWS_IN_THE_JSON = 10_000  # the rows of a run with more samples go to a Parquet file
_MOST_SHOWN = 5  # ids in an error message


@dataclass(frozen=True)
class RunState:
    """How far the run of one id is. Everything is read from the disk when it is needed."""

    runs: Path  # the folder of all runs
    evaluation_id: str

    @cached_property
    def path(self) -> Path:
        """Return the path of the results file."""
        return self.runs / f"{file_name(self.evaluation_id, 'evaluation id')}{SUFFIX}"

    @cached_property
    def folder(self) -> Path:
        """Return the folder of the samples and outputs."""
        return self.runs / f"{file_name(self.evaluation_id, 'evaluation id')}.run"

    @cached_property
    def queries_path(self) -> Path:
        """Return the path of the Parquet file that a large run has its rows in."""
        return self.runs / f"{self.evaluation_id}{QUERIES_SUFFIX}"

    @property
    def has_results(self) -> bool:
        """Return whether the run has its results file."""
        return self.path.exists()

    @property
    def has_header(self) -> bool:
        """Return whether the run was started with a journal."""
        return (self.folder / HEADER).is_file()

    def is_complete(self, *, retry_failed: bool = False) -> bool:
        """Return whether the run has its results, and resuming it would change nothing."""
        return self.has_results and not self.remaining(retry_failed=retry_failed)

    def remaining(self, *, retry_failed: bool = False) -> int:
        """Return how many samples would be called if the run were resumed.

        A run with results may have some too: an endpoint that was down for an hour leaves failures that a
        retry may fix. New outputs that the results were not made of count as one.
        """
        places = stored_places(self.folder)
        if places is None:
            return 0
        header = read_header(self.folder)
        retried = places.failed[True] + (places.failed[False] if retry_failed else 0)
        outdated = self.outputs_sha256() in places.outdated
        samples = header.get("samples")
        if "stop_when" in header or not isinstance(samples, int):
            return retried + outdated  # a run that stops early does not need its last samples
        return retried + outdated + max(0, samples - len(places))

    @property
    def answered(self) -> int | None:
        """Return how many samples have an output on the disk; None if the run was not started."""
        places = stored_places(self.folder)
        return None if places is None else len(places)

    def outputs_sha256(self) -> str | None:
        """Return the hash of the outputs that the results were made of; None without results."""
        return outputs_hash(read_results(self.path)) if self.has_results else None

    def check_no_results(self, *, force: bool = False) -> None:
        """Raise StorageError if there are results that must not be replaced."""
        if self.has_results and not force:
            raise StorageError(f"{self.path} exists already. Choose another id, or use --force (force=True).")

    def remove_results(self) -> None:
        """Remove the results of a run that is being replaced."""
        for path in (self.path, self.queries_path):
            path.unlink(missing_ok=True)

    def remove_leftovers(self) -> None:
        """Remove the half-written files of processes that are dead."""
        remove_leftovers(self.runs, (self.path.name, self.queries_path.name))
        remove_leftovers(self.folder, (*RUN_FILES, HEADER))

    @contextmanager
    def writer(
        self,
        *,
        force: bool = False,
        rows_in_the_json: int = ROWS_IN_THE_JSON,
        with_outputs: bool = True,
        expected: int = 0,
    ) -> Iterator[RunWriter]:
        """Store the run piece by piece. Its files have their names only after `finish`.

        The rows of a run of more than `rows_in_the_json` samples go to a Parquet file, from the first row on
        if more are `expected`. A run with a journal is written without its outputs: they are on the disk
        already.
        """
        self.check_no_results(force=force)
        self.remove_leftovers()
        # Of two writers of one id, the first to name its results file wins (`finish`). Only then do the other
        # files get their names, so that they never belong to the writer that lost. A run with a journal has
        # one writer, by its lock. Its results file comes last: a reader that sees it sees a complete run.
        with made_folder(self.folder), TemporaryFile(dir=self.folder) as rows, ExitStack() as drafts:
            writer = RunWriter(self, drafts, rows, force, rows_in_the_json, with_outputs, expected)
            yield writer
        writer.remove_replaced()


# How `RunWriter.finish` writes the rows, behind the head. JSON has no line break within a text, so this is
# the key of the document itself.
_ROWS_START, _ROWS_END = b',\n  "query_results": [\n', b"\n  ]\n}\n"
_BLOCK = 1 << 16  # bytes


def read_results_head(path: Path) -> dict[str, Any]:
    """Return the document of a results file without its rows, which are not read if they come last."""
    head = b""
    try:
        with path.open("rb") as file:
            while (start := head.find(_ROWS_START)) < 0 and (block := file.read(_BLOCK)):
                head += block
            file.seek(-len(_ROWS_END), os.SEEK_END)
            is_ours = start >= 0 and file.read() == _ROWS_END
    except OSError:
        is_ours = False  # read_results says what is wrong
    if is_ours:
        return _results(head[:start] + b"\n}", path)
    results = read_results(path)
    results.pop("query_results", None)
    return results


def read_results(path: Path) -> dict[str, Any]:
    """Return the document of a results file; DataError if it is not one, or has a later version."""
    return _results(read_content(path), path)


def _results(content: bytes, path: Path) -> dict[str, Any]:
    results = parse_document(content, path.name)
    if not isinstance(results, dict):
        what = f"not a results file: an object was expected, not {kind_of(results)}."
        raise DataError(path.name, what, fix="Is it the right file?")
    check_version(results, path.name)
    return results


# Unfinished runs as people see them: how far each is, and the command that resumes it.


@dataclass(frozen=True)
class Unfinished:
    """A run without results: how many of its samples have an output; None where that is unknown.

    `line` is the command that resumes it; `obstacle` says why that is not possible now.
    """

    evaluation_id: str
    begun_at: str = ""
    answered: int | None = None
    samples: int | None = None
    line: str = ""
    obstacle: str = ""

    @property
    def progress(self) -> str:
        """Return the progress as "3 of 8"."""
        return " of ".join("?" if count is None else str(count) for count in (self.answered, self.samples))


def unfinished_ids(runs: Path) -> list[str]:
    """Return the ids of the runs in a folder that were started and have no results."""
    started = (path.parent.name.removesuffix(".run") for path in runs.glob(f"*.run/{HEADER}"))
    return sorted(name for name in started if not (runs / f"{name}{SUFFIX}").exists())


def unfinished_runs(runs: Path) -> list[Unfinished]:
    """Return every run of a folder that was started and has no results."""
    return [unfinished_run(RunState(runs, name)) for name in unfinished_ids(runs)]


def unfinished_run(state: RunState) -> Unfinished:
    """Return how far a run is. A run that cannot be read has an obstacle, not an error."""
    try:
        header = read_header(state.folder)
        answered = state.answered or 0
    except (AueporaError, OSError) as error:
        return Unfinished(state.evaluation_id, obstacle=str(error))
    samples, writer = header.get("samples"), writer_of(state.folder)
    return Unfinished(
        state.evaluation_id,
        str(header.get("begun_at") or ""),
        answered,
        samples if isinstance(samples, int) else None,
        _resume_command(state, header.get("configuration")),
        f"it is being written by {writer}" if writer else "",
    )


def not_found(runs: Path, name: str, stored: list[str]) -> NotFoundError:
    """Return the error about a run without results: it is unfinished, or it does not exist."""
    unfinished = unfinished_ids(runs)
    if (wanted := name.removesuffix(SUFFIX)) in unfinished:
        run = unfinished_run(RunState(runs, wanted))
        fix = _sentence(run.obstacle) if run.obstacle else f"Resume it: {run.line}"
        what = f"run {wanted!r} is not finished: {run.progress} samples have an output."
        return NotFoundError(str(runs), what, fix=fix)
    hint = f"Available: {', '.join(stored[:_MOST_SHOWN])}." if stored else "It has no finished runs."
    hint = did_you_mean(name, stored, hint)
    if unfinished:
        hint += f" Unfinished: {', '.join(unfinished[:_MOST_SHOWN])}."
    return NotFoundError("", f"No run {name!r} in {runs}.", fix=hint)


def variant_of(configuration: object) -> tuple[str, str] | None:
    """Return the experiment and the variant that a run belongs to; None if it is not of an experiment."""
    about = configuration.get("experiment") if isinstance(configuration, Mapping) else None
    if not isinstance(about, Mapping) or "variant_id" not in about:
        return None
    return str(about.get("experiment_id")), str(about["variant_id"])


def _sentence(obstacle: str) -> str:
    """Return an obstacle as a sentence of its own. The name of a file keeps its first letter."""
    words = f"It{obstacle[2:]}" if obstacle.startswith("it ") else obstacle
    return f"{words.rstrip('.')}."


def _resume_command(state: RunState, configuration: object) -> str:
    out = "" if state.runs == Path(DEFAULT_OUT) else f" --out {shlex.quote(str(state.runs))}"
    if variant_of(configuration) is not None:
        return f"auepora experiment FILE --resume{out}"
    stored = configuration if isinstance(configuration, Mapping) else {}
    if stored.get("dataset") and stored.get("system"):
        return f"auepora run --resume {shlex.quote(state.evaluation_id)}{out}"
    name = repr(state.evaluation_id)
    return f"in Python, evaluator.run(dataset, evaluation_id={name}, storage=storage, resume=True)"


class RunWriter:
    """Writes a run piece by piece; `finish` gives it its name."""

    def __init__(
        self,
        state: RunState,
        drafts: ExitStack,
        rows: IO[bytes],
        force: bool,
        rows_in_the_json: int,
        with_outputs: bool,
        expected: int,
    ) -> None:
        self._expected = expected
        self._state, self._drafts, self._rows = state, drafts, rows
        self._force, self._limit, self._with_outputs = force, rows_in_the_json, with_outputs
        self._samples = drafts.enter_context(written(state.folder / RUN_FILES[0], force=True, private=True))
        self._outputs: BinaryIO | None = None
        if with_outputs:
            self._outputs = drafts.enter_context(
                written(state.folder / RUN_FILES[1], force=True, private=True)
            )
        self._queries: QueriesWriter | None = None
        self._dataset, self._fingerprint = Fingerprint(), Fingerprint()
        self.tally = Tally()

    @property
    def dataset_sha256(self) -> str:
        """Return the fingerprint of the samples that were written so far."""
        return self._dataset.hexdigest()

    def add(
        self,
        batch: Batch,
        scores: Mapping[str, Sequence[SampleScore]],
        output_lines: Sequence[bytes] | None = None,
    ) -> None:
        """Write further samples with their outputs and scores.

        `output_lines` has the outputs as canonical JSON, as far as they are known; an empty line is not.
        """
        self.tally.add(batch.outputs)
        if self._queries is None and max(self.tally.total, self._expected) > self._limit:
            self._start_queries(list(scores))
        samples = encoded_lines(list(map(as_stored, batch.samples)), canonical=True)
        outputs = _output_lines(batch, output_lines)
        self._dataset.add_lines(samples)
        self._samples.write(samples)
        self._fingerprint.add_lines(outputs)
        if self._outputs is not None:  # otherwise the journal has them
            self._outputs.write(outputs)
        if self._queries is not None:
            self._queries.add(batch.samples, batch.outputs, scores)
        else:
            rows = b",\n".join(map(encode, query_results(batch.samples, batch.outputs, scores)))
            self._rows.write(b",\n" + rows if self._rows.tell() and rows else rows)

    def finish(self, run: EvaluationRun) -> Path:
        """Write the results file: the head of the run, and its rows."""
        path = self._state.path
        head = results_head(run, self.tally, self._fingerprint.hexdigest())
        if self._queries is not None:
            digest = self._queries.finish()
            name = self._state.queries_path.name
            head["queries_file"] = {"name": name, "sha256": digest, "rows": self._queries.rows}
        text = indented(with_metadata(head, "standard", path)).removesuffix(b"\n}\n")
        self._rows.seek(0)
        if not self._with_outputs:
            self._drafts.close()
        with written(path, force=self._force, private=True) as file:
            file.write(text + _ROWS_START)
            if self._queries is None:
                shutil.copyfileobj(self._rows, file)
            file.write(_ROWS_END)
        return path

    def remove_replaced(self) -> None:
        """Remove the files of the run that this one has replaced: outputs are in one place only."""
        if self._queries is None:
            self._state.queries_path.unlink(missing_ok=True)
        for name in (JOURNAL, HEADER) if self._with_outputs else RUN_FILES[1:]:
            (self._state.folder / name).unlink(missing_ok=True)

    def _start_queries(self, metrics: Sequence[str]) -> None:
        """Write rows to Parquet from here on, those of the temporary file first, if pyarrow is there."""
        try:
            import pyarrow  # noqa: F401 - checked before a file is opened for it
        except ImportError:
            warnings.warn(
                f"The run has over {self._limit:,} samples. With {install_command('parquet')} their "
                "rows would go to a file of their own; they stay in the results file.",
                stacklevel=3,
            )
            self._limit = 2**63
            return
        file = self._drafts.enter_context(written(self._state.queries_path, force=True, private=True))
        self._queries = QueriesWriter(file, metrics)
        self._drafts.callback(self._queries.close)
        self._rows.seek(0)
        waiting = [msgspec.json.decode(line.rstrip(b",\n")) for line in self._rows]
        self._queries.add_rows(waiting)
        self._rows.seek(0)
        self._rows.truncate()


def _output_lines(batch: Batch, known: Sequence[bytes] | None) -> bytes:
    """Return the outputs as canonical JSON, one on each line."""
    if known is not None and all(known):
        return b"".join(known)
    records = list(map(prediction_record, batch.sample_ids(), batch.outputs))
    lines = encoded_lines(records, canonical=True)
    if known is None:
        return lines
    written = lines.splitlines(keepends=True)
    return b"".join(line or written[place] for place, line in enumerate(known))


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


def outputs_hash(results: Mapping[str, Any]) -> str | None:
    """Return the sha256 of the outputs that results were made of; None if the document has none."""
    metadata = results.get("metadata")
    sha256 = metadata.get("outputs_sha256") if isinstance(metadata, dict) else None
    return sha256 if isinstance(sha256, str) else None


@contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """Make a folder, and remove it again if nothing was written to it."""
    new = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{folder} cannot be written: {error.strerror or error}.") from error
    try:
        yield
    finally:
        with suppress(OSError):
            for each in new:
                each.rmdir()
