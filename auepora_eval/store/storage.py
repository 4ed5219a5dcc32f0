"""The folder of stored runs: `<id>.results.json`, and beside it `<id>.run.db` with everything else.

The results document is for people and tools: it alone is enough to compare a run. With the database, other
metrics can be scored on the stored outputs without calling the system.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.dataset import EvaluationDataset, checked_samples
from ..core.matching import match_of
from ..core.scores import as_columns
from ..core.scoring import Tally, short_id
from ..core.settings import DEFAULT_OUT
from ..core.types import EvaluationRun, EvaluationSample, MetricResult, SystemOutputs
from ..errors import DataError, NotFoundError, StorageError, check_type
from ..io.documents import check_storable
from ..io.files import write_bytes
from ..io.results.document import (
    JsonRows,
    Row,
    add_stored_attempts,
    is_ours,
    query_result,
    results_to_run,
    score_fields,
)
from .columns import ScoreColumns, failed_ids
from .database import SUFFIX as DATABASE
from .database import Database, decoded_output, decoded_sample
from .lock import locked
from .state import (
    SUFFIX,
    YAML,
    RunState,
    is_made_of,
    not_found,
    read_results,
    read_results_head,
    unfinished_ids,
)
from .writer import ROWS_IN_THE_DOCUMENT, add_whole, drafted, indented, rewrite, with_metadata

if TYPE_CHECKING:
    from ..core.runner import AueporaEvaluator
    from .record import StoredRecord


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
        self, run: EvaluationRun, *, force: bool = False, most_rows: int = ROWS_IN_THE_DOCUMENT
    ) -> Path:
        """Store a run whole and return the path of its results document.

        A run of more than `most_rows` samples has its rows in its database only.
        """
        checked_samples(run.evaluation_id, run.samples)
        state, match = self.state(run.evaluation_id), match_of(run)
        with drafted(state, force=force, match=match, most_rows=most_rows) as writer:
            return add_whole(writer, run)

    def load_run(self, name: str | Path, *, texts: bool = True) -> EvaluationRun:
        """Return a stored run, by its id or by the path of its results document.

        Without `texts` it has no outputs, and only those samples that some metric could not score because
        they failed: that is enough to compare it, and a million samples fit into memory. Then the document
        alone is enough, as long as it has its rows.
        """
        with StoredRun(self.find(name)) as stored:
            return stored.run(texts=texts)

    def load_summary(self, name: str | Path) -> EvaluationRun:
        """Return a stored run without samples, outputs and scores: its rows are not read."""
        path = self.find(name)
        return results_to_run(read_results_head(path), None, [], [], path.name)

    def load_tally(self, name: str | Path) -> Tally:
        """Return the outcome of the calls of a stored run."""
        with StoredRun(self.find(name)) as stored:
            return stored.tally()

    def save_results(self, results: dict[str, Any], evaluation_type: str = "standard") -> str:
        """Store a results document and return its path. An existing file is never overwritten.

        NaN becomes null. A value that JSON has no form for is an error. The caller's `_metadata` is kept
        beside our note.
        """
        check_type("results", results, "a dict", dict)
        check_storable(results, "results")
        started = datetime.now(UTC).strftime("%Y%m%d_%H%M%S")
        # Several documents may be stored within a second.
        name = results.get("evaluation_id") or self.free_id(f"eval_{started}")
        state = self.state(name)
        if state.has_results:
            raise StorageError(f"{state.path} exists already. Choose another evaluation_id.")
        state.check_free()
        document = with_metadata({**results, "evaluation_id": name}, evaluation_type, state.path)
        if "query_results" in document:
            document["query_results"] = document.pop("query_results")  # last, as runs have them
        write_bytes(state.path, indented(document), private=True)
        return str(state.path)

    def load_results(self, evaluation_id: str) -> dict[str, Any]:
        """Return a stored results document with its rows, wherever they are stored."""
        with StoredRun(self.find(evaluation_id)) as stored:
            if "run_file" in stored.document:
                stored.document["query_results"] = list(stored.rows())
            return stored.document

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

    def save_fact(self, name: str | Path, **facts: Any) -> None:
        """Store facts about a run beside its samples and outputs, such as its `diagnosis`."""
        path = database_of(self.find(name))
        with locked(path), Database.write(path) as database:
            database.set_meta(**facts)

    def replace_results(self, name: str | Path, results: list[MetricResult]) -> None:
        """Give a stored run other results; its samples, outputs and calls stay as they are."""
        run = replace(self.load_run(name), results=results)
        state = self.state(run.evaluation_id)
        with locked(state.database), Database.write(state.database) as database:
            rewrite(state, database, run)

    def load_fact(self, name: str | Path, fact: str) -> Any:
        """Return a fact about a stored run by its name; None if it has none."""
        path = database_of(self.find(name))
        if not path.exists():
            return None
        with Database.read(path) as database:
            return database.meta(fact)

    def find(self, name: str | Path) -> Path:
        """Return the results document of a run named by id, by path, or by the path of its database."""
        text = str(name)
        for path in (Path(text), Path(text.removesuffix(DATABASE) + SUFFIX)):
            with suppress(OSError):  # a name that is too long
                if path.name.endswith((SUFFIX, *YAML)) and path.is_file():
                    return path
        if "/" in text or os.sep in text:
            run = Path(text.removesuffix(DATABASE).removesuffix(SUFFIX))
            if run.name in unfinished_ids(run.parent):
                raise not_found(run.parent, run.name, [])
            _check_name(text)
            raise NotFoundError(f"{text!r:.200}", "there is no such file.", fix="Check the path.")
        path = self.state(text.removesuffix(SUFFIX)).path
        if not path.is_file():
            _check_name(text)
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
        from ..core.rag_interface import name_of
        from .record import StoredRecord  # with the calls, which most commands do not make

        name = evaluation_id or self.free_id(short_id(name_of(evaluator.system)))
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
        """Evaluate and store the run, each call as it arrives. The options are those of `StoredRecord`.

        With `resume` a run that was started is resumed. A complete run is only read, if it is of this plan,
        dataset and system.
        """
        from ..core.runner import evaluate

        if not resume:
            return evaluate(
                evaluator, self.record(evaluator, dataset, evaluation_id=evaluation_id, **options)
            )
        if evaluation_id is None:
            raise DataError("resume", "it needs the id of a run.", fix="Name it: evaluation_id='...'.")
        state = self.state(evaluation_id)
        options["resume"] = state.header is not None
        record = self.record(evaluator, dataset, evaluation_id=evaluation_id, **options)
        if state.is_complete(retry_failed=record.retry_failed):
            record.check_same_run()
            return self.load_run(evaluation_id, texts=False)
        return evaluate(evaluator, record)

    def free_id(self, wanted: str) -> str:
        """Return the id itself, or with the first number behind it that no run has yet."""
        number, candidate = 1, wanted
        while self.state(candidate).has_results or self.state(candidate).database.exists():
            number += 1
            candidate = f"{wanted}-{number}"
        return candidate

    def _paths(self) -> list[Path]:
        return sorted(self.results_directory.glob(f"*{SUFFIX}"))


def _check_name(path: str) -> None:
    """NotFoundError for a file that is there, and whose name is not that of results."""
    is_there = False
    with suppress(OSError):  # a name that is too long
        is_there = Path(path).is_file()
    if is_there:
        raise NotFoundError(path, f"the name of a results file ends in {SUFFIX}.", fix="Rename the file.")


class StoredRun:
    """The one reader of a stored run: its document, and its database if that is there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.database: Database | None = None
        head = read_results_head(path)
        # A document without its database is a baseline; the rows are then in the document.
        database = database_of(path)
        if database.exists() and is_ours(head):
            self.database = Database.read(database)
            if not is_made_of(head, self.database):
                self.database.close()
                what = f"it was not made of the outputs in {database.name}."
                raise DataError(path.name, what, fix="Resume the run, or score it again.")
        elif "run_file" in head:
            raise StorageError(f"{database} is missing: it has the scores of the run.")
        self._head = head

    def __enter__(self) -> StoredRun:
        return self

    def __exit__(self, *_: object) -> None:
        if self.database is not None:
            self.database.close()

    @property
    def document(self) -> dict[str, Any]:
        """Return the results document, with the rows that are in it."""
        if "query_results" not in self._head:
            self._head = read_results(self.path)
        return self._head

    def run(self, *, texts: bool) -> EvaluationRun:
        """Return the run; see `EvaluationResultsStorage.load_run`."""
        if self.database is None:
            if texts:
                self.whole()
            source = JsonRows(self.document.get("query_results", []), self.path.name)
            return results_to_run(self._head, source, [], [], self.path.name)
        pairs = list(self.pairs()) if texts else []
        samples, outputs = [sample for sample, _ in pairs], [output for _, output in pairs]
        run = results_to_run(self._head, self.columns, samples, outputs, self.path.name)
        if not texts:
            failed = {name for result in run.results for name in failed_ids(as_columns(result.scores))}
            rows = self.database.select_in("SELECT n, record FROM sample WHERE id", list(failed))
            run.samples = [decoded_sample(record, self.path.name) for _, record in sorted(rows)]
        return run

    def pairs(self) -> Iterator[tuple[EvaluationSample, SystemOutputs]]:
        """Yield each sample with its output."""
        for record, reply in self.records():
            yield decoded_sample(record, self.path.name), decoded_output(reply, self.path.name)

    def records(self) -> Iterator[tuple[str, str]]:
        """Yield the records of each sample and its output, as they are stored."""
        query = "SELECT s.record, c.reply FROM sample s JOIN call c ON c.n = s.answer ORDER BY s.n"
        yield from self.whole().stream(query)

    @cached_property
    def columns(self) -> ScoreColumns:
        """Return the scores; all that use them share one list of the ids."""
        return ScoreColumns(self.whole())

    def whole(self) -> Database:
        """Return the database; StorageError if there is none."""
        if self.database is None:
            # Its own error names what is missing; a file of another tool is not a run at all.
            results_to_run(self._head, None, [], [], self.path.name)
            return Database.read(database_of(self.path))  # StorageError: it is missing
        return self.database

    def rows(self) -> Iterator[Row]:
        """Yield each row of `query_results`, also of a run whose document does not have them."""
        if self.database is None or "run_file" not in self._head:
            yield from self.document.get("query_results", [])
            return
        columns = self.columns
        fields = score_fields(len(columns.ids), {name: columns.scores(name) for name in columns.names})
        for (sample, output), scored in zip(self.pairs(), fields, strict=True):
            yield query_result(sample, output, scored)

    def tally(self) -> Tally:
        """Return the outcome of the calls, without their times."""
        summary = self._head.get("summary")
        counts = summary if isinstance(summary, dict) else {}
        if self.database is None:
            if counts.get("failed_queries") == 0 and isinstance(total := counts.get("total_queries"), int):
                return add_stored_attempts(Tally(total), self._head)
            rows = JsonRows(self.document.get("query_results", []), self.path.name)
            return add_stored_attempts(rows.tally(), self._head)
        codes = np.frombuffer(self.database.meta("column error"), "<i4")
        tally = Tally(len(codes))
        for (kind, message), count in zip(
            self.database.meta("errors"), np.bincount(codes[codes >= 0]).tolist(), strict=False
        ):
            tally.failures[kind, message] += count
        return add_stored_attempts(tally, self._head)


def database_of(path: Path) -> Path:
    """Return the database of a run, by its results document."""
    return path.with_name(path.name.removesuffix(SUFFIX) + DATABASE)


def stored_samples(path: Path) -> Iterator[EvaluationSample]:
    """Yield the samples of a stored run, by its results document."""
    with StoredRun(path) as stored:
        for record, _ in stored.records():
            yield decoded_sample(record, path.name)


def read_head(path: Path) -> dict[str, Any]:
    """Return the head of a results file, for a list of runs."""
    head = read_results_head(path)
    summary, note = (head.get(part) or {} for part in ("summary", "_metadata"))
    if not isinstance(summary, dict) or not isinstance(note, dict):
        raise DataError(path.name, "not a results file.", fix="Is it the right file?")
    first = next(((name, value) for name, value, _ in metric_values(head) if _is_number(value)), None)
    judges = {metric: judge for metric, entry in _entries(head) if (judge := _judge_of(entry))}
    return {
        "evaluation_id": head.get("evaluation_id"),
        "timestamp": head.get("timestamp"),
        "system_version": head.get("system_version"),
        "dataset_id": head.get("dataset_id"),
        "total_queries": summary.get("total_queries"),
        "failed_queries": summary.get("failed_queries"),
        "evaluation_type": note.get("evaluation_type"),
        "first_metric": first,
        "judges": judges,
    }


def _judge_of(entry: Any) -> str:
    """Return the judge that scored a metric, as --judge takes it; "" if none did."""
    details = entry.get("details") if isinstance(entry, dict) else None
    record = details.get("judge") if isinstance(details, dict) else None
    return str(record.get("judge", "")) if isinstance(record, dict) else ""


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
    """Return the values of the metrics if failed calls had scored worst; None if that is not known."""
    worst: dict[str, float | None] = {}
    for metric, entry in _entries(document):
        details = entry.get("details") if isinstance(entry, dict) else None
        bounds = details.get("bounds_if_failed") if isinstance(details, dict) else None
        if isinstance(details, dict) and isinstance(bounds, list) and len(bounds) == 2:
            of_metric = details.get("num_failed_by_metric", 0)
            if of_metric == details.get("num_failed"):
                continue  # all calls were answered
            # The bounds are those of both kinds of failures, which are not known apart here.
            worst[metric] = None if of_metric else bounds[0 if details.get("higher_is_better", True) else 1]
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
