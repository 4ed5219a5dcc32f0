"""Passages graded from 0 to 3: the metrics by hand, and the judgements as TREC has them."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from auepora_eval.core.types import Document
from auepora_eval.errors import CallError
from auepora_eval.judges.metric import JudgedMetric
from auepora_eval.judges.metrics.relevance import GradedPassages
from auepora_eval.judges.question import Judgement, Question
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_sample, an_output
from tests.judges.oracles import judging_by


def metric_by(function: Callable[[Question], object], name: str) -> GradedPassages:
    metric = parse_metric(name)
    assert isinstance(metric, JudgedMetric)
    assert isinstance(metric, GradedPassages)
    return metric.judged_by(judging_by(function))


def graded(**grades: str) -> Callable[[Question], object]:
    """The grade of each document by its id; texts are "text of a"."""

    def judge(question: Question) -> str:
        assert set(question.material) == {"question", "passage"}
        return grades[question.material["passage"].removeprefix("text of ")]

    return judge


OUTPUT = an_output("abc")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("judged_relevance@1", 1 / 3),
        ("judged_relevance@3", (1 + 3 + 0) / 9),
        ("judged_relevance@5", (1 + 3 + 0) / 15),  # two places are empty
        # 1 and 3 at ranks 1 and 2, where the other order is the best one.
        ("umbrela_ndcg@3", (1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3))),
        ("umbrela_ndcg@1", 1.0),
    ],
)
def test_grades_by_hand(name: str, expected: float) -> None:
    metric = metric_by(graded(a="1", b="3", c="0"), name)
    assert metric.compute([a_sample()], [OUTPUT]).value == pytest.approx(expected)


def test_the_best_order_has_the_relevant_documents_that_were_missed() -> None:
    metric = metric_by(graded(a="1", b="0", c="0", z="3"), "umbrela_ndcg@3")
    sample = a_sample(relevant={"z": 1, "y": 0})  # y is judged not relevant by people: it is not looked at
    assert metric.compute([sample], [OUTPUT]).value == pytest.approx(1 / (3 + 1 / math.log2(3)))


def test_a_grade_is_the_expectation_over_the_options() -> None:
    def judge(question: Question) -> Judgement:
        chances = {"0": 0.1, "1": 0.2, "2": 0.3, "3": 0.4}
        score = sum(int(grade) * chance for grade, chance in chances.items()) / 3
        return Judgement(score=score, label="3", probabilities=chances)

    assert metric_by(judge, "judged_relevance@1").compute([a_sample()], [OUTPUT]).value == pytest.approx(
        2 / 3
    )


def test_small_expectations_do_not_make_a_bad_list_a_good_one() -> None:
    """A model that is never quite certain gives 0.1 where nothing is relevant."""
    metric = metric_by(lambda _: 0.1 / 3, "umbrela_ndcg@3")
    assert metric.compute([a_sample()], [OUTPUT]).value == 0.0


def test_nothing_retrieved_scores_zero_without_a_call() -> None:
    for name in ("judged_relevance@3", "umbrela_ndcg@3"):
        metric = metric_by(graded(), name)
        assert metric.compute([a_sample()], [an_output()]).value == 0.0
        assert metric.asking is not None
        assert not metric.asking.book


def test_documents_without_a_text_count_as_not_relevant_and_the_result_says_so() -> None:
    output = an_output("abc")
    output.retrieved[1].doc = Document("b", "")
    result = metric_by(graded(a="3", c="3"), "judged_relevance@3").compute([a_sample()], [output])
    assert result.value == pytest.approx(6 / 9)
    assert result.details["judged_share"] == pytest.approx(2 / 3)
    assert result.notes == [
        "Judged@3 of judged_relevance@3 is 0.67. Documents without a text count as not relevant.",
        "judged_relevance@3: uncalibrated judge oracle",
    ]
    for hit in output.retrieved:
        hit.doc = Document(hit.doc.doc_id, " ")
    score = metric_by(graded(), "judged_relevance@3").compute([a_sample()], [output]).scores[0]
    assert (score.value, score.reason) == (None, "the documents have no text")


def test_a_failed_grade_fails_the_sample_and_bounds_the_value() -> None:
    def judge(question: Question) -> object:
        if question.material["passage"] == "text of b":
            raise CallError("the server is down", kind="http_5xx")
        return "3"

    samples = [a_sample("1"), a_sample("2")]
    result = metric_by(judge, "judged_relevance@2").compute(samples, [an_output("ac"), an_output("ab")])
    assert (result.value, result.coverage.failed) == (1.0, 1)
    assert result.if_failed == (0.5, 1.0)
