"""Measure how far annotators agree with each other.

    spans             mean character Jaccard, per query and file
    aspect ratings    Cohen's and Fleiss' kappa, Krippendorff's alpha; ordinal too if the order is known
    quality scores    Krippendorff's alpha, interval

Each has a 95% interval over the queries. Items that only one person annotated are left out.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from statistics import fmean
from typing import Any

import numpy as np

from ..core.display import interval_text, value_text
from ..core.scores import shared_or_none
from ..core.table import Table
from ..errors import DataError
from ..io.ground_truth import Annotation
from ..stats.agreement import Statistic, agreement, numbered
from ..stats.intervals import TOO_NARROW, Interval, mean_interval
from .annotators import OVERALL, RATINGS, SCORES, Annotators, Judged, marks_of, span_agreement

RECALIBRATE_BELOW = 0.80  # for spans: annotators who agree less do not follow the same guideline
SPAN_TARGET = 0.85
RELIABLE, TENTATIVE = 0.80, 2 / 3  # Krippendorff's bounds for alpha
MEAN_TOLERANCE = 0.005  # an overall score that was rounded to two digits is still the mean of its parts

SPANS, JACCARD = "spans", "character_jaccard"
STATISTICS = {
    JACCARD: "character Jaccard",
    "cohen_kappa": "Cohen's kappa",
    "fleiss_kappa": "Fleiss' kappa",
    "krippendorff_alpha_nominal": "Krippendorff's alpha, nominal",
    "krippendorff_alpha_ordinal": "Krippendorff's alpha, ordinal",
    "krippendorff_alpha_interval": "Krippendorff's alpha, interval",
}
_KAPPAS: tuple[Statistic, ...] = ("cohen_kappa", "fleiss_kappa", "krippendorff_alpha_nominal")

# By annotator: a rating (a word), a score (a number from 0 to 1), or the spans that they marked.
Said = dict[str, Any]
Ratings = dict[Judged, Said]


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
        """Return what a statistic of the spans or an alpha means, and what to do; "" for the others."""
        if self.value is None:
            return ""
        if self.about == SPANS:
            if self.value < RECALIBRATE_BELOW:
                return f"below {RECALIBRATE_BELOW:.2f}: discuss the disagreements and recalibrate"
            verdict = "meets" if self.value >= SPAN_TARGET else "is acceptable, but below"
            return f"{verdict} the target of {SPAN_TARGET:.2f}{self._caveat(RECALIBRATE_BELOW)}"
        if not self.statistic.startswith("krippendorff_alpha"):
            return ""
        if self.value >= RELIABLE:
            return f"reliable{self._caveat(RELIABLE)}"
        return "good for tentative conclusions" if self.value >= TENTATIVE else "too low to rely on"

    def _caveat(self, bound: float) -> str:
        if self.interval is None:
            return ", though there is no interval"
        return "" if self.interval.low >= bound else f", though the interval reaches below {bound:.2f}"


@dataclass(frozen=True)
class Disagreement:
    """An item on which annotators differ: by how much (0 to 1), and each annotator's value."""

    query_id: str
    about: str
    distance: float
    said: Said
    answer: str | None = None


@dataclass(frozen=True)
class WrongOverall:
    """An overall score that is not the mean of its parts."""

    annotation_id: str
    annotator: str
    stated: float
    mean: float


@dataclass
class AgreementReport:
    """The statistics, the disagreements with the largest first, and problems of the annotations."""

    about: dict[str, str]
    annotators: dict[str, int]
    figures: list[Figure] = field(default_factory=list)
    disagreements: list[Disagreement] = field(default_factory=list)
    wrong_overall: list[WrongOverall] = field(default_factory=list)
    other_answers: int = 0  # queries for which people judged different answers

    def figure(self, about: str, statistic: str) -> Figure:
        """Return one statistic by name; KeyError if there is none."""
        for figure in self.figures:
            if (figure.about, figure.statistic) == (about, statistic):
                return figure
        raise KeyError(f"no {statistic!r} of {about!r}")

    def tables(self, limit: int | None = None) -> list[Table]:
        """Return the table of the statistics, and that of the largest disagreements."""
        return [self._statistics(), self._disagreements(limit)]

    def _statistics(self) -> Table:
        rows: list[list[str]] = []
        for figure in self.figures:
            if [figure.about] not in rows:
                rows.append([figure.about])
            cells = (value_text(figure.value), interval_text(figure.interval and figure.interval[:2]))
            words = figure.in_words() or figure.reason
            rows.append([STATISTICS[figure.statistic], *cells, str(figure.items), words])
        counts = ", ".join(f"{name} ({count})" for name, count in self.annotators.items())
        title = f"{len(self.annotators)} annotators and their numbers of annotations: {counts}"
        headings = ("Agreement", "Value", "95% interval", "Items", "In words")
        return Table(headings, rows, title, list(self._notes()), numeric=(1, 2, 3))

    def _notes(self) -> Iterator[str]:
        for wrong in self.wrong_overall:
            yield (
                f"{wrong.annotation_id} by {wrong.annotator}: overall_score is {wrong.stated:g}, "
                f"but the mean of its parts is {wrong.mean:.3f}."
            )
        if self.other_answers:
            yield f"{self.other_answers} queries have an answer that only one person judged."
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
            f"{len(self.disagreements)} disagreements, the largest first (1 is the largest possible)",
            [f"... and {more} more (--json)"] if more else [],
            numeric=(2,),
        )

    def to_dict(self) -> dict[str, object]:
        """Return the report for JSON."""
        return {
            **self.about,
            "annotators": self.annotators,
            "agreement": [
                {**asdict(each), "interval": _limits(each.interval), "in_words": each.in_words()}
                for each in self.figures
            ],
            "disagreements": self.disagreements,
            "wrong_overall_scores": self.wrong_overall,
            "queries_with_other_answers": self.other_answers,
        }


def _value_text(value: Any) -> str:
    """Return what an annotator said: spans, a score or a rating."""
    if isinstance(value, list):
        spans = [f"{start}-{end}" for start, end in value[:4]] + ["…"] * (len(value) > 4)
        return " ".join(spans) or "nothing"
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _limits(interval: Interval | None) -> dict[str, object] | None:
    return None if interval is None else interval._asdict()


def annotator_agreement(
    people: Annotators,
    *,
    orders: Mapping[str, Sequence[str]] | None = None,
    file_of: Callable[[str], str] = str,
) -> AgreementReport:
    """Return the agreement of several people.

    `orders` lists the ratings of an aspect from the worst to the best, if their order is not known. `file_of`
    maps a file name to the document that it refers to.
    """
    counts = dict.fromkeys(people.names, 0)
    for name, _ in people.each():
        counts[name] += 1
    report = AgreementReport(dict(people.about), counts)
    _measure_spans(report, people, file_of)
    _measure_ratings(report, people, orders or {})
    _measure_scores(report, people)
    report.disagreements.sort(key=lambda each: (-each.distance, each.query_id, each.about))
    judgements = people.judgements
    wrong = (wrong_overall(one, name) for said in judgements.values() for name, one in said.items())
    report.wrong_overall = [each for each in wrong if each is not None]
    # A query is counted whose answers differ, so that one of them has no second opinion.
    alone = {judged.query_id for judged, said in judgements.items() if len(said) == 1}
    answers = Counter(judged.query_id for judged in judgements)
    report.other_answers = sum(answers[query_id] > 1 for query_id in alone)
    return report


def wrong_overall(annotation: Annotation, annotator: str) -> WrongOverall | None:
    """Return an overall score that is not the mean of its parts; None if it is, or if there is none."""
    parts, stated = list(annotation.get(SCORES, {}).values()), annotation.get(OVERALL)
    if not parts or stated is None or abs(stated - fmean(parts)) <= MEAN_TOLERANCE + 1e-9:
        return None
    return WrongOverall(annotation["annotation_id"], annotator, stated, fmean(parts))


def _measure_spans(report: AgreementReport, people: Annotators, file_of: Callable[[str], str]) -> None:
    queries: list[Hashable] = []
    values: list[float] = []
    for query_id, said in people.spans.items():
        if len(said) < 2:
            continue
        marks = marks_of(said, file_of)
        for place, value in span_agreement(marks).items():
            queries.append(query_id)
            values.append(value)
            if place is not None and value < 1.0:
                spans = {name: list(map(list, marked.get(place, []))) for name, marked in marks.items()}
                report.disagreements.append(Disagreement(query_id, f"{SPANS} in {place}", 1 - value, spans))
    if values:
        interval = mean_interval(np.array(values), clusters=shared_or_none(queries), bounds=(0.0, 1.0))
        report.figures.append(Figure(SPANS, JACCARD, fmean(values), interval, len(values)))


def _measure_ratings(
    report: AgreementReport, people: Annotators, orders: Mapping[str, Sequence[str]]
) -> None:
    aspects = _by_name(people, RATINGS)
    for aspect in orders:
        if aspect not in aspects:
            rated = ", ".join(sorted(aspects)) or "none"
            raise DataError("order", f"no aspect {aspect!r:.80} was rated.", fix=f"There are: {rated[:300]}.")
    for aspect, ratings in aspects.items():
        about = f"{RATINGS}.{aspect}"
        order = _rating_order(aspect, ratings, orders)
        statistics = [*_KAPPAS, "krippendorff_alpha_ordinal"] if order else [*_KAPPAS]
        _add_figures(report, about, ratings, people.names, statistics, order or ())
        for judged, said in ratings.items():
            _add_disagreement(report, judged, about, _distance(list(said.values()), order), said)


def _rating_order(aspect: str, ratings: Ratings, orders: Mapping[str, Sequence[str]]) -> Sequence[str] | None:
    """Return the ratings of an aspect from the worst to the best, if their order is stated or known."""
    used = {rating for said in ratings.values() for rating in said.values()}
    if aspect not in orders:
        return known_order(used)
    missing = sorted(used - set(orders[aspect]))
    if missing:
        raise DataError(
            f"order of {aspect:.80}",
            f"the rating {missing[0]!r:.80} is missing.",
            fix="List every rating that was given, from the worst to the best.",
        )
    return orders[aspect]


def _measure_scores(report: AgreementReport, people: Annotators) -> None:
    scores = {f"{SCORES}.{name}": ratings for name, ratings in _by_name(people, SCORES).items()}
    overall = {
        judged: {name: one[OVERALL] for name, one in said.items() if one.get(OVERALL) is not None}
        for judged, said in people.judgements.items()
    }
    if any(overall.values()):
        scores[OVERALL] = overall
    for about, ratings in scores.items():
        _add_figures(report, about, ratings, people.names, ["krippendorff_alpha_interval"], ())
        for judged, said in ratings.items():
            if said:
                _add_disagreement(report, judged, about, max(said.values()) - min(said.values()), said)


def _by_name(people: Annotators, part: str) -> dict[str, Ratings]:
    """Return the ratings of each aspect, or the scores of each name."""
    values: dict[str, Ratings] = {}
    for judged, said in people.judgements.items():
        for annotator, annotation in said.items():
            for name, value in (annotation.get(part) or {}).items():
                values.setdefault(name, {}).setdefault(judged, {})[annotator] = value
    return values


def _add_figures(
    report: AgreementReport,
    about: str,
    ratings: Ratings,
    names: Sequence[str],
    statistics: Iterable[Statistic],
    order: Sequence[str],
) -> None:
    by_several = {judged: said for judged, said in ratings.items() if len(said) > 1}
    raters = [name for name in names if any(name in said for said in by_several.values())]
    table = [[said.get(name) for name in raters] for said in by_several.values()]
    clusters = shared_or_none([judged.query_id for judged in by_several])
    for statistic in statistics:
        if not table:
            report.figures.append(Figure(about, statistic, None, None, 0, "no item was rated by two people"))
            continue
        # Scores are numbers already, and np.array makes NaN of None. Words are numbered by their order.
        is_score = statistic == "krippendorff_alpha_interval"
        numbers = np.array(table, dtype=np.float64) if is_score else numbered(table, order)[0]
        estimate = agreement(numbers, statistic, clusters=clusters)
        value: float | None = estimate.value
        reason = ""
        if not math.isfinite(estimate.value):
            value = None
            reason = "all ratings are the same" if estimate.items else "no item was rated by all of them"
        report.figures.append(Figure(about, statistic, value, estimate.interval, estimate.items, reason))


def _distance(ratings: list[str], order: Sequence[str] | None) -> float:
    """Return how much of the scale lies between the ratings; without an order, the share of unequal pairs."""
    if len(set(ratings)) < 2:
        return 0.0
    if order is None:
        return fmean(float(one != other) for one, other in combinations(ratings, 2))
    # 1 is the distance from one end of the scale to the other.
    places = [order.index(rating) for rating in ratings]
    return (max(places) - min(places)) / (len(order) - 1)


def _add_disagreement(
    report: AgreementReport, judged: Judged, about: str, distance: float, said: Said
) -> None:
    if distance > 0:
        report.disagreements.append(Disagreement(judged.query_id, about, distance, said, judged.answer))


# The order of ratings: words that people commonly rate with, from the worst to the best.

# Words in one string mean the same degree.
_SCALES = tuple(
    {word: degree for degree, words in enumerate(scale) for word in words.split()}
    for scale in (
        (
            "very_poor terrible",
            "poor bad",
            "fair average acceptable adequate",
            "good",
            "very_good",
            "excellent",
        ),
        ("none", "very_low", "low", "medium moderate", "high", "very_high"),
        ("no", "partial partly partially", "yes"),
        ("strongly_disagree", "disagree", "neutral", "agree", "strongly_agree"),
    )
)
# fully_correct, mostly_correct, ...: a degree and a common noun; incorrect is read as not_correct.
_DEGREES = {
    word: degree
    for degree, words in enumerate(
        (
            "not",
            "poorly barely",
            "partially partly somewhat",
            "moderately adequately",
            "mostly largely",
            "well",
            "fully completely entirely",
        )
    )
    for word in words.split()
}
_WITH_DEGREE = re.compile(rf"({'|'.join(sorted(_DEGREES, key=len, reverse=True))})_(.+)", re.DOTALL)
_NEGATED = re.compile(r"(?:in|un)(.+)", re.DOTALL)


def known_order(ratings: Collection[str]) -> list[str] | None:
    """Return the ratings from the worst to the best; None if their order is not known.

    >>> known_order({"fully_correct", "incorrect", "mostly_correct"})
    ['incorrect', 'mostly_correct', 'fully_correct']
    >>> known_order({"good", "blue"}) is None
    True
    """
    if all(re.fullmatch(r"-?[0-9]{1,9}(\.[0-9]{1,9})?", rating) for rating in ratings):
        return _sorted_by({rating: float(rating) for rating in ratings})
    words = {rating: re.sub(r"[\s-]+", "_", rating.strip().lower()) for rating in ratings}
    for scale in _SCALES:
        if all(word in scale for word in words.values()):
            return _sorted_by({rating: scale[word] for rating, word in words.items()})
    degrees = _degrees(words)
    return None if degrees is None else _sorted_by(degrees)


def _sorted_by(places: Mapping[str, float]) -> list[str] | None:
    """Return the ratings in the order of their places; None if two have the same place."""
    return sorted(places, key=places.__getitem__) if len(set(places.values())) == len(places) else None


def _degrees(words: Mapping[str, str]) -> dict[str, float] | None:
    """Return the degree in each rating, if all have the same noun; None if one has none."""
    matches = {rating: _WITH_DEGREE.fullmatch(word) for rating, word in words.items()}
    nouns = {match[2] for match in matches.values() if match}
    degrees: dict[str, float] = {}
    for rating, match in matches.items():
        negated = _NEGATED.fullmatch(words[rating])
        if match:
            degrees[rating] = _DEGREES[match[1]]
        elif negated and negated[1] in nouns:
            degrees[rating] = _DEGREES["not"]
        else:
            return None
    return degrees if len(nouns) == 1 else None
