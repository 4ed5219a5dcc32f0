"""Margins, exact tests, bounds, mismatches, regressions and repeats: cases that can be counted by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from auepora_eval.comparison.compare import (
    MetricComparison,
    compare_runs,
)
from auepora_eval.comparison.words import comparison_in_plain_words
from auepora_eval.core.types import EvaluationRun, MetricResult, SampleScore, TargetCategory
from auepora_eval.core.verdict import Verdict
from auepora_eval.errors import PlanError
from tests.builders import a_sample, an_output


def scored(
    values: Sequence[float | None],
    run_id: str = "r",
    metric: str = "recall@1",
    failed: tuple[int, ...] = (),
    clusters: list[str] | None = None,
) -> EvaluationRun:
    """A run with these scores, sample by sample; None is a sample that was skipped, or failed."""
    scores = [SampleScore(value, "", (), f"s{n}", n in failed) for n, value in enumerate(values)]
    samples = [
        a_sample(f"s{n}", f"q {n}", relevant="a", cluster=None if clusters is None else clusters[n])
        for n in range(len(values))
    ]
    result = MetricResult(
        metric,
        TargetCategory.RETRIEVAL_RELEVANCE,
        float(np.mean([value for value in values if value is not None] or [np.nan])),
        {"num_failed": len(failed)},
        scores,
    )
    outputs = [an_output("a", f"{run_id} says {n}") for n in range(len(values))]
    return EvaluationRun(run_id, run_id, "d", "f", [result], samples, outputs)


def only(a: Any, b: Any, **how: Any) -> MetricComparison:
    [metric] = compare_runs(a, b, **how).metrics
    return metric


def test_shares_are_tested_by_mcnemar() -> None:
    a = scored([1.0, 1.0] + [0.0] * 5 + [1.0] * 13)
    b = scored([0.0, 0.0] + [1.0] * 5 + [1.0] * 13)
    metric = only(a, b)
    assert metric.test.method == "McNemar, exact, 7 samples"
    assert metric.test.p == pytest.approx(0.453125)
    assert (metric.effect.wins, metric.effect.ties, metric.effect.losses) == (5, 13, 2)


def test_shares_in_clusters_are_flipped_by_cluster() -> None:
    clusters = [str(n // 4) for n in range(20)]
    metric = only(scored([0.0] * 20, clusters=clusters), scored([1.0] * 20, clusters=clusters))
    assert metric.test.p == pytest.approx(2 / 32)  # five clusters are five coins


def test_a_margin_turns_cannot_tell_into_no_worse() -> None:
    rng = np.random.default_rng(0)
    a = rng.random(400)
    b = a + rng.normal(0.0, 0.05, 400)
    before, now = scored(a.tolist(), "old", "mrr"), scored(b.tolist(), "new", "mrr")
    assert only(before, now).verdict == "inconclusive"
    comparison = compare_runs(before, now, margin=0.02)
    [metric] = comparison.metrics
    assert (metric.verdict, metric.margin.within) == ("no worse", True)
    assert comparison_in_plain_words(comparison) == [
        "A loss as large as the margin is ruled out for mrr (0.0200)."
    ]
    assert only(before, now, margin={"mrr": 0.0001}).verdict == "inconclusive"


def test_a_small_sure_loss_within_the_margin_is_still_a_loss() -> None:
    rng = np.random.default_rng(1)
    a = rng.random(300)
    comparison = compare_runs(
        scored(a.tolist(), "old", "mrr"),
        scored((a - 0.01 + rng.normal(0, 0.01, 300)).tolist(), "new", "mrr"),
        margin=0.05,
    )
    [metric] = comparison.metrics
    assert (metric.verdict, metric.margin.within) == ("worse", True)
    assert "though by less than the margin" in comparison_in_plain_words(comparison)[0]


def test_what_failed_bounds_the_difference() -> None:
    """Four samples: one fails in b, one is not there in a. By hand: (-1 + 0) ... (+1) over four."""
    a = scored([1.0, 0.0, 1.0, None])
    b = scored([1.0, 1.0, None, 1.0], failed=(2,))
    metric = only(a, b)
    assert metric.pairs == 3  # the failed answer counts, as the worst
    assert metric.coverage.unmatched == 1
    assert metric.effect.change == pytest.approx((0 + 1 - 1) / 3)
    assert metric.effect.bounds == pytest.approx(((0 + 1 - 1 + 0) / 4, (0 + 1 + 0 + 1) / 4))
    assert only(scored([1.0, 0.0]), scored([1.0, 1.0])).effect.bounds is None


def test_a_mismatch_is_refused_or_recorded() -> None:
    a, b = scored([0.0, 1.0] * 6), replace(scored([1.0, 1.0] * 6), dataset_fingerprint="another")
    with pytest.raises(PlanError, match=r"different data.*--allow-mismatch"):
        compare_runs(a, b)
    comparison = compare_runs(a, b, allow_mismatch=True)
    assert comparison.metrics[0].effect.change == 0.5
    assert comparison.mismatches == ["the runs are on different data: d (f) and d (another)"]
    b.results[0].details["signature"] = {"k": 2}
    assert len(compare_runs(a, b, allow_mismatch=True).mismatches) == 2


def test_repeats_are_clusters_and_add_no_certainty_of_their_own() -> None:
    """The same run three times over says what it says once."""
    rng = np.random.default_rng(2)
    a, b = rng.random(40).tolist(), rng.random(40).tolist()
    once = only(scored(a, "a", "mrr"), scored(b, "b", "mrr"))
    comparison = compare_runs(
        [scored(a, f"a{n}", "mrr") for n in range(3)], [scored(b, f"b{n}", "mrr") for n in range(3)]
    )
    [thrice] = comparison.metrics
    assert comparison.repeats == 3
    assert thrice.test.p == pytest.approx(once.test.p)
    assert thrice.effect.interval == pytest.approx(once.effect.interval)
    assert thrice.power.detectable == pytest.approx(once.power.detectable)
    assert thrice.power.samples_needed == once.power.samples_needed
    assert thrice.pairs == 120
    assert thrice.run_to_run is not None
    assert (thrice.run_to_run.baseline_sd, thrice.run_to_run.candidate_sd) == (0.0, 0.0)


def test_the_seed_changes_neither_an_interval_nor_a_verdict() -> None:
    """Gains whose test has a p-value of about 0.05: more is drawn until the verdict is clear."""
    gains = np.random.default_rng(5).normal(0, 0.1, 60)
    gains += 2.0 * gains.std() / math.sqrt(60) - gains.mean()
    before, after = np.full(60, 0.5), 0.5 + gains
    a, b = scored(before.tolist(), metric="mrr"), scored(after.tolist(), metric="mrr")
    assert compare_runs(a, b) == compare_runs(a, b)
    seeds = [only(a, b, seed=seed) for seed in range(8)]
    assert {one.verdict for one in seeds} == {Verdict.INCONCLUSIVE}
    assert len({one.effect.interval for one in seeds}) == 1
    assert len({one.test.p for one in seeds}) == 8


def test_intervals_and_tests_agree() -> None:
    """An interval leaves out 0, or ends there, exactly where its own test is significant."""
    rng = np.random.default_rng(9)
    for size in (5, 8, 20, 60):
        for shift in (0.0, 0.05, 0.1):
            before = rng.random(size) * 0.8
            moved = np.clip(before + rng.normal(shift, 0.2, size), 0, 1)
            after = np.where(rng.random(size) < 0.4, moved, before)
            one = only(scored(before.tolist(), metric="mrr"), scored(after.tolist(), metric="mrr"))
            assert one.effect.interval is not None
            assert one.test.p is not None
            low, high = one.effect.interval
            assert (low >= 0 or high <= 0) if one.test.p < 0.05 else low <= 0 <= high


@pytest.mark.parametrize(
    ("gains", "p", "is_cut"),
    [
        # The flips are exact: two of 64 patterns. The interval by t would begin at -0.15.
        pytest.param([0.1] * 5 + [0.9], 2 / 64, True, id="cut at 0"),
        # McNemar's test of 11 wins and 3 losses. The interval by t would begin at 0.011.
        pytest.param([1.0] * 11 + [-1.0] * 3 + [0.0] * 6, 0.0574, False, id="extended to 0"),
    ],
)
def test_the_test_decides_whether_an_interval_leaves_out_0(
    gains: list[float], p: float, is_cut: bool
) -> None:
    before = [float(gain < 0) for gain in gains]
    after = [old + gain for old, gain in zip(before, gains, strict=True)]
    one = only(scored(before, metric="mrr"), scored(after, metric="mrr"))
    assert one.test.p == pytest.approx(p, abs=5e-5)
    assert one.effect.interval is not None
    assert one.effect.interval[0] == 0.0
    assert one.verdict == (Verdict.BETTER if is_cut else Verdict.INCONCLUSIVE)


@pytest.mark.full
def test_false_alarms_over_several_metrics_stay_at_alpha() -> None:
    """Two systems that are the same, on four metrics, 50 times: Holm keeps any alarm at 5 in 100."""
    rng = np.random.default_rng(6)
    alarms = 0
    for _ in range(50):
        runs = []
        for side in "ab":
            one = scored(rng.random(30).tolist(), side, "mrr")
            one.results = [
                replace(one.results[0], name=name, scores=scored(rng.random(30).tolist()).results[0].scores)
                for name in ("mrr", "recall@1", "recall@3", "token_f1")
            ]
            runs.append(one)
        comparison = compare_runs(*runs, resamples=200)
        alarms += any(metric.verdict in ("better", "worse") for metric in comparison.metrics)
    assert alarms / 50 <= 0.11
