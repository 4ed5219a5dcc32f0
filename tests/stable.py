"""What of a results document must be the same whenever the same is measured again, and what may differ."""

from __future__ import annotations

from typing import Any

from auepora_eval.core.dataset import canonical_json
from auepora_eval.core.types import TargetCategory
from auepora_eval.io.results.document import SECTIONS

# Times, the machine, where the file lies, and how the calls were made. `plan_sha256` and `outputs_sha256`
# are hashes over some of these.
VOLATILE = {
    "": ("timestamp", "_metadata", "configuration", "run_file", "evaluation_id"),
    "summary": (
        *("total_evaluation_time_seconds", "average_latency_ms"),
        *("failed_attempts", "recovered_queries"),
    ),
    "performance_metrics": ("latency_stats", "resource_usage"),
    "metadata": ("plan_sha256", "outputs_sha256", "evaluation_environment", "evaluation_parameters"),
    "query_results": ("latency_ms",),
}
_STATED = ("retrieval_k", "metrics")  # of the configuration: what is measured, not how it is called


def stable_part(results: dict[str, Any]) -> dict[str, Any]:
    """A results document without its volatile facts: the times, and metrics of times, among them."""
    stable = {name: value for name, value in results.items() if name not in VOLATILE[""]}
    stable["configuration"] = {
        name: value for name, value in results.get("configuration", {}).items() if name in _STATED
    }
    timed = {name for section in SECTIONS for name in _of_times(results.get(section, {}))}
    for part in (*SECTIONS, "summary", "metadata"):
        gone = {*VOLATILE.get(part, ()), *timed}
        stable[part] = {name: value for name, value in results.get(part, {}).items() if name not in gone}
    seed = results.get("metadata", {}).get("evaluation_parameters", {}).get("random_seed")
    stable["metadata"]["random_seed"] = seed
    stable["query_results"] = [_stable_row(row, timed) for row in results.get("query_results", [])]
    return stable


def stable_bytes(results: dict[str, Any]) -> bytes:
    """The same as one text: equal runs have equal bytes."""
    return canonical_json(stable_part(results))


def _of_times(section: dict[str, Any]) -> list[str]:
    kind = TargetCategory.LATENCY.name
    return [
        name for name, entry in section.items() if isinstance(entry, dict) and entry.get("target") == kind
    ]


def _stable_row(row: dict[str, Any], timed: set[str]) -> dict[str, Any]:
    kept = {name: value for name, value in row.items() if name not in VOLATILE["query_results"]}
    for name in ("individual_metrics", "statistics", "not_measured"):
        if name in kept:
            kept[name] = {metric: value for metric, value in kept[name].items() if metric not in timed}
    return kept
