"""A trend as JSON has it: not measured is null."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ..io.results_json import number_or_null
from ..runs.trend import Trend, TrendLine


def trend_to_dict(trend: Trend) -> dict[str, Any]:
    """The lines with their points and changes, and what was left out."""
    return {
        "metric": trend.metric,
        "alpha": trend.alpha,
        "lines": [_line(line) for line in trend.lines],
        "left_out": dict(trend.left_out),
    }


def _line(line: TrendLine) -> dict[str, Any]:
    points = [{**asdict(point), "value": number_or_null(point.value)} for point in line.points]
    changes = [{**asdict(change), "difference": change.difference} for change in line.changes]
    return {**asdict(line), "points": points, "changes": changes}
