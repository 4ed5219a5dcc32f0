"""Two runs compared by a judge: a win must survive the swap."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from auepora_eval.comparison.compare import compare_runs
from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.types import EvaluationRun, SystemOutputs
from auepora_eval.errors import CallError
from auepora_eval.judges.metrics.preference import Preference, preference
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
) -> Preference:
    return preference(a_run(first, "a"), a_run(second, "b"), judging_by(judge))


def longer(question: Question) -> str:
    first, second = len(question.material["first"]), len(question.material["second"])
    return "tie" if first == second else "first" if first > second else "second"


def test_a_judge_that_always_prefers_the_first_answer_gives_only_ties() -> None:
    found = preferred(lambda _: "first", ["a"] * 20, ["bb"] * 20)
    assert (found.wins, found.ties, found.losses) == (0, 20, 0)
    assert (found.flipped, found.asked, found.decided) == (20, 20, 0)
    assert found.notes() == [
        "judged_preference: flip rate 1.00. The verdict on 20 of 20 pairs changed with the order of the "
        "answers: these count as ties."
    ]
    assert [result.value for result in found.results] == [0.5, 0.5]


def test_a_judge_that_prefers_the_longer_answer_shows_it() -> None:
    found = preferred(longer, ["a", "aaa", "aa", "same"], ["bb", "b", "bb", "same"])
    # One win and one loss; equally long answers are a tie, and equal ones are not asked about.
    assert (found.wins, found.ties, found.losses, found.asked) == (1, 2, 1, 3)
    assert (found.flipped, found.decided, found.longer_won) == (0, 2, 2)
    assert "the longer answer won 2 of 2 decided pairs (100%)" in found.notes()[1]


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

    found = preferred(judge, ["old"], ["new"])
    assert [result.value for result in found.results] == [1 - score, score]
    assert (found.flipped, found.asked) == (flipped, 1)


@pytest.mark.parametrize(("other", "score"), [("tie", 0.5), ("first", None), ("second", None)])
def test_a_failed_verdict_fails_the_pair_unless_the_other_is_a_tie(other: str, score: float | None) -> None:
    def judge(question: Question) -> str:
        if question.material["first"] == "old":
            raise CallError("the server is down", kind="http_5xx")
        return other

    found = preferred(judge, ["old", "x"], ["new", "x"])
    assert found.results[1].scores[0].value == score
    assert (found.failed, found.asked) == (int(score is None), 0)


def test_a_failed_answer_loses_without_a_call() -> None:
    found = preferred(longer, [None, "a", None], ["b", None, None])
    assert [score.value for score in found.results[1].scores] == [1.0, 0.0, None]
    assert found.results[1].scores[2].failed
    assert (found.wins, found.losses, found.failed, found.asked) == (1, 1, 1, 0)


def test_a_comparison_tests_the_preference_like_any_metric() -> None:
    first, second = a_run(["a"] * 30, "a"), a_run(["bb"] * 30, "b")
    found = preference(first, second, judging_by(longer))
    comparison = compare_runs(*found.added_to(first, second))
    compared = comparison["judged_preference"]
    assert (compared.verdict, compared.baseline, compared.candidate) == ("better", 0.0, 1.0)
    assert (compared.effect.wins, compared.effect.ties, compared.effect.losses) == (30, 0, 0)
    assert compared.effect.change == 1.0
    assert [one.name for one in first.results] == ["token_f1"]  # the runs themselves are as they were
    biased = judging_by(lambda _: "first")
    ties = compare_runs(*preference(first, second, biased).added_to(first, second))
    assert ties["judged_preference"].verdict != "better"
    assert ties["judged_preference"].effect.ties == 30
