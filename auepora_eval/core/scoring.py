"""Outputs to results: every metric of a plan, at once or chunk by chunk."""

from __future__ import annotations

import math
import os
import platform
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from .batch import Batch
from .call_records import failed_attempts, is_from_cache
from .dataset import checked_samples
from .fingerprint import dataset_fingerprint
from .metrics_base import SampleMetric
from .plan import EvaluationPlan
from .resources import ApiUsage
from .score_store import ScoreStore, StoredScores
from .scored_chunks import SIZE, scored_chunks, scoring_executor
from .scores import Scores
from .types import (
    EvaluationRun,
    EvaluationSample,
    MetricResult,
    SystemOutputs,
    TargetCategory,
    is_time,
    names_documents,
)

if TYPE_CHECKING:
    from .executor import Executor

_RETRIEVAL = (TargetCategory.RETRIEVAL_RELEVANCE, TargetCategory.RETRIEVAL_ACCURACY)
OnChunk = Callable[[Batch, Mapping[str, Scores]], None]


def scored_run(
    plan: EvaluationPlan,
    samples: list[EvaluationSample],
    outputs: list[SystemOutputs],
    *,
    system_name: str,
    dataset_name: str,
    top_k: int = 5,
    seed: int = 0,
    evaluation_id: str | None = None,
    configuration: dict[str, Any] | None = None,
    snapshot: dict[str, Any] | None = None,
    validated: bool = False,
    executor: Executor | None = None,
) -> EvaluationRun:
    """A run from outputs that are there already: no system is called."""
    if not validated:
        plan.validate_dataset(checked_samples(dataset_name, samples))
    started, clock = now(), perf_counter()
    return EvaluationRun(
        evaluation_id=evaluation_id or new_evaluation_id(system_name, dataset_name, started),
        system_name=system_name,
        dataset_name=dataset_name,
        dataset_fingerprint=dataset_fingerprint(samples),
        results=score_outputs(plan, samples, outputs, seed=seed, executor=executor),
        samples=samples,
        outputs=outputs,
        top_k=top_k,
        seed=seed,
        started_at=utc_text(started),
        seconds=perf_counter() - clock,
        environment=environment(),
        configuration=configuration or {},
        snapshot=snapshot or {},
    )


def score_outputs(
    plan: EvaluationPlan,
    samples: list[EvaluationSample],
    outputs: list[SystemOutputs],
    *,
    seed: int = 0,
    executor: Executor | None = None,
) -> list[MetricResult]:
    """Compute every metric of a plan on outputs that are there already; on workers, if the executor can."""
    plan = measurable(plan, outputs)
    if scoring_executor(executor) is not None:
        pairs = zip(samples, outputs, strict=True)
        return score_in_chunks(plan, pairs, lambda batch, scores: None, seed=seed, executor=executor)
    results = []
    batch = Batch(samples, outputs)
    for metric in plan.metrics:
        if isinstance(metric, SampleMetric):
            results.append(metric.summarise(metric.score_batch(batch), seed=seed))
        else:
            results.append(_with_failures(metric.compute(samples, outputs), outputs))
    return results


def measurable(plan: EvaluationPlan, outputs: Iterable[SystemOutputs]) -> EvaluationPlan:
    """The plan for these outputs: where none of them names documents, retrieval is not measured.

    One that does is enough: a system that leaves an empty list out must not be better for it.
    """
    if not any(metric.target in _RETRIEVAL for metric in plan.metrics):
        return plan
    is_answered = False
    for output in outputs:
        if output.error is None:
            if names_documents(output):
                return plan
            is_answered = True
    if not is_answered:
        return plan
    return EvaluationPlan(
        [
            metric.unmeasured("no output names documents")
            if isinstance(metric, SampleMetric) and metric.target in _RETRIEVAL
            else metric
            for metric in plan.metrics
        ]
    )


def _with_failures(result: MetricResult, outputs: Sequence[SystemOutputs]) -> MetricResult:
    """A result of somebody else's metric, which knows nothing of failures: the table must tell of them."""
    failed = sum(output.error is not None for output in outputs)
    return replace(result, details={"num_total": len(outputs), "num_failed": failed, **result.details})


def score_in_chunks(
    plan: EvaluationPlan,
    pairs: Iterable[tuple[EvaluationSample, SystemOutputs]],
    on_chunk: OnChunk,
    *,
    seed: int = 0,
    size: int = SIZE,
    folder: Path | None = None,
    executor: Executor | None = None,
) -> list[MetricResult]:
    """As `score_outputs`, for more samples than fit into memory: texts are let go, scores are kept.

    Many scores are kept in a temporary file in `folder`, and read again when somebody looks at them.

    An executor whose calls are made elsewhere (processes, ray) has the chunks scored there; what is returned,
    and what `on_chunk` is told, is the same to the last bit.

    A metric that looks at several samples at once (`whole_batch`), or one that is not a SampleMetric, needs
    them all: then there is one chunk, scored here.
    """
    metrics = [m for m in plan.metrics if isinstance(m, SampleMetric) and not m.whole_batch]
    if len(metrics) < len(plan.metrics):
        everything = list(pairs)
        batch = Batch([sample for sample, _ in everything], [output for _, output in everything])
        results = score_outputs(plan, list(batch.samples), list(batch.outputs), seed=seed)
        on_chunk(batch, {result.name: Scores.of(result.scores) for result in results if result.scores})
        return results
    kept = ScoreStore(folder)
    chunks = scored_chunks(pairs, metrics, size=size, executor=executor)
    with closing(chunks):  # whatever happens, no worker is left
        for batch, scores in chunks:
            on_chunk(batch, scores)
            kept.add(scores)
            del batch, scores  # before the next one is read: texts may be large
    return [_summary(metric, kept.scores(metric.name), seed) for metric in metrics]


def _summary(metric: SampleMetric, scores: StoredScores, seed: int) -> MetricResult:
    result = metric.summarise(scores, seed=seed)
    scores.let_go()  # one metric at a time is in memory
    return result


@dataclass
class Tally:
    """What a report says about the outputs of a run as a whole, counted as they go by."""

    total: int = 0
    failures: Counter[tuple[str, str]] = field(default_factory=Counter)
    seconds: array[float] = field(default_factory=lambda: array("d"))
    usage: ApiUsage = field(default_factory=ApiUsage)
    failed_attempts: Counter[str] = field(default_factory=Counter)  # by their kind, of whatever samples
    recovered: int = 0  # samples that were answered after a failed attempt

    def add(self, outputs: Iterable[SystemOutputs]) -> Tally:
        """Count further outputs."""
        for output in outputs:
            self.total += 1
            self.usage.add(output)
            self._add_attempts(output)
            if output.error is not None:
                self.failures[output.error.type, output.error.message] += 1
            elif is_time(seconds := output.timings.get("end_to_end", math.nan)):
                self.seconds.append(seconds)
        return self

    def _add_attempts(self, output: SystemOutputs) -> None:
        if not output.extra or is_from_cache(output):
            return  # an answer from a cache was made by another run
        kinds = [record["kind"] for record in failed_attempts(output.extra)]
        self.failed_attempts.update(kinds)
        self.recovered += bool(kinds) and output.error is None

    @property
    def failed(self) -> int:
        return self.failures.total()

    @property
    def tried_again(self) -> bool:
        """Whether a call was made again after it had failed."""
        return self.recovered > 0 or self.failed_attempts.total() > self.failed


def new_evaluation_id(system_name: str, dataset_name: str, started: datetime) -> str:
    """An id that sorts by time within a system and is a safe file name."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", f"{system_name}-{dataset_name}").strip("-").lower()[:60]
    return f"{words or 'run'}-{started.strftime('%Y%m%d-%H%M%S-%f')[:-3]}"


def now() -> datetime:
    """The time, with its zone."""
    return datetime.now(UTC)


def utc_text(time: datetime) -> str:
    """A time as the results format writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def environment() -> dict[str, Any]:
    """What the numbers may depend on; no host or user names."""
    import psutil

    versions = {}
    for package in ("auepora-eval", "numpy", "scipy", "msgspec", "rapidfuzz"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "cpu_count": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "packages": versions,
    }
