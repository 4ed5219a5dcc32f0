"""Compare a sweep over 100,000 labelled rows and 19 thresholds with a plain loop over thresholds and rows.

    python benchmarks/labels.py           # 100,000 rows; the loop runs on a tenth of them
    python benchmarks/labels.py --rows 1000000

Ours includes the cross-validation in five folds and the bootstrap interval. The loop only counts the
confusion tables. Bars: under 1 second for 100,000 rows, and equal tables.
"""

from __future__ import annotations

import argparse
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from auepora_eval.labels.sweep import THRESHOLDS, ScoredLabels, sweep
from auepora_eval.text.label_terms import LABELS

T = TypeVar("T")
MOST_SECONDS = 1.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000, help="labelled rows (100,000)")
    parser.add_argument("--rounds", type=int, default=5, help="how often ours runs (5)")
    args = parser.parse_args()
    rng = random.Random(0)
    labels = [rng.choice(LABELS) for _ in range(args.rows)]
    scores = [round(rng.random(), 3) for _ in range(args.rows)]
    scenarios = [f"scenario {rng.randrange(10)}" for _ in range(args.rows)]
    few = max(1, args.rows // 10)
    loop, tables = timed(1, lambda: plain_loop(labels[:few], scores[:few]))
    check = sweep(ScoredLabels(labels[:few], scores[:few]), folds=0).parts[0].rows
    for threshold, row in zip(THRESHOLDS, check, strict=True):
        right = sum(tables[threshold][label, label] for label in LABELS)
        assert abs((row["accuracy"] or 0.0) - right / few) < 1e-12
    data = ScoredLabels(labels, scores, scenarios=scenarios)
    whole, _ = timed(args.rounds, lambda: sweep(data))
    parts, _ = timed(args.rounds, lambda: sweep(data, per_scenario=True))
    print(f"{args.rows:,} rows x {len(THRESHOLDS)} thresholds, best of {args.rounds}")
    print(f"plain loop ({few:,} rows):     {loop:.3f} s, {few / loop:,.0f} rows/s, tables only")
    print(f"auepora, everything:         {whole:.3f} s, {args.rows / whole:,.0f} rows/s")
    print(f"auepora, per scenario (10):  {parts:.3f} s, {args.rows / parts:,.0f} rows/s")
    held = max(whole, parts) < MOST_SECONDS * args.rows / 100_000
    print("held" if held else "MISSED", f"- under {MOST_SECONDS:g} s for 100,000 rows")
    return int(not held)


def plain_loop(labels: list[str], scores: list[float]) -> dict[float, Counter[tuple[str, str]]]:
    """The simplest implementation."""
    tables = {}
    for threshold in THRESHOLDS:
        table: Counter[tuple[str, str]] = Counter()
        for label, score in zip(labels, scores, strict=True):
            table[label, "accurate" if score > threshold else "hallucination"] += 1
        tables[threshold] = table
    return tables


def timed(rounds: int, work: Callable[[], T]) -> tuple[float, T]:
    """Return the best time of several runs, and the result."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
    return best, result


if __name__ == "__main__":
    raise SystemExit(main())
