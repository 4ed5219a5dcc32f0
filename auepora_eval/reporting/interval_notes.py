"""Where an interval alone would mislead: a word on why the verdict is another, or why none is shown."""

from __future__ import annotations

from ..runs.compare import Comparison, MetricComparison
from .number_texts import listed, p_text, value_text

_SURE = 0.95


def interval_notes(comparison: Comparison) -> list[str]:
    """Sentences for the metrics whose interval and verdict seem to disagree, or have no interval."""
    unclear = [one for one in comparison.with_verdict("cannot tell") if _leaves_out_zero(one.interval)]
    by_holm = [metric for metric in unclear if _below(metric.p_value, comparison.alpha)]
    rest = [metric for metric in unclear if metric.p_value is not None and metric not in by_holm]
    # The interval is of 95% whatever alpha is: a test that agrees with it can still be stricter.
    by_alpha = [metric for metric in rest if _below(metric.p_value, 1 - _SURE)]
    by_test = [metric for metric in rest if metric not in by_alpha]
    notes = []
    if by_holm:
        tests = sum(metric.p_adjusted is not None for metric in comparison.metrics)
        told = [f"{one.name} ({p_text(one.p_value)}, with Holm {p_text(one.p_adjusted)})" for one in by_holm]
        notes.append(
            f"{listed(told)}: the interval leaves out 0, but {tests} metrics were compared, and among so "
            "many one may do so by chance."
        )
    if by_alpha:
        told = [f"{one.name} ({p_text(one.p_value)})" for one in by_alpha]
        notes.append(
            f"{listed(told)}: the interval, which is of 95%, leaves out 0, but alpha asks for p below "
            f"{comparison.alpha:g}."
        )
    for unit in ("samples", "clusters"):
        found = [one for one in by_test if (one.clusters is None) == (unit == "samples")]
        if found:
            told = [f"{one.name} ({p_text(one.p_value)})" for one in found]
            notes.append(
                f"{listed(told)}: the interval leaves out 0, but too few {unit} differ for the test to be "
                "sure."
            )
    return notes + [_alike_note(metric) for metric in comparison.metrics if _all_alike(metric)]


def _alike_note(metric: MetricComparison) -> str:
    others = 1 - (1 - _SURE) ** (1 / metric.pairs)  # the exact form of the rule of three
    return (
        f"{metric.name}: all {metric.pairs} samples differ by {value_text(metric.difference, metric.unit)}, "
        f"which gives no interval; up to {100 * others:.0f} in 100 other samples could behave otherwise"
        f"{_too_few(metric)}."
    )


def _too_few(metric: MetricComparison) -> str:
    if metric.verdict != "cannot tell" or metric.p_value is None:
        return ""
    return f", and so few cannot make the test sure ({p_text(metric.p_value)})"


def _all_alike(metric: MetricComparison) -> bool:
    return metric.no_spread and bool(metric.difference) and metric.pairs in (metric.wins, metric.losses)


def _leaves_out_zero(interval: tuple[float, float] | None) -> bool:
    return interval is not None and (interval[0] > 0 or interval[1] < 0)


def _below(p: float | None, alpha: float) -> bool:
    return p is not None and p < alpha
