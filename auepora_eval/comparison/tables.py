"""Comparisons and rankings as tables and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations
from typing import Any

from ..core.display import TOO_FEW, bounds_text, interval_text, listed, p_cell, value_text
from ..core.table import Table
from ..core.verdict import Verdict
from .compare import Comparison, MetricComparison
from .ranking import Ranking, Standing
from .regressions import LostSample, Text
from .slices import SliceComparison
from .words import comparison_in_plain_words, interval_notes, names_apart, verdict_text

_SIZE_HEADINGS = ("Metric", "Baseline", "Candidate", "Effect", "Won/tied/lost", "Detectable", "If all scored")
_SLICE_HEADINGS = ("Slice", "Metric", "Size", "Baseline", "Candidate", "Change", "p (BH)", "Verdict")
_LOST_HEADINGS = ("Sample", "Baseline", "Candidate", "Question", "Baseline gave", "Candidate gave")
_NONE = "-"
SLICES_CORRECTED = "p and verdicts of slices are corrected together (Benjamini-Hochberg), intervals are not."
_DOCUMENTS = 5  # of a regression, by their ids


def size_table(comparison: Comparison) -> Table:
    """Return how large each difference is, and what can be detected."""
    rows = [
        (
            metric.name,
            interval_text(metric.baseline_interval, metric.unit),
            interval_text(metric.candidate_interval, metric.unit),
            _NONE if metric.effect.d is None else f"d {metric.effect.d:+.2f}",
            f"{metric.effect.wins}/{metric.effect.ties}/{metric.effect.losses}"
            + (f" ({metric.coverage.unmatched} unpaired)" if metric.coverage.unmatched else ""),
            TOO_FEW if metric.power.too_few else _number(metric.power.detectable, metric.unit),
            bounds_text(metric.effect.bounds, metric.unit),
        )
        for metric in comparison.metrics
    ]
    # The systems' own intervals can be left out: `auepora show` has them.
    return Table(_SIZE_HEADINGS, rows, numeric=range(1, len(_SIZE_HEADINGS)), spare=(1, 2))


def slice_table(slices: Sequence[SliceComparison]) -> Table:
    """Return the slices: the size is in questions, a star marks few."""
    rows = [
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
    return Table(_SLICE_HEADINGS, rows, numeric=range(2, 7), spare=(3, 4))


def slices_in_words(slices: Sequence[SliceComparison]) -> str:
    """Return where the candidate is significantly worse, how many slices are small, and what is corrected."""
    lost = [one for one in slices if one.verdict is Verdict.WORSE]
    worse = [f"{one.metric} where {one.field} is {_text(one.value, 60)}" for one in lost]
    more = f" and {len(worse) - 5} more" if len(worse) > 5 else ""
    words = f"Worse in {len(_distinct(lost))} of {len(_distinct(slices))} slices"
    words += f": {', '.join(worse[:5])}{more}." if worse else "."
    few = len(_distinct([one for one in slices if one.few]))
    small = f" {few} marked * have fewer than 20 questions." if few else ""
    return f"{words}{small} {SLICES_CORRECTED}"


def _distinct(slices: Sequence[SliceComparison]) -> set[tuple[str, str]]:
    return {(one.field, one.value) for one in slices}


def lost_title(lost: Sequence[LostSample]) -> str:
    """ "Largest regressions on recall@5 (3 of the 12 samples that got worse)"."""
    count_shown, every = len(lost), lost[0].lost_in_all
    count = f"{count_shown:,} of the {every:,}" if every > count_shown else f"all {every:,}"
    about = f" ({count} samples that got worse)" if every else ""
    return f"Largest regressions on {lost[0].metric}{about}"


def regression_table(lost: Sequence[LostSample]) -> Table:
    """Return the largest regressions, with what both systems answered."""
    rows = [
        (
            one.sample_id,
            value_text(one.baseline, one.unit),
            value_text(one.candidate, one.unit),
            _text(one.before.query or one.now.query),
            _given(one.before, one),
            _given(one.now, one),
        )
        for one in lost
    ]
    return Table(_LOST_HEADINGS, rows, numeric=(1, 2))


def repeat_table(comparison: Comparison) -> Table:
    """Return how much each system's value varies from one repeat to the next."""
    rows = [
        (
            metric.name,
            _number(metric.run_to_run.baseline_sd, metric.unit, "± "),
            _number(metric.run_to_run.candidate_sd, metric.unit, "± "),
            value_text(metric.effect.change, metric.unit, signed=True),
        )
        for metric in comparison.metrics
        if metric.run_to_run is not None
    ]
    headings = ("Metric", "Baseline, run to run", "Candidate, run to run", "Change")
    return Table(headings, rows, numeric=range(1, 4))


def _number(value: float | None, unit: str, sign: str = "") -> str:
    return _NONE if value is None else f"{sign}{value_text(value, unit)}"


def _given(text: Text, lost: LostSample) -> str:
    """The answer or, of a metric that is about documents, these; where the right ones are among them."""
    if text.error is not None:
        return f"failed: {_text(text.error)}"
    if not lost.of_documents or text.documents is None:
        return _text(text.answer)
    documents, right = text.documents, (*lost.before.right, *lost.now.right)
    places = [place for place, doc_id in enumerate(documents, start=1) if doc_id in right]
    if not documents:
        return "no documents"
    ranks = f"relevant at {listed([str(place) for place in places])}" if places else "none relevant"
    summary = f"{ranks} of {len(documents)}"
    listed_ids = [f"{_text(doc_id, 40)}{'*' * (doc_id in right)}" for doc_id in documents[:_DOCUMENTS]]
    return f"{summary}: {', '.join(listed_ids)}{', …' if len(documents) > _DOCUMENTS else ''}"


def _text(text: str | None, limit: int = 160) -> str:
    flat = "(not stored with this run)" if text is None else " ".join(text.split()) or "(empty)"
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


# Several runs side by side: their ranks, the difference of every pair, and all of it as Markdown.

RANKING_LEGEND = (
    "* best value; #1 (1-2) rank, and the ranks that the tests leave open; >a significantly better than "
    "system a (Holm over all pairs and metrics)."
)


def ranked_names(ranking: Ranking) -> list[str]:
    """What the runs are called."""
    return names_apart(ranking.systems, ranking.run_ids)


def ranking_table(ranking: Ranking) -> Table:
    """Return each value with its rank, the ranks it could have, and the letters of the systems it beats."""
    headings = ("Metric", *(f"{letter(n)} {name}" for n, name in enumerate(ranked_names(ranking))))
    rows = []
    for metric in ranking.metrics:
        cells = [metric.name if metric.higher_is_better else f"{metric.name} ↓"]
        for one in metric.standings:
            beats = "".join(letter(other) for other in one.beats)
            best = "*" if one.best else ""
            cells.append(
                f"{value_text(one.value, metric.unit)}{best}{_rank(one)}{' >' + beats if beats else ''}"
            )
        rows.append(tuple(cells))
    return Table(headings, rows, numeric=range(1, len(headings)))


def _rank(one: Standing) -> str:
    """ " #1 (1-2)"; nothing where the data are inconclusive."""
    if one.rank is None or one.rank_interval is None:
        return ""
    low, high = one.rank_interval
    return f" #{one.rank} ({low}-{high})" if low != high else f" #{one.rank}"


def pair_table(ranking: Ranking) -> Table:
    """Return every pair on every metric on which it differs significantly; "b - a" is b minus a."""
    letters = map(letter, range(len(ranking.systems)))
    names = [f"{later} - {earlier}" for earlier, later in combinations(letters, 2)]
    rows: list[tuple[str, ...]] = []
    for metric in ranking.metrics:
        for name, pair in zip(names, ranking.pairs, strict=True):
            one = pair[metric.name]
            if one.verdict.is_significant:
                change = value_text(one.effect.change, one.unit, signed=True)
                rows.append((one.name, name, change, p_cell(one.test.p_adjusted), one.verdict))
    return Table(("Metric", "Pair", "Change", "p (Holm)", "Verdict"), rows, numeric=(2, 3))


def ranking_in_words(ranking: Ranking) -> str:
    """Return which system is best on which metrics, and how sure that is."""
    names = ranked_names(ranking)
    others = len(names) - 1
    sure: dict[str, list[str]] = {}
    unsure: dict[str, list[str]] = {}
    shared = []
    untested: dict[str, list[str]] = {}
    for metric in ranking.metrics:
        if any(one.rank is None for one in metric.standings):
            why = next(filter(None, (pair[metric.name].test.not_tested for pair in ranking.pairs)))
            untested.setdefault(why, []).append(metric.name)
            continue
        first = [n for n, one in enumerate(metric.standings) if one.best]
        if len(first) != 1:
            shared.append(metric.name)
            continue
        beaten = len(metric.standings[first[0]].beats)
        home = sure if beaten == others else unsure
        entry = (
            metric.name
            if beaten in (0, others)
            else f"{metric.name} (significantly better than {beaten} of {others})"
        )
        home.setdefault(names[first[0]], []).append(entry)
    sentences = [f"{name} is better than all others on {listed(on)}." for name, on in sure.items()]
    for name, on in unsure.items():
        best = f"{name} has the best value on {listed(on)}"
        sentences.append(f"{best}, but is not significantly better than all others.")
    if shared:
        sentences.append(f"Several share the best value on {listed(shared)}.")
    sentences += [f"No rank on {listed(on)}: {why}." for why, on in untested.items()]
    return " ".join(sentences) or "The runs have no metric in common."


def letter(number: int) -> str:
    """a, b, c, ... and after z by number."""
    return chr(ord("a") + number) if number < 26 else f"[{number}]"


# Comparisons as JSON, with the significance tests as results files name them.


def statistical_analysis(comparison: Comparison) -> dict[str, Any]:
    """{"significance_tests": {metric: {baseline_mean, current_mean, p_value, significant, effect_size}}}.

    The p-value is the corrected one, and significance is what it says at alpha; it is null where
    one run each is not enough. Intervals are in the next column.
    """
    tests = {}
    for metric in comparison.metrics:
        p_value = metric.test.p_adjusted
        tests[metric.name] = {
            "baseline_mean": metric.baseline,
            "current_mean": metric.candidate,
            "p_value": p_value,
            "significant": p_value is not None and p_value < comparison.alpha,
            "effect_size": metric.effect.d,
        }
    intervals = {metric.name: metric.effect.interval for metric in comparison.metrics}
    return {"significance_tests": tests, "confidence_intervals": {**intervals, "confidence_level": 0.95}}


def ranking_to_dict(ranking: Ranking) -> dict[str, Any]:
    """A ranking as JSON has it; `beats` names runs by their number, from 0."""
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


def comparison_to_dict(comparison: Comparison) -> dict[str, Any]:
    """A comparison as JSON has it, with the verdict in plain words."""
    return {
        **{field: getattr(comparison, field) for field in _ABOUT},
        "slices": [asdict(one) for one in comparison.slices],
        "metrics": [metric_to_dict(metric) for metric in comparison.metrics],
        "in_plain_words": comparison_in_plain_words(comparison),
        "on_intervals": interval_notes(comparison),
        "statistical_analysis": statistical_analysis(comparison),
    }


def lost_to_dict(lost: LostSample) -> dict[str, object]:
    """Return a regression as a JSON document has it: both systems' texts at one level."""
    document = asdict(lost)
    sides = {"baseline": document.pop("before"), "candidate": document.pop("now")}
    texts = {
        f"{side}_{key}": text[key] for side, text in sides.items() for key in ("answer", "documents", "error")
    }
    right = (*lost.before.right, *lost.now.right)
    return {**document, "query": lost.before.query or lost.now.query, **texts, "right": right}


def metric_to_dict(metric: MetricComparison) -> dict[str, object]:
    """Return one metric as a JSON document has it: every number at one level."""
    test, effect, margin, power = metric.test, metric.effect, metric.margin, metric.power
    run_to_run = None if metric.run_to_run is None else asdict(metric.run_to_run)
    return {
        "name": metric.name,
        "target": metric.target.name,
        "higher_is_better": metric.higher_is_better,
        "unit": metric.unit,
        "verdict": metric.verdict,
        "baseline": metric.baseline,
        "candidate": metric.candidate,
        "baseline_interval": metric.baseline_interval,
        "candidate_interval": metric.candidate_interval,
        "test": test.method,
        "p_value": test.p,
        "p_adjusted": test.p_adjusted,
        "not_tested": test.not_tested,
        "clusters": test.clusters,
        "clusters_worth": test.clusters_worth,
        "difference": effect.change,
        "interval": effect.interval,
        "effect_size": effect.d,
        "difference_bounds": effect.bounds,
        "wins": effect.wins,
        "ties": effect.ties,
        "losses": effect.losses,
        "pairs": metric.pairs,
        "margin": margin.size,
        "margin_p": margin.p,
        "margin_limit": margin.limit,
        "within_margin": margin.within,
        "samples_for_margin": margin.samples_needed,
        **asdict(power),
        **asdict(metric.coverage),
        "regressions": [asdict(one) for one in metric.regressions[:_REGRESSIONS]],
        "questions_lost": metric.questions_lost,
        "run_to_run": run_to_run,
        "rests_on": None if metric.rests_on is None else metric.rests_on._asdict(),
    }


_REGRESSIONS = 5  # of each metric in a JSON document
_ABOUT = (
    *("baseline_id", "candidate_id", "baseline_system", "candidate_system", "alpha"),
    *("not_compared", "notes", "mismatches", "repeats"),
)


def comparison_table(comparison: Comparison, names: Sequence[str] = ("Baseline", "Candidate")) -> Table:
    """Return each metric's values, change, interval, p-value, pairs and verdict."""
    headings = ("Metric", *names, "Change", "95% interval", "p (Holm)", "Pairs", "Verdict")
    rows = [
        (
            metric.name,
            _value(metric, metric.baseline, metric.coverage.failed_baseline),
            _value(metric, metric.candidate, metric.coverage.failed_candidate),
            value_text(metric.effect.change, metric.unit, signed=True, interval=metric.effect.interval),
            interval_text(metric.effect.interval, metric.unit, signed=True),
            p_cell(metric.test.p_adjusted),
            _pairs(metric),
            verdict_text(metric),
        )
        for metric in comparison.metrics
    ]
    # p can be left out, since the verdict follows from it; and the change, which both values show. The next
    # table has the pairs too.
    return Table(headings, rows, numeric=range(1, 7), spare=(5, 3, 6))


def _pairs(metric: MetricComparison) -> str:
    """ "145", or "115/155" if 40 of the samples have a score in one run only."""
    unmatched = metric.coverage.unmatched
    return f"{metric.pairs}/{metric.pairs + unmatched}" if unmatched else f"{metric.pairs}"


def _value(metric: MetricComparison, value: float, failed: int) -> str:
    text = value_text(value, metric.unit, interval=metric.effect.interval)
    return f"{text} ({failed} failed)" if failed else text
