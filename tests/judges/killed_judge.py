"""Kill `auepora judge` at random moments: python -m tests.judges.killed_judge FOLDER URL.

One process imports everything once and forks for each kill, so that a kill costs milliseconds. The key that a
session sends to the server is its number; the verdicts that it left are kept as verdicts.NUMBER.jsonl.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import time
from pathlib import Path

from auepora_eval.cli.main import main
from tests.judges.functions import book_of
from tests.killing import forked

RUN, KILLS, CONCURRENCY = "one", 20, 4
SAMPLES = 80


def prepare(out: str = "runs", limit: int = SAMPLES) -> None:
    """Store the run `one`."""
    system = "auepora_eval.demo.systems:bm25"
    run = f"run --dataset demo --system {system} --limit {limit} --metrics recall@5 --id {RUN} --out {out}"
    assert main(run.split()) == 0


def judge_words(url: str, out: str = "runs") -> list[str]:
    return f"judge {RUN} --judge {url}#m --mode label --out {out}".split()


def with_key(words: list[str], concurrency: int) -> list[str]:
    return [*words, "--api-key-env", "SESSION", "--concurrency", str(concurrency)]


def kill_all(url: str) -> None:
    moments = random.Random(17)
    words = with_key(judge_words(url, "killed"), CONCURRENCY)
    path = Path(f"killed/{RUN}.run.db")
    for number in range(KILLS + 1):
        os.environ["SESSION"] = f"session-{number}"
        forked(words, moments.uniform(0.05, 0.25) if number < KILLS else None)
        Path(f"verdicts.{number}.json").write_text(json.dumps([*book_of(path)]), encoding="utf-8")


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    prepare("quiet")
    shutil.copytree("quiet", "killed")
    os.environ["SESSION"] = "quiet"
    start = time.monotonic()
    # In this process: the children have everything imported.
    assert main(with_key(judge_words(sys.argv[2], "quiet"), 32)) == 0
    kill_all(sys.argv[2])
