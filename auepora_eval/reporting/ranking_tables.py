"""Several runs side by side: their ranks, the difference of every pair, and all of it as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.types import TargetCategory
from ..runs.losers import LostSample
from ..runs.ranking import Ranking, Standing
from ..runs.slices import SliceComparison
from .comparison_tables import slices_and_losers
from .markdown_text import safe_table, safe_text
from .number_texts import listed, p_cell, value_text
from .run_names import names_apart

PAIR_HEADINGS = ("Metric", "Pair", "Change", "p Holm", "Verdict")
_LEGEND = (
    "* best value; #1 (1-2) rank, and the ranks that 95% of resamples give; >a surely above system a "
    "(Holm over all pairs and metrics)"
)
_NO_INTERVAL = "#1 (?) a rank without such a range"
_NO_RANK = "no rank: one run each cannot tell about times"
_NO_RANK_FAILED = "no rank: answers are scored by each other, and some failed"


def ranked_names(ranking: Ranking) -> list[str]:
    """What the runs are called."""
    return names_apart(ranking.systems, ranking.run_ids)


def ranking_headings(ranking: Ranking) -> tuple[str, ...]:
    """Each system under the letter that tells whom the others beat."""
    return ("Metric", *(f"{letter(n)} {name}" for n, name in enumerate(ranked_names(ranking))))


def ranking_rows(ranking: Ranking) -> list[tuple[str, ...]]:
    """A row a metric: each value with its rank, the ranks it could have, and the systems that it beats."""
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
    return rows


def _rank(one: Standing) -> str:
    """ " #1 (1-2)"; nothing where the data cannot tell."""
    if one.rank is None:
        return ""
    if one.rank_interval is None:
        return f" #{one.rank} (?)"
    low, high = one.rank_interval
    return f" #{one.rank} ({low}-{high})" if low != high else f" #{one.rank}"


def ranking_legend(ranking: Ranking) -> str:
    """What the signs in the table of ranks mean."""
    standings = [one for metric in ranking.metrics for one in metric.standings]
    parts = [_LEGEND]
    if any(one.rank is not None and one.rank_interval is None for one in standings):
        parts.append(_NO_INTERVAL)
    times, others = _unranked(ranking)
    parts += [_NO_RANK] * bool(times) + [_NO_RANK_FAILED] * bool(others)
    return "; ".join(parts) + "."


def _unranked(ranking: Ranking) -> tuple[list[str], list[str]]:
    """The metrics without ranks: times, which one run each cannot tell about, and what failures spoil."""
    found = [metric for metric in ranking.metrics if any(one.rank is None for one in metric.standings)]
    times = [metric.name for metric in found if metric.target is TargetCategory.LATENCY]
    return times, [metric.name for metric in found if metric.target is not TargetCategory.LATENCY]


def pair_rows(ranking: Ranking) -> list[tuple[str, ...]]:
    """Every pair on every metric on which it differs, in the order of PAIR_HEADINGS: "b - a" is b less a."""
    names = [metric.name for metric in ranking.metrics]
    places = [(x, y) for x in range(len(ranking.systems)) for y in range(x + 1, len(ranking.systems))]
    rows: list[tuple[str, ...]] = []
    for name in names:
        for (x, y), pair in zip(places, ranking.pairs, strict=True):
            rows += [
                (
                    name,
                    f"{letter(y)} - {letter(x)}",
                    value_text(one.difference, one.unit, signed=True),
                    p_cell(one.p_adjusted),
                    one.verdict,
                )
                for one in pair.metrics
                if one.name == name and one.verdict != "same"
            ]
    return rows


def ranking_in_words(ranking: Ranking) -> str:
    """Who is best on what, as far as the data can tell."""
    names = ranked_names(ranking)
    others = len(names) - 1
    sure: dict[str, list[str]] = {}
    unsure: dict[str, list[str]] = {}
    shared = []
    times, spoilt = _unranked(ranking)
    for metric in ranking.metrics:
        if metric.name in (*times, *spoilt):
            continue
        first = [n for n, one in enumerate(metric.standings) if one.best]
        if len(first) != 1:
            shared.append(metric.name)
            continue
        beaten = len(metric.standings[first[0]].beats)
        home = sure if beaten == others else unsure
        told = metric.name if beaten in (0, others) else f"{metric.name} (surely above {beaten} of {others})"
        home.setdefault(names[first[0]], []).append(told)
    sentences = [f"{name} is better than all others on {listed(on)}." for name, on in sure.items()]
    sentences += [
        f"{name} has the best value on {listed(on)}, but these data cannot tell whether it is the best."
        for name, on in unsure.items()
    ]
    if shared:
        sentences.append(f"Several share the best value on {listed(shared)}.")
    if times:
        sentences.append(f"One run of each cannot tell about {listed(times)}.")
    if spoilt:
        sentences.append(f"Failed answers leave open who is best on {listed(spoilt)}.")
    return " ".join(sentences) or "The runs have no metric in common."


def ranking_report(
    ranking: Ranking,
    shown: str = "",
    slices: Sequence[SliceComparison] = (),
    lost: Sequence[LostSample] = (),
) -> str:
    """A ranking as Markdown, with what the signs mean; the slices and losers are of the pair `shown`."""
    parts = [
        safe_table(ranking_headings(ranking), ranking_rows(ranking)),
        safe_text(ranking_legend(ranking)),
        safe_text(ranking_in_words(ranking)),
        "### Pairs\n\n" + safe_table(PAIR_HEADINGS, pair_rows(ranking)),
    ]
    if slices or lost:
        parts += [safe_text(shown), *slices_and_losers(slices, lost)]
    return "\n\n".join([*parts, *(f"Note: {safe_text(n)}." for n in [*ranking.mismatches, *ranking.notes])])


def letter(number: int) -> str:
    """a, b, c, ... and after z by number."""
    return chr(ord("a") + number) if number < 26 else f"[{number}]"
