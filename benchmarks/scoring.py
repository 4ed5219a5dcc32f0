"""Compare scoring on one processor and on several: 20,000 samples with slow metrics.

    python benchmarks/scoring.py                       # serial, processes and ray, with two workers each
    python benchmarks/scoring.py --samples 2000 --workers 4 --metrics chrf,rougeL_answer
    python benchmarks/scoring.py --waiting 2           # a metric that waits 2 ms per sample

CPU is that of the driver, which creates the samples, sends them and receives the scores, and that of the
workers. It includes the start of worker processes, but not that of Ray. "in memory" is the largest number of
samples that were read and not finished. Every way must give the same bytes, or the exit code is 1.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psutil

from auepora_eval.core.dataset import canonical_json
from auepora_eval.core.metrics_base import SampleMetric
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.scores import Batch
from auepora_eval.core.scoring import score_in_chunks
from auepora_eval.core.types import (
    Document,
    EvaluationSample,
    Response,
    RetrievedDocument,
    SystemOutputs,
    TargetCategory,
)
from auepora_eval.execution.local import EXECUTORS
from auepora_eval.io.results.document import metric_entry
from auepora_eval.metrics.parse import parse_metrics

METRICS = "embedding_diversity,semantic_similarity,chrfpp,rougeLsum,near_duplicate_rate"
WORDS = (
    "harbour pier light keeper boat storm north south tide chart rope crew bell lamp gull fog sail".split()
)


def text(chance: random.Random, words: int) -> str:
    return " ".join(chance.choices(WORDS, k=words)).capitalize() + "."


@dataclass
class Waiting(SampleMetric):
    """A metric that waits without using a processor: the division of work shows on a busy machine, too."""

    seconds: float
    name: str = "waiting"
    target = TargetCategory.GENERATION_CORRECTNESS

    def score(self, sample: EvaluationSample, output: SystemOutputs) -> float:
        time.sleep(self.seconds)
        return 1.0


class Pairs:
    """Samples with outputs of five documents, created on demand, and the number in memory."""

    def __init__(self, size: int) -> None:
        self.size, self.read, self.done, self.most = size, 0, 0, 0
        self.digest = hashlib.sha256()

    def __iter__(self) -> Iterator[tuple[EvaluationSample, SystemOutputs]]:
        chance = random.Random(7)  # noqa: S311 - texts
        for n in range(self.size):
            docs = [Document(f"d{n}-{place}", text(chance, 60)) for place in range(5)]
            hits = [RetrievedDocument(doc, 1 / rank, rank) for rank, doc in enumerate(docs, 1)]
            sample = EvaluationSample(
                f"q{n}", text(chance, 8), docs[:2], reference_answer=Response(text(chance, 30))
            )
            self.read += 1
            self.most = max(self.most, self.read - self.done)
            yield sample, SystemOutputs(hits, Response(text(chance, 30)))

    def keep(self, batch: Batch, scores: Any) -> None:
        self.done += len(batch)
        for column in scores.values():
            self.digest.update(column.values.tobytes())


def workers_cpu() -> float:
    """Return the CPU seconds of all child processes, including finished ones."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        try:
            times = process.cpu_times()
            total += times.user + times.system
        except psutil.Error:
            continue
    ended = psutil.Process().cpu_times()
    return total + ended.children_user + ended.children_system


def measured(name: str, workers: int, plan: EvaluationPlan, size: int) -> str:
    """Score and print the time. Return the hash of all scores and results."""
    executor = None if name == "serial" else EXECUTORS.get(name)(concurrency=workers)
    if name == "ray":
        from auepora_eval.execution.ray import connected

        clock = time.perf_counter()
        connected(None, workers)
        print(f"(Ray took {time.perf_counter() - clock:.1f} s to start)", flush=True)
    pairs = Pairs(size)
    others, own, clock = workers_cpu(), time.process_time(), time.perf_counter()
    results = score_in_chunks(plan, pairs, pairs.keep, executor=executor)
    seconds, own, others = time.perf_counter() - clock, time.process_time() - own, workers_cpu() - others
    used = 1 if executor is None else workers
    print(
        f"| {name} | {used} | {seconds:.1f} | {size / seconds:,.0f} | {own:.1f} "
        f"| {others:.1f} | {pairs.most:,} |",
        flush=True,
    )
    pairs.digest.update(canonical_json([metric_entry(result) for result in results]))
    return pairs.digest.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--samples", type=int, default=20_000, metavar="N")
    parser.add_argument("--workers", type=int, default=2, metavar="N")
    parser.add_argument("--metrics", default=METRICS)
    parser.add_argument("--waiting", type=float, metavar="MS", help="a metric that waits, instead of those")
    parser.add_argument("--executors", nargs="+", default=["serial", "processes", "ray"], metavar="NAME")
    args = parser.parse_args()
    metrics = parse_metrics(args.metrics) if args.waiting is None else [Waiting(args.waiting / 1000)]
    plan = EvaluationPlan(list(metrics))
    named = ",".join(metric.name for metric in metrics)
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(f"{args.samples:,} samples, {os.cpu_count()} processors, load average {load}; {named}\n")
    print("| executor | workers | seconds | samples/s | driver's CPU s | workers' CPU s | in memory |")
    print("|---|---:|---:|---:|---:|---:|---:|", flush=True)
    found = {measured(name, args.workers, plan, args.samples) for name in args.executors}
    print(f"\nthe same bytes: {'yes' if len(found) == 1 else 'NO'}")
    return int(len(found) > 1)


if __name__ == "__main__":
    sys.exit(main())
