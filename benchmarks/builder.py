"""Compare the speed of building splits with a bare parse-and-dump loop in orjson, on the same file.

    python benchmarks/builder.py            # 0.3 GB
    python benchmarks/builder.py --gb 1     # 100,000 records of 10 KB

The loop reads a line, parses it, dumps it and writes it: no checks, no splits, no hashes. Each contestant
runs in its own process, in turn, and writes new files. The best of several rounds counts. Bars: at least 0.8
of the loop's speed by the clock and 0.5 by the CPU time of all threads, a peak of under 200 MB.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

LOOP = """
import sys, time, orjson
start, before = time.perf_counter(), time.process_time()
with open(sys.argv[1], "rb") as lines, open(sys.argv[2], "wb") as out:
    for line in lines:
        out.write(orjson.dumps(orjson.loads(line)) + b"\\n")
print(time.perf_counter() - start, time.process_time() - before)
"""
HASH = """
import sys, time, hashlib
start, before = time.perf_counter(), time.process_time()
with open(sys.argv[1], "rb") as file:
    hashlib.file_digest(file, "sha256").hexdigest()
print(time.perf_counter() - start, time.process_time() - before)
"""
BUILD = """
import sys, time, resource
from pathlib import Path
from auepora_eval.builder.build import BuildPlan, build_dataset
folder = Path(sys.argv[2])
start, before, main = time.perf_counter(), time.process_time(), time.thread_time()
result = build_dataset(BuildPlan.in_folder(folder, source=Path(sys.argv[1]), force=True))
seconds, cpu, main = time.perf_counter() - start, time.process_time() - before, time.thread_time() - main
assert result.manifest.records == result.manifest.source.count > 0 and not result.manifest.skipped
print(seconds, cpu, main, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gb", type=float, default=0.3, help="size of the source (0.3)")
    parser.add_argument("--rounds", type=int, default=7, help="how often each runs (7)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "offline_dataset.jsonl")
        records = write_source(source, round(args.gb * 1e9))
        megabytes = source.stat().st_size / 1e6
        loops, builds, hashes = [], [], []
        for _ in range(args.rounds):
            loops.append(figures_of(LOOP, source, Path(folder, "dumped.jsonl")))
            Path(folder, "dumped.jsonl").unlink()
            hashes.append(figures_of(HASH, source, Path(folder)))
            builds.append(figures_of(BUILD, source, Path(folder, "built")))
            shutil.rmtree(Path(folder, "built"))
    loop_seconds, loop_cpu = map(min, zip(*loops, strict=True))
    seconds, cpu, main_cpu, _ = map(min, zip(*builds, strict=True))
    peak = max(figures[-1] for figures in builds)
    print(f"{records:,} records, {megabytes:,.0f} MB, best of {args.rounds}")
    print(f"parse and dump (orjson):    {loop_seconds:.2f} s, {megabytes / loop_seconds:,.0f} MB/s")
    print(f"auepora dataset build:      {seconds:.2f} s, {megabytes / seconds:,.0f} MB/s")
    are_held = [
        is_held("speed against the loop:    ", loop_seconds / seconds, at_least=0.8),
        is_held("by CPU time of all threads:", loop_cpu / cpu, at_least=0.5),
    ]
    print(f"by that of the main thread: {loop_cpu / main_cpu:.2f} (the clock on a machine with idle cores)")
    hash_cpu = min(cpu for _, cpu in hashes)
    print(f"a hash of the source:       {hash_cpu / loop_cpu:.2f} of the CPU time of the loop")
    are_held.append(peak < 200)
    print(f"peak memory:                {peak:.0f} MB (bar 200: {'held' if are_held[-1] else 'MISSED'})")
    return 0 if all(are_held) else 1


def is_held(what: str, ratio: float, *, at_least: float) -> bool:
    print(f"{what} {ratio:.2f} (bar {at_least}: {'held' if ratio >= at_least else 'MISSED'})")
    return ratio >= at_least


def figures_of(program: str, source: Path, target: Path) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-c", program, str(source), str(target)], capture_output=True, text=True, check=True
    )
    return [float(word) for word in done.stdout.split()]


def write_source(path: Path, size: int) -> int:
    """Write tasks as a generator does: four chunks of a thousand characters, each at least twice."""
    chance = random.Random(0)
    words = ["".join(chance.choices("etaoinshrdlucmfw", k=chance.randint(2, 10))) for _ in range(5000)]
    written = number = 0
    with path.open("w", encoding="utf-8") as file:
        while written < size:
            written += file.write(json.dumps(task(number, words, chance)) + "\n")
            number += 1
    return number


def task(number: int, words: list[str], chance: random.Random) -> dict[str, object]:
    path = f"data/processed/{number % 500:04}.txt"
    texts = [" ".join(chance.choices(words, k=115)) for _ in range(4)]
    retrieved = [
        {
            "id": 4 * number + place,
            "text": text,
            "source_path": path,
            "page": place,
            "section_title": "Introduction",
            "token_start": 200 * place,
            "token_end": 200 * place + 200,
            "score": chance.random(),
            "similarity_score": chance.random(),
            "reranker_score": None,
            "excerpt": text[:200],
            "ordinal": place,
        }
        for place, text in enumerate(texts, start=1)
    ]
    kept = ("id", "source_path", "page", "section_title", "token_start", "token_end", "score", "excerpt")
    return {
        "task_id": f"{chance.getrandbits(128):032x}",
        "task_type": ("qa", "qa", "qa", "summaries")[number % 4],
        "instruction": f"What is said about {words[number % 5000]}?",
        "expected_response": f"{' '.join(chance.choices(words, k=40))} [1], and {words[0]} [3].",
        "rag": {
            "prompt": f"You are a research paper assistant. {' '.join(chance.choices(words, k=40))}",
            "contexts": [f"[{place}] Page {place}\n{text}" for place, text in enumerate(texts, start=1)],
            "sources": [f"{path}#page={place}" for place in range(1, 5)],
            "scores": [entry["score"] for entry in retrieved],
            "citations": [{name: entry[name] for name in kept} for entry in retrieved],
            "retrieved": retrieved,
        },
        "metadata": {
            "source_path": path,
            "generator_run_id": "run-1",
            "selected_chunk_ids": [4 * number + 1],
        },
    }


if __name__ == "__main__":
    raise SystemExit(main())
