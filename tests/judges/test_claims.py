"""Claim metrics whose claims a judge finds and checks: by hand, then RAGChecker's worked example."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.core.types import Document, Response, RetrievedDocument, SystemOutputs
from auepora_eval.errors import CallError
from auepora_eval.judges.metric import JudgedMetric
from auepora_eval.judges.question import Judgement, Question
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_sample, an_output
from tests.judges.oracles import judging_by

RAGCHECKER = Path(__file__).parents[3] / "shared" / "data" / "ragchecker" / "checking_outputs.json"


def metric_by(function: Callable[[Question], object], name: str) -> JudgedMetric:
    metric = parse_metric(name)
    assert isinstance(metric, JudgedMetric)
    return metric.judged_by(judging_by(function))


def replayed(rows: list[dict[str, Any]]) -> Callable[[Question], object]:
    """The judge of RAGChecker's file: its claims, and what it said of each claim and text."""
    known: dict[tuple[str, str], str] = {}
    claims: dict[str, list[str]] = {}
    for row in rows:
        of_answer = [" ".join(claim) for claim in row["response_claims"]]
        of_reference = [" ".join(claim) for claim in row["gt_answer_claims"]]
        claims |= {row["response"]: of_answer, row["gt_answer"]: of_reference}
        known |= {(row["gt_answer"], c): v for c, v in zip(of_answer, row["answer2response"], strict=True)}
        known |= {(row["response"], c): v for c, v in zip(of_reference, row["response2answer"], strict=True)}
        for listed, matrix in ((of_answer, "retrieved2response"), (of_reference, "retrieved2answer")):
            for claim, verdicts in zip(listed, row[matrix], strict=True):
                texts = [document["text"] for document in row["retrieved_context"]]
                known |= {(text, claim): v for text, v in zip(texts, verdicts, strict=True)}

    def judge(question: Question) -> object:
        if question.kind.name == "claims":
            return Judgement(score=1.0, texts=claims[question.material["text"]])
        verdict = known[question.material["passage"], question.material["claim"]]
        return "yes" if verdict == "Entailment" else "no"

    return judge


@pytest.mark.skipif(not RAGCHECKER.exists(), reason="no RAGChecker example beside the repository")
@pytest.mark.parametrize(
    ("name", "stored", "overall"),
    [
        ("claim_precision", "precision", 76.4),
        ("claim_recall", "recall", 62.5),
        ("claim_f1", "f1", 68.3),
        ("claim_faithfulness", "faithfulness", 68.2),
        ("claim_hallucination", "hallucination", 4.5),
        ("claim_noise_sensitivity", "noise_sensitivity_in_relevant", 19.1),
        ("claim_noise_sensitivity[documents=irrelevant]", "noise_sensitivity_in_irrelevant", 0.0),
    ],
)
def test_the_judge_fills_the_lists_of_ragcheckers_worked_example(
    name: str, stored: str, overall: float
) -> None:
    rows = json.loads(RAGCHECKER.read_text(encoding="utf-8"))["results"]
    samples = [a_sample(row["query_id"], row["query"], reference=row["gt_answer"]) for row in rows]
    outputs = []
    for row in rows:
        documents = [Document(doc["doc_id"], doc["text"]) for doc in row["retrieved_context"]]
        hits = [RetrievedDocument(doc, 1 / rank, rank) for rank, doc in enumerate(documents, 1)]
        outputs.append(SystemOutputs(hits, Response(row["response"])))
    asked = f"{name.removesuffix(']')}{',' if '[' in name else '['}check=judge,claims=llm]"
    result = metric_by(replayed(rows), asked).compute(samples, outputs)
    assert [score.value for score in result.scores] == [pytest.approx(row["metrics"][stored]) for row in rows]
    assert round(100 * result.value, 1) == pytest.approx(overall, abs=0.05)


def boat_output(answer: str = "The Annet is red. The Annet is old. It sank.", documents: str = "ab") -> Any:
    texts = {"a": "The Annet is red.", "b": "It sank."}
    output = an_output(documents, answer)
    for hit in output.retrieved:
        hit.doc = Document(hit.doc.doc_id, texts[hit.doc.doc_id])
    return output


def literal(question: Question) -> str:
    return "yes" if question.material["claim"] in question.material["passage"] else "no"


# Claims of the answer: red (in the reference and in a), old (nowhere), sank (only in b).
# Claims of the reference: red (in the answer and in a), small (nowhere). So a is relevant and b is not.
SAMPLE = a_sample(reference="The Annet is red. The Annet is small.")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("claim_precision", 1 / 3),
        ("claim_recall", 1 / 2),
        ("claim_f1", 2 / 5),
        ("claim_faithfulness", 2 / 3),
        ("claim_hallucination", 1 / 3),
        ("claim_noise_sensitivity", 0.0),
        ("claim_noise_sensitivity[documents=irrelevant]", 1 / 3),
    ],
)
def test_sentences_by_hand(name: str, value: float) -> None:
    asked = f"{name.removesuffix(']')}{',' if '[' in name else '['}check=judge]"
    metric = metric_by(literal, asked)
    assert metric.name == asked
    assert metric.compute([SAMPLE], [boat_output()]).value == pytest.approx(value)


def test_an_answer_without_documents_hallucinates_what_is_wrong() -> None:
    output = boat_output(documents="")
    values = [
        metric_by(literal, f"{name}[check=judge]").compute([SAMPLE], [output]).value
        for name in ("claim_hallucination", "claim_noise_sensitivity", "claim_faithfulness")
    ]
    assert values == [pytest.approx(2 / 3), 0.0, 0.0]


@pytest.mark.parametrize(
    ("answer", "sample", "reason"),
    [
        ("I don't know.", replace(SAMPLE, labels={"answerable": False}), "the answer declines"),
        ("The Annet is red.", a_sample(), "the sample has no reference_answer"),
        ("The Annet is red.", a_sample(reference="So what?"), "the reference makes no claims"),
    ],
)
def test_what_cannot_be_checked_is_skipped(answer: str, sample: Any, reason: str) -> None:
    score = metric_by(literal, "claim_recall[check=judge]").compute([sample], [boat_output(answer)]).scores[0]
    assert (score.value, score.reason, score.failed) == (None, reason, False)


@pytest.mark.parametrize(("name", "value"), [("claim_precision", 1.0), ("claim_faithfulness", None)])
def test_documents_without_a_text_matter_only_where_documents_are_asked_about(
    name: str, value: float | None
) -> None:
    output = boat_output("The Annet is red.")
    for hit in output.retrieved:
        hit.doc = Document(hit.doc.doc_id, "")
    score = metric_by(literal, f"{name}[check=judge]").compute([SAMPLE], [output]).scores[0]
    assert (score.value, score.failed) == (value, False)


def test_an_empty_answer_makes_no_claims_of_the_reference() -> None:
    values = [
        metric_by(literal, f"{name}[check=judge]").compute([SAMPLE], [boat_output("")]).scores[0].value
        for name in ("claim_precision", "claim_recall", "claim_f1")
    ]
    assert values == [None, 0.0, 0.0]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("claim_faithfulness", None),
        ("claim_noise_sensitivity", None),
        ("claim_precision", 1.0),  # the documents are not asked about
    ],
)
def test_a_failed_verdict_fails_the_sample_if_it_could_change_it(name: str, value: float | None) -> None:
    def judge(question: Question) -> object:
        if question.material["passage"] == "It sank.":
            raise CallError("the server is down", kind="http_5xx")
        return literal(question)

    output = boat_output("The Annet is red.")
    score = metric_by(judge, f"{name}[check=judge]").compute([SAMPLE], [output]).scores[0]
    assert (score.value, score.failed) == (value, value is None)
    assert ("CallError: the server is down" in score.reason) is score.failed


def test_without_check_the_stored_claims_are_read_and_no_judge_is_needed() -> None:
    claims = {
        "answer_in_reference": [True, False, False],
        "answer_in_documents": [[True, False], [False, True], [False, False]],
        "reference_in_documents": [[True, False]],
    }
    output = an_output(extra={"claims": claims})
    names = (
        "claim_hallucination",
        "claim_noise_sensitivity",
        "claim_noise_sensitivity[documents=irrelevant]",
    )
    for name, value in zip(names, (1 / 3, 0.0, 1 / 3), strict=True):
        metric = parse_metric(name)
        metric.ready()
        assert metric.compute([a_sample()], [output]).value == pytest.approx(value)
        assert metric.signature() == {}
