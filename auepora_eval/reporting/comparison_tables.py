"""The finer points of a comparison as tables: sizes, slices, losers, ranks; and all of it as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from ..runs.compare import Comparison, MetricComparison
from ..runs.losers import LostSample
from ..runs.ranking import Ranking
from ..runs.slices import SliceComparison
from .plain_words import comparison_in_plain_words
from .tables import (
    COMPARISON_HEADINGS,
    bounds_text,
    comparison_in_words,
    comparison_rows,
    escaped,
    interval_text,
    listed,
    markdown_table,
    value_text,
)

SIZE_HEADINGS = ("Metric", "Baseline", "Candidate", "Effect", "Won/tied/lost", "Detectable", "If all known")
SLICE_HEADINGS = ("Slice", "Metric", "Pairs", "Baseline", "Candidate", "Change", "p (BH)", "Verdict")
LOST_HEADINGS = ("Sample", "Baseline", "Candidate", "Question", "Baseline's answer", "Candidate's answer")
_NONE = "-"


def size_rows(comparison: Comparison) -> list[tuple[str, ...]]:
    """How large each difference is, and what could have been seen, in the order of SIZE_HEADINGS."""
    return [
        (
            metric.name,
            interval_text(metric.baseline_interval, metric.unit),
            interval_text(metric.candidate_interval, metric.unit),
            _effect(metric),
            f"{metric.wins}/{metric.ties}/{metric.losses}" + _unmatched(metric),
            _NONE if metric.detectable is None else value_text(metric.detectable, metric.unit),
            bounds_text(metric.difference_bounds, metric.unit),
        )
        for metric in comparison.metrics
    ]


def slice_rows(slices: Sequence[SliceComparison]) -> list[tuple[str, ...]]:
    """The cells of slices, in the order of SLICE_HEADINGS; a star marks those of few samples."""
    return [
        (
            f"{one.field}={one.value}",
            one.metric,
            f"{one.pairs}{'*' if one.few else ''}",
            value_text(one.baseline, one.unit),
            value_text(one.candidate, one.unit),
            value_text(one.difference, one.unit, signed=True),
            "<0.001" if one.p_adjusted < 0.001 else f"{one.p_adjusted:.3f}",
            one.verdict,
        )
        for one in slices
    ]


def slices_in_words(slices: Sequence[SliceComparison]) -> str:
    """Where the candidate is surely worse, and how much the slices can tell."""
    worse = [f"{one.metric} where {one.field} is {one.value}" for one in slices if one.verdict == "worse"]
    few = sum(one.few for one in slices)
    words = f"Worse in {len(worse)} of {len(slices)} slices" + (
        f": {', '.join(worse[:5])}." if worse else "."
    )
    return f"{words} {few} marked * stand on fewer than 20 samples." if few else words


def lost_rows(lost: Sequence[LostSample]) -> list[tuple[str, ...]]:
    """The cells of the biggest losers, in the order of LOST_HEADINGS."""
    return [
        (
            one.sample_id,
            value_text(one.baseline, one.unit),
            value_text(one.candidate, one.unit),
            _text(one.query),
            _text(one.baseline_answer),
            _text(one.candidate_answer),
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


def ranking_headings(ranking: Ranking) -> tuple[str, ...]:
    """Each system under the letter that tells whom the others beat."""
    return ("Metric", *(f"{letter(n)} {name}" for n, name in enumerate(ranking.systems)))


def ranking_rows(ranking: Ranking) -> list[tuple[str, ...]]:
    """A row a metric: each value with its rank, the ranks it could have, and the systems that it beats."""
    rows = []
    for metric in ranking.metrics:
        cells = [metric.name if metric.higher_is_better else f"{metric.name} ↓"]
        for one in metric.standings:
            beats = "".join(letter(other) for other in one.beats)
            rank = f"#{one.rank}"
            if one.rank_interval is not None and one.rank_interval[0] != one.rank_interval[1]:
                rank += f" ({one.rank_interval[0]}-{one.rank_interval[1]})"
            best = "*" if one.best else ""
            cells.append(f"{value_text(one.value, metric.unit)}{best} {rank}{' >' + beats if beats else ''}")
        rows.append(tuple(cells))
    return rows


def ranking_in_words(ranking: Ranking) -> str:
    """Who is best on what, as far as the data can tell."""
    others = len(ranking.systems) - 1
    sure: dict[str, list[str]] = {}
    unsure: dict[str, list[str]] = {}
    shared = []
    for metric in ranking.metrics:
        first = [n for n, one in enumerate(metric.standings) if one.best]
        if len(first) != 1:
            shared.append(metric.name)
            continue
        beaten = len(metric.standings[first[0]].beats)
        home = sure if beaten == others else unsure
        told = metric.name if beaten in (0, others) else f"{metric.name} (surely above {beaten} of {others})"
        home.setdefault(ranking.systems[first[0]], []).append(told)
    sentences = [f"{name} is better than all others on {listed(on)}." for name, on in sure.items()]
    sentences += [
        f"{name} has the best value on {listed(on)}, but these data cannot tell whether it is the best."
        for name, on in unsure.items()
    ]
    if shared:
        sentences.append(f"Several share the best value on {listed(shared)}.")
    return " ".join(sentences) or "The runs have no metric in common."


def comparison_report(comparison: Comparison, lost: Sequence[LostSample] = ()) -> str:
    """Everything about a comparison as Markdown."""
    parts = [
        *map(escaped, comparison_in_plain_words(comparison)),
        markdown_table(COMPARISON_HEADINGS, comparison_rows(comparison)),
        escaped(comparison_in_words(comparison)),
        "### How large\n\n" + markdown_table(SIZE_HEADINGS, size_rows(comparison)),
    ]
    if comparison.repeats > 1:
        parts.append("### Run to run\n\n" + markdown_table(REPEAT_HEADINGS, repeat_rows(comparison)))
    if comparison.slices:
        parts.append("### Slices, the worst first\n\n" + escaped(slices_in_words(comparison.slices)))
        parts.append(markdown_table(SLICE_HEADINGS, slice_rows(comparison.slices)))
    if lost:
        title = f"### Biggest losers on {escaped(lost[0].metric)}\n\n"
        parts.append(title + markdown_table(LOST_HEADINGS, lost_rows(lost)))
    notes = [*comparison.mismatches, *comparison.notes]
    notes += [f"{name} is not compared: {reason}" for name, reason in comparison.not_compared.items()]
    parts += [f"Note: {escaped(note)}." for note in notes]
    return "\n\n".join(parts)


def ranking_report(ranking: Ranking) -> str:
    """A ranking as Markdown, with what the signs mean."""
    table = markdown_table(ranking_headings(ranking), ranking_rows(ranking))
    notes = [f"Note: {escaped(note)}." for note in [*ranking.mismatches, *ranking.notes]]
    return "\n\n".join([table, RANKING_LEGEND, escaped(ranking_in_words(ranking)), *notes])


RANKING_LEGEND = (
    "\\* best value; #1 (1-2) rank, and the ranks that 95% of resamples give; >a surely above system a "
    "(Holm over all pairs and metrics)."
)


def letter(number: int) -> str:
    """a, b, c, ... and after z by number."""
    return chr(ord("a") + number) if number < 26 else f"[{number}]"


def _effect(metric: MetricComparison) -> str:
    if metric.effect_size is not None:
        return f"d {metric.effect_size:+.2f}"
    return _NONE if metric.cliffs_delta is None else f"δ {metric.cliffs_delta:+.2f}"


def _unmatched(metric: MetricComparison) -> str:
    return f" ({metric.unmatched} unpaired)" if metric.unmatched else ""


def _spread(value: float | None, unit: str) -> str:
    return _NONE if value is None else f"± {value_text(value, unit)}"


def _text(text: str | None, limit: int = 160) -> str:
    flat = "(none)" if text is None else " ".join(text.split()) or "(empty)"
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"
