"""Names to metrics, and the metrics that fit a dataset."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.metrics_base import Metric, parse_metric, parse_metrics
from ..core.scores import has_field
from ..core.types import TRUE_LABEL, EvaluationSample

__all__ = ["default_metrics", "parse_metric", "parse_metrics"]

_OF_LABELS = (
    *("label_accuracy", "label_macro_f1", "label_balanced_accuracy", "label_kappa"),
    *("label_precision[hallucination]", "label_recall[hallucination]", "label_recall[contradiction]"),
    *("mean_latency", "p95_latency"),
)


def default_metrics(samples: Sequence[EvaluationSample], *, top_k: int = 5) -> list[Metric]:
    """Return the usual metrics for the fields that the samples have: gold documents, reference answers.

    A system that is run on labelled answers is a detector: it returns a label, and the metrics are of labels.
    """
    if any(has_field(sample, f"labels.{TRUE_LABEL}") for sample in samples):
        return [parse_metric(name) for name in _OF_LABELS]
    names = [f"recall@{top_k}", f"precision@{top_k}", f"hit@{top_k}", "mrr", "map", f"ndcg@{top_k}"]
    names += ["exact_match", "token_f1", "rougeL_answer", "bleu", "mean_latency", "p95_latency"]
    metrics = [parse_metric(name) for name in names]
    return [m for m in metrics if all(any(has_field(s, name) for s in samples) for name in m.requires)]
