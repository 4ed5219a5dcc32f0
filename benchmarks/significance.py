"""Compare sign-flip tests of many metrics with scipy, and time intervals and a whole comparison of two runs.

    python benchmarks/significance.py            # 10,000 samples, 20 metrics, 10,000 resamples
    python benchmarks/significance.py --full     # scipy does all of it too (some minutes)

CPU time in one process. scipy does one metric at a time and needs the same time for each. So by default it
gets one metric with a tenth of the resamples, and its time is multiplied. Bars: the test 100 times as fast,
all intervals of a comparison within 0.5 seconds, a comparison within 5 seconds, all within 500 MB.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import permutation_test

from auepora_eval.comparison.compare import compare_runs
from auepora_eval.core.scores import Scores
from auepora_eval.core.types import EvaluationRun, MetricResult, TargetCategory
from auepora_eval.stats.intervals import mean_change_interval, mean_interval
from auepora_eval.stats.significance import sign_flip_test

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

BARS = {"test": 100.0, "intervals": 0.5, "comparison": 5.0, "memory": 500.0}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=10_000, help="samples (10,000)")
    parser.add_argument("--metrics", type=int, default=20, help="metrics (20)")
    parser.add_argument("--resamples", type=int, default=10_000, help="resamples (10,000)")
    parser.add_argument("--full", action="store_true", help="let scipy do all of it")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    before = rng.beta(2, 3, (args.samples, args.metrics))
    gains = rng.normal(0.002, 0.1, (args.samples, args.metrics))
    after = np.clip(before + gains, 0, 1)
    print(f"{args.samples:,} samples x {args.metrics} metrics x {args.resamples:,} resamples; CPU seconds")
    theirs = scipy_test(gains, args.resamples, full=args.full)
    ours = cpu(lambda: [sign_flip_test(one, resamples=args.resamples) for one in gains.T])
    print(f"sign flips: scipy {theirs:.1f}, ours {ours:.3f}, {theirs / ours:.0f} times as fast")
    held = [told(theirs / ours >= BARS["test"], f"{BARS['test']:g} times")]
    spent = cpu(lambda: intervals(before, after))
    print(f"intervals of values and changes: {spent:.3f}")
    held.append(told(spent < BARS["intervals"], f"{BARS['intervals']:g} s"))
    start = time.perf_counter()
    compare_runs(a_run("a", before), a_run("b", after), resamples=args.resamples)
    wall = time.perf_counter() - start
    print(f"comparison of two runs: {wall:.2f} s by the clock")
    held.append(told(wall < BARS["comparison"], f"{BARS['comparison']:g} s"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"largest memory: {peak:.0f} MB" + (" (scipy's part of it included)" if args.full else ""))
    held.append(told(peak < BARS["memory"], f"{BARS['memory']:g} MB"))
    return int(not all(held))


def intervals(before: Array, after: Array) -> None:
    for one, other in zip(before.T, after.T, strict=True):
        for values in (one, other):
            mean_interval(values, bounds=(0.0, 1.0))
        mean_change_interval(other - one)


def scipy_test(columns: Array, draws: int, *, full: bool) -> float:
    chosen, some = (columns, draws) if full else (columns[:, :1], max(1, draws // 10))
    batch = max(1, 1_000_000 // len(columns))

    def work() -> None:
        for values in chosen.T:
            permutation_test(
                (values, np.zeros_like(values)),
                lambda x, y, axis: np.mean(x - y, axis=axis),
                permutation_type="samples",
                n_resamples=some,
                batch=batch,
                vectorized=True,
                rng=np.random.default_rng(0),
            )

    return cpu(work) * float(columns.shape[1] // chosen.shape[1]) * draws / some


def a_run(name: str, columns: Array) -> EvaluationRun:
    """Return a run as it is stored: one column per metric."""
    ids = [f"s{n}" for n in range(len(columns))]
    results = [
        MetricResult(
            f"recall@{k}",
            TargetCategory.RETRIEVAL_RELEVANCE,
            float(values.mean()),
            {"num_failed": 0},
            Scores(ids, values),
        )
        for k, values in enumerate(columns.T, start=1)
    ]
    return EvaluationRun(name, name, "made", "same", results, [], [])


def cpu(work: Callable[[], object]) -> float:
    """Return the CPU seconds of one call, of all threads."""
    start = time.process_time()
    work()
    return time.process_time() - start


def told(held: bool, bar: str) -> bool:
    print("  held" if held else "  MISSED", f"- {bar}")
    return held


if __name__ == "__main__":
    raise SystemExit(main())
