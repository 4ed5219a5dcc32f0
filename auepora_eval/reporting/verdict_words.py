"""The verdict on a metric as a table shows it: a loss within the margin is told from one beyond it."""

from __future__ import annotations

from ..runs.compare import MetricComparison


def margin_kept(metric: MetricComparison) -> str:
    """Of a metric that is surely worse, whether it lost less than its margin: "yes", "no" or "perhaps".

    "" of any other, and where there is no margin.
    """
    if metric.verdict != "worse" or metric.within_margin is None:
        return ""
    if metric.within_margin:
        return "yes"
    return "no" if metric.margin is not None and abs(metric.difference) >= metric.margin else "perhaps"


def verdict_text(metric: MetricComparison) -> str:
    """ "better", "worse", "worse, within margin", "no worse", "cannot tell" or "same"."""
    return f"{metric.verdict}{', within margin' if margin_kept(metric) == 'yes' else ''}"
