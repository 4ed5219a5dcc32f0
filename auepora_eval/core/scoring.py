"""Score outputs: compute every metric of a plan, chunk by chunk."""

from __future__ import annotations

import gc
import math
import os
import platform
import re
import warnings
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from typing import NamedTuple

from ..calls.resources import ApiUsage
from .metrics_base import Metric, SampleMetric, Watch
from .plan import EvaluationPlan
from .scores import Batch, Scores, as_columns
from .systems.call import failed_attempts, is_from_cache
from .types import (
    CONTEXTS_AS_RETRIEVED,
    EvaluationSample,
    Failure,
    MetricResult,
    SystemOutputs,
    TargetCategory,
    as_target,
    is_time,
    names_answer,
    names_documents,
)

Pair = tuple[EvaluationSample, SystemOutputs]
Chunk = list[Pair]

# Small enough that its texts fit into memory, large enough that the fixed cost of a batch does not matter.
SIZE = 500


def _batch(chunk: Chunk) -> Batch:
    return Batch([sample for sample, _ in chunk], [output for _, output in chunk])


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect garbage seldom: a chunk has many objects, and none is garbage before all of them are."""
    before = gc.get_threshold()
    gc.set_threshold(before[0] and max(before[0], 1_000_000), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


_RETRIEVAL = (TargetCategory.RETRIEVAL_RELEVANCE, TargetCategory.RETRIEVAL_ACCURACY)
_GENERATION = (
    TargetCategory.GENERATION_RELEVANCE,
    TargetCategory.GENERATION_FAITHFULNESS,
    TargetCategory.GENERATION_CORRECTNESS,
)
OnChunk = Callable[[Batch, Mapping[str, Scores]], None]


def score_outputs(
    plan: EvaluationPlan, samples: list[EvaluationSample], outputs: list[SystemOutputs]
) -> list[MetricResult]:
    """Compute every metric of a plan on outputs that are in memory."""
    pairs = zip(samples, outputs, strict=True)
    return score_in_chunks(measurable(plan, outputs), pairs, lambda batch, scores: None)


class SuspectValueWarning(UserWarning):
    """A value is likely not what it seems: ids that never match, scores that contradict the ranks."""


class Watches:
    """The watches of a plan's metrics; those that several metrics name look once."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._of_metric: dict[str, tuple[type[Watch], str]] = {}
        self._watches: dict[tuple[type[Watch], str], tuple[Watch, SampleMetric]] = {}
        for metric in metrics:
            if isinstance(metric, SampleMetric) and metric.watch is not None:
                # Metrics that compare documents in another way see other ids.
                key = self._of_metric[metric.name] = (metric.watch, metric.match)
                self._watches.setdefault(key, (metric.watch(), metric))
        self._answers = _Answers(metrics)
        self._contexts = _Contexts(metrics)

    def look(self, batch: Batch) -> None:
        self._answers.look(batch)
        self._contexts.look(batch)
        for watch, metric in self._watches.values():
            watch.look(metric.seen(batch))

    def noted(self, results: list[MetricResult]) -> list[MetricResult]:
        """Warn of what was noted, and add it to the results that it concerns."""
        notes = {kind: watch.notes() for kind, (watch, _) in self._watches.items()}
        of_contexts = self._contexts.notes()
        of_lists = [note for several in notes.values() for note in several]
        for note in [*of_lists, *self._answers.notes(), *of_contexts]:
            warnings.warn(note, SuspectValueWarning, stacklevel=5)
        for result in results:
            watch = self._of_metric.get(result.name)
            about = list(notes[watch]) if watch is not None else []
            about += of_contexts if result.name in self._contexts.names else ()
            if about:
                result.details["notes"] = [*result.notes, *about]
        return results


class _Answers:
    """Watches answers: a system that only retrieves has none, and metrics of answers score empty texts."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._names = [
            metric.name
            for metric in metrics
            if as_target(metric.target) in _GENERATION and not getattr(metric, "not_measured", "")
        ]
        self._is_called = self._is_answered = False

    def look(self, batch: Batch) -> None:
        if not self._names or self._is_answered:
            return
        texts = [output.response.text.strip() for output in batch.outputs if output.error is None]
        self._is_called = self._is_called or bool(texts)
        self._is_answered = any(texts)

    def notes(self) -> list[str]:
        if self._is_answered or not self._is_called:
            return []
        listed = ", ".join(self._names[:3]) + (", ..." if len(self._names) > 3 else "")
        fix = "If the system only retrieves, leave them out."
        return [f"No output has an answer, so these metrics score empty texts: {listed}. {fix}"]


class _Contexts:
    """Watches for documents that are the dataset's own contexts: no merit of the system finds them."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self.names = [
            metric.name
            for metric in metrics
            if as_target(metric.target) in (*_RETRIEVAL, TargetCategory.DIVERSITY)
            and "relevant_docs" in metric.required_fields()
        ]
        self._are_retrieved = False

    def look(self, batch: Batch) -> None:
        if self.names and not self._are_retrieved:
            self._are_retrieved = any(output.extra.get(CONTEXTS_AS_RETRIEVED) for output in batch.outputs)

    def notes(self) -> list[str]:
        if not self._are_retrieved:
            return []
        return [
            "The retrieved documents are the contexts of the dataset (--contexts-as-retrieved), and its "
            "relevant documents were chosen from these. Any system has these values, by construction: "
            f"{', '.join(self.names)}."
        ]


def measurable(
    plan: EvaluationPlan, outputs: Iterable[SystemOutputs], *, with_documents: bool = False
) -> EvaluationPlan:
    """Return the plan for these outputs: if none of them names documents, what needs these is not measured.

    The same goes for answers. One is enough: a system must not gain by leaving an empty list or an empty
    answer out. `with_documents` says that some output is known to name documents.
    """
    lacking = [need for need in _NEEDS if any(need.is_of(metric) for metric in plan.metrics)]
    if with_documents:
        lacking = [need for need in lacking if need.is_met is not names_documents]
    is_answered = False
    for output in outputs if lacking else ():
        if output.error is None:
            is_answered = True
            lacking = [need for need in lacking if not need.is_met(output)]
            if not lacking:
                break
    if not lacking or not is_answered:
        return plan
    return EvaluationPlan([_unless_lacking(metric, lacking) for metric in plan.metrics])


def _unless_lacking(metric: Metric, lacking: Sequence[_Need]) -> Metric:
    reason = next((need.reason for need in lacking if need.is_of(metric)), None)
    return metric.unmeasured(reason) if reason and isinstance(metric, SampleMetric) else metric


class _Need(NamedTuple):
    """What metrics need of at least one output: whether one meets it, and why else nothing is measured."""

    is_of: Callable[[Metric], bool]
    is_met: Callable[[SystemOutputs], bool]
    reason: str


def _needs_documents(metric: Metric) -> bool:
    if getattr(metric, "not_measured", ""):
        return False
    return as_target(metric.target) in _RETRIEVAL or getattr(metric, "reads_documents", False)


def _needs_answers(metric: Metric) -> bool:
    return isinstance(metric, SampleMetric) and metric.reads_answers and not metric.not_measured


_NEEDS = (
    _Need(_needs_answers, names_answer, "the system returns documents without answers"),
    _Need(_needs_documents, names_documents, "no output names documents"),
)


def _with_failures(result: MetricResult, outputs: Sequence[SystemOutputs]) -> MetricResult:
    """Return the result of a foreign metric with the number of failures, which the table shows."""
    failed = sum(output.error is not None for output in outputs)
    return replace(result, details={"num_total": len(outputs), "num_failed": failed, **result.details})


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
    scoring = Scoring(plan)
    with rare_collections():
        for batch in batches(pairs, size if can_be_cut(plan) else None):
            scores = scoring.score(batch)
            on_chunk(batch, scores)
            scoring.keep(scores)
            del batch, scores  # before the next chunk is read: texts may be large
    return scoring.results()


def can_be_cut(plan: EvaluationPlan) -> bool:
    """Return whether the samples can be scored in chunks: no metric needs all of them at once."""
    return all(isinstance(metric, SampleMetric) and not metric.whole_batch for metric in plan.metrics)


class Scoring:
    """The scores of the metrics of a plan while batches are scored."""

    def __init__(self, plan: EvaluationPlan) -> None:
        self._metrics = plan.metrics
        self._pieces: dict[str, list[Scores]] = {metric.name: [] for metric in plan.metrics}
        self._foreign: dict[str, MetricResult] = {}
        self._watches = Watches(plan.metrics)

    def score(self, batch: Batch) -> dict[str, Scores]:
        """Return the scores of a batch by metric."""
        scores: dict[str, Scores] = {}
        for metric in self._metrics:
            if isinstance(metric, SampleMetric):
                scores[metric.name] = metric.score_batch(batch)
                continue
            result = metric.compute(list(batch.samples), list(batch.outputs))
            self._foreign[metric.name] = _with_failures(result, batch.outputs)
            if result.scores:
                scores[metric.name] = as_columns(result.scores)
        self._watches.look(batch)
        return scores

    def keep(self, scores: Mapping[str, Scores]) -> None:
        """Keep the scores of the next batch for the results."""
        for name, piece in scores.items():
            self._pieces[name].append(piece)

    def results(self) -> list[MetricResult]:
        """Aggregate the scores that were kept."""
        results = []
        first: Scores | None = None
        for metric in self._metrics:
            if not isinstance(metric, SampleMetric):
                results.append(self._foreign[metric.name])
                continue
            joined = Scores.joined(self._pieces.pop(metric.name))
            first = first or joined
            # All metrics share the lists: each takes 8 MB for a million samples.
            joined.sample_ids, joined.clusters = first.sample_ids, first.clusters
            results.append(metric.summarise(joined))
        return self._watches.noted(results)


def batches(pairs: Iterable[Pair], size: int | None) -> Iterator[Batch]:
    """Yield batches of `size` pairs; one batch of all pairs, even if there are none, if `size` is None."""
    rest = iter(pairs)
    if size is None:
        yield _batch(list(rest))
    # No name is kept for a chunk: while the caller works, its texts would stay in memory.
    yield from map(_batch, iter(lambda: list(islice(rest, size)), []))


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
            self.usage.add((output.extra, output.response.metadata))
            if output.extra:
                self._add_attempts(output)
            if output.error is not None:
                self.failures[output.error.type, output.error.message] += 1
                self.first_failure = self.first_failure or output.error
            elif is_time(seconds := output.timings.get("end_to_end", math.nan)):
                self.seconds.append(seconds)
        return self

    def _add_attempts(self, output: SystemOutputs) -> None:
        if is_from_cache(output):
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
    packages = ("auepora-eval", "numpy", "scipy", "msgspec", "rapidfuzz")
    return {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "cpu_count": os.cpu_count(),
        "memory_gb": round(_memory() / 1e9, 1),
        "packages": {package: _version(package) for package in packages},
    }


def _memory() -> int:
    """Return the bytes of memory of this machine."""
    if "SC_PHYS_PAGES" in getattr(os, "sysconf_names", ()):  # psutil takes 15 ms to import
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    import psutil

    return int(psutil.virtual_memory().total)


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
