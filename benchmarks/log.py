"""Measure the cost of the log of a run: CPU per sample, with the journal, beside the same run without a log.

    python benchmarks/log.py

2,000 samples on 16 threads. "failing" is a system of which every fourth call fails permanently. CPU is that
of the whole process, including scoring and storing, the best of five rounds in which the cases take turns.
The bar is 0.3 ms per sample for calling and journal together. Scoring and storing are not part of that bar,
so the last column, the cost of the log, is the one to read.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from auepora_eval.calls.executors import ThreadExecutor
from auepora_eval.core.dataset import InMemoryDataset
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.types import EvaluationSample, Response, SystemOutputs
from auepora_eval.metrics.parse import parse_metrics
from auepora_eval.runs.log import logged
from auepora_eval.runs.store.storage import EvaluationResultsStorage

SIZE, ROUNDS = 2_000, 5
DATA = InMemoryDataset(
    "d", [EvaluationSample(str(n), f"query {n}", reference_answer=Response("a")) for n in range(SIZE)]
)


class Quick:
    def __init__(self, failing: bool) -> None:
        self.failing = failing

    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        if self.failing and int(sample.sample_id) % 4 == 0:
            raise ConnectionError("the line is down")
        return SystemOutputs([], Response("a"))


@contextmanager
def listening(level: int) -> Iterator[None]:
    """Handle log records as `--log-level` does, without printing."""
    logger = logging.getLogger("auepora_eval")
    before = logger.level
    logger.setLevel(level)
    try:
        yield
    finally:
        logger.setLevel(before)


def cpu_ms(failing: bool, level: int | None) -> float:
    """Return the milliseconds of CPU per sample, without a log if the level is None."""
    with TemporaryDirectory() as folder, listening(level or logging.WARNING):
        storage = EvaluationResultsStorage(Path(folder))
        plan = EvaluationPlan(parse_metrics("exact_match"))
        evaluator = AueporaEvaluator(Quick(failing), plan, executor=ThreadExecutor(concurrency=16))
        no_log = lambda *run, **facts: nullcontext()  # noqa: E731
        start = time.process_time()
        with patch("auepora_eval.runs.evaluation.logged", no_log if level is None else logged):
            storage.evaluate(evaluator, DATA, evaluation_id="r")
        return (time.process_time() - start) / SIZE * 1000


def main() -> None:
    levels = {"no log": None, "warning (default)": logging.WARNING, "debug": logging.DEBUG}
    cases = [(failing, name) for failing in (False, True) for name in levels]
    found: dict[tuple[bool, str], list[float]] = {case: [] for case in cases}
    for _ in range(ROUNDS):
        for failing, name in cases:
            found[failing, name].append(cpu_ms(failing, levels[name]))
    print("| system | log level | CPU ms a sample, all of the run | the log's part |")
    print("|---|---|---:|---:|")
    for failing, name in cases:
        best, without = min(found[failing, name]), min(found[failing, "no log"])
        print(f"| {'failing' if failing else 'answering'} | {name} | {best:.3f} | {best - without:.3f} |")


if __name__ == "__main__":
    main()
