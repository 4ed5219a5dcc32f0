"""Time `auepora dataset generate`: 1,000 pages of 3,000 characters and a tenth of them, from a fixed seed.

    python benchmarks/generator.py               # 1,000 pages
    python benchmarks/generator.py --pages 100   # to check that it runs

The pages are invented prose: sentences with names, dates, amounts and definitions, with headings between
them, so that every kind of question occurs. Ten pages make a document. The command runs in its own process,
as a user runs it. Times are of the CPU. The exit code is 0 if both bars hold, 1 if one is missed.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

EXIT_OK, EXIT_MISSED = 0, 1
MOST_SECONDS = 60  # of 1,000 pages
MOST_TIMES = 13  # ten times as many pages, and the start of the process
PAGE = 3_000
PAGES_A_DOCUMENT = 10
SYLLABLES = "ba den fo gri hal kem lor mun nar ost pel quin ras sol tar ul ven wes yor zan".split()
THINGS = "harbour mill bridge library tower ferry reservoir school museum station orchard quarry".split()
NOUNS = "rooms boats visitors turbines books windows engineers trees lamps tables gates wells".split()
VERBS = "employs holds contains receives owns stores carries keeps".split()
TRADES = "engineer painter teacher keeper captain surgeon".split()
MONTHS = "January March April June July September October December".split()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Time auepora dataset generate.")
    parser.add_argument("--pages", type=int, default=1_000, help="pages of 3,000 characters (1,000)")
    parser.add_argument("--per-document", type=int, default=40, help="most questions per document (40)")
    args = parser.parse_args(arguments)
    small, large = (timed(pages, args.per_document) for pages in (args.pages // 10, args.pages))
    limit = MOST_SECONDS * args.pages / 1_000
    bars = [
        (large <= limit, f"{large:.1f} s (at most {limit:g})"),
        (
            large <= MOST_TIMES * small,
            f"{large / small:.1f} times a tenth of the pages (at most {MOST_TIMES})",
        ),
    ]
    for holds, what in bars:
        print(f"{'holds' if holds else 'MISSED'}: {what}")
    return EXIT_OK if all(holds for holds, _ in bars) else EXIT_MISSED


def timed(pages: int, per_document: int) -> float:
    """Print what is generated from a number of pages. Return the CPU seconds."""
    before = cpu_seconds()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "documents"
        characters = write_documents(folder, pages)
        report = generated(folder, Path(place) / "out", per_document)
    seconds = cpu_seconds() - before
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{pages} pages, {characters / 1e6:.2f} million characters, {report['documents']} documents")
    tasks = sum(report["tasks"].values())
    print(f"{report['passages']} passages, {report['questions']} questions, {tasks} tasks")
    print(f"{seconds:.1f} s, {pages / seconds:.0f} pages/s, {peak:.0f} MB at the most")
    return seconds


def cpu_seconds() -> float:
    """Return the CPU time of the processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def generated(folder: Path, out: Path, per_document: int) -> Any:
    """Run the command. Return its report."""
    command = [sys.executable, "-m", "auepora_eval", "dataset", "generate", str(folder)]
    command += ["--out", str(out / "offline_dataset.jsonl"), "--per-document", str(per_document), "--json"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return json.loads(done.stdout)


def write_documents(folder: Path, pages: int) -> int:
    """Write the documents. Return the number of characters."""
    folder.mkdir()
    chance = random.Random(0)
    total = 0
    for number in range(0, pages, PAGES_A_DOCUMENT):
        title = f"The {name(chance)} {chance.choice(THINGS)}"
        text = f"# {title}\n\n" + "".join(page(chance) for _ in range(min(PAGES_A_DOCUMENT, pages - number)))
        (folder / f"report_{number:05}.md").write_text(text, encoding="utf-8")
        total += len(text)
    return total


def page(chance: random.Random) -> str:
    """A heading and prose of about 3,000 characters."""
    parts = [f"## {name(chance)} and its {chance.choice(THINGS)}\n\n"]
    sentences = written(chance)
    while sum(map(len, parts)) < PAGE - 2:
        parts.append(next(sentences) + (" " if chance.random() < 0.85 else "\n\n"))
    return "".join(parts).rstrip() + "\n\n"


def written(chance: random.Random) -> Iterator[str]:
    """Yield sentences of many kinds, without end."""
    while True:
        who, where = f"{name(chance)} {name(chance)}", name(chance)
        thing, year = chance.choice(THINGS), chance.randint(1700, 2030)
        day = f"{chance.randint(1, 28)} {chance.choice(MONTHS)} {year}"
        many, some = chance.choice(NOUNS), chance.choice(NOUNS)
        yield chance.choice(
            (
                f"The {where} {thing} was opened on {day} by {who}.",
                f"{who} is a {chance.choice(TRADES)} who came to {where} in {year}.",
                f"The {where} {thing} {chance.choice(VERBS)} {chance.randint(3, 9000):,} {many}.",
                f"In {year}, the {where} {thing} received {chance.randint(20, 900)} {many}.",
                f"It is said that the old {thing} had stood there for longer than anyone could remember.",
                f"The {thing} at {where} is {chance.randint(10, 400)} metres long and was paid for by {who}.",
                f"Nobody knows why, but {where} was left alone when the {thing} near it was taken down.",
                f"The {where} {thing} was closed because the {many} had been sold to {who}.",
                f"A visit costs {chance.randint(2, 60)} crowns, and the {some} are inspected every "
                f"{chance.randint(2, 30)} days.",
            )
        )


def name(chance: random.Random) -> str:
    """An invented name."""
    return "".join(chance.choices(SYLLABLES, k=chance.randint(2, 3))).capitalize()


if __name__ == "__main__":
    sys.exit(main())
