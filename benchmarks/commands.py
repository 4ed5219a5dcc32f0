"""Measure whole commands as a user starts them, beside a peer that does the same work where there is one.

    python benchmarks/commands.py                          # up to 100,000 samples, best of 3
    python benchmarks/commands.py --sizes 1000 --rounds 1

Each command is a process of its own, with its start and its imports. CPU seconds and peak memory are those
that the operating system reports; the contestants take turns, and the best of the rounds counts. `score`
reads a dataset and predictions, computes five retrieval metrics with intervals, and stores the run. The
`ir_measures` command reads the same judgements and lists in TREC's format and prints the five means.

Two more rows are about large data. `score --engine duckdb` reads ten million samples from Parquet files,
which DuckDB writes first (about 4 GB of memory; --millions 0 leaves it out). The last line has the time of
`score` by the clock on one core and on two, in turns. It means little if other programs run.

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
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

METRICS = "recall@5,precision@5,mrr,ndcg@5,map"
MEASURES = ("R@5", "P@5", "RR", "nDCG@5", "AP")
THIRTEEN = f"{METRICS},f1@5,hit@5,recall@3,token_f1,rougeL_answer,exact_match,contains_answer,mean_latency"
WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu".split()
LARGEST, RUNS = 100_000, 12
SECOND_CORE = 1.7  # times as fast as with one
AUEPORA = ("-m", "auepora_eval")


class Measured(NamedTuple):
    """CPU seconds and peak memory of a command."""

    cpu: float
    peak: float  # MB


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
        _, status, usage = os.wait4(self.start(*words), 0)
        if os.waitstatus_to_exitcode(status):
            raise SystemExit(f"{' '.join(words)[:100]} ended with {os.waitstatus_to_exitcode(status)}")
        return Measured(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1e3)

    def best(self, *commands: tuple[str, ...]) -> list[Measured]:
        """Return the best of the rounds of each command."""
        rounds = [[self.run(*command) for command in commands] for _ in range(self.rounds)]
        return [min(each) for each in zip(*rounds, strict=True)]

    def clock(self, command: tuple[str, ...], cores: set[int]) -> float:
        """Return the seconds by the clock of a command that may use these cores only."""
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, cores)
        try:
            start = time.perf_counter()
            self.run(*command)
            return time.perf_counter() - start
        finally:
            os.sched_setaffinity(0, before)

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
    rng = random.Random(0)  # noqa: S311
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
    for words in (("show", "--sample", "q000042"), ("show", "--worst", "map"), ("report",)):
        [read] = bench.best(bench.stored(words[0], f"s{largest}", *words[1:]))
        bench.say(f"{' '.join(words[:2])}, {largest:,} samples", read, 1.5, most=150)
    [listed] = bench.best(bench.stored("list"))
    bench.say(f"list, {len(sizes)} runs", listed, 0.3)


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


def second_core(bench: Bench) -> None:
    """Print the seconds by the clock of `score` on one core and on two."""
    if not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2:
        print("\nSecond core: not measured")
        return
    two = set(sorted(os.sched_getaffinity(0))[:2])
    command = bench.score(bench.folder / f"{LARGEST}x5", "whole", METRICS)
    rounds = [[bench.clock(command, cores) for cores in ({min(two)}, two)] for _ in range(bench.rounds)]
    slow, fast = map(min, zip(*rounds, strict=True))
    is_held = slow / fast >= SECOND_CORE
    bench.held &= is_held
    print(
        f"\nSecond core: score {LARGEST:,} x 5 documents {slow:.2f} s by the clock on one core, {fast:.2f} s "
        f"on two: {slow / fast:.2f}x (bar {SECOND_CORE}x, {'held' if is_held else 'MISSED'})",
        flush=True,
    )


def millions(bench: Bench, count: int) -> None:
    """`auepora score --engine duckdb` of this many million samples in Parquet files."""
    if find_spec("duckdb") is None:
        print("| score --engine duckdb | not installed | - | - | - | - | - |")
        return
    data, run = bench.folder / "data.parquet", bench.folder / "run.parquet"
    bench.run("-c", WRITE_PARQUET, str(count * 1_000_000), str(data), str(run))
    files = ("--dataset", str(data), "--outputs", str(run))
    # Once: it takes minutes, and its start does not count.
    scored = bench.run(*AUEPORA, "score", *files, "--metrics", METRICS, "--engine", "duckdb")
    bench.say(f"score --engine duckdb, {count},000,000 x 5 documents", scored, math.inf)
    data.unlink()
    run.unlink()


# By DuckDB itself: no list of the samples is in memory.
WRITE_PARQUET = """
import sys, duckdb
size, data, run = sys.argv[1:]
gold = "printf('doc-%04d', n * 7 % 1000), printf('doc-%04d', n * 7 % 1000 + 1003)"
hits = "printf('doc-%04d', (n * 7 - hash(n) % 3 + place + 1000) % 1000) FOR place IN range(5)"
samples = f"printf('q%08d', n) AS sample_id, 'What is number ' || n AS query, [{gold}] AS relevant_docs"
duckdb.execute(f"COPY (SELECT {samples} FROM range({size}) t(n)) TO '{data}'")
outputs = f"printf('q%08d', n) AS sample_id, [{hits}] AS retrieved"
duckdb.execute(f"COPY (SELECT {outputs} FROM range({size}) t(n)) TO '{run}'")
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, LARGEST], metavar="N")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--millions", type=int, default=10, metavar="N", help="samples for DuckDB (10)")
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
        comparing(bench)
        if args.millions:
            millions(bench, args.millions)
        if LARGEST in args.sizes:
            second_core(bench)
    return int(not bench.held)


if __name__ == "__main__":
    sys.exit(main())
