"""The evaluator: calls the system on every sample, then scores the outputs by every metric of the plan."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Integral
from pathlib import Path
from time import perf_counter
from types import NoneType
from typing import Any, TypeVar

from ..calls.asking import ask_all
from ..calls.executors import Executor, SerialExecutor
from ..calls.policy import CallPolicy, Limits
from ..calls.usage import Usage
from ..errors import (
    EvaluationError,
    RunStoppedError,
    TooManyFailuresError,
    check_type,
    warn_user,
    wrong_type,
)
from ..read.fields import ReadingNote
from ..read.outputs import READ_AS
from .dataset import DatasetForms, as_dataset
from .plan import EvaluationPlan, MetricForms, Survey
from .rag_interface import as_system, name_of, takes_history
from .scoring import RunRecord, score_record
from .systems.call import SystemCall, as_output
from .systems.resources import ResourceMonitor, checked_prices
from .types import (
    EvaluationRun,
    EvaluationSample,
    Failure,
    MetricResult,
    SystemOutputs,
)

T = TypeVar("T")
OnOutput = Callable[[EvaluationSample, SystemOutputs], None]
StoreOutput = Callable[[EvaluationSample, SystemOutputs], None]


class AueporaEvaluator:
    """Runs a plan against a system.

    `system` is anything that `as_system` accepts. A call that raises, times out or returns an invalid output
    becomes an output with `error`. The run continues, unless more than `max_failures` calls failed. If none
    was answered, EvaluationError has the first exception and the lines of your files where it was raised.
    `on_output` is called with each output as it arrives; `configuration` is stored with the run. With prices
    per 1,000 tokens, in US dollars, the run has its cost, if the system reports its tokens. `policy` decides
    about calls that hang or fail, and how many may be made.
    """

    def __init__(
        self,
        system: Any,
        plan: EvaluationPlan | MetricForms,
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
        check_type("top_k", top_k, "a whole number", Integral)
        if top_k < 1:
            raise ValueError(f"top_k must be at least 1, not {top_k}")
        check_type("max_failures", max_failures, "a whole number or None", Integral, NoneType)
        check_type("seed", seed, "a whole number", Integral)
        check_type("policy", policy, "a CallPolicy or None", CallPolicy, NoneType)
        if executor is not None and not hasattr(executor, "map"):
            raise wrong_type("executor", "an executor such as ThreadExecutor(8), or None", executor)
        self.system = as_system(system)
        self.plan = plan if isinstance(plan, EvaluationPlan) else EvaluationPlan(plan)
        self.top_k = top_k
        self.executor = executor or SerialExecutor()
        self.policy = policy
        self.max_failures = max_failures
        self.seed = seed
        self.on_output = on_output
        self.configuration = {**(configuration or {}), **checked_prices(price_input, price_output)}
        self._stopping = threading.Event()
        self._limits: Limits | None = None

    def stop(self) -> None:
        """Start no further call, and finish those under way. For signal handlers and other threads.

        This ends one run: the current one, or the next if there is none. The evaluator can be used again.
        """
        self._stopping.set()
        if self._limits is not None:
            self._limits.halt()

    def evaluate(self, dataset: DatasetForms) -> list[MetricResult]:
        """Run the system on the dataset and compute every metric of the plan."""
        return self.run(dataset).results

    def run(
        self,
        dataset: DatasetForms,
        *,
        evaluation_id: str | None = None,
        storage: Any = None,
        resume: bool = False,
    ) -> EvaluationRun:
        """Return the run: results, outputs, the scores of each sample, and what is needed to repeat it.

        With a `storage` of runs every output is on the disk before it counts, and the run is stored. Samples
        and outputs are then not in the returned run (`storage.load_run` reads them). `resume` resumes the run
        of that `evaluation_id`, if there is one. If all calls failed, the run is stored before the error.
        """
        if resume and storage is None:
            raise ValueError("resume needs the storage that the run was started in, and its evaluation_id")
        check_type("evaluation_id", evaluation_id, "a string or None", str, NoneType)
        dataset = as_dataset(dataset)
        try:
            if storage is not None:
                run: EvaluationRun = storage.evaluate(
                    self, dataset, evaluation_id=evaluation_id, resume=resume
                )
            else:
                run = evaluate(self, RunRecord(dataset, self.plan, name_of(self.system), evaluation_id))
        finally:
            self._stopping.clear()  # also a request that came too late for this run
            self._limits = None
        failed = run.failed_calls()
        if failed and len(failed) == (len(run.samples) or run.sample_count):
            raise no_answers(f"every call failed ({len(failed):,} of {len(failed):,}).", failed, run=run)
        if failed:
            warn_user(f"{run.failures_in_words()}.")
        return run

    def settings(self) -> dict[str, Any]:
        """Return how calls are made, and the rest of the stored configuration."""
        settings = {
            "executor": type(self.executor).__name__,
            "concurrency": getattr(self.executor, "concurrency", None),
            "timeout": None if self.policy is None else self.policy.timeout,
            "max_failures": self.max_failures,
        }
        plain = {name: value for name, value in settings.items() if isinstance(value, str | int | float)}
        return {**plain, **self.configuration}

    def start(self, usages: Iterable[Usage] = (), *, has_answers: bool = False) -> Limits:
        """Return the limits of the calls that are about to be made, which `stop` can halt.

        `usages` are those of earlier sessions of the run, and `has_answers` whether these had an answer.
        """
        self._limits = limits = Limits(self.policy, usages)
        limits.has_answers = has_answers
        # The stop may have been requested before there were limits to halt.
        if self._stopping.is_set():
            limits.halt()
        return limits

    def outputs(
        self, samples: Iterable[EvaluationSample], store: StoreOutput | None = None
    ) -> Iterator[tuple[EvaluationSample, SystemOutputs]]:
        """Call the system; yield each sample with its output, as they arrive, once they are stored.

        Samples are taken as they are needed: only those under way are in memory.
        """
        done = failures = 0
        first: dict[str, Failure] = {}
        reported: set[str] = set()
        limits, call = self._limits or self.start(), SystemCall(self.system, self.top_k)
        try:
            for sample, output in ask_all(
                call, samples, limits, reply=as_output, store=store, executor=self.executor
            ):
                done += 1
                _report_readings(output, reported)
                if self.on_output is not None:
                    self.on_output(sample, output)
                yield sample, output
                if output.error is None:
                    continue
                # After the yield: the output that exceeds the limit is kept as well.
                failures += 1
                first = first or {sample.sample_id: output.error}
                if self.max_failures is not None and failures > self.max_failures:
                    raise TooManyFailuresError(
                        f"stopped: {failures} of {done} calls failed, more than the {self.max_failures} "
                        f"allowed. The last one, sample {sample.sample_id!r}: {output.error}"
                    )
        except RunStoppedError:
            if limits.is_hopeless and not limits.halted and failures == done:
                what = f"stopped: none of the first {done} calls was answered."
                raise no_answers(what, first, _HOPELESS_FIX) from None
            raise
        finally:
            self._limits = None


_HOPELESS_FIX = (
    "Fix the system and call them again, or call the others anyway: keep_going: true in the plan (--config), "
    "auepora run --keep-going, CallPolicy(keep_going=True)."
)


def no_answers(
    what: str, failed: Mapping[str, Failure], fix: str = "", run: EvaluationRun | None = None
) -> EvaluationError:
    """Return the error of a system that failed on every sample, by the first of its failures."""
    sample_id, first = next(iter(failed.items()))
    text = f"{what} The first one, sample {sample_id!r:.80}: {first}"
    return EvaluationError(f"{text.rstrip('. ')}. {fix}".rstrip(), first.traceback, run)


def _report_readings(output: SystemOutputs, reported: set[str]) -> None:
    """Report how an output was read, once for each way: here, since a worker's warnings may be lost."""
    readings = output.extra.get(READ_AS)
    new = [text for text in readings if text not in reported] if isinstance(readings, list) else []
    if new:
        reported.update(new)
        warn_user(f"Read {', '.join(new)}.", ReadingNote)


def in_this_folder(pairs: Iterator[T]) -> Iterator[T]:
    """Yield the pairs, and return to the current folder at the end: a system may have changed it."""
    folder = Path.cwd()
    try:
        yield from pairs
    finally:
        os.chdir(folder)


def evaluate(evaluator: AueporaEvaluator, record: RunRecord) -> EvaluationRun:
    """Call the system for each sample without an output, score all outputs, and record the run."""
    clock = perf_counter()
    check_before_calls(evaluator, record.survey)
    with record:
        calls = 0
        # Around the calls only: the processor time of the scoring is not the system's.
        with ResourceMonitor() as monitor:
            for sample, output in in_this_folder(evaluator.outputs(record.missing(), record.store)):
                calls += 1
                record.keep(sample, output)
        return score_record(
            record,
            evaluator.plan,
            system_name=name_of(evaluator.system),
            top_k=evaluator.top_k,
            seed=evaluator.seed,
            configuration=evaluator.settings(),
            resource_usage=monitor.usage() if calls else None,
            clock=clock,
        )


def check_before_calls(evaluator: AueporaEvaluator, survey: Survey) -> None:
    """Check the plan against the dataset: a plan that does not fit it must not cost a four-hour run."""
    evaluator.plan.validate_survey(survey)
    if survey.conversations and not takes_history(evaluator.system):
        samples = "1 sample has" if survey.conversations == 1 else f"{survey.conversations} samples have"
        warn_user(
            f"{samples} earlier turns (metadata.history) that the system does not get. A function gets them "
            "as a parameter `history`, or with the question as `messages`."
        )
    top_k = evaluator.top_k
    beyond = [metric.name for metric in evaluator.plan.metrics if (getattr(metric, "k", None) or 0) > top_k]
    if beyond:
        warn_user(
            f"{', '.join(beyond)}: the system is asked for only {top_k} documents (top_k), so the ranks "
            "below count as misses. Raise top_k to measure them."
        )
