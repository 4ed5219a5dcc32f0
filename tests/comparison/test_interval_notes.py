"""Where the interval alone would mislead, a note says so."""

from __future__ import annotations

import math
from typing import Any

from auepora_eval.comparison.compare import Comparison, MetricComparison, compare_runs
from auepora_eval.comparison.tables import comparison_table
from auepora_eval.comparison.words import interval_notes
from auepora_eval.core.verdict import Verdict
from tests.comparison.test_margins_and_repeats import scored
from tests.comparison.test_plain_words import RECALL, changed


def notes(*metrics: MetricComparison) -> list[str]:
    return interval_notes(Comparison("a", "b", "old", "new", 0.05, list(metrics)))


def unsure(name: str, **more: Any) -> MetricComparison:
    return changed(RECALL, name=name, verdict=Verdict.INCONCLUSIVE, **more)


def test_an_interval_that_leaves_out_zero_is_explained() -> None:
    hit = unsure("hit@5", interval=(0.016, 0.113), p=0.016, p_adjusted=0.11)
    mrr = unsure("mrr", interval=(-0.1, -0.01), p=0.03, p_adjusted=0.12)
    calm = unsure("map", interval=(-0.1, 0.1), p=0.5, p_adjusted=0.9)
    time = unsure("mean_latency", unit="s", interval=None, p=None, p_adjusted=None)
    assert notes(RECALL, hit, mrr, calm, time) == [
        "hit@5 (p = 0.016, with Holm p = 0.110) and mrr (p = 0.030, with Holm p = 0.120): the 95% interval "
        "excludes 0, but a verdict requires p below 0.05 with Holm's correction for 4 metrics: one of that "
        "many can do so by chance."
    ]
    assert notes(RECALL, calm) == []


def test_differences_that_are_all_the_same_have_an_interval() -> None:
    many = compare_runs(scored([0.0] * 60), scored([1.0] * 60))
    assert comparison_table(many).rows[0][4] == "[+0.9032, +1.0000]"
    assert interval_notes(many) == []
    few = compare_runs(scored([1.0] * 5), scored([0.0] * 5))
    low, high = few.metrics[0].effect.interval or (math.nan, math.nan)
    assert low == -1.0
    assert high > 0  # five losses have p = 0.0625
