"""Score outputs: compute every metric of a plan, chunk by chunk, and record the run."""

from __future__ import annotations

import math
import os
import platform
import re
import sys
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from time import perf_counter
from typing import Any

from ..errors import PlanError
from .dataset import EvaluationDataset, checked_samples, rare_collections
from .metrics_base import DOCUMENTS, Metric, SampleMetric
from .plan import EvaluationPlan, Survey
from .scores import Batch, Scores, as_columns, raise_fault
from .systems.resources import ApiUsage, failed_attempts, is_from_cache, usage_of
from .types import (
    EvaluationRun,
    EvaluationSample,
    Failure,
    MetricResult,
    SystemOutputs,
    is_time,
)
from .watches import Watches

Pair = tuple[EvaluationSample, SystemOutputs]

# Small enough that its texts fit into memory, large enough that the fixed cost of a batch does not matter.
SIZE = 500


OnChunk = Callable[[Batch, Mapping[str, Scores]], None]


def score_outputs(
    plan: EvaluationPlan, samples: list[EvaluationSample], outputs: list[SystemOutputs]
) -> list[MetricResult]:
    """Compute every metric of a plan on outputs that are in memory."""
    pairs = zip(samples, outputs, strict=True)
    return score_in_chunks(measurable(plan, outputs), pairs, lambda batch, scores: None)


def measurable(
    plan: EvaluationPlan, outputs: Iterable[SystemOutputs], *, with_documents: bool = False
) -> EvaluationPlan:
    """Return the plan for these outputs: if none of them names documents, what needs these is not measured.

    The same goes for answers. One is enough: a system must not gain by leaving an empty list or an empty
    answer out. `with_documents` says that some output is known to name documents.
    """
    scored = [one for one in plan.metrics if isinstance(one, SampleMetric) and not one.not_measured]
    needs = {metric.name: metric.output_needs for metric in scored}
    lacking = {need for each in needs.values() for need in each} - ({DOCUMENTS} if with_documents else set())
    is_answered = False
    for output in outputs if lacking else ():
        if output.error is None:
            is_answered = True
            lacking = {need for need in lacking if not need.is_met(output)}
            if not lacking:
                break
    if not lacking or not is_answered:
        return plan
    metrics: list[Metric] = []
    for metric in plan.metrics:
        reason = next((need.reason for need in needs.get(metric.name, ()) if need in lacking), None)
        metrics.append(metric.unmeasured(reason) if reason and isinstance(metric, SampleMetric) else metric)
    return EvaluationPlan(metrics)


def _computed(metric: Metric, batch: Batch) -> MetricResult:
    """Return the result of a user's own metric, with the failures; PlanError names the metric that fails."""
    try:
        result: object = metric.compute(list(batch.samples), list(batch.outputs))
    except Exception as error:  # noqa: BLE001 - named, and raised again
        raise_fault(metric, error)
    if not isinstance(result, MetricResult):
        what = f"the metric {metric.name!r} returned {type(result).__name__}, not a MetricResult"
        raise PlanError(f"{what}. Return MetricResult(name, target, value, details).")
    counts = {"num_total": len(batch), "num_failed": sum(one.error is not None for one in batch.outputs)}
    return replace(result, details={**counts, **result.details})


def score_in_chunks(
    plan: EvaluationPlan,
    pairs: Iterable[Pair],
    on_chunk: OnChunk,
    *,
    size: int = SIZE,
) -> list[MetricResult]:
    """Compute every metric chunk by chunk: texts are freed after `on_chunk`, scores are kept.

    A metric that scores several samples at once (`whole_batch`), or one that is not a SampleMetric, needs all
    samples: then there is one chunk.
    """
    can_be_cut = all(isinstance(one, SampleMetric) and not one.whole_batch for one in plan.metrics)
    pieces: dict[str, list[Scores]] = {metric.name: [] for metric in plan.metrics}
    foreign: dict[str, MetricResult] = {}
    watches = Watches(plan.metrics)
    with rare_collections():
        for batch in _batches(pairs, size if can_be_cut else None):
            scores = {}
            for metric in plan.metrics:
                if isinstance(metric, SampleMetric):
                    scores[metric.name] = metric.score_batch(batch)
                    continue
                result = foreign[metric.name] = _computed(metric, batch)
                if result.scores:
                    scores[metric.name] = as_columns(result.scores)
            watches.look(batch)
            on_chunk(batch, scores)
            for name, piece in scores.items():
                pieces[name].append(piece)
            del batch, scores  # before the next chunk is read: texts may be large
    results = []
    first: Scores | None = None
    for metric in plan.metrics:
        if not isinstance(metric, SampleMetric):
            results.append(foreign[metric.name])
            continue
        joined = Scores.joined(pieces.pop(metric.name))
        first = first or joined
        # All metrics share the lists: each takes 8 MB for a million samples.
        joined.sample_ids, joined.clusters = first.sample_ids, first.clusters
        results.append(metric.summarise(joined))
    return watches.noted(results)


def _batches(pairs: Iterable[Pair], size: int | None) -> Iterator[Batch]:
    """Yield batches of `size` pairs; one batch of all pairs, even if there are none, if `size` is None."""
    rest = iter(pairs)
    if size is None:
        yield Batch.of(list(rest))
    # No name is kept for a chunk: while the caller works, its texts would stay in memory.
    yield from map(Batch.of, iter(lambda: list(islice(rest, size)), []))


# One run while it is made. What differs between an evaluation in memory, one on the disk and the scoring of
# predictions is the record.


class RunRecord:
    """One run while it is made: here in memory only, as it is returned; on the disk in `store.record`.

    It is entered before the first call and left when the run is recorded, or when it failed.
    """

    names_documents: bool = False  # some output is known to have documents

    def __init__(
        self,
        dataset: EvaluationDataset,
        plan: EvaluationPlan,
        system_name: str,
        evaluation_id: str | None = None,
    ) -> None:
        started = now()
        self.dataset, self.started_at = dataset, utc_text(started)
        self.samples = checked_samples(dataset.name, dataset)
        self.survey = Survey.of(self.samples, plan)
        self.evaluation_id = evaluation_id or new_evaluation_id(system_name, dataset.name, started)
        self._outputs: dict[str, SystemOutputs] = {}

    def __enter__(self) -> RunRecord:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def missing(self) -> Iterable[EvaluationSample]:
        """Yield the samples that have no output yet."""
        return (sample for sample in self.samples if sample.sample_id not in self._outputs)

    def store(self, sample: EvaluationSample, output: SystemOutputs) -> None:
        """Store an output before it counts; called by the thread that received it."""

    def keep(self, sample: EvaluationSample, output: SystemOutputs) -> None:
        """Take an output that has arrived, and is stored by now."""
        self._outputs[sample.sample_id] = output

    def pairs(self) -> Iterator[tuple[EvaluationSample, SystemOutputs]]:
        """Yield each sample of the run with its output, in the order of the dataset."""
        lost = [sample.sample_id for sample in self.samples if sample.sample_id not in self._outputs]
        if lost:
            raise RuntimeError(f"the executor returned nothing for {len(lost)} samples, first {lost[0]!r}")
        return ((sample, self._outputs[sample.sample_id]) for sample in self.samples)

    def add(self, batch: Batch, scores: Mapping[str, Scores]) -> None:
        """Take the scores of further samples."""

    def fingerprint(self) -> str:
        """Return the fingerprint of the samples of the run."""
        return self.survey.sha256

    def finish(self, run: EvaluationRun) -> None:
        """Complete the run and give it its name."""
        run.samples = self.samples
        run.outputs = [output for _, output in self.pairs()]


def score_record(
    record: RunRecord,
    plan: EvaluationPlan,
    *,
    system_name: str,
    top_k: int,
    seed: int,
    configuration: Mapping[str, object],
    resource_usage: dict[str, Any] | None = None,
    clock: float | None = None,
) -> EvaluationRun:
    """Score the outputs of a record and return the run, which is then complete."""
    clock = perf_counter() if clock is None else clock
    outputs = (output for _, output in record.pairs())
    plan = measurable(plan, outputs, with_documents=record.names_documents)
    failed: dict[str, Failure] = {}
    size = 0

    def add(batch: Batch, scores: Mapping[str, Scores]) -> None:
        nonlocal size
        size += len(batch.samples)
        pairs = zip(batch.samples, batch.outputs, strict=True)
        for sample, output in pairs:
            if (error := output.error) is not None:
                # Equal texts are shared, so that a hundred thousand failures fit into memory.
                kind, message, where = map(sys.intern, (error.type, error.message, error.traceback))
                failed[sample.sample_id] = Failure(kind, message, error.seconds, where)
        record.add(batch, scores)

    results = score_in_chunks(plan, record.pairs(), add)
    run = EvaluationRun(
        evaluation_id=record.evaluation_id,
        system_name=system_name,
        dataset_name=record.dataset.name,
        dataset_fingerprint=record.fingerprint(),
        results=results,
        samples=[],
        outputs=[],
        top_k=top_k,
        seed=seed,
        started_at=record.started_at,
        seconds=perf_counter() - clock,
        environment=environment(),
        configuration=dict(configuration),
        resource_usage=resource_usage,
        snapshot=record.dataset.snapshot,
        sample_count=size,
        failed=failed,
    )
    record.finish(run)
    return run


@dataclass
class Tally:
    """Counts over the outputs of a run: failures, times, usage, attempts."""

    total: int = 0
    failures: Counter[tuple[str, str]] = field(default_factory=Counter)
    first_failure: Failure | None = None
    # An array: a list of a million numbers takes four times as much memory.
    seconds: array[float] = field(default_factory=lambda: array("d"))
    usage: ApiUsage = field(default_factory=ApiUsage)
    failed_attempts: Counter[str] = field(default_factory=Counter)  # by kind, of all samples
    recovered: int = 0  # samples that were answered after a failed attempt

    def add(self, outputs: Iterable[SystemOutputs]) -> Tally:
        """Count further outputs."""
        for output in outputs:
            self.total += 1
            self.usage.add(usage_of(output))
            if output.extra and not is_from_cache(output):  # an answer from a cache was made by another run
                kinds = [record["kind"] for record in failed_attempts(output.extra)]
                self.failed_attempts.update(kinds)
                self.recovered += bool(kinds) and output.error is None
            if output.error is not None:
                self.failures[output.error.type, output.error.message] += 1
                self.first_failure = self.first_failure or output.error
            elif is_time(seconds := output.timings.get("end_to_end", math.nan)):
                self.seconds.append(seconds)
        return self

    @property
    def failed(self) -> int:
        return self.failures.total()

    @property
    def tried_again(self) -> bool:
        """Return whether a failed call was retried."""
        return self.recovered > 0 or self.failed_attempts.total() > self.failed


def short_id(system_name: str) -> str:
    """Return the name of a system as a safe file name: my-rag."""
    return re.sub(r"[^A-Za-z0-9]+", "-", system_name).strip("-").lower()[:40] or "run"


def new_evaluation_id(system_name: str, dataset_name: str, started: datetime) -> str:
    """Return an id for a run in memory that differs from those of all others."""
    words = short_id(f"{system_name}-{dataset_name}")
    # Milliseconds: scripts start several runs within a second, and ids must differ.
    return f"{words}-{started.strftime('%Y%m%d-%H%M%S-%f')[:-3]}"


def now() -> datetime:
    """Return the time, with its zone."""
    return datetime.now(UTC)


def utc_text(time: datetime) -> str:
    """Return a time as the results format has it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def environment() -> dict[str, object]:
    """Return what the numbers may depend on, without host or user names."""
    packages = ("auepora_eval", "numpy", "scipy", "msgspec", "rapidfuzz")
    used = [name for name in packages if name in sys.modules]  # nothing depends on the others
    return {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "cpu_count": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9, 1),
        "packages": {name.replace("_", "-"): sys.modules[name].__version__ for name in used},
    }
