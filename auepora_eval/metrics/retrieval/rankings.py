"""Score rankings that are dicts: grades and scores of documents by query, as pytrec_eval takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...core.metrics_base import Metric, SampleMetric
from ...core.scores import Batch
from ...core.types import Document, EvaluationSample, MetricResult, RankedIds, Response, SystemOutputs
from ...core.watches import Watches
from ...errors import ArgumentError

Scored = Mapping[str, float]  # the grade or the score of each document


def rankings_results(
    qrels: Mapping[str, Scored], run: Mapping[str, Scored], metrics: Sequence[Metric]
) -> dict[str, MetricResult]:
    """Return the result of each metric. A query of the qrels that the run lacks has no documents."""
    batch = Batch(
        [_sample(name, grades) for name, grades in qrels.items()],
        [_output(run.get(name, {})) for name in qrels],
    )
    results = {}
    for metric in metrics:
        if not isinstance(metric, SampleMetric) or set(metric.requires) - {"relevant_docs"}:
            raise ArgumentError(f"{metric.name} needs more than judgements and rankings: use score() for it")
        results[metric.name] = metric.summarise(metric.score_batch(batch))
    watches = Watches(metrics)
    watches.look(batch)
    watches.noted(list(results.values()))
    return results


def _sample(name: str, grades: Scored) -> EvaluationSample:
    docs = [Document(doc_id, "", {"relevance": grade}) for doc_id, grade in grades.items()]
    return EvaluationSample(name, name, relevant_docs=docs)


def _output(scored: Scored) -> SystemOutputs:
    return SystemOutputs(RankedIds.by_score(list(scored), list(scored.values())), Response(""))
