"""Measure the cost of the journal: CPU time per sample, and how close a run comes to the ideal N x L / c.

    python benchmarks/journal.py
    python benchmarks/journal.py --samples 500

2,000 samples of a system that sleeps 20 ms, with and without a journal on this disk, best of three by wall
clock. The CPU time is that of the whole process: threads, checks of the answers and journal.
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
from auepora_eval.core.types import EvaluationSample
from auepora_eval.runs.journal.journal import Journal

SECONDS = 0.02


class Sleeps:
    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> Any:
        time.sleep(SECONDS)
        return {"answer": "an answer of some words", "retrieved": ["a", "b", "c"]}


class SleepsAsync:
    async def run(self, sample: EvaluationSample, *, top_k: int = 5) -> Any:
        await asyncio.sleep(SECONDS)
        return {"answer": "an answer of some words", "retrieved": ["a", "b", "c"]}


def measured(kind: str, concurrency: int, samples: int, folder: Path | None) -> tuple[float, float]:
    """Return the wall-clock seconds and the CPU seconds."""
    system = SleepsAsync() if kind == "async" else Sleeps()
    executor = EXECUTORS.get(kind)(concurrency=concurrency)
    evaluator = AueporaEvaluator(system, EvaluationPlan([]), executor=executor)
    world = (EvaluationSample(f"s{number}", f"query {number}") for number in range(samples))
    journal = None if folder is None else Journal.create(folder, {})
    clock, cpu = time.perf_counter(), time.process_time()
    count = sum(1 for _ in evaluator.outputs(world, journal))
    took = time.perf_counter() - clock, time.process_time() - cpu
    if journal is not None:
        journal.close("finished")
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
    print("| executor | at a time | journal | seconds | of the ideal | CPU ms a sample |")
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
