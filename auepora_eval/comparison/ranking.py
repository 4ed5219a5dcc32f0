"""Several runs at once: which is the best of them on each metric, and how sure is its rank?

All pairs are tested, with Holm's correction over all pairs and metrics together. The tests bound the ranks: a
run is below all that are significantly better, and above all that are significantly worse.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from ..core.types import EvaluationRun, Target, TargetCategory
from ..core.verdict import Verdict
from ..errors import PlanError
from .checks import (
    data_mismatches,
    failed_by_metric,
    failed_calls,
    left_unscored,
    snapshot_notes,
    stopping_notes,
    value_notes,
)
from .compare import Comparison, Margin, MetricComparison, compared_family
from .paired_tests import RESAMPLES, judge_notes, tested_pairs
from .pairs import Pairs, pairs_of
from .regressions import NO_QUALITY


@dataclass(frozen=True)
class Standing:
    """One run on one metric. Rank 1 is the best; `beats` has the numbers of the runs it is better than.

    `rank_interval` has the ranks that the tests leave open. Times of one run each have no rank and no best.
    """

    value: float
    interval: tuple[float, float] | None
    rank: int | None
    rank_interval: tuple[int, int] | None
    beats: tuple[int, ...]
    best: bool


@dataclass(frozen=True)
class MetricRanking:
    """All runs on one metric, in the order in which they were given."""

    name: str
    target: Target
    higher_is_better: bool
    unit: str
    standings: list[Standing]


@dataclass(frozen=True)
class Ranking:
    """Several runs on the same samples: each metric's standings, and the comparison of every pair.

    `systems` are the names of the systems; where two are the same, the ids of the runs.
    """

    run_ids: list[str]
    systems: list[str]
    alpha: float
    metrics: list[MetricRanking]
    pairs: list[Comparison]
    notes: list[str] = field(default_factory=list)
    mismatches: list[str] = field(default_factory=list)


def rank_runs(
    runs: Sequence[EvaluationRun],
    *,
    alpha: float = 0.05,
    seed: int = 0,
    margin: Margin = None,
    resamples: int = RESAMPLES,
    allow_mismatch: bool = False,
) -> Ranking:
    """Compare each run with each other one, and rank them on every metric that all have.

    A metric that one of them lacks is left out, and does not make the others prove more.
    """
    if len(runs) < 2:
        raise PlanError("a ranking needs two runs or more.")
    mismatches = data_mismatches(runs, allowed=allow_mismatch)
    pairings, left_out = _shared_pairings(runs, mismatches, allow_mismatch=allow_mismatch)
    by_pair = {
        pair: [tested_pairs(one, seed=seed, resamples=resamples) for one in each]
        for pair, each in pairings.items()
    }
    everything = [one for tests in by_pair.values() for one in tests]
    metrics, _ = compared_family(everything, margin, alpha)
    compared, rest = {}, iter(metrics)
    for (x, y), tested in by_pair.items():
        names = (runs[x].evaluation_id, runs[y].evaluation_id, runs[x].system_name, runs[y].system_name)
        notes = [*judge_notes(tested), *snapshot_notes(runs[x], runs[y])]
        compared[x, y] = Comparison(*names, alpha, [next(rest) for _ in tested], left_out, notes)
    return Ranking(
        [run.evaluation_id for run in runs],
        _names(runs),
        alpha,
        _rankings(len(runs), compared),
        list(compared.values()),
        # What holds for several pairs is said once.
        [
            *dict.fromkeys([*stopping_notes(*runs), *(n for one in compared.values() for n in one.notes)]),
            *value_notes((one.pairs.name for one in everything), *runs),
            *_left_out_notes(left_out),
            *_failure_notes(runs, pairings),
        ],
        sorted(set(mismatches)),
    )


def _shared_pairings(
    runs: Sequence[EvaluationRun], mismatches: list[str], *, allow_mismatch: bool
) -> tuple[dict[tuple[int, int], list[Pairs]], dict[str, str]]:
    """Of each pair of runs the metrics that every pair can be compared on; and why not the others."""
    pairings: dict[tuple[int, int], list[Pairs]] = {}
    why: dict[str, str] = {}
    for pair in combinations(range(len(runs)), 2):
        a, b = (runs[place] for place in pair)
        pairings[pair], reasons = pairs_of([a], [b], mismatches, allow_mismatch=allow_mismatch)
        names = f"({a.evaluation_id} and {b.evaluation_id})"
        why |= {name: f"{reason} {names}" for name, reason in reasons.items() if name not in why}
    for name in why:
        lacking = [run.evaluation_id for run in runs if name not in {result.name for result in run.results}]
        if lacking:
            why[name] = f"not in {', '.join(lacking)}"
    shared = {pair: [one for one in each if one.a.name not in why] for pair, each in pairings.items()}
    return shared, why


def _left_out_notes(left_out: Mapping[str, str]) -> list[str]:
    names: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        names.setdefault(reason, []).append(name)
    return [f"Not compared ({why}): {', '.join(each)}" for why, each in names.items()]


def _failure_notes(
    runs: Sequence[EvaluationRun], pairings: Mapping[tuple[int, int], Sequence[Pairs]]
) -> list[str]:
    """How many calls of each run failed, and which values they make depend on the other runs."""
    every = [one for each in pairings.values() for one in each]
    shared = {one.a.name for one in every if one.a.target is not TargetCategory.LATENCY}
    notes = []
    for run, name in zip(runs, _names(runs), strict=True):
        scored = [result for result in run.results if result.name in shared]
        counts = [
            (one.coverage.failed - failed_by_metric(one), one.coverage.concerned, one.name) for one in scored
        ]
        failures = failed_calls(name, counts)
        notes += [f"{failures}; each counts as wrong"] if failures else []
        notes += [
            f"{left_unscored(one.name, [(failed_by_metric(one), one.coverage.concerned, name)])}"
            for one in scored
            if failed_by_metric(one)
        ]
    return notes


def best_of_the_others(ranking: Ranking, metric: str | None = None) -> tuple[int, str | None]:
    """The number of the best run but for the first, and by which metric: the first metric of quality."""
    candidates = [one for one in ranking.metrics if metric is None or one.name == metric]
    if not candidates:
        return 1, None
    # How good answers and documents are comes before times and variety.
    chosen = min(candidates, key=lambda one: one.target in NO_QUALITY)
    others = range(1, len(ranking.run_ids))
    sign = -1 if chosen.higher_is_better else 1

    def order(place: int) -> tuple[bool, float]:
        value = chosen.standings[place].value
        return math.isnan(value), sign * value  # NaN is neither above nor below a number

    return min(others, key=order), chosen.name


def _names(runs: Sequence[EvaluationRun]) -> list[str]:
    """Return distinct names of the runs: their systems, or their ids if two systems are the same."""
    systems = [run.system_name for run in runs]
    return systems if len(set(systems)) == len(runs) else [run.evaluation_id for run in runs]


def _rankings(count: int, compared: Mapping[tuple[int, int], Comparison]) -> list[MetricRanking]:
    # The pairs with the first run have every run once: the first as the baseline, all others as candidates.
    with_first = [comparison.metrics for (first, _), comparison in compared.items() if first == 0]
    rankings = []
    for pairs in zip(*with_first, strict=True):
        metric = pairs[0]
        # (winner, other) of each pair with a significant difference
        wins = set()
        for (a, b), comparison in compared.items():
            verdict = comparison[metric.name].verdict
            if verdict.is_significant:
                wins.add((b, a) if verdict is Verdict.BETTER else (a, b))
        standings = _standings(count, pairs, wins)
        rankings.append(
            MetricRanking(metric.name, metric.target, metric.higher_is_better, metric.unit, standings)
        )
    return rankings


def _standings(count: int, pairs: Sequence[MetricComparison], wins: set[tuple[int, int]]) -> list[Standing]:
    values = [pairs[0].baseline, *(one.candidate for one in pairs)]
    intervals = [pairs[0].baseline_interval, *(one.candidate_interval for one in pairs)]
    sign = -1 if pairs[0].higher_is_better else 1
    is_tested = not any(one.test.not_tested for one in pairs)
    standings = []
    for place, (value, interval) in enumerate(zip(values, intervals, strict=True)):
        beats = tuple(other for other in range(count) if (place, other) in wins)
        beaten = sum((other, place) in wins for other in range(count))
        # Equal values share the better rank: 1, 1, 3.
        rank = 1 + sum(sign * other < sign * value for other in values)
        possible = (1 + beaten, count - len(beats))
        standings.append(
            Standing(
                value,
                interval,
                rank if is_tested else None,
                possible if is_tested else None,
                beats,
                is_tested and rank == 1,
            )
        )
    return standings
