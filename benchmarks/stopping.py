"""Measure runs that stop early: how often they are wrong, and how many samples they save.

    PYTHONPATH=. python benchmarks/stopping.py            # 1,000 runs of 2,000 samples each; some minutes
    PYTHONPATH=. python benchmarks/stopping.py --quick    # 100 runs of 500

Every run is examined after each sample, as by `auepora run` with `stop_when: clear`. Without an effect
(the truth is at the limit) any verdict is wrong, and at most alpha of the runs may have one: the bar is 0.05
and two standard errors of the simulation. The table also shows the error of an interval for one look that is
examined after each sample from the 20th on. With an effect: the number of samples, and the number that a run
of fixed size needs to detect the effect, known beforehand, four times in five.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from auepora_eval.core.verdict import Goal
from auepora_eval.decide.early_stop import GoalWatch, Known, check_fit
from auepora_eval.metrics.parse import parse_metric
from auepora_eval.stats.power import Spread, units_needed
from tests.builders import a_sample

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

ALPHA, FIRST_LOOK = 0.05, 20
SAMPLE = a_sample()


@dataclass
class Scene:
    """A system and a limit: `draw` returns the scores (or changes) of a run, in clusters of a size."""

    name: str
    goal: Goal
    draw: Callable[[np.random.Generator, int], Array]
    effect: float = 0.0
    sd: float = 0.0
    cluster: int = 1


def coins(chance: float) -> Callable[[np.random.Generator, int], Array]:
    return lambda rng, size: (rng.random(size) < chance).astype(np.float64)


def graded(mean: float) -> Callable[[np.random.Generator, int], Array]:
    return lambda rng, size: rng.beta(4 * mean, 4 * (1 - mean), size)


def changes(won: float, lost: float) -> Callable[[np.random.Generator, int], Array]:
    def draw(rng: np.random.Generator, size: int) -> Array:
        luck = rng.random(size)
        return np.where(luck < won, 1.0, np.where(luck < won + lost, -1.0, 0.0))

    return draw


def in_clusters(chance: float, size_of: int) -> Callable[[np.random.Generator, int], Array]:
    """Return scores where all samples of a cluster are right, or none: the strongest dependence."""
    return lambda rng, size: np.repeat(rng.random(size // size_of) < chance, size_of).astype(np.float64)


def scenes() -> list[Scene]:
    at_least = Goal("hit@5", "at least", 0.8)
    better, no_worse = Goal("hit@5", "better"), Goal("hit@5", "no worse", 0.02)
    found = [
        Scene("0/1 scores, truth 0.80, limit 0.80", at_least, coins(0.8)),
        Scene("0/1 scores, truth 0.50, limit 0.50", Goal("hit@5", "at least", 0.5), coins(0.5)),
        Scene("0/1 scores, truth 0.98, limit 0.98", Goal("hit@5", "at least", 0.98), coins(0.98)),
        Scene("graded scores, truth 0.60, limit 0.60", Goal("ndcg@5", "at least", 0.6), graded(0.6)),
        Scene("change, 5% won, 5% lost", better, changes(0.05, 0.05)),
        Scene("change, 20% won, 20% lost", better, changes(0.2, 0.2)),
        Scene("change at the margin of 0.02", no_worse, changes(0.05, 0.07)),
        Scene("clusters of 4 alike, truth 0.80", at_least, in_clusters(0.8, 4), cluster=4),
    ]
    for truth in (0.84, 0.88, 0.95, 0.70):
        sd = math.sqrt(truth * (1 - truth))
        found.append(
            Scene(f"0/1 scores, truth {truth:.2f}, limit 0.80", at_least, coins(truth), truth - 0.8, sd)
        )
    for won, lost in ((0.08, 0.04), (0.13, 0.05), (0.3, 0.1), (0.05, 0.15)):
        effect = won - lost
        sd = math.sqrt(won + lost - effect**2)
        name = f"change of {effect:+.2f}, {won:.0%} won, {lost:.0%} lost"
        found.append(Scene(name, better, changes(won, lost), effect, sd))
    return found


def stopped_at(scene: Scene, scores: Array) -> tuple[int, str | None]:
    """Return the number of samples at the verdict and its side, or the last number and None."""
    metric = check_fit(scene.goal, parse_metric(scene.goal.metric))
    # A change is the score of the candidate less that of a baseline.
    known = [Known(max(0.0, one), max(0.0, one)) for one in scores.tolist()]
    before = [Known(max(0.0, -one), max(0.0, -one)) for one in scores.tolist()]
    baseline: dict[str, Known] = {}
    watch = GoalWatch(scene.goal, metric, scene.cluster, ALPHA, baseline)
    for first in range(0, len(scores), scene.cluster):
        places = range(first, first + scene.cluster)
        if scene.goal.is_of_baseline:
            baseline[SAMPLE.sample_id] = before[first]
        watch.add([(SAMPLE, known[place]) for place in places])
        if watch.side is not None:
            return first + scene.cluster, watch.side
    return len(scores), None


def one_look_is_wrong(scene: Scene, scores: Array) -> bool:
    """Return whether a fixed-n interval, examined after each unit, ever excludes the limit."""
    units = scores.reshape(-1, scene.cluster).mean(axis=1)
    n = np.arange(1, len(units) + 1)
    means = np.cumsum(units) / n
    spread = np.sqrt(np.maximum(np.cumsum(units**2) / n - means**2, 0) * n / np.maximum(n - 1, 1) / n)
    threshold = -scene.goal.limit if scene.goal.kind == "no worse" else scene.goal.limit
    away = np.abs(means - threshold)[FIRST_LOOK:]
    return bool((away > 1.96 * spread[FIRST_LOOK:]).any())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=1_000, help="runs of each kind (1,000)")
    parser.add_argument("--samples", type=int, default=2_000, help="samples that a run has (2,000)")
    parser.add_argument("--quick", action="store_true", help="100 runs of 500 samples")
    args = parser.parse_args()
    runs, samples = (100, 500) if args.quick else (args.runs, args.samples)
    print(f"{runs:,} runs of {samples:,} samples of each kind, looked at after every sample; alpha {ALPHA}")
    held = True
    bar = ALPHA + 2 * math.sqrt(ALPHA * (1 - ALPHA) / runs)
    for scene in scenes():
        rng = np.random.default_rng(0)
        drawn = [scene.draw(rng, samples) for _ in range(runs)]
        ends = [stopped_at(scene, scores) for scores in drawn]
        if not scene.effect:
            wrong = sum(side is not None for _, side in ends) / runs
            naive = sum(one_look_is_wrong(scene, scores) for scores in drawn) / runs
            held = held and wrong <= bar
            verdict = "holds" if wrong <= bar else "MISSED"
            print(
                f"  {scene.name}: wrong {wrong:.3f} (at most {bar:.3f}: {verdict}); naive peeking {naive:.3f}"
            )
            continue
        right = "above" if scene.effect > 0 else "below"
        called = sum(side == right for _, side in ends) / runs
        wrong = sum(side is not None and side != right for _, side in ends) / runs
        used = float(np.mean([n for n, _ in ends]))
        planned = units_needed(scene.effect, Spread(scene.sd, scene.sd))
        print(
            f"  {scene.name}: called {called:.3f}, wrong side {wrong:.3f}; {used:.0f} of {samples:,} samples "
            f"on average, {1 - used / samples:.0%} saved; a fixed run is planned with {planned}"
        )
    return int(not held)


if __name__ == "__main__":
    raise SystemExit(main())
