"""Simulate how often 95% intervals contain the truth, how wide they are, and how often tests are significant.

    python benchmarks/interval_coverage.py            # 2,000 runs per cell, some minutes
    python benchmarks/interval_coverage.py --quick    # 200 runs and fewer sizes, below 20 seconds

Prints Markdown. A cell is the share of runs whose interval contains the truth and, in brackets, the mean
width over that of Student's interval with the true standard deviation. Intervals of changes are those that
are printed: cut at 0, or extended to it, where the test says so. Exit code 1 if a cell is below 0.93 by more
than chance explains, except in the scenes that LIMITS names, where no method is known to do better.
"""

from __future__ import annotations

import argparse
import math
import time
import zlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

from auepora_eval.comparison.compare import ONE_WAY
from auepora_eval.comparison.paired_tests import tested_pairs
from auepora_eval.comparison.pairs import Pairs
from auepora_eval.core.metrics_base import SampleMetric
from auepora_eval.core.scores import Scores
from auepora_eval.core.types import MetricResult
from auepora_eval.metrics.labels import LabelMacroF1
from auepora_eval.metrics.parse import parse_metric
from auepora_eval.stats.arrays import Array, Counts, Indices, Mask
from auepora_eval.stats.classification import cohen_kappa, matthews, table_interval
from auepora_eval.stats.intervals import (
    MANY,
    Interval,
    aggregate_units,
    agreeing_with_test,
    change_size,
    mean_change_interval,
    mean_interval,
    mean_units,
    plus_two,
    shares_change_interval,
    value_ends,
    value_interval,
)
from auepora_eval.stats.significance import PairedTest, mcnemar_exact, paired_swap_test, sign_flip_test

FLOOR = 0.93
SCALE = (0.0, 1.0)
# Rare losses that a sample seldom shows; labels that are missing from small samples.
LIMITS = ("few large losses", "lose all", "gains, exponential", "rare", "macro-F1")
Rng = np.random.Generator
Draw = Callable[[Rng, tuple[int, int]], Array]


class Scene(NamedTuple):
    """Scores, or changes, of which the true mean is known; `is_null` if both systems are exchangeable."""

    name: str
    draw: Draw
    truth: float
    is_null: bool = False


@dataclass
class Study:
    """The settings of a simulation, and the cells that fell below the floor."""

    runs: int
    resamples: int
    seed: int
    sizes: tuple[int, ...]
    below: list[str] = field(default_factory=list)

    def rng(self, *words: object) -> Rng:
        """Return a stream of its own for each cell: adding a scene does not change the others."""
        return np.random.default_rng([self.seed, zlib.crc32(repr(words).encode())])

    def cell(self, name: str, limits: Sequence[tuple[float, float]], truth: float, oracle: float) -> str:
        """Return the coverage and the relative width as text, and remember a cell that is too low."""
        lows, highs = np.array(limits).T
        share = float(((lows <= truth + 1e-12) & (truth - 1e-12 <= highs)).mean())
        noise = 3 * np.sqrt(FLOOR * (1 - FLOOR) / len(lows))
        if share < FLOOR - noise and not any(words in name for words in LIMITS):
            self.below.append(f"{name}: {share:.3f}")
        return f"{share:.3f} ({(highs - lows).mean() / oracle:.1f})"


def value_scenes() -> Iterator[Scene]:
    for rate in (0.02, 0.05, 0.2, 0.5, 0.8, 0.95, 0.98):
        yield Scene(f"0/1, rate {rate:g}", partial(_coins, rate), rate)
    for a, b in ((2, 2), (0.5, 0.5), (0.1, 2), (20, 5)):
        yield Scene(f"beta({a:g}, {b:g})", partial(_beta, a, b), a / (a + b))
    yield Scene("90% zeros, else uniform", lambda r, s: r.random(s) * (r.random(s) < 0.1), 0.05)
    yield Scene("98% ones, else uniform", lambda r, s: 1 - r.random(s) * (r.random(s) < 0.02), 0.99)
    yield Scene("0, .5, 1", lambda r, s: r.choice([0, 0.5, 1], p=[0.02, 0.08, 0.9], size=s), 0.94)
    yield Scene("95% .75, 5% 0", lambda r, s: np.where(r.random(s) < 0.95, 0.75, 0.0), 0.7125)


def _coins(rate: float, rng: Rng, shape: tuple[int, int]) -> Array:
    return (rng.random(shape) < rate).astype(np.float64)


def _beta(a: float, b: float, rng: Rng, shape: tuple[int, int]) -> Array:
    return rng.beta(a, b, shape)


def change_scenes() -> Iterator[Scene]:
    yield Scene("all differ, beta", lambda r, s: r.beta(2, 2, s) - r.beta(2, 2, s), 0.0, True)
    gain = 2.6 / 4.6 - 0.5
    yield Scene("all differ, beta, +.065", lambda r, s: r.beta(2.6, 2, s) - r.beta(2, 2, s), gain)
    yield Scene("all differ, sd .1, +.02", lambda r, s: r.normal(0.02, 0.1, s), 0.02)
    for mean in (0.0, 0.1):
        normal = partial(_clipped, mean)
        name = f"15% change, normal{', +.015' if mean else ''}"
        yield Scene(name, _some(0.15, normal), 0.15 * mean, not mean)
    exponential = _some(0.15, lambda r, s: np.minimum(r.exponential(0.2, s), 1))
    yield Scene("15% change, all gains, exponential", exponential, 0.03 * (1 - np.exp(-5)))
    skewed = _some(0.15, lambda r, s: np.where(r.random(s) < 0.8, 0.05, -0.2))
    yield Scene("15% change, small gains, few large losses", skewed, 0.0)
    for share, often, gain in ((0.4, 0.8, 0.1), (0.15, 0.9, 0.05), (1.0, 0.95, 0.02)):
        loss = gain * often / (1 - often)
        name = f"{share:.0%} change, {often:.0%} +{gain:g}, few large losses -{loss:.2g}"
        yield Scene(name, _some(share, partial(_two_sizes, often, gain, -loss)), 0.0)
    yield Scene("5% change, uniform", _some(0.05, lambda r, s: r.uniform(-1, 1, s)), 0.0, True)
    yield Scene("30% change, uniform -.5 to 1", _some(0.3, lambda r, s: r.uniform(-0.5, 1, s)), 0.075)
    yield Scene(
        "all differ a hair, 5% lose all",
        lambda r, s: np.where(r.random(s) < 0.05, -1.0, r.normal(0, 0.01, s)),
        -0.05,
    )
    for share in (0.02, 0.1, 0.3):
        for wins, name in ((0.5, "no effect"), (0.75, "3 wins to 1 loss"), (1.0, "wins only")):
            draw = _some(share, partial(_signs, wins))
            yield Scene(f"0/1, {share:.0%} differ, {name}", draw, share * (2 * wins - 1), wins == 0.5)


def _some(share: float, changes: Draw) -> Draw:
    """Return the changes of a share of the samples, and 0 of the others."""

    def draw(rng: Rng, shape: tuple[int, int]) -> Array:
        return np.where(rng.random(shape) < share, changes(rng, shape), 0.0)

    return draw


def _clipped(mean: float, rng: Rng, shape: tuple[int, int]) -> Array:
    return np.clip(rng.normal(mean, 0.25, shape), -1, 1)


def _two_sizes(often: float, size: float, else_: float, rng: Rng, shape: tuple[int, int]) -> Array:
    return np.where(rng.random(shape) < often, size, else_)


def _signs(wins: float, rng: Rng, shape: tuple[int, int]) -> Array:
    return np.where(rng.random(shape) < wins, 1.0, -1.0)


def oracle_width(sd: float, units: int) -> float:
    return 2 * float(stdtrit(units - 1, 0.975)) * sd / math.sqrt(units)


def print_table(title: str, headings: Sequence[object], rows: Sequence[Sequence[str]]) -> None:
    print(f"\n#### {title}\n")
    for cells in (list(map(str, headings)), ["---"] * len(headings), *rows):
        print("| " + " | ".join(cells) + " |")


def values(study: Study) -> None:
    rows = []
    for scene in value_scenes():
        sd = float(scene.draw(study.rng("sd", scene.name), (100_000, 2)).std())
        cells = [scene.name]
        for n in study.sizes:
            scores = scene.draw(study.rng("value", scene.name, n), (n, study.runs))
            units = mean_units(scores)
            low, high = plus_two(units, *value_ends(units, SCALE)).limits()
            limits = list(zip(np.clip(low, 0, 1), np.clip(high, 0, 1), strict=True))
            cells.append(study.cell(f"{scene.name}, n = {n}", limits, scene.truth, oracle_width(sd, n)))
        rows.append(cells)
    print_table("Values, by number of samples", ["scores", *study.sizes], rows)


@cache
def mcnemar(lost: int, won: int) -> PairedTest:
    return mcnemar_exact(lost, won)


def test_of(gains: Array, study: Study) -> float:
    if np.isin(gains, (-1.0, 0.0, 1.0)).all():
        return mcnemar(int((gains < 0).sum()), int((gains > 0).sum())).p_value
    return sign_flip_test(gains, resamples=study.resamples, levels=(), seed=study.seed).p_value


def changes(study: Study) -> None:
    coverage, significant, better = [], [], []
    for scene in change_scenes():
        sd = float(scene.draw(study.rng("sd", scene.name), (100_000, 2)).std())
        cells, shares = [scene.name], [f"{scene.name}{' (false alarms)' if scene.is_null else ''}"]
        called = [scene.name]
        for n in study.sizes:
            gains = scene.draw(study.rng("change", scene.name, n), (n, study.runs))
            units = mean_units(gains)
            size = change_size(units, gains != 0, 1.0)
            lows, highs = (np.clip(end, -1, 1) for end in plus_two(units, -size, size).limits())
            p_values = [test_of(one, study) for one in gains.T]
            limits = [
                agreeing_with_test(Interval(low, high, ""), change, p)[:2]
                for low, high, change, p in zip(lows, highs, units.value, p_values, strict=True)
            ]
            name = f"{scene.name}, n = {n}"
            cells.append(study.cell(name, limits, scene.truth, oracle_width(sd, n)))
            is_significant = np.array(p_values) < 0.05
            shares.append(f"{np.mean(is_significant):.3f}")
            is_better = is_significant & (units.value > 0)
            called.append(f"{np.mean(is_better):.3f} ({np.mean(is_better & has_caution(gains)):.3f})")
        coverage.append(cells)
        significant.append(shares)
        if "few large losses" in scene.name:
            better.append(called)
    print_table("Changes, by number of samples", ["changes", *study.sizes], coverage)
    print_table("Share of significant tests", ["changes", *study.sizes], significant)
    title = "Called better though the mean change is 0 (of these with the caution of compare)"
    print_table(title, ["changes", *study.sizes], better)


def has_caution(gains: Array) -> Mask:
    """Return in which runs (columns) few samples differ and almost all of these go one way."""
    up, down = (gains > 0).sum(axis=0), (gains < 0).sum(axis=0)
    return np.asarray((up + down < MANY) & (np.maximum(up, down) >= ONE_WAY * (up + down)))


def clusters(study: Study) -> None:
    rows = []
    for name, is_change in (("value, graded", False), ("value, 0/1, .7", False), ("change, graded", True)):
        for kind in ("5 each", "half in one", "90% in one"):
            cells = [f"{name}, {kind}"]
            for count in (4, 8, 20, 40):
                sizes = np.full(count, 5)
                sizes[0] = {"5 each": 5, "half in one": 5 * (count - 1), "90% in one": 45 * (count - 1)}[kind]
                unit_of: Sequence[Hashable] = np.repeat(np.arange(count), sizes).tolist()
                rng = study.rng("cluster", name, kind, count)
                means = [_cluster_means(rng, name, sizes) for _ in range(max(100, study.runs // 4))]
                # A cluster's samples at its mean: only sums and sizes matter.
                samples = [np.repeat(mean, sizes) for mean in means]
                found = [
                    mean_change_interval(one, clusters=unit_of)
                    if is_change
                    else mean_interval(one, clusters=unit_of, bounds=SCALE)
                    for one in samples
                ]
                truth = {"value, graded": 0.6, "value, 0/1, .7": 0.7, "change, graded": 0.0}[name]
                oracle = oracle_width(float(np.std([one.mean() for one in samples])) * count**0.5, count)
                limits = [one[:2] for one in found if one is not None]
                cells.append(study.cell(f"{name}, {kind}, {count}", limits, truth, oracle))
            rows.append(cells)
    print_table("Clusters (intraclass correlation .3), by number", ["scores", 4, 8, 20, 40], rows)


def _cluster_means(rng: Rng, name: str, sizes: Counts, icc: float = 0.3) -> Array:
    if "0/1" in name:
        worth = (1 - icc) / icc
        return np.asarray(rng.binomial(sizes, rng.beta(0.7 * worth, 0.3 * worth, len(sizes))) / sizes)
    mean, sd = (0.0, 0.25) if "change" in name else (0.6, 0.2)
    shared, own = rng.normal(size=(2, len(sizes)))
    return np.asarray(mean + sd * (icc**0.5 * shared + ((1 - icc) / sizes) ** 0.5 * own))


def ratio(rows: Array) -> Array:
    """The share of citations that are right: right ones over all, of (..., samples, 2)."""
    return np.asarray(rows[..., 0].sum(axis=-1) / rows[..., 1].sum(axis=-1))


def _citations(rng: Rng, n: int, a: float = 4.0) -> Array:
    count = 1 + rng.poisson(3, n)
    return np.stack([rng.binomial(count, rng.beta(a, 1, n)), count], axis=-1).astype(np.float64)


def _pairs_of_labels(share: float, right: float, rng: Rng, n: int) -> Array:
    truth = rng.random(n) < share
    first, second = (np.where(rng.random(n) < right, truth, ~truth).astype(int) for _ in range(2))
    return np.asarray(np.eye(4)[2 * first + second])


def _three_labels(rng: Rng, n: int) -> Array:
    truth = rng.choice(3, p=[0.6, 0.3, 0.1], size=n)
    return _label_rows(truth, np.where(rng.random(n) < 0.75, truth, rng.integers(0, 3, n)))


def _share_interval(rng: Rng, n: int) -> Interval | None:
    return value_interval(aggregate_units(_citations(rng, n), ratio, of_sums=True), SCALE)


def _share_change(after: float, study: Study, rng: Rng, n: int) -> Interval | None:
    rows = _citations(rng, n), _citations(rng, n, after)
    before, now = (aggregate_units(one, ratio, of_sums=True) for one in rows)
    units = now.minus(before)
    interval = shares_change_interval([(units, (rows[0] != rows[1]).any(axis=1))], 1.0)
    test = paired_swap_test(*rows, ratio, of_sums=True, resamples=study.resamples, levels=(), seed=study.seed)
    return interval and agreeing_with_test(interval, test.statistic, test.p_value)


def aggregates(study: Study) -> None:
    rng = study.rng("truth")
    many = 1_000_000
    share = float(ratio(_citations(rng, many)))
    common, rare = partial(_pairs_of_labels, 0.5, 0.9), partial(_pairs_of_labels, 0.1, 0.95)
    scenes: list[tuple[str, float, Callable[[Rng, int], Interval | None]]] = [
        ("share of citations, .8", share, _share_interval),
        ("change of the share, no effect", 0.0, partial(_share_change, 4.0, study)),
        (
            "change of the share, .8 to .75",
            float(ratio(_citations(rng, many, 3.0))) - share,
            partial(_share_change, 3.0, study),
        ),
    ]
    for name, draw in (("both labels common", common), ("one label rare", rare)):
        table = draw(rng, many).sum(axis=0).reshape(2, 2)
        for title, statistic in (("Cohen's kappa", cohen_kappa), ("Matthews' correlation", matthews)):
            truth = float(statistic(table))
            scenes.append((f"{title}, {name}", truth, partial(_agreement_interval, statistic, draw)))
    macro_f1 = LabelMacroF1()
    f1 = float(macro_f1.aggregate(_three_labels(rng, many)))
    scenes.append(
        ("macro-F1, labels .6, .3, .1", f1, lambda r, n: macro_f1.interval(_three_labels(r, n), None))
    )
    sizes = [n for n in study.sizes if 5 <= n <= 200]
    rows = []
    for name, truth, interval_of in scenes:
        cells = [name]
        for n in sizes:
            draws = study.rng("aggregate", name, n)
            found = [interval_of(draws, n) for _ in range(max(100, study.runs // 4))]
            limits = [one[:2] for one in found if one is not None]
            share_of_runs = len(limits) / len(found)
            text = study.cell(f"{name}, n = {n}", limits, truth, 1.0)
            cells.append(text.partition(" ")[0] + ("" if share_of_runs == 1 else f" ({share_of_runs:.0%})"))
        rows.append(cells)
    print_table(
        "Other aggregates: coverage (and the share of runs that have an interval)",
        ["aggregate", *sizes],
        rows,
    )


def _agreement_interval(
    statistic: Callable[[Array], Array], draw: Callable[[Rng, int], Array], rng: Rng, n: int
) -> Interval | None:
    return table_interval(draw(rng, n), statistic, bounds=(-1.0, 1.0))


class Detector(NamedTuple):
    """How often something is there, is detected where it is, and is detected where it is not."""

    share: float
    sensitivity: float
    false_alarms: float

    def draw(self, rng: Rng, n: int, seed: Array | None = None) -> tuple[Indices, Indices]:
        """Return for each sample whether it is there, and whether it was detected, as 0 or 1."""
        there, luck = rng.random((2, n)) if seed is None else seed
        truth = there < self.share
        found = np.where(truth, luck < self.sensitivity, luck < self.false_alarms)
        return truth.astype(np.intp), found.astype(np.intp)

    def value(self, metric: SampleMetric) -> float:
        """Return the value of a metric on endlessly many samples: these metrics need no more than sums."""
        rows = _rows(metric, np.array([1, 1, 0, 0]), np.array([1, 0, 1, 0]))
        found, rest = np.array([self.sensitivity, self.false_alarms]), 1 - self.share
        shares = np.outer([self.share, rest], [1, 1]) * np.column_stack([found, 1 - found])
        return float(metric.aggregate(shares.reshape(1, -1) @ rows))

    def __str__(self) -> str:
        return f"{self.share:.0%}, {self.sensitivity:g}/{self.false_alarms:g}"


DETECTORS = (
    *(
        Detector(share, *rates)
        for share in (0.05, 0.17)
        for rates in ((0.9, 0), (0.95, 0.005), (0.98, 0.001))
    ),
    Detector(0.1, 0.9, 0.01),
    Detector(0.5, 0.8, 0.05),
)
OF_LABELS = ("label_f1", "label_macro_f1[supported=true]", "label_balanced_accuracy", "label_precision")
OF_REFUSALS = ("abstention_f1", "abstention_balanced_accuracy", "abstention_precision")


def _label_rows(truth: Indices, predicted: Indices) -> Array:
    """Return the rows of metrics of labels: whether it is right, and the cell of the confusion table."""
    return np.column_stack([truth == predicted, np.eye(9)[3 * truth + predicted]]).astype(np.float64)


def _rows(metric: SampleMetric, truth: Indices, found: Indices) -> Array:
    """Return the rows of a metric of labels or of refusals, of which the second label is to be detected."""
    if metric.name.startswith("label_precision"):
        return np.column_stack([truth * found, found]).astype(np.float64)
    if metric.name.startswith("label_"):
        return _label_rows(truth, found)
    return np.column_stack([truth == found, np.eye(4)[2 * (1 - found) + (1 - truth)]]).astype(np.float64)


def labels(study: Study) -> None:
    """Metrics in which few samples take part: F1 of a rare label, classes of unequal size."""
    metrics = [parse_metric(name) for name in (*OF_LABELS, *OF_REFUSALS)]
    rows = []
    for metric in metrics:
        for n in (50, 100, 300):
            cells = [f"{metric.name}, {n}"]
            for detector in DETECTORS:
                truth = detector.value(metric)
                rng = study.rng(metric.name, n, detector)
                drawn = [detector.draw(rng, n) for _ in range(max(100, study.runs // 4))]
                # Samples without the label have no value of it that an interval could hold.
                found = [metric.interval(_rows(metric, *one), None) for one in drawn if one[0].any()]
                limits = [one[:2] for one in found if one is not None]
                text = study.cell(f"{metric.name}, {detector}, n = {n}", limits, truth, 1.0)
                cells.append(text.partition(" ")[0])
            rows.append(cells)
    headings = ["metric, samples", *map(str, DETECTORS)]
    print_table(
        "Values in which few samples take part (share of the label, found/false alarms)", headings, rows
    )


def label_changes(study: Study) -> None:
    """The same for a change: both detectors see the same samples, and the second one finds less."""
    rows = []
    for name in ("abstention_f1", "abstention_balanced_accuracy", "label_macro_f1[supported=true]"):
        metric = parse_metric(name)
        cells = [name]
        for share, n in ((0.05, 300), (0.1, 300), (0.05, 600)):
            sides = Detector(share, 0.95, 0.005), Detector(share, 0.86, 0.005)
            truth = sides[1].value(metric) - sides[0].value(metric)
            rng = study.rng(name, share, n)
            limits = []
            for _ in range(max(100, study.runs // 4)):
                seed = rng.random((2, n))
                results = [_result(metric, _rows(metric, *side.draw(rng, n, seed))) for side in sides]
                tested = tested_pairs(Pairs({}, *results), seed=study.seed, resamples=study.resamples)
                if tested.interval is not None:
                    limits.append(tested.interval[:2])
            cells.append(study.cell(f"change of {name}, {share}, n = {n}", limits, truth, 1.0))
        rows.append([cell.partition(" ")[0] for cell in cells])
    headings = ["change of", "5%, 300", "10%, 300", "5%, 600"]
    print_table("Changes in which few samples take part (share of the label, samples)", headings, rows)


def _result(metric: SampleMetric, rows: Array) -> MetricResult:
    scores = Scores([f"s{n}" for n in range(len(rows))], rows[:, 0], parts=rows[:, 1:])
    return MetricResult(metric.name, metric.target, float(metric.aggregate(rows)), {"num_failed": 0}, scores)


def margins(study: Study) -> None:
    """How often a loss of exactly the margin is called no worse, which should be rare."""
    scenes: dict[str, Callable[[Rng, tuple[int, int], float], Array]] = {
        "0/1, losses only": lambda r, s, m: np.where(r.random(s) < m, -1.0, 0.0),
        "0/1, 5% wins beside": lambda r, s, m: r.choice(
            [1.0, -1.0, 0.0], p=[0.05, 0.05 + m, 0.9 - m], size=s
        ),
        "all differ a hair, some lose all": lambda r, s, m: np.where(
            r.random(s) < m, -1.0, r.normal(0, 0.01, s)
        ),
        "all differ by sd .2": lambda r, s, m: r.normal(-m, 0.2, s),
    }
    sizes = [n for n in (20, 50, 100, 200, 500) if n <= max(study.sizes)]
    rows = []
    for name, draw in scenes.items():
        for margin in (0.02, 0.05, 0.1):
            cells = [name, f"{margin:g}"]
            for n in sizes:
                gains = draw(study.rng("margin", name, margin, n), (n, study.runs), margin)
                lowest = plus_two(mean_units(gains), -1.0, 1.0).limits()[0]
                share = float((lowest > -margin).mean())
                if share > 0.07 + 3 * np.sqrt(0.07 * 0.93 / study.runs):
                    study.below.append(f"margin {margin:g}, {name}, n = {n}: {share:.3f} called no worse")
                cells.append(f"{share:.3f}")
            rows.append(cells)
    print_table("A loss of exactly the margin that is called no worse", ["losses", "margin", *sizes], rows)


PARTS = (values, changes, clusters, aggregates, labels, label_changes, margins)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="200 runs and fewer sizes, below 20 seconds")
    parser.add_argument("--runs", type=int, help="runs per cell (2,000; 200 with --quick)")
    parser.add_argument("--seed", type=int, default=0, help="seed (0)")
    args = parser.parse_args(arguments)
    runs = args.runs or (200 if args.quick else 2_000)
    sizes = (5, 20, 50, 200) if args.quick else (5, 10, 20, 50, 100, 200)
    study = Study(runs, 200 if args.quick else 1_000, args.seed, sizes)
    start = time.perf_counter()
    print(f"{runs:,} runs per cell, seed {args.seed}")
    for part in PARTS:
        part(study)
    print(f"\n{time.perf_counter() - start:.0f} s")
    print("\n".join(["Below the floor:", *study.below]) if study.below else "No cell is below the floor.")
    return int(bool(study.below))


if __name__ == "__main__":
    raise SystemExit(main())
