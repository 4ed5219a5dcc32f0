"""Where runs are kept: `<id>.results.json`, and beside it `<id>.run/` with the samples and outputs.

The results file is what people and tools read. The run folder makes the run a cache: other metrics can be
scored on the stored outputs without calling the system again.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, BinaryIO

import msgspec

from ..core.batch import Batch
from ..core.runner import OnOutput
from ..core.scoring import Tally
from ..core.types import EvaluationRun, EvaluationSample, SampleScore, SystemOutputs
from ..errors import DataError, StorageError
from ..io.atomic import write_bytes, written
from ..io.jsonl import encode, opened, read_samples
from ..io.names import file_name
from ..io.predictions import load_predictions, matched_outputs
from ..io.records import prediction_record, sample_record
from ..io.results_json import query_results, results_head, results_to_run

SUFFIX = ".results.json"
RUN_FILES = ("samples.jsonl", "outputs.jsonl")
_OWN_LINE_BYTES = 1_000_000_000


class EvaluationResultsStorage:
    """A folder of runs."""

    def __init__(self, results_directory: str | Path = "data/evaluation/results") -> None:
        self.results_directory = Path(results_directory)
        try:
            self.results_directory.stat()
        except FileNotFoundError:
            pass  # it is made when the first run is stored
        except (OSError, ValueError) as error:  # too long, a file on the way, a NUL character
            what = getattr(error, "strerror", None) or error
            raise StorageError(
                f"{str(results_directory)!r:.80} cannot be a folder of runs: {what}."
            ) from error

    def save_run(self, run: EvaluationRun, *, force: bool = False) -> Path:
        """Store a run whole and return the path of its results file, which is written last."""
        path = self._results_path(run.evaluation_id)
        if path.exists() and not force:
            raise StorageError(f"{path} exists already. Choose another id, or use --force to replace it.")
        with self.writer(run.evaluation_id, force=force) as writer:
            scores = {result.name: result.scores for result in run.results if result.scores}
            writer.add(Batch(run.samples, run.outputs), scores)
            return writer.finish(run)

    @contextmanager
    def writer(self, evaluation_id: str, *, force: bool = False) -> Iterator[RunWriter]:
        """Store a run piece by piece; nothing carries its name before `finish`."""
        path = self._results_path(evaluation_id)
        if path.exists() and not force:
            raise StorageError(f"{path} exists already. Choose another id, or use --force to replace it.")
        folder = self._run_folder(evaluation_id)
        with ExitStack() as stack:
            files = [stack.enter_context(written(folder / name, force=True)) for name in RUN_FILES]
            rows = stack.enter_context(TemporaryFile(dir=folder))
            yield RunWriter(path, files[0], files[1], rows, force)
        self.partial_outputs(evaluation_id).unlink(missing_ok=True)

    def load_run(self, name: str | Path) -> EvaluationRun:
        """A stored run, by its id or by the path of its results file."""
        path = self.find(name)
        results = _read(path)
        folder = path.with_name(path.name.removesuffix(SUFFIX) + ".run")
        if not folder.is_dir():
            raise StorageError(f"{folder} is missing: the run has results but no samples and outputs.")
        # Our own files: a system may have answered with more than a line of foreign data may hold.
        samples = list(read_samples(folder / "samples.jsonl", max_line_bytes=_OWN_LINE_BYTES))
        predictions = load_predictions(folder / "outputs.jsonl", max_line_bytes=_OWN_LINE_BYTES)
        outputs = matched_outputs(samples, predictions, str(folder / "outputs.jsonl"))
        return results_to_run(results, samples, outputs, path.name)

    def save_results(self, results: dict[str, Any], evaluation_type: str = "standard") -> str:
        """Store a results document; what is there already is never overwritten."""
        now = datetime.now(UTC)
        evaluation_id = results.get("evaluation_id") or f"eval_{now.strftime('%Y%m%d_%H%M%S')}"
        path = self._results_path(evaluation_id)
        document = _with_metadata({**results, "evaluation_id": evaluation_id}, evaluation_type)
        write_bytes(path, _indented(document))
        return str(path)

    def load_results(self, evaluation_id: str) -> dict[str, Any]:
        """A stored results document."""
        return _read(self.find(evaluation_id))

    def list_results(self, evaluation_type: str | None = None) -> list[dict[str, Any]]:
        """The heads of the stored runs, newest first; a file that cannot be read has an `error`."""
        heads = []
        for path in sorted(self.results_directory.glob(f"*{SUFFIX}")):
            try:
                head = _head(_read(path))
            except (DataError, AttributeError) as error:
                head = {"evaluation_id": path.name.removesuffix(SUFFIX), "error": str(error)}
            if evaluation_type is None or head.get("evaluation_type") == evaluation_type:
                heads.append({**head, "file_path": str(path)})
        return sorted(heads, key=lambda head: str(head.get("timestamp") or ""), reverse=True)

    def find(self, name: str | Path) -> Path:
        """The results file of a run named by id, by path, or by the path of its run folder."""
        text = str(name)
        for path in (Path(text), Path(text.rstrip("/").removesuffix(".run") + SUFFIX)):
            with suppress(OSError):  # a name that is too long
                if path.name.endswith(SUFFIX) and path.is_file():
                    return path
        path = self._results_path(text.removesuffix(SUFFIX))
        if not path.is_file():
            known = [Path(head["file_path"]).name.removesuffix(SUFFIX) for head in self.list_results()]
            hint = f"It has {', '.join(known[:5])}." if known else "It has no runs."
            raise DataError(str(self.results_directory), f"there is no run {text!r}.", fix=hint)
        return path

    @contextmanager
    def outputs_as_they_arrive(self, evaluation_id: str, *, force: bool = False) -> Iterator[OnOutput]:
        """Append each output to the run's folder, so that a crash in a metric costs no system calls."""
        if self._results_path(evaluation_id).exists() and not force:
            raise StorageError(
                f"{self._results_path(evaluation_id)} exists already. Choose another --id, or use --force."
            )
        path = self.partial_outputs(evaluation_id)
        if path.exists() and not force:
            raise StorageError(
                f"{path} holds the outputs of a run that did not finish. Score them (auepora score), "
                "choose another --id, or use --force to throw them away."
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:

                def append(sample: EvaluationSample, output: SystemOutputs) -> None:
                    file.write(encode(prediction_record(sample.sample_id, output)) + b"\n")
                    file.flush()

                yield append
        except OSError as error:
            if isinstance(error, StorageError):
                raise
            raise StorageError(f"{path} cannot be written: {error.strerror or error}.") from error
        finally:
            _remove_if_empty(path)

    def free_id(self, wanted: str) -> str:
        """The id itself, or with the first number behind it that no run has yet."""
        number, candidate = 1, wanted
        while self._results_path(candidate).exists():
            number += 1
            candidate = f"{wanted}-{number}"
        return candidate

    def partial_outputs(self, evaluation_id: str) -> Path:
        """Where the outputs of a run that is not finished are."""
        return self._run_folder(evaluation_id) / "outputs.partial.jsonl"

    def _results_path(self, evaluation_id: str) -> Path:
        return self.results_directory / f"{file_name(evaluation_id, 'evaluation id')}{SUFFIX}"

    def _run_folder(self, evaluation_id: str) -> Path:
        return self.results_directory / f"{file_name(evaluation_id, 'evaluation id')}.run"


class RunWriter:
    """A run on its way to the disk: samples, outputs and rows go by, the head comes last."""

    def __init__(
        self, path: Path, samples: BinaryIO, outputs: BinaryIO, rows: IO[bytes], force: bool
    ) -> None:
        self._path, self._samples, self._outputs, self._rows, self._force = (
            path,
            samples,
            outputs,
            rows,
            force,
        )
        self.tally = Tally()

    def add(self, batch: Batch, scores: Mapping[str, Sequence[SampleScore]]) -> None:
        """Write further samples with their outputs and scores."""
        self.tally.add(batch.outputs)
        for sample, output in zip(batch.samples, batch.outputs, strict=True):
            self._samples.write(encode(sample_record(sample)) + b"\n")
            self._outputs.write(encode(prediction_record(sample.sample_id, output)) + b"\n")
        for row in query_results(batch.samples, batch.outputs, scores):
            self._rows.write((b",\n" if self._rows.tell() else b"") + encode(row))

    def finish(self, run: EvaluationRun) -> Path:
        """Write the results file: the head of the run, and the rows that went by."""
        head = _indented(_with_metadata(results_head(run, self.tally), "standard")).removesuffix(b"\n}\n")
        self._rows.seek(0)
        with written(self._path, force=self._force) as file:
            file.write(head + b',\n  "query_results": [\n')
            shutil.copyfileobj(self._rows, file)
            file.write(b"\n  ]\n}\n")
        return self._path


def _with_metadata(results: dict[str, Any], evaluation_type: str) -> dict[str, Any]:
    saved_at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {**results, "_metadata": {"saved_at": saved_at, "evaluation_type": evaluation_type}}


def _indented(document: dict[str, Any]) -> bytes:
    return msgspec.json.format(encode(document), indent=2) + b"\n"


def _read(path: Path) -> dict[str, Any]:
    with opened(path) as file:
        content = file.read()
    try:
        results = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(path.name, f"not JSON: {error}.", fix="Is the file damaged?") from error
    if not isinstance(results, dict):
        raise DataError(path.name, "not a results file: an object was expected.")
    return results


def _remove_if_empty(path: Path) -> None:
    """Leave nothing behind where nothing was written."""
    with suppress(OSError):
        if path.stat().st_size == 0:
            path.unlink()
            path.parent.rmdir()


def _head(results: dict[str, Any]) -> dict[str, Any]:
    names = ("evaluation_id", "timestamp", "system_version", "dataset_id")
    head: dict[str, Any] = {name: results.get(name) for name in names}
    summary = results.get("summary") or {}
    head["total_queries"], head["failed_queries"] = (
        summary.get("total_queries"),
        summary.get("failed_queries"),
    )
    head["evaluation_type"] = (results.get("_metadata") or {}).get("evaluation_type")
    return head
