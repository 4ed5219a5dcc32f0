"""Samples with their outputs, chunk after chunk, each with its scores: made here, or by workers.

A chunk goes to a worker as it is; what comes back are its scores, a few numbers a sample and no texts.
Whatever a worker cannot do is done here, so that a run never ends worse for having workers.
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ..errors import PlanError, WorkerLostError
from .batch import Batch
from .metrics_base import SampleMetric
from .scores import Scores
from .types import EvaluationSample, SystemOutputs

if TYPE_CHECKING:
    from .executor import Executor

Pair = tuple[EvaluationSample, SystemOutputs]
Chunk = list[Pair]
ScoredChunk = tuple[Batch, dict[str, Scores]]

# The same for everybody, so that every executor scores the same batches. Small enough to be a message, large
# enough that what a batch costs by itself does not count.
SIZE = 500
WORTH_SENDING = 0.1  # seconds that a chunk takes here: below, what is saved is lost on the way
_LOADING = 10  # times as long may the first one take: it loads what it needs
LEAST_EARLY, MOST_EARLY = 8, 128  # scored chunks that may wait for one before them, with their texts


def scored_chunks(
    pairs: Iterable[Pair],
    metrics: Sequence[SampleMetric],
    *,
    size: int = SIZE,
    executor: Executor | None = None,
) -> Generator[ScoredChunk, None, None]:
    """Every chunk with the scores of all metrics, in the order of the pairs.

    An executor that can (`for_scoring`) has chunks scored by its workers, once one was seen to take long
    enough. Metrics that ask a model are scored here all the same: their pace is kept in one place.
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
    """The executor as it is to be used for chunks; None if its calls are made in this process."""
    made: Any = getattr(executor, "for_scoring", None)
    found: Executor | None = None if made is None else made()
    return found


class ScoreChunk:
    """Scores a chunk by its metrics. An object, so that it can be sent to where the work is done."""

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
    """The first chunks, up to one that took so long that workers are worth what they cost."""
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
    """The chunks as workers score them; if they cannot, the ones that were taken until that is known."""
    taken: dict[int, Chunk] = {}
    early: dict[int, dict[str, Scores]] = {}
    place = 0  # of the chunk whose turn it is
    most_early = min(max(LEAST_EARLY, 2 * getattr(executor, "concurrency", 1)), MOST_EARLY)

    def given() -> Iterator[Chunk]:
        for number, chunk in enumerate(chunks):
            taken[number] = chunk
            yield chunk

    def next_one() -> ScoredChunk:
        nonlocal place
        place += 1
        return _completed(_batch(taken.pop(place - 1)), metrics, early.pop(place - 1, {}))

    results: Any = executor.map(call, given())
    with closing(results):
        try:
            for number, result in results:
                if number not in taken:
                    continue  # it came too late
                if isinstance(result, BaseException) and not isinstance(result, WorkerLostError):
                    _say_why_here(result)
                    break
                # What kills its worker may be the worker's fault (memory); it is tried here.
                early[number] = {} if isinstance(result, BaseException) else result
                # One that all others wait for is scored here: what waits must not become the whole dataset.
                while place in early or len(early) > most_early:
                    yield next_one()
        except PlanError as error:
            _say_why_here(error)
    while place in taken:
        yield next_one()


def _say_why_here(error: BaseException) -> None:
    # If it is the metric that is wrong, it will be so here too, and the error is then the metric's own.
    text = " ".join(str(error).split())[:300]
    warnings.warn(f"scored here, because the workers cannot: {type(error).__name__}: {text}", stacklevel=4)


def _completed(
    batch: Batch, metrics: Sequence[SampleMetric], known: Mapping[str, Scores]
) -> tuple[Batch, dict[str, Scores]]:
    """A batch with all scores in the plan's order: those that are known, and the others."""
    return batch, {m.name: known[m.name] if m.name in known else m.score_batch(batch) for m in metrics}


def _batch(chunk: Chunk) -> Batch:
    return Batch([sample for sample, _ in chunk], [output for _, output in chunk])


def _taken(pairs: Iterator[Pair], size: int) -> Chunk:
    """The next pairs. They are many objects, and none is garbage: Python need not look for it meanwhile."""
    looking = gc.isenabled()
    gc.disable()
    try:
        return list(islice(pairs, size))
    finally:
        if looking:
            gc.enable()
