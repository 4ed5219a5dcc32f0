"""Baselines on a machine that wavers: how many nights fail though nothing changed; what is seen if it did?

    python benchmarks/baselines.py            # 40 months of each kind; about a minute
    python benchmarks/baselines.py --months 5

Every night 50 calls are recorded as `auepora bench-record` does it: what is worse fails, what is surely
better begins a new baseline, the rest joins the pool. "Pooled" is the same without new baselines. The share
of nights that fail is of 30 nights without a change. "Seen" is of months in which calls become twice as fast
after ten nights, and lose half of that after ten more: the share of them in which the 21st night fails.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from statistics import fmean, stdev

import numpy as np

from auepora_eval.runs.benchmark_baselines import Baseline, with_recordings
from auepora_eval.runs.benchmark_measurements import Measurement
from auepora_eval.runs.benchmark_rules import is_at_least, new_beginnings, regressions

CALLS, WITHIN, NIGHTS = 50, 0.1, 30
WAVERS = (0.02, 0.04, 0.06)
STEADY = [1.0] * NIGHTS
BETTER_AND_WORSE = [1.0] * 10 + [0.5] * 10 + [0.75]


def nights_that_fail(levels: Sequence[float], waver: float, seed: int, *, anew: bool) -> list[bool]:
    """For each night whether bench-record fails."""
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
            beginnings = new_beginnings([one], baselines) if anew else []
            baselines = with_recordings(baselines, [one], anew=beginnings)
    return failed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--months", type=int, default=40)
    months = range(parser.parse_args().months)
    print("| night to night | nights that fail | pooled | seen | pooled |\n|---:|---:|---:|---:|---:|")
    for waver in WAVERS:
        cells = []
        for anew in (True, False):
            found = [nights_that_fail(STEADY, waver, seed, anew=anew)[1:] for seed in months]
            cells.append(fmean(failed for month in found for failed in month))
        for anew in (True, False):
            found = [nights_that_fail(BETTER_AND_WORSE, waver, seed, anew=anew) for seed in months]
            cells.append(fmean(month[-1] for month in found))
        print(f"| {waver:.0%} | " + " | ".join(f"{cell:.1%}" for cell in cells) + " |")


if __name__ == "__main__":
    main()
