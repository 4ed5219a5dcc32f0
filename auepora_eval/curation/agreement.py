"""How far do annotators agree, and where not? Spans, ratings and scores of several people on one dataset.

    spans             mean character Jaccard, query by query and file by file
    aspect ratings    Cohen's and Fleiss' kappa, Krippendorff's alpha; ordinal too if the order is known
    quality scores    Krippendorff's alpha, interval

Each stands with a 95% interval over the queries. What only one person annotated says nothing of agreement
and is left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import fmean
from typing import Any

from ..errors import DataError
from ..io.ground_truth import Annotation
from ..stats.agreement import Statistic, agreement, numbered
from ..stats.intervals import Interval, mean_interval
from .annotators import Annotators, Judged
from .marked_spans import marks_of, span_agreement
from .rating_scales import known_order

RECALIBRATE_BELOW = 0.80  # of the spans: annotators who agree less do not follow the same guideline
SPAN_TARGET = 0.85
RELIABLE, TENTATIVE = 0.80, 2 / 3  # Krippendorff's bounds for alpha
MEAN_TOLERANCE = 0.005  # an overall score that was rounded to two digits is still the mean of its parts

SPANS, RATINGS, SCORES, OVERALL = "spans", "aspect_ratings", "quality_scores", "overall_score"
_KAPPAS: tuple[Statistic, ...] = ("cohen_kappa", "fleiss_kappa", "krippendorff_alpha_nominal")


@dataclass(frozen=True)
class Figure:
    """One statistic of agreement. `value` is None, and `reason` says why, if it cannot be told."""

    about: str
    statistic: str
    value: float | None
    interval: Interval | None
    items: int
    reason: str = ""


@dataclass(frozen=True)
class Disagreement:
    """Something that was not seen alike: how far apart (0 to 1), and who said what."""

    query_id: str
    about: str
    distance: float
    said: dict[str, Any]
    answer: str | None = None


@dataclass(frozen=True)
class WrongOverall:
    """An overall score that is not the mean of the scores that it sums up."""

    annotation_id: str
    annotator: str
    stated: float
    mean: float


@dataclass
class AgreementReport:
    """The figures, the disagreements with the worst first, and what is odd about the annotations."""

    about: dict[str, str]
    annotators: dict[str, int]
    figures: list[Figure] = field(default_factory=list)
    disagreements: list[Disagreement] = field(default_factory=list)
    wrong_overall: list[WrongOverall] = field(default_factory=list)
    other_answers: int = 0  # queries of which different people judged different answers

    def figure(self, about: str, statistic: str) -> Figure:
        """One figure by its name; KeyError if it is not there."""
        for figure in self.figures:
            if (figure.about, figure.statistic) == (about, statistic):
                return figure
        raise KeyError(f"no {statistic!r} of {about!r}")


def annotator_agreement(
    people: Annotators,
    *,
    orders: Mapping[str, Sequence[str]] | None = None,
    file_of: Callable[[str], str] = str,
    seed: int = 0,
) -> AgreementReport:
    """Measure how far people agree.

    `orders` tells the ratings of an aspect from the worst to the best, where their words do not. `file_of`
    tells which document a file name means.
    """
    counts = dict.fromkeys(people.names, 0)
    for group in (people.spans, people.judgements):
        for said in group.values():
            for name in said:
                counts[name] += 1
    report = AgreementReport(dict(people.about), counts)
    _measure_spans(report, people, file_of, seed)
    _measure_ratings(report, people, orders or {}, seed)
    _measure_scores(report, people, seed)
    report.disagreements.sort(key=lambda each: (-each.distance, each.query_id, each.about))
    report.wrong_overall = [
        wrong
        for said in people.judgements.values()
        for name, annotation in said.items()
        if (wrong := wrong_overall(annotation, name)) is not None
    ]
    alone = {judged.query_id for judged, said in people.judgements.items() if len(said) == 1}
    answers = Counter(judged.query_id for judged in people.judgements)
    report.other_answers = sum(answers[query_id] > 1 for query_id in alone)
    return report


def wrong_overall(annotation: Annotation, annotator: str = "") -> WrongOverall | None:
    """What is wrong with an overall score; None if it is the mean of its parts, or there is none."""
    parts, stated = list(annotation.get(SCORES, {}).values()), annotation.get(OVERALL)
    if not parts or stated is None or abs(stated - fmean(parts)) <= MEAN_TOLERANCE + 1e-9:
        return None
    name = annotator or str(annotation.get("annotator_id", ""))
    return WrongOverall(annotation["annotation_id"], name, stated, fmean(parts))


def in_words(figure: Figure) -> str:
    """What a figure of the spans or an alpha means, and what to do; "" for the others."""
    value = figure.value
    if value is None:
        return ""
    if figure.about == SPANS:
        if value < RECALIBRATE_BELOW:
            return f"below {RECALIBRATE_BELOW:.2f}: talk the disagreements through and recalibrate"
        verdict = "meets" if value >= SPAN_TARGET else "is acceptable, but below"
        return f"{verdict} the target of {SPAN_TARGET:.2f}{_but_for_the_interval(figure, RECALIBRATE_BELOW)}"
    if not figure.statistic.startswith("krippendorff_alpha"):
        return ""
    if value >= RELIABLE:
        return f"reliable{_but_for_the_interval(figure, RELIABLE)}"
    return "good for tentative conclusions" if value >= TENTATIVE else "too low to rely on"


def _but_for_the_interval(figure: Figure, bound: float) -> str:
    if figure.interval is None:
        return ", though no interval can be told"
    if figure.interval.low >= bound:
        return ""
    return f", though the interval reaches below {bound:.2f}"


def _measure_spans(
    report: AgreementReport, people: Annotators, file_of: Callable[[str], str], seed: int
) -> None:
    import numpy as np

    queries: list[str] = []
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
    if not values:
        return
    shared = queries if len(set(queries)) < len(queries) else None
    interval = mean_interval(np.array(values), clusters=shared, bounds=(0.0, 1.0), seed=seed)
    report.figures.append(Figure(SPANS, "character_jaccard", fmean(values), interval, len(values)))


def _measure_ratings(
    report: AgreementReport, people: Annotators, orders: Mapping[str, Sequence[str]], seed: int
) -> None:
    aspects = _named(people, RATINGS)
    for aspect in orders:
        if aspect not in aspects:
            rated = ", ".join(sorted(aspects)) or "none"
            raise DataError("order", f"no aspect {aspect!r:.80} was rated.", fix=f"There are: {rated[:300]}.")
    for aspect, rows in aspects.items():
        order = rating_order(aspect, rows, orders)
        statistics = [*_KAPPAS, "krippendorff_alpha_ordinal"] if order else [*_KAPPAS]
        _add_figures(report, f"{RATINGS}.{aspect}", rows, people.names, statistics, order or (), seed)
        for judged, said in rows.items():
            distance = _distance_of_ratings(list(said.values()), order)
            _note(report, judged, f"{RATINGS}.{aspect}", distance, said)


def rating_order(
    aspect: str, rows: Mapping[Judged, Mapping[str, Any]], orders: Mapping[str, Sequence[str]]
) -> list[str] | None:
    """The ratings of an aspect from the worst to the best: as told, or as their words tell."""
    used = {rating for said in rows.values() for rating in said.values()}
    if aspect not in orders:
        return known_order(used)
    missing = sorted(used - set(orders[aspect]))
    if missing:
        raise DataError(
            f"order of {aspect:.80}",
            f"the rating {missing[0]!r:.80} has no place in it.",
            fix="Name every rating that was given, from the worst to the best.",
        )
    return list(orders[aspect])


def _measure_scores(report: AgreementReport, people: Annotators, seed: int) -> None:
    scores = {f"{SCORES}.{name}": rows for name, rows in _named(people, SCORES).items()}
    overall = {
        judged: {name: one[OVERALL] for name, one in said.items() if one.get(OVERALL) is not None}
        for judged, said in people.judgements.items()
    }
    if any(overall.values()):
        scores[OVERALL] = overall
    for about, rows in scores.items():
        _add_figures(report, about, rows, people.names, ["krippendorff_alpha_interval"], (), seed)
        for judged, said in rows.items():
            if len(said) > 1:
                _note(report, judged, about, max(said.values()) - min(said.values()), said)


def _named(people: Annotators, part: str) -> dict[str, dict[Judged, dict[str, Any]]]:
    """The values of each aspect or score: by name, by answer, by annotator."""
    found: dict[str, dict[Judged, dict[str, Any]]] = {}
    for judged, said in people.judgements.items():
        for annotator, annotation in said.items():
            for name, value in (annotation.get(part) or {}).items():
                found.setdefault(name, {}).setdefault(judged, {})[annotator] = value
    return found


def _add_figures(
    report: AgreementReport,
    about: str,
    rows: Mapping[Judged, Mapping[str, Any]],
    names: Sequence[str],
    statistics: Iterable[Statistic],
    order: Sequence[str],
    seed: int,
) -> None:
    kept = {judged: said for judged, said in rows.items() if len(said) > 1}
    raters = [name for name in names if any(name in said for said in kept.values())]
    table = [[said.get(name) for name in raters] for said in kept.values()]
    queries = [judged.query_id for judged in kept]
    clusters = queries if len(set(queries)) < len(queries) else None
    for statistic in statistics:
        if not table:
            report.figures.append(Figure(about, statistic, None, None, 0, "nothing was rated by two people"))
            continue
        ratings = _as_numbers(table, statistic, order)
        found = agreement(ratings, statistic, clusters=clusters, seed=seed)
        value = found.value if math.isfinite(found.value) else None
        reason = "" if value is not None else _why_not(found.items)
        report.figures.append(Figure(about, statistic, value, found.interval, found.items, reason))


def _as_numbers(table: list[list[Any]], statistic: Statistic, order: Sequence[str]) -> Any:
    import numpy as np

    if statistic == "krippendorff_alpha_interval":
        return np.array([[math.nan if value is None else float(value) for value in row] for row in table])
    return numbered(table, order)[0]


def _why_not(items: int) -> str:
    return "everyone always says the same" if items else "nothing was rated by all of them"


def _distance_of_ratings(ratings: list[str], order: Sequence[str] | None) -> float:
    """By how much of the scale the ratings are apart; without an order, the share of pairs that differ."""
    if len(set(ratings)) < 2:
        return 0.0
    if order is None:
        return fmean(float(one != other) for one, other in combinations(ratings, 2))
    places = [order.index(rating) for rating in ratings]
    return (max(places) - min(places)) / (len(order) - 1)


def _note(
    report: AgreementReport, judged: Judged, about: str, distance: float, said: Mapping[str, Any]
) -> None:
    if distance > 0:
        report.disagreements.append(Disagreement(judged.query_id, about, distance, dict(said), judged.answer))
