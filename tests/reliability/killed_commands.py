"""Kill the commands that read or write stored runs: python -m tests.reliability.killed_commands FOLDER.

One process imports everything once and forks for each kill, so that a kill costs milliseconds. It prints one
JSON object per command: how it ended without a kill, with each of the kills, and when it was run again.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from auepora_eval.cli.main import main
from tests.killing import forked

COMMANDS = {
    "score --run": "score --run a --metrics exact_match,token_f1 --id a2 --out runs --force",
    "compare --html": "compare a b --out runs --html page.html --force",
    "convert": "dataset convert d.jsonl converted.eval.json --force",
    "generate": "dataset generate demo --out tasks.jsonl --tasks qa --variants none --force",
    "compare": "compare a b --out runs --json",
}
# Calls of the operating system that give a file its content or its name, and how many of them to wait for.
MOMENTS = (("fsync", 1, False), ("fsync", 1, True), ("replace", 1, True))
SYSTEM = "def better(query):\n    return query[-1]\ndef worse(query):\n    return '1'\n"


def prepare() -> None:
    """Store two runs."""
    lines = [{"sample_id": f"s{n}", "query": f"q {n % 3}", "reference_answer": str(n % 3)} for n in range(30)]
    Path("d.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    Path("mine.py").write_text(SYSTEM, encoding="utf-8")
    for name, system in (("a", "worse"), ("b", "better")):
        run = f"run --dataset d.jsonl --system mine.py:{system} --metrics exact_match --id {name} --out runs"
        assert main(run.split()) == 0


def kill_all(results: int) -> None:
    for name, line in COMMANDS.items():
        words = line.split()
        main(words)  # in this process: the children have everything imported
        start = time.monotonic()
        quiet = forked(words, None)
        moments = (*MOMENTS, "open", (time.monotonic() - start) / 2)
        ends = [forked(words, moment) for moment in moments]
        line = json.dumps({"command": name, "ends": ends, "quiet": quiet, "again": forked(words, None)})
        os.write(results, f"{line}\n".encode())


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    results = os.dup(1)
    os.dup2(2, 1)  # the commands print too
    prepare()
    kill_all(results)
