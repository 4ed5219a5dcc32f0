"""Several results documents side by side: whatever numbers they have, of whatever tool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_NO_METRICS = ("latency_stats", "resource_usage", "api_usage")  # parts of `performance_metrics`


def side_by_side(documents: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """{evaluations, metrics_comparison: {metric: {id: value}}, performance_comparison: {part: {id: ...}}}."""
    metrics: dict[str, dict[str, Any]] = {}
    performance: dict[str, dict[str, Any]] = {}
    for name, document in documents.items():
        for metric, value in _values(document):
            metrics.setdefault(metric, {})[name] = value
        parts = document.get("performance_metrics")
        for part in _NO_METRICS:
            if isinstance(parts, dict) and part in parts:
                performance.setdefault(part, {})[name] = parts[part]
    return {
        "evaluations": list(documents),
        "metrics_comparison": metrics,
        "performance_comparison": {part: performance[part] for part in _NO_METRICS if part in performance},
    }


def _values(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    return ((metric, value) for metric, value, _ in metric_values(document))


def metric_values(document: Mapping[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """(metric, value, interval or None) of every metric of a results document.

    The numbers of an entry that has no one value are named `span_accuracy.perfect_matches`.
    """
    for section, entries in document.items():
        if not section.endswith("_metrics") or not isinstance(entries, dict):
            continue
        for metric, entry in entries.items():
            if metric in _NO_METRICS:
                continue
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
