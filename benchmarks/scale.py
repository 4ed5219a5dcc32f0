"""Memory and speed of `auepora run` and `auepora score` as the data grow.

    python benchmarks/scale.py                       # 10,000, 100,000 and 1,000,000 samples
    python benchmarks/scale.py --sizes 1000 10000

Each command is a process of its own; its peak memory is what the operating system says. A sample has a query,
two gold documents and a reference; the system looks nothing up and answers at once, so that what is measured
is ours. `run` writes a journal, which `score` then scores again. Needs about 2 GB of disk for a million. The
exit code is 0 if the bars hold: under 1 GB, and under 100 MB more at the largest size than at the one before.
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

SYSTEM = """
def system(query, top_k=5):
    number = int(query.split()[-1])
    found = [f"doc-{(number * 7 + place) % 1000:04}" for place in range(top_k)]
    return {"answer": f"It is {number % 10}.", "retrieved": found}
"""
METRICS = "recall@5,precision@5,mrr,ndcg@5,map,f1@5"
LARGEST_MB, GROWTH_MB = 1_000, 100


def write_data(path: Path, size: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        for n in range(size):
            docs = f'"doc-{n * 7 % 1000:04}","doc-{(n + 3) % 1000:04}"'
            file.write(f'{{"sample_id":"q{n:07}","query":"What is number {n}","relevant_docs":[{docs}],')
            file.write(f'"reference_answer":"It is {n % 10}."}}\n')


# A process starts with the peak of the one that made it: this small one in between has none to speak of.
BETWEEN = """
import os, sys
words = [sys.executable, "-m", "auepora_eval", *sys.argv[1:]]
quiet = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
child = os.posix_spawn(sys.executable, words, dict(os.environ), file_actions=quiet)
_, status, usage = os.wait4(child, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss)
"""


def measured(*words: str) -> tuple[float, float]:
    """Seconds and peak MB of a command."""
    clock = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", BETWEEN, *words], stdout=subprocess.PIPE, check=True)
    code, peak = map(int, done.stdout.split())
    if code:
        raise SystemExit(f"auepora {words[0]} ended with {code}")
    return time.perf_counter() - clock, peak / (1e6 if sys.platform == "darwin" else 1e3)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000], metavar="N")
    args = parser.parse_args()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores; metrics {METRICS}\n")
    print("| command | samples | seconds | samples/s | peak MB |\n|---|---:|---:|---:|---:|", flush=True)
    peaks: dict[str, list[float]] = {"run": [], "score": []}
    for size in sorted(args.sizes):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "system.py").write_text(SYSTEM, encoding="utf-8")
            write_data(folder / "data.jsonl", size)
            common = ("--dataset", str(folder / "data.jsonl"), "--metrics", METRICS, "--out", name)
            journal = str(folder / "a.run" / "journal.jsonl")
            for command, words in {
                "run": ("run", "--system", f"{folder / 'system.py'}:system", "--id", "a", *common),
                "score": ("score", "--outputs", journal, "--id", "b", *common),
            }.items():
                seconds, peak = measured(*words)
                peaks[command].append(peak)
                print(
                    f"| {command} | {size:,} | {seconds:.1f} | {size / seconds:,.0f} | {peak:.0f} |",
                    flush=True,
                )
    missed = False
    for command, found in peaks.items():
        growth = found[-1] - found[-2] if len(found) > 1 else 0.0
        holds = found[-1] < LARGEST_MB and growth < GROWTH_MB
        missed |= not holds
        verdict = "holds" if holds else "MISSED"
        print(f"\n{command}: peak {found[-1]:.0f} MB, {growth:+.0f} MB from the size before: {verdict}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
