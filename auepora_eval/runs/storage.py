"""Where runs are kept: `<id>.results.json`, and beside it `<id>.run/` with the samples and outputs.

The outputs of a run that called a system are in its journal; of others they are in `outputs.jsonl`.

The results file is what people and tools read; a large run has its rows in `<id>.queries.parquet`. The run
folder makes the run a cache: other metrics can be scored on the stored outputs without calling the system.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from ..core.batch import Batch, cluster_names
from ..core.dataset import EvaluationDataset
from ..core.runner import AueporaEvaluator
from ..core.scoring import Tally
from ..core.types import EvaluationRun, EvaluationSample, SystemOutputs
from ..errors import DataError, NotFoundError, StorageError
from ..io.atomic import remove_leftovers, write_bytes
from ..io.document_file import read_content
from ..io.json_text import kind_of, parse_document
from ..io.jsonl import parse_line, read_lines, read_records, read_samples
from ..io.names import file_name
from ..io.predictions import load_predictions, matched_outputs
from ..io.queries_parquet import QUERIES_SUFFIX, ParquetRows
from ..io.query_rows import EDITED, JsonRows, QueryRows
from ..io.records import read_sample
from ..io.results_json import add_stored_attempts, refuse_newer, results_to_run
from ..io.storable import refuse_unstorable
from .heads import read_head
from .journal import HEADER, lacking, stored_places
from .journal_places import JournalPlaces
from .replaced_parts import outputs_hash, part_there
from .side_by_side import side_by_side
from .unfinished import not_found
from .writer import ROWS_IN_THE_JSON, RUN_FILES, RunWriter, indented, run_writer, with_metadata

SUFFIX = ".results.json"
OWN_LINE_BYTES = 1_000_000_000


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

    def save_run(
        self, run: EvaluationRun, *, force: bool = False, rows_in_the_json: int = ROWS_IN_THE_JSON
    ) -> Path:
        """Store a run whole and return the path of its results file."""
        with self.writer(run.evaluation_id, force=force, rows_in_the_json=rows_in_the_json) as writer:
            scores = {result.name: result.scores for result in run.results if result.scores}
            writer.add(Batch(run.samples, run.outputs), scores)
            return writer.finish(run)

    @contextmanager
    def writer(
        self,
        evaluation_id: str,
        *,
        force: bool = False,
        rows_in_the_json: int = ROWS_IN_THE_JSON,
        with_outputs: bool = True,
        all_differ: bool = False,
    ) -> Iterator[RunWriter]:
        """Store a run piece by piece; nothing carries its name before `finish`.

        The rows of a run of more than `rows_in_the_json` samples go to a Parquet file beside the JSON. A run
        with a journal is written without its outputs: they are on the disk already. `all_differ`: it is known
        that no id comes twice, and need not be found out.
        """
        path = self._results_path(evaluation_id)
        if path.exists() and not force:
            raise StorageError(f"{path} exists already. Choose another id, or use --force (force=True).")
        self.remove_leftovers(evaluation_id)
        with run_writer(
            path,
            self.run_folder(evaluation_id),
            path.with_name(f"{evaluation_id}{QUERIES_SUFFIX}"),
            replaced=None if with_outputs else self.outputs_sha256(evaluation_id),
            force=force,
            rows_in_the_json=rows_in_the_json,
            with_outputs=with_outputs,
            all_differ=all_differ,
        ) as writer:
            yield writer

    def load_run(self, name: str | Path) -> EvaluationRun:
        """A stored run, by its id or by the path of its results file."""
        path = self.find(name)
        results = read_results(path)
        rows = query_rows(results, path)
        # Our own files: a system may have answered with more than a line of foreign data may hold.
        samples = list(stored_samples(path))
        outputs = stored_outputs(path, samples)
        if rows.ids != [sample.sample_id for sample in samples]:
            what = "these are not the samples of the run's folder."
            raise DataError(f"{path.name}: $.query_results", what, fix=EDITED)
        run = results_to_run(results, rows, samples, outputs, path.name)
        clusters = cluster_names(samples)
        for result in run.results:
            if len(result.scores) == len(samples):
                result.scores.clusters = clusters  # type: ignore[attr-defined]  # columns, as rows give them
        return run

    def load_scores(self, name: str | Path) -> EvaluationRun:
        """A stored run without its texts, as far as a comparison needs it: a million samples fit.

        There are no outputs, and of the samples only those that some metric could not score for a failure.
        """
        path = self.find(name)
        results = read_results(path)
        if results.get("schema_version") == "1.0":  # its rows do not tell clusters
            return self.load_run(name)
        run = results_to_run(results, query_rows(results, path), [], [], path.name)
        failed = {
            result.scores.sample_ids[place]  # type: ignore[attr-defined]
            for result in run.results
            for place, note in result.scores.notes.items()  # type: ignore[attr-defined]
            if note.failed
        }
        if failed:
            run.samples = list(chosen_samples(path, failed))
        return run

    def load_tally(self, name: str | Path) -> Tally:
        """What became of the calls of a stored run; its samples and outputs are not read."""
        path = self.find(name)
        results = read_results(path)
        return add_stored_attempts(query_rows(results, path).tally(), results)

    def save_results(self, results: dict[str, Any], evaluation_type: str = "standard") -> str:
        """Store a results document; what is there already is never overwritten.

        It is read back as it was given, but for NaN, which becomes null; a value that JSON has no form for is
        refused. What the caller has in `_metadata` is kept beside our note.
        """
        name = results.get("evaluation_id") or f"eval_{datetime.now(UTC).strftime('%Y%m%d_%H%M%S')}"
        refuse_unstorable(results, "results")
        while True:
            # The rows last: then a list need not read them.
            rest = {key: value for key, value in results.items() if key != "query_results"}
            rows = {"query_results": results["query_results"]} if "query_results" in results else {}
            path = self._results_path(name)
            document = with_metadata({**rest, "evaluation_id": name}, evaluation_type, path)
            try:
                if path.exists():
                    raise StorageError(f"{path} exists already. Choose another evaluation_id.")
                write_bytes(path, indented({**document, **rows}))
                return str(path)
            except StorageError:
                if results.get("evaluation_id") or not path.exists():
                    raise
                name = self.free_id(name)  # somebody else stored something within the same second

    def load_results(self, evaluation_id: str) -> dict[str, Any]:
        """A stored results document, its rows in it wherever they are kept."""
        path = self.find(evaluation_id)
        results = read_results(path)
        if "queries_file" in results:
            results["query_results"] = list(query_rows(results, path).rows())
        return results

    def list_results(self, evaluation_type: str | None = None) -> list[dict[str, Any]]:
        """The heads of the stored runs, newest first; a file that cannot be read has an `error`."""
        heads = []
        for path in self._paths():
            try:
                head = read_head(path)
            except DataError as error:
                head = {"evaluation_id": path.name.removesuffix(SUFFIX), "error": str(error)}
            if evaluation_type is None or head.get("evaluation_type") == evaluation_type:
                heads.append({**head, "file_path": str(path)})
        return sorted(heads, key=lambda head: str(head.get("timestamp") or ""), reverse=True)

    def compare_results(self, evaluation_ids: Sequence[str]) -> dict[str, Any]:
        """The values of several runs side by side, metric by metric; `auepora compare` tests differences."""
        return side_by_side({name: read_results(self.find(name)) for name in evaluation_ids})

    def find(self, name: str | Path) -> Path:
        """The results file of a run named by id, by path, or by the path of its run folder."""
        text = str(name)
        for path in (Path(text), Path(text.rstrip("/").removesuffix(".run") + SUFFIX)):
            with suppress(OSError):  # a name that is too long
                if path.name.endswith(SUFFIX) and path.is_file():
                    return path
        if "/" in text or os.sep in text:
            raise NotFoundError(f"{text!r:.200}", "there is no such file.", fix="Check the path.")
        path = self._results_path(text.removesuffix(SUFFIX))
        if not path.is_file():
            known = [path.name.removesuffix(SUFFIX) for path in self._paths()]
            raise not_found(self, text, known)
        return path

    def evaluate(
        self,
        evaluator: AueporaEvaluator,
        dataset: EvaluationDataset,
        *,
        evaluation_id: str | None = None,
        resume: bool = False,
        **options: Any,
    ) -> EvaluationRun:
        """Run an evaluator with a journal, and store the run (`runs.evaluation` has the options).

        With `resume` a run that was begun is gone on with. One that is finished is read, if it is of this
        plan, data and system; unless it lacks answers that may be had now.
        """
        from .evaluation import evaluate_and_store, refuse_another_run

        if resume and evaluation_id is None:
            raise DataError("resume", "it does not say which run.", fix="Name it: evaluation_id='...'.")
        retry_failed = bool(options.get("retry_failed"))
        if (
            resume
            and evaluation_id is not None
            and self.is_complete(evaluation_id, retry_failed=retry_failed)
        ):
            rule, identity = options.get("stop_rule"), options.get("identity")
            refuse_another_run(evaluator, dataset, self, evaluation_id, None, rule, identity, is_read=True)
            return self.load_scores(evaluation_id)
        begun = evaluation_id is not None and (self.run_folder(evaluation_id) / HEADER).exists()
        options |= {"evaluation_id": evaluation_id, "resume": resume and begun}
        return evaluate_and_store(evaluator, dataset, self, **options).run

    def refuse_finished(self, evaluation_id: str, *, force: bool = False) -> None:
        """StorageError if there is a run of that id already."""
        path = self._results_path(evaluation_id)
        if path.exists() and not force:
            raise StorageError(f"{path} exists already. Choose another id, or use --force (force=True).")

    def is_finished(self, evaluation_id: str) -> bool:
        """Whether a run of that id has its results."""
        return self._results_path(evaluation_id).exists()

    def is_complete(self, evaluation_id: str, *, retry_failed: bool = False) -> bool:
        """Whether a run has its results, and to go on with it would ask and change nothing."""
        if not self.is_finished(evaluation_id):
            return False
        results, folder = self.outputs_sha256(evaluation_id), self.run_folder(evaluation_id)
        return not lacking(folder, retry_failed=retry_failed, results=results)

    def outputs_sha256(self, evaluation_id: str) -> str | None:
        """The hash over the outputs that a run's results are of; None if it has no results."""
        path = self._results_path(evaluation_id)
        return outputs_hash(read_results(path)) if path.exists() else None

    def remove_leftovers(self, evaluation_id: str) -> None:
        """Remove files that processes which are dead left half-written for this run."""
        path, folder = self._results_path(evaluation_id), self.run_folder(evaluation_id)
        remove_leftovers(self.results_directory, (path.name, f"{evaluation_id}{QUERIES_SUFFIX}"))
        remove_leftovers(folder, (*RUN_FILES, HEADER))

    def unfinished(self) -> list[str]:
        """The ids of runs that were begun and have no results yet."""
        begun = (
            path.parent.name.removesuffix(".run") for path in self.results_directory.glob(f"*.run/{HEADER}")
        )
        return sorted(name for name in begun if not (self.results_directory / f"{name}{SUFFIX}").exists())

    def answered(self, evaluation_id: str) -> int | None:
        """How many samples of a run have an output on the disk; None if it was not begun."""
        places = stored_places(self.run_folder(evaluation_id))
        return None if places is None else len(places)

    def forget_results(self, evaluation_id: str) -> None:
        """Remove the results of a run that is being replaced."""
        path = self._results_path(evaluation_id)
        for old in (path, path.with_name(f"{evaluation_id}{QUERIES_SUFFIX}")):
            old.unlink(missing_ok=True)

    def free_id(self, wanted: str) -> str:
        """The id itself, or with the first number behind it that no run has yet."""
        number, candidate = 1, wanted
        while self._results_path(candidate).exists():
            number += 1
            candidate = f"{wanted}-{number}"
        return candidate

    def _paths(self) -> list[Path]:
        return sorted(self.results_directory.glob(f"*{SUFFIX}"))

    def _results_path(self, evaluation_id: str) -> Path:
        return self.results_directory / f"{file_name(evaluation_id, 'evaluation id')}{SUFFIX}"

    def run_folder(self, evaluation_id: str) -> Path:
        """Where the samples and outputs of a run are, or will be."""
        return self.results_directory / f"{file_name(evaluation_id, 'evaluation id')}.run"


def read_results(path: Path) -> dict[str, Any]:
    """A results file as it is; DataError if it is none, or of a later version."""
    results = parse_document(read_content(path), path.name)
    if not isinstance(results, dict):
        what = f"not a results file: an object was expected, not {kind_of(results)}."
        raise DataError(path.name, what, fix="Is it the right file?")
    refuse_newer(results, path.name)
    return results


def run_folder(path: Path) -> Path:
    """The folder with the samples and outputs of a run, by its results file."""
    folder = path.with_name(path.name.removesuffix(SUFFIX) + ".run")
    if not folder.is_dir():
        raise StorageError(f"{folder} is missing: the run has results but no samples and outputs.")
    return folder


def stored_samples(path: Path) -> Iterator[EvaluationSample]:
    """The samples of a stored run, by its results file, as they come."""
    return read_samples(_samples_of(path), max_line_bytes=OWN_LINE_BYTES)


def _samples_of(path: Path) -> Path:
    folder = run_folder(path)
    return part_there(folder, folder / RUN_FILES[0], lambda: outputs_hash(read_results(path)))


def _places_of(path: Path) -> JournalPlaces | None:
    """The outputs that results were made of; what came to the journal since is not among them."""
    return stored_places(run_folder(path), lambda sha256: sha256 == outputs_hash(read_results(path)))


class _Id(msgspec.Struct):
    sample_id: str = ""


def chosen_samples(path: Path, ids: Container[str]) -> Iterator[EvaluationSample]:
    """Those of the samples of a stored run that have one of these ids; of the others only the id is read."""
    file = _samples_of(path)
    decode = msgspec.json.Decoder(_Id).decode
    for number, line in enumerate(read_lines(file, OWN_LINE_BYTES), start=1):
        where = f"{file.name}:{number}"
        try:
            wanted = decode(line).sample_id in ids
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            wanted = True  # the careful reader knows what is wrong, and says it
        if wanted:
            yield read_sample(parse_line(line, where), where)


def stored_predictions(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The records of a stored run's outputs, by its results file, each with its place, in order."""
    places = _places_of(path)
    if places is None:
        yield from read_records(run_folder(path) / RUN_FILES[1], max_line_bytes=OWN_LINE_BYTES)
        return
    ids = (sample.sample_id for sample in stored_samples(path))
    yield from ((where, record) for where, record in places.records(ids) if record is not None)


def stored_outputs(path: Path, samples: Sequence[EvaluationSample]) -> list[SystemOutputs]:
    """The outputs of a stored run, by its results file: those of its journal, or else of its predictions."""
    folder = run_folder(path)
    places = _places_of(path)
    if places is not None:
        return list(places.outputs(sample.sample_id for sample in samples))
    predictions = load_predictions(folder / RUN_FILES[1], max_line_bytes=OWN_LINE_BYTES)
    return matched_outputs(samples, predictions, str(folder / RUN_FILES[1]))


def query_rows(results: dict[str, Any], path: Path) -> QueryRows:
    """The rows of a stored document: its own, or those of the file that it names."""
    beside = results.get("queries_file")
    if beside is None:
        return JsonRows(results.get("query_results", []), path.name)
    digest = beside.get("sha256") if isinstance(beside, dict) else None
    if not isinstance(digest, str):
        raise DataError(f"{path.name}: $.queries_file", "has no sha256 of the rows' file.", fix=EDITED)
    # Found by our own name, not by the one in the document; that it is the right file, the sha256 tells.
    name = path.name.removesuffix(SUFFIX)
    file = path.with_name(name + QUERIES_SUFFIX)
    return ParquetRows(
        part_there(path.with_name(f"{name}.run"), file, lambda: outputs_hash(results)), sha256=digest
    )
