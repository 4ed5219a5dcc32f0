"""Verify a stored run: hashes, rows, counts and values are computed again and compared."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from ...core.dataset import Fingerprint
from ...core.display import number_or_null
from ...core.metrics_base import SampleMetric
from ...core.scores import Scores
from ...core.scoring import Tally
from ...core.types import COUNTS, EvaluationSample, MetricResult
from ...errors import AueporaError, DataError, MissingDependencyError, StorageError, UnknownNameError
from ...io.jsonl import encode
from ...io.results.document import (
    QueryRows,
    Row,
    evaluation_parameters,
    is_ours,
    latency_stats,
    plan_sha256,
    query_result,
    statistical_analysis,
    stored_metrics,
    stored_stopping,
    summary,
)
from ...io.results.rows_parquet import QUERIES_SUFFIX
from ...metrics.parse import parse_metric
from ...read.records import read_prediction
from ..stopping import sequence_result
from .state import SUFFIX, read_results
from .storage import EvaluationResultsStorage, query_rows, stored_predictions, stored_samples

FITS, DOES_NOT_FIT, UNCHECKED = "fits", "does not fit", "cannot be checked"
_SCORED = ("individual_metrics", "statistics", "not_measured")  # what a row has beside its sample and output
_OF_THE_METRIC = ("higher_is_better", "unit", "bounds", "interval_method")
_PARTS = ("rows", "samples and outputs")


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
    rows: QueryRows | None = None
    try:
        rows = query_rows(results, path)
        yield _check_rows(results.get("queries_file", {}), path, len(rows))
    except MissingDependencyError as error:
        yield Check("rows", UNCHECKED, str(error))
    except DataError as error:
        yield Check("rows", DOES_NOT_FIT, str(error))
    files = _Files(results, rows)
    try:
        files.walk(path)
    except StorageError as error:
        yield Check("samples and outputs", UNCHECKED, str(error))
    except AueporaError as error:
        yield Check("samples and outputs", DOES_NOT_FIT, str(error))
    yield from files.checks()
    if rows is not None:
        yield from _check_summary(results, rows)
        # bounds_if_failed needs every failed sample: from half of them it would be wrong, not unknown.
        yield from _check_metrics(results, rows, files.samples if files.whole else None)


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


def _check_rows(stored: Mapping[str, Any], path: Path, count: int) -> Check:
    """Check the number of rows of a large run, and the name of their file."""
    name = path.name.removesuffix(SUFFIX) + QUERIES_SUFFIX
    if stored and stored.get("name") != name:
        what = f"queries_file names {stored.get('name')!r:.80}, they are in {name}"
        return Check("rows", DOES_NOT_FIT, what)
    return check_same("rows", stored.get("rows", count), count)


@dataclass
class _Files:
    """The samples and outputs of the run's folder, read once, beside the rows."""

    results: Mapping[str, Any]
    rows: QueryRows | None
    whole: bool = False
    samples: dict[str, EvaluationSample] = field(default_factory=dict)  # those that some metric failed on
    _dataset: Fingerprint = field(default_factory=Fingerprint)
    _outputs: Fingerprint = field(default_factory=Fingerprint)
    _tally: Tally = field(default_factory=Tally)
    _different: list[str] = field(default_factory=list)

    def walk(self, path: Path) -> None:
        """Read everything; raise DataError if a file is damaged."""
        rows = iter(()) if self.rows is None else self.rows.rows()
        # Read side by side, so that a large run is never in memory. Not `zip`: a file that was cut short must
        # be reported, and not shorten the others.
        for sample, prediction, row in zip_longest(stored_samples(path), stored_predictions(path), rows):
            if sample is not None:
                self._dataset.add([sample])
            if prediction is not None:
                self._outputs.add([prediction[1]])
            if sample is None or prediction is None or (row is None and self.rows is not None):
                self._different.append("their numbers differ")
            else:
                self._look(sample, prediction[0], prediction[1], row)
        self.whole = True

    def _look(self, sample: EvaluationSample, where: str, record: Row, row: Row | None) -> None:
        sample_id, output = read_prediction(record, where)
        self._tally.add([output])
        if sample_id != sample.sample_id:
            self._different.append(f"{where} is for {sample_id!r:.60}, not for {sample.sample_id!r:.60}")
        elif row is not None:
            notes = row.get("not_measured") or {}
            if any(note.get("failed") for note in notes.values()):
                self.samples[sample_id] = sample
            expected = query_result(sample, output, {})
            names = [name for name in expected if name not in _SCORED]
            names += [name for name in row if name not in (*expected, *_SCORED)]
            wrong = [name for name in names if not _same(row.get(name), expected.get(name))]
            if wrong:
                self._different.append(f"{', '.join(wrong)} of {sample.sample_id!r:.60}")

    def checks(self) -> Iterator[Check]:
        """Yield the checks of what was read; none if it could not be read to the end."""
        if not self.whole:
            return
        metadata = self.results.get("metadata", {})
        for name, computed in (("dataset_sha256", self._dataset), ("outputs_sha256", self._outputs)):
            if name in metadata:
                yield check_same(name, metadata[name], computed.hexdigest())
            else:
                yield Check(name, UNCHECKED, "the file has none")
        if self._different:
            what = f"{len(self._different)} differ, first: {self._different[0]}"
            yield Check("rows against samples and outputs", DOES_NOT_FIT, what)
        elif self.rows is not None:
            yield Check("rows against samples and outputs", FITS)
        usage = self._tally.usage.as_dict(self.results.get("configuration", {}))
        stored = self.results.get("performance_metrics", {}).get("api_usage")
        yield check_same("api_usage", stored, usage)


def _check_summary(results: Mapping[str, Any], rows: QueryRows) -> Iterator[Check]:
    tally = rows.tally()
    stored = results.get("summary", {})
    for name, value in summary(tally).items():
        yield check_same(f"summary.{name}", stored.get(name), value)
    checked = results["metadata"].get("quality_assurance", {})
    yield check_same("samples_checked", checked.get("samples_checked"), len(rows))
    stats = results.get("performance_metrics", {}).get("latency_stats")
    yield check_same("latency_stats", stats, latency_stats(tally.seconds))


def _check_metrics(
    results: Mapping[str, Any], rows: QueryRows, samples: Mapping[str, EvaluationSample] | None
) -> Iterator[Check]:
    stopping = stored_stopping(results, "results")
    if stopping is not None:
        yield check_same("stopping.samples_used", stopping.samples_used, len(rows))
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
