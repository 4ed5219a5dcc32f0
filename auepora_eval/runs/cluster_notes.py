"""A word on results that rest on few clusters: where something is left open, more samples do not help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .compare import MetricComparison

FEW_TO_COMPARE = 10


def cluster_notes(metrics: Sequence[MetricComparison], alpha: float, repeats: int = 1) -> list[str]:
    """Which metrics rest on fewer than ten clusters, and what that means; of repeats a question is one."""
    found: dict[tuple[int, int, float, bool], list[str]] = {}
    for metric in metrics:
        if metric.untold or metric.verdict == "same" or metric.clusters is None:
            continue
        worth = metric.clusters if metric.clusters_worth is None else metric.clusters_worth
        if worth < FEW_TO_COMPARE:
            unclear = metric.verdict == "cannot tell"
            found.setdefault((metric.clusters, metric.pairs, worth, unclear), []).append(metric.name)
    notes = []
    for (clusters, pairs, worth, unclear), names in found.items():
        which = "all metrics" if len(names) == len(metrics) > 1 else ", ".join(names)
        unit = "cluster" if repeats == 1 else "question"
        words = f"{which}: the {pairs} pairs come in {clusters} {unit}{'s' * (clusters > 1)}"
        if worth < 0.9 * clusters:
            words += f", of which so few hold so many that they are worth {worth:.1f}"
        words += ", and those of one count together"
        if not unclear:
            rest = "verdict rests" if len(names) == 1 else "verdicts rest"
            notes.append(f"{words}: the {rest} on {clusters} {unit}s")
            continue
        if 2.0 ** (1 - clusters) >= alpha:
            words += "; no test can be sure of so few"
        notes.append(f"{words}. More {unit}s would tell, more samples of the same would not")
    return notes
