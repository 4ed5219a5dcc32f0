"""Nugget recall by hand: vital and all, strict and not, assigned by labels and by words."""

from __future__ import annotations

from typing import Any

import pytest

from auepora_eval.metrics.parse import parse_metric
from tests.builders import a_sample, an_output

LABELLED = [
    {"text": "a", "importance": "vital", "assignment": "support"},
    {"text": "b", "importance": "vital", "assignment": "partial_support"},
    {"text": "c", "importance": "okay", "assignment": "not_support"},
    {"text": "d", "importance": "okay", "assignment": "support"},
]


def score(name: str, nuggets: Any, answer: str = "", **fields: Any) -> Any:
    sample = a_sample(labels={"nuggets": nuggets})
    return parse_metric(name).compute([sample], [an_output(answer=answer, **fields)]).scores[0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("nugget_recall", 2.5 / 4),
        ("nugget_recall[strict=true]", 2 / 4),
        ("nugget_recall[vital=true]", 1.5 / 2),
        ("nugget_recall[vital=true,strict=true]", 1 / 2),
    ],
)
def test_labelled_nuggets(name: str, expected: float) -> None:
    assert score(name, LABELLED).value == pytest.approx(expected)
    assert parse_metric(name).name == name


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param("It moors at the northern piers, in harbour.", 0.5, id="half of the words"),
        pytest.param("The Annet moored at a pier in the north.", 1.0, id="all words, by their stems"),
        pytest.param("It sank.", 0.0, id="none"),
        pytest.param("", 0.0, id="no answer"),
    ],
)
def test_a_nugget_without_assignment_is_assigned_by_its_words(answer: str, expected: float) -> None:
    assert score("nugget_recall", [{"text": "The Annet moors at the north pier"}], answer).value == expected


def test_the_assignments_of_an_output_go_before_those_of_the_labels() -> None:
    own = [{"text": "a", "assignment": "not_support"}]
    assert score("nugget_recall", LABELLED, extra={"nuggets": own}).value == 0.0


def test_a_sample_without_vital_nuggets_is_skipped() -> None:
    found = score("nugget_recall[vital=true]", LABELLED[2:])
    assert (found.value, found.failed) == (None, False)
    assert "vital" in found.reason


@pytest.mark.parametrize(
    "nuggets",
    [
        "text",
        ["text"],
        [{"text": 1}],
        [{"text": "a", "assignment": "maybe"}],
        [{"text": "a", "importance": "high"}],
        [{"text": "?!"}],
        [{"text": "a", "assignment": []}],
    ],
)
def test_unusable_nuggets_fail_the_sample(nuggets: Any) -> None:
    found = score("nugget_recall", nuggets)
    assert (found.value, found.failed) == (None, True)
    assert "nugget" in found.reason
