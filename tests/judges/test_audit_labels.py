"""Labels of people: one or several per claim, words or numbers, and stored scores of a judge."""

from __future__ import annotations

from typing import Any

import pytest

from auepora_eval.errors import DataError
from auepora_eval.judges.trust.labels import Labelled, labelled_claims

TEXTS = {"evidence": "e", "claim": "c"}


def one(label: Any) -> Labelled:
    return labelled_claims([("f:1", {**TEXTS, "label": label})])[0]


@pytest.mark.parametrize(
    ("label", "people", "is_supported"),
    [
        pytest.param(1, 1.0, True, id="one label"),
        pytest.param({"ada": 1, "ben": 0, "cy": 1}, 2 / 3, True, id="most say yes"),
        pytest.param({"ada": "no", "ben": "no", "cy": "yes"}, 1 / 3, False, id="most say no"),
        pytest.param([True, False], 0.5, True, id="evenly split"),
        pytest.param([1, None, None], 1.0, True, id="gaps"),
        pytest.param({"ada": 1 / 3, "ben": 2 / 3}, 0.5, True, id="the middle, though thirds are floats"),
        pytest.param(0.25, 0.25, False, id="a grade"),
    ],
)
def test_labels(label: Any, people: float, is_supported: bool) -> None:
    report = one(label)
    assert report.people == pytest.approx(people)
    assert report.is_supported is is_supported


@pytest.mark.parametrize("label", ["maybe", 4, [], None])
def test_what_is_no_label_is_named(label: Any) -> None:
    with pytest.raises(DataError, match="f:1"):
        one(label)


def test_stored_scores_are_read() -> None:
    for score in (0.8, None):
        record = {"label": 1, "said": score}  # neither evidence nor claim
        assert labelled_claims([("f:1", record)], "said") == [Labelled((), "", True, score=score)]
    for wrong in (5, "high"):
        with pytest.raises(DataError, match="not a number from 0 to 1"):
            labelled_claims([("f:1", {"label": 1, "said": wrong})], "said")
