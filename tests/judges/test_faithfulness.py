"""Faithfulness by claims: which claims are asked about, what counts, and the evidence for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from auepora_eval.core.types import Document, Response, RetrievedDocument, SampleScore, SystemOutputs
from auepora_eval.errors import PlanError
from auepora_eval.judges.ask import Asking
from auepora_eval.judges.judge import Judge
from auepora_eval.judges.metrics.faithfulness import CheckedClaims, ClaimCheck
from auepora_eval.judges.question import Judgement, Kind, Part, Question, with_parts
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_sample
from tests.judges.oracles import judging_by

PIER = "The harbour is old. The Annet moors at the north pier. Gulls are loud."
CARS = "The Annet carries 22 cars. She was built in 1911."
TWO_CLAIMS = "The Annet moors at the north pier [1]. She carries 40 cars."


def answered(answer: str, **documents: str) -> SystemOutputs:
    hits = [
        RetrievedDocument(Document(name, text), 1 / rank, rank)
        for rank, (name, text) in enumerate(documents.items(), 1)
    ]
    return SystemOutputs(hits, Response(answer))


def literal(question: Question) -> object:
    """Supported is what is in the passage word for word."""
    return float(question.material["claim"].strip(".") in question.material["passage"])


def metric_by(function: Callable[[Question], object], name: str, **options: Any) -> CheckedClaims:
    metric = parse_metric(name)
    assert isinstance(metric, CheckedClaims)
    return metric.judged_by(judging_by(function, **options))


def score_of(metric: CheckedClaims, output: SystemOutputs, query: str = "Where?") -> SampleScore:
    return metric.compute([a_sample(query=query)], [output]).scores[0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # One of two claims is supported. The other one has 17 of the 48 characters that are not spaces.
        ("judged_faithfulness", 0.5),
        ("judged_faithfulness[ask=claim]", 0.5),
        ("unsupported_span_share", 17 / 48),
    ],
)
def test_claims_by_hand(name: str, expected: float) -> None:
    assert score_of(metric_by(literal, name), answered(TWO_CLAIMS, a=PIER, b=CARS)).value == pytest.approx(
        expected
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("judged_faithfulness", 0.5),  # 0.6 and 0.3, of which one reaches 0.5
        ("judged_faithfulness@0.3", 1.0),
        ("judged_faithfulness@0.7", 0.0),
        ("judged_faithfulness[soft=true]", 0.45),
    ],
)
def test_the_highest_score_over_the_passages_counts(name: str, expected: float) -> None:
    table = {("north pier", "harbour"): 0.6, ("north pier", "22 cars"): 0.1}
    table |= {("40 cars", "harbour"): 0.2, ("40 cars", "22 cars"): 0.3}

    def judge(question: Question) -> float:
        claim, passage = question.material["claim"], question.material["passage"]
        return next(score for (c, p), score in table.items() if c in claim and p in passage)

    assert score_of(metric_by(judge, name), answered(TWO_CLAIMS, a=PIER, b=CARS)).value == pytest.approx(
        expected
    )


def test_each_claim_is_asked_about_with_each_passage_and_nothing_else() -> None:
    asked: list[Question] = []

    def judge(question: Question) -> str:
        asked.append(question)
        return "no"

    score_of(metric_by(judge, "judged_faithfulness"), answered(TWO_CLAIMS, a=PIER, b=CARS))
    assert [dict(question.material) for question in asked] == [
        {"passage": passage, "claim": claim}
        for claim in ("The Annet moors at the north pier.", "She carries 40 cars.")
        for passage in (PIER, CARS)
    ]
    assert {question.kind.name for question in asked} == {"support"}
    assert asked[1].about == {"sample_id": "1"}


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (answered("I don't know.", a=PIER), "the answer declines"),
        (answered("", a=PIER), "the answer is empty"),
        (answered("The Annet.", a=" ", b=""), "the retrieved documents have no text"),
        (answered("So it is!", a=PIER), "the answer makes no claims"),
    ],
)
def test_what_is_skipped_costs_no_call(output: SystemOutputs, reason: str) -> None:
    metric = metric_by(literal, "judged_faithfulness")
    score = score_of(metric, output)
    assert (score.value, score.reason, score.failed) == (None, reason, False)
    assert metric.asking is not None
    assert not metric.asking.book
    assert metric.explain(a_sample(), output) == []


def test_refusals_are_counted_apart() -> None:
    outputs = [answered("I don't know.", a=PIER), answered("The Annet moors at the north pier.", a=PIER)]
    result = metric_by(literal, "judged_faithfulness").compute([a_sample("1"), a_sample("2")], outputs)
    assert (result.value, result.details["num_declined"]) == (1.0, 1)
    assert result.notes == [
        "1 of 2 answers decline: all but metrics of correctness leave them out.",
        "judged_faithfulness: uncalibrated judge oracle",
    ]


@pytest.mark.parametrize(
    ("name", "passages", "is_noted"),
    [
        ("judged_faithfulness", {"a": PIER}, False),
        ("judged_faithfulness", {"a": PIER, "b": CARS}, True),
    ],
)
def test_false_alarms_of_several_passages_are_noted(
    name: str, passages: dict[str, str], is_noted: bool
) -> None:
    output = answered("The Annet moors at the north pier.", **passages)
    result = metric_by(literal, name).compute([a_sample()], [output])
    assert any("false alarms add up with the number of passages" in note for note in result.notes) == is_noted


def test_nothing_retrieved_is_the_worst_score_without_a_call() -> None:
    metric = metric_by(literal, "judged_faithfulness")
    assert score_of(metric, answered(TWO_CLAIMS.replace(" [1]", ""))).value == 0.0
    assert metric.asking is not None
    assert not metric.asking.book


class Whole(Judge):
    """A model that is asked about all claims at once, with a verdict for each."""

    def __init__(self, *parts: Part) -> None:
        self.parts = parts

    def identity(self, kind: Kind) -> str:
        return f"{kind.name}/whole"

    def judge(self, question: Question) -> Judgement:
        return with_parts(Judgement(), self.parts, question.kind.each)


def test_contradictions_are_read_from_the_verdicts_of_faithfulness() -> None:
    def by(name: str, asking: Asking) -> CheckedClaims:
        metric = parse_metric(name)
        assert isinstance(metric, CheckedClaims)
        return metric.judged_by(asking)

    asking = Asking(Whole(Part("supported", 1.0, [1]), Part("contradicted", 0.0, [2])))
    output = answered(TWO_CLAIMS, a=PIER, b=CARS)
    for name in ("judged_faithfulness", "judged_contradiction"):
        assert score_of(by(name, asking), output).value == 0.5
    assert len(asking.asked) == 1, "one call for both"
    verdicts = [check.verdict for check in by("judged_contradiction", asking).explain(a_sample(), output)]
    assert verdicts == ["supported", "contradicted"]
    nothing = score_of(by("judged_contradiction", asking), answered("The Annet is red."))
    assert nothing.value == 1.0, "no system gains by retrieving nothing"
    failed = Asking(Whole(Part("contradicted", 0.0, [1]), Part(failed="missing")))
    assert score_of(by("judged_contradiction", failed), output).failed
    with pytest.raises(PlanError, match="Use a model as the judge"):
        score_of(metric_by(literal, "judged_contradiction"), output)


def fails_on(passage: str, otherwise: Callable[[Question], object]) -> Callable[[Question], object]:
    def judge(question: Question) -> object:
        if passage in question.material["passage"]:
            return Judgement(failed="the server is down")
        return otherwise(question)

    return judge


@pytest.mark.parametrize("name", ["judged_faithfulness", "judged_faithfulness[soft=true]"])
def test_a_failed_verdict_fails_the_sample(name: str) -> None:
    metric = metric_by(fails_on("22 cars", lambda _: 1.0), name)
    result = metric.compute([a_sample()], [answered("The Annet is red.", a=PIER, b=CARS)])
    assert (result.scores[0].value, result.scores[0].failed) == (None, True)
    assert result.if_failed == (0.0, 1.0)


def test_evidence_is_the_quote_of_the_judge_in_its_passage() -> None:
    def judge(question: Question) -> Judgement:
        place = question.material["passage"].find("moors at the north pier")
        if place < 0:
            return Judgement(score=0.0, label="no")
        return Judgement(score=1.0, label="yes", quote="moors")

    metric = metric_by(judge, "judged_faithfulness")
    long = " ".join(["Much happens in the harbour every day."] * 60)  # a chunk of 350 words, and more
    document = f"{long} {PIER}"
    check = metric_checks(metric, answered("The Annet moors at the north pier.", b=CARS, a=document))[0]
    assert check.evidence is not None
    assert (check.score, check.verdict, check.at) == (1.0, "supported", (0, 34))
    assert (check.evidence.passage_id, check.evidence.source, check.evidence.quote) == (
        "a",
        "quoted",
        "moors",
    )
    assert check.evidence.quote_at is not None
    assert document[slice(*check.evidence.quote_at)] == "moors"


def test_without_a_quote_the_best_sentence_is_marked_as_matched() -> None:
    check = metric_checks(metric_by(literal, "judged_faithfulness"), answered("The Annet moors.", a=PIER))[0]
    assert check.evidence is not None
    assert (check.evidence.source, check.evidence.quote) == ("matched", "The Annet moors at the north pier.")
    assert check.evidence.quote_at is not None
    assert PIER[slice(*check.evidence.quote_at)] == check.evidence.quote
    nothing = metric_checks(metric_by(literal, "judged_faithfulness"), answered("Snow melts.", a=PIER))[0]
    assert nothing.evidence is not None
    assert (nothing.evidence.source, nothing.evidence.quote, nothing.evidence.quote_at) == ("", "", None)


def metric_checks(metric: CheckedClaims, output: SystemOutputs) -> list[ClaimCheck]:
    score_of(metric, output)
    return metric.explain(a_sample(query="Where?"), output)


def test_claims_of_the_judge_are_asked_for_first_and_then_checked() -> None:
    def judge(question: Question) -> object:
        if question.kind.name == "claims":
            assert question.material == {"question": "Where?", "text": "It moors there and is red."}
            return Judgement(score=1.0, texts=["It moors there", "The Annet is red."])
        return "yes" if question.material["claim"] == "The Annet is red." else "no"

    metric = metric_by(judge, "judged_faithfulness[claims=llm]")
    output = answered("It moors there and is red.", a=PIER)
    assert score_of(metric, output).value == 0.5
    checks = metric.explain(a_sample(query="Where?"), output)
    # The second one is in other words than the answer: it has no place there.
    assert [(check.claim, check.at) for check in checks] == [
        ("It moors there", (0, 14)),
        ("The Annet is red.", None),
    ]
    assert [kind.name for kind in metric.question_kinds()] == ["claims", "grounding"]
