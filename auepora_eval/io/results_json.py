"""The results format: a finished run as one JSON document, `<evaluation_id>.results.json`.

Metrics are grouped as retrieval, answer quality, performance and additional; each entry has its value,
interval, target and coverage. `query_results` holds each sample's scores. Not measured is null.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

import msgspec

from ..core.scores import Scores
from ..core.scoring import Tally
from ..core.types import (
    EvaluationRun,
    EvaluationSample,
    MetricResult,
    SampleScore,
    SystemOutputs,
    TargetCategory,
)
from ..errors import DataError

SCHEMA_VERSION = "1.0"
Results = dict[str, Any]

_SECTIONS = {
    TargetCategory.RETRIEVAL_RELEVANCE: "retrieval_metrics",
    TargetCategory.RETRIEVAL_ACCURACY: "retrieval_metrics",
    TargetCategory.GENERATION_RELEVANCE: "answer_quality_metrics",
    TargetCategory.GENERATION_FAITHFULNESS: "answer_quality_metrics",
    TargetCategory.GENERATION_CORRECTNESS: "answer_quality_metrics",
    TargetCategory.LATENCY: "performance_metrics",
}
_OTHER_SECTION = "additional_metrics"
SECTIONS = (*dict.fromkeys(_SECTIONS.values()), _OTHER_SECTION)


def run_to_results(run: EvaluationRun) -> Results:
    """A run as the document that is stored."""
    scores = {result.name: result.scores for result in run.results if result.scores}
    rows = query_results(run.samples, run.outputs, scores)
    return {**results_head(run, Tally().add(run.outputs)), "query_results": list(rows)}


def results_head(run: EvaluationRun, tally: Tally) -> Results:
    """The document without its rows: what the run was, what it found, what became of the calls."""
    sections: Results = {name: {} for name in SECTIONS}
    if tally.seconds:
        sections["performance_metrics"]["latency_stats"] = _latency_stats(tally.seconds)
    for place, result in enumerate(run.results):
        section = _SECTIONS.get(result.target, _OTHER_SECTION)
        sections[section][result.name] = {"order": place, **metric_entry(result)}
    by_type: Counter[str] = Counter()
    for (kind, _), count in tally.failures.items():
        by_type[kind] += count
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": run.evaluation_id,
        "timestamp": run.started_at,
        "system_version": run.system_name,
        "dataset_id": run.dataset_name,
        "configuration": {
            "retrieval_k": run.top_k,
            "metrics": [result.name for result in run.results],
            **run.configuration,
        },
        "summary": {
            "total_queries": tally.total,
            "successful_queries": tally.total - tally.failed,
            "failed_queries": tally.failed,
            "failures_by_type": dict(by_type.most_common()),
            "average_latency_ms": fmean(tally.seconds) * 1000 if tally.seconds else None,
            "total_evaluation_time_seconds": run.seconds,
        },
        **sections,
        "statistical_analysis": {"confidence_intervals": {"confidence_level": 0.95}},
        "metadata": {
            "dataset_sha256": run.dataset_fingerprint,
            "evaluation_environment": run.environment,
            "evaluation_parameters": {"random_seed": run.seed},
        },
    }


def results_to_run(
    results: Mapping[str, Any], samples: list[EvaluationSample], outputs: list[SystemOutputs], where: str
) -> EvaluationRun:
    """A run from the stored document and its samples and outputs."""
    _check(results, samples, where)
    try:
        return EvaluationRun(
            evaluation_id=results["evaluation_id"],
            system_name=results["system_version"],
            dataset_name=results["dataset_id"],
            dataset_fingerprint=results["metadata"]["dataset_sha256"],
            results=stored_metrics(results),
            samples=samples,
            outputs=outputs,
            top_k=results["configuration"]["retrieval_k"],
            seed=results["metadata"]["evaluation_parameters"]["random_seed"],
            started_at=results["timestamp"],
            seconds=results["summary"]["total_evaluation_time_seconds"],
            environment=results["metadata"]["evaluation_environment"],
            configuration={
                key: value
                for key, value in results["configuration"].items()
                if key not in ("retrieval_k", "metrics")
            },
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            where, f"not a results file of ours: {error!r} is missing or wrong.", fix=_EDITED
        ) from error


_EDITED = "Was it edited? Run the evaluation again."


class _Parameters(msgspec.Struct):
    random_seed: int


class _Metadata(msgspec.Struct):
    dataset_sha256: str
    evaluation_environment: dict[str, Any]
    evaluation_parameters: _Parameters


class _Configuration(msgspec.Struct):
    retrieval_k: int


class _Summary(msgspec.Struct):
    total_evaluation_time_seconds: float


class _Note(msgspec.Struct):
    reason: str = ""
    failed: bool = False


class _Row(msgspec.Struct):
    query_id: str
    individual_metrics: dict[str, float | None] = {}
    not_measured: dict[str, _Note] = {}
    statistics: dict[str, list[float]] = {}


class _Stored(msgspec.Struct):
    """The fields of a results file that are read back."""

    evaluation_id: str
    system_version: str
    dataset_id: str
    timestamp: str
    configuration: _Configuration
    summary: _Summary
    metadata: _Metadata
    query_results: list[_Row]


def _check(results: Mapping[str, Any], samples: Sequence[EvaluationSample], where: str) -> None:
    try:
        rows = msgspec.convert(results, _Stored).query_results
    except msgspec.ValidationError as error:
        raise DataError(where, f"not a results file of ours: {error}.", fix=_EDITED) from error
    if [row.query_id for row in rows] != [sample.sample_id for sample in samples]:
        raise DataError(
            f"{where}: $.query_results", "these are not the samples of the run's folder.", fix=_EDITED
        )


def metric_entry(result: MetricResult) -> Results:
    """A metric result as JSON has it: the value null where nothing was scored."""
    details = dict(result.details)
    return {
        "value": number_or_null(result.value),
        "confidence_interval": details.pop("confidence_interval", None),
        "target": result.target.name,
        "details": details,
    }


def stored_metrics(results: Mapping[str, Any]) -> list[MetricResult]:
    """The metric results of a stored run, in the order of its plan, with every sample's score."""
    rows: Sequence[Mapping[str, Any]] = results.get("query_results", [])
    found: list[tuple[int, MetricResult]] = []
    for section in SECTIONS:
        for name, entry in results.get(section, {}).items():
            if isinstance(entry, dict) and "target" in entry:
                details = {
                    **entry.get("details", {}),
                    "confidence_interval": entry.get("confidence_interval"),
                }
                value = math.nan if entry["value"] is None else float(entry["value"])
                result = MetricResult(
                    name, TargetCategory[entry["target"]], value, details, _scores(rows, name)
                )
                found.append((entry.get("order", len(found)), result))
    return [result for _, result in sorted(found, key=lambda pair: pair[0])]


def number_or_null(value: float) -> float | None:
    """NaN is how memory says "not measured"; null is how JSON says it."""
    return value if math.isfinite(value) else None


def _scores(rows: Sequence[Mapping[str, Any]], name: str) -> Scores:
    scores = []
    for row in rows:
        metrics = row.get("individual_metrics", {})
        if name not in metrics:
            continue
        note = row.get("not_measured", {}).get(name, {})
        parts = tuple(row.get("statistics", {}).get(name, ()))
        scores.append(
            SampleScore(
                metrics[name], note.get("reason", ""), parts, row["query_id"], note.get("failed", False)
            )
        )
    return Scores.of(scores)


def query_results(
    samples: Sequence[EvaluationSample],
    outputs: Sequence[SystemOutputs],
    scores: Mapping[str, Sequence[SampleScore]],
) -> Iterator[Results]:
    """A row for each sample: its answer, what was retrieved, and its scores."""
    for place, (sample, output) in enumerate(zip(samples, outputs, strict=True)):
        yield _query_result(sample, output, {name: column[place] for name, column in scores.items()})


def _query_result(
    sample: EvaluationSample, output: SystemOutputs, scores: Mapping[str, SampleScore]
) -> Results:
    seconds = output.timings.get("end_to_end")
    row: Results = {
        "query_id": sample.sample_id,
        "query_text": sample.query,
        "latency_ms": None if seconds is None else seconds * 1000,
        "retrieval_results": {
            "retrieved_docs": [hit.doc.doc_id for hit in output.retrieved],
            "relevance_scores": [hit.score for hit in output.retrieved],
            "ground_truth_relevant": [doc.doc_id for doc in sample.relevant_docs or ()],
        },
        "generated_answer": None if output.error else output.response.text,
        "individual_metrics": {name: score.value for name, score in scores.items()},
    }
    statistics = {name: list(score.parts) for name, score in scores.items() if score.parts}
    unmeasured = {
        name: {"reason": score.reason, "failed": score.failed}
        for name, score in scores.items()
        if score.value is None
    }
    if statistics:
        row["statistics"] = statistics
    if unmeasured:
        row["not_measured"] = unmeasured
    if output.error is not None:
        row["error"] = {"type": output.error.type, "message": output.error.message}
    return row


def _latency_stats(seconds: Sequence[float]) -> Results:
    import numpy as np

    p50, p95, p99 = np.quantile(seconds, [0.5, 0.95, 0.99])
    stats = {
        "mean": fmean(seconds),
        "p50": p50,
        "p95": p95,
        "p99": p99,
        "min": min(seconds),
        "max": max(seconds),
    }
    return {name: float(value) * 1000 for name, value in stats.items()}
