"""Chunks of whole sentences, and long texts cut around what they are compared with."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from auepora_eval.judges.asking import completed
from auepora_eval.judges.judge import FunctionJudge
from auepora_eval.judges.question import Judgement
from auepora_eval.judges.texts import chunk_spans, cut_around, length, question_about

TEXT = "Ann is here. Bo sails now. Cy is a cat. Dee eats fish. Ed sits there."  # 3, 3, 4, 3 and 3 words


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (100, [TEXT]),
        (6, ["Ann is here. Bo sails now.", "Cy is a cat.", "Dee eats fish. Ed sits there."]),
        (4, ["Ann is here.", "Bo sails now.", "Cy is a cat.", "Dee eats fish.", "Ed sits there."]),
        # A sentence that is too long is cut near its middle, at a space.
        (3, ["Ann is here.", "Bo sails now.", "Cy is ", "a cat.", "Dee eats fish.", "Ed sits there."]),
    ],
)
def test_chunks_are_whole_sentences(most: int, expected: list[str]) -> None:
    assert [TEXT[start:end] for start, end in chunk_spans(TEXT, most)] == expected


@settings(max_examples=80, deadline=None)
@given(st.text(alphabet="ab. 東京。\n", max_size=300), st.integers(1, 20))
def test_chunks_cover_everything_but_white_space_in_order(text: str, most: int) -> None:
    spans = chunk_spans(text, most)
    assert all(length(text[start:end]) <= most for start, end in spans)
    assert "".join("".join(text[start:end] for start, end in spans).split()) == "".join(text.split())
    assert list(spans) == sorted(spans)


@pytest.mark.parametrize(
    ("about", "most", "expected"),
    [
        ("a cat", 100, TEXT),
        ("a cat", 4, "Cy is a cat."),
        ("a cat", 7, "Bo sails now. Cy is a cat."),
        ("a cat", 10, "Bo sails now. Cy is a cat. Dee eats fish."),
        (
            "fishes",
            6,
            "Dee eats fish. Ed sits there.",
        ),  # the one before has 4 words, for which there is no room
        ("nothing of it", 6, "Ann is here. Bo sails now."),
    ],
)
def test_a_long_text_is_cut_to_the_sentences_around_the_best_match(
    about: str, most: int, expected: str
) -> None:
    assert cut_around(TEXT, about, most) == expected


def test_a_verdict_on_a_text_that_was_cut_is_marked() -> None:
    long = "Many boats lie here. " * 400
    question = question_about("relevance", "boats?", {"passage": (long, "boats?")}, passage_id="a")
    assert question.about == {"passage_id": "a", "cut": ["passage"]}
    assert length(question.material["passage"]) == 1_000
    judge = FunctionJudge(lambda _: "2")
    assert completed(Judgement(score=1.0), judge, question).flags == ["cut"]
    short = question_about("relevance", "boats?", {"passage": ("Boats.", "boats?")}, passage_id="a")
    assert short.about == {"passage_id": "a"}
    assert completed(Judgement(score=1.0), judge, short).flags == []
