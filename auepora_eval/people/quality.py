"""How the metrics of a run agree with the quality scores that people gave to its answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from ..core.types import EvaluationRun
from ..errors import DataError
from .annotators import OVERALL, SCORES, Annotators, Judged, by_name

_FEWEST = 4  # answers: the standard error of a correlation has n - 3 in it
_Z = 1.959964  # of a 95% interval


@dataclass(frozen=True)
class QualityCorrelation:
    """Spearman's correlation of a metric with a quality score, over the answers that have both."""

    metric: str
    quality: str
    correlation: float | None  # None if one of them is constant, or there are too few answers
    interval: tuple[float, float] | None
    answers: int


def quality_correlations(run: EvaluationRun, people: Annotators) -> list[QualityCorrelation]:
    """Return the correlation of every metric with every quality score, of the answers that were judged.

    Several people's scores of one answer are averaged. A score of another answer to the question is left out.
    """
    answers = {
        Judged(sample.sample_id, output.response.text.strip())
        for sample, output in zip(run.samples, run.outputs, strict=True)
        if output.error is None
    }
    given: dict[str, dict[str, float]] = {}
    for judged, said in people.judgements.items():
        if Judged(judged.query_id, judged.answer.strip()) in answers:
            overall = {name: one[OVERALL] for name, one in said.items() if one.get(OVERALL) is not None}
            for quality, by_person in {**by_name(said, SCORES), OVERALL: overall}.items():
                if by_person:
                    given.setdefault(quality, {})[judged.query_id] = fmean(by_person.values())
    if not given:
        what = "there are no quality scores of the answers of this run."
        raise DataError(run.evaluation_id, what, fix="Is the answer_text that of another run?")
    return [
        _correlation(result.name, {one.sample_id: one.value for one in result.scores}, quality, scores)
        for quality, scores in given.items()
        for result in run.results
        if result.scores
    ]


def _correlation(
    metric: str, values: Mapping[str, float | None], quality: str, scores: Mapping[str, float]
) -> QualityCorrelation:
    pairs = [(value, scores[name]) for name, value in values.items() if value is not None and name in scores]
    columns = list(zip(*pairs, strict=True))
    if len(pairs) < _FEWEST or any(len(set(column)) == 1 for column in columns):
        return QualityCorrelation(metric, quality, None, None, len(pairs))
    from scipy.stats import spearmanr

    of_metric, of_people = columns
    rho = float(spearmanr(list(of_metric), list(of_people)).statistic)
    return QualityCorrelation(metric, quality, rho, _interval(rho, len(pairs)), len(pairs))


def _interval(rho: float, n: int) -> tuple[float, float]:
    """Return the interval of Bonett and Wright (2000) for a correlation of ranks."""
    # A perfect correlation has no finite transform, and no certainty either.
    middle, reach = math.atanh(max(-0.999, min(rho, 0.999))), _Z * math.sqrt((1 + rho * rho / 2) / (n - 3))
    return math.tanh(middle - reach), math.tanh(middle + reach)
