"""Compare bootstrap and sign-flip tests of many metrics with scipy, and time a whole comparison of two runs.

    python benchmarks/significance.py            # 10,000 samples, 20 metrics, 10,000 resamples
    python benchmarks/significance.py --full     # scipy does all of it too (about five minutes)

CPU time in one process. scipy does one metric at a time and needs the same time for each. So by default it
gets one metric for the bootstrap, and one metric with a tenth of the resamples for the test, and its time is
multiplied. Bars: the bootstrap 6 times as fast for continuous scores and 50 times for 0/1 scores, the test
100 times, a comparison within 5 seconds, all within 500 MB.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.stats import bootstrap, permutation_test

from auepora_eval.comparison.compare import compare_runs
from auepora_eval.core.scores import Scores
from auepora_eval.core.types import EvaluationRun, MetricResult, TargetCategory
from auepora_eval.stats.intervals import bca_mean_intervals
from auepora_eval.stats.significance import sign_flip_tests

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

Method = Literal["percentile", "BCa"]
METHODS: tuple[Method, ...] = ("percentile", "BCa")
BARS = {"continuous": 6.0, "0/1": 50.0, "test": 100.0, "comparison": 5.0, "memory": 500.0}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=10_000, help="samples (10,000)")
    parser.add_argument("--metrics", type=int, default=20, help="metrics (20)")
    parser.add_argument("--resamples", type=int, default=10_000, help="resamples (10,000)")
    parser.add_argument("--full", action="store_true", help="let scipy do all of it")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    smooth = rng.beta(2, 3, (args.samples, args.metrics))
    binary = (smooth > 0.4).astype(np.float64)
    shifted = rng.normal(0.002, 0.1, (args.samples, args.metrics))
    coins = binary - rng.integers(0, 2, binary.shape)
    print(f"{args.samples:,} samples x {args.metrics} metrics x {args.resamples:,} resamples; CPU seconds")
    held = []
    for label, columns, bar in (("continuous", smooth, "continuous"), ("0/1", binary, "0/1")):
        ours = cpu(partial(our_bootstrap, columns, args.resamples))
        theirs = {
            method: scipy_bootstrap(columns, args.resamples, method, full=args.full) for method in METHODS
        }
        for method, seconds in theirs.items():
            print(f"bootstrap, {label}: scipy {method} {seconds:.2f}, ours (BCa) {ours:.3f}", end="")
            print(f", {seconds / ours:.1f} times as fast")
        held.append(told(theirs["percentile"] / ours >= BARS[bar], f"{BARS[bar]:g} times, {label}"))
    theirs_test = scipy_test(shifted, args.resamples, full=args.full)
    for label, columns in (("continuous", shifted), ("of three values", coins)):
        ours = cpu(partial(sign_flip_tests, columns, resamples=args.resamples))
        print(
            f"sign flips, {label}: scipy {theirs_test:.1f}, ours {ours:.3f}, {theirs_test / ours:.0f} times"
        )
        held.append(told(theirs_test / ours >= BARS["test"], f"{BARS['test']:g} times, {label}"))
    runs = [a_run("a", smooth), a_run("b", np.clip(smooth + shifted, 0, 1))]
    start = time.perf_counter()
    compare_runs(*runs, resamples=args.resamples)
    wall = time.perf_counter() - start
    print(f"comparison of two runs: {wall:.2f} s by the clock")
    held.append(told(wall < BARS["comparison"], f"{BARS['comparison']:g} s"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"largest memory: {peak:.0f} MB" + (" (scipy's part of it included)" if args.full else ""))
    held.append(told(peak < BARS["memory"], f"{BARS['memory']:g} MB"))
    return int(not all(held))


def our_bootstrap(columns: Array, draws: int) -> None:
    bca_mean_intervals(columns, resamples=draws, draws_up_to=len(columns))


def scipy_bootstrap(columns: Array, draws: int, method: Method, *, full: bool) -> float:
    chosen = columns if full else columns[:, :1]
    batch = max(1, 4_000_000 // len(columns))

    def work() -> None:
        for values in chosen.T:
            bootstrap(
                (values,),
                np.mean,
                n_resamples=draws,
                batch=batch,
                method=method,
                rng=np.random.default_rng(0),
            )

    return cpu(work) * float(columns.shape[1] // chosen.shape[1])


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
