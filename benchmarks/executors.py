"""Compare each executor with the ideal: 2,000 samples of a system that waits 20 ms.

    python benchmarks/executors.py            threads and async, beside a plain pool of asyncio workers
    python benchmarks/executors.py --peers    and ragas, deepeval and inspect-ai at concurrency 64

The ideal is samples x 20 ms / concurrency. The last round is rarely full, so 100% is not possible: 2,000
samples at concurrency 64 are 31.25 rounds, which take 32 (97.7%). CPU is that of this process for a whole
sample: the call, the checks of its output, the transfer.

A peer waits in its own metric or solver (benchmarks/peers_workloads.py), in an environment that is created
in .venv-peers the first time (a few minutes). Its time is that of its evaluate() alone, the best of 3, or of
fewer if they take over 40 s. The exit code is 1 if a bar is missed, which can happen on a busy machine.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from auepora_eval.calls.asking import Caller
from auepora_eval.calls.executors import AsyncExecutor, Executor, ThreadExecutor
from auepora_eval.calls.policy import Limits
from auepora_eval.core.systems.call import SystemCall
from auepora_eval.core.types import Document, EvaluationSample, Response, RetrievedDocument, SystemOutputs
from benchmarks.peers_environments import PEERS, peer_says

SIZE, SECONDS, REPEATS = 2_000, 0.02, 5
HITS = [RetrievedDocument(Document(f"d{n}", "some text " * 20), 1 / n, n) for n in range(1, 6)]
SAMPLES = [EvaluationSample(str(n), f"query {n}") for n in range(SIZE)]
WANTED = {("threads", 16): 0.95, ("threads", 64): 0.95, ("async", 16): 0.95, ("async", 64): 0.95}
WANTED[("async", 256)] = 0.90
PEERS_AT = 64  # calls at a time


class Waiting:
    def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        time.sleep(SECONDS)
        return SystemOutputs(HITS, Response("an answer"))


class WaitingAsync:
    async def run(self, sample: EvaluationSample, *, top_k: int = 5) -> SystemOutputs:
        await asyncio.sleep(SECONDS)
        return SystemOutputs(HITS, Response("an answer"))


def measured(work: Callable[[], Any]) -> tuple[float, float]:
    """Return (seconds, milliseconds of CPU per sample), the best of several runs."""
    found = []
    for _ in range(REPEATS):
        cpu, start = time.process_time(), time.perf_counter()
        work()
        found.append((time.perf_counter() - start, (time.process_time() - cpu) / SIZE * 1000))
    return min(found)


def mapped(executor: Executor, system: Any) -> Callable[[], None]:
    def work() -> None:
        assert sum(1 for _ in executor.map(Caller(SystemCall(system, 5), Limits()), iter(SAMPLES))) == SIZE

    return work


def plain_pool(concurrency: int) -> Callable[[], None]:
    """The simplest program: workers that read from one iterator."""

    async def run() -> None:
        source = iter(SAMPLES)

        async def work() -> None:
            for _ in source:
                await asyncio.sleep(SECONDS)

        await asyncio.gather(*(work() for _ in range(concurrency)))

    return lambda: asyncio.run(run())


def row(name: str, concurrency: int, seconds: float, cpu: float) -> str:
    ideal = SIZE * SECONDS / concurrency
    return f"{name:<18}{concurrency:>12}{ideal:>9.3f}{seconds:>8.3f}{ideal / seconds:>10.1%}{cpu:>8.3f}"


def local(*, peers: bool) -> bool:
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{SIZE:,} samples of {SECONDS * 1000:.0f} ms, best of {REPEATS}; load average {load}")
    print(f"{'executor':<18}{'concurrency':>12}{'ideal s':>9}{'s':>8}{'of ideal':>10}{'CPU ms':>8}  bar")
    good = True
    for concurrency in (16, 64, 256):
        ways: dict[str, Callable[[], None]] = {
            "threads": mapped(ThreadExecutor(concurrency=concurrency), Waiting()),
            "async": mapped(AsyncExecutor(concurrency=concurrency), WaitingAsync()),
            "(asyncio pool)": plain_pool(concurrency),
        }
        found = {name: measured(work) for name, work in ways.items()}
        for name, (seconds, cpu) in found.items():
            wanted = WANTED.get((name, concurrency))
            holds = wanted is None or (SIZE * SECONDS / concurrency / seconds >= wanted and cpu < 0.3)
            good &= holds
            bar = "" if wanted is None else f"  {wanted:.0%}: {'holds' if holds else 'MISSED'}"
            print(row(name, concurrency, seconds, cpu) + bar)
        if peers and concurrency == PEERS_AT:
            beside(found["async"][0])
    return good


def beside(ours: float) -> None:
    """Print the peers, and the ratio of their time to ours."""
    for name in PEERS:
        said = peer_says(name, "waiting", str(SIZE), str(SECONDS), str(PEERS_AT))
        if "problem" in said:
            print(f"{name:<18}{said['problem']}")
            continue
        title = f"{name} {said['version']}"
        times = f"  {said['seconds'] / ours:.1f} times async; best of {said['repeats']}"
        print(row(title, PEERS_AT, said["seconds"], said["cpu_ms"]) + times)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--peers", action="store_true", help="measure ragas, deepeval and inspect-ai too")
    args = parser.parse_args()
    return 0 if local(peers=args.peers) else 1


if __name__ == "__main__":
    sys.exit(main())
