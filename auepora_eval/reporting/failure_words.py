"""What failed calls do to a comparison, in words: how many there were, and which verdicts rest on them."""

from __future__ import annotations

from ..core.types import TargetCategory
from ..runs.compare import Comparison, MetricComparison
from ..runs.ranking import failed_calls
from .number_texts import bounds_text, listed
from .run_names import compared_names


def failures_in_words(comparison: Comparison) -> list[str]:
    """ "10 of 60 calls of new failed; each counts as wrong. The verdict on ... rests on that." """
    scored = [one for one in comparison.metrics if one.target is not TargetCategory.LATENCY]
    a, b = compared_names(comparison)
    counted = [
        failed_calls(b, [(one.failed_candidate, one.calls_candidate, one.name) for one in scored]),
        failed_calls(a, [(one.failed_baseline, one.calls_baseline, one.name) for one in scored]),
    ]
    told = [one for one in counted if one]
    if not told:
        return []
    return [f"{listed(told)}; each counts as wrong.{_resting(scored)}"]


def _resting(metrics: list[MetricComparison]) -> str:
    """The verdicts that would not be sure, had what failed been answered."""
    found = [one for one in metrics if one.verdict in ("better", "worse") and _could_be_none(one)]
    if not found:
        return ""
    if len(found) > 1:
        return f" The verdicts on {listed([one.name for one in found])} rest on that."
    bounds = bounds_text(found[0].difference_bounds, found[0].unit)
    return (
        f" The verdict on {found[0].name} rests on that: "
        f"had they been answered, the difference could be anything from {bounds}."
    )


def _could_be_none(metric: MetricComparison) -> bool:
    bounds = metric.difference_bounds
    return bounds is not None and bounds[0] <= 0 <= bounds[1]
