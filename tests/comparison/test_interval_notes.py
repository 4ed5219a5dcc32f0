"""Where the interval alone would mislead, a note says so."""

from __future__ import annotations

from typing import Any

from auepora_eval.comparison.compare import Comparison, MetricComparison, compare_runs
from auepora_eval.comparison.tables import comparison_table, statistical_analysis
from auepora_eval.comparison.words import interval_notes
from auepora_eval.core.verdict import Verdict
from tests.comparison.test_compare_more import scored
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
        "hit@5 (p = 0.016, with Holm p = 0.110) and mrr (p = 0.030, with Holm p = 0.120): the interval "
        "excludes 0, but 4 metrics were compared, and one of that many can do so by chance."
    ]
    assert notes(RECALL, calm) == []


def test_a_test_that_is_stricter_than_the_interval() -> None:
    five = unsure("exact_match", interval=(-0.183, -0.033), p=0.0625, p_adjusted=0.0625)
    assert notes(five) == [
        "exact_match (p = 0.062): the interval excludes 0, but too few samples differ for a significant test."
    ]


def test_clusters_are_named_where_they_are_the_reason() -> None:
    five = unsure("token_f1", interval=(-0.183, -0.033), p=0.0625, p_adjusted=0.0625, clusters=5)
    assert notes(five) == [
        "token_f1 (p = 0.062): the interval excludes 0, but too few clusters differ for a significant test."
    ]


def test_differences_that_are_all_the_same_give_no_interval() -> None:
    """Rule of three: 1 - 0.05 ** (1/60) is 4.9 in 100; 1 - 0.05 ** (1/5) is 45."""
    many = compare_runs(scored([0.0] * 60), scored([1.0] * 60))
    assert comparison_table(many).rows[0][4] == "-"
    assert interval_notes(many) == [
        "recall@1: all 60 samples differ by 1.0000, so there is no interval. Up to 5% of other samples "
        "could differ by another amount."
    ]
    assert statistical_analysis(many)["confidence_intervals"]["recall@1"] is None
    few = compare_runs(scored([1.0] * 5), scored([0.0] * 5))
    [note] = interval_notes(few)
    assert "Up to 45%" in note
    assert note.endswith("There are too few for a significant test (p = 0.062).")


def test_no_difference_at_all_has_no_interval_and_needs_no_note() -> None:
    same = compare_runs(scored([1.0] * 9), scored([1.0] * 9))
    assert interval_notes(same) == []
    assert comparison_table(same).rows[0][4] == "-"  # no width is no certainty
    some = compare_runs(scored([1.0, 0.0] * 9), scored([1.0, 1.0] * 9))
    assert some.metrics[0].effect.interval is not None
