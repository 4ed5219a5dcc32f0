"""An answer that declines: wrong for metrics of correctness, left out by all others, always counted."""

from __future__ import annotations

import pytest

from auepora_eval.core.metrics_base import METRICS
from auepora_eval.judges.metric import JudgedMetric
from auepora_eval.judges.metrics.relevance import GradedPassages
from auepora_eval.judges.question import Question
from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_sample, an_output
from tests.judges.oracles import RUBRIC, judging_by

CORRECTNESS = (
    "judged_correctness",
    "claim_precision[check=judge]",
    "claim_recall[check=judge]",
    "claim_f1[check=judge]",
    "nugget_recall[assign=judge]",
)
OTHERS = (
    "judged_faithfulness",
    "judged_faithfulness[ask=claim]",
    "judged_contradiction",
    "unsupported_span_share",
    "judged_answer_relevance",
    "judged_citation_precision",
    "judged_citation_recall",
    "claim_faithfulness[check=judge]",
    "claim_hallucination[check=judge]",
    "claim_noise_sensitivity[check=judge]",
    f"rubric[{RUBRIC}]",
)


def judge(question: Question) -> object:
    raise AssertionError("a refusal is not asked about")


def test_every_judged_metric_of_answers_is_listed_here() -> None:
    listed = {type(parse_metric(name)) for name in (*CORRECTNESS, *OTHERS)}
    judged = {made for name in METRICS if issubclass(made := METRICS.get(name), JudgedMetric)}
    assert {made for made in judged if not issubclass(made, GradedPassages)} == listed


@pytest.mark.parametrize("name", [*CORRECTNESS, *OTHERS])
@pytest.mark.parametrize("answerable", [True, False])
def test_a_refusal_is_wrong_for_correctness_and_left_out_otherwise(name: str, answerable: bool) -> None:
    metric = parse_metric(name)
    assert isinstance(metric, JudgedMetric)
    labels = {"answerable": answerable, "nuggets": [{"text": "at sea"}]}
    sample = a_sample("1", query="Where?", reference="At sea.", labels=labels)
    result = metric.judged_by(judging_by(judge)).compute([sample], [an_output("a", "I don't know.")])
    is_wrong = name in CORRECTNESS and answerable
    assert result.scores[0].value == (0.0 if is_wrong else None)
    assert not result.scores[0].failed
    assert result.details["num_declined"] == 1
    [note] = [note for note in result.notes if "answers decline" in note]
    assert note.startswith("1 of 1 answers decline")
    assert ("count them as wrong" in note) == is_wrong
    # What one kind of metric says of refusals does not contradict the other.
    assert "all but metrics of correctness" in note or "a question that has" in note
