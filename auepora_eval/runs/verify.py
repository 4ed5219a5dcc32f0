"""Does a stored run fit together? Hashes, rows, counts and values are found anew and compared."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from ..core.batch import cluster_names
from ..core.fingerprint import Fingerprint
from ..core.metrics_base import SampleMetric
from ..core.scores import Scores
from ..core.scoring import Tally
from ..core.types import EvaluationSample, MetricResult
from ..errors import AueporaError, DataError, MissingDependencyError, StorageError, UnknownNameError
from ..io.jsonl import encode
from ..io.queries_parquet import QUERIES_SUFFIX
from ..io.query_rows import QueryRows, Row, query_result
from ..io.records import read_prediction
from ..io.results_json import (
    evaluation_parameters,
    is_ours,
    latency_stats,
    number_or_null,
    plan_sha256,
    statistical_analysis,
    stored_metrics,
    stored_stopping,
    summary,
)
from ..metrics.parse import parse_metric
from .stopping_results import sequence_result
from .storage import (
    SUFFIX,
    EvaluationResultsStorage,
    query_rows,
    read_results,
    stored_predictions,
    stored_samples,
)

FITS, DOES_NOT_FIT, UNCHECKED = "fits", "does not fit", "cannot be checked"
RUN_OF = "run of "  # a variant of an experiment
_SCORED = ("individual_metrics", "statistics", "not_measured")  # what a row has beside its sample and output
_OF_THE_METRIC = ("higher_is_better", "unit", "bounds", "interval_method")
_PARTS = ("rows", "samples and outputs")
_SINCE_1_1 = ("cluster", "citations")


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: what, how it stands, and what was found."""

    what: str
    status: str
    found: str = ""


@dataclass
class Verification:
    """What fits in a stored run, and what does not."""

    evaluation_id: str
    checks: list[Check] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing was found that does not fit."""
        return not self.having(DOES_NOT_FIT)

    @property
    def whole(self) -> bool:
        """Whether all that belongs to it could be read: rows, samples, outputs, an experiment's runs."""
        return not any(
            check.what in _PARTS or check.what.startswith(RUN_OF) for check in self.having(UNCHECKED)
        )

    def having(self, status: str) -> list[Check]:
        """The checks that ended so."""
        return [check for check in self.checks if check.status == status]


def verify_run(storage: EvaluationResultsStorage, name: str | Path) -> Verification:
    """Find anew whatever a run's files say about each other; no system is called and no output scored."""
    path = storage.find(name)
    results = read_results(path)
    if not is_ours(results):
        what = "not a results file of ours: it names no schema_version."
        raise DataError(path.name, what, fix="Only what our runs stored can be found anew.")
    found = Verification(str(results.get("evaluation_id")))
    try:
        found.checks += _checks(results, path)
    except AueporaError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise DataError(
            path.name, f"not a results file of ours: {error!r} is missing or wrong.", fix="Was it edited?"
        ) from error
    return found


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
        yield from _check_metrics(results, rows, files.samples if files.whole else None)


def _check_plan(results: Mapping[str, Any]) -> Check:
    stored = results.get("metadata", {}).get("plan_sha256")
    if stored is None:
        return Check("plan_sha256", UNCHECKED, "the file has none")
    return check_same("plan_sha256", stored, plan_sha256(results))


def _check_names(results: Mapping[str, Any], path: Path) -> Iterator[Check]:
    """What is said twice: in the file and by its name, in one part of it and in another."""
    name = path.name.removesuffix(SUFFIX)
    yield check_same("evaluation_id", results.get("evaluation_id"), name)
    if results.get("schema_version") == "1.0":
        return  # it had the seed alone there
    parameters = dict(results["metadata"]["evaluation_parameters"])
    parameters.pop("random_seed", None)
    yield check_same("evaluation_parameters", parameters, evaluation_parameters(results["configuration"]))


def _check_rows(told: Mapping[str, Any], path: Path, found: int) -> Check:
    """Whether the rows of a large run are as many as its file says, in the file that it names."""
    name = path.name.removesuffix(SUFFIX) + QUERIES_SUFFIX
    if told and told.get("name") != name:
        return Check("rows", DOES_NOT_FIT, f"queries_file names {told.get('name')!r:.80}, they are in {name}")
    return check_same("rows", told.get("rows", found), found)


@dataclass
class _Files:
    """The samples and outputs of the run's folder, walked through once, beside the rows."""

    results: Mapping[str, Any]
    rows: QueryRows | None
    whole: bool = False
    samples: dict[str, EvaluationSample] = field(default_factory=dict)  # as far as values depend on them
    _dataset: Fingerprint = field(default_factory=Fingerprint)
    _outputs: Fingerprint = field(default_factory=Fingerprint)
    _tally: Tally = field(default_factory=Tally)
    _different: list[str] = field(default_factory=list)

    def walk(self, path: Path) -> None:
        """Read everything; DataError where a file is damaged."""
        rows = iter(()) if self.rows is None else self.rows.rows()
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
            old = self.results.get("schema_version") == "1.0"
            notes = row.get("not_measured") or {}
            failed = any(note.get("failed") for note in notes.values())
            if failed or (old and "cluster" in sample.metadata):
                self.samples[sample_id] = sample
            expected = query_result(sample, output, {})
            names = [name for name in expected if name not in _SCORED and not (old and name in _SINCE_1_1)]
            names += [name for name in row if name not in (*expected, *_SCORED)]
            wrong = [name for name in names if not _same(row.get(name), expected.get(name))]
            if wrong:
                self._different.append(f"{', '.join(wrong)} of {sample.sample_id!r:.60}")

    def checks(self) -> Iterator[Check]:
        """What the walk found; nothing if it did not come to its end."""
        if not self.whole:
            return
        metadata = self.results.get("metadata", {})
        for name, found in (("dataset_sha256", self._dataset), ("outputs_sha256", self._outputs)):
            if name in metadata:
                yield check_same(name, metadata[name], found.hexdigest())
            else:
                yield Check(name, UNCHECKED, "the file has none")
        if self._different:
            what = f"{len(self._different)} differ, first: {self._different[0]}"
            yield Check("rows against samples and outputs", DOES_NOT_FIT, what)
        elif self.rows is not None:
            yield Check("rows against samples and outputs", FITS)
        if self.results.get("schema_version") != "1.0":
            usage = self._tally.usage.as_dict(self.results.get("configuration", {}))
            stored = self.results.get("performance_metrics", {}).get("api_usage")
            yield check_same("api_usage", stored, usage)


def _check_summary(results: Mapping[str, Any], rows: QueryRows) -> Iterator[Check]:
    tally = rows.tally()
    stored = results.get("summary", {})
    for name, value in summary(tally).items():
        yield check_same(f"summary.{name}", stored.get(name), value)
    checked = results["metadata"].get("quality_assurance", {})
    if "samples_checked" in checked or results.get("schema_version") != "1.0":
        yield check_same("samples_checked", checked.get("samples_checked"), len(rows))
    stats = results.get("performance_metrics", {}).get("latency_stats")
    yield check_same("latency_stats", stats, latency_stats(tally.seconds))


def _check_metrics(
    results: Mapping[str, Any], rows: QueryRows, samples: Mapping[str, EvaluationSample] | None
) -> Iterator[Check]:
    seed = results["metadata"]["evaluation_parameters"]["random_seed"]
    old = results.get("schema_version") == "1.0"
    stopping = stored_stopping(results, "results")
    if stopping is not None:
        yield check_same("stopping.samples_used", stopping.samples_used, len(rows))
    metrics = stored_metrics(results, rows)
    methods = statistical_analysis(metrics)
    if not old:
        yield check_same("statistical_analysis", results.get("statistical_analysis"), methods)
    for result in metrics:
        try:
            metric = parse_metric(result.name)
        except UnknownNameError:
            yield Check(result.name, UNCHECKED, "it is not one of the registered metrics")
            continue
        signature = {"metric": metric.name, **metric.signature()}
        if result.details.get("signature") != signature:
            what = f"it was computed as {result.details.get('signature')}, here it would be {signature}"
            yield Check(result.name, UNCHECKED, what)
            continue
        scores: Scores = result.scores  # type: ignore[assignment]  # columns, as rows give them
        keys = ["num_total", "num_samples", "num_skipped", "num_failed"]
        # An old file names its interval in other words.
        keys += [
            name
            for name in _OF_THE_METRIC
            if not old or (name in result.details and name != "interval_method")
        ]
        if samples is not None:
            _complete(scores, metric, samples)
            # When 1.0 was written, a failed answer was bounded otherwise in some metrics (BLEU: by silence).
            keys += [] if old else ["bounds_if_failed"]
        # Nor were few clusters known to make intervals too narrow.
        keys += [] if old and scores.clusters is not None else ["confidence_interval"]
        found = metric.summarise(scores, seed=seed)
        if stopping is not None:
            found = sequence_result(metric, found, stopping)
        yield _check_metric(result, found, keys)


def _complete(scores: Scores, metric: SampleMetric, samples: Mapping[str, EvaluationSample]) -> None:
    """Add to scores what the rows do not tell: clusters in version 1.0, and what failures could have been."""
    if scores.clusters is None:
        bare = (samples.get(sample_id) or EvaluationSample(sample_id, "") for sample_id in scores.sample_ids)
        scores.clusters = cluster_names(list(bare))
    names = [scores.sample_ids[place] for place, note in scores.notes.items() if note.failed]
    failed = [samples[name] for name in names if name in samples]
    if failed:
        low, high = (
            Scores.of(metric.score_if_failed(sample, high=best) for sample in failed).rows()
            for best in (False, True)
        )
        scores.if_failed = (low, high)


def _check_metric(stored: MetricResult, found: MetricResult, keys: list[str]) -> Check:
    pairs: dict[str, tuple[Any, Any]] = {"value": (number_or_null(stored.value), number_or_null(found.value))}
    pairs["target"] = (stored.target.name, found.target.name)
    # As a file has it: a bound that is infinite is null there.
    details = msgspec.json.decode(encode(found.details))
    pairs |= {key: (stored.details.get(key), details.get(key)) for key in keys}
    wrong = [
        f"{name} is {ours!r:.120}, by the rows {theirs!r:.120}"
        for name, (ours, theirs) in pairs.items()
        if not _same(ours, theirs)
    ]
    return Check(stored.name, DOES_NOT_FIT if wrong else FITS, "; ".join(wrong))


def check_same(what: str, stored: Any, found: Any) -> Check:
    """Whether what is stored is what was found anew; what differs is told."""
    if _same(stored, found):
        return Check(what, FITS)
    return Check(what, DOES_NOT_FIT, f"the file says {stored!r:.120}, found {found!r:.120}")


def _same(a: Any, b: Any) -> bool:
    """Equal, numbers up to the rounding that another machine may bring."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b)
