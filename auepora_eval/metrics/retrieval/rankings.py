"""Score rankings that are dicts: grades and scores of documents by query, as pytrec_eval takes them.

The metrics are those of samples and outputs. None of these is made unless a metric looks at one, so a million
documents cost little more than the look at each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, repeat
from typing import TypeVar, overload

import numpy as np

from ...core.metrics_base import Metric, SampleMetric
from ...core.scores import Batch, Note
from ...core.scoring import Watches
from ...core.types import Document, EvaluationSample, MetricResult, RankedIds, Response, SystemOutputs
from ...errors import ArgumentError
from ...stats.arrays import Array, Indices
from ..retrieval_basic import JudgedHits, are_numbers, judged_hits

Scored = Mapping[str, float]  # the grade or the score of each document
Item = TypeVar("Item")


def rankings_results(
    qrels: Mapping[str, Scored], run: Mapping[str, Scored], metrics: Sequence[Metric]
) -> dict[str, MetricResult]:
    """Return the result of each metric. A query of the qrels that the run lacks has no documents."""
    batch = Rankings(qrels, run)
    results = {}
    for metric in metrics:
        if not isinstance(metric, SampleMetric) or set(metric.requires) - {"relevant_docs"}:
            raise ArgumentError(f"{metric.name} needs more than judgements and rankings: use score() for it")
        results[metric.name] = metric.summarise(metric.score_batch(batch))
    if not len(batch.once(judged_hits).sample):  # ids that never match are worth a longer look
        watches = Watches(metrics)
        watches.look(batch)
        watches.noted(list(results.values()))
    return results


class Rankings(Batch):
    """The queries that are judged, with their rankings: samples and outputs are made on demand."""

    def __init__(self, qrels: Mapping[str, Scored], run: Mapping[str, Scored]) -> None:
        self._names = list(qrels)
        grades = list(qrels.values())
        self._skipped = [place for place, each in enumerate(grades) if not each]
        nothing: Scored = {}
        scored = [run.get(name, nothing) for name in self._names]
        ranked, hits = _hits(grades, scored)
        super().__init__(
            _OnDemand(len(grades), lambda n: _sample(self._names[n], grades[n])),
            _OnDemand(len(grades), lambda n: _output(list(ranked[n]), scored[n])),
        )
        if hits is not None:  # otherwise samples have notes about their grades
            self._results[(judged_hits,)] = hits

    def unscorable(self, requires: tuple[str, ...], *, scores_failures: bool = False) -> dict[int, Note]:
        return dict.fromkeys(self._skipped, Note("the sample has no relevant_docs"))

    def sample_ids(self) -> list[str]:
        return self._names

    def clusters(self) -> None:
        return None


def _hits(
    judgements: Sequence[Scored], scored: Sequence[Scored]
) -> tuple[Sequence[Scored], JudgedHits | None]:
    """Return the lists in their order, and the judged documents in them; None if a grade is not a number."""
    lengths = np.fromiter(map(len, scored), np.intp, len(scored))
    scores = np.fromiter(chain.from_iterable(each.values() for each in scored), np.float64, lengths.sum())
    starts = np.cumsum(lengths) - lengths
    ranked = list(scored)
    for n in _unordered(scores, starts + lengths):
        ranked[n] = _falling(scored[n])
        scores[starts[n] : starts[n] + lengths[n]] = list(ranked[n].values())
    gold = [grade for grades in judgements for grade in grades.values()]
    if not are_numbers(gold):
        return ranked, None
    gold_sample = np.repeat(
        np.arange(len(ranked)), np.fromiter(map(len, judgements), np.intp, len(judgements))
    )
    gold_grade = np.array(gold, np.float64)
    # A list has few judged documents: their places are found by their scores, which fall.
    scores_of_gold = chain.from_iterable(
        map(each.get, grades, repeat(math.nan)) for grades, each in zip(judgements, ranked, strict=True)
    )
    score = np.fromiter(scores_of_gold, np.float64, len(gold))
    found = np.flatnonzero(~np.isnan(score))
    sample = gold_sample[found]
    place = _places(scores, starts[sample], lengths[sample], score[found])
    order = np.lexsort((place, sample))
    in_order = (sample[order], place[order], gold_grade[found][order])
    return ranked, JudgedHits(len(ranked), *in_order, gold_sample, gold_grade, {})


def _unordered(scores: Array, ends: Indices) -> list[int]:
    """Return the lists whose scores do not fall from one document to the next: nearly all do."""
    with np.errstate(over="ignore"):
        singles = scores.astype(np.float32)  # as trec_eval compares them (`core.types.in_single`)
    falls = np.append(singles[:-1] > singles[1:], True)[: len(scores)]
    falls[ends[ends > 0] - 1] = True  # the last of a list is followed by the first of the next
    falls &= ~np.isnan(scores)
    return sorted(set(np.searchsorted(ends, np.flatnonzero(~falls), side="right").tolist()))


def _falling(scored: Scored) -> Scored:
    """Return the documents in their order; numbers that fall take the place of the scores."""
    ids = RankedIds.by_score(list(scored), list(scored.values())).doc_ids
    return dict(zip(ids, range(len(ids), 0, -1), strict=True))


def _places(scores: Array, starts: Indices, lengths: Indices, wanted: Array) -> Indices:
    """Return the place of each wanted score in its list, whose scores fall: many binary searches at once."""
    low, high = np.zeros_like(starts), lengths - 1
    for _ in range(int(lengths.max(initial=0)).bit_length()):
        middle = (low + high) // 2
        is_behind = scores[starts + middle] > wanted
        low = np.where(is_behind, middle + 1, low)
        high = np.where(is_behind, high, middle)
    return low


def _sample(name: str, grades: Scored) -> EvaluationSample:
    docs = [Document(doc_id, "", {"relevance": grade}) for doc_id, grade in grades.items()]
    return EvaluationSample(name, name, relevant_docs=docs)


def _output(doc_ids: list[str], scored: Scored) -> SystemOutputs:
    return SystemOutputs(RankedIds(doc_ids, [scored[doc_id] for doc_id in doc_ids]), Response(""))


class _OnDemand(Sequence[Item]):
    """A list whose items are made when they are asked for."""

    def __init__(self, size: int, make: Callable[[int], Item]) -> None:
        self._places, self._make = range(size), make

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, place: int) -> Item: ...
    @overload
    def __getitem__(self, place: slice) -> list[Item]: ...
    def __getitem__(self, place: int | slice) -> Item | list[Item]:
        chosen = self._places[place]
        return self._make(chosen) if isinstance(chosen, int) else list(map(self._make, chosen))
