"""Measure the false alarms of `auepora bench-record` on a noisy machine, and the regressions that it finds.

    python benchmarks/baselines.py            # 40 months of each kind; about a minute
    python benchmarks/baselines.py --months 5

Every night 50 calls are recorded as `auepora bench-record` does it: a worse night fails, a significantly
better one starts a new baseline, and every other one joins the pool. "Pooled" is the same without new
baselines. The share of nights that fail is that of 30 nights without a change. "Seen" is for months in which
calls become twice as fast after ten nights, and lose half of that after ten more: the share of these months
in which the 21st night fails.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from statistics import fmean, stdev

import numpy as np

from auepora_eval.history.bench import Baseline, Measurement, with_recordings
from auepora_eval.history.bench_rules import baseline_restarts, is_at_least, regressions

CALLS, WITHIN, NIGHTS = 50, 0.1, 30
WAVERS = (0.02, 0.04, 0.06)
STEADY = [1.0] * NIGHTS
BETTER_AND_WORSE = [1.0] * 10 + [0.5] * 10 + [0.75]


def nights_that_fail(levels: Sequence[float], waver: float, seed: int, *, restarts: bool) -> list[bool]:
    """Return for each night whether bench-record fails."""
    rng = np.random.default_rng(seed)
    baselines: dict[str, Baseline] = {}
    failed = []
    for night, level in enumerate(levels):
        mean = level * rng.normal(1, waver)
        seconds = np.abs(rng.normal(mean, WITHIN * mean, CALLS)).tolist()
        stamp = f"2026-03-{night + 1:02}T00:00:00Z"
        one = Measurement("search", CALLS, fmean(seconds), stdev(seconds), timestamp=stamp, source=stamp)
        worse = regressions([one], baselines)
        failed.append(any(is_at_least(each.severity, "medium") for each in worse))
        if not failed[-1]:
            beginnings = baseline_restarts([one], baselines) if restarts else []
            baselines = with_recordings(baselines, [one], restarts=beginnings)
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--months", type=int, default=40)
    months = range(parser.parse_args().months)
    print("| night to night | nights that fail | pooled | seen | pooled |\n|---:|---:|---:|---:|---:|")
    for waver in WAVERS:
        cells = []
        for restarts in (True, False):
            found = [nights_that_fail(STEADY, waver, seed, restarts=restarts)[1:] for seed in months]
            cells.append(fmean(failed for month in found for failed in month))
        for restarts in (True, False):
            found = [nights_that_fail(BETTER_AND_WORSE, waver, seed, restarts=restarts) for seed in months]
            cells.append(fmean(month[-1] for month in found))
        print(f"| {waver:.0%} | " + " | ".join(f"{cell:.1%}" for cell in cells) + " |")


if __name__ == "__main__":
    main()
