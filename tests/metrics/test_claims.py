"""Claim metrics: by hand, then RAGChecker's worked example."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from auepora_eval.core.types import EvaluationSample, SystemOutputs
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_sample, an_output

RAGCHECKER = Path(__file__).parents[3] / "shared" / "data" / "ragchecker" / "checking_outputs.json"
NAMES = ("claim_precision", "claim_recall", "claim_f1", "claim_faithfulness")


def from_ragchecker(path: Path) -> tuple[list[EvaluationSample], list[SystemOutputs], list[dict[str, float]]]:
    """Samples, outputs with their checked claims, and the values that RAGChecker stored for each."""

    def entailed(labels: list[Any]) -> list[Any]:
        return [entailed(label) if isinstance(label, list) else label == "Entailment" for label in labels]

    rows = json.loads(path.read_text(encoding="utf-8"))["results"]
    outputs = [
        an_output(
            answer=row["response"],
            extra={
                "claims": {
                    "answer_in_reference": entailed(row["answer2response"]),
                    "reference_in_answer": entailed(row["response2answer"]),
                    "answer_in_documents": entailed(row["retrieved2response"]),
                }
            },
        )
        for row in rows
    ]
    samples = [a_sample(row["query_id"], row["query"], reference=row["gt_answer"]) for row in rows]
    return samples, outputs, [row["metrics"] for row in rows]


@pytest.mark.skipif(not RAGCHECKER.exists(), reason="no RAGChecker example beside the repository")
@pytest.mark.parametrize(
    ("name", "stored", "overall"),
    [
        ("claim_precision", "precision", 76.4),
        ("claim_recall", "recall", 62.5),
        ("claim_f1", "f1", 68.3),
        ("claim_faithfulness", "faithfulness", 68.2),
    ],
)
def test_the_worked_example_of_ragchecker(name: str, stored: str, overall: float) -> None:
    samples, outputs, expected = from_ragchecker(RAGCHECKER)
    result = parse_metric(name).compute(samples, outputs)
    assert [score.value for score in result.scores] == [pytest.approx(row[stored]) for row in expected]
    assert round(100 * result.value, 1) == overall


def scores(claims: Any, *, in_labels: bool = False) -> list[Any]:
    sample = a_sample(labels={"claims": claims} if in_labels else {})
    output = an_output(extra={} if in_labels else {"claims": claims})
    return [parse_metric(name).compute([sample], [output]).scores[0] for name in NAMES]


@pytest.mark.parametrize("in_labels", [False, True])
def test_claims_by_hand(in_labels: bool) -> None:
    claims = {
        "answer_in_reference": [True, True, False, False],
        "reference_in_answer": [True, False, False],
        "answer_in_documents": [[False, True], [False, False], [True, True], []],
    }
    found = [score.value for score in scores(claims, in_labels=in_labels)]
    assert found == [0.5, pytest.approx(1 / 3), pytest.approx(0.4), 0.5]


def test_an_answer_without_claims_leaves_everything_out() -> None:
    claims: dict[str, list[bool]] = {
        "answer_in_reference": [],
        "reference_in_answer": [False],
        "answer_in_documents": [],
    }
    assert [score.value for score in scores(claims)] == [None, 0.0, 0.0, None]
    assert not any(score.failed for score in scores(claims))


@pytest.mark.parametrize("bad", ["text", 5, [1, 0], ["Entailment"], [[1]], {"a": True}])
def test_claims_of_another_kind_fail_the_sample(bad: Any) -> None:
    found = scores(dict.fromkeys(("answer_in_reference", "reference_in_answer", "answer_in_documents"), bad))
    assert [(score.value, score.failed) for score in found] == [(None, True)] * 4
    assert all(score.failed for score in scores("text"))
