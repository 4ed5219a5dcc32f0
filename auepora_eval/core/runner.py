"""The evaluator: calls the system on every sample, then lets every metric of the plan score the outputs."""

from __future__ import annotations

import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any, Protocol

from ..errors import RunStoppedError, TooManyFailuresError
from .calls import SystemCall, failed_output
from .dataset import EvaluationDataset, checked_samples
from .executor import Executor, SerialExecutor, executor_name
from .limits import Limits
from .plan import EvaluationPlan
from .policy import CallPolicy
from .rag_interface import RAGSystemProtocol, as_system
from .resources import ResourceMonitor, checked_prices
from .scoring import now, scored_run, utc_text
from .spent import Spent
from .types import (
    EvaluationRun,
    EvaluationSample,
    MetricResult,
    SystemOutputs,
)

OnOutput = Callable[[EvaluationSample, SystemOutputs], None]
_SLOW = 0.005  # seconds between two outputs; where they come slower, each is waited for


class OutputJournal(Protocol):
    """Keeps outputs on the disk: `submit` numbers them, those up to `durable` are there."""

    @property
    def durable(self) -> int: ...

    def submit(self, sample_id: str, output: SystemOutputs) -> int: ...

    def note_warm_up(self, spent: Spent) -> None: ...

    def wait(self, number: int) -> None: ...


class RunStorage(Protocol):
    """Where runs are kept, and gone on with (`runs.storage.EvaluationResultsStorage`)."""

    def evaluate(
        self,
        evaluator: AueporaEvaluator,
        dataset: EvaluationDataset,
        *,
        evaluation_id: str | None,
        resume: bool,
    ) -> EvaluationRun: ...


class InterruptedRunError(RunStoppedError):
    """Somebody asked the run to stop (`AueporaEvaluator.stop`); the calls under way were finished."""


class AueporaEvaluator:
    """Runs a plan against a system.

    `system` is anything that `as_system` accepts. A call that raises, times out or returns nonsense
    becomes an output with `error`; the run goes on, unless more than `max_failures` calls failed.
    `on_output` is told of each output as it arrives; `configuration` is stored with the run. With the prices
    of 1,000 tokens, in US dollars, the run says what it cost, if the system says how many tokens it used.
    `policy` says what is done about calls that hang or fail, and how many may be made.
    """

    def __init__(
        self,
        system: Any,
        plan: EvaluationPlan,
        *,
        top_k: int = 5,
        executor: Executor | None = None,
        max_failures: int | None = None,
        seed: int = 0,
        on_output: OnOutput | None = None,
        configuration: dict[str, Any] | None = None,
        price_input: float | None = None,
        price_output: float | None = None,
        policy: CallPolicy | None = None,
    ):
        if top_k < 1:
            raise ValueError(f"top_k must be at least 1, not {top_k}")
        self.system = as_system(system)
        self.plan = plan
        self.top_k = top_k
        self.executor = executor or SerialExecutor()
        self.policy = policy
        self.max_failures = max_failures
        self.seed = seed
        self.on_output = on_output
        self.configuration = {**(configuration or {}), **checked_prices(price_input, price_output)}
        self.spent_before: Mapping[str, float] = {}  # by earlier sessions of the run; see Limits
        self._stopping = threading.Event()
        self._limits: Limits | None = None

    def stop(self) -> None:
        """Start no further call; what is under way is finished. For signal handlers and other threads.

        It ends one run: the one under way, or the next if there is none. The evaluator can be used again.
        """
        self._stopping.set()
        if self._limits is not None:
            self._limits.halt()

    def evaluate(self, dataset: EvaluationDataset) -> list[MetricResult]:
        """Run the system on the dataset and compute every metric of the plan."""
        return self.run(dataset).results

    def run(
        self,
        dataset: EvaluationDataset,
        *,
        evaluation_id: str | None = None,
        storage: RunStorage | None = None,
        resume: bool = False,
    ) -> EvaluationRun:
        """The same, with the outputs, the scores of each sample, and what is needed to do it again.

        With a `storage` every output is on the disk before it counts, and the run is stored; samples and
        outputs are then not in the returned run (`storage.load_run` reads them). `resume` goes on with the
        run of that `evaluation_id`, if it was begun.
        """
        if resume and storage is None:
            raise ValueError("resume needs the storage that the run was begun in, and its evaluation_id")
        try:
            if storage is not None:
                return storage.evaluate(self, dataset, evaluation_id=evaluation_id, resume=resume)
            return self._run(dataset, evaluation_id)
        finally:
            self._stopping.clear()  # also one that came too late: it was for this run

    def _run(self, dataset: EvaluationDataset, evaluation_id: str | None) -> EvaluationRun:
        """The run of an evaluator that keeps nothing on the disk."""
        started, clock = now(), perf_counter()
        samples = checked_samples(dataset.name, dataset)
        # Before the first call: a plan that cannot be carried out must not cost a four-hour run.
        self.plan.validate_dataset(samples)
        self.warn_of_cutoffs_beyond_top_k()
        with ResourceMonitor() as monitor:
            outputs = self._outputs(samples)
        run = scored_run(
            self.plan,
            samples,
            outputs,
            system_name=name_of(self.system),
            dataset_name=dataset.name,
            top_k=self.top_k,
            seed=self.seed,
            evaluation_id=evaluation_id,
            configuration=self.settings(),
            snapshot=dataset.snapshot,
            validated=True,
            executor=self.executor,
        )
        return replace(
            run,
            started_at=utc_text(started),
            seconds=perf_counter() - clock,
            resource_usage=monitor.usage() if samples else None,
        )

    def settings(self) -> dict[str, Any]:
        """How the calls are made, as far as it is known, and what else is stored with the run."""
        settings = {
            "executor": executor_name(self.executor),
            "concurrency": getattr(self.executor, "concurrency", None),
            "timeout": getattr(self.executor, "timeout", None),
            "max_failures": self.max_failures,
        }
        known = {name: value for name, value in settings.items() if isinstance(value, str | int | float)}
        return {**known, **self.configuration}

    def _outputs(self, samples: Sequence[EvaluationSample]) -> list[SystemOutputs]:
        found = {sample.sample_id: output for sample, output in self.outputs(samples)}
        missing = [sample.sample_id for sample in samples if sample.sample_id not in found]
        if missing:
            raise RuntimeError(
                f"the executor returned nothing for {len(missing)} samples, first {missing[0]!r}"
            )
        return [found[sample.sample_id] for sample in samples]

    def outputs(
        self, samples: Iterable[EvaluationSample], journal: OutputJournal | None = None
    ) -> Iterator[tuple[EvaluationSample, SystemOutputs]]:
        """Call the system; yield each sample with its output, as they arrive, once the journal has them.

        Samples are taken as they are needed: no more are held than are under way.
        """
        failures = done = 0
        under_way: dict[int, EvaluationSample] = {}
        call = self._call()
        if journal is not None:
            call.limits.when_warmed_up(journal.note_warm_up)
        calls = call.limits.told_of_gaps(self.executor.map(call, self._taken(samples, under_way)))
        for sample, output in self._until_stopped(_acknowledged(_outputs_of(calls, under_way), journal)):
            done += 1
            if self.on_output is not None:
                self.on_output(sample, output)
            yield sample, output
            if output.error is None:
                continue
            failures += 1
            if self.max_failures is not None and failures > self.max_failures:
                raise TooManyFailuresError(
                    f"stopped: {failures} of {done} calls failed, more than the "
                    f"{self.max_failures} allowed. The last one, sample {sample.sample_id!r}: "
                    f"{output.error.type}: {output.error.message}"
                )
        if self._stopping.is_set():
            self._stopping.clear()
            raise InterruptedRunError(f"stopped as asked, after {done} samples.")

    def _until_stopped(
        self, pairs: Iterator[tuple[EvaluationSample, SystemOutputs]]
    ) -> Iterator[tuple[EvaluationSample, SystemOutputs]]:
        """The same pairs; when somebody asked for an end, samples that lay ready are not an error."""
        try:
            yield from pairs
        except RunStoppedError:
            if not self._stopping.is_set():
                raise

    def _call(self) -> SystemCall:
        call = SystemCall(self.system, self.top_k, self.policy)
        call.limits.count_before(self.spent_before)
        self._limits = call.limits
        if self._stopping.is_set():
            call.limits.halt()
        return call

    def _taken(
        self, samples: Iterable[EvaluationSample], under_way: dict[int, EvaluationSample]
    ) -> Iterator[EvaluationSample]:
        for place, sample in enumerate(samples):
            if self._stopping.is_set():
                return
            under_way[place] = sample
            yield sample

    def warn_of_cutoffs_beyond_top_k(self) -> None:
        """Say which metrics look at more documents than the system is asked for."""
        beyond = [m.name for m in self.plan.metrics if (getattr(m, "k", None) or 0) > self.top_k]
        if beyond:
            warnings.warn(
                f"{', '.join(beyond)}: the system is asked for only {self.top_k} documents (top_k), "
                "so the ranks below count as misses. Raise top_k to measure them.",
                stacklevel=4,
            )


def _outputs_of(
    calls: Iterator[tuple[int, Any]], under_way: dict[int, EvaluationSample]
) -> Iterator[tuple[EvaluationSample, SystemOutputs]]:
    for place, result in calls:
        yield under_way.pop(place), result if isinstance(result, SystemOutputs) else failed_output(result)


def _acknowledged(
    pairs: Iterator[tuple[EvaluationSample, SystemOutputs]], journal: OutputJournal | None
) -> Iterator[tuple[EvaluationSample, SystemOutputs]]:
    """The same pairs, each once it is in the journal: many go to the disk together when they come fast."""
    if journal is None:
        yield from pairs
        return
    waiting: deque[tuple[int, EvaluationSample, SystemOutputs]] = deque()
    last = perf_counter()
    try:
        for sample, output in pairs:
            number = journal.submit(sample.sample_id, output)
            waiting.append((number, sample, output))
            before, last = last, perf_counter()
            if last - before > _SLOW:
                journal.wait(number)
            while waiting and waiting[0][0] <= journal.durable:
                yield waiting.popleft()[1:]
    except RunStoppedError:
        # What was answered before the stop counts too.
        yield from _rest(waiting, journal)
        raise
    yield from _rest(waiting, journal)


def _rest(
    waiting: deque[tuple[int, EvaluationSample, SystemOutputs]], journal: OutputJournal
) -> Iterator[tuple[EvaluationSample, SystemOutputs]]:
    while waiting:
        journal.wait(waiting[0][0])
        yield waiting.popleft()[1:]


def name_of(system: RAGSystemProtocol) -> str:
    """The system's `name` if it has one, else the name of its class."""
    name = getattr(system, "name", None)
    return name if isinstance(name, str) and name else type(system).__name__
