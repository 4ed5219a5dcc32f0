"""Time the citation metrics and sentence splitting, and check their bars.

    python benchmarks/citations.py             # 10,000 answers with 10 citations each, 10 MB of text
    python benchmarks/citations.py --quick     # a tenth of it, to check that it runs

Answers, gold and texts are random, from a fixed seed. Each figure is CPU time, the best of three. The exit
code is 0 if all bars hold, 1 if one is missed.
"""

from __future__ import annotations

import argparse
import platform
import random
import sys
import time
from collections.abc import Callable
from typing import Any

from auepora_eval.core.scores import Batch
from auepora_eval.core.types import Document, EvaluationSample, Response, RetrievedDocument, SystemOutputs
from auepora_eval.metrics.parse import parse_metric
from auepora_eval.text.sentences import sentence_spans

EXIT_OK, EXIT_MISSED = 0, 1
MOST_SECONDS, LEAST_MEGABYTES = 5.0, 10.0
SPAN_METRICS = (
    "citation_span_accuracy",
    "citation_span_exact",
    "citation_span_perfect",
    "citation_span_good",
    "citation_precision",
    "citation_recall",
    "citation_f1",
)

Pairs = tuple[list[EvaluationSample], list[SystemOutputs]]


def best_of(times: int, work: Callable[[], Any]) -> float:
    """Return the smallest CPU time of several runs, in seconds."""
    found = []
    for _ in range(times):
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)


def cited_answers(count: int, citations: int, rng: random.Random) -> Pairs:
    """Answers that cite near the gold or elsewhere, in five files with paths, pages and overlapping spans."""
    samples, outputs = [], []
    for number in range(count):
        documents = [
            Document(f"d{place}", "", {"file_path": f"docs/file_{place}.pdf", "text_missing": True})
            for place in range(5)
        ]
        gold = []
        for _ in range(citations):
            start = rng.randrange(3000)
            gold.append(
                {
                    "file_name": f"file_{rng.randrange(5)}.pdf",
                    "page_number": rng.randrange(1, 3),
                    "start_char": start,
                    "end_char": start + rng.randrange(50, 400),
                }
            )
        cited = [
            {
                **one,
                "start_char": max(0, one["start_char"] + rng.randrange(-40, 40)),  # type: ignore[operator]
                "end_char": one["end_char"] + rng.randrange(-5, 40),  # type: ignore[operator]
            }
            for one in gold
        ]
        samples.append(EvaluationSample(f"q{number}", "a query", metadata={"citations": gold}))
        hits = [RetrievedDocument(doc, 1.0, rank) for rank, doc in enumerate(documents, 1)]
        outputs.append(SystemOutputs(hits, Response("An answer.", metadata={"citations": cited})))
    return samples, outputs


def prose(size: int, rng: random.Random) -> str:
    """English-looking text with decimals, abbreviations, quotes and paragraphs."""
    letters = "etaoinshrdlucmfw"
    words = ["".join(rng.choices(letters, k=rng.randint(1, 9))) for _ in range(5000)]
    ends = (
        ". ",
        ". ",
        ". ",
        ".\n",
        ".\n\n",
        "? ",
        '." ',
        " (3.5). ",
        ", e.g. this. ",
        " by Dr. Brae. ",
        ".[1] ",
    )
    pieces, total = [], 0
    while total < size:
        piece = " ".join(rng.choices(words, k=rng.randint(8, 24))).capitalize() + rng.choice(ends)
        pieces.append(piece)
        total += len(piece)
    return "".join(pieces)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the work")
    scale = 10 if parser.parse_args().quick else 1
    rng = random.Random(0)
    samples, outputs = cited_answers(10_000 // scale, 10, rng)
    metrics = [parse_metric(name) for name in SPAN_METRICS]

    def score() -> None:
        batch = Batch(samples, outputs)
        for metric in metrics:
            metric.score_batch(batch)

    seconds = best_of(3, score)
    text = prose(10_000_000 // scale, rng)
    megabytes = len(text.encode()) / 1e6
    rate = megabytes / best_of(3, lambda: sentence_spans(text))
    print(f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}")
    print(
        f"{len(samples):,} answers x 10 citations through {len(metrics)} span metrics: {seconds:.2f} s "
        f"(bar {MOST_SECONDS / scale:g} s)"
    )
    print(f"sentence splitting, {megabytes:.1f} MB: {rate:.1f} MB/s (bar {LEAST_MEGABYTES:g} MB/s)")
    return EXIT_OK if seconds <= MOST_SECONDS / scale and rate >= LEAST_MEGABYTES else EXIT_MISSED


if __name__ == "__main__":
    sys.exit(main())
