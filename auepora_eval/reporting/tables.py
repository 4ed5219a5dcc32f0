"""Results as dicts and as Markdown; coverage stands beside every value."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any

from ..core.types import MetricResult, TargetCategory
from ..runs.compare import Comparison, MetricComparison
from .comparison_json import statistical_analysis
from .interval_notes import interval_notes
from .markdown_text import safe_table, safe_text
from .number_texts import bounds_text, interval_text, listed, p_cell, p_text, value_text
from .plain_words import comparison_in_plain_words
from .run_names import compared_names
from .verdict_words import margin_kept, verdict_text


def results_to_dict(results: list[MetricResult]) -> dict[str, dict[str, float | None]]:
    """Values by target, then by metric; None where nothing was scored.

    {"RETRIEVAL_RELEVANCE": {"recall@5": 0.83}, "GENERATION_CORRECTNESS": {"rougeL_answer": 0.61}}
    """
    grouped: dict[str, dict[str, float | None]] = {}
    for result in results:
        group = grouped.setdefault(result.target.name, {})
        if result.name in group:
            raise ValueError(f"two results are named {result.name!r}: give each metric a name of its own")
        group[result.name] = result.value if math.isfinite(result.value) else None
    return grouped


def results_to_markdown(results: list[MetricResult]) -> str:
    """A Markdown table: value, 95% interval, how many samples it stands on, and what became of the rest."""
    return safe_table(HEADINGS, (row(result) for result in results))


def comparison_to_markdown(comparison: Comparison) -> str:
    """A Markdown table of a comparison, with the verdict in words below."""
    table = safe_table(COMPARISON_HEADINGS, comparison_rows(comparison))
    notes = [f"Note: {safe_text(note)}" for note in interval_notes(comparison)]
    return "\n\n".join([table, safe_text(comparison_in_words(comparison)), *notes])


def comparison_to_dict(comparison: Comparison) -> dict[str, Any]:
    """A comparison as JSON has it, with the verdict in words: by metric, and in plain ones."""
    few = [replace(metric, losers=metric.losers[:_LOSERS]) for metric in comparison.metrics]
    comparison = replace(comparison, metrics=few)
    metrics = [{**asdict(m), "target": m.target.name, "pairs": m.pairs} for m in comparison.metrics]
    words = {
        "in_words": comparison_in_words(comparison),
        "in_plain_words": comparison_in_plain_words(comparison),
        "on_intervals": interval_notes(comparison),
    }
    analysis = {"statistical_analysis": statistical_analysis(comparison)}
    return {**asdict(comparison), "metrics": metrics, **words, **analysis}


def comparison_in_words(comparison: Comparison) -> str:
    """Which system is better, on what, and where the data cannot tell."""
    a, b = compared_names(comparison)
    sentences = []
    for verdict in ("better", "worse"):
        found = [
            f"{m.name} ({value_text(m.difference, m.unit, signed=True)}, {p_text(m.p_adjusted)})"
            f"{_MARGINS.get(margin_kept(m), '')}"
            for m in comparison.with_verdict(verdict)
        ]
        if found:
            sentences.append(f"{b} is {verdict} than {a} on {listed(found)}.")
    no_worse = [f"{m.name} ({value_text(m.margin, m.unit)})" for m in comparison.with_verdict("no worse")]
    if no_worse:
        sentences.append(f"{b} is no worse than {a}, within the margin, on {listed(no_worse)}.")
    unclear = [f"{m.name}{_samples_text(m)}" for m in comparison.with_verdict("cannot tell")]
    if unclear:
        sentences.append(f"These data cannot tell them apart on {listed(unclear)}.")
    same = [m.name for m in comparison.with_verdict("same")]
    if same:
        sentences.append(f"No sample differs on {listed(same)}.")
    return " ".join(sentences) or "The runs have no metric in common."


_MARGINS = {"yes": ", though by less than the margin", "no": ", which is more than the margin"}
_LOSERS = 5  # of each metric in a JSON document
HEADINGS = ("Target", "Metric", "Value", "95% interval", "Scored", "Skipped", "Failed", "If failed")
COMPARISON_HEADINGS = ("Metric", "Baseline", "Candidate", "Difference", "95% interval", "p (Holm)", "Verdict")


def row(result: MetricResult) -> tuple[str, ...]:
    """The cells of one result, in the order of HEADINGS."""
    details, unit = result.details, unit_of(result)
    return (
        result.target.name,
        result.name,
        value_text(result.value, unit),
        interval_text(details.get("confidence_interval"), unit),
        scored_text(details),
        count_text(details.get("num_skipped")),
        count_text(details.get("num_failed")),
        bounds_text(details.get("bounds_if_failed"), unit),
    )


def comparison_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """The cells of a comparison, in the order of COMPARISON_HEADINGS."""
    return [
        (
            metric.name,
            value_text(metric.baseline, metric.unit) + _failed_note(metric.failed_baseline),
            value_text(metric.candidate, metric.unit) + _failed_note(metric.failed_candidate),
            value_text(metric.difference, metric.unit, signed=True),
            interval_text(metric.interval, metric.unit, signed=True),
            p_cell(metric.p_adjusted),
            verdict_text(metric),
        )
        for metric in comparison.metrics
    ]


def unit_of(result: MetricResult) -> str:
    """ "s" for seconds, else ""; a latency metric that does not say so is taken to be in seconds."""
    unit: str = result.details.get("unit", "s" if result.target is TargetCategory.LATENCY else "")
    return unit


def scored_text(details: dict[str, Any]) -> str:
    """ "135/150": how many samples were scored, of how many."""
    scored, total = details.get("num_samples"), details.get("num_total")
    if scored is None:
        return "-"
    return str(scored) if total is None else f"{scored}/{total}"


def count_text(count: int | None) -> str:
    return "-" if count is None else str(count)


def _samples_text(metric: MetricComparison) -> str:
    if metric.samples_for_margin is not None and metric.samples_for_margin > 1_000_000:
        return " (over a million samples would rule the margin out)"
    if metric.samples_for_margin is not None:
        return f" (about {metric.samples_for_margin:,} samples would rule the margin out)"
    if (needed := metric.samples_needed) is None:
        return ""
    return " (over a million samples would)" if needed > 1_000_000 else f" (about {needed:,} samples would)"


def _failed_note(count: int) -> str:
    return f" ({count} failed)" if count else ""
