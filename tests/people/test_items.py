"""What can be judged in stored runs, and the task that is created from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from auepora_eval.core.plan import EvaluationPlan
from auepora_eval.core.types import EvaluationRun
from auepora_eval.errors import DataError
from auepora_eval.metrics.parse import parse_metric
from auepora_eval.people.items import Wanted, items_of, task_of_runs
from auepora_eval.people.task import read_task
from tests.builders import a_failure, a_sample, an_output, scored_run


def runs() -> tuple[EvaluationRun, EvaluationRun]:
    """Two runs on three questions. They answer the first differently and the second alike; one fails once."""
    labels = {"answerable": True}
    samples = [a_sample(name, f"question {name}", reference="a b", labels=labels) for name in "123"]
    one = [an_output("ab", "The boat is here. It is red."), an_output("a", "same"), an_output("a", "red")]
    two = [an_output("ac", "No boat."), an_output("a", " same "), a_failure()]
    plan = EvaluationPlan([parse_metric("token_f1"), parse_metric("over_refusal_rate")])
    first = scored_run(plan, samples, one, evaluation_id="one")
    return first, scored_run(plan, samples, two, evaluation_id="two")


def test_answers_have_their_documents_and_failures_are_counted() -> None:
    items, left_out = items_of("answers", runs())
    assert [(item.sample_id, item.text, item.runs) for item in items] == [
        ("1", "The boat is here. It is red.", ("one",)),
        ("2", "same", ("one",)),
        ("3", "red", ("one",)),
        ("1", "No boat.", ("two",)),
        ("2", " same ", ("two",)),
    ]
    assert left_out == (1, 0)
    assert [each.doc_id for each in items[0].documents] == ["a", "b"]
    assert items[0].reference == "a b"


def test_claims_are_the_sentences_of_an_answer() -> None:
    items, _ = items_of("claims", runs()[:1])
    assert [item.text for item in items if item.sample_id == "1"] == ["The boat is here.", "It is red."]
    assert items[0].answer == "The boat is here. It is red."


def test_a_document_is_judged_once_for_a_question_whoever_retrieved_it() -> None:
    items, _ = items_of("documents", runs())
    first = {item.doc_id: item.runs for item in items if item.sample_id == "1"}
    assert first == {"a": ("one", "two"), "b": ("one",), "c": ("two",)}


def test_pairs_are_the_questions_that_both_answered_differently() -> None:
    items, left_out = items_of("pairs", runs())
    ((item),) = items
    assert (item.sample_id, item.text, item.second) == ("1", "The boat is here. It is red.", "No boat.")
    assert item.runs == ("one", "two")
    assert item.scores["over_refusal_rate"] == 0.5, "neither refuses"
    assert left_out.failed == 1
    with pytest.raises(DataError, match="Name the two runs"):
        items_of("pairs", runs()[:1])


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Wanted(kind="answers"), ["Red [1]."]),
        (Wanted(kind="claims"), ["Red."]),
        # A question of one's own may well be about answers that decline.
        (Wanted(kind="answers", question="Polite?"), ["Red [1].", "The documents do not say.", " "]),
    ],
)
def test_answers_that_decline_have_nothing_to_support(
    tmp_path: Path, wanted: Wanted, expected: list[str]
) -> None:
    answers = ["Red [1].", "The documents do not say.", " "]
    samples = [a_sample(str(number), "Which colour?") for number in range(3)]
    run = scored_run(EvaluationPlan("mean_latency"), samples, [an_output("a", text) for text in answers])
    _, left_out = task_of_runs(tmp_path, [run], wanted)
    _, items = read_task(tmp_path)
    assert sorted(item.text for item in items) == sorted(expected)
    assert left_out.declined == 3 - len(expected)
