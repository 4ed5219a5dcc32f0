"""Juries and cascades: how verdicts are combined, what is asked, and what is reported about them."""

from __future__ import annotations

import random

import numpy as np
import pytest

from auepora_eval.errors import PlanError
from auepora_eval.judges.asking import verdicts_on
from auepora_eval.judges.judge import FunctionJudge, Judging, VerdictBook
from auepora_eval.judges.jury import (
    Cascade,
    Jury,
    JuryWeights,
    cascade_report,
    cross_fitted,
    fit_jury,
    jury_report,
    saved_calls,
)
from auepora_eval.judges.names import judge_named
from auepora_eval.judges.question import Question, Verdict, kind_named
from auepora_eval.stats.classification import area_under_curve
from tests.judges.functions import ALWAYS_YES, ORACLE, a_question, noisy, says

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


def test_weights_decide_and_are_a_part_of_the_identity() -> None:
    members = [says({"c": 0.9}, "a"), says({"c": 0.1}, "b")]
    kind = kind_named("support")
    plain, weighed = Jury(members), Jury(members, JuryWeights([1.0, 1.0], [0.0, 0.0], [1.0, 0.0]))
    assert plain.judge(a_question()).score == pytest.approx(0.5)
    assert weighed.judge(a_question()).score == pytest.approx(0.9)
    assert plain.identity(kind) == f"support/jury:[{', '.join(each.identity(kind) for each in members)}]"
    assert weighed.identity(kind) != plain.identity(kind)
    with pytest.raises(PlanError, match="do not fit"):
        Jury(members, JuryWeights([1.0], [0.0], [1.0]))
    with pytest.raises(PlanError, match="at least two"):
        Jury(members[:1])


def test_the_verdicts_of_members_are_stored_and_used_again() -> None:
    calls = []

    def counting_judge(question: Question) -> float:
        calls.append(question)
        return 0.9

    counting = FunctionJudge(counting_judge, "counting")
    book = VerdictBook()
    jury = Jury([counting, says({question.material["claim"]: 0.2 for question in CLAIMS}, "other")])
    first = verdicts_on(Judging(jury, book), CLAIMS)
    assert len(book) == 20
    names = {member.identity(kind_named("support")) for member in jury.members}
    assert {verdict.identity for verdict in book.values()} == names
    weights = JuryWeights([1.0, 1.0], [0.0, 0.0], [0.0, 1.0])
    second = verdicts_on(Judging(Jury(jury.members, weights), book), CLAIMS)
    assert len(calls) == 10, "new weights need no new call"
    assert first[0].score == pytest.approx(0.6)
    assert second[0].score == pytest.approx(0.2)


def test_a_member_that_fails_fails_the_jury() -> None:
    failing = FunctionJudge(lambda question: Verdict(failed="429", flags=["cut"]), "failing")
    verdict = Jury([ORACLE, failing]).judge(a_question())
    assert verdict.score is None
    assert "1 of 2 members of the jury failed: 429" in verdict.failed
    assert verdict.flags == ["cut"]


def test_grades_are_averaged_and_texts_are_those_of_the_first_member() -> None:
    three, two = FunctionJudge(lambda question: "3", "three"), FunctionJudge(lambda question: "2", "two")
    graded = Question(kind_named("relevance"), {"question": "q", "passage": "p"})
    assert Jury([three, two]).judge(graded).score == pytest.approx(5 / 6)
    listing = FunctionJudge(lambda question: Verdict(score=1.0, texts=["a"]), "listing")
    other = FunctionJudge(lambda question: Verdict(score=1.0, texts=["b"]), "other")
    claims = Question(kind_named("claims"), {"answer": "a"})
    assert Jury([listing, other]).judge(claims).texts == ["a"]


def a_world(size: int = 400, seed: int = 1) -> tuple[list[bool], random.Random]:
    rng = random.Random(seed)
    return [rng.random() < 0.5 for _ in range(size)], rng


def a_graded_judge(truth: list[bool], rng: random.Random, signal: float) -> list[float]:
    return [1 / (1 + np.exp(-(signal * (2 * yes - 1) + rng.gauss(0, 1)))) for yes in truth]


def test_fitted_weights_prefer_the_better_member_and_are_never_negative() -> None:
    truth, rng = a_world()
    good, useless = a_graded_judge(truth, rng, 1.5), a_graded_judge(truth, rng, 0.0)
    against = [1 - score for score in a_graded_judge(truth, rng, 1.5)]
    weights = fit_jury([good, useless, against], [float(yes) for yes in truth])
    assert min(weights.weights) >= 0.0
    assert weights.weights[0] == max(weights.weights)
    # A member that speaks against the labels has the slope 0: it is left out, not turned round.
    assert weights.slopes[2] == 0.0
    report = jury_report(["good", "useless", "against"], [good, useless, against], truth, weights)
    assert report.auroc[3] == pytest.approx(report.auroc[0], abs=0.01)


def test_a_jury_is_not_praised_for_labels_that_it_has_seen() -> None:
    truth, rng = a_world(60)
    useless = [a_graded_judge(truth, rng, 0.0) for _ in range(6)]
    labels = [float(yes) for yes in truth]
    seen = jury_report(list("abcdef"), useless, truth, fit_jury(useless, labels)).auroc[-1]
    assert seen > 0.6
    assert area_under_curve(cross_fitted(useless, labels), truth) < seen - 0.1


def test_two_good_judges_are_better_together() -> None:
    train, rng = a_world(200)
    test, _ = a_world(2_000, seed=2)
    weights = fit_jury([a_graded_judge(train, rng, 0.8) for _ in range(2)], [float(yes) for yes in train])
    scores = [a_graded_judge(test, rng, 0.8) for _ in range(2)]
    report = jury_report(["a", "b"], scores, test, weights)
    assert report.auroc[2] > max(report.auroc[:2]) + 0.05
    assert report.effective_members == pytest.approx(2.0, abs=0.2)


def test_members_that_err_together_count_as_one() -> None:
    truth, rng = a_world()
    scores = noisy(truth, rng)
    report = jury_report(["a", "b", "c"], [scores, scores, noisy(truth, rng)], truth)
    assert [pair.correlation for pair in report.pairs] == pytest.approx([1.0, 0.0, 0.0], abs=0.15)
    table = str(report.table())
    assert "a and b err on the same claims" in " ".join(table.split())
    assert 1.0 < report.effective_members < 3.0


def test_a_cascade_asks_the_second_judge_only_where_the_first_is_unsure() -> None:
    cheap = says({f"claim {n}": n / 10 for n in range(10)}, "cheap")
    asked = []

    def dear_judge(question: Question) -> float:
        asked.append(question.material["claim"])
        return 1.0

    dear = FunctionJudge(dear_judge, "dear")
    cascade, book = Cascade(cheap, dear, (0.3, 0.6)), VerdictBook()
    verdicts = verdicts_on(Judging(cascade, book), CLAIMS)
    assert asked == ["claim 3", "claim 4", "claim 5", "claim 6"]
    assert [verdict.score for verdict in verdicts] == [0.0, 0.1, 0.2, 1.0, 1.0, 1.0, 1.0, 0.7, 0.8, 0.9]
    assert saved_calls(cascade, CLAIMS, book) == (6, 10)
    assert cascade.identity(kind_named("support")).endswith("/unsure=0.3-0.6")
    with pytest.raises(PlanError, match="between two scores"):
        Cascade(cheap, dear, (0.9, 0.1))


def test_a_cascade_asks_the_second_judge_where_the_first_failed() -> None:
    failing = FunctionJudge(lambda question: Verdict(failed="down"), "failing")
    cascade = Cascade(failing, ORACLE)
    assert cascade.judge(a_question("a", "a")).score == 1.0
    assert verdicts_on(Judging(cascade), [a_question("a", "a")])[0].score == 1.0


def test_the_loss_of_a_cascade_is_measured_on_labels() -> None:
    labels = [1.0] * 50 + [0.0] * 50
    judge = [1.0] * 45 + [0.0] * 5 + [0.0] * 50  # 95 right
    cheap = [0.9] * 40 + [0.5] * 10 + [0.5] * 40 + [0.9] * 10  # sure on 50, wrong on 10 of these
    report = cascade_report(cheap, judge, labels)
    assert (report.claims, report.saved) == (100, 50)
    assert report.judge_agreement == pytest.approx(0.95)
    assert report.agreement == pytest.approx(0.85)
    assert report.loss == pytest.approx(0.10)
    assert report.loss_interval is not None
    assert report.loss_interval[0] > 0
    assert "saves 50 of 100 calls (50%)" in str(report)
    assert "loss +0.100" in str(report)


def test_both_have_names() -> None:
    jury = judge_named("jury:[support:lexical,support:consistent]")
    cascade = judge_named("cascade:[support:lexical,support:consistent]")
    assert isinstance(jury, Jury)
    assert isinstance(cascade, Cascade)
    nested = judge_named("jury:[support:lexical,cascade:[support:lexical,support:consistent]]")
    assert nested.judge(a_question("The ferry is red.", "The ferry is red.")).label == "yes"
