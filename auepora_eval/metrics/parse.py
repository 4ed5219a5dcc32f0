"""Names to metrics, and the metrics that fit a dataset."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from ..core.metrics_base import Metric, parse_metric, parse_metrics
from ..core.scores import has_field, is_unanswerable
from ..core.types import TRUE_LABEL, EvaluationSample
from ..errors import AueporaError

__all__ = ["default_metrics", "meaning", "parse_metric", "parse_metrics"]

_OF_LABELS = (
    *("label_accuracy", "label_macro_f1", "label_precision[hallucination]", "label_recall[hallucination]"),
    *("label_recall[contradiction]", "p95_latency"),
)
_SHORT = 5  # words: an answer can be expected to contain a reference of that length


def default_metrics(samples: Sequence[EvaluationSample], *, top_k: int = 5) -> list[Metric]:
    """Return the metrics of a run that names none, by the fields that the samples have.

    Two of retrieval, one of correctness, one of faithfulness, two of refusals where questions are labelled
    as unanswerable, and the time. A system that is run on labelled answers is a detector: it returns a label,
    and the metrics are of labels.
    """
    if any(has_field(sample, f"labels.{TRUE_LABEL}") for sample in samples):
        return [parse_metric(name) for name in _OF_LABELS]
    names = [f"recall@{top_k}", f"ndcg@{top_k}", _correctness(samples), "grounding_overlap"]
    # Whether a question can be answered is a label with two spellings, so it is not in `requires`.
    if any(is_unanswerable(sample) for sample in samples):
        names += ["rejection_rate", "over_refusal_rate"]
    metrics = [parse_metric(name) for name in [*names, "p95_latency"]]
    fields = {name for metric in metrics for name in metric.requires}
    present = {name for name in fields if any(has_field(sample, name) for sample in samples)}
    return [metric for metric in metrics if present.issuperset(metric.requires)]


def _correctness(samples: Sequence[EvaluationSample]) -> str:
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
