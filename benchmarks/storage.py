"""Time stored runs: list a thousand, store a million samples, compare two such runs.

    python benchmarks/storage.py                          # 1,000 runs, 1,000,000 rows
    python benchmarks/storage.py --runs 100 --rows 50000

All data are seeded, in a temporary folder (about 1 GB for a million rows). A row has five retrieved
documents, an answer and the scores of three metrics. The time to create the objects is not counted. The exit
code is 0 if every bar holds, 1 if one is missed. The bars are for the sizes above.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from auepora_eval.comparison.compare import compare_runs
from auepora_eval.core.scores import Batch, Scores
from auepora_eval.core.types import (
    Document,
    EvaluationRun,
    EvaluationSample,
    MetricResult,
    Response,
    RetrievedDocument,
    SystemOutputs,
)
from auepora_eval.metrics.parse import parse_metric
from auepora_eval.store.storage import EvaluationResultsStorage
from auepora_eval.store.writer import drafted

METRICS = ("recall@5", "ndcg@10", "token_f1")
BARS = {"list": 0.5, "rows": 60.0, "compare": 10.0}
CHUNK = 20_000
DOCUMENTS = [Document(f"doc-{number:04}", "") for number in range(1000)]


def batches(rows: int) -> Iterator[Batch]:
    """Yield a run of this many samples in chunks."""
    for start in range(0, rows, CHUNK):
        numbers = range(start, min(start + CHUNK, rows))
        samples = [
            EvaluationSample(f"q{n:07}", f"What is number {n}?", relevant_docs=[DOCUMENTS[n % 1000]])
            for n in numbers
        ]
        outputs = [
            SystemOutputs(
                [RetrievedDocument(DOCUMENTS[(n * 7 + k) % 1000], 1 / (k + 1), k + 1) for k in range(5)],
                Response(f"It is number {n}."),
                {"end_to_end": 0.1 + n % 100 / 100},
            )
            for n in numbers
        ]
        yield Batch(samples, outputs)


def scores_of(batch: Batch, number: int, shift: float) -> dict[str, Scores]:
    """Return scores between 0 and 1. The same questions are hard for both systems."""
    hard, own = np.random.default_rng(number), np.random.default_rng([number, int(shift * 1e6)])
    found = {}
    for name in METRICS:
        values = hard.random(len(batch)) + own.normal(shift, 0.1, len(batch))
        found[name] = Scores(batch.sample_ids, np.clip(values, 0, 1).round(3))
    return found


def store(storage: EvaluationResultsStorage, name: str, rows: int, shift: float) -> float:
    """Store a run with samples, outputs and rows. Return the seconds for writing."""
    seconds = 0.0
    pieces: dict[str, list[Scores]] = {metric: [] for metric in METRICS}
    with drafted(storage.state(name)) as writer:
        for number, batch in enumerate(batches(rows)):
            scores = scores_of(batch, number, shift)
            clock = time.perf_counter()
            writer.add(batch, scores)
            seconds += time.perf_counter() - clock
            for metric, column in scores.items():
                pieces[metric].append(column)
        run = EvaluationRun(name, name, "made up", "f" * 64, _results(pieces), [], [])
        seconds += timed(lambda: writer.finish(run))
    return seconds


def _results(pieces: dict[str, list[Scores]]) -> list[MetricResult]:
    return [parse_metric(name).summarise(Scores.joined(column)) for name, column in pieces.items()]


def list_runs(folder: Path, count: int) -> tuple[float, float, float]:
    """List this many runs of 500 samples: the best of five, also by the command, and the MB of the files."""
    storage = EvaluationResultsStorage(folder)
    store(storage, "run", 500, 0.0)
    content = storage.find("run").read_bytes()
    for number in range(count - 1):
        text = content.replace(b'"evaluation_id": "run"', b'"evaluation_id": "run%d"' % number, 1)
        (folder / f"run{number}.results.json").write_bytes(text)
    best = min(timed(storage.list_results) for _ in range(5))
    words = [sys.executable, "-m", "auepora_eval", "list", "--out", str(folder)]
    command = min(
        timed(lambda: subprocess.run(words, stdout=subprocess.DEVNULL, check=True)) for _ in range(5)
    )
    if len(storage.list_results()) != count:
        raise SystemExit("not all runs are listed")
    return best, command, count * len(content) / 1e6


def timed(work: Callable[[], object]) -> float:
    clock = time.perf_counter()
    work()
    return time.perf_counter() - clock


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1_000, metavar="N")
    parser.add_argument("--rows", type=int, default=1_000_000, metavar="N")
    args = parser.parse_args()
    missed = False

    def say(what: str, seconds: float, bar: str = "") -> None:
        nonlocal missed
        verdict = ""
        if bar:
            missed |= seconds > BARS[bar]
            verdict = f"at most {BARS[bar]:g} s: {'holds' if seconds <= BARS[bar] else 'MISSED'}"
        print(f"| {what} | {seconds:.2f} | {verdict} |", flush=True)

    print(f"Python {platform.python_version()}, {os.cpu_count()} cores; rows of {len(METRICS)} metrics\n")
    print("| | seconds | bar |\n|---|---:|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seconds, command, size = list_runs(folder / "many", args.runs)
        say(f"list {args.runs:,} runs ({size:.0f} MB)", seconds, "list")
        say("the same by the command `auepora list`, with the start of Python", command, "list")
        storage = EvaluationResultsStorage(folder / "large")
        say(
            f"store {args.rows:,} samples with outputs and scores",
            store(storage, "a", args.rows, 0.0),
            "rows",
        )
        print(f"| MB of their database | {storage.state('a').database.stat().st_size / 1e6:.0f} | |")
        store(storage, "b", args.rows, 0.001)
        clock = time.perf_counter()
        runs = storage.load_run("a", texts=False), storage.load_run("b", texts=False)
        loaded = time.perf_counter() - clock
        compared = timed(lambda: compare_runs(*runs))
        say(f"load the scores of two runs of {args.rows:,}", loaded)
        say(f"join and compare them on {len(METRICS)} metrics", compared)
        say("both together", loaded + compared, "compare")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e3 if sys.platform == "linux" else 1e6)
    print(f"\nPeak memory of it all: {peak:.0f} MB")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
