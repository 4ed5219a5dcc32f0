"""The retrieval metrics written for one sample at a time: the oracle of those that score a whole batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from auepora_eval.core.metrics_base import skip
from auepora_eval.core.types import EvaluationSample, SampleScore, SystemOutputs
from auepora_eval.errors import ScoringError
from auepora_eval.metrics.parse import parse_metric
from auepora_eval.metrics.retrieval.ranking import judgements
from auepora_eval.metrics.retrieval_basic import (
    gold_grades,
    in_order,
    is_relevant,
    no_relevant,
)

Gains = Sequence[float]  # the grade at each rank, 0 for a miss; or the gold grades, best first


def discounted_gain(gains: Sequence[float]) -> float:
    """Return the sum of the gains, each divided by log2(rank + 1)."""
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def plain_score(name: str, sample: EvaluationSample, output: SystemOutputs) -> SampleScore:
    """Return the score of one sample, or the reason why it has none."""
    metric = parse_metric(name)
    base = name.partition("@")[0].partition("[")[0]
    level, k = getattr(metric, "level", None), getattr(metric, "k", None)
    try:
        if base == "bpref":
            return _bpref(sample, output, level)
        grades = {doc: grade for doc, grade in gold_grades(sample).items() if is_relevant(grade, level)}
        if not grades:
            return skip(no_relevant(level))
        gains = ranked_gains(grades, output)[:k]
        ideal = sorted(grades.values(), reverse=True)
        if base == "rbp":
            return SampleScore(_rbp(gains, ideal, metric.p))  # type: ignore[attr-defined]
        return SampleScore(float(PLAIN[base](gains, ideal, k)))
    except ScoringError as error:
        return SampleScore(None, str(error), failed=True)


def ranked_gains(grades: Mapping[str, float], output: SystemOutputs) -> list[float]:
    """Return the grade at each rank: 0 for a miss and for a document that came before."""
    left = dict(grades)
    return [left.pop(doc_id, 0.0) for doc_id in in_order(output)]


def _hits(gains: Gains) -> int:
    return sum(gain > 0 for gain in gains)


def _mrr(gains: Gains, ideal: Gains, k: int | None) -> float:
    return next((1 / rank for rank, gain in enumerate(gains, start=1) if gain > 0), 0.0)


def _map(gains: Gains, ideal: Gains, k: int | None) -> float:
    hits, total = 0, 0.0
    for rank, gain in enumerate(gains, start=1):
        if gain > 0:
            hits += 1
            total += hits / rank
    return total / len(ideal)


def _ndcg(gains: Gains, ideal: Gains, k: int | None) -> float:
    return discounted_gain(gains) / discounted_gain(ideal[:k])


def _ndcg_exp(gains: Gains, ideal: Gains, k: int | None) -> float:
    best = discounted_gain([_exponential(grade) for grade in ideal[:k]])
    return discounted_gain([_exponential(grade) for grade in gains]) / best


def _exponential(grade: float) -> float:
    return math.expm1(grade * math.log(2)) if grade < 1024 else math.inf


def _rbp(gains: Gains, ideal: Gains, p: float) -> float:
    scale = max(1.0, ideal[0])
    return (1 - p) * sum(gain / scale * p**place for place, gain in enumerate(gains))


def _bpref(sample: EvaluationSample, output: SystemOutputs, level: float | None) -> SampleScore:
    relevant = {doc.doc_id for doc in sample.relevant_docs or ()}
    judged = {
        doc_id: is_relevant(grade, level)
        for doc_id, grade in judgements(sample).items()
        if grade >= 0 and (doc_id in relevant or not is_relevant(grade, level))
    }
    total = sum(judged.values())
    if not total:
        return skip(no_relevant(level))
    others = len(judged) - total
    value, above = 0.0, 0
    for doc_id in in_order(output):
        if judged.get(doc_id) is False:
            above += 1
        elif judged.get(doc_id):
            value += 1 - min(above, total) / min(others, total) if above else 1
        judged.pop(doc_id, None)
    return SampleScore(value / total)


PLAIN: dict[str, Callable[[Gains, Gains, int | None], float]] = {
    "recall": lambda gains, ideal, k: _hits(gains) / len(ideal),
    "precision": lambda gains, ideal, k: _hits(gains) / (k or 1),
    "f1": lambda gains, ideal, k: 2 * _hits(gains) / ((k or 0) + len(ideal)),
    "hit": lambda gains, ideal, k: float(_hits(gains) > 0),
    "mrr": _mrr,
    "map": _map,
    "ndcg": _ndcg,
    "ndcg_exp": _ndcg_exp,
    "r_precision": lambda gains, ideal, k: _hits(gains[: len(ideal)]) / len(ideal),
}
