"""auepora_eval: honest evaluation of retrieval-augmented generation.

    from auepora_eval import AueporaEvaluator, EvaluationPlan, load_dataset, parse_metrics

Names are imported when they are first used, so that `import auepora_eval` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .core.dataset import EvaluationDataset, InMemoryDataset
    from .core.metrics_base import Metric, SampleMetric
    from .core.plan import EvaluationPlan
    from .core.rag_interface import Generator, RAGSystem, Retriever, SimpleRAGSystem, as_system
    from .core.runner import AueporaEvaluator
    from .core.types import (
        Document,
        EvaluationRun,
        EvaluationSample,
        MetricResult,
        Response,
        RetrievedDocument,
        SystemOutputs,
        TargetCategory,
    )
    from .io.loader import load_dataset
    from .metrics.citations import CitationEvaluator
    from .metrics.parse import parse_metric, parse_metrics
    from .reporting.tables import results_to_dict, results_to_markdown
    from .runs.compare import compare_runs
    from .runs.gate import gate_run
    from .runs.power import power_from_numbers, power_from_runs
    from .runs.storage import EvaluationResultsStorage

_HOME = {
    "AueporaEvaluator": "core.runner",
    "CitationEvaluator": "metrics.citations",
    "Document": "core.types",
    "EvaluationDataset": "core.dataset",
    "EvaluationPlan": "core.plan",
    "EvaluationResultsStorage": "runs.storage",
    "EvaluationRun": "core.types",
    "EvaluationSample": "core.types",
    "Generator": "core.rag_interface",
    "InMemoryDataset": "core.dataset",
    "Metric": "core.metrics_base",
    "MetricResult": "core.types",
    "RAGSystem": "core.rag_interface",
    "Response": "core.types",
    "RetrievedDocument": "core.types",
    "Retriever": "core.rag_interface",
    "SampleMetric": "core.metrics_base",
    "SimpleRAGSystem": "core.rag_interface",
    "SystemOutputs": "core.types",
    "TargetCategory": "core.types",
    "as_system": "core.rag_interface",
    "compare_runs": "runs.compare",
    "gate_run": "runs.gate",
    "load_dataset": "io.loader",
    "parse_metric": "metrics.parse",
    "parse_metrics": "metrics.parse",
    "power_from_numbers": "runs.power",
    "power_from_runs": "runs.power",
    "results_to_dict": "reporting.tables",
    "results_to_markdown": "reporting.tables",
}

__all__ = [
    "AueporaEvaluator",
    "CitationEvaluator",
    "Document",
    "EvaluationDataset",
    "EvaluationPlan",
    "EvaluationResultsStorage",
    "EvaluationRun",
    "EvaluationSample",
    "Generator",
    "InMemoryDataset",
    "Metric",
    "MetricResult",
    "RAGSystem",
    "Response",
    "RetrievedDocument",
    "Retriever",
    "SampleMetric",
    "SimpleRAGSystem",
    "SystemOutputs",
    "TargetCategory",
    "as_system",
    "compare_runs",
    "gate_run",
    "load_dataset",
    "parse_metric",
    "parse_metrics",
    "power_from_numbers",
    "power_from_runs",
    "results_to_dict",
    "results_to_markdown",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("auepora-eval")
    if name not in _HOME:
        raise AttributeError(f"module 'auepora_eval' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
