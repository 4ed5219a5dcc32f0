"""The folder of stored runs: `<id>.results.json`, and beside it `<id>.run/` with the samples and outputs.

The outputs of a run that called a system are in its journal; of others they are in `outputs.jsonl`.

The results file is for people and tools; a large run has its rows in `<id>.queries.parquet`. With the run
folder, other metrics can be scored on the stored outputs without calling the system.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from ...core.dataset import EvaluationDataset, checked_samples
from ...core.matching import match_of
from ...core.runner import AueporaEvaluator, evaluate, name_of
from ...core.scores import Batch, as_columns, cluster_names
from ...core.scoring import Tally, new_evaluation_id, now
from ...core.settings import DEFAULT_OUT
from ...core.types import EvaluationRun, EvaluationSample, SystemOutputs
from ...errors import DataError, NotFoundError, StorageError
from ...io.documents import check_storable
from ...io.files import write_bytes
from ...io.jsonl import placed_lines, read_records, read_samples
from ...io.outputs import load_predictions, matched_outputs, missing_output
from ...io.results.document import (
    EDITED,
    JsonRows,
    QueryRows,
    add_stored_attempts,
    results_to_run,
)
from ...io.results.rows_parquet import QUERIES_SUFFIX, ParquetRows
from ...read.records import read_prediction, read_sample
from ...read.text import parse_line
from ..evaluation import StoredRecord
from ..journal.journal import JournalPlaces, stored_places
from .state import (
    ROWS_IN_THE_JSON,
    RUN_FILES,
    SUFFIX,
    RunState,
    indented,
    not_found,
    outputs_hash,
    read_results,
    read_results_head,
    unfinished_ids,
    with_metadata,
)

OWN_LINE_BYTES = 1_000_000_000


class EvaluationResultsStorage:
    """A folder of runs."""

    def __init__(self, results_directory: str | Path = DEFAULT_OUT) -> None:
        self.results_directory = Path(results_directory)
        try:
            self.results_directory.stat()
        except FileNotFoundError:
            pass  # the first run that is stored makes it
        except (OSError, ValueError) as error:  # too long, a file in the path, a NUL character
            what = getattr(error, "strerror", None) or error
            raise StorageError(
                f"{str(results_directory)!r:.80} cannot be a folder of runs: {what}."
            ) from error

    def save_run(
        self, run: EvaluationRun, *, force: bool = False, rows_in_the_json: int = ROWS_IN_THE_JSON
    ) -> Path:
        """Store a run whole and return the path of its results file."""
        state = self.state(run.evaluation_id)
        with state.writer(force=force, rows_in_the_json=rows_in_the_json) as writer:
            scores = {result.name: result.scores for result in run.results if result.scores}
            writer.add(Batch(checked_samples(run.evaluation_id, run.samples), run.outputs), scores)
            return writer.finish(run)

    def load_run(self, name: str | Path) -> EvaluationRun:
        """Return a stored run, by its id or by the path of its results file."""
        path = self.find(name)
        results = read_results(path)
        rows = query_rows(results, path)
        # Our own files: an answer may be longer than the limit for lines of foreign data.
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
        """Return a stored run without its texts, for comparisons: a million samples fit into memory.

        It has no outputs, and only those samples that some metric could not score because they failed.
        """
        path = self.find(name)
        results = read_results(path)
        run = results_to_run(results, query_rows(results, path), [], [], path.name)
        failed = {
            scores.sample_ids[place]
            for scores in (as_columns(result.scores) for result in run.results)
            for place, note in scores.notes.items()
            if note.failed
        }
        if failed:
            run.samples = [sample for sample in stored_samples(path) if sample.sample_id in failed]
        return run

    def load_summary(self, name: str | Path) -> EvaluationRun:
        """Return a stored run without samples, outputs and scores: its rows are not read."""
        path = self.find(name)
        return results_to_run(read_results_head(path), None, [], [], path.name)

    def load_tally(self, name: str | Path) -> Tally:
        """Return the outcome of the calls of a stored run: rows are read only if some calls failed."""
        path = self.find(name)
        head = read_results_head(path)
        summary = head.get("summary")
        counts = summary if isinstance(summary, dict) else {}
        if counts.get("failed_queries") == 0 and isinstance(total := counts.get("total_queries"), int):
            return add_stored_attempts(Tally(total), head)
        return add_stored_attempts(query_rows(read_results(path), path).tally(), head)

    def save_results(self, results: dict[str, Any], evaluation_type: str = "standard") -> str:
        """Store a results document and return its path. An existing file is never overwritten.

        NaN becomes null. A value that JSON has no form for is an error. The caller's `_metadata` is kept
        beside our note.
        """
        check_storable(results, "results")
        started = datetime.now(UTC).strftime("%Y%m%d_%H%M%S")
        # Several documents may be stored within a second.
        name = results.get("evaluation_id") or self.free_id(f"eval_{started}")
        state = self.state(name)
        if state.has_results:
            raise StorageError(f"{state.path} exists already. Choose another evaluation_id.")
        document = with_metadata({**results, "evaluation_id": name}, evaluation_type, state.path)
        if "query_results" in document:
            document["query_results"] = document.pop("query_results")  # last, as runs have them
        write_bytes(state.path, indented(document), private=True)
        return str(state.path)

    def load_results(self, evaluation_id: str) -> dict[str, Any]:
        """Return a stored results document with its rows, wherever they are stored."""
        path = self.find(evaluation_id)
        results = read_results(path)
        if "queries_file" in results:
            results["query_results"] = list(query_rows(results, path).rows())
        return results

    def list_results(self, evaluation_type: str | None = None) -> list[dict[str, Any]]:
        """Return the heads of the stored runs, newest first; a file that cannot be read has an `error`."""
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
        """Return the values of several runs side by side, with failed calls counted as the worst.

        `auepora compare` tests differences.
        """
        return side_by_side({name: read_results(self.find(name)) for name in evaluation_ids})

    def find(self, name: str | Path) -> Path:
        """Return the results file of a run named by id, by path, or by the path of its run folder."""
        text = str(name)
        for path in (Path(text), Path(text.rstrip("/").removesuffix(".run") + SUFFIX)):
            with suppress(OSError):  # a name that is too long
                if path.name.endswith(SUFFIX) and path.is_file():
                    return path
        if "/" in text or os.sep in text:
            run = Path(text.rstrip("/").removesuffix(".run").removesuffix(SUFFIX))
            if run.name in unfinished_ids(run.parent):
                raise not_found(run.parent, run.name, [])
            raise NotFoundError(f"{text!r:.200}", "there is no such file.", fix="Check the path.")
        path = self.state(text.removesuffix(SUFFIX)).path
        if not path.is_file():
            stored = [path.name.removesuffix(SUFFIX) for path in self._paths()]
            raise not_found(self.results_directory, text, stored)
        return path

    def state(self, evaluation_id: str) -> RunState:
        """Return how far the run of an id is: new, unfinished or complete."""
        return RunState(self.results_directory, evaluation_id)

    def record(
        self,
        evaluator: AueporaEvaluator,
        dataset: EvaluationDataset,
        *,
        evaluation_id: str | None = None,
        **options: Any,
    ) -> StoredRecord:
        """Return the record of a run in this folder, for `core.runner.evaluate`."""
        name = evaluation_id or new_evaluation_id(name_of(evaluator.system), dataset.name, now())
        return StoredRecord(self.state(name), evaluator, dataset, **options)

    def evaluate(
        self,
        evaluator: AueporaEvaluator,
        dataset: EvaluationDataset,
        *,
        evaluation_id: str | None = None,
        resume: bool = False,
        **options: Any,
    ) -> EvaluationRun:
        """Evaluate with a journal, and store the run. The options are those of `StoredRecord`.

        With `resume` a run that was started is resumed. A complete run is only read, if it is of this plan,
        dataset and system.
        """
        if not resume:
            return evaluate(
                evaluator, self.record(evaluator, dataset, evaluation_id=evaluation_id, **options)
            )
        if evaluation_id is None:
            raise DataError("resume", "it needs the id of a run.", fix="Name it: evaluation_id='...'.")
        state = self.state(evaluation_id)
        options["resume"] = state.has_header
        record = self.record(evaluator, dataset, evaluation_id=evaluation_id, **options)
        if state.is_complete(retry_failed=record.retry_failed):
            record.check_same_run()
            return self.load_scores(evaluation_id)
        return evaluate(evaluator, record)

    def unfinished(self) -> list[str]:
        """Return the ids of the runs that were started and have no results yet."""
        return unfinished_ids(self.results_directory)

    def free_id(self, wanted: str) -> str:
        """Return the id itself, or with the first number behind it that no run has yet."""
        number, candidate = 1, wanted
        while self.state(candidate).has_results:
            number += 1
            candidate = f"{wanted}-{number}"
        return candidate

    def _paths(self) -> list[Path]:
        return sorted(self.results_directory.glob(f"*{SUFFIX}"))

    def run_folder(self, evaluation_id: str) -> Path:
        """Return the folder of the samples and outputs of a run."""
        return self.state(evaluation_id).folder


def run_folder(path: Path) -> Path:
    """Return the folder with the samples and outputs of a run, by its results file."""
    folder = path.with_name(path.name.removesuffix(SUFFIX) + ".run")
    if not folder.is_dir():
        raise StorageError(f"{folder} is missing: the run has results but no samples and outputs.")
    return folder


def stored_samples(path: Path) -> Iterator[EvaluationSample]:
    """Yield the samples of a stored run, by its results file."""
    return read_samples(run_folder(path) / RUN_FILES[0], max_line_bytes=OWN_LINE_BYTES)


def places_of(path: Path) -> JournalPlaces | None:
    """Return the outputs that results were made of, without later ones in the journal."""
    return stored_places(run_folder(path), lambda sha256: sha256 == outputs_hash(read_results(path)))


def stored_predictions(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the records of a stored run's outputs, by its results file, each with its place."""
    places = places_of(path)
    if places is None:
        yield from read_records(run_folder(path) / RUN_FILES[1], max_line_bytes=OWN_LINE_BYTES)
        return
    ids = (sample.sample_id for sample in stored_samples(path))
    yield from ((where, record) for where, record in places.records(ids) if record is not None)


def stored_outputs(path: Path, samples: Sequence[EvaluationSample]) -> list[SystemOutputs]:
    """Return the outputs of a stored run, by its results file, from its journal or its predictions."""
    folder = run_folder(path)
    places = places_of(path)
    if places is not None:
        return list(places.outputs(sample.sample_id for sample in samples))
    predictions = load_predictions(folder / RUN_FILES[1], max_line_bytes=OWN_LINE_BYTES)
    return matched_outputs(samples, predictions, str(folder / RUN_FILES[1]))


class _WithId(msgspec.Struct):
    sample_id: str


def stored_match(path: Path) -> str:
    """Return by what the metrics of a stored run compare documents, by its results file."""
    return match_of(results_to_run(read_results_head(path), None, [], [], path.name))


def stored_pairs(path: Path, ids: Iterable[str]) -> dict[str, tuple[EvaluationSample, SystemOutputs]]:
    """Return some samples of a stored run with their outputs, by id. Of other lines only the id is read."""
    wanted, folder = set(ids), run_folder(path)
    lines = _lines_of(folder / RUN_FILES[0], wanted)
    samples = {name: read_sample(parse_line(line, where), where) for name, (where, line) in lines.items()}
    places = places_of(path)
    if places is not None:
        outputs = dict(zip(samples, places.outputs(samples), strict=True))
    else:
        lines = _lines_of(folder / RUN_FILES[1], wanted)
        outputs = dict(read_prediction(parse_line(line, where), where) for where, line in lines.values())
    return {name: (sample, outputs.get(name) or missing_output()) for name, sample in samples.items()}


def _lines_of(path: Path, ids: set[str]) -> dict[str, tuple[str, bytes]]:
    """Return the lines of these samples, each with its place."""
    decode = msgspec.json.Decoder(_WithId).decode
    lines = {}
    for where, line in placed_lines(path, OWN_LINE_BYTES):
        try:
            sample_id = decode(line).sample_id
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            parse_line(line, where)  # its error says what is wrong
            raise DataError(f"{where}: $.sample_id", "the id is missing.", fix=EDITED) from None
        if sample_id in ids:
            lines[sample_id] = (where, line)
    return lines


def query_rows(results: dict[str, Any], path: Path) -> QueryRows:
    """Return the rows of a stored document: its own, or those of the file that it names."""
    beside = results.get("queries_file")
    if beside is None:
        return JsonRows(results.get("query_results", []), path.name)
    digest = beside.get("sha256") if isinstance(beside, dict) else None
    if not isinstance(digest, str):
        raise DataError(f"{path.name}: $.queries_file", "has no sha256 of the rows' file.", fix=EDITED)
    # By our own name, not by the one in the document: the sha256 shows whether it is the right file.
    return ParquetRows(path.with_name(path.name.removesuffix(SUFFIX) + QUERIES_SUFFIX), sha256=digest)


def read_head(path: Path) -> dict[str, Any]:
    """Return the head of a results file, for a list of runs."""
    head = read_results_head(path)
    summary, note = (head.get(part) or {} for part in ("summary", "_metadata"))
    if not isinstance(summary, dict) or not isinstance(note, dict):
        raise DataError(path.name, "not a results file.", fix="Is it the right file?")
    return {
        "evaluation_id": head.get("evaluation_id"),
        "timestamp": head.get("timestamp"),
        "system_version": head.get("system_version"),
        "dataset_id": head.get("dataset_id"),
        "total_queries": summary.get("total_queries"),
        "failed_queries": summary.get("failed_queries"),
        "evaluation_type": note.get("evaluation_type"),
    }


# Several results documents side by side: any numbers, of any tool.

_NO_METRICS = ("latency_stats", "resource_usage", "api_usage")  # parts of `performance_metrics`


def side_by_side(documents: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return {evaluations, failures: {id}, metrics_comparison: {metric: {id}}, performance_comparison: ...}.

    Failed calls count in the values at their worst, so that no system ranks higher by failing.
    """
    metrics: dict[str, dict[str, Any]] = {}
    performance: dict[str, dict[str, Any]] = {}
    failures: dict[str, int] = {}
    for name, document in documents.items():
        worst = values_if_failed(document)
        for metric, value, _ in metric_values(document):
            metrics.setdefault(metric, {})[name] = value if value is None else worst.get(metric, value)
        summary = document.get("summary")
        if isinstance(summary, dict) and type(failed := summary.get("failed_queries")) is int:
            failures[name] = failed
        parts = document.get("performance_metrics")
        for part in _NO_METRICS:
            if isinstance(parts, dict) and part in parts:
                performance.setdefault(part, {})[name] = parts[part]
    return {
        "evaluations": list(documents),
        "failures": failures,
        "metrics_comparison": metrics,
        "performance_comparison": {part: performance[part] for part in _NO_METRICS if part in performance},
    }


def values_if_failed(document: Mapping[str, Any]) -> dict[str, float | None]:
    """Return the values of the metrics with failures if those had scored worst; None if there is no worst."""
    worst: dict[str, float | None] = {}
    for metric, entry in _entries(document):
        details = entry.get("details") if isinstance(entry, dict) else None
        bounds = details.get("bounds_if_failed") if isinstance(details, dict) else None
        if isinstance(details, dict) and isinstance(bounds, list) and len(bounds) == 2:
            worst[metric] = bounds[0 if details.get("higher_is_better", True) else 1]
    by_base = {metric.partition("@")[0]: value for metric, value in worst.items()}
    return worst | {name: by_base[metric] for name, metric in _SEED_VALUES.items() if metric in by_base}


# Values that are stored a second time under the names of seed 003, and their metrics.
_SEED_VALUES = {
    "span_accuracy.mean_exact_jaccard": "citation_span_exact",
    "span_accuracy.mean_tolerance_jaccard": "citation_span_accuracy",
    "factual_consistency": "citation_factual_consistency",
    "hallucination_rate": "citation_hallucination_rate",
}


def _entries(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield (metric, entry) of every section of metrics."""
    for section, entries in document.items():
        if section.endswith("_metrics") and isinstance(entries, dict):
            yield from ((metric, entry) for metric, entry in entries.items() if metric not in _NO_METRICS)


def metric_values(document: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Yield (metric, value, interval or None) of every metric of a results document.

    An entry without a value has its numbers named after it, such as `span_accuracy.perfect_matches`.
    """
    for metric, entry in _entries(document):
        if not isinstance(entry, dict):
            if _is_number(entry):
                yield metric, entry, None
        elif "value" in entry:
            yield metric, entry["value"], entry.get("confidence_interval")
        else:
            parts = ((part, value) for part, value in entry.items() if _is_number(value))
            yield from ((f"{metric}.{part}", value, None) for part, value in parts)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
