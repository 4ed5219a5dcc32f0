"""Labels of people: one or several per claim, words or numbers, and stored scores of a judge."""

from __future__ import annotations

from typing import Any

import pytest

from auepora_eval.judges.trust.labels import Columns, Labelled, labelled_claims, unlabelled_claims

TEXTS = {"evidence": "e", "claim": "c"}
FOUR = Columns(scale=(1.0, 4.0))


def one(label: Any, columns: Columns = Columns(), **more: Any) -> Labelled:  # noqa: B008 - it is frozen
    return labelled_claims([("f:1", {**TEXTS, "label": label, **more})], columns)[0]


@pytest.mark.parametrize(
    ("label", "columns", "people", "is_supported"),
    [
        pytest.param(1, Columns(), 1.0, True, id="one label"),
        pytest.param({"ada": 1, "ben": 0, "cy": 1}, Columns(), 2 / 3, True, id="most say yes"),
        pytest.param({"ada": "no", "ben": "no", "cy": "yes"}, Columns(), 1 / 3, False, id="most say no"),
        pytest.param([True, False], Columns(), 0.5, True, id="evenly split"),
        pytest.param([1, None, None], Columns(), 1.0, True, id="gaps"),
        pytest.param(4, FOUR, 1.0, True, id="the top of a scale"),
        pytest.param("2", FOUR, 1 / 3, False, id="a number in quotes"),
        pytest.param({"ada": 2, "ben": 3}, FOUR, 0.5, True, id="the middle, though 1/3 + 2/3 are floats"),
        pytest.param([4, 3], Columns(scale=(1.0, 4.0), people_threshold=0.9), 5 / 6, False, id="a high bar"),
        pytest.param({"ada": "FULL", "ben": "PART"}, Columns(positive="FULL"), 0.5, True, id="own words"),
    ],
)
def test_labels(label: Any, columns: Columns, people: float, is_supported: bool) -> None:
    report = one(label, columns)
    assert report.people == pytest.approx(people)
    assert report.is_supported is is_supported


@pytest.mark.parametrize(
    ("value", "scale", "score"),
    [(0.8, (0.0, 1.0), 0.8), (3, (1.0, 5.0), 0.5), (None, (0.0, 1.0), None), (-1, (-1.0, 1.0), 0.0)],
)
def test_stored_scores_are_read(value: Any, scale: tuple[float, float], score: float | None) -> None:
    record = {"label": 1, "said": value}  # neither evidence nor claim
    columns = Columns(score="said", score_scale=scale)
    assert labelled_claims([("f:1", record)], columns) == [Labelled((), "", True, score=score)]
    assert unlabelled_claims([("f:1", {"said": value})], columns) == [Labelled((), "", False, score=score)]
