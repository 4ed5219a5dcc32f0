"""Measure whole commands as a user starts them, beside a peer that does the same work where there is one.

    python benchmarks/commands.py                          # up to 100,000 samples, best of 3
    python benchmarks/commands.py --sizes 1000 --rounds 1

Each command is a process of its own, with its start and its imports. CPU seconds and peak memory are those
that the operating system reports; the contestants take turns, and the best of the rounds counts. The times of
whole runs, whose calls wait, are by the clock. `score`
reads a dataset and predictions, computes five retrieval metrics with intervals, and stores the run. The
`ir_measures` command reads the same judgements and lists in TREC's format and prints the five means.

The exit code is 0 if every bar holds, 1 if one is missed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

METRICS = "recall@5,precision@5,mrr,ndcg@5,map"
MEASURES = ("R@5", "P@5", "RR", "nDCG@5", "AP")
THIRTEEN = f"{METRICS},f1@5,hit@5,recall@3,token_f1,rougeL_answer,exact_match,contains_answer,mean_latency"
WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu".split()
LARGEST, RUNS = 100_000, 12
AUEPORA = ("-m", "auepora_eval")


class Measured(NamedTuple):
    """CPU seconds and peak memory of a command; or the seconds by the clock."""

    cpu: float
    peak: float  # MB
    clock: float

    def by_the_clock(self) -> Measured:
        return self._replace(cpu=self.clock)


class Bench:
    """Runs commands in turn, and prints each beside its bar."""

    def __init__(self, folder: Path, rounds: int) -> None:
        self.folder, self.rounds, self.held = folder, rounds, True
        # Bytecode is kept, as it is in an installation, and the first call of a command is not counted.
        self.environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        self.environment["PYTHONPYCACHEPREFIX"] = str(folder / "bytecode")

    def start(self, *words: str) -> int:
        """Start Python with these arguments."""
        quiet = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_WRONLY, 0) for stream in (1, 2)]
        return os.posix_spawn(sys.executable, (sys.executable, *words), self.environment, file_actions=quiet)

    def run(self, *words: str) -> Measured:
        """Run Python with these arguments; SystemExit if it fails."""
        start = time.perf_counter()
        _, status, usage = os.wait4(self.start(*words), 0)
        if os.waitstatus_to_exitcode(status):
            raise SystemExit(f"{' '.join(words)[:100]} ended with {os.waitstatus_to_exitcode(status)}")
        clock = time.perf_counter() - start
        return Measured(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3, clock)

    def best(self, *commands: tuple[str, ...]) -> list[Measured]:
        """Return the best of the rounds of each command."""
        rounds = [[self.run(*command) for command in commands] for _ in range(self.rounds)]
        return [min(each) for each in zip(*rounds, strict=True)]

    def say(
        self, what: str, measured: Measured, limit: float, peer: float | None = None, most: float = math.inf
    ) -> None:
        """Print a row. The limit is one of CPU seconds, or of times those of the peer; `most` one of MB."""
        reached = measured.cpu if peer is None else measured.cpu / peer
        is_held = reached <= limit and measured.peak <= most
        self.held &= is_held
        beside = "-" if peer is None else f"{peer:.2f}"
        bar = f"<= {limit:g} s" if peer is None else f"<= {limit:g}x"
        bar = "none" if limit == math.inf else bar
        bar += "" if most == math.inf else f", {most:g} MB"
        ratio = "-" if peer is None else f"{reached:.2f}x"
        verdict = ("held" if is_held else "MISSED") if limit < math.inf else ""
        print(
            f"| {what} | {measured.cpu:.2f} | {measured.peak:.0f} | {beside} | {ratio} | {bar} | {verdict} |",
            flush=True,
        )

    def score(self, data: Path, evaluation_id: str, metrics: str, outputs: str = "0") -> tuple[str, ...]:
        """Return the arguments of `auepora score`."""
        files = ("--dataset", str(data / "data.jsonl"), "--outputs", str(data / f"{outputs}.jsonl"))
        stored = ("--id", evaluation_id, "--out", str(self.folder), "--force")
        return (*AUEPORA, "score", *files, "--metrics", metrics, *stored)

    def stored(self, *words: str) -> tuple[str, ...]:
        """Return the arguments of a command on stored runs."""
        return (*AUEPORA, *words, "--out", str(self.folder))


def write_data(folder: Path, size: int, depth: int, systems: int = 1) -> Path:
    """Write a dataset, the predictions of some systems, and the same as TREC's files."""
    rng = random.Random(0)
    folder.mkdir()
    with (folder / "data.jsonl").open("w") as data, (folder / "qrels").open("w") as qrels:
        for n in range(size):
            gold = [f"doc-{n * 7 % 1000:04}", f"doc-{n * 7 % 1000 + 1003:04}"]
            sample = {"sample_id": f"q{n:06}", "query": f"What is number {n}", "relevant_docs": gold}
            data.write(json.dumps({**sample, "reference_answer": " ".join(rng.choices(WORDS, k=8))}) + "\n")
            qrels.writelines(f"q{n:06} 0 {doc} 1\n" for doc in gold)
    for system in range(systems):
        with (folder / f"{system}.jsonl").open("w") as file, (folder / "run").open("w") as run:
            for n in range(size):
                start = n * 7 - rng.randrange(3)
                hits = [f"doc-{(start + place) % 1000:04}" for place in range(depth)]
                retrieved = [
                    {"doc_id": doc, "score": 1 / rank, "rank": rank} for rank, doc in enumerate(hits, start=1)
                ]
                answer = {
                    "answer": " ".join(rng.choices(WORDS, k=8)),
                    "timings": {"end_to_end": rng.random()},
                }
                file.write(json.dumps({"sample_id": f"q{n:06}", "retrieved": retrieved, **answer}) + "\n")
                lines = (f"q{n:06} Q0 {doc} {rank} {1 / rank} s\n" for rank, doc in enumerate(hits, start=1))
                run.writelines(lines)
    return folder


def scoring(bench: Bench, sizes: list[int]) -> None:
    """`auepora score` beside the `ir_measures` command; the runs stay for the other commands."""
    for depth in (5, 10, 100):
        for size in sizes:
            if size * depth > 10 * LARGEST:
                continue
            data = write_data(bench.folder / f"{size}x{depth}", size, depth)
            peer = ("-m", "ir_measures", str(data / "qrels"), str(data / "run"), *MEASURES)
            ours, theirs = bench.best(bench.score(data, f"s{size}", METRICS), peer)
            bench.say(f"score {size:,} x {depth} documents", ours, 1.0, theirs.cpu)
            if size == LARGEST and depth == 5:
                bench.say(f"score {size:,} x {depth} documents", ours, 4.5, most=250)


def stored_runs(bench: Bench, sizes: list[int]) -> None:
    """Commands that read stored runs."""
    for size in sizes:
        [shown] = bench.best(bench.stored("show", f"s{size}"))
        bench.say(f"show, {size:,} samples", shown, 0.3)
        [gated] = bench.best(bench.stored("gate", f"s{size}", "--min", "recall@5=0.1"))
        bench.say(f"gate --min, {size:,} samples", gated, 0.3)
    largest = sizes[-1]
    for words in (("show", "--sample", "q000042"), ("show", "--worst", "map"), ("show", "--markdown", "-")):
        [read] = bench.best(bench.stored(words[0], f"s{largest}", *words[1:]))
        bench.say(f"{' '.join(words[:2])}, {largest:,} samples", read, 1.5, most=150)
    [listed] = bench.best(bench.stored("list"))
    bench.say(f"list, {len(sizes)} runs", listed, 0.3)


SYSTEMS = """
import asyncio, time
def wait(query):
    time.sleep(0.02)
    return "yes"
async def wait_async(query):
    await asyncio.sleep(0.02)
    return "yes"
def answer(query):
    return "yes"
"""


def whole_runs(bench: Bench) -> None:
    """`auepora run` beside the ideal, by the clock; then a large run that is finished is read again."""
    (bench.folder / "systems.py").write_text(SYSTEMS, encoding="utf-8")

    def run(data: Path, system: str, executor: str, concurrency: int) -> tuple[str, ...]:
        asked = ("--dataset", str(data / "data.jsonl"), "--system", f"{bench.folder}/systems.py:{system}")
        how = ("--executor", executor, "--concurrency", str(concurrency), "--metrics", "exact_match")
        return bench.stored("run", *asked, *how, "--id", system, "--force")

    data = write_data(bench.folder / "called", 10_000, 5)
    for system, executor, concurrency, limit in (
        ("wait", "threads", 64, 1.25),
        ("wait_async", "async", 256, 2.0),
    ):
        [called] = bench.best(run(data, system, executor, concurrency))
        what = f"run 10,000 calls of 20 ms, {executor} {concurrency}; by the clock, beside the ideal"
        bench.say(what, called.by_the_clock(), limit, 10_000 * 0.02 / concurrency)
    bench.run(*run(write_data(bench.folder / "finished", LARGEST, 5), "answer", "serial", 1))
    [resumed] = bench.best(bench.stored("run", "--resume", "answer"))
    bench.say(f"run --resume, {LARGEST:,} samples; by the clock", resumed.by_the_clock(), 0.3)
    [page] = bench.best(bench.stored("show", "answer", "--html", str(bench.folder / "run.html"), "--force"))
    bench.say(f"show --html, {LARGEST:,} samples", page, 1.5, most=150)
    [verified] = bench.best(bench.stored("show", "answer", "--verify"))
    bench.say(f"show --verify, {LARGEST:,} samples", verified, 3.0)


def comparing(bench: Bench) -> None:
    """`auepora compare` of two runs and of twelve."""
    data = write_data(bench.folder / "compared", 1_000, 5, systems=RUNS)
    names = [f"r{system}" for system in range(RUNS)]
    for system, name in enumerate(names):
        bench.run(*bench.score(data, name, THIRTEEN, str(system)))
    [two] = bench.best(bench.stored("compare", *names[:2]))
    bench.say("compare 2 runs, 1,000 samples x 13 metrics", two, 1.0)
    [twelve] = bench.best(bench.stored("compare", *names))
    bench.say(f"compare {RUNS} runs, 1,000 samples x 13 metrics", twelve, 5.0)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, LARGEST], metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    args = parser.parse_args()
    load = f"load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {load}; best of {args.rounds}\n")
    print("| command | CPU s | peak MB | ir_measures, CPU s | ratio | bar | |")
    print("|---|--:|--:|--:|--:|--:|---|", flush=True)
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name), args.rounds)
        small = write_data(bench.folder / "small", 50, 5)
        command = bench.score(small, "small", METRICS)
        bench.run(*command)
        [start] = bench.best(command)
        bench.say("score 50 x 5 documents (the start)", start, 0.4)
        scoring(bench, sorted(args.sizes))
        stored_runs(bench, sorted(args.sizes))
        whole_runs(bench)
        comparing(bench)
    return int(not bench.held)


if __name__ == "__main__":
    sys.exit(main())
