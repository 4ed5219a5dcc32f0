"""Score outputs: compute every metric of a plan, chunk by chunk, in this process or by workers."""

from __future__ import annotations

import gc
import math
import os
import platform
import re
import warnings
from array import array
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ..errors import PlanError, WorkerLostError
from .calls.executor import failed_attempts, is_from_cache
from .calls.resources import ApiUsage
from .metrics_base import Metric, SampleMetric
from .plan import EvaluationPlan
from .scores import Batch, Scores
from .types import (
    EvaluationSample,
    MetricResult,
    SystemOutputs,
    TargetCategory,
    is_time,
    names_documents,
)

if TYPE_CHECKING:
    from .calls.executor import Executor

# A chunk is sent to a worker as it is. It returns the scores, a few numbers per sample and no texts. What
# workers cannot do is done in this process, so that workers never make a run fail.

Pair = tuple[EvaluationSample, SystemOutputs]
Chunk = list[Pair]
ScoredChunk = tuple[Batch, dict[str, Scores]]

# The same for all executors, so that they score the same batches. Small enough for a message, large enough
# that the fixed cost of a batch does not matter.
SIZE = 500
WORTH_SENDING = 0.1  # seconds of scoring a chunk here; sending a faster one to a worker takes longer
_LOADING = 10  # the first chunk may take this many times as long: it loads what it needs
LEAST_EARLY, MOST_EARLY = 8, 128  # scored chunks that may wait for an earlier one, with their texts


def scored_chunks(
    pairs: Iterable[Pair],
    metrics: Sequence[SampleMetric],
    *,
    size: int = SIZE,
    executor: Executor | None = None,
) -> Generator[ScoredChunk, None, None]:
    """Yield every chunk with the scores of all metrics, in the order of the pairs.

    An executor with workers (`for_scoring`) scores chunks there, once a chunk has taken long enough. Metrics
    that call a model are always scored here: their pace is limited in one place.
    """
    rest = iter(pairs)
    chunks = iter(lambda: _taken(rest, size), [])
    workers = scoring_executor(executor)
    away = [metric for metric in metrics if not metric.asks_a_model]
    if workers is not None and away:
        yield from _until_one_is_slow(chunks, metrics, {metric.name for metric in away})
        yield from _from_workers(chunks, metrics, ScoreChunk(away), workers)
    yield from _from_here(chunks, metrics)


def scoring_executor(executor: Executor | None) -> Executor | None:
    """Return the executor for chunks; None if it makes its calls in this process."""
    for_scoring: Callable[[], Executor | None] | None = getattr(executor, "for_scoring", None)
    return None if for_scoring is None else for_scoring()


class ScoreChunk:
    """Scores a chunk by its metrics. An object, so that it can be sent to workers."""

    def __init__(self, metrics: Sequence[SampleMetric]) -> None:
        self.metrics = metrics

    def __call__(self, chunk: Chunk) -> dict[str, Scores]:
        batch = _batch(chunk)
        return {metric.name: metric.score_batch(batch) for metric in self.metrics}


def _from_here(chunks: Iterator[Chunk], metrics: Sequence[SampleMetric]) -> Iterator[ScoredChunk]:
    for batch in map(_batch, chunks):
        yield _completed(batch, metrics, {})
        del batch  # before the next one is read: texts may be large


def _until_one_is_slow(
    chunks: Iterator[Chunk], metrics: Sequence[SampleMetric], away: set[str]
) -> Iterator[ScoredChunk]:
    """Score the first chunks here, up to one that is slow enough for workers."""
    allowed = WORTH_SENDING * _LOADING
    for batch in map(_batch, chunks):
        clock = perf_counter()
        known = {metric.name: metric.score_batch(batch) for metric in metrics if metric.name in away}
        seconds = perf_counter() - clock
        yield _completed(batch, metrics, known)
        del batch, known
        if seconds >= allowed:
            return
        allowed = WORTH_SENDING


def _from_workers(
    chunks: Iterator[Chunk], metrics: Sequence[SampleMetric], call: ScoreChunk, executor: Executor
) -> Iterator[ScoredChunk]:
    """Have workers score the chunks; if they cannot, score the ones that were taken until then."""
    taken: dict[int, Chunk] = {}
    early: dict[int, dict[str, Scores]] = {}
    place = 0  # of the next chunk to yield
    most_early = min(max(LEAST_EARLY, 2 * getattr(executor, "concurrency", 1)), MOST_EARLY)

    def sent() -> Iterator[Chunk]:
        for number, chunk in enumerate(chunks):
            taken[number] = chunk
            yield chunk

    def next_one() -> ScoredChunk:
        nonlocal place
        place += 1
        return _completed(_batch(taken.pop(place - 1)), metrics, early.pop(place - 1, {}))

    results: Any = executor.map(call, sent())
    with closing(results):
        try:
            for number, result in results:
                if number not in taken:
                    continue  # it was scored here in the meantime
                if isinstance(result, BaseException) and not isinstance(result, WorkerLostError):
                    _say_why_here(result)
                    break
                # A worker may have died for lack of memory: its chunk is tried here.
                early[number] = {} if isinstance(result, BaseException) else result
                # A chunk that too many others wait for is scored here: they hold their texts in memory.
                while place in early or len(early) > most_early:
                    yield next_one()
        except PlanError as error:
            _say_why_here(error)
    while place in taken:
        yield next_one()


def _say_why_here(error: BaseException) -> None:
    # If the metric is wrong, it raises its own error here too.
    text = " ".join(str(error).split())[:300]
    warnings.warn(f"Scored here, because the workers cannot: {type(error).__name__}: {text}", stacklevel=4)


def _completed(
    batch: Batch, metrics: Sequence[SampleMetric], known: Mapping[str, Scores]
) -> tuple[Batch, dict[str, Scores]]:
    """Return a batch with all scores in the order of the plan, and compute those that are missing."""
    return batch, {m.name: known[m.name] if m.name in known else m.score_batch(batch) for m in metrics}


def _batch(chunk: Chunk) -> Batch:
    return Batch([sample for sample, _ in chunk], [output for _, output in chunk])


def _taken(pairs: Iterator[Pair], size: int) -> Chunk:
    """Return the next pairs. Garbage collection is off: it would scan many objects, and none is garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return list(islice(pairs, size))
    finally:
        if was_enabled:
            gc.enable()


_RETRIEVAL = (TargetCategory.RETRIEVAL_RELEVANCE, TargetCategory.RETRIEVAL_ACCURACY)
OnChunk = Callable[[Batch, Mapping[str, Scores]], None]


def score_outputs(
    plan: EvaluationPlan,
    samples: list[EvaluationSample],
    outputs: list[SystemOutputs],
    *,
    seed: int = 0,
    executor: Executor | None = None,
) -> list[MetricResult]:
    """Compute every metric of a plan on outputs, by workers if the executor has some."""
    plan = measurable(plan, outputs)
    if scoring_executor(executor) is not None:
        pairs = zip(samples, outputs, strict=True)
        return score_in_chunks(plan, pairs, lambda batch, scores: None, seed=seed, executor=executor)
    results = []
    batch = Batch(samples, outputs)
    watches = Watches(plan.metrics)
    watches.look(batch)
    for metric in plan.metrics:
        if isinstance(metric, SampleMetric):
            results.append(metric.summarise(metric.score_batch(batch), seed=seed))
        else:
            results.append(_with_failures(metric.compute(samples, outputs), outputs))
    return watches.noted(results)


class SuspectValueWarning(UserWarning):
    """A value is likely not what it seems: ids that never match, scores that contradict the ranks."""


class Watches:
    """The watches of a plan's metrics; those that several metrics name look once."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._of_metric = {m.name: m.watch for m in metrics if isinstance(m, SampleMetric) and m.watch}
        self._watches = {watch: watch() for watch in dict.fromkeys(self._of_metric.values())}

    def look(self, batch: Batch) -> None:
        for watch in self._watches.values():
            watch.look(batch)

    def noted(self, results: list[MetricResult]) -> list[MetricResult]:
        """Warn of what was noted, and add it to the results that it concerns."""
        notes = {kind: watch.notes() for kind, watch in self._watches.items()}
        for note in [note for several in notes.values() for note in several]:
            warnings.warn(note, SuspectValueWarning, stacklevel=4)
        for result in results:
            watch = self._of_metric.get(result.name)
            if watch is not None and notes[watch]:
                result.details["notes"] = notes[watch]
        return results


def measurable(plan: EvaluationPlan, outputs: Iterable[SystemOutputs]) -> EvaluationPlan:
    """Return the plan for these outputs: if none of them names documents, what needs these is not measured.

    One is enough: a system must not gain by leaving an empty list out.
    """
    if not any(map(_needs_documents, plan.metrics)):
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
            if isinstance(metric, SampleMetric) and _needs_documents(metric)
            else metric
            for metric in plan.metrics
        ]
    )


def _needs_documents(metric: Metric) -> bool:
    return metric.target in _RETRIEVAL or getattr(metric, "reads_documents", False)


def _with_failures(result: MetricResult, outputs: Sequence[SystemOutputs]) -> MetricResult:
    """Return the result of a foreign metric with the number of failures, which the table shows."""
    failed = sum(output.error is not None for output in outputs)
    return replace(result, details={"num_total": len(outputs), "num_failed": failed, **result.details})


def score_in_chunks(
    plan: EvaluationPlan,
    pairs: Iterable[tuple[EvaluationSample, SystemOutputs]],
    on_chunk: OnChunk,
    *,
    seed: int = 0,
    size: int = SIZE,
    executor: Executor | None = None,
) -> list[MetricResult]:
    """Do the same chunk by chunk: the texts of a chunk are freed after `on_chunk`, the scores are kept.

    With processes or ray the chunks are scored by their workers. The results, and the arguments of
    `on_chunk`, are the same to the last bit.

    A metric that scores several samples at once (`whole_batch`), or one that is not a SampleMetric, needs all
    samples. Then there is one chunk, scored in this process.
    """
    metrics = [m for m in plan.metrics if isinstance(m, SampleMetric) and not m.whole_batch]
    if len(metrics) < len(plan.metrics):
        everything = list(pairs)
        batch = _batch(everything)
        results = score_outputs(plan, list(batch.samples), list(batch.outputs), seed=seed)
        on_chunk(batch, {result.name: Scores.of(result.scores) for result in results if result.scores})
        return results
    pieces: dict[str, list[Scores]] = {metric.name: [] for metric in metrics}
    watches = Watches(metrics)
    chunks = scored_chunks(pairs, metrics, size=size, executor=executor)
    with closing(chunks):  # so that no worker is left behind
        for batch, scores in chunks:
            watches.look(batch)
            on_chunk(batch, scores)
            for name, piece in scores.items():
                pieces[name].append(piece)
            del batch, scores  # before the next chunk is read: texts may be large
    results = []
    first: Scores | None = None
    for metric in metrics:
        joined = Scores.joined(pieces.pop(metric.name))
        first = first or joined
        # All metrics share the lists: each takes 8 MB for a million samples.
        joined.sample_ids, joined.clusters = first.sample_ids, first.clusters
        results.append(metric.summarise(joined, seed=seed))
    return watches.noted(results)


@dataclass
class Tally:
    """Counts over the outputs of a run: failures, times, usage, attempts."""

    total: int = 0
    failures: Counter[tuple[str, str]] = field(default_factory=Counter)
    # An array: a list of a million numbers takes four times as much memory.
    seconds: array[float] = field(default_factory=lambda: array("d"))
    usage: ApiUsage = field(default_factory=ApiUsage)
    failed_attempts: Counter[str] = field(default_factory=Counter)  # by kind, of all samples
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
        """Return whether a failed call was retried."""
        return self.recovered > 0 or self.failed_attempts.total() > self.failed


def new_evaluation_id(system_name: str, dataset_name: str, started: datetime) -> str:
    """Return an id that sorts by time within a system and is a safe file name."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", f"{system_name}-{dataset_name}").strip("-").lower()[:60]
    # Milliseconds: scripts start several runs within a second, and ids must differ.
    return f"{words or 'run'}-{started.strftime('%Y%m%d-%H%M%S-%f')[:-3]}"


def now() -> datetime:
    """Return the time, with its zone."""
    return datetime.now(UTC)


def utc_text(time: datetime) -> str:
    """Return a time as the results format has it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def environment() -> dict[str, object]:
    """Return what the numbers may depend on, without host or user names."""
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
