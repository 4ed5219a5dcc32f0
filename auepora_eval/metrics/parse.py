"""Names to metrics, and the metrics that fit a dataset."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence

from ..core.metrics_base import PRESETS, Metric, parse_metric, parse_metrics
from ..core.scores import has_field, is_unanswerable
from ..core.types import TRUE_LABEL, EvaluationSample
from ..errors import AueporaError

__all__ = ["correctness_metric", "default_metrics", "meaning", "parse_metric", "parse_metrics"]

_OF_LABELS = (
    *("label_accuracy", "label_macro_f1", "label_precision[hallucination]", "label_recall[hallucination]"),
    # The last two are of a RAG system that answers the questions of a label set.
    *("label_recall[contradiction]", "grounding_overlap", "p95_latency"),
)
# Names for several metrics. The block of seed 003: retrieval, citations, answer quality and performance.
PRESETS["seed003"] = (
    *("hit@1", "hit@3", "hit@5", "ndcg@5", "mrr", "map@5"),
    *("citation_span_exact", "citation_span_accuracy", "citation_span_perfect", "citation_span_good"),
    *("citation_completeness", "citation_correctness"),
    *("citation_factual_consistency", "citation_hallucination_rate", "p95_latency"),
)
_SHORT = 5  # words: an answer can be expected to contain a reference of that length


def default_metrics(
    samples: Sequence[EvaluationSample],
    *,
    top_k: int = 5,
    prices: Mapping[str, float | None] | None = None,
    timed: bool = True,
) -> list[Metric]:
    """Return the metrics of a run that names none, by the fields that the samples have.

    Two of retrieval, one of correctness, one of faithfulness, two of citations where there is gold for them,
    two of refusals where questions are labelled as unanswerable, the time if answers have one (`timed`), and
    the cost if prices are given.
    A system that is run on labelled answers is a detector, which returns a label, and the metrics are of
    labels. Of a system that returns answers instead, these are not measured.
    """
    if any(has_field(sample, f"labels.{TRUE_LABEL}") for sample in samples):
        return [parse_metric(name) for name in _OF_LABELS]
    names = [f"recall@{top_k}", f"ndcg@{top_k}", correctness_metric(samples), "grounding_overlap"]
    names += ["citation_recall", "citation_precision"]
    # Whether a question can be answered is a label with two spellings, so it is not in `requires`.
    if any(is_unanswerable(sample) for sample in samples):
        names += ["rejection_rate", "over_refusal_rate"]
    names += ["p95_latency"] * timed
    metrics = [parse_metric(name) for name in names]
    if prices := {name: price for name, price in (prices or {}).items() if price is not None}:
        from .additional import Cost  # with all metrics of time, which a plan of others does not need

        metrics.append(Cost(**prices))
    fields = {name for metric in metrics for name in metric.requires}
    present = {name for name in fields if any(has_field(sample, name) for sample in samples)}
    return [metric for metric in metrics if present.issuperset(metric.requires)]


def correctness_metric(samples: Sequence[EvaluationSample]) -> str:
    """Return the metric of correctness that fits the first reference: a sentence is hardly ever repeated."""
    first = next((sample.reference_answer for sample in samples if sample.reference_answer), None)
    if first is None or "required" in {*(first.structured or ()), *first.metadata}:
        return "contains_answer"
    return "contains_answer" if len(first.text.split()) <= _SHORT else "token_f1"


def meaning(name: str) -> str:
    """Return what a metric measures, as the first line of its description; "" if it is not installed."""
    try:
        metric = parse_metric(name)
    except AueporaError:
        return ""
    return inspect.cleandoc(type(metric).__doc__ or "").partition("\n")[0]
