"""Measure memory and speed of `auepora run` and `auepora score` for growing data.

    python benchmarks/scale.py                       # 10,000, 100,000 and 1,000,000 samples
    python benchmarks/scale.py --sizes 1000 10000

Each command is its own process. Its peak memory and CPU time are those that the operating system reports. A
sample has a query, two gold documents and a reference. The system looks nothing up and answers at once, so
only the library is measured. `scan` counts the answers of the run, as resuming does first; `score` scores
them again; `score file` scores predictions in a file. A million samples need about 3 GB of disk.

The bar: under 400 MB (exit code 1 if missed). Further goals are 5,000 samples per second and a scan of at
most 30 s. They are wall-clock times, which mean little on a busy machine. "CPU/s", the samples per second of
CPU time, is for that case and has no bar.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

SYSTEM = """
def system(query, top_k=5):
    number = int(query.split()[-1])
    found = [f"doc-{(number * 7 + place) % 1000:04}" for place in range(top_k)]
    return {"answer": f"It is {number % 10}.", "retrieved": found}
"""
METRICS = "recall@5,precision@5,mrr,ndcg@5,map,f1@5"
LARGEST_MB, PER_SECOND, SCAN_SECONDS = 400, 5_000, 30
SCAN = "import sys, pathlib; from auepora_eval.store.database import Database; "
SCAN += "Database.read(pathlib.Path(sys.argv[1])).outcomes()"


class Measured(NamedTuple):
    """Peak memory and time of a command."""

    seconds: float
    peak: float  # MB
    cpu: float  # seconds


def write_data(path: Path, size: int) -> None:
    outputs = path.with_name("out.jsonl")
    with path.open("w", encoding="utf-8") as file, outputs.open("w", encoding="utf-8") as answers:
        for n in range(size):
            docs = f'"doc-{n * 7 % 1000:04}","doc-{(n + 3) % 1000:04}"'
            file.write(f'{{"sample_id":"q{n:07}","query":"What is number {n}","relevant_docs":[{docs}],')
            file.write(f'"reference_answer":"It is {n % 10}."}}\n')
            hits = ",".join(f'"doc-{(n * 7 + place) % 1000:04}"' for place in range(5))
            answers.write(f'{{"sample_id":"q{n:07}","answer":"It is {n % 10}.","retrieved":[{hits}]}}\n')


# A process inherits the peak of its parent, so a small process starts the measured one.
BETWEEN = """
import os, sys
words = [sys.executable, *sys.argv[1:]]
quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
child = os.posix_spawn(sys.executable, words, dict(os.environ), file_actions=quiet)
_, status, usage = os.wait4(child, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss, usage.ru_utime + usage.ru_stime)
"""


def measured(*words: str) -> Measured:
    """Measure a command of `auepora`."""
    return measured_python("-m", "auepora_eval", *words)


def measured_python(*words: str) -> Measured:
    """Measure Python with these arguments."""
    clock = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", BETWEEN, *words], stdout=subprocess.PIPE, check=True)
    code, peak, cpu = map(float, done.stdout.split())
    if code:
        raise SystemExit(f"{' '.join(words)[:80]} ended with {code:.0f}")
    seconds = time.perf_counter() - clock
    return Measured(seconds, peak / (1e6 if sys.platform == "darwin" else 1e3), cpu)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000], metavar="N")
    args = parser.parse_args()
    load = f"load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {load}; metrics {METRICS}\n")
    print("| command | samples | seconds | samples/s | CPU s | CPU/s | peak MB |")
    print("|---|---:|---:|---:|---:|---:|---:|", flush=True)
    found: dict[str, list[Measured]] = {}
    sizes = sorted(args.sizes)
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            for command, words in commands(Path(name), size).items():
                one = measured_python(*words)
                found.setdefault(command, []).append(one)
                print(
                    f"| {command} | {size:,} | {one.seconds:.1f} | {size / one.seconds:,.0f} "
                    f"| {one.cpu:.1f} | {size / one.cpu:,.0f} | {one.peak:.0f} |",
                    flush=True,
                )
    print()
    held = [judged(command, took, sizes) for command, took in found.items()]
    return int(not all(held))


def commands(folder: Path, size: int) -> dict[str, tuple[str, ...]]:
    """Return the arguments of each command, in the order of their dependencies."""
    (folder / "system.py").write_text(SYSTEM, encoding="utf-8")
    write_data(folder / "data.jsonl", size)
    auepora = ("-m", "auepora_eval")
    common = ("--dataset", str(folder / "data.jsonl"), "--metrics", METRICS, "--out", str(folder))
    outputs = str(folder / "a.run.db")
    return {
        "run": (*auepora, "run", "--system", f"{folder / 'system.py'}:system", "--id", "a", *common),
        "scan": ("-c", SCAN, str(folder / "a.run.db")),
        "score": (*auepora, "score", "--outputs", outputs, "--id", "b", *common),
        "score file": (*auepora, "score", "--outputs", str(folder / "out.jsonl"), "--id", "c", *common),
    }


def judged(command: str, took: list[Measured], sizes: list[int]) -> bool:
    """Print a command beside its bars. Return whether those of memory hold."""
    last = took[-1]
    growth = last.peak - took[-2].peak if len(took) > 1 else 0.0
    holds = last.peak < LARGEST_MB
    per_second = sizes[-1] / last.seconds
    if command == "scan":
        aim, reached = f"{last.seconds:.1f} s (at most {SCAN_SECONDS})", last.seconds <= SCAN_SECONDS
    else:
        aim, reached = f"{per_second:,.0f} samples/s (at least {PER_SECOND:,})", per_second >= PER_SECOND
    print(
        f"{command}: peak {last.peak:.0f} MB (under {LARGEST_MB:,}), {growth:+.0f} MB from the size before: "
        f"{'held' if holds else 'MISSED'}; {aim}: {'held' if reached else 'MISSED'}"
    )
    return holds


if __name__ == "__main__":
    sys.exit(main())
