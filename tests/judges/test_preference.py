"""Two runs compared by a judge: a win must survive the swap."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from auepora_eval.comparison.compare import compare_runs
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.types import EvaluationRun, MetricResult, SystemOutputs
from auepora_eval.errors import CallError
from auepora_eval.judges.metrics.preference import with_preference
from auepora_eval.judges.question import Question
from tests.builders import a_failure, a_sample, an_output, scored_run
from tests.judges.oracles import judging_by


def a_run(answers: list[str | None], name: str) -> EvaluationRun:
    samples = [a_sample(str(number), reference="x") for number in range(len(answers))]
    outputs: list[SystemOutputs] = [
        a_failure() if answer is None else an_output("a", answer) for answer in answers
    ]
    return scored_run(EvaluationPlan("token_f1"), samples, outputs, system_name=name, evaluation_id=name)


def preferred(
    judge: Callable[[Question], object], first: list[str | None], second: list[str | None]
) -> tuple[list[MetricResult], list[str]]:
    """The preference of both runs, and the notes."""
    *runs, notes = with_preference(a_run(first, "a"), a_run(second, "b"), judging_by(judge))
    return [run["judged_preference"] for run in runs], notes


def scores_of(result: MetricResult) -> list[float | None]:
    return [score.value for score in result.scores]


def longer(question: Question) -> str:
    first, second = len(question.material["first"]), len(question.material["second"])
    return "tie" if first == second else "first" if first > second else "second"


def test_a_judge_that_always_prefers_the_first_answer_gives_only_ties() -> None:
    results, notes = preferred(lambda _: "first", ["a"] * 20, ["bb"] * 20)
    assert [scores_of(result) for result in results] == [[0.5] * 20] * 2
    assert notes == [
        "judged_preference: flip rate 1.00. The verdict on 20 of 20 pairs changed with the order of the "
        "answers: these count as ties."
    ]


def test_a_judge_that_prefers_the_longer_answer_shows_it() -> None:
    results, notes = preferred(longer, ["a", "aaa", "aa", "same"], ["bb", "b", "bb", "same"])
    # One win and one loss; equally long answers are a tie, and equal ones are not asked about.
    assert scores_of(results[1]) == [1.0, 0.0, 0.5, 0.5]
    assert "The verdict on 0 of 3 pairs" in notes[0]
    assert "the longer answer won 2 of 2 decided pairs (100%)" in notes[1]


@pytest.mark.parametrize(
    ("said", "score", "flipped"),
    [
        (("second", "first"), 1.0, 0),  # the second run's answer, in both places
        (("first", "second"), 0.0, 0),
        (("tie", "tie"), 0.5, 0),
        (("first", "first"), 0.5, 1),
        (("second", "second"), 0.5, 1),
        (("second", "tie"), 0.5, 1),  # it has not survived the swap
        (("tie", "first"), 0.5, 1),
    ],
)
def test_both_orders_are_asked(said: tuple[str, str], score: float, flipped: int) -> None:
    def judge(question: Question) -> str:
        return said[0] if question.material["first"] == "old" else said[1]

    results, notes = preferred(judge, ["old"], ["new"])
    assert [result.value for result in results] == [1 - score, score]
    assert f"on {flipped} of 1 pairs" in notes[0]


@pytest.mark.parametrize("other", ["tie", "first"])
def test_a_failed_verdict_fails_the_pair(other: str) -> None:
    def judge(question: Question) -> str:
        if question.material["first"] == "old":
            raise CallError("the server is down", kind="http_5xx")
        return other

    results, notes = preferred(judge, ["old", "x"], ["new", "x"])
    assert scores_of(results[1])[0] is None
    assert results[1].coverage.failed == 1
    assert notes == []


def test_a_failed_answer_loses_without_a_call() -> None:
    results, notes = preferred(longer, [None, "a", None], ["b", None, None])
    assert scores_of(results[1]) == [1.0, 0.0, None]
    assert results[1].scores[2].failed
    assert notes == []


def test_a_comparison_tests_the_preference_like_any_metric() -> None:
    first, second = a_run(["a"] * 30, "a"), a_run(["bb"] * 30, "b")
    comparison = compare_runs(*with_preference(first, second, judging_by(longer))[:2])
    compared = comparison["judged_preference"]
    assert (compared.verdict, compared.baseline, compared.candidate) == ("better", 0.0, 1.0)
    assert (compared.effect.wins, compared.effect.ties, compared.effect.losses) == (30, 0, 0)
    assert compared.effect.change == 1.0
    assert [one.name for one in first.results] == ["token_f1"]  # the runs themselves are as they were
    biased = judging_by(lambda _: "first")
    ties = compare_runs(*with_preference(first, second, biased)[:2])
    assert ties["judged_preference"].verdict != "better"
    assert ties["judged_preference"].effect.ties == 30
