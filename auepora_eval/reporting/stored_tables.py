"""Tables of documents that are stored beside runs: experiments, and recordings of benchmarks.

They are read from a file that anybody may have edited: what is not as it should be is an empty cell.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from ..metrics.parse import parse_metric
from ..runs.benchmark_measurements import Measurement
from ..runs.verify_documents import metric_blocks
from .number_texts import interval_text, value_text

TEST_HEADINGS = ("Metric", "Pair", "Difference", "95% interval", "p (Holm)", "Better")
RAIL_HEADINGS = ("Guard rail", "Variant", "Holds", "Found")
MEASUREMENT_HEADINGS = ("Operation", "Answered", "Failed", "Mean", "Spread", "Memory", "Throughput")


def variant_names(results: Mapping[str, Any]) -> list[str]:
    """The variants of an experiment, the control first."""
    return list(_object(results, "variants"))


def variant_rows(results: Mapping[str, Any]) -> list[list[str]]:
    """Each metric's value in each variant, as the tests count it; then what became of the calls."""
    names = variant_names(results)
    rows = []
    for place, block in enumerate(metric_blocks(results)):
        metric, unit = _metric(block)
        means, intervals = _object(block, "means"), _object(block, "confidence_intervals")
        cells = [f"{metric} (primary)" if place == 0 else metric]
        cells += [f"{_value(means.get(name), unit)} {_interval(intervals.get(name), unit)}" for name in names]
        rows.append(cells)
    for title, key in (("samples", "total_queries"), ("failed", "failed_queries"), ("run", "run")):
        rows.append([title, *(_text(_object(_object(results, "variants"), name).get(key)) for name in names)])
    return rows


def test_rows(results: Mapping[str, Any]) -> list[list[str]]:
    """Every pair on every metric; those of the primary metric first."""
    rows = []
    for block in metric_blocks(results):
        metric, unit = _metric(block)
        for pair, test in _object(block, "tests").items():
            if not isinstance(test, dict):
                continue
            sides = list(_object(test, "samples"))
            rows.append(
                [
                    metric,
                    f"{sides[1]} - {sides[0]}" if len(sides) == 2 else pair,
                    _value(test.get("difference"), unit, signed=True),
                    _interval(test.get("confidence_interval"), unit, signed=True),
                    _p_value(test.get("p_adjusted")),
                    _text(test.get("better")),
                ]
            )
    return rows


def rail_rows(results: Mapping[str, Any]) -> list[list[str]]:
    """What was found of each guard rail."""
    rails = results.get("guard_rails")
    return [
        [
            f"{_text(rail.get('metric'))} {_text(rail.get('kind'))} {_text(rail.get('limit'))}",
            _text(rail.get("variant")),
            "yes" if rail.get("holds") is True else "NO",
            _text(rail.get("reason")),
        ]
        for rail in (rails if isinstance(rails, list) else [])
        if isinstance(rail, dict)
    ]


def measurement_rows(found: Sequence[Measurement]) -> list[list[str]]:
    """What was measured of each operation."""
    return [
        [
            one.operation,
            f"{one.count:,}",
            f"{one.failed:,}",
            value_text(one.mean_duration, "s"),
            "-" if one.std_duration is None else value_text(one.std_duration, "s"),
            "-" if one.mean_memory is None else f"{one.mean_memory:,.0f} MB",
            "-" if one.throughput is None else f"{one.throughput:.3g}/s",
        ]
        for one in found
    ]


def _metric(block: Mapping[str, Any]) -> tuple[str, str]:
    """The name with an arrow where less is better, and the unit."""
    name = _text(block.get("metric_name"))
    try:
        unit = parse_metric(name).unit
    except ValueError:  # a metric of the user's own
        unit = ""
    return (f"{name} ↓" if block.get("higher_is_better") is False else name), unit


def _object(data: Any, name: str) -> dict[str, Any]:
    found = data.get(name) if isinstance(data, dict) else None
    return found if isinstance(found, dict) else {}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _value(value: Any, unit: str, *, signed: bool = False) -> str:
    return value_text(value + 0.0 if _is_number(value) else None, unit, signed=signed)


def _p_value(value: Any) -> str:
    if not _is_number(value):
        return "-"
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def _interval(limits: Any, unit: str, *, signed: bool = False) -> str:
    whole = isinstance(limits, list) and len(limits) == 2 and all(map(_is_number, limits))
    return interval_text(limits if whole else None, unit, signed=signed)


def _text(value: Any) -> str:
    return "-" if value is None or isinstance(value, dict | list) else str(value)
