"""Results as dicts and as Markdown; coverage is shown next to every value."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..core.table import Table
from ..core.types import RESULT_HEADINGS, EvaluationRun, MetricResult, result_cells
from ..errors import wrong_type


def results_to_dict(results: Sequence[MetricResult] | EvaluationRun) -> dict[str, dict[str, float | None]]:
    """Return values by target, then by metric; None if nothing was scored.

    {"RETRIEVAL_RELEVANCE": {"recall@5": 0.83}, "GENERATION_CORRECTNESS": {"rougeL_answer": 0.61}}
    """
    grouped: dict[str, dict[str, float | None]] = {}
    for result in _results_of(results):
        group = grouped.setdefault(result.target.name, {})
        if result.name in group:
            raise ValueError(f"two results are named {result.name!r}: give each metric a name of its own")
        group[result.name] = result.value if math.isfinite(result.value) else None
    return grouped


def results_to_markdown(
    results: Sequence[MetricResult] | EvaluationRun, *, columns: int = len(RESULT_HEADINGS)
) -> str:
    """Return a Markdown table: value, 95% interval, and how many samples were scored, skipped and failed.

    `columns` is the number of columns from the left: 3 for target, metric and value.
    """
    if not 1 <= columns <= len(RESULT_HEADINGS):
        raise ValueError(f"columns must be from 1 to {len(RESULT_HEADINGS)}, not {columns}")
    rows = [result_cells(result)[:columns] for result in _results_of(results)]
    return Table(RESULT_HEADINGS[:columns], rows).to_markdown()


def _results_of(results: object) -> Sequence[MetricResult]:
    if isinstance(results, EvaluationRun):
        return results.results
    if isinstance(results, MetricResult):
        return [results]
    if isinstance(results, Sequence) and all(isinstance(each, MetricResult) for each in results):
        return results
    raise wrong_type("results", "a run or a list of MetricResults", results)
