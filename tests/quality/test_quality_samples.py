"""Each check of questions, answers and labels finds what it is for, and leaves alone what looks like it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from auepora_eval.core.dataset import EvaluationDataset
from auepora_eval.core.types import Document, EvaluationSample
from auepora_eval.quality.checks import DataQualityChecker
from auepora_eval.quality.view import QualityIssue
from tests.builders import a_dataset, a_sample

TEXT = "The Annet sails to Sallow every morning. The Dunlin is a workboat of Northmoss Station."


def issues_of(dataset: EvaluationDataset, check: str = "") -> list[QualityIssue]:
    return [issue for issue in DataQualityChecker().issues(dataset) if check in issue.check]


@pytest.mark.parametrize(
    ("query", "reference", "given_away"),
    [
        pytest.param("Who designed the Oriental Courts?", "Oriental Courts", True, id="verbatim"),
        pytest.param("What fluid is in a mercury turbine?", "Mercury", True, id="one word"),
        pytest.param(
            "Which conjecture speaks of twin primes?", "the twin prime conjecture", True, id="stems"
        ),
        pytest.param("Is the Annet or the Dunlin faster?", "The Dunlin", False, id="a choice"),
        pytest.param("Is it true that yes is an answer?", "Yes", False, id="yes"),
        pytest.param("How many of the 3 boats are red?", "3", False, id="a lone number"),
        pytest.param("Where does the Annet moor?", "At the north pier", False, id="not in it"),
        pytest.param("Where is the pier?", "", False, id="no reference"),
        pytest.param("东京塔在哪里？", "东京塔", True, id="ideographs"),
        pytest.param("东京塔在哪里？", "塔东", False, id="the same characters otherwise"),
    ],
)
def test_answer_in_question(query: str, reference: str, given_away: bool) -> None:
    issues = issues_of(a_dataset(a_sample(query=query, reference=reference)), "answer_in_question")
    assert bool(issues) == given_away


@pytest.mark.parametrize(
    ("reference", "fields", "unsupported"),
    [
        pytest.param("The Annet sails to Sallow each morning", {}, False, id="supported"),
        pytest.param("Gulls weigh seven hundred grams", {}, True, id="made up"),
        pytest.param("Sailing mornings, Annet", {}, False, id="by stems"),
        pytest.param("forty gulls", {}, False, id="too short to tell"),
        pytest.param("Yes", {}, False, id="yes"),
        pytest.param("I cannot answer: the documents say nothing on gulls.", {}, False, id="declines"),
        pytest.param("Gulls weigh seven hundred grams", {"answerable": False}, False, id="unanswerable"),
        pytest.param("Gulls weigh seven hundred grams", {"answerable": "perhaps"}, True, id="odd label"),
    ],
)
def test_reference_support(reference: str, fields: dict[str, Any], unsupported: bool) -> None:
    sample = a_sample(reference=reference, labels=fields)
    sample.relevant_docs = [Document("a", TEXT)]
    assert bool(issues_of(a_dataset(sample), "reference_support")) == unsupported
    sample.relevant_docs = [Document("a", TEXT), Document("b", "", {"text_missing": True})]
    assert issues_of(a_dataset(sample), "reference_support") == []  # what is not there may support it


A = "When does the Annet sail to Sallow?"


@pytest.mark.parametrize(
    ("other", "references", "severity"),
    [
        pytest.param(A, ("at six", "at six"), "warning", id="verbatim"),
        pytest.param(A.upper(), ("at six", "at six"), "warning", id="in capitals"),
        pytest.param(A, ("at six", "at noon"), "warning", id="two references"),
        pytest.param("When does Annet sail to Sallow", ("at six", "at six"), "warning", id="empty words"),
        pytest.param("To Sallow: when does the Annet sail?", ("at six", "at noon"), None, id="reordered"),
        pytest.param("When does the Annet sail to Swallow?", ("six", "ten"), None, id="another place"),
        pytest.param("When does the Annet sail to Hallamoor?", ("at six", "at six"), None, id="one word"),
        pytest.param("Where does the Annet sail to, Sallow?", ("at six", "at six"), None, id="question word"),
        pytest.param("When does the Annet not sail to Sallow?", ("at six", "at six"), None, id="negated"),
    ],
)
def test_near_duplicates(other: str, references: Sequence[str | None], severity: str | None) -> None:
    samples = [a_sample("q1", A, reference=references[0]), a_sample("q2", other, reference=references[1])]
    issues = issues_of(a_dataset(*samples), "near_duplicates")
    assert [issue.severity for issue in issues] == ([severity] if severity else [])
    marked = EvaluationSample("q2", other, labels={"variant_of": "q1"})
    for variant in (marked, a_sample("q2", other, cluster="q1")):
        related = [a_sample("q1", A, cluster="q1"), variant]
        assert issues_of(a_dataset(*related), "near_duplicates") == []


@pytest.mark.parametrize("query", ["", "  ", "?!"])
def test_empty_queries(query: str) -> None:
    assert [issue.severity for issue in issues_of(a_dataset(a_sample(query=query)), "empty_queries")] == [
        "error"
    ]
    assert issues_of(a_dataset(a_sample(query="东京?")), "empty_queries") == []


@pytest.mark.parametrize(
    ("split", "labels", "messages"),
    [
        pytest.param({"rag_prompt": "Answer.", "contexts": ["a"]}, {}, [], id="complete"),
        pytest.param(
            {"rag_prompt": " ", "contexts": ["a"]}, {}, ["the rag_prompt is empty."], id="no prompt"
        ),
        pytest.param({"rag_prompt": "Answer.", "contexts": []}, {}, ["there are no contexts."], id="none"),
        pytest.param({"rag_prompt": "Answer.", "contexts": []}, {"answerable": False}, [], id="unanswerable"),
        pytest.param(None, {}, [], id="not a split"),
    ],
)
def test_prompts(split: Any, labels: dict[str, Any], messages: list[str]) -> None:
    sample = EvaluationSample("q1", "Why?", labels=labels, metadata={"split": split} if split else {})
    assert [issue.message for issue in issues_of(a_dataset(sample), "prompts")] == messages


def labelled(*labels: dict[str, Any]) -> EvaluationDataset:
    return a_dataset(
        *(EvaluationSample(f"q{n}", f"question {n}?", labels=each) for n, each in enumerate(labels))
    )


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        pytest.param(
            [{"variant_of": "q9"}], "its base question 'q9' is not the id of a sample", id="variant of none"
        ),
        pytest.param([{"variant_of": "q0"}], "a variant of itself", id="variant of itself"),
        pytest.param([{"scenario": "unanswerabel"}], "no metric reads the scenario", id="scenario"),
        pytest.param([{"answerable": "no"}], "'no', not true or false", id="answerable"),
        pytest.param(
            [{"answerable": True, "scenario": "unanswerable"}], "answerable is true, but", id="both"
        ),
        pytest.param([{"noise_ratio": 80}], "80, not a number from 0 to 1", id="ratio"),
    ],
)
def test_labels_that_are_dead(labels: list[dict[str, Any]], said: str) -> None:
    (text,) = issues_of(labelled(*labels))
    assert said in text


def test_a_citation_task_may_hold_the_statement_whose_source_it_asks_for() -> None:
    sample = a_sample(query="Which passage says: It carries 22 cars?", reference="It carries 22 cars. [1]")
    sample.labels["task_type"] = "citations"
    assert issues_of(a_dataset(sample), "answer_in_question") == []
