"""Where two datasets begin to differ, by the marks that a header keeps."""

from __future__ import annotations

from typing import Any

import pytest

from auepora_eval.core.fingerprint import Fingerprint
from auepora_eval.runs.dataset_marks import DatasetMarks, where_they_differ
from tests.builders import a_sample


def marks(size: int, changed: int = 0) -> dict[str, Any]:
    found, fingerprint = DatasetMarks(), Fingerprint()
    for number in range(1, size + 1):
        fingerprint.add([a_sample(f"s{number}", "changed" if number == changed else f"q{number}")])
        found.add(number, fingerprint)
    return found.as_header()


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        pytest.param((8, 0), (8, 1), "the first that differs is sample 1", id="the first"),
        pytest.param((8, 0), (8, 8), "the first that differs is sample 8", id="the last"),
        pytest.param(
            (256, 0), (256, 256), "the first that differs is sample 256", id="as many as are marked"
        ),
        pytest.param((8, 0), (4, 0), "the first 4 are the same", id="cut off"),
        pytest.param((8, 0), (4, 2), "the first that differs is sample 2", id="cut off and changed"),
        pytest.param((1000, 0), (1000, 1), "first within 1 to 4", id="large"),
        pytest.param((1000, 0), (1000, 500), "first within 497 to 500", id="large, in the middle"),
        pytest.param((100, 0), (1000, 50), "first within 49 to 52", id="of different sizes"),
        pytest.param((1001, 0), (1001, 1001), "the first 1,000 are the same", id="behind the last mark"),
    ],
)
def test_the_first_difference(before: tuple[int, int], now: tuple[int, int], told: str) -> None:
    assert where_they_differ(marks(*before), marks(*now)) == told


@pytest.mark.parametrize(
    "odd", [None, 5, {}, {"every": 0, "marks": ""}, {"every": 3, "marks": "ab"}, {"every": 1}]
)
def test_marks_that_say_nothing(odd: object) -> None:
    assert where_they_differ(odd, marks(4)) == ""
    assert where_they_differ(marks(4), odd) == ""


def test_they_stay_small() -> None:
    assert len(str(marks(5_000))) < 2_200
