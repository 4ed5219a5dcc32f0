"""Verify a stored run: hashes, rows, counts and values are computed again and compared."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from ..core.dataset import Fingerprint
from ..core.display import number_or_null
from ..core.metrics_base import SampleMetric
from ..core.scores import Scores
from ..core.scoring import Tally
from ..core.types import COUNTS, EvaluationSample, MetricResult
from ..errors import AueporaError, DataError, StorageError, UnknownNameError
from ..io.jsonl import encode
from ..io.results.document import (
    JsonRows,
    Row,
    ScoreSource,
    add_stored_attempts,
    evaluation_parameters,
    is_ours,
    latency_stats,
    plan_sha256,
    query_result,
    score_fields,
    statistical_analysis,
    stored_metrics,
    stored_stopping,
    summary,
)
from ..metrics.parse import parse_metric
from ..read.records import read_prediction, read_sample
from ..store.stopping import sequence_result
from .columns import ScoreColumns
from .database import Database
from .state import SUFFIX, read_results
from .storage import EvaluationResultsStorage, database_of

FITS, DOES_NOT_FIT, UNCHECKED = "fits", "does not fit", "cannot be checked"
_OF_THE_METRIC = ("higher_is_better", "unit", "bounds", "interval_method")
_PARTS = ("samples and outputs",)


@dataclass(frozen=True)
class Check:
    """One check: its subject, its status, and what differs."""

    what: str
    status: str
    found: str = ""


@dataclass
class Verification:
    """The checks of a stored run."""

    evaluation_id: str
    checks: list[Check] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Return whether every check fits or cannot be made."""
        return not self.having(DOES_NOT_FIT)

    @property
    def whole(self) -> bool:
        """Return whether all parts could be read: rows, samples and outputs."""
        return not any(check.what in _PARTS for check in self.having(UNCHECKED))

    def having(self, status: str) -> list[Check]:
        """Return the checks with this status."""
        return [check for check in self.checks if check.status == status]


def verify_run(storage: EvaluationResultsStorage, name: str | Path) -> Verification:
    """Check whether the files of a run are consistent; no system is called and no output scored."""
    path = storage.find(name)
    results = read_results(path)
    if not is_ours(results):
        what = "not a results file of ours: it names no schema_version."
        raise DataError(path.name, what, fix="Only runs that auepora stored can be verified.")
    verification = Verification(str(results.get("evaluation_id")))
    try:
        verification.checks += _checks(results, path)
    except AueporaError:
        raise
    # An edited file may lack any field: one message here instead of a check at every access.
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DataError(
            path.name, f"not a results file of ours: {error!r} is missing or wrong.", fix="Was it edited?"
        ) from error
    return verification


def _checks(results: dict[str, Any], path: Path) -> Iterator[Check]:
    yield _check_plan(results)
    yield from _check_names(results, path)
    try:
        database = Database.read(database_of(path))
    except StorageError as error:
        yield Check("samples and outputs", UNCHECKED, str(error))
        if "run_file" not in results:  # a document alone: what it says of its rows can be checked
            rows = JsonRows(results.get("query_results", []), path.name)
            yield from _check_summary(results, add_stored_attempts(rows.tally(), results))
            yield from _check_metrics(results, rows, None, rows.tally().total)
        return
    with database:
        contents = _Contents(results, database)
        try:
            contents.walk()
        except AueporaError as error:
            yield Check("samples and outputs", DOES_NOT_FIT, str(error))
            return
        yield from contents.checks()
        yield from _check_summary(results, contents.tally)
        yield from _check_metrics(results, contents.columns, contents.failed, contents.tally.total)


def _check_plan(results: Mapping[str, Any]) -> Check:
    stored = results.get("metadata", {}).get("plan_sha256")
    if stored is None:
        return Check("plan_sha256", UNCHECKED, "the file has none")
    return check_same("plan_sha256", stored, plan_sha256(results))


def _check_names(results: Mapping[str, Any], path: Path) -> Iterator[Check]:
    """Check what the file has twice: in its name and content, or in two parts."""
    name = path.name.removesuffix(SUFFIX)
    yield check_same("evaluation_id", results.get("evaluation_id"), name)
    parameters = dict(results["metadata"]["evaluation_parameters"])
    # The seed of the run is not part of the configuration, so it has nothing to be compared with.
    parameters.pop("random_seed", None)
    yield check_same("evaluation_parameters", parameters, evaluation_parameters(results["configuration"]))


class _Contents:
    """The samples and outputs of the run, read once, beside the rows of the document."""

    def __init__(self, results: Mapping[str, Any], database: Database) -> None:
        self._results, self._database = results, database
        self.columns = ScoreColumns(database)
        self.failed: dict[str, EvaluationSample] = {}  # those that some metric failed on
        self.tally = Tally()
        self._dataset, self._outputs = Fingerprint(), Fingerprint()
        self._rows: list[Row] | None = None if "run_file" in results else results.get("query_results", [])
        self._different: list[str] = []

    def walk(self) -> None:
        """Read everything."""
        if self._database.meta("evaluation_id") != self._results.get("evaluation_id"):
            self._different.append("the database is of another run")
        scores = {name: self.columns.scores(name) for name in self.columns.names}
        failed = {
            column.sample_ids[place]
            for column in scores.values()
            for place, note in column.notes.items()
            if note.failed
        }
        fields = iter(()) if self._rows is None else iter(score_fields(len(self.columns.ids), scores))
        query = (
            "SELECT s.id, s.record, c.sample, c.reply FROM sample s LEFT JOIN call c ON c.n = s.answer "
            "ORDER BY s.n"
        )
        size = 0
        for size, (sample_id, record, answered, reply) in enumerate(self._database.stream(query), start=1):
            self._dataset.add_lines(record.encode() + b"\n")
            self._outputs.add_lines((reply or "").encode() + b"\n")
            if answered != sample_id:
                self._different.append(f"the output of {sample_id!r:.60} is for {answered!r:.60}")
                continue
            output = read_prediction(_decoded(reply, sample_id), f"output of {sample_id!r:.60}")[1]
            self.tally.add([output])
            if sample_id in failed or self._rows is not None:
                sample = read_sample(_decoded(record, sample_id), f"sample {sample_id!r:.60}")
                if sample_id in failed:
                    self.failed[sample_id] = sample
                if self._rows is not None:
                    self._compare(size - 1, query_result(sample, output, next(fields)))
        if self._rows is not None and size != len(self._rows):
            self._different.append(f"there are {len(self._rows)} rows, and {size} samples")

    def _compare(self, place: int, expected: Row) -> None:
        """Compare a row of the document with what the database has."""
        row = self._rows[place] if self._rows is not None and place < len(self._rows) else {}
        expected = msgspec.json.decode(encode(expected))  # as a file has it
        wrong = [name for name in {**expected, **row} if not _same(row.get(name), expected.get(name))]
        if wrong:
            self._different.append(f"{', '.join(wrong)} of {expected['query_id']!r:.60}")

    def checks(self) -> Iterator[Check]:
        """Yield the checks of what was read."""
        metadata = self._results.get("metadata", {})
        for name, computed in (("dataset_sha256", self._dataset), ("outputs_sha256", self._outputs)):
            if name in metadata:
                yield check_same(name, metadata[name], computed.hexdigest())
            else:
                yield Check(name, UNCHECKED, "the file has none")
        if self._different:
            what = f"{len(self._different)} differ, first: {self._different[0]}"
            yield Check("rows against samples and outputs", DOES_NOT_FIT, what)
        else:
            yield Check("rows against samples and outputs", FITS)
        rows = self._results.get("run_file", {"rows": self.tally.total})
        yield check_same("rows", rows.get("rows"), self.tally.total)
        usage = self.tally.usage.as_dict(self._results.get("configuration", {}))
        yield check_same("api_usage", self._results.get("performance_metrics", {}).get("api_usage"), usage)


def _decoded(text: str, sample_id: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise DataError(f"sample {sample_id!r:.60}", f"its row is damaged: {error}.") from error


def _check_summary(results: Mapping[str, Any], tally: Tally) -> Iterator[Check]:
    stored = results.get("summary", {})
    for name, value in summary(tally).items():
        yield check_same(f"summary.{name}", stored.get(name), value)
    checked = results["metadata"].get("quality_assurance", {})
    yield check_same("samples_checked", checked.get("samples_checked"), tally.total)
    stats = results.get("performance_metrics", {}).get("latency_stats")
    yield check_same("latency_stats", stats, latency_stats(tally.seconds))


def _check_metrics(
    results: Mapping[str, Any], rows: ScoreSource, samples: Mapping[str, EvaluationSample] | None, size: int
) -> Iterator[Check]:
    stopping = stored_stopping(results, "results")
    if stopping is not None:
        yield check_same("stopping.samples_used", stopping.samples_used, size)
    metrics = stored_metrics(results, rows)
    methods = statistical_analysis(metrics)
    yield check_same("statistical_analysis", results.get("statistical_analysis"), methods)
    for result in metrics:
        try:
            metric = parse_metric(result.name).matched_by(str(result.signature.get("match", "id")))
        except UnknownNameError:
            yield Check(result.name, UNCHECKED, "it is not one of the registered metrics")
            continue
        signature = {"metric": metric.name, **metric.signature()}
        # Another version of a metric or its model gives other values. This is not damage.
        if result.signature != signature:
            what = f"it was computed as {result.signature}, here it would be {signature}"
            yield Check(result.name, UNCHECKED, what)
            continue
        scores: Scores = result.scores  # type: ignore[assignment]  # columns, as rows give them
        keys = [*COUNTS, *_OF_THE_METRIC, "confidence_interval"]
        if samples is not None:
            _add_failed(scores, metric, samples)
            keys.append("bounds_if_failed")
        computed = metric.summarise(scores)
        if stopping is not None:
            computed = sequence_result(metric, computed, stopping)
        yield _check_metric(result, computed, keys)


def _add_failed(scores: Scores, metric: SampleMetric, samples: Mapping[str, EvaluationSample]) -> None:
    """Add to scores what the rows do not have: the scores that failed samples could have had."""
    names = [scores.sample_ids[place] for place, note in scores.notes.items() if note.failed]
    failed = [samples[name] for name in names if name in samples]
    if failed:
        low, high = (
            Scores.of(metric.score_if_failed(sample, high=best) for sample in failed).rows()
            for best in (False, True)
        )
        scores.if_failed = (low, high)


def _check_metric(stored: MetricResult, computed: MetricResult, keys: list[str]) -> Check:
    values = number_or_null(stored.value), number_or_null(computed.value)
    pairs: dict[str, tuple[object, object]] = {"value": values}
    pairs["target"] = (stored.target.name, computed.target.name)
    # As a file has them: an infinite bound is null there.
    details = msgspec.json.decode(encode(computed.details))
    pairs |= {key: (stored.details.get(key), details.get(key)) for key in keys}
    wrong = [
        f"{name} is {ours!r:.120}, by the rows {theirs!r:.120}"
        for name, (ours, theirs) in pairs.items()
        if not _same(ours, theirs)
    ]
    return Check(stored.name, DOES_NOT_FIT if wrong else FITS, "; ".join(wrong))


def check_same(what: str, stored: Any, computed: Any) -> Check:
    """Return the check of a stored value against the computed one."""
    if _same(stored, computed):
        return Check(what, FITS)
    return Check(what, DOES_NOT_FIT, f"the file says {stored!r:.120}, found {computed!r:.120}")


def _same(a: Any, b: Any) -> bool:
    """Return whether values are equal, numbers up to the rounding of another machine."""
    # True == 1 in Python, but not in a file.
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)
