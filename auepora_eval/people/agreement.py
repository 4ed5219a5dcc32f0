"""Measure how far annotators agree with each other.

    spans             mean character Jaccard, per query and file
    aspect ratings    Cohen's kappa and Krippendorff's alpha; ordinal too if the order is known
    quality scores    Krippendorff's alpha, interval

Each has a 95% interval over the queries. Items that only one person annotated are left out.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from statistics import fmean
from typing import Any

import numpy as np

from ..core.display import interval_text, value_text
from ..core.scores import shared_or_none
from ..core.table import Table
from ..stats.agreement import Statistic, agreement, numbered
from ..stats.intervals import TOO_NARROW, Interval, mean_interval
from .annotators import OVERALL, RATINGS, SCORES, Annotators, by_name, marks_of, span_agreement

RECALIBRATE_BELOW = 0.80  # of spans: below, annotators do not follow the same guideline
RELIABLE, TENTATIVE = 0.80, 2 / 3  # Krippendorff's bounds for alpha

SPANS, JACCARD = "spans", "character_jaccard"
STATISTICS = {
    JACCARD: "character Jaccard",
    "cohen_kappa": "Cohen's kappa",
    "krippendorff_alpha_nominal": "Krippendorff's alpha, nominal",
    "krippendorff_alpha_ordinal": "Krippendorff's alpha, ordinal",
    "krippendorff_alpha_interval": "Krippendorff's alpha, interval",
}
Said = dict[str, Any]  # by annotator: a rating (a word), a score (a number from 0 to 1), or spans


@dataclass(frozen=True)
class Figure:
    """One statistic of agreement. If it cannot be computed, `value` is None and `reason` says why."""

    about: str
    statistic: str
    value: float | None
    interval: Interval | None
    items: int
    reason: str = ""

    def in_words(self) -> str:
        """Return what the value means, and what to do; "" for a kappa."""
        if self.value is None:
            return self.reason
        if self.statistic == "cohen_kappa":
            return ""
        bound = RECALIBRATE_BELOW if self.about == SPANS else RELIABLE
        if self.value >= bound:
            is_certain = self.interval is not None and self.interval.low >= bound
            return "reliable" if is_certain else "good, but too few items to be certain"
        if self.about == SPANS:
            return f"below {bound:.2f}: discuss the disagreements and recalibrate"
        return "good for tentative conclusions" if self.value >= TENTATIVE else "too low to rely on"

    def cells(self) -> list[str]:
        """Return the statistic, its value, interval and number of items for the columns of a table."""
        limits = interval_text(self.interval and self.interval[:2])
        return [STATISTICS[self.statistic], value_text(self.value), limits, str(self.items)]


@dataclass(frozen=True)
class Disagreement:
    """An item on which annotators differ: by how much (0 to 1), and each annotator's value."""

    query_id: str
    about: str
    distance: float
    said: Said
    answer: str | None = None


@dataclass
class AgreementReport:
    """The statistics, and the disagreements with the largest first."""

    about: dict[str, str]
    annotators: dict[str, int]
    figures: list[Figure] = field(default_factory=list)
    disagreements: list[Disagreement] = field(default_factory=list)

    def figure(self, about: str, statistic: str) -> Figure:
        """Return one statistic by name; KeyError if there is none."""
        for figure in self.figures:
            if (figure.about, figure.statistic) == (about, statistic):
                return figure
        raise KeyError(f"no {statistic!r} of {about!r}")

    def tables(self, limit: int | None = None) -> list[Table]:
        """Return the table of the statistics, and that of the largest disagreements."""
        rows: list[list[str]] = []
        for figure in self.figures:
            if [figure.about] not in rows:
                rows.append([figure.about])
            rows.append([*figure.cells(), figure.in_words()])
        counts = ", ".join(f"{name} ({count})" for name, count in self.annotators.items())
        title = f"{len(self.annotators)} annotators and their numbers of annotations: {counts}"
        headings = ("Agreement", "Value", "95% interval", "Items", "In words")
        statistics = Table(headings, rows, title, list(self._notes()), numeric=(1, 2, 3))
        return [statistics, self._disagreements(limit)]

    def _notes(self) -> Iterator[str]:
        if any(figure.interval and TOO_NARROW in figure.interval.method for figure in self.figures):
            yield "Fewer than 50 items: if a rating is rare, intervals of kappa and alpha are too narrow."
        if not any(figure.about == SPANS for figure in self.figures):
            yield "No query has spans by two people."

    def _disagreements(self, limit: int | None) -> Table:
        rows = []
        for each in self.disagreements[:limit]:
            said = "; ".join(f"{name}: {_value_text(value)}" for name, value in each.said.items())
            rows.append((each.query_id, each.about, f"{each.distance:.2f}", said))
        more = len(self.disagreements) - len(rows)
        return Table(
            ("Query", "About", "Distance", "Annotations"),
            rows,
            f"Disagreements: {len(self.disagreements)}, the largest first (1 is the largest possible)",
            [f"... and {more} more (--json)"] if more else [],
            numeric=(2,),
        )

    def to_dict(self) -> dict[str, object]:
        """Return the report for JSON."""
        figures = [
            {**asdict(each), "interval": each.interval and each.interval._asdict()} for each in self.figures
        ]
        return {
            **self.about,
            "annotators": self.annotators,
            "agreement": figures,
            "disagreements": self.disagreements,
        }


def _value_text(value: Any) -> str:
    """Return what an annotator said: spans, a score or a rating."""
    if isinstance(value, list):
        return " ".join(f"{start}-{end}" for start, end in value) or "nothing"
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def annotator_agreement(people: Annotators, order: Sequence[str] = ()) -> AgreementReport:
    """Return the agreement of several people.

    `order` lists ratings from the worst to the best, where their order is not known.
    """
    counts = {name: sum(name in said for said in people.items) for name in people.names}
    report = AgreementReport(dict(people.about), counts)
    _measure_spans(report, people)
    # By what is asked: of each answer that was judged, what each person said.
    asked: dict[str, list[tuple[str, str, Said]]] = {}
    for part in (RATINGS, SCORES):
        for judged, said in people.judgements.items():
            for name, values in by_name(said, part).items():
                asked.setdefault(f"{part}.{name}", []).append((*judged, values))
    for judged, said in people.judgements.items():
        overall = {name: one[OVERALL] for name, one in said.items() if one.get(OVERALL) is not None}
        if overall:
            asked.setdefault(OVERALL, []).append((*judged, overall))
    for about, rows in asked.items():
        ratings = [(query_id, values) for query_id, _, values in rows]
        is_score = not about.startswith(RATINGS)
        known = (
            None if is_score else rating_order({one for _, said in ratings for one in said.values()}, order)
        )
        report.figures += figures_of(about, ratings, known, is_score=is_score)
        for query_id, answer, values in rows:
            distance = _distance(list(values.values()), known, is_score=is_score)
            if distance > 0:
                report.disagreements.append(Disagreement(query_id, about, distance, values, answer))
    report.disagreements.sort(key=lambda each: (-each.distance, each.query_id, each.about))
    return report


def _measure_spans(report: AgreementReport, people: Annotators) -> None:
    queries: list[Hashable] = []
    values: list[float] = []
    for query_id, said in people.spans.items():
        marks = marks_of(said)
        for place, value in span_agreement(marks).items():
            queries.append(query_id)
            values.append(value)
            if place is not None and value < 1.0:
                spans = {name: list(map(list, marked.get(place, []))) for name, marked in marks.items()}
                report.disagreements.append(Disagreement(query_id, f"{SPANS} in {place}", 1 - value, spans))
    if values:
        interval = mean_interval(np.array(values), clusters=shared_or_none(queries), bounds=(0.0, 1.0))
        report.figures.append(Figure(SPANS, JACCARD, fmean(values), interval, len(values)))


def figures_of(
    about: str,
    ratings: Sequence[tuple[str, Mapping[str, Any]]],
    order: Sequence[str] | None = None,
    *,
    is_score: bool = False,
) -> list[Figure]:
    """Return the statistics of what people said to one question about several items.

    `ratings` has, for each item, the query that it belongs to and each person's rating. Ratings are words,
    which may have an order, or scores.
    """
    several = [(query_id, said) for query_id, said in ratings if len(said) > 1]
    raters = sorted({name for _, said in several for name in said})
    table = [[said.get(name) for name in raters] for _, said in several]
    clusters = shared_or_none([query_id for query_id, _ in several])
    statistics: list[Statistic] = ["krippendorff_alpha_interval"]
    if not is_score:
        statistics = ["cohen_kappa", "krippendorff_alpha_nominal"]
        statistics += ["krippendorff_alpha_ordinal"] if order else []
    if not table:
        reason = "no item was rated by two people"
        return [Figure(about, statistic, None, None, 0, reason) for statistic in statistics]
    # Scores are numbers already, and np.array makes NaN of None. Words are numbered by their order.
    numbers = np.array(table, dtype=np.float64) if is_score else numbered(table, order or ())[0]
    figures = []
    for statistic in statistics:
        found = agreement(numbers, statistic, clusters=clusters)
        is_known = math.isfinite(found.value)
        reason = "" if is_known else "all ratings are the same"
        value = found.value if is_known else None
        figures.append(Figure(about, statistic, value, found.interval, found.items, reason))
    return figures


def _distance(values: list[Any], order: Sequence[str] | None, *, is_score: bool) -> float:
    """Return how much of the scale lies between ratings; without an order, the share of unequal pairs."""
    if len(set(values)) < 2:
        return 0.0
    if is_score:
        return float(max(values) - min(values))
    if order is None:
        return fmean(float(one != other) for one, other in combinations(values, 2))
    # 1 is the distance from one end of the scale to the other.
    places = [order.index(rating) for rating in values]
    return (max(places) - min(places)) / (len(order) - 1)


# The first words of common ratings, from the worst to the best: poor, mostly_correct, fully_supported.
_DEGREES = (
    "no not none incorrect poor poorly low partially partly fair medium mostly good well high yes fully "
    "excellent"
).split()


def rating_order(ratings: Collection[str], order: Sequence[str] = ()) -> list[str] | None:
    """Return ratings from the worst to the best: by `order` if it has them all; None if it is not known.

    >>> rating_order({"fully_correct", "incorrect", "mostly_correct"})
    ['incorrect', 'mostly_correct', 'fully_correct']
    >>> rating_order({"good", "blue"}) is None
    True
    """
    if ratings and set(ratings) <= set(order):
        return list(order)
    try:
        places = {rating: float(rating) for rating in ratings}
    except ValueError:
        degrees = {rating: rating.lower().replace(" ", "_").split("_")[0] for rating in ratings}
        if not set(degrees.values()) <= set(_DEGREES):
            return None
        places = {rating: float(_DEGREES.index(degree)) for rating, degree in degrees.items()}
    return sorted(places, key=places.__getitem__) if len(set(places.values())) == len(places) else None
