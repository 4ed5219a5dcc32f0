"""Marks in an answer: what each form cites, and what is no citation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from auepora_eval.errors import ScoringError
from auepora_eval.metrics.citations.sources import MOST_MARKS, Citation, marks


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("It moors [1].", [1]),
        ("It moors [1,2].", [1, 2]),
        ("It moors [1, 3; 4].", [1, 3, 4]),
        ("It moors [1][2].", [1, 2]),
        ("It moors [1-3].", [1, 2, 3]),
        ("It moors [1–3, 5].", [1, 2, 3, 5]),
        ("It moors [ 2 ].", [2]),
        ("It moors [^2][^3].", [2, 3]),
        ("It moors [0] or [99].", [0, 99]),
        ("It moors [3-1].", [3, 1]),
        ("It moors [1-900].", [1, 900]),
        ("In [1944] it moored [sic] at a[i] and b[12:30].", []),
        ("It moors [.", []),
        ("", []),
    ],
)
def test_numbers(text: str, numbers: list[int]) -> None:
    found = marks(text)
    assert [mark.number for mark in found] == numbers
    written = [text[slice(*mark.at)] for mark in found if mark.at is not None]
    assert len(written) == len(numbers)
    assert all(mark.startswith("[") and mark.endswith("]") for mark in written)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a.pdf:3:10-20]", [("a.pdf", 3, (10, 20), "")]),
        ("[a.pdf:10-20]", [("a.pdf", None, (10, 20), "")]),
        ("[my notes.md:1:10-20,30-40]", [("my notes.md", 1, (10, 20), ""), ("my notes.md", 1, (30, 40), "")]),
        ('[a.pdf:3:10-20 | excerpt: "It sank. Then: no."]', [("a.pdf", 3, (10, 20), "It sank. Then: no.")]),
        ("[C:\\docs\\a.pdf:3:10-20]", [("C:\\docs\\a.pdf", 3, (10, 20), "")]),
        ("[a.pdf:3:20-10]", [("a.pdf", 3, (20, 10), "")]),
        ("[a.pdf:3:10]", []),
        ("[a.pdf:3:x-20]", []),
        ("[a.pdf:1:1-2][b.pdf:2:3-4]", [("a.pdf", 1, (1, 2), ""), ("b.pdf", 2, (3, 4), "")]),
    ],
)
def test_places(text: str, expected: list[tuple[object, ...]]) -> None:
    assert [(mark.file_name, mark.page, mark.span, mark.excerpt) for mark in marks(text)] == expected


@given(st.integers(0, 999), st.integers(1, 9), st.integers(0, 10**6), st.integers(1, 10**4))
def test_what_is_written_is_read(number: int, page: int, start: int, length: int) -> None:
    text = f"So [{number}] and [f.txt:{page}:{start}-{start + length}]."
    one, other = marks(text)
    assert one == Citation(number=number, at=(3, 3 + len(f"[{number}]")))
    assert (other.page, other.span) == (page, (start, start + length))


@given(st.text(alphabet='[]0123456789,-–:| abc."exrpt\n') | st.text())
def test_any_text_is_read(text: str) -> None:
    for mark in marks(text):
        assert mark.at is not None
        assert text[mark.at[0]] == "["
        assert (mark.number is None) == bool(mark.file_name)


def test_more_marks_than_an_answer_has() -> None:
    assert len(marks("[1]" * MOST_MARKS)) == MOST_MARKS
    with pytest.raises(ScoringError, match="more than 1000 citations"):
        marks("[1]" * (MOST_MARKS + 1))
