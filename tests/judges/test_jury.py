"""Juries: how verdicts are combined, and what is asked."""

from __future__ import annotations

import pytest

from auepora_eval.judges.ask import Asking
from auepora_eval.judges.judge import FunctionJudge
from auepora_eval.judges.jury import Jury
from auepora_eval.judges.question import Judgement, Part, Question, kind_named
from tests.judges.functions import ALWAYS_YES, ORACLE, a_question, says

CLAIMS = [a_question(f"claim {n}") for n in range(10)]


def test_members_without_probabilities_vote() -> None:
    yes, no = ALWAYS_YES, FunctionJudge(lambda question: "no", "never")
    verdict = Jury([yes, yes, no]).judge(a_question())
    assert verdict.score == pytest.approx(2 / 3)
    assert verdict.label == "yes"
    assert Jury([yes, no, no]).judge(a_question()).label == "no"


def test_probabilities_are_averaged() -> None:
    jury = Jury([says({"c": 0.9}, "a"), says({"c": 0.5}, "b")])
    assert jury.judge(a_question()).score == pytest.approx(0.7)
    # One member that is certain does not outvote the others.
    certain = Jury([says({"c": 0.0}, "a"), says({"c": 0.97}, "b"), says({"c": 0.97}, "d")])
    assert certain.judge(a_question()).label == "yes"


def test_members_that_disagree_about_two_answers_give_a_tie() -> None:
    kind = kind_named("preference")
    first = FunctionJudge(lambda _: "first", "a judge")
    second = FunctionJudge(lambda _: "second", "another judge")
    question = Question(kind, {"question": "q", "first": "a", "second": "b"})
    assert Jury([first, second]).judge(question).label == "tie"


def test_the_majority_decides_between_options_of_the_same_score() -> None:
    kind = kind_named("grounding")
    question = Question(kind, {"passage 1": "p", "claim 1": "c"})

    def verdict(label: str) -> Judgement:
        return Judgement(score=0.0, parts=[Part(label, 0.0)])

    voted = Jury([ORACLE, ALWAYS_YES]).combined(
        kind, [verdict("contradicted"), verdict("unmentioned"), verdict("unmentioned")]
    )
    assert [part.label for part in voted.parts] == ["unmentioned"]
    assert Jury([ORACLE, ALWAYS_YES]).judge(question).parts[0].label == "supported"


def test_the_verdicts_of_members_are_stored_and_used_again() -> None:
    calls = []

    def counting_judge(question: Question) -> float:
        calls.append(question)
        return 0.9

    counting = FunctionJudge(counting_judge, "counting")
    jury = Jury([counting, says({question.material["claim"]: 0.2 for question in CLAIMS}, "other")])
    asking = Asking(jury)
    first = asking.verdicts(CLAIMS)
    assert len(asking.book) == 20
    names = {member.identity(kind_named("support")) for member in jury.members}
    assert {verdict.identity for verdict in asking.book.values()} == names
    second = Asking(Jury(jury.members), asking.asked).verdicts(CLAIMS)
    assert len(calls) == 10
    assert first[0].score == second[0].score == pytest.approx(0.55)


def test_a_member_that_fails_fails_the_jury() -> None:
    failing = FunctionJudge(lambda question: Judgement(failed="429"), "failing")
    verdict = Jury([ORACLE, failing]).judge(a_question())
    assert verdict.score is None
    assert "1 of 2 members of the jury failed: 429" in verdict.failed
