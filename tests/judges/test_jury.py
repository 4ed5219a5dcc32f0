"""Juries: how verdicts are combined, and what is asked."""

from __future__ import annotations

import pytest

from auepora_eval.judges.ask import Asking, VerdictLog
from auepora_eval.judges.judge import FunctionJudge
from auepora_eval.judges.jury import Jury
from auepora_eval.judges.question import Judgement, Question, kind_named
from tests.judges.functions import ALWAYS_YES, ORACLE, a_question, says

CLAIMS = [a_question(f"claim {n}") for n in range(10)]


def test_members_without_probabilities_vote() -> None:
    yes, no = ALWAYS_YES, FunctionJudge(lambda question: "no", "never")
    verdict = Jury([yes, yes, no]).judge(a_question())
    assert verdict.score == pytest.approx(2 / 3)
    assert verdict.label == "yes"
    assert Jury([yes, no, no]).judge(a_question()).label == "no"


def test_probabilities_are_averaged_in_log_odds() -> None:
    jury = Jury([says({"c": 0.9}, "a"), says({"c": 0.5}, "b")])
    assert jury.judge(a_question()).score == pytest.approx(0.75)  # odds 9 and 1: the root of 9 is 3
    # One member that is certain does not outvote the others.
    certain = Jury([says({"c": 0.0}, "a"), says({"c": 0.97}, "b"), says({"c": 0.97}, "d")])
    assert certain.judge(a_question()).label == "yes"


def test_the_verdicts_of_members_are_stored_and_used_again() -> None:
    calls = []

    def counting_judge(question: Question) -> float:
        calls.append(question)
        return 0.9

    counting = FunctionJudge(counting_judge, "counting")
    log = VerdictLog()
    jury = Jury([counting, says({question.material["claim"]: 0.2 for question in CLAIMS}, "other")])
    first = Asking(jury, log).verdicts(CLAIMS)
    assert len(log.book) == 20
    names = {member.identity(kind_named("support")) for member in jury.members}
    assert {verdict.identity for verdict in log.book.values()} == names
    second = Asking(Jury(jury.members), log).verdicts(CLAIMS)
    assert len(calls) == 10
    assert first[0].score == second[0].score == pytest.approx(0.6)


def test_a_member_that_fails_fails_the_jury() -> None:
    failing = FunctionJudge(lambda question: Judgement(failed="429", flags=["cut"]), "failing")
    verdict = Jury([ORACLE, failing]).judge(a_question())
    assert verdict.score is None
    assert "1 of 2 members of the jury failed: 429" in verdict.failed
    assert verdict.flags == ["cut"]
