"""A comparison for someone who decides: what each verdict is called, in which order, and what would tell."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from auepora_eval.comparison.compare import Comparison, Effect, MetricComparison, SignificanceTest
from auepora_eval.comparison.words import comparison_in_plain_words
from auepora_eval.core.types import TargetCategory
from auepora_eval.core.verdict import Verdict

T = TargetCategory
RECALL = MetricComparison(
    name="recall@5",
    target=T.RETRIEVAL_RELEVANCE,
    higher_is_better=True,
    unit="",
    verdict=Verdict.BETTER,
    baseline=0.85,
    candidate=0.92,
    test=SignificanceTest(0.001, 0.004),
    effect=Effect(0.07, (0.02, 0.12), wins=12, ties=86, losses=2),
)
PARTS = ("test", "effect", "power", "coverage")


def changed(metric: MetricComparison, **fields: Any) -> MetricComparison:
    """Return a comparison with some fields replaced, whichever part they belong to."""
    of_margin = {name[7:]: fields.pop(name) for name in list(fields) if name.startswith("margin_")}
    metric = replace(metric, margin=replace(metric.margin, **of_margin))
    for name in PARTS:
        part: Any = getattr(metric, name)
        own = {key: fields.pop(key) for key in list(fields) if hasattr(part, key)}
        metric = replace(metric, **{name: replace(part, **own)})
    return replace(metric, **fields)


def metric(name: str, target: T, verdict: str, **more: Any) -> MetricComparison:
    return changed(RECALL, name=name, target=target, verdict=Verdict(verdict), **more)


def inconclusive(name: str, target: T, needed: int | None, **more: Any) -> MetricComparison:
    return metric(name, target, "inconclusive", samples_needed=needed, p_adjusted=0.6, **more)


def words(*metrics: MetricComparison) -> list[str]:
    return comparison_in_plain_words(Comparison("a", "b", "old", "new", 0.05, list(metrics)))


def test_a_story_of_two_versions() -> None:
    answers = inconclusive("contains_answer", T.GENERATION_CORRECTNESS, 712, baseline=0.41, candidate=0.43)
    assert words(RECALL, answers) == [
        "new is better at finding the right documents: 92% of the relevant documents are in the top 5, "
        "compared with 85% (recall@5). The difference is significant (p = 0.004).",
        "Nothing is significantly worse.",
        "Inconclusive on correctness: 43% of the answers contain the reference answer, compared with 41% "
        "(contains_answer); 12 of 100 samples gained, 2 lost, which may be due to chance. A verdict needs "
        "about 620 more questions.",
    ]


def test_what_is_sure_comes_first_and_both_sides_are_told() -> None:
    mrr = metric("mrr", T.RETRIEVAL_ACCURACY, "worse", baseline=0.5, candidate=0.4, p_adjusted=0.0001)
    slower = metric("mean_latency[end_to_end]", T.LATENCY, "worse", unit="s", baseline=0.1, candidate=0.25)
    same = metric("noise_retention", T.NOISE_ROBUSTNESS, "same")
    better = metric("token_f1", T.GENERATION_CORRECTNESS, "better", baseline=0.101, candidate=0.104)
    told = words(same, slower, mrr, RECALL, better)
    assert [sentence.partition(":")[0] for sentence in told] == [
        "new is better at finding the right documents",
        "new gives better answers",
        "new is worse at finding the right documents",
        "new answers more slowly or less reliably",
        "No change in noise robustness.",
    ]
    assert "token_f1 is 0.104, compared with 0.101" in told[1]
    assert "mrr is 0.40, compared with 0.50. The difference is significant (p < 0.001)" in told[2]
    assert "mean_latency[end_to_end] is 250 ms, compared with 100 ms" in told[3]


def test_several_metrics_of_one_mind_are_one_sentence() -> None:
    ndcg = metric("ndcg@5", T.RETRIEVAL_ACCURACY, "better", p_adjusted=0.001)
    (told, _) = words(ndcg, RECALL, metric("hit@5", T.RETRIEVAL_RELEVANCE, "better", p_adjusted=0.03))
    # The p is that of the metric which is quoted.
    assert "(recall@5). The difference is significant (p = 0.004). ndcg@5 and hit@5 agree." in told


@pytest.mark.parametrize(
    ("needed", "says"),
    [
        ({"x": 300}, "A verdict needs about 200 more questions."),
        ({"x": 50}, "A verdict needs about 10 more questions."),
        ({"x": None}, "which may be due to chance."),
        (
            {"x": 5_000, "y": 300},
            "A verdict needs more questions: about 200 for speed and 4,900 for correctness.",
        ),
        (
            {"x": 300, "y": None},
            "correctness and speed: the differences may be due to chance. A verdict needs more questions: "
            "about 200 for correctness.",
        ),
        ({"x": None, "y": None}, "correctness and speed: the differences may be due to chance."),
    ],
)
def test_how_many_questions_would_tell(needed: dict[str, int | None], says: str) -> None:
    target = {"x": T.GENERATION_CORRECTNESS, "y": T.LATENCY}
    told = words(*(inconclusive(name, target[name], count) for name, count in needed.items()))
    assert told[0].endswith(says)
    assert len(told) == 1


def failing(name: str = "exact_match", failed: int = 10, **more: Any) -> MetricComparison:
    how = {"wins": 0, "ties": 50, "losses": 10, "change": -1 / 6, "bounds": (-1 / 6, 0.0)}
    how |= {"calls_baseline": 70, "calls_candidate": 70}  # ten of these are not about the metric
    return metric(name, T.GENERATION_CORRECTNESS, "worse", failed_candidate=failed, **{**how, **more})


def test_failed_calls_are_counted_and_the_verdict_that_rests_on_them_says_so() -> None:
    slow = metric("failure_rate", T.LATENCY, "worse")  # a failure is what it measures
    assert words(failing(), slow)[-1] == (
        "10 of 70 calls of new failed; each counts as wrong. The verdict on exact_match depends on that."
    )
    assert words(failing(), failing("token_f1"))[-1] == (
        "10 of 70 calls of new failed; each counts as wrong. "
        "The verdict on exact_match and token_f1 depends on that."
    )
