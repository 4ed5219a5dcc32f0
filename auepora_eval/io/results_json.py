"""The results format: a finished run as one JSON document, `<evaluation_id>.results.json`.

Metrics are grouped as retrieval, citation, answer quality, performance and additional; each entry has its
value, interval, target and coverage. `query_results`, which comes last, holds each sample's scores; a large
run has them in a file of its own, which `queries_file` names. Not measured is null.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

import msgspec

from ..core.fingerprint import Fingerprint
from ..core.scoring import Tally
from ..core.stopping import Stopping
from ..core.types import EvaluationRun, EvaluationSample, MetricResult, SystemOutputs, TargetCategory
from ..errors import DataError
from .query_rows import EDITED, QueryRows, query_results
from .records import prediction_record
from .type_words import wrong_record

SCHEMA_VERSION = "1.1"
Results = dict[str, Any]

_SECTIONS = {
    TargetCategory.RETRIEVAL_RELEVANCE: "retrieval_metrics",
    TargetCategory.RETRIEVAL_ACCURACY: "retrieval_metrics",
    TargetCategory.GENERATION_RELEVANCE: "answer_quality_metrics",
    TargetCategory.GENERATION_FAITHFULNESS: "answer_quality_metrics",
    TargetCategory.GENERATION_CORRECTNESS: "answer_quality_metrics",
    TargetCategory.LATENCY: "performance_metrics",
}
# Whatever their target, metrics whose names begin so are about citations.
_SECTIONS_BY_NAME = dict.fromkeys(("citation_", "alce_citation_", "trec_support_"), "citation_metrics")
_OTHER_SECTION = "additional_metrics"
SECTIONS = (
    "retrieval_metrics",
    "citation_metrics",
    "answer_quality_metrics",
    "performance_metrics",
    _OTHER_SECTION,
)
_PARAMETERS = {
    "executor": "executor",
    "concurrency": "concurrency",
    "timeout": "timeout_seconds",
    "max_failures": "max_failures",
    "limit": "limit",
}


def section_of(result: MetricResult) -> str:
    """The section of the document that a metric stands in."""
    for start, section in _SECTIONS_BY_NAME.items():
        if result.name.startswith(start):
            return section
    return _SECTIONS.get(result.target, _OTHER_SECTION)


def run_to_results(run: EvaluationRun) -> Results:
    """A run as the document that is stored."""
    scores = {result.name: result.scores for result in run.results if result.scores}
    pairs = zip(run.samples, run.outputs, strict=True)
    outputs = Fingerprint().add(prediction_record(sample.sample_id, output) for sample, output in pairs)
    head = results_head(run, Tally().add(run.outputs), outputs.hexdigest())
    return {**head, "query_results": list(query_results(run.samples, run.outputs, scores))}


def results_head(run: EvaluationRun, tally: Tally, outputs_sha256: str) -> Results:
    """The document without its rows: what the run was, what it found, what became of the calls."""
    sections: Results = {name: {} for name in SECTIONS}
    usage = {
        "latency_stats": latency_stats(tally.seconds),
        "resource_usage": run.resource_usage,
        "api_usage": tally.usage.as_dict(run.configuration),
    }
    sections["performance_metrics"] |= {name: found for name, found in usage.items() if found is not None}
    for place, result in enumerate(run.results):
        sections[section_of(result)][result.name] = {"order": place, **metric_entry(result)}
    head: Results = {
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


def summary(tally: Tally) -> Results:
    """What became of the calls."""
    by_type: Counter[str] = Counter()
    for (kind, _), count in tally.failures.items():
        by_type[kind] += count
    return {
        "total_queries": tally.total,
        "successful_queries": tally.total - tally.failed,
        "failed_queries": tally.failed,
        "failures_by_type": dict(by_type.most_common()),
        **_tried_again(tally),
        "average_latency_ms": fmean(tally.seconds) * 1000 if tally.seconds else None,
    }


def _tried_again(tally: Tally) -> Results:
    """Attempts that failed, also where a later one brought the answer; nothing where none was retried."""
    if not tally.tried_again:
        return {}
    kinds = dict(tally.failed_attempts.most_common())
    return {"failed_attempts": kinds, "recovered_queries": tally.recovered}


def add_stored_attempts(tally: Tally, results: Mapping[str, Any]) -> Tally:
    """A tally of stored rows, with what only the summary tells: attempts that failed."""
    told = results.get("summary")
    kinds = told.get("failed_attempts") if isinstance(told, dict) else None
    if isinstance(told, dict) and isinstance(kinds, dict):
        tally.failed_attempts.update({kind: n for kind, n in kinds.items() if type(n) is int and n > 0})
        recovered = told.get("recovered_queries")
        tally.recovered = recovered if type(recovered) is int else 0
    return tally


def latency_stats(seconds: Sequence[float]) -> Results | None:
    """Mean, quantiles and extremes of the answers' times, in milliseconds; None where there are none."""
    if not seconds:
        return None
    import numpy as np

    p50, p95, p99 = np.quantile(seconds, [0.5, 0.95, 0.99])
    stats = {"mean": fmean(seconds), "p50": p50, "p95": p95, "p99": p99}
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
            if "details" in entry
        },
    }
    return Fingerprint().add([plan]).hexdigest()


def evaluation_parameters(configuration: Mapping[str, Any]) -> Results:
    """How the calls were made, as far as the configuration says it."""
    return {new: configuration[old] for old, new in _PARAMETERS.items() if old in configuration}


def statistical_analysis(results: Sequence[MetricResult]) -> Results:
    """Which metrics have an interval, and by which method."""
    methods = {
        result.name: result.details.get("interval_method", "not estimable")
        for result in results
        if result.details.get("confidence_interval") is not None
    }
    word = (
        "calculated" if len(methods) == len(results) else f"calculated for {len(methods)} of {len(results)}"
    )
    return {
        "significance_tests": {},
        "confidence_intervals": {"all_metrics": word, "confidence_level": 0.95, "methods": methods},
    }


def refuse_newer(results: Mapping[str, Any], where: str) -> None:
    """DataError for a file of a later version than this one; a file without a version is somebody else's."""
    version = results.get("schema_version")
    if version is None:
        return
    match = re.fullmatch(r"(\d{1,9})\.(\d{1,9})", version) if isinstance(version, str) else None
    if match is None:
        raise DataError(
            f"{where}: $.schema_version",
            f"{version!r:.40} is not a version.",
            fix="Write 1.1, or leave it out.",
        )
    ours = tuple(map(int, SCHEMA_VERSION.split(".")))
    if (int(match[1]), int(match[2])) > ours:
        raise DataError(
            f"{where}: $.schema_version",
            f"the file is of version {version}, newer than the {SCHEMA_VERSION} that is known here.",
            fix="Upgrade: pip install --upgrade auepora-eval",
        )


def results_to_run(
    results: Mapping[str, Any],
    rows: QueryRows,
    samples: list[EvaluationSample],
    outputs: list[SystemOutputs],
    where: str,
) -> EvaluationRun:
    """A run from the stored document, its rows, and its samples and outputs as far as they were read."""
    try:
        msgspec.convert(results, _Stored)
        return EvaluationRun(
            evaluation_id=results["evaluation_id"],
            system_name=results["system_version"],
            dataset_name=results["dataset_id"],
            dataset_fingerprint=results["metadata"]["dataset_sha256"],
            results=stored_metrics(results, rows),
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
            resource_usage=results.get("performance_metrics", {}).get("resource_usage"),
            snapshot=results["metadata"].get("dataset_snapshot", {}),
            stopping=stored_stopping(results, where),
        )
    except msgspec.ValidationError as error:
        path, what, _ = wrong_record(error)
        what = f"not a results file of ours: {what}"
        raise DataError(f"{where}: {path}", what, fix=_fix(results)) from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, DataError):
            raise
        missing = f"{error.args[0]!r:.60} is" if isinstance(error, KeyError) else "something is"
        what = f"not a results file of ours: {missing} missing or wrong."
        raise DataError(where, what, fix=_fix(results)) from error


def stored_stopping(results: Mapping[str, Any], where: str) -> Stopping | None:
    """How a run ended that was to stop when its verdict is clear; None for a run of all samples."""
    told = results["metadata"].get("stopping")
    if told is None:
        return None
    try:
        return msgspec.convert(told, Stopping)
    except msgspec.ValidationError as error:
        raise DataError(f"{where}: $.metadata.stopping", f"{error}.", fix=EDITED) from error


def is_ours(results: Mapping[str, Any]) -> bool:
    """Whether a document is a run of ours: those of all versions name theirs."""
    return "schema_version" in results


def _fix(results: Mapping[str, Any]) -> str:
    return EDITED if is_ours(results) else "Another tool wrote it: `auepora show` tells what it says."


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


class _Stored(msgspec.Struct):
    """The fields of a results file that are read back."""

    evaluation_id: str
    system_version: str
    dataset_id: str
    timestamp: str
    configuration: _Configuration
    summary: _Summary
    metadata: _Metadata


def metric_entry(result: MetricResult) -> Results:
    """A metric result as JSON has it: the value null where nothing was scored."""
    details = dict(result.details)
    return {
        "value": number_or_null(result.value),
        "confidence_interval": details.pop("confidence_interval", None),
        "target": result.target.name,
        "details": details,
    }


def stored_metrics(results: Mapping[str, Any], rows: QueryRows) -> list[MetricResult]:
    """The metric results of a stored run, in the order of its plan, with every sample's score."""
    found: list[tuple[int, MetricResult]] = []
    for section in SECTIONS:
        for name, entry in results.get(section, {}).items():
            if isinstance(entry, dict) and "target" in entry:
                details = {
                    **entry.get("details", {}),
                    "confidence_interval": entry.get("confidence_interval"),
                }
                value = math.nan if entry["value"] is None else float(entry["value"])
                target = TargetCategory[entry["target"]]
                result = MetricResult(name, target, value, details, rows.scores(name))
                found.append((entry.get("order", len(found)), result))
    return [result for _, result in sorted(found, key=lambda pair: pair[0])]


def number_or_null(value: float) -> float | None:
    """NaN is how memory says "not measured"; null is how JSON says it."""
    return value if math.isfinite(value) else None
