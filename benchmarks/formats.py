"""Compare loading and checking a large `.eval.json` with the bare parse of the fastest JSON libraries.

    python benchmarks/formats.py            # 200 MB: 20,000 queries and as many documents
    python benchmarks/formats.py --quick    # a tenth of it, to check that it runs

Each contestant runs in its own process, three times in turn. The best CPU time counts. The exit code is 0 if
the bars hold: at most 3 times the bare parse, and a peak memory of less than 4 times the file.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

EXIT_OK, EXIT_MISSED = 0, 1
MOST_TIMES, MOST_MEMORY = 3.0, 4.0

CONTESTANTS = {
    "json.loads": "import json; json.loads(open(path, 'rb').read())",
    "orjson.loads": "import orjson; orjson.loads(open(path, 'rb').read())",
    "msgspec.json.decode": "import msgspec; msgspec.json.decode(open(path, 'rb').read())",
    "auepora: checked samples": "from auepora_eval.io.loader import load_dataset; load_dataset(path)",
}
OURS = "auepora: checked samples"
PROGRAM = """
import sys, time
path = sys.argv[1]
started = time.process_time()
{call}
seconds = time.process_time() - started
# What getrusage calls the peak is that of the parent, if that was larger when it forked.
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(seconds, peak * 1024 / 1e6)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description="checked loading of .eval.json against a bare parse")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.eval.json"
        make(path, 2_000 if args.quick else 20_000)
        megabytes = path.stat().st_size / 1e6
        print(f"{megabytes:.0f} MB, Python {sys.version.split()[0]}, best of 3 in turn\n")
        best = measured(path)
    bare = min(seconds for name, (seconds, _) in best.items() if name != OURS)
    print("| | CPU s | times the fastest parse | peak MB | times the file |\n|---|---:|---:|---:|---:|")
    for name, (seconds, peak) in best.items():
        print(f"| {name} | {seconds:.2f} | {seconds / bare:.2f} | {peak:.0f} | {peak / megabytes:.2f} |")
    seconds, peak = best[OURS]
    bars = [
        ("CPU, times the fastest parse", seconds / bare, MOST_TIMES),
        ("peak memory, times the file", peak / megabytes, MOST_MEMORY),
    ]
    print()
    for name, value, most in bars:
        print(f"- {'holds' if value <= most else 'MISSED'}: {name}: {value:.2f} (at most {most:g})")
    return EXIT_OK if all(value <= most for _, value, most in bars) else EXIT_MISSED


def measured(path: Path) -> dict[str, tuple[float, float]]:
    """(CPU seconds, peak MB) of each contestant that is installed."""
    best: dict[str, tuple[float, float]] = {}
    for _ in range(3):
        for name, call in CONTESTANTS.items():
            words = [sys.executable, "-c", PROGRAM.format(call=call), str(path)]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"not measured: {name}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
                continue
            seconds, peak = map(float, done.stdout.split())
            before = best.get(name, (seconds, peak))
            best[name] = (min(seconds, before[0]), min(peak, before[1]))
    return best


def make(path: Path, size: int) -> None:
    """A dataset of random words from a fixed seed: about 10 KB of document a query."""
    draw = random.Random(0)
    words = ["".join(draw.choices("aabcdeeefghiiklmnoorstuv", k=draw.randint(2, 10))) for _ in range(5_000)]

    def text(count: int) -> str:
        return " ".join(draw.choices(words, k=count))

    documents = [
        {
            "document_id": f"doc_{n}",
            "title": text(4),
            "content": text(1_350),
            "file_path": f"docs/doc_{n}.pdf",
            "metadata": {"author": text(2), "word_count": 1_350},
        }
        for n in range(size)
    ]
    queries = [
        {
            "query_id": f"query_{n}",
            "query_text": f"{text(9)}?",
            "query_type": "factual",
            "difficulty": "medium",
            "relevant_documents": [f"doc_{draw.randrange(size)}" for _ in range(3)],
            "ground_truth_answer": text(20),
            "citations": [
                {
                    "file_name": f"doc_{n}.pdf",
                    "page_number": 1,
                    "start_char": 10,
                    "end_char": 90,
                    "confidence_score": 0.9,
                }
            ],
            "metadata": {"expected_answer_length": 120},
        }
        for n in range(size)
    ]
    document = {"dataset_id": "large", "name": "Large", "version": "1.0.0", "queries": queries}
    path.write_text(json.dumps({**document, "documents": documents}))


if __name__ == "__main__":
    sys.exit(main())
