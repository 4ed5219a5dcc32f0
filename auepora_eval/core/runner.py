"""The evaluator: calls the system on every sample, then lets every metric of the plan score the outputs."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from numbers import Integral, Real
from time import perf_counter
from typing import Any

import msgspec

from ..errors import DataError, TooManyFailuresError
from .blinding import as_shown
from .dataset import EvaluationDataset, checked_samples
from .executor import Executor, SerialExecutor
from .fingerprint import plain
from .plan import EvaluationPlan
from .rag_interface import RAGSystemProtocol, as_outputs, as_system
from .resources import ResourceMonitor, checked_prices
from .scoring import now, scored_run, utc_text
from .types import (
    EvaluationRun,
    EvaluationSample,
    Failure,
    MetricResult,
    Response,
    RetrievedDocument,
    SystemOutputs,
)

OnOutput = Callable[[EvaluationSample, SystemOutputs], None]


class AueporaEvaluator:
    """Runs a plan against a system.

    `system` is anything that `as_system` accepts. A call that raises, times out or returns nonsense
    becomes an output with `error`; the run goes on, unless more than `max_failures` calls failed.
    `on_output` is told of each output as it arrives; `configuration` is stored with the run. With the prices
    of 1,000 tokens, in US dollars, the run says what it cost, if the system says how many tokens it used.
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
    ):
        if top_k < 1:
            raise ValueError(f"top_k must be at least 1, not {top_k}")
        self.system = as_system(system)
        self.plan = plan
        self.top_k = top_k
        self.executor = executor or SerialExecutor()
        self.max_failures = max_failures
        self.seed = seed
        self.on_output = on_output
        self.configuration = {**(configuration or {}), **checked_prices(price_input, price_output)}

    def evaluate(self, dataset: EvaluationDataset) -> list[MetricResult]:
        """Run the system on the dataset and compute every metric of the plan."""
        return self.run(dataset).results

    def run(self, dataset: EvaluationDataset, *, evaluation_id: str | None = None) -> EvaluationRun:
        """The same, with the outputs, the scores of each sample, and what is needed to do it again."""
        started, clock = now(), perf_counter()
        samples = checked_samples(dataset.name, dataset)
        # Before the first call: a plan that cannot be carried out must not cost a four-hour run.
        self.plan.validate_dataset(samples)
        self._warn_of_cutoffs_beyond_top_k()
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
            configuration={**self._settings(), **self.configuration},
            snapshot=dataset.snapshot,
            validated=True,
        )
        return replace(
            run,
            started_at=utc_text(started),
            seconds=perf_counter() - clock,
            resource_usage=monitor.usage() if samples else None,
        )

    def _settings(self) -> dict[str, Any]:
        """How the calls are made, as far as it is known."""
        settings = {
            "executor": type(self.executor).__name__,
            "concurrency": getattr(self.executor, "concurrency", None),
            "timeout": getattr(self.executor, "timeout", None),
            "max_failures": self.max_failures,
        }
        return {name: value for name, value in settings.items() if isinstance(value, str | int | float)}

    def _outputs(self, samples: Sequence[EvaluationSample]) -> list[SystemOutputs]:
        outputs: list[SystemOutputs | None] = [None] * len(samples)
        failures = 0
        for place, result in self.executor.map(_caller(self.system, self.top_k), samples):
            output = result if isinstance(result, SystemOutputs) else failed_output(result)
            outputs[place] = output
            if self.on_output is not None:
                self.on_output(samples[place], output)
            if output.error is not None:
                failures += 1
                if self.max_failures is not None and failures > self.max_failures:
                    done = sum(output is not None for output in outputs)
                    raise TooManyFailuresError(
                        f"stopped: {failures} of {done} calls failed, more than the "
                        f"{self.max_failures} allowed. The last one, sample {samples[place].sample_id!r}: "
                        f"{output.error.type}: {output.error.message}"
                    )
        missing = [
            sample.sample_id for sample, output in zip(samples, outputs, strict=True) if output is None
        ]
        if missing:
            raise RuntimeError(
                f"the executor returned nothing for {len(missing)} samples, first {missing[0]!r}"
            )
        return [output for output in outputs if output is not None]

    def _warn_of_cutoffs_beyond_top_k(self) -> None:
        beyond = [m.name for m in self.plan.metrics if (getattr(m, "k", None) or 0) > self.top_k]
        if beyond:
            warnings.warn(
                f"{', '.join(beyond)}: the system is asked for only {self.top_k} documents (top_k), "
                "so the ranks below count as misses. Raise top_k to measure them.",
                stacklevel=3,
            )


def failed_output(error: object, seconds: float | None = None) -> SystemOutputs:
    """An empty output that says what went wrong. It has no timings: crashing is not answering fast."""
    if isinstance(error, BaseException):
        failure = Failure(type(error).__name__, " ".join(str(error).split())[:2000], seconds)
    else:
        failure = Failure("BadOutput", f"the executor returned a {type(error).__name__}", seconds)
    return SystemOutputs([], Response(""), error=failure)


def checked_output(raw: Any, seconds: float) -> SystemOutputs:
    """A system's answer in order: ranked, timed, and such that it can be stored; else a DataError."""
    output = as_outputs(raw)
    if not isinstance(output.response, Response) or not isinstance(output.response.text, str):
        raise DataError("the answer", f"is not a text but {output.response!r:.60}.")
    hits = [replace(hit, rank=_rank(hit), score=float(hit.score)) for hit in output.retrieved]
    if len({hit.rank for hit in hits}) < len(hits):
        ranks = [hit.rank for hit in hits[:10]]
        raise DataError(
            "retrieved", f"two documents have the same rank: {ranks}.", fix="Number them 1, 2, 3, ..."
        )
    for name, value in output.timings.items():
        if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= value < float("inf"):
            raise DataError(f"timings[{name!r}]", f"is not a number of seconds: {value!r:.60}.")
    # A copy: the system may hand out the same object again.
    checked = replace(
        output,
        retrieved=sorted(hits, key=lambda hit: hit.rank),
        timings={"end_to_end": seconds, **{name: float(value) for name, value in output.timings.items()}},
    )
    _refuse_unstorable(checked)
    return checked


def _rank(hit: RetrievedDocument) -> int:
    if not isinstance(hit.doc.doc_id, str) or not isinstance(hit.doc.text, str):
        raise DataError(
            "retrieved", f"the document {hit.doc.doc_id!r:.60} must have a text as id and as text."
        )
    if isinstance(hit.rank, bool) or not isinstance(hit.rank, Integral):
        raise DataError(
            "retrieved", f"the rank {hit.rank!r:.60} is not a whole number.", fix="Use 1, 2, 3, ..."
        )
    return int(hit.rank)


def _refuse_unstorable(output: SystemOutputs) -> None:
    """What JSON cannot hold (half a character, a list that holds itself) fails its sample, not the run."""
    try:
        msgspec.json.encode(output, enc_hook=plain)
    except (UnicodeEncodeError, RecursionError, OverflowError, TypeError, ValueError) as error:
        raise DataError("the output", f"cannot be written as JSON: {error!s:.100}.") from error


def name_of(system: RAGSystemProtocol) -> str:
    """The system's `name` if it has one, else the name of its class."""
    name = getattr(system, "name", None)
    return name if isinstance(name, str) and name else type(system).__name__


def _caller(system: RAGSystemProtocol, top_k: int) -> Callable[[EvaluationSample], Any]:
    """The call for one sample: blind to its label, timed, checked, and with its own failures as outputs."""

    async def finish(awaitable: Awaitable[Any], start: float) -> SystemOutputs:
        try:
            return checked_output(await awaitable, perf_counter() - start)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a system may raise anything; it is recorded
            return failed_output(error, perf_counter() - start)

    def call(sample: EvaluationSample) -> Any:
        start = perf_counter()
        try:
            raw: Any = system.run(as_shown(sample), top_k=top_k)
            if inspect.isawaitable(raw):
                return finish(raw, start)
            return checked_output(raw, perf_counter() - start)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a system may raise anything; it is recorded
            return failed_output(error, perf_counter() - start)

    async def call_async(sample: EvaluationSample) -> SystemOutputs:
        return await finish(system.run(as_shown(sample), top_k=top_k), perf_counter())  # type: ignore[arg-type]

    return call_async if inspect.iscoroutinefunction(system.run) else call
