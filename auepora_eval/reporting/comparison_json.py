"""Comparisons as JSON, with the significance tests as results files name them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from ..runs.compare import Comparison
from ..runs.ranking import Ranking


def statistical_analysis(comparison: Comparison) -> dict[str, Any]:
    """{"significance_tests": {metric: {baseline_mean, current_mean, p_value, significant, effect_size}}}.

    The p-value is the corrected one, and significance is what it says at alpha; it is null where
    one run each cannot tell. Intervals stand beside.
    """
    return {
        "significance_tests": {
            metric.name: {
                "baseline_mean": metric.baseline,
                "current_mean": metric.candidate,
                "p_value": metric.p_adjusted,
                "significant": metric.p_adjusted is not None and metric.p_adjusted < comparison.alpha,
                "effect_size": metric.effect_size,
            }
            for metric in comparison.metrics
        },
        "confidence_intervals": {
            **{metric.name: metric.interval for metric in comparison.metrics},
            "confidence_level": 0.95,
        },
    }


def ranking_to_dict(ranking: Ranking) -> dict[str, Any]:
    """A ranking as JSON has it; `beats` names runs by their number, from 0."""
    from .tables import comparison_to_dict

    metrics = [{**asdict(metric), "target": metric.target.name} for metric in ranking.metrics]
    return {
        "run_ids": ranking.run_ids,
        "systems": ranking.systems,
        "alpha": ranking.alpha,
        "metrics": metrics,
        "pairs": [comparison_to_dict(pair) for pair in ranking.pairs],
        "notes": ranking.notes,
        "mismatches": ranking.mismatches,
    }
