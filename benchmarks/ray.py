"""Compare the executor `ray` with `threads` and `processes`, on a cluster of two nodes on this machine.

    python benchmarks/ray.py

Each node has one processor and is a set of processes of its own, on loopback. The start of workers is not
counted: the clock starts when the first calls of every worker are back. Bars: the driver takes at most 0.15
ms of CPU per sample; calls that wait take at most 1.3 times as long as in threads, at the same concurrency;
calls that compute at most 1.25 times as long as in as many processes; both nodes take calls; no output is
lost with a node. The exit code is 1 if a bar is missed, which can happen on a busy machine.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from auepora_eval.calls.asking import Caller
from auepora_eval.calls.executors import Executor, ThreadExecutor
from auepora_eval.calls.policy import Limits
from auepora_eval.calls.processes import ProcessExecutor
from auepora_eval.calls.ray import RayExecutor, in_ray
from auepora_eval.core.systems.call import SystemCall
from auepora_eval.core.systems.named import load_system
from auepora_eval.core.types import Document, EvaluationSample, Response, RetrievedDocument, SystemOutputs
from tests.calls.ray_nodes import Nodes, ray_nodes

SECONDS, CONCURRENCY, WORKERS = 0.02, 64, 2
HITS = [RetrievedDocument(Document(f"d{n}", "some text " * 20), 1 / n, n) for n in range(1, 6)]


def output() -> SystemOutputs:
    return SystemOutputs(HITS, Response("an answer"), extra={"node": os.environ.get("RAY_NODE_ID", "")})


def answer(sample: EvaluationSample) -> SystemOutputs:
    """Answer at once: what remains is the work of the driver."""
    return output()


def wait(sample: EvaluationSample) -> SystemOutputs:
    """Wait for 20 ms, as for an endpoint."""
    time.sleep(SECONDS)
    return output()


def compute(sample: EvaluationSample) -> SystemOutputs:
    """Use a processor for 20 ms."""
    end = time.thread_time() + SECONDS
    while time.thread_time() < end:
        sum(range(1000))
    return output()


def node_here() -> str:
    import ray

    return str(ray.get_runtime_context().get_node_id())


def where(sample: EvaluationSample) -> SystemOutputs:
    """Say which node answers."""
    time.sleep(SECONDS)
    return SystemOutputs([], Response(node_here()))


def samples(count: int) -> Iterator[EvaluationSample]:
    return (EvaluationSample(str(n), f"query {n}") for n in range(count))


def results(executor: Executor, name: str, count: int) -> Iterator[Any]:
    system = load_system(f"benchmarks.ray:{name}")
    call: Caller[Any, Any] = Caller(SystemCall(system, 5), Limits())
    return (result for _, result in executor.map(call, samples(count)))


def measured(executor: Executor, name: str, count: int, first: int) -> tuple[float, float]:
    """Return the seconds and the milliseconds of CPU per sample, of `count` calls after the `first` ones."""
    start = cpu = 0.0
    for number, result in enumerate(results(executor, name, first + count), start=1):
        assert result.failure is None, result.failure
        if number == first:
            start, cpu = time.perf_counter(), time.process_time()
    return time.perf_counter() - start, (time.process_time() - cpu) / count * 1000


def compared(title: str, ours: float, peer: str, theirs: float, bar: float) -> bool:
    holds = ours <= bar * theirs
    print(
        f"{title:<38}{ours:>8.2f} s{theirs:>9.2f} s in {peer:<10}{ours / theirs:>6.2f}  bar {bar}: ", end=""
    )
    print("holds" if holds else "MISSED")
    return holds


WAITING, COMPUTING = (5_000, 1_000), (500, 100)  # calls that are measured, and calls before


def on_the_cluster(nodes: Nodes, waiting: float, computing: float) -> bool:
    """Print the figures beside those of threads that wait, and of processes that compute."""

    def ray(concurrency: int) -> RayExecutor:
        return RayExecutor(concurrency=concurrency, address=nodes.address)

    _, cpu = measured(ray(CONCURRENCY), "answer", 20_000, 5_000)
    good = cpu <= 0.15
    print(f"driver, per sample {cpu:.3f} ms of CPU  bar 0.15: {'holds' if good else 'MISSED'}")
    ours = min(measured(ray(CONCURRENCY), "wait", *WAITING)[0] for _ in range(2))
    good &= compared(f"waiting, {WAITING[0]:,} x 20 ms at {CONCURRENCY}", ours, "threads", waiting, 1.3)
    ours = measured(ray(WORKERS), "compute", *COMPUTING)[0]
    what = f"computing, {COMPUTING[0]:,} x 20 ms, {WORKERS} workers"
    good &= compared(what, ours, "processes", computing, 1.25)
    return good & shared_and_survived(nodes, ray(CONCURRENCY))


def shared_and_survived(nodes: Nodes, executor: RayExecutor) -> bool:
    """Count the calls of each node, and kill one when both have taken an eighth of them."""
    count, made, both = 10_000, Counter[str](), False
    for result in results(executor, "where", count):
        made["failed" if result.failure else result.value.response.text[:8]] += 1
        if not both and len(made) == 2 and min(made.values()) > count // 8:
            both = True
            print(f"calls by node when one is killed: {', '.join(map(str, made.values()))}")
            nodes.remove(1)
    print(f"after one node was killed: {made.total():,} of {count:,} results, {made['failed']} failed")
    return both and made.total() == count and not made["failed"]


def main() -> int:
    sys.path[0] = str(Path(__file__).parents[1])  # else this file would be imported instead of the package
    print(f"two nodes with one processor each; {os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}")
    threads = ThreadExecutor(concurrency=CONCURRENCY)
    waiting = min(measured(threads, "wait", *WAITING)[0] for _ in range(2))
    computing = measured(ProcessExecutor(concurrency=WORKERS), "compute", *COMPUTING)[0]
    with ray_nodes(1, 1) as nodes:
        os.environ.update(nodes.environment)
        try:
            return 0 if on_the_cluster(nodes, waiting, computing) else 1
        finally:
            in_ray(sys.modules["ray"].shutdown)  # before the cluster ends


if __name__ == "__main__":
    sys.exit(main())
