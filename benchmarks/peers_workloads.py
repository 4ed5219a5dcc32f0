"""The workloads of benchmarks/executors.py and benchmarks/faults.py, as a user of each peer would write them.

    PYTHON benchmarks/peers_workloads.py ragas waiting 2000 0.02 64    samples, seconds each, at a time
    PYTHON benchmarks/peers_workloads.py ragas faults URL 40           a judge at that URL, samples

PYTHON is that of an environment that has the peer. One JSON document is printed, on the last line. Every
choice favours the peer: no cache, no progress bar, no results on the terminal.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from importlib import import_module
from importlib.metadata import version
from typing import Any
from urllib.request import Request, urlopen

LONGEST = 40.0  # seconds after which a workload is not repeated
REPEATS = 3

# What a metric does with the number of a sample before it returns 1.
Work = Callable[[int], Awaitable[None]]


def sleeping(seconds: float) -> Work:
    async def work(number: int) -> None:
        await asyncio.sleep(seconds)

    return work


def judged_at(url: str) -> Work:
    """Call a judge. Errors are raised, as by a client of a language model."""

    def ask(number: int) -> None:
        body = json.dumps({"query": f"query number {number}"}).encode()
        request = Request(url, body, {"Content-Type": "application/json"})  # noqa: S310 - a loopback address
        with urlopen(request, timeout=20) as reply:  # noqa: S310
            json.load(reply)

    async def work(number: int) -> None:
        await asyncio.to_thread(ask, number)

    return work


def ragas(work: Work, size: int, concurrency: int) -> Callable[[], str]:
    base, schema = import_module("ragas.metrics.base"), import_module("ragas.dataset_schema")
    evaluate = import_module("ragas").evaluate
    options = import_module("ragas.run_config").RunConfig(max_workers=concurrency, max_retries=1)

    class Judged(base.SingleTurnMetric):  # type: ignore[misc, name-defined]
        name = "ok"

        def __init__(self) -> None:
            self._required_columns = {base.MetricType.SINGLE_TURN: {"user_input", "response"}}

        def init(self, run_config: Any) -> None:
            pass

        async def _single_turn_ascore(self, sample: Any, callbacks: Any) -> float:
            await work(int(sample.user_input))
            return 1.0

    samples = [schema.SingleTurnSample(user_input=str(n), response="right") for n in range(size)]
    dataset = schema.EvaluationDataset(samples=samples)
    return lambda: str(evaluate(dataset, [Judged()], run_config=options, show_progress=False))


def deepeval(work: Work, size: int, concurrency: int, **errors: bool) -> Callable[[], str]:
    base, evaluate = import_module("deepeval.metrics").BaseMetric, import_module("deepeval").evaluate
    case = import_module("deepeval.test_case").LLMTestCase
    configs = import_module("deepeval.evaluate.configs")

    class Judged(base):  # type: ignore[misc, valid-type]
        threshold = 0.5

        async def a_measure(self, test_case: Any, *args: Any, **kwargs: Any) -> float:
            await work(int(test_case.input))
            self.score, self.success = 1.0, True
            return 1.0

        def measure(self, test_case: Any, *args: Any, **kwargs: Any) -> float:
            return asyncio.run(self.a_measure(test_case))

        def is_successful(self) -> bool:
            return bool(self.success)

        @property
        def __name__(self) -> str:
            return "ok"

    cases = [case(input=str(n), actual_output="right") for n in range(size)]

    def run() -> str:
        done = evaluate(
            cases,
            [Judged()],
            async_config=configs.AsyncConfig(max_concurrent=concurrency),
            display_config=configs.DisplayConfig(
                show_indicator=False, print_results=False, inspect_after_run=False
            ),
            cache_config=configs.CacheConfig(write_cache=False),
            error_config=configs.ErrorConfig(**errors),
        )
        scores = [metric for result in done.test_results for metric in result.metrics_data]
        failed = sum(metric.error is not None for metric in scores)
        passed = sum(bool(result.success) for result in done.test_results)
        return f"{passed} of {len(done.test_results)} pass, {failed} errors"

    return run


def inspect_ai(work: Work, size: int, concurrency: int, **options: Any) -> Callable[[], str]:
    package = import_module("inspect_ai")
    samples, solvers = import_module("inspect_ai.dataset"), import_module("inspect_ai.solver")
    scorers = import_module("inspect_ai.scorer")

    @solvers.solver  # type: ignore[untyped-decorator]
    def judged() -> Any:
        async def solve(state: Any, generate: Any) -> Any:
            await work(int(state.input_text))
            state.output.completion = "right"
            return state

        return solve

    listed = [samples.Sample(input=str(n), target="right", id=n) for n in range(size)]

    def run() -> str:
        task = package.Task(dataset=listed, solver=judged(), scorer=scorers.exact())
        log = package.eval(
            task, model="mockllm/model", max_samples=concurrency, display="none", log_dir="logs", **options
        )[0]
        done = log.results
        values = {
            f"{score.name} {name}": round(metric.value, 4)
            for score in (done.scores if done else ())
            for name, metric in score.metrics.items()
        }
        counts = f"{done.completed_samples} of {done.total_samples} completed" if done else "no results"
        return f"status {log.status}, {counts}, {values}"

    return run


PEERS: dict[str, Callable[..., Callable[[], str]]] = {
    "ragas": ragas,
    "deepeval": deepeval,
    "inspect-ai": inspect_ai,
}
# The default of each, and the option that its users choose when calls fail.
LENIENT: dict[str, dict[str, Any]] = {
    "deepeval": {"ignore_errors": True},
    "inspect-ai": {"fail_on_error": False},
}


def waiting(peer: str, size: int, seconds: float, concurrency: int) -> dict[str, Any]:
    run = PEERS[peer](sleeping(seconds), size, concurrency)
    found: list[tuple[float, float]] = []
    began = time.perf_counter()
    while len(found) < REPEATS and time.perf_counter() - began < LONGEST:
        cpu, start = time.process_time(), time.perf_counter()
        run()
        found.append((time.perf_counter() - start, (time.process_time() - cpu) / size * 1000))
    return {"seconds": min(found)[0], "cpu_ms": min(found)[1], "repeats": len(found)}


def faults(peer: str, url: str, size: int) -> dict[str, Any]:
    said: dict[str, str] = {}
    for name, options in {
        "by default": {},
        **({"lenient": LENIENT[peer]} if peer in LENIENT else {}),
    }.items():
        label = " ".join([name, *(f"({key}={value})" for key, value in options.items())])
        try:
            said[label] = PEERS[peer](judged_at(url), size, 8, **options)()
        except Exception as error:  # noqa: BLE001 - the error of a peer is its report
            said[label] = f"raises {type(error).__name__}: {str(error)[:100]}"
    return {"said": said}


def main(words: list[str]) -> None:
    peer, workload, *rest = words
    if workload == "waiting":
        result = waiting(peer, int(rest[0]), float(rest[1]), int(rest[2]))
    else:
        result = faults(peer, rest[0], int(rest[1]))
    print(f"\n{json.dumps({'version': version(peer), **result})}")


if __name__ == "__main__":
    main(sys.argv[1:])
