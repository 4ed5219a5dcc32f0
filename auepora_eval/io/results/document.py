"""The results format: a finished run as one JSON document, `<evaluation_id>.results.json`.

Metrics are grouped as retrieval, citation, answer quality, performance and additional; each entry has its
value, interval, target and coverage. `query_results`, which comes last, holds each sample's scores; a large
run has them in its database, which `run_file` names. Not measured is null.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import msgspec
import numpy as np

from ...core.dataset import Fingerprint
from ...core.display import number_or_null
from ...core.scores import Scores, as_columns, cluster_of, clusters_or_none
from ...core.scoring import Tally
from ...core.types import (
    EvaluationRun,
    EvaluationSample,
    MetricResult,
    SampleScore,
    SystemOutputs,
    Target,
    TargetCategory,
    gold_documents,
    known_scores,
    retrieved_ids,
    target_of,
)
from ...errors import DataError
from ...read.records import as_struct

if TYPE_CHECKING:
    from ...core.verdict import Stopping

# The second number grows with new fields, the first when old readers would go wrong.
SCHEMA_VERSION = "1.1"
Results = dict[str, Any]

_SECTIONS: dict[Target, str] = {
    TargetCategory.RETRIEVAL_RELEVANCE: "retrieval_metrics",
    TargetCategory.RETRIEVAL_ACCURACY: "retrieval_metrics",
    TargetCategory.GENERATION_RELEVANCE: "answer_quality_metrics",
    TargetCategory.GENERATION_FAITHFULNESS: "answer_quality_metrics",
    TargetCategory.GENERATION_CORRECTNESS: "answer_quality_metrics",
    TargetCategory.LATENCY: "performance_metrics",
}
# Whatever their target, metrics whose names begin so are about citations.
_SECTIONS_BY_NAME = dict.fromkeys(("citation_", "alce_citation_", "trec_support_"), "citation_metrics")
# For targets that a user named.
_OTHER_SECTION = "additional_metrics"
SECTIONS = (
    "retrieval_metrics",
    "citation_metrics",
    "answer_quality_metrics",
    "performance_metrics",
    _OTHER_SECTION,
)
# Settings that seed 003 lists again under another name.
_PARAMETERS = {
    "executor": "executor",
    "concurrency": "concurrency",
    "timeout": "timeout_seconds",
    "max_failures": "max_failures",
    "limit": "limit",
}


def section_of(result: MetricResult) -> str:
    """Return the section of the document that a metric is in."""
    for start, section in _SECTIONS_BY_NAME.items():
        if result.name.startswith(start):
            return section
    return _SECTIONS.get(result.target, _OTHER_SECTION)


def results_head(run: EvaluationRun, tally: Tally, outputs_sha256: str) -> Results:
    """The document without its rows: what the run was, what it found, what became of the calls."""
    sections: Results = {name: {} for name in SECTIONS}
    usage = {
        "latency_stats": latency_stats(tally.seconds),
        "resource_usage": run.resource_usage,
        "api_usage": tally.usage.as_dict(run.configuration),
    }
    sections["performance_metrics"] |= {name: part for name, part in usage.items() if part is not None}
    for place, result in enumerate(run.results):
        sections[section_of(result)][result.name] = {"order": place, **metric_entry(result)}
    for section, name, figures in _seed_figures(run.results):
        sections[section][name] = sections[section].get(name, {}) | figures
    head: Results = {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": run.evaluation_id,
        "timestamp": run.started_at,
        **_system(run),
        "dataset_id": run.dataset_name,
        "configuration": {
            "retrieval_k": run.top_k,
            "metrics": [result.name for result in run.results],
            **run.configuration,
        },
        "summary": {**summary(tally), "total_evaluation_time_seconds": run.seconds},
        **sections,
        "statistical_analysis": statistical_analysis(run.results),
    }
    head["metadata"] = {
        "dataset_sha256": run.dataset_fingerprint,
        **({"dataset_snapshot": run.snapshot} if run.snapshot else {}),
        **({"stopping": asdict(run.stopping)} if run.stopping is not None else {}),
        "outputs_sha256": outputs_sha256,
        "evaluation_environment": run.environment,
        "evaluation_parameters": {"random_seed": run.seed, **evaluation_parameters(run.configuration)},
        "quality_assurance": {
            "data_validation": "passed",
            "data_checks": "every sample has an id of its own and can be stored",
            "samples_checked": tally.total,
            "metric_calculation": "not verified",
            "statistical_tests": "not run",
        },
    }
    head["metadata"]["plan_sha256"] = plan_sha256(head)
    return head


def _system(run: EvaluationRun) -> Results:
    """Return the version of the system, and its name if they differ: seed 003 has a version only."""
    version = run.configuration.get("system_version")
    if not isinstance(version, str):
        return {"system_version": run.system_name}
    return {"system_version": version, "system_name": run.system_name}


# Figures under the names that seed 003 gives them, so that its tools find them, and the metrics that have
# them: a count is in the details of its metric under the same name, the others are its value.
_SEED_FIGURES: dict[str, dict[str, dict[str, str]]] = {
    "citation_metrics": {
        "span_accuracy": {
            "mean_exact_jaccard": "citation_span_exact",
            "mean_tolerance_jaccard": "citation_span_accuracy",
            "perfect_matches": "citation_span_perfect",
            "good_matches": "citation_span_good",
        },
        "citation_completeness": dict.fromkeys(("total_claims", "cited_claims"), "citation_completeness"),
        "citation_correctness": dict.fromkeys(
            ("total_citations", "correct_citations"), "citation_correctness"
        ),
    },
    "answer_quality_metrics": {
        "factual_consistency": dict.fromkeys(
            ("value", "mean_consistency", "consistency_scores"), "citation_factual_consistency"
        ),
        "hallucination_rate": dict.fromkeys(
            ("value", "total_claims", "hallucinated_claims"), "citation_hallucination_rate"
        ),
    },
}


def _seed_figures(results: Sequence[MetricResult]) -> Iterator[tuple[str, str, Results]]:
    """Yield (section, name, figures) of seed 003, as far as they were measured."""
    by_name: dict[str, MetricResult] = {}
    for result in results:
        by_name.setdefault(re.split(r"[@\[]", result.name)[0], result)
    for section, entries in _SEED_FIGURES.items():
        for name, fields in entries.items():
            measured = {field: by_name[metric] for field, metric in fields.items() if metric in by_name}
            figures = {
                field: _figure(result, field)
                for field, result in measured.items()
                if field in result.details or field not in _ONLY_IN_DETAILS
            }
            if figures:
                yield section, name, figures


# Unlike the other figures they are not the value of their metric where the details lack them.
_ONLY_IN_DETAILS = ("mean_consistency", "consistency_scores")


def _figure(result: MetricResult, field: str) -> Any:
    figure = result.details.get(field, result.value)
    return figure if isinstance(figure, list) else number_or_null(figure)


def summary(tally: Tally) -> Results:
    """What became of the calls."""
    by_type: Counter[str] = Counter()
    for (kind, _), count in tally.failures.items():
        by_type[kind] += count
    # Attempts that failed, also where a later one succeeded; absent if none was retried.
    attempts: Results = {}
    if tally.tried_again:
        attempts["failed_attempts"] = dict(tally.failed_attempts.most_common())
        attempts["recovered_queries"] = tally.recovered
    return {
        "total_queries": tally.total,
        "successful_queries": tally.total - tally.failed,
        "failed_queries": tally.failed,
        "failures_by_type": dict(by_type.most_common()),
        **attempts,
        "average_latency_ms": math.fsum(tally.seconds) / len(tally.seconds) * 1000 if tally.seconds else None,
    }


def add_stored_attempts(tally: Tally, results: Mapping[str, Any]) -> Tally:
    """A tally of stored rows, with what only the summary has: attempts that failed."""
    stored = results.get("summary")
    kinds = stored.get("failed_attempts") if isinstance(stored, dict) else None
    if isinstance(stored, dict) and isinstance(kinds, dict):
        tally.failed_attempts.update({kind: n for kind, n in kinds.items() if type(n) is int and n > 0})
        recovered = stored.get("recovered_queries")
        tally.recovered = recovered if type(recovered) is int else 0
    return tally


def latency_stats(seconds: Sequence[float]) -> Results | None:
    """Mean, quantiles and extremes of the answers' times, in milliseconds; None where there are none."""
    if not seconds:
        return None
    # The same as np.quantile, which imports numpy's masked arrays.
    places = np.array([0.5, 0.95, 0.99]) * (len(seconds) - 1)
    p50, p95, p99 = np.interp(places, np.arange(len(seconds)), np.sort(seconds)).tolist()
    stats = {"mean": math.fsum(seconds) / len(seconds), "p50": p50, "p95": p95, "p99": p99}
    stats |= {"min": min(seconds), "max": max(seconds)}
    return {name: float(value) * 1000 for name, value in stats.items()}


def plan_sha256(results: Mapping[str, Any]) -> str:
    """What was to be measured, and how, in 64 hex digits: configuration, seed and the metrics' signatures."""
    plan = {
        "configuration": results["configuration"],
        "random_seed": results["metadata"]["evaluation_parameters"]["random_seed"],
        "signatures": {
            name: entry["details"].get("signature")
            for section in SECTIONS
            for name, entry in results.get(section, {}).items()
            if isinstance(entry, Mapping) and "details" in entry
        },
    }
    return Fingerprint().add([plan]).hexdigest()


def evaluation_parameters(configuration: Mapping[str, Any]) -> Results:
    """How the calls were made, as far as the configuration says it."""
    return {new: configuration[old] for old, new in _PARAMETERS.items() if old in configuration}


def statistical_analysis(results: Sequence[MetricResult]) -> Results:
    """Which metrics have an interval, and by which method."""
    methods = {result.name: result.interval_method for result in results if result.interval is not None}
    word = (
        "calculated" if len(methods) == len(results) else f"calculated for {len(methods)} of {len(results)}"
    )
    return {
        "significance_tests": {},
        "confidence_intervals": {"all_metrics": word, "confidence_level": 0.95, "methods": methods},
    }


def check_version(results: Mapping[str, Any], where: str) -> None:
    """Raise DataError if the file has another version than ours; one without is another tool's."""
    version = results.get("schema_version")
    if version is not None and version != SCHEMA_VERSION:
        raise DataError(
            f"{where}: $.schema_version",
            f"{version!r:.40} is not the version that is known here, {SCHEMA_VERSION}.",
            fix="If the file is newer, upgrade auepora-eval.",
        )


def results_to_run(
    results: Mapping[str, Any],
    rows: ScoreSource | None,
    samples: list[EvaluationSample],
    outputs: list[SystemOutputs],
    where: str,
) -> EvaluationRun:
    """A run from the stored document, and its rows, samples and outputs as far as they were read."""
    if not is_ours(results):
        fix = f"Make a run of them: auepora score --dataset FILE --outputs {where}"
        raise DataError(where, "the results of another tool, which `auepora show` prints.", fix=fix)
    stored = as_struct(results, _Stored, where, fix=EDITED)
    try:
        metrics = stored_metrics(results, rows)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, DataError):
            raise
        missing = f"{error.args[0]!r:.60} is" if isinstance(error, KeyError) else "something is"
        raise DataError(where, f"{missing} missing or wrong.", fix=EDITED) from error
    settings = results["configuration"].items()
    return EvaluationRun(
        evaluation_id=stored.evaluation_id,
        system_name=stored.system_name or stored.system_version,
        dataset_name=stored.dataset_id,
        dataset_fingerprint=stored.metadata.dataset_sha256,
        results=metrics,
        samples=samples,
        outputs=outputs,
        top_k=stored.configuration.retrieval_k,
        seed=stored.metadata.evaluation_parameters.random_seed,
        started_at=stored.timestamp,
        seconds=stored.summary.total_evaluation_time_seconds,
        environment=stored.metadata.evaluation_environment,
        configuration={key: value for key, value in settings if key not in ("retrieval_k", "metrics")},
        resource_usage=stored.performance_metrics.get("resource_usage"),
        snapshot=stored.metadata.dataset_snapshot,
        stopping=stored_stopping(results, where),
    )


def stored_stopping(results: Mapping[str, Any], where: str) -> Stopping | None:
    """How a run ended that was to stop when its verdict is clear; None for a run of all samples."""
    stopping = results["metadata"].get("stopping")
    if stopping is None:
        return None
    from ...core.verdict import Stopping  # of few runs

    return as_struct(stopping, Stopping, f"{where}: $.metadata.stopping", fix=EDITED)


def is_ours(results: Mapping[str, Any]) -> bool:
    """Whether a document is a run of ours: those of all versions name theirs."""
    return "schema_version" in results


class _Parameters(msgspec.Struct):
    random_seed: int


class _Metadata(msgspec.Struct):
    dataset_sha256: str
    evaluation_environment: Results
    evaluation_parameters: _Parameters
    dataset_snapshot: Results = {}


class _Configuration(msgspec.Struct):
    retrieval_k: int


class _Summary(msgspec.Struct):
    total_evaluation_time_seconds: float


class _Stored(msgspec.Struct):
    """The fields of a results file that are read back."""

    evaluation_id: str
    system_version: str
    dataset_id: str
    timestamp: str
    configuration: _Configuration
    summary: _Summary
    metadata: _Metadata
    performance_metrics: Results = {}
    system_name: str = ""


def metric_entry(result: MetricResult) -> Results:
    """A metric result as JSON has it: the value null where nothing was scored."""
    details = dict(result.details)
    return {
        "value": number_or_null(result.value),
        "confidence_interval": details.pop("confidence_interval", None),
        "target": result.target.name,
        "details": details,
    }


def stored_metrics(results: Mapping[str, Any], rows: ScoreSource | None) -> list[MetricResult]:
    """The metric results of a stored run, in the order of its plan, with the score of each row."""
    numbered: list[tuple[int, MetricResult]] = []
    for section in SECTIONS:
        for name, entry in results.get(section, {}).items():
            if isinstance(entry, dict) and "target" in entry:
                details = {
                    **entry.get("details", {}),
                    "confidence_interval": entry.get("confidence_interval"),
                }
                value = math.nan if entry["value"] is None else float(entry["value"])
                target = target_of(entry["target"])
                scores = [] if rows is None else rows.scores(name)
                result = MetricResult(name, target, value, details, scores)
                numbered.append((entry.get("order", len(numbered)), result))
    return [result for _, result in sorted(numbered, key=lambda pair: pair[0])]


# The per-query part of a results file: a row for each sample, and the scores read back from it.

Row = dict[str, Any]
EDITED = "Was it edited? Run the evaluation again."


class ScoreSource(Protocol):
    """The scores of a run, wherever they are: in the rows of its document, or in its database."""

    def scores(self, name: str) -> Scores:
        """A metric's scores, with the clusters of their samples; empty where no row has one."""
        ...


def query_results(
    samples: Sequence[EvaluationSample],
    outputs: Sequence[SystemOutputs],
    scores: Mapping[str, Sequence[SampleScore]],
) -> Iterator[Row]:
    """A row for each sample: its answer, what was retrieved, and its scores."""
    return map(query_result, samples, outputs, score_fields(len(samples), scores))


def score_fields(count: int, scores: Mapping[str, Sequence[SampleScore]]) -> list[Row]:
    """Return the fields of each row that hold its scores: values, sufficient statistics, reasons."""
    columns = {name: as_columns(column) for name, column in scores.items()}
    fields: list[Row] = [{"individual_metrics": {}} for _ in range(count)]
    for name, column in columns.items():
        for row, value in zip(fields, column.values.tolist(), strict=True):
            row["individual_metrics"][name] = value
        for place in column.notes:
            fields[place]["individual_metrics"][name] = None
    for name, column in columns.items():
        rows = [] if column.parts is None else column.parts.tolist()
        for place, parts in enumerate(rows):
            if place not in column.notes:
                fields[place].setdefault("statistics", {})[name] = parts
    for name, column in columns.items():
        for place, (reason, failed, of_metric) in column.notes.items():
            note = {"reason": reason, "failed": failed, **({"of_metric": True} if of_metric else {})}
            fields[place].setdefault("not_measured", {})[name] = note
    return fields


def query_result(sample: EvaluationSample, output: SystemOutputs, score_fields: Row) -> Row:
    """The row of one sample."""
    row: Row = {"query_id": sample.sample_id, "query_text": sample.query}
    # Absent rather than null: most datasets have no clusters.
    if (cluster := cluster_of(sample)) is not None:
        row["cluster"] = cluster
    row["latency_ms"] = latency_ms(output)
    row["retrieval_results"] = retrieval_results(sample, output)
    row["generated_answer"] = None if output.error else output.response.text
    cited = citations(output)
    if cited is not None:
        row["citations"] = cited
    row |= score_fields
    if output.error is not None:
        row["error"] = {"type": output.error.type, "message": output.error.message}
    return row


def retrieval_results(sample: EvaluationSample, output: SystemOutputs) -> Row:
    """Return the ids that were retrieved, their scores, and the ids of the relevant documents."""
    return {
        "retrieved_docs": retrieved_ids(output.retrieved),
        "relevance_scores": known_scores(output.retrieved),
        "ground_truth_relevant": [doc.doc_id for doc in gold_documents(sample)],
    }


def latency_ms(output: SystemOutputs) -> float | None:
    """How long an answer took; None where nobody measured it."""
    seconds = output.timings.get("end_to_end")
    return None if seconds is None else seconds * 1000


def citations(output: SystemOutputs) -> list[Any] | None:
    """Return what an answer cites, by the response's metadata; None where it says nothing."""
    cited = output.response.metadata.get("citations")
    return cited if isinstance(cited, list) else None


# Only what is read back of a row; other fields may have any type.
class _Note(msgspec.Struct):
    reason: str = ""
    failed: bool = False
    of_metric: bool = False


class _Error(msgspec.Struct):
    type: str
    message: str = ""


# Larger scores are none of ours: the sum of their squares would not be a number.
_Score = Annotated[float, msgspec.Meta(ge=-1e150, le=1e150)]


class _Row(msgspec.Struct):
    query_id: str
    cluster: str | None = None
    latency_ms: float | None = None
    error: _Error | None = None
    individual_metrics: dict[str, _Score | None] = {}
    not_measured: dict[str, _Note] = {}
    statistics: dict[str, list[float]] = {}


class JsonRows:
    """Rows that are in the results file itself."""

    def __init__(self, rows: Any, where: str) -> None:
        self._rows = as_struct(rows, list[_Row], f"{where}: $.query_results", fix=EDITED)

    def scores(self, name: str) -> Scores:
        none = _Note()
        rows = [row for row in self._rows if name in row.individual_metrics]
        scores = Scores.of(
            SampleScore(
                row.individual_metrics[name],
                (note := row.not_measured.get(name, none)).reason,
                tuple(row.statistics.get(name, ())),
                row.query_id,
                note.failed,
                note.of_metric,
            )
            for row in rows
        )
        scores.clusters = clusters_or_none([row.query_id for row in rows], [row.cluster for row in rows])
        return scores

    def tally(self) -> Tally:
        tally = Tally(len(self._rows))
        for row in self._rows:
            if row.error is not None:
                tally.failures[row.error.type, row.error.message] += 1
            elif row.latency_ms is not None:
                tally.seconds.append(row.latency_ms / 1000)
        return tally
