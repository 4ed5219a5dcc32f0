"""The finer points of a comparison as tables: sizes, repeats, slices, losers; and all of it as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from ..runs.compare import Comparison, MetricComparison
from ..runs.losers import LostSample
from ..runs.slices import SliceComparison
from .interval_notes import interval_notes
from .markdown_text import safe_table, safe_text
from .number_texts import TOO_FEW, bounds_text, interval_text, listed, p_cell, value_text
from .plain_words import comparison_in_plain_words
from .run_names import compared_names
from .tables import COMPARISON_HEADINGS, comparison_in_words, comparison_rows

SIZE_HEADINGS = ("Metric", "Baseline", "Candidate", "Effect", "Won/tied/lost", "Detectable", "If all known")
SLICE_HEADINGS = ("Slice", "Metric", "Size", "Baseline", "Candidate", "Change", "p (BH)", "Verdict")
LOST_HEADINGS = ("Sample", "Baseline", "Candidate", "Question", "Baseline gave", "Candidate gave")
_NONE = "-"
_DOCUMENTS = 5  # of a loser, by their ids


def size_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """How large each difference is, and what could have been seen, in the order of SIZE_HEADINGS."""
    return [
        (
            metric.name,
            interval_text(metric.baseline_interval, metric.unit),
            interval_text(metric.candidate_interval, metric.unit),
            _effect(metric),
            f"{metric.wins}/{metric.ties}/{metric.losses}" + _unmatched(metric),
            _detectable(metric),
            bounds_text(metric.difference_bounds, metric.unit),
        )
        for metric in comparison.metrics
    ]


def slice_rows(slices: Sequence[SliceComparison]) -> list[tuple[str, ...]]:
    """The cells of slices, in the order of SLICE_HEADINGS: the size is in questions, a star marks few."""
    return [
        (
            f"{one.field}={one.value}",
            one.metric,
            f"{one.questions}{'*' if one.few else ''}",
            value_text(one.baseline, one.unit),
            value_text(one.candidate, one.unit),
            value_text(one.difference, one.unit, signed=True),
            p_cell(one.p_adjusted),
            one.verdict,
        )
        for one in slices
    ]


def slices_in_words(slices: Sequence[SliceComparison]) -> str:
    """Where the candidate is surely worse, and how much the slices can tell."""
    lost = [one for one in slices if one.verdict == "worse"]
    worse = [f"{one.metric} where {one.field} is {_text(one.value, 60)}" for one in lost]
    more = f" and {len(worse) - 5} more" if len(worse) > 5 else ""
    words = f"Worse in {len(_distinct(lost))} of {len(_distinct(slices))} slices"
    words += f": {', '.join(worse[:5])}{more}." if worse else "."
    few = len(_distinct([one for one in slices if one.few]))
    return f"{words} {few} marked * stand on fewer than 20 questions." if few else words


def _distinct(slices: Sequence[SliceComparison]) -> set[tuple[str, str]]:
    return {(one.field, one.value) for one in slices}


def lost_title(lost: Sequence[LostSample]) -> str:
    """ "Biggest losers on recall@5 (3 of 12 that lost)"."""
    shown, every = len(lost), lost[0].lost_in_all
    count = f"{shown:,} of {every:,}" if every > shown else f"all {every:,}"
    return f"Biggest losers on {lost[0].metric}" + (f" ({count} that lost)" if every else "")


def lost_rows(lost: Sequence[LostSample]) -> list[tuple[str, ...]]:
    """The cells of the biggest losers, in the order of LOST_HEADINGS."""
    return [
        (
            one.sample_id,
            value_text(one.baseline, one.unit),
            value_text(one.candidate, one.unit),
            _text(one.query),
            _given(one.baseline_answer, one.baseline_documents, one.baseline_error, one),
            _given(one.candidate_answer, one.candidate_documents, one.candidate_error, one),
        )
        for one in lost
    ]


def repeat_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """How much each system's value moves from one repeat to the next."""
    return [
        (
            metric.name,
            _spread(metric.run_to_run.baseline_sd, metric.unit),
            _spread(metric.run_to_run.candidate_sd, metric.unit),
            value_text(metric.difference, metric.unit, signed=True),
        )
        for metric in comparison.metrics
        if metric.run_to_run is not None
    ]


REPEAT_HEADINGS = ("Metric", "Baseline, run to run", "Candidate, run to run", "Change")


def comparison_report(comparison: Comparison, lost: Sequence[LostSample] = ()) -> str:
    """Everything about a comparison as Markdown."""
    a, b = compared_names(comparison)
    parts = [
        f"### {safe_text(f'{b} against {a}, sample by sample')}",
        *map(safe_text, comparison_in_plain_words(comparison)),
        safe_table(COMPARISON_HEADINGS, comparison_rows(comparison)),
        *(f"Note: {safe_text(note)}" for note in interval_notes(comparison)),
        safe_text(comparison_in_words(comparison)),
        "### How large\n\n" + safe_table(SIZE_HEADINGS, size_rows(comparison)),
    ]
    if comparison.repeats > 1:
        parts.append("### Run to run\n\n" + safe_table(REPEAT_HEADINGS, repeat_rows(comparison)))
    parts += slices_and_losers(comparison.slices, lost)
    notes = [*comparison.mismatches, *comparison.notes]
    notes += [f"{name} is not compared: {reason}" for name, reason in comparison.not_compared.items()]
    parts += [f"Note: {safe_text(note)}." for note in notes]
    return "\n\n".join(parts)


def slices_and_losers(slices: Sequence[SliceComparison], lost: Sequence[LostSample]) -> list[str]:
    """Where it is worse, and on which samples, as Markdown."""
    parts = []
    if slices:
        parts.append("### Slices, the worst first\n\n" + safe_text(slices_in_words(slices)))
        parts.append(safe_table(SLICE_HEADINGS, slice_rows(slices)))
    if lost:
        title = f"### {safe_text(lost_title(lost))}\n\n"
        parts.append(title + safe_table(LOST_HEADINGS, lost_rows(lost)))
    return parts


def _detectable(metric: MetricComparison) -> str:
    if metric.detectable is None:
        return TOO_FEW if metric.too_few else _NONE
    return value_text(metric.detectable, metric.unit)


def _effect(metric: MetricComparison) -> str:
    if metric.effect_size is not None:
        return f"d {metric.effect_size:+.2f}"
    return _NONE if metric.cliffs_delta is None else f"δ {metric.cliffs_delta:+.2f}"


def _unmatched(metric: MetricComparison) -> str:
    return f" ({metric.unmatched} unpaired)" if metric.unmatched else ""


def _spread(value: float | None, unit: str) -> str:
    return _NONE if value is None else f"± {value_text(value, unit)}"


def _given(answer: str | None, documents: Sequence[str] | None, error: str | None, lost: LostSample) -> str:
    """The answer or, of a metric that is about documents, these; where the right ones are among them."""
    if error is not None:
        return f"failed: {_text(error)}"
    if not lost.of_documents or documents is None:
        return _text(answer)
    places = [place for place, doc_id in enumerate(documents, start=1) if doc_id in lost.right]
    if not documents:
        return "no documents"
    ranks = listed([f"{place}" for place in places]) if places else ""
    found = f"right documents at {ranks} of {len(documents)}" if places else f"none right of {len(documents)}"
    shown = [f"{_text(doc_id, 40)}{'*' * (doc_id in lost.right)}" for doc_id in documents[:_DOCUMENTS]]
    return f"{found}: {', '.join(shown)}{', …' if len(documents) > _DOCUMENTS else ''}"


def _text(text: str | None, limit: int = 160) -> str:
    flat = "(none)" if text is None else " ".join(text.split()) or "(empty)"
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"
