"""Measure the cost of storing calls: CPU per sample, and how close a run comes to the ideal N x L / c.

    python benchmarks/stored_calls.py
    python benchmarks/stored_calls.py --samples 500

2,000 samples of a system that sleeps 20 ms, with and without a database on this disk, best of three by
wall clock. The CPU time is that of the whole process: threads, checks of the answers and database.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.runner import AueporaEvaluator
from auepora_eval.core.systems.call import EXECUTORS
from auepora_eval.core.systems.resources import usage_of
from auepora_eval.core.types import EvaluationSample, SystemOutputs
from auepora_eval.store.database import ANSWER, CallRow, Database
from auepora_eval.store.record import outcome_of
from auepora_eval.store.writer import call_reply

SECONDS = 0.02


class Sleeps:
    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> Any:
        time.sleep(SECONDS)
        return {"answer": "an answer of some words", "retrieved": ["a", "b", "c"]}


class SleepsAsync:
    async def run(self, sample: EvaluationSample, *, top_k: int = 5) -> Any:
        await asyncio.sleep(SECONDS)
        return {"answer": "an answer of some words", "retrieved": ["a", "b", "c"]}


class Log:
    """Stores each output, as a run does."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def store(self, sample: EvaluationSample, output: SystemOutputs) -> None:
        reply, usage = call_reply(sample.sample_id, output), usage_of(output)
        self.database.add_call(CallRow(None, ANSWER, sample.sample_id, outcome_of(output), reply, usage))


def measured(kind: str, concurrency: int, samples: int, folder: Path | None) -> tuple[float, float]:
    """Return the wall-clock seconds and the CPU seconds."""
    system = SleepsAsync() if kind == "async" else Sleeps()
    executor = EXECUTORS.get(kind)(concurrency=concurrency)
    evaluator = AueporaEvaluator(system, EvaluationPlan([]), executor=executor)
    world = (EvaluationSample(f"s{number}", f"query {number}") for number in range(samples))
    log = None if folder is None else Log(Database.write(folder / "x.run.db"))
    clock, cpu = time.perf_counter(), time.process_time()
    count = sum(1 for _ in evaluator.outputs(world, None if log is None else log.store))
    took = time.perf_counter() - clock, time.process_time() - cpu
    if log is not None:
        log.database.close()
    if count != samples:
        raise SystemExit(f"{count} outputs of {samples}")
    return took


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=2_000, metavar="N")
    samples = parser.parse_args().samples
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}\n")
    print("| executor | at a time | stored | seconds | of the ideal | CPU ms a sample |")
    print("|---|---:|---|---:|---:|---:|")
    for kind, concurrency in (("threads", 16), ("threads", 64), ("async", 16), ("async", 64), ("async", 256)):
        for kept in (False, True):
            found = []
            for _ in range(3):
                with tempfile.TemporaryDirectory() if kept else nullcontext("") as name:
                    found.append(measured(kind, concurrency, samples, Path(name) if kept else None))
            seconds, cpu = min(found)
            share = samples * SECONDS / concurrency / seconds
            cells = (kind, concurrency, "yes" if kept else "no", f"{seconds:.2f}", f"{share:.0%}")
            print("|", *(f"{cell} |" for cell in (*cells, f"{cpu / samples * 1e3:.2f}")), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
