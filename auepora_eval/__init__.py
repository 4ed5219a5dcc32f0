"""auepora_eval: evaluation of retrieval-augmented generation.

    import auepora_eval as ae

    run = ae.evaluate(my_rag, "questions.jsonl", metrics="recall@5,mrr,token_f1", top_k=5)
    print(run)

Names are imported when they are first used, so `import auepora_eval` loads none of them. `__init__.pyi` has
the same names for editors and type checkers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .core.hooks import METRIC_MODULES, RUN_ACTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__version__ = "0.1.0"
_PUBLIC = {
    ".api": "compare evaluate gate load_run score score_rankings",
    ".comparison.compare": "Comparison compare_runs",
    ".comparison.power": "power_from_numbers power_from_runs",
    ".calls.executors": "AsyncExecutor SerialExecutor ThreadExecutor",
    ".calls.policy": "CallPolicy",
    ".calls.processes": "ProcessExecutor",
    ".calls.ray": "RayExecutor",
    ".core.dataset": "EvaluationDataset InMemoryDataset",
    ".core.metrics_base": "METRICS Metric SampleMetric metric parse_metric parse_metrics skip",
    ".core.plan": "EvaluationPlan",
    ".core.rag_interface": (
        "Answerer Generator RAGSystem RAGSystemProtocol Retriever SimpleRAGSystem answerer_of as_system"
    ),
    ".core.runner": "AueporaEvaluator",
    ".core.table": "Table",
    ".core.types": (
        "Document EvaluationRun EvaluationSample MetricResult Response RetrievedDocument "
        "SampleScore SystemOutputs TargetCategory"
    ),
    ".core.verdict": "Verdict",
    ".errors": (
        "AccessRefusedError ArgumentError AueporaError BadOutputError CallError DataError EvaluationError "
        "MissingDependencyError NotFoundError PlanError RunStoppedError ScoringError StorageError "
        "TooManyFailuresError UnknownNameError WorkerLostError"
    ),
    ".decide.gate_report": "GateReport",
    ".interventions.diagnosis": "diagnose",
    ".interventions.probe": "Probe probe",
    ".interventions.report": "Diagnosis",
    ".interventions.stress": "Robustness robustness",
    ".io.documents": "DataCompressor",
    ".io.jsonl": "load_jsonl_dataset save_jsonl_dataset",
    ".io.loader": "EvaluationDatasetLoader load_dataset save_dataset",
    ".io.schema": "DataFormatValidator",
    ".metrics.additional": "MeanLatency",
    ".metrics.citations.evaluator": "CitationEvaluator",
    ".metrics.generation_text": "RougeLAnswer",
    ".metrics.parse": "default_metrics",
    ".metrics.retrieval_basic": "RecallAtK",
    ".quality.checks": "DataQualityChecker",
    ".reporting.tables": "results_to_dict results_to_markdown",
    ".store.storage": "EvaluationResultsStorage",
}
_HOME = {name: module for module, names in _PUBLIC.items() for name in names.split()}
__all__ = sorted(_HOME)  # noqa: PLE0605 - the names are in the table above


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'auepora_eval' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name], __name__), name)
    globals()[name] = value  # so that the next use is not looked up
    return value


def _save(run: Any, folder: Path, force: bool) -> Path:
    from .store.storage import EvaluationResultsStorage

    return EvaluationResultsStorage(folder).save_run(run, force=force)


def _to_html(run: Any, path: Path, force: bool) -> None:
    from .pages.one_file import write_run

    write_run(run, path, force=force)


_VIEWED: list[Any] = []  # folders of run.view(), which are removed when Python ends


def _view(run: Any, flags: Sequence[str]) -> None:
    from tempfile import TemporaryDirectory

    from .cli.main import main

    folder = TemporaryDirectory()
    _VIEWED.append(folder)
    main(["view", str(run.save(folder.name)), "--out", folder.name, *flags])


# A run is stored and shown by packages that `core` must not know.
RUN_ACTIONS.update(save=_save, to_html=_to_html, view=_view)

# Metrics are looked for by name in this order: the usual ones first, since each module takes some
# milliseconds to import, and those that ask a judge last.
_METRICS = """
retrieval_basic additional generation_text answers.grounding robustness.rejection retrieval.ranking
retrieval.spans retrieval.text retrieval.diversity answers.translation answers.relevance answers.numbers
answers.contradiction answers.diversity robustness.counterfactual robustness.noise citations.places
citations.claims labels
"""
_JUDGED = "faithfulness answers citations relevance claims nuggets rubric"
METRIC_MODULES += [f"{__name__}.metrics.{module}" for module in _METRICS.split()]
METRIC_MODULES += [f"{__name__}.judges.metrics.{module}" for module in _JUDGED.split()]


# What `dir(auepora_eval)` and completion show: the names that people need. docs/api.md has all of them.
_FIRST = "compare diagnose evaluate gate load_dataset load_run metric robustness save_dataset score".split()


def __dir__() -> list[str]:
    return [*_FIRST, "__version__"]
